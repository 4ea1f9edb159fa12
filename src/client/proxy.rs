//! Proxies: the `proxy` setting, and the variables of the environment, which are checked as strictly. A proxy that is
//! mistyped must not be bypassed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Uri;
use percent_encoding::percent_decode_str;
use url::Url;

use super::error::Error;
use super::variables;
use crate::message::{Hint, Message};

/// The address of a proxy, and the setting or variable that it came from.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    url: Url,
    pub setting: &'static str,
}

/// Schemes of proxies, of which the first two are supported.
const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// Variables for `https` URLs, in the order in which they are read.
const VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

impl Proxy {
    /// Reads an address such as `http://user:password@proxy.example.com:3128`; a missing scheme is `http`.
    pub fn parse(setting: &'static str, text: &str) -> Result<Self, Error> {
        let text = text.trim();
        match read(text) {
            Some(url) if is_of_proxy(&url) && !is_without_slashes(text) => Ok(Self { url, setting }),
            // The address may hold a password and is not shown.
            _ => Err(Error::config(
                setting,
                "must be the URL of a proxy for HTTP, not SOCKS, its host name in ASCII, such as \
                 http://proxy.example.com:3128",
            )),
        }
    }

    /// The proxy that the environment sets for an `https` service, if any.
    pub(super) fn of_environment() -> Result<Option<Self>, Error> {
        for name in VARIABLES {
            if let Some(address) = variable(name)? {
                return Self::parse(name, &address).map(Some);
            }
        }
        Ok(None)
    }

    /// Restores the user name and password of an address that was pickled without them, from a variable of the
    /// environment that names the same proxy.
    pub fn with_credentials_of_environment(address: &str) -> Result<String, Error> {
        let bare = Self::parse("proxy", address)?;
        let mut proxies = VARIABLES.into_iter().filter_map(|name| Self::parse(name, &variable(name).ok()??).ok());
        let found = proxies.find(|found| found.has_credentials() && found.address() == bare.address());
        found.map(|found| found.url.into()).ok_or_else(|| {
            let problem = format!(
                "({}) was pickled without its user name and password; set HTTPS_PROXY where the client is unpickled",
                bare.address()
            );
            Error::config("proxy", problem)
        })
    }

    /// The address without user name and password.
    pub fn address(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub fn has_credentials(&self) -> bool {
        !self.url.username().is_empty() || self.url.password().is_some()
    }

    /// Scheme, host and port.
    pub fn uri(&self) -> Result<Uri, http::uri::InvalidUri> {
        self.address().parse()
    }

    /// The address with user name and password.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Fails for a service that is reached without TLS: its requests must not leave the machine.
    pub fn check_origin(&self, origin: &Url) -> Result<(), Error> {
        if origin.scheme() == "https" {
            return Ok(());
        }
        let problem = Message::new("cannot be used with plain http, which must not leave this machine; omit it");
        Err(Error::config(self.setting, problem.hint(Hint::check(&["base_url"]))))
    }

    /// The value of `Proxy-Authorization`.
    pub fn authorization(&self) -> Option<String> {
        let user = percent_decode_str(self.url.username()).decode_utf8_lossy();
        let password = percent_decode_str(self.url.password().unwrap_or_default()).decode_utf8_lossy();
        self.has_credentials().then(|| format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
    }
}

fn read(text: &str) -> Option<Url> {
    if text.contains("://") { Url::parse(text).ok() } else { Url::parse(&format!("http://{text}")).ok() }
}

/// True for `https:user:password@host`: read as a host without a scheme, `https` would be the user, and the password sent
/// without the TLS that is meant.
fn is_without_slashes(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase()).unwrap_or_default();
    !text.contains("://") && text.contains('@') && SCHEMES.contains(&scheme.as_str())
}

fn is_of_proxy(url: &Url) -> bool {
    let is_origin = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty()) && is_origin
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.address())
    }
}

/// A variable of the environment, unless it is blank.
pub(super) fn variable(name: &'static str) -> Result<Option<String>, Error> {
    Ok(variables::read(name, name)?.filter(|value| !value.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_addresses_are_rejected() {
        for text in [
            "garbage::",
            "http://",
            "http//proxy.example.com:3128",
            "socks9://127.0.0.1:1",
            "proxy.example.com:99999",
            "http://proxy.example.com/path",
            "not a url",
            "",
            "https:someone:word@proxy.example.com:3128",
            "HTTPS:someone@proxy.example.com",
            "socks5:someone:word@proxy.example.com",
        ] {
            let error = Proxy::parse("HTTPS_PROXY", text).unwrap_err().to_string();
            assert!(error.starts_with("HTTPS_PROXY must be the URL of a proxy"), "{text}: {error}");
        }
        for text in [
            "proxy.example.com:3128",
            "http:3128",
            "someone:word@https:1",
            "http://proxy.example.com",
            "https://u:p@[::1]:1/",
        ] {
            assert!(Proxy::parse("proxy", text).is_ok(), "{text}");
        }
    }

    #[test]
    fn credentials_are_sent_and_not_shown() {
        let proxy = Proxy::parse("proxy", "http://someone:w%40rd@proxy.example.com:3128").unwrap();
        assert_eq!(proxy.address(), "http://proxy.example.com:3128");
        assert_eq!(format!("{proxy:?}"), "http://proxy.example.com:3128");
        assert_eq!(proxy.authorization().as_deref(), Some("Basic c29tZW9uZTp3QHJk"));
        assert_eq!(Proxy::parse("proxy", "proxy.example.com").unwrap().authorization(), None);
    }
}
