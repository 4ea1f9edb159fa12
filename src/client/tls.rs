//! The certificate authorities to trust: those of `ca_bundle`, of `REQUESTS_CA_BUNDLE`, or the platform's. (The platform's
//! verifier reads `SSL_CERT_FILE` itself.)

use std::path::{Path, PathBuf};

use reqwest::Certificate;

use super::error::Error;
use super::settings::Settings;

/// The variable of the `requests` library, whose users have it set already.
const VARIABLE: &str = "REQUESTS_CA_BUNDLE";

/// Reads the bundle that replaces the platform's authorities, if one is set. Without TLS no authorities are needed: the
/// platform's take five milliseconds to read.
pub fn certificates(settings: &Settings, is_plain: bool) -> Result<Option<Vec<Certificate>>, Error> {
    if let Some(path) = &settings.ca_bundle {
        return read("ca_bundle", path).map(Some);
    }
    if is_plain {
        return Ok(Some(Vec::new()));
    }
    // The environment's bundle says nothing about a service on loopback.
    let variable = std::env::var_os(VARIABLE).filter(|path| !path.is_empty() && settings.origin.scheme() == "https");
    variable.map(|path| read(VARIABLE, &PathBuf::from(path))).transpose()
}

/// The certificates of a PEM file, or of all PEM files of a directory.
fn read(setting: &'static str, path: &Path) -> Result<Vec<Certificate>, Error> {
    let invalid = |problem: String| Error::config(setting, format!("({}) {problem}", path.display()));
    let failed = |error: std::io::Error| invalid(format!("cannot be read: {error}"));
    let mut certificates = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            // A directory of certificates holds revocation lists and links as well.
            let pem = std::fs::read(&file).unwrap_or_default();
            certificates.extend(Certificate::from_pem_bundle(&pem).unwrap_or_default());
        }
    } else {
        let pem = std::fs::read(path).map_err(failed)?;
        certificates = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    }
    if certificates.is_empty() {
        Err(invalid("must contain at least one PEM certificate".into()))
    } else {
        Ok(certificates)
    }
}
