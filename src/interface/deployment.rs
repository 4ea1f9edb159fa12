//! Differences between deployments of the API: header prefix, names of the two chains in paths and members, the string
//! to sign and its encoding, the result windows and the largest page.

use super::endpoint::{Endpoint, ResultLimit};
use super::result_window::{LOG_WINDOW, RESULT_WINDOW};

/// Settings of one deployment of the API.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deployment {
    header_prefix: String,
    main: String,
    zone: String,
    prehash: String,
    signature_encoding: SignatureEncoding,
    result_window: u64,
    log_window: u64,
    /// Largest page of every list, in place of the declared ones.
    max_page_size: Option<u32>,
    /// False if the deployment wants a key and nothing else.
    signed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureEncoding {
    Base64,
    Hex,
}

impl SignatureEncoding {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Base64 => "base64",
            Self::Hex => "hex",
        }
    }
}

/// An invalid setting of a deployment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {problem}")]
pub struct DeploymentError {
    pub setting: &'static str,
    pub problem: String,
}

/// Records of a page that fits into memory, whatever the service.
const MAX_PAGE_SIZE: u32 = 1_000_000;

const PLACEHOLDERS: [&str; 4] = ["timestamp", "method", "target", "body"];

impl Default for Deployment {
    fn default() -> Self {
        Self {
            header_prefix: "SVC".into(),
            main: "main".into(),
            zone: "zone".into(),
            prehash: "{timestamp}{method}{target}{body}".into(),
            signature_encoding: SignatureEncoding::Base64,
            result_window: RESULT_WINDOW,
            log_window: LOG_WINDOW,
            max_page_size: None,
            signed: true,
        }
    }
}

impl Deployment {
    /// Checks every name, since they become parts of header names, paths and signatures.
    pub fn new(
        header_prefix: &str,
        main: &str,
        zone: &str,
        prehash: &str,
        signature_encoding: &str,
    ) -> Result<Self, DeploymentError> {
        check_name("header_prefix", header_prefix)?;
        check_name("main", main)?;
        check_name("zone", zone)?;
        check_prehash(prehash)?;
        let signature_encoding = match signature_encoding {
            "base64" => SignatureEncoding::Base64,
            "hex" => SignatureEncoding::Hex,
            other => {
                return Err(DeploymentError {
                    setting: "signature_encoding",
                    problem: format!("must be \"base64\" or \"hex\"; got {other:?}"),
                });
            }
        };
        Ok(Self {
            header_prefix: header_prefix.into(),
            main: main.into(),
            zone: zone.into(),
            prehash: prehash.into(),
            signature_encoding,
            ..Self::default()
        })
    }

    /// Sets the result windows, each of at least one record.
    pub fn with_windows(self, result_window: u64, log_window: u64) -> Result<Self, DeploymentError> {
        for (setting, window) in [("result_window", result_window), ("log_window", log_window)] {
            if window == 0 {
                return Err(DeploymentError { setting, problem: "must be at least 1; got 0".into() });
            }
        }
        Ok(Self { result_window, log_window, ..self })
    }

    /// Sets the largest page of every list; `None` keeps the declared ones.
    pub fn with_max_page_size(self, max_page_size: Option<u32>) -> Result<Self, DeploymentError> {
        if let Some(size) = max_page_size.filter(|size| !(1..=MAX_PAGE_SIZE).contains(size)) {
            let problem = format!("must be between 1 and {MAX_PAGE_SIZE}; got {size}");
            return Err(DeploymentError { setting: "max_page_size", problem });
        }
        Ok(Self { max_page_size, ..self })
    }

    /// Sets whether requests are signed.
    #[must_use]
    pub fn with_signed(self, signed: bool) -> Self {
        Self { signed, ..self }
    }

    pub fn max_page_size(&self) -> Option<u32> {
        self.max_page_size
    }

    pub fn signed(&self) -> bool {
        self.signed
    }

    /// Largest page of a list; `None` for look-ups, which have no pages.
    pub fn page_size_max(&self, endpoint: &Endpoint) -> Option<u32> {
        endpoint.page_size_max().map(|declared| self.max_page_size.unwrap_or(declared))
    }

    pub fn header_prefix(&self) -> &str {
        &self.header_prefix
    }

    pub fn main(&self) -> &str {
        &self.main
    }

    pub fn zone(&self) -> &str {
        &self.zone
    }

    pub fn prehash_template(&self) -> &str {
        &self.prehash
    }

    pub fn signature_encoding(&self) -> SignatureEncoding {
        self.signature_encoding
    }

    /// Most records of a main-chain list that can be paged through.
    pub fn result_window(&self) -> u64 {
        self.result_window
    }

    /// Most logs of one transaction that the API returns.
    pub fn log_window(&self) -> u64 {
        self.log_window
    }

    /// Most records that the API returns of one list or lookup, or `None` if it sets no limit.
    pub fn max_results(&self, limit: ResultLimit) -> Option<u64> {
        match limit {
            ResultLimit::Unlimited => None,
            ResultLimit::Window | ResultLimit::LastYear => Some(self.result_window),
            ResultLimit::Logs => Some(self.log_window),
        }
    }

    /// The four header names: key, signature, passphrase, timestamp.
    pub fn header(&self, what: &str) -> String {
        format!("{}-ACCESS-{what}", self.header_prefix)
    }

    /// A declared path or member name with this deployment's chain names filled in.
    pub fn expand(&self, declared: &str) -> String {
        declared.replace("{main}", &self.main).replace("{zone}", &self.zone)
    }

