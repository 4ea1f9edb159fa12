//! A deployment's own words: header prefix, the words for the two chains in paths and members, what is signed and how.

/// What varies between deployments of the same interface.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deployment {
    header_prefix: String,
    main: String,
    zone: String,
    prehash: String,
    signature_encoding: SignatureEncoding,
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

/// A word of a deployment that cannot be used, by the name of the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct DeploymentError {
    pub setting: &'static str,
    pub problem: String,
}

const PLACEHOLDERS: [&str; 4] = ["timestamp", "method", "target", "body"];

impl Default for Deployment {
    fn default() -> Self {
        Self {
            header_prefix: "SVC".into(),
            main: "main".into(),
            zone: "zone".into(),
            prehash: "{timestamp}{method}{target}{body}".into(),
            signature_encoding: SignatureEncoding::Base64,
        }
    }
}

impl Deployment {
    /// Checks every word, since they end up in header names, paths and signatures.
    pub fn new(
        header_prefix: &str,
        main: &str,
        zone: &str,
        prehash: &str,
        signature_encoding: &str,
    ) -> Result<Self, DeploymentError> {
        word("header_prefix", header_prefix)?;
        word("main", main)?;
        word("zone", zone)?;
        check_prehash(prehash)?;
        let signature_encoding = match signature_encoding {
            "base64" => SignatureEncoding::Base64,
            "hex" => SignatureEncoding::Hex,
            other => {
                return Err(DeploymentError {
                    setting: "signature_encoding",
                    problem: format!("{other:?} is neither \"base64\" nor \"hex\""),
                });
            }
        };
        Ok(Self {
            header_prefix: header_prefix.into(),
            main: main.into(),
            zone: zone.into(),
            prehash: prehash.into(),
            signature_encoding,
        })
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

    /// The four header names: key, signature, passphrase, timestamp.
    pub fn header(&self, what: &str) -> String {
        format!("{}-ACCESS-{what}", self.header_prefix)
    }

    /// A declared path or member name in this deployment's words.
    pub fn words(&self, declared: &str) -> String {
        declared.replace("{main}", &self.main).replace("{zone}", &self.zone)
    }

    /// The text that is signed.
    pub fn prehash(&self, timestamp: &str, method: &str, target: &str, body: &str) -> String {
        let mut text = String::with_capacity(timestamp.len() + method.len() + target.len() + body.len());
        let mut rest = self.prehash.as_str();
        // Substituted from left to right, so that braces inside a target are never taken for a placeholder.
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

    /// Our neutral name of a direction, whatever the deployment's words and their case; unknown text is kept.
    pub fn direction<'a>(&self, wire: &'a str) -> &'a str {
        let is = |from: &str, to: &str| {
            wire.len() == from.len() + 2 + to.len()
                && wire.is_char_boundary(from.len())
                && wire.is_char_boundary(from.len() + 2)
                && wire[..from.len()].eq_ignore_ascii_case(from)
                && wire[from.len()..from.len() + 2].eq_ignore_ascii_case("to")
                && wire[from.len() + 2..].eq_ignore_ascii_case(to)
        };
        if is(&self.main, &self.zone) {
            "MainToZone"
        } else if is(&self.zone, &self.main) {
            "ZoneToMain"
        } else {
            wire
        }
    }
}

fn word(setting: &'static str, text: &str) -> Result<(), DeploymentError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.len() <= 64 && text.chars().all(fits) {
        return Ok(());
    }
    Err(DeploymentError {
        setting,
        problem: format!("{text:?} is not a word of 1 to 64 ASCII letters, digits, '-' and '_'"),
    })
}

fn check_prehash(template: &str) -> Result<(), DeploymentError> {
    let problem = |problem: String| Err(DeploymentError { setting: "prehash", problem });
    let mut rest = template;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            return problem(format!("{template:?} has a '{{' without its '}}'"));
        };
        if !PLACEHOLDERS.contains(&name) {
            return problem(format!("{{{name}}} is unknown; use {{timestamp}}, {{method}}, {{target}} and {{body}}"));
        }
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alpha() -> Deployment {
        Deployment::new("XY", "alpha", "beta", "{method}|{timestamp}|{target}{body}", "hex").unwrap()
    }

    #[test]
    fn words_replace_the_neutral_ones() {
        assert_eq!(alpha().words("/api/v5/{main}/{zone}/block/block-list"), "/api/v5/alpha/beta/block/block-list");
        assert_eq!(alpha().words("{zone}TxHash"), "betaTxHash");
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
    fn unusable_words_are_refused_by_name() {
        let refused = |prefix, main, prehash, encoding| {
            Deployment::new(prefix, main, "zone", prehash, encoding).unwrap_err().setting
        };
        let prehash = "{timestamp}{target}";
        assert_eq!(refused("X Y", "main", prehash, "hex"), "header_prefix");
        assert_eq!(refused("X", "a/b", prehash, "hex"), "main");
        assert_eq!(refused("X", "main", "{timestamp}{path}", "hex"), "prehash");
        assert_eq!(refused("X", "main", "{timestamp", "hex"), "prehash");
        assert_eq!(refused("X", "main", prehash, "base32"), "signature_encoding");
    }
}
