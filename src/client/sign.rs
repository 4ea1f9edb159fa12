//! The target of a request and its signature. What is signed is sent byte for byte.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, SecondsFormat, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

use super::credentials::Secret;
use crate::interface::{Deployment, SignatureEncoding};

/// All but RFC 3986's unreserved characters, so that no layer below encodes anything.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Path and query. `path` is used as it is.
pub fn target<'a>(path: &str, params: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut target = String::with_capacity(160);
    target.push_str(path);
    for (index, (name, value)) in params.into_iter().enumerate() {
        target.push(if index == 0 { '?' } else { '&' });
        target.extend(utf8_percent_encode(name, ENCODED));
        target.push('=');
        target.extend(utf8_percent_encode(value, ENCODED));
    }
    target
}

/// A time in the format of the header and the signature.
pub fn timestamp(now: DateTime<Utc>) -> String {
    now.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Signs a GET without a body.
pub fn signature(deployment: &Deployment, secret: &Secret, timestamp: &str, target: &str) -> String {
    let prehash = deployment.prehash(timestamp, "GET", target, "");
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).expect("HMAC takes keys of any length");
    mac.update(prehash.as_bytes());
    let digest = mac.finalize().into_bytes();
    match deployment.signature_encoding() {
        SignatureEncoding::Base64 => STANDARD.encode(digest),
        SignatureEncoding::Hex => digest.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_signature_is_reproduced() {
        let path = "/api/v5/main/token/token-list";
        let target = target(path, [("chainShortName", "MAIN"), ("limit", "50"), ("page", "1")]);
        assert_eq!(target, "/api/v5/main/token/token-list?chainShortName=MAIN&limit=50&page=1");
        let secret = Secret::new("S3CR3T".into());
        let signed = signature(&Deployment::default(), &secret, "2026-01-31T09:08:57.715Z", &target);
        assert_eq!(signed, "ZpvBqVUogWHz1JYrxIkDnYvuADwoLgixTVVRgVU++V4=");
    }

    #[test]
    fn hex_is_the_same_digest() {
        let deployment = Deployment::new("SVC", "main", "zone", "{timestamp}{method}{target}{body}", "hex").unwrap();
        let secret = Secret::new("S3CR3T".into());
        let target = "/api/v5/main/token/token-list?chainShortName=MAIN&limit=50&page=1";
        let signed = signature(&deployment, &secret, "2026-01-31T09:08:57.715Z", target);
        assert_eq!(signed, "669bc1a955288161f3d4962bc489039d8bee003c282e08b14d555181553ef95e");
    }

    #[test]
    fn target_is_fully_encoded() {
        let target = target("/p", [("a b", "x&y+z%,é~-._")]);
        assert_eq!(target, "/p?a%20b=x%26y%2Bz%25%2C%C3%A9~-._");
    }

    #[test]
    fn timestamps_have_milliseconds() {
        let time = DateTime::from_timestamp_millis(1_769_850_537_000).unwrap();
        assert_eq!(timestamp(time), "2026-01-31T09:08:57.000Z");
    }
}
