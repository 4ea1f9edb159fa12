//! `Route`: the way of a client's connections, to the service itself or through a proxy.

use url::Url;

use super::error::Error;
use super::proxy::{Proxy, variable};
use super::settings::Settings;

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
        // A proxy that is not used may be of any kind.
        if is_exempt(&settings.origin)? {
            return Ok(Self::Direct { reason: "NO_PROXY includes the host" });
        }
        let proxy = Proxy::of_environment()?;
        let direct = Self::Direct { reason: "none in the environment" };
        Ok(proxy.or_else(|| of_system(&settings.origin)).map_or(direct, Self::Proxy))
    }
}

/// The proxy of the system's settings, on systems that have such.
#[cfg(any(target_os = "macos", windows))]
fn of_system(origin: &Url) -> Option<Proxy> {
    let origin: http::Uri = origin.as_str().parse().ok()?;
    let found = hyper_util::client::proxy::matcher::Matcher::from_system().intercept(&origin)?;
    Proxy::parse("proxy", &found.uri().to_string()).ok()
}

#[cfg(not(any(target_os = "macos", windows)))]
const fn of_system(_: &Url) -> Option<Proxy> {
    None
}

/// True if `NO_PROXY` exempts the host.
fn is_exempt(url: &Url) -> Result<bool, Error> {
    let list = match variable("NO_PROXY")? {
        Some(list) => Some(list),
        None => variable("no_proxy")?,
    };
    Ok(matches_no_proxy(&list.unwrap_or_default(), url))
}

/// Entries are `*`, a domain with its subdomains, an address or a network such as `10.0.0.0/8`, each with an optional port.
fn matches_no_proxy(list: &str, url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default();
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
    let entry = entry.trim_matches(['[', ']']);
    let host = host.trim_matches(['[', ']']);
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
