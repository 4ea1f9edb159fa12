//! The three secrets: held zeroed on drop, never printed, and struck out of whatever the service echoes.

use zeroize::Zeroizing;

/// Text that no `Debug`, `Display` or serialiser shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub api_key: Secret,
    pub secret_key: Secret,
    pub passphrase: Secret,
}

const MASK: u8 = b'*';
/// Shorter texts are no secrets worth garbling a message for.
const LEAST: usize = 2;

impl Credentials {
    /// The bytes with every occurrence of a secret or of `signature`, however escaped, overwritten in place, so that
    /// positions stay what they were.
    pub fn mask(&self, body: &[u8], signature: &str) -> Vec<u8> {
        let mut masked = body.to_vec();
        for secret in [self.api_key.expose(), self.secret_key.expose(), self.passphrase.expose(), signature] {
            strike(&mut masked, secret);
        }
        masked
    }

    pub fn mask_text(&self, text: &str, signature: &str) -> String {
        String::from_utf8_lossy(&self.mask(text.as_bytes(), signature)).into_owned()
    }
}

/// Overwrites a text, however escaped.
pub fn strike(body: &mut [u8], text: &str) {
    for form in forms(text) {
        overwrite(body, &form);
    }
}

/// A secret as it may be echoed: plain, in JSON with and without escaped slashes, in a URL.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let json = serde_json::to_string(secret).map(|quoted| quoted[1..quoted.len() - 1].to_owned()).unwrap_or_default();
    let unicode = |text: &str, upper: bool| {
        text.chars()
            .map(|c| match (c.is_ascii_alphanumeric(), upper) {
                (true, _) => c.to_string(),
                (false, true) => format!("\\u{:04X}", u32::from(c)),
                (false, false) => format!("\\u{:04x}", u32::from(c)),
            })
            .collect::<String>()
    };
    let percent = super::sign::encode(secret);
    let mut forms = vec![
        secret.to_owned(),
        json.replace('/', "\\/"),
        json,
        unicode(secret, true),
        unicode(secret, false),
        percent.to_lowercase(),
        percent,
    ];
    // Longest first: a form may contain another.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    forms.into_iter().map(String::into_bytes).filter(|form| form.len() >= LEAST).collect()
}

fn overwrite(body: &mut [u8], form: &[u8]) {
    let mut from = 0;
    while let Some(found) = body[from..].windows(form.len()).position(|window| window.eq_ignore_ascii_case(form)) {
        body[from + found..from + found + form.len()].fill(MASK);
        from += found + form.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> Credentials {
        let secret = |text: &str| Secret::new(text.into());
        Credentials { api_key: secret("KEY-1234"), secret_key: secret("s/cr+t="), passphrase: secret("pass \"word\"") }
    }

    #[test]
    fn echoes_are_masked_in_every_form() {
        let body = br#"KEY-1234 key-1234 s/cr+t= s\/cr+t= s%2Fcr%2Bt%3D s\u002fcr\u002bt\u003d pass \"word\" sig+1= sig%2B1%3D rest"#;
        let masked = String::from_utf8(credentials().mask(body, "sig+1=")).unwrap();
        assert_eq!(masked.len(), body.len());
        assert_eq!(masked.replace('*', "").split_whitespace().collect::<Vec<_>>(), ["rest"]);
    }

    #[test]
    fn debug_shows_nothing() {
        let shown = format!("{:?}", credentials());
        assert!(!shown.contains("KEY") && !shown.contains("cr+t") && !shown.contains("word"), "{shown}");
    }
}
