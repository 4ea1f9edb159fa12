//! Authentication of a request: key, passphrase, timestamp and signature, in the order of the API's errors.

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, NaiveDateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::error_response::ErrorResponse;
use super::settings::Settings;
use crate::interface::SignatureEncoding;

const TOLERANCE_MS: i64 = 30_000;

/// `target` is the request's, byte for byte as it came.
pub fn check(
    headers: &HeaderMap,
    method: &str,
    target: &str,
    now: DateTime<Utc>,
    settings: &Settings,
) -> Result<(), ErrorResponse> {
    let key = header(headers, &settings.deployment.header("KEY"), "50103")?;
    if !settings.deployment.signed() {
        return if key == settings.credentials.api_key { Ok(()) } else { Err(invalid_key()) };
    }
    let passphrase = header(headers, &settings.deployment.header("PASSPHRASE"), "50104")?;
    let signature = header(headers, &settings.deployment.header("SIGN"), "50106")?;
    let timestamp = header(headers, &settings.deployment.header("TIMESTAMP"), "50107")?;

    let time = read_time(timestamp).ok_or_else(|| ErrorResponse::new("50112", "Invalid timestamp"))?;
    if (now - time).num_milliseconds().abs() > TOLERANCE_MS {
        return Err(ErrorResponse::new("50102", "Timestamp request expired"));
    }
    if key != settings.credentials.api_key {
        return Err(invalid_key());
    }
    if passphrase != settings.credentials.passphrase {
        return Err(ErrorResponse::new("50105", "Incorrect passphrase"));
    }
    let prehash = settings.deployment.prehash(timestamp, method, target, "");
    if verify(&settings.credentials.secret_key, &prehash, signature, settings.deployment.signature_encoding()) {
        Ok(())
    } else {
        Err(ErrorResponse::new("50113", "Invalid signature"))
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str, code: &'static str) -> Result<&'h str, ErrorResponse> {
    let text = headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
    text.ok_or_else(|| ErrorResponse::new(code, format!("Header {name} can not be empty")))
}

fn invalid_key() -> ErrorResponse {
    ErrorResponse::new("50111", "Invalid key")
}

/// ISO 8601 in UTC. The API documents milliseconds and `Z`; deployed services take whole seconds, microseconds and
/// `+00:00` as well.
fn read_time(text: &str) -> Option<DateTime<Utc>> {
    let local = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?;
    let seconds = "2026-01-31T09:08:57".len();
    let is_known = [0, ".715".len(), ".715000".len()].contains(&local.len().checked_sub(seconds)?);
    let time = NaiveDateTime::parse_from_str(local, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    if is_known { Some(time.and_utc()) } else { None }
}

fn verify(secret: &str, message: &str, signature: &str, encoding: SignatureEncoding) -> bool {
    let tag = match encoding {
        SignatureEncoding::Base64 => STANDARD.decode(signature).ok(),
        SignatureEncoding::Hex => hex(signature),
    };
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok().map(|mac| mac.chain_update(message));
    // The comparison takes the same time wherever the two differ.
    mac.zip(tag).is_some_and(|(mac, tag)| mac.verify_slice(&tag).is_ok())
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Deployment;
    use crate::service::Credentials;

    const TARGET: &str = "/api/v5/main/token/token-list?chainShortName=MAIN&limit=50&page=1";
    const TIME: &str = "2026-01-31T09:08:57.715Z";
    const SIGNATURE: &str = "ZpvBqVUogWHz1JYrxIkDnYvuADwoLgixTVVRgVU++V4=";

    fn settings() -> Settings {
        let credentials = Credentials { api_key: "K3Y".into(), secret_key: "S3CR3T".into(), passphrase: "P4SS".into() };
        Settings { credentials, ..Settings::default() }
    }

    fn code(change: impl Fn(&mut HeaderMap), method: &str, target: &str, late_ms: i64) -> &'static str {
        let mut headers = HeaderMap::new();
        for (name, value) in [("key", "K3Y"), ("passphrase", "P4SS"), ("sign", SIGNATURE), ("timestamp", TIME)] {
            headers.insert(
                axum::http::HeaderName::try_from(format!("svc-access-{name}")).unwrap(),
                axum::http::HeaderValue::from_static(value),
            );
        }
        change(&mut headers);
        let now = read_time(TIME).unwrap() + chrono::TimeDelta::milliseconds(late_ms);
        match check(&headers, method, target, now, &settings()) {
            Ok(()) => "0",
            Err(error_response) => {
                assert_eq!(error_response.status, 401);
                error_response.code
            }
        }
    }

    fn with(name: &'static str, value: &'static str) -> impl Fn(&mut HeaderMap) {
        move |headers| {
            headers.insert(name, axum::http::HeaderValue::from_static(value));
        }
    }

    #[test]
    fn known_signature_is_accepted_for_its_target_only() {
        assert_eq!(code(|_| {}, "GET", TARGET, 0), "0");
        assert_eq!(code(|_| {}, "POST", TARGET, 0), "50113");
        assert_eq!(code(|_| {}, "GET", &TARGET.replace("&page=1", "&page=%31"), 0), "50113");
    }

    #[test]
    fn each_missing_header_has_its_code() {
        for (name, expected) in [("key", "50103"), ("passphrase", "50104"), ("sign", "50106"), ("timestamp", "50107")] {
            let name = format!("svc-access-{name}");
            assert_eq!(code(|headers| drop(headers.remove(&name)), "GET", TARGET, 0), expected);
        }
        assert_eq!(code(with("svc-access-key", ""), "GET", TARGET, 0), "50103");
    }

    #[test]
    fn each_wrong_header_has_its_code() {
        assert_eq!(code(with("svc-access-key", "k3y"), "GET", TARGET, 0), "50111");
        assert_eq!(code(with("svc-access-passphrase", "p4ss"), "GET", TARGET, 0), "50105");
        for signature in ["ZpvBqVUogWHz1JYrxIkDnYvuADwoLgixTVVRgVU++V8=", "not base64", "ZpvB"] {
            assert_eq!(code(with("svc-access-sign", signature), "GET", TARGET, 0), "50113");
        }
        for time in ["1769850537", "2026-01-31T09:08:57.7Z", "2026-01-31T09:08:57.715", "2026-01-31 09:08:57.715Z"] {
            assert_eq!(code(with("svc-access-timestamp", time), "GET", TARGET, 0), "50112", "{time}");
        }
    }

    #[test]
    fn timestamps_may_differ_by_thirty_seconds() {
        for (late, expected) in [(30_000, "0"), (-30_000, "0"), (30_001, "50102"), (-30_001, "50102")] {
            assert_eq!(code(|_| {}, "GET", TARGET, late), expected, "{late}");
        }
    }

    #[test]
    fn spellings_of_a_time_in_utc_are_accepted() {
        for time in ["2026-01-31T09:08:57Z", "2026-01-31T09:08:57+00:00", "2026-01-31T09:08:57.715Z"] {
            assert!(read_time(time).is_some(), "{time}");
        }
        assert_eq!(read_time("2026-01-31T09:08:57.715000+00:00"), read_time(TIME));
        for time in ["2026-01-31T10:08:57+01:00", "2026-01-31T09:08:57.71500Z", "2026-01-31T9:08:57.715Z", "Z"] {
            assert_eq!(read_time(time), None, "{time}");
        }
    }

    #[test]
    fn deployment_without_signatures_checks_the_key_alone() {
        let settings = Settings { deployment: settings().deployment.with_signed(false), ..settings() };
        let mut headers = HeaderMap::new();
        let mut code = |key: &'static str| {
            headers.insert("svc-access-key", axum::http::HeaderValue::from_static(key));
            check(&headers, "GET", TARGET, DateTime::UNIX_EPOCH, &settings).map_err(|error| error.code)
        };
        assert_eq!((code("K3Y"), code("k3y"), code("")), (Ok(()), Err("50111"), Err("50103")));
    }

    #[test]
    fn deployment_selects_encoding_and_prehash() {
        let deployment = Deployment::new("XY", "alpha", "beta", "{method}{target}{timestamp}", "hex").unwrap();
        let settings = Settings { deployment, ..settings() };
        let prehash = format!("GET{TARGET}{TIME}");
        let tag = Hmac::<Sha256>::new_from_slice(b"S3CR3T").unwrap().chain_update(prehash).finalize().into_bytes();
        let signature: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in [("key", "K3Y"), ("passphrase", "P4SS"), ("sign", &*signature), ("timestamp", TIME)] {
            let name = axum::http::HeaderName::try_from(format!("xy-access-{name}")).unwrap();
            headers.insert(name, value.parse().unwrap());
        }
        let now = read_time(TIME).unwrap();
        assert_eq!(check(&headers, "GET", TARGET, now, &settings), Ok(()));
        headers.insert("xy-access-sign", signature[1..].parse().unwrap());
        assert_eq!(check(&headers, "GET", TARGET, now, &settings).unwrap_err().code, "50113");
    }
}
