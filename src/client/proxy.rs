//! Proxies: the `proxy` setting, and the variables of the environment, which are checked as strictly. A proxy that is
//! mistyped must not be bypassed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;
use url::Url;

use super::error::Error;

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
    pub fn of_environment() -> Result<Option<Self>, Error> {
        let found = VARIABLES.into_iter().find_map(|name| Some((name, set(name)?)));
        found.map(|(name, address)| Self::parse(name, &address)).transpose()
    }

    /// Restores the user name and password of an address that was pickled without them, from a variable of the
    /// environment that names the same proxy.
    pub fn with_credentials_of_environment(address: &str) -> Result<String, Error> {
        let bare = Self::parse("proxy", address)?;
        let same = |name: &'static str| Self::parse(name, &set(name)?).ok().filter(|found| found.has_credentials());
        let found = VARIABLES.into_iter().filter_map(same).find(|found| found.address() == bare.address());
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

    pub fn host_and_port(&self) -> (&str, u16) {
        (self.url.host_str().unwrap_or_default(), self.url.port_or_known_default().unwrap_or(80))
    }

    pub fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// The value of `Proxy-Authorization`.
    pub fn authorization(&self) -> Option<String> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let pair = format!("{}:{}", decoded(self.url.username()), decoded(self.url.password().unwrap_or_default()));
        self.has_credentials().then(|| format!("Basic {}", STANDARD.encode(pair)))
    }

    pub fn for_reqwest(&self) -> Result<reqwest::Proxy, Error> {
        reqwest::Proxy::all(self.url.clone()).map_err(|_| Error::config(self.setting, "must be the URL of a proxy"))
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.address())
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// True if `NO_PROXY` exempts the host.
pub fn is_exempt(url: &Url) -> bool {
    let list = set("NO_PROXY").or_else(|| set("no_proxy")).unwrap_or_default();
    matches_no_proxy(&list, url)
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
