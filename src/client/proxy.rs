//! Proxies: the `proxy` setting, and the variables of the environment, which are checked as strictly. A proxy that is
//! mistyped must not be bypassed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Uri;
use percent_encoding::percent_decode_str;
use url::Url;

use super::error::Error;
use super::settings::Settings;
use super::variables;
use crate::message::{Hint, Message};

/// The way of a client's connections.
pub enum Route {
    Proxy(Proxy),
    /// To the service itself, and why.
    Direct {
        reason: &'static str,
    },
}

impl Route {
    pub fn of(settings: &Settings) -> Result<Self, Error> {
        if let Some(proxy) = &settings.proxy {
            return Ok(Self::Proxy(proxy.clone()));
        }
        // A proxy of the environment is not on loopback: plain http would leave the machine.
        if settings.is_loopback {
            return Ok(Self::Direct { reason: "base_url is a loopback address" });
        }
        let proxy = Proxy::of_environment()?;
        if is_exempt(&settings.origin)? {
            return Ok(Self::Direct { reason: "NO_PROXY includes the host" });
        }
        let direct = Self::Direct { reason: "none in the environment" };
        Ok(proxy.or_else(|| of_system(&settings.origin)).map_or(direct, Self::Proxy))
    }
}

/// The address of a proxy, and the setting or variable that it came from.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    url: Url,
    pub setting: &'static str,
}

/// Variables for `https` URLs, in the order in which they are read.
const VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

impl Proxy {
    /// Reads an address such as `http://user:password@proxy.example.com:3128`; a missing scheme is `http`.
    pub fn parse(setting: &'static str, text: &str) -> Result<Self, Error> {
        // The address may hold a password and is not shown.
        let invalid = || Error::config(setting, "must be the URL of a proxy, such as http://proxy.example.com:3128");
        let text = text.trim();
        let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("http://{text}")) };
        let url = url.map_err(|_| invalid())?;
        let is_origin = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) || !is_origin {
            return Err(invalid());
        }
        Ok(Self { url, setting })
    }

    /// The proxy that the environment sets for an `https` service, if any.
    fn of_environment() -> Result<Option<Self>, Error> {
        for name in VARIABLES {
            if let Some(address) = set(name)? {
                return Self::parse(name, &address).map(Some);
            }
        }
        Ok(None)
    }

    /// Restores the user name and password of an address that was pickled without them, from a variable of the
    /// environment that names the same proxy.
    pub fn with_credentials_of_environment(address: &str) -> Result<String, Error> {
        let bare = Self::parse("proxy", address)?;
        let of_variable = |name: &'static str| Self::parse(name, &set(name).ok()??).ok();
        let same = |found: &Self| found.has_credentials() && found.address() == bare.address();
        let found = VARIABLES.into_iter().filter_map(of_variable).find(same);
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
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let pair = format!("{}:{}", decoded(self.url.username()), decoded(self.url.password().unwrap_or_default()));
        self.has_credentials().then(|| format!("Basic {}", STANDARD.encode(pair)))
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.address())
    }
}

/// The proxy of the system's settings, on systems that have such.
#[cfg(any(target_os = "macos", windows))]
fn of_system(origin: &Url) -> Option<Proxy> {
    let origin: Uri = origin.as_str().parse().ok()?;
    let found = hyper_util::client::proxy::matcher::Matcher::from_system().intercept(&origin)?;
    Proxy::parse("proxy", &found.uri().to_string()).ok()
}

#[cfg(not(any(target_os = "macos", windows)))]
const fn of_system(_: &Url) -> Option<Proxy> {
    None
}

fn set(name: &'static str) -> Result<Option<String>, Error> {
    Ok(variables::read(name, name)?.filter(|value| !value.trim().is_empty()))
}

/// True if `NO_PROXY` exempts the host.
fn is_exempt(url: &Url) -> Result<bool, Error> {
    let list = match set("NO_PROXY")? {
        Some(list) => Some(list),
        None => set("no_proxy")?,
    };
    Ok(matches_no_proxy(&list.unwrap_or_default(), url))
}

/// Entries are `*`, a domain with its subdomains, an address or a network such as `10.0.0.0/8`, each with an optional port.
fn matches_no_proxy(list: &str, url: &Url) -> bool {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        let (name, wanted) = match entry.rsplit_once(':') {
            // An IPv6 address has its colons within brackets if a port follows.
            Some((name, digits)) if !name.contains(':') || name.ends_with(']') => (name, digits.parse().ok()),
            _ => (entry, None),
        };
        wanted.is_none_or(|wanted: u16| Some(wanted) == port) && matches_host(name, host)
    })
}

fn matches_host(entry: &str, host: &str) -> bool {
    let (entry, host) = (entry.trim_matches(['[', ']']), host.trim_matches(['[', ']']));
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/') {
        return is_within(network, bits, host).unwrap_or(false);
    }
    let domain = entry.trim_start_matches('*').trim_start_matches('.').to_ascii_lowercase();
    let host = host.to_ascii_lowercase();
    host == domain || host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
}

fn is_within(network: &str, bits: &str, host: &str) -> Option<bool> {
    use std::net::IpAddr::{self, V4, V6};
    let bits: u32 = bits.parse().ok()?;
    Some(match (network.parse::<IpAddr>().ok()?, host.parse::<IpAddr>().ok()?) {
        (V4(network), V4(host)) if bits <= 32 => (u32::from(network) ^ u32::from(host)).leading_zeros() >= bits,
        (V6(network), V6(host)) if bits <= 128 => (u128::from(network) ^ u128::from(host)).leading_zeros() >= bits,
        _ => false,
    })
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
        ] {
            let error = Proxy::parse("HTTPS_PROXY", text).unwrap_err().to_string();
            assert!(error.starts_with("HTTPS_PROXY must be the URL of a proxy"), "{text}: {error}");
        }
        for text in ["proxy.example.com:3128", "http://proxy.example.com", "https://u:p@[::1]:1/"] {
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

    #[test]
    fn no_proxy_matches_hosts_networks_and_ports() {
        let url = |text| Url::parse(text).unwrap();
        let (host, address) = (url("https://data.example.com"), url("https://10.1.2.3:8443"));
        for list in
            ["*", "example.com", ".example.com", "a.b, DATA.example.com", "data.example.com:443", "*.example.com"]
        {
            assert!(matches_no_proxy(list, &host), "{list}");
        }
        for list in ["", "ample.com", "data.example.com:8443", "other.example.com", "10.0.0.0/8"] {
            assert!(!matches_no_proxy(list, &host), "{list}");
        }
        for (list, exempt) in
            [("10.0.0.0/8", true), ("10.1.2.3", true), ("10.1.2.3:8443", true), ("10.1.2.4/31", false)]
        {
            assert_eq!(matches_no_proxy(list, &address), exempt, "{list}");
        }
        assert!(matches_no_proxy("[::1]:8443, fe80::/10", &url("https://[fe80::2]")));
    }
}