    /// The string to sign.
    pub fn prehash(&self, timestamp: &str, method: &str, target: &str, body: &str) -> String {
        let mut text = String::with_capacity(timestamp.len() + method.len() + target.len() + body.len());
        let mut rest = self.prehash.as_str();
        // Substituted from left to right, so that braces in a target are never taken for a placeholder.
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            text.push_str(match name {
                "timestamp" => timestamp,
                "method" => method,
                "target" => target,
                _ => body,
            });
            rest = after;
        }
        text.push_str(rest);
        text
    }

    /// The neutral name of a direction, whatever the deployment's chain names and their case; other strings are kept.
    pub fn direction<'a>(&self, wire: &'a str) -> &'a str {
        if is_direction(wire, &self.main, &self.zone) {
            "MainToZone"
        } else if is_direction(wire, &self.zone, &self.main) {
            "ZoneToMain"
        } else {
            wire
        }
    }
}

/// True if the text is `{from}To{to}` in any case.
fn is_direction(text: &str, from: &str, to: &str) -> bool {
    let Some((start, rest)) = text.split_at_checked(from.len()) else { return false };
    let Some((middle, end)) = rest.split_at_checked(2) else { return false };
    start.eq_ignore_ascii_case(from) && middle.eq_ignore_ascii_case("to") && end.eq_ignore_ascii_case(to)
}

fn check_name(setting: &'static str, text: &str) -> Result<(), DeploymentError> {
    let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_name && (1..=64).contains(&text.len()) {
        return Ok(());
    }
    Err(DeploymentError {
        setting,
        problem: format!("must be 1 to 64 ASCII letters, digits, '-' and '_'; got {text:?}"),
    })
}

fn check_prehash(template: &str) -> Result<(), DeploymentError> {
    let mut rest = template;
    while let Some((_, after)) = rest.split_once('{') {
        let problem = match after.split_once('}') {
            Some((name, after)) if PLACEHOLDERS.contains(&name) => {
                rest = after;
                continue;
            }
            Some((name, _)) => {
                format!("must contain only {{timestamp}}, {{method}}, {{target}} and {{body}}; got {{{name}}}")
            }
            None => format!("must close every '{{' with '}}'; got {template:?}"),
        };
        return Err(DeploymentError { setting: "prehash", problem });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::endpoint;
    use super::*;

    fn alpha() -> Deployment {
        Deployment::new("XY", "alpha", "beta", "{method}|{timestamp}|{target}{body}", "hex").unwrap()
    }

    #[test]
    fn chain_names_replace_the_placeholders() {
        assert_eq!(alpha().expand("/api/v5/{main}/{zone}/block/block-list"), "/api/v5/alpha/beta/block/block-list");
        assert_eq!(alpha().expand("{zone}TxHash"), "betaTxHash");
        assert_eq!(alpha().header("SIGN"), "XY-ACCESS-SIGN");
    }

    #[test]
    fn directions_compare_without_case() {
        assert_eq!(alpha().direction("AlphaToBETA"), "MainToZone");
        assert_eq!(alpha().direction("BETAToAlpha"), "ZoneToMain");
        assert_eq!(alpha().direction("MainToZone"), "MainToZone");
        assert_eq!(alpha().direction("Sideways"), "Sideways");
        assert_eq!(alpha().direction("alphéToBeta"), "alphéToBeta");
    }

    #[test]
    fn prehash_follows_the_template_and_leaves_braces_of_the_target() {
        assert_eq!(alpha().prehash("T", "GET", "/x?a={body}", ""), "GET|T|/x?a={body}");
        assert_eq!(Deployment::default().prehash("T", "GET", "/x", "B"), "TGET/xB");
    }

    #[test]
    fn windows_limit_the_lists_that_have_one() {
        let windows = [ResultLimit::Unlimited, ResultLimit::Window, ResultLimit::LastYear, ResultLimit::Logs];
        let limits = |deployment: &Deployment| windows.map(|limit| deployment.max_results(limit));
        assert_eq!(limits(&Deployment::default()), [None, Some(10_000), Some(10_000), Some(1_000)]);
        let narrow = alpha().with_windows(100, 7).unwrap();
        assert_eq!(limits(&narrow), [None, Some(100), Some(100), Some(7)]);
        assert_eq!(alpha().with_windows(0, 7).unwrap_err().setting, "result_window");
        assert_eq!(alpha().with_windows(7, 0).unwrap_err().setting, "log_window");
    }

    #[test]
    fn largest_page_is_the_deployments_or_the_declared_one() {
        let sizes = |deployment: &Deployment| {
            ["transactions", "blocks", "logs"].map(|name| deployment.page_size_max(endpoint(name).unwrap()))
        };
        assert_eq!(sizes(&alpha()), [Some(50), Some(100), None]);
        assert_eq!(sizes(&alpha().with_max_page_size(Some(70)).unwrap()), [Some(70), Some(70), None]);
        assert_eq!(alpha().with_max_page_size(Some(0)).unwrap_err().setting, "max_page_size");
    }

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        let rejected = |prefix, main, prehash, encoding| {
            Deployment::new(prefix, main, "zone", prehash, encoding).unwrap_err().setting
        };
        let prehash = "{timestamp}{target}";
        assert_eq!(rejected("X Y", "main", prehash, "hex"), "header_prefix");
        assert_eq!(rejected("X", "a/b", prehash, "hex"), "main");
        assert_eq!(rejected("X", "main", "{timestamp}{path}", "hex"), "prehash");
        assert_eq!(rejected("X", "main", "{timestamp", "hex"), "prehash");
        assert_eq!(rejected("X", "main", prehash, "base32"), "signature_encoding");
    }
}
