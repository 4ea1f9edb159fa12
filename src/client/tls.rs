//! TLS: the certificate authorities to trust are those of `ca_bundle`, of `REQUESTS_CA_BUNDLE`, or the platform's. (The
//! platform's verifier reads `SSL_CERT_FILE` itself.)

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::error::Error;
use super::settings::Settings;
use crate::files;

/// The variable of the `requests` library, whose users have it set already.
const VARIABLE: &str = "REQUESTS_CA_BUNDLE";

/// The configuration of connections to the service and to its proxy; `None` if the service is reached without TLS: the
/// platform's authorities take five milliseconds to read.
pub fn config(settings: &Settings) -> Result<Option<ClientConfig>, Error> {
    let bundle = bundle(settings)?;
    if settings.origin.scheme() == "http" {
        return Ok(None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| unusable(&error))?;
    let builder = match bundle {
        Some(authorities) => builder.with_root_certificates(authorities),
        None => {
            let verifier = Arc::new(Verifier::new(provider).map_err(|error| unusable(&error))?);
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
    };
    Ok(Some(builder.with_no_client_auth()))
}

fn unusable(error: &rustls::Error) -> Error {
    Error::config("ca_bundle", format!("cannot be used for TLS: {error}"))
}

/// The bundle that replaces the platform's authorities, if one is set.
fn bundle(settings: &Settings) -> Result<Option<RootCertStore>, Error> {
    if let Some(path) = &settings.ca_bundle {
        return read("ca_bundle", path).map(Some);
    }
    // The environment's bundle says nothing about a service on loopback.
    let variable = std::env::var_os(VARIABLE).filter(|path| !path.is_empty() && settings.origin.scheme() == "https");
    variable.map(|path| read(VARIABLE, &PathBuf::from(path))).transpose()
}

/// The certificates of a PEM file, or of all PEM files of a directory.
fn read(setting: &'static str, path: &Path) -> Result<RootCertStore, Error> {
    authorities(path).map_err(|problem| Error::config(setting, format!("({}) {problem}", path.display())))
}

fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let certificates = certificates(path).map_err(|error| format!("cannot be read: {error}"))?;
    if certificates.is_empty() {
        return Err("must contain at least one PEM certificate".into());
    }
    let mut authorities = RootCertStore::empty();
    for certificate in certificates {
        authorities.add(certificate).map_err(|error| format!("cannot be used for TLS: {error}"))?;
    }
    Ok(authorities)
}

fn certificates(path: &Path) -> std::io::Result<Vec<CertificateDer<'static>>> {
    if !path.is_dir() {
        return Ok(parse(&files::read(path)?));
    }
    let mut certificates = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        // A directory of certificates holds revocation lists and links as well. A pipe would be waited for.
        if path.is_file() {
            certificates.extend(parse(&files::read(&path).unwrap_or_default()));
        }
    }
    Ok(certificates)
}

/// The certificates of a PEM text; none if a part of it cannot be read.
fn parse(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().unwrap_or_default()
}
