//! The three secrets: never printed, and redacted from whatever the service echoes. The copies made here are zeroed when
//! they are dropped; those in the headers of requests, and in the buffers of the HTTP client, are not.

use zeroize::Zeroizing;

use crate::redaction::redacted;

/// A string that no `Debug`, `Display` or serializer shows.
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

/// Shortest secret that is redacted in data: shorter strings occur there by chance.
const MIN_SECRET_LEN_IN_DATA: usize = 8;

impl Credentials {
    /// The bytes with every occurrence of a secret or of `signature`, however escaped or encoded, overwritten in place,
    /// so that positions stay the same.
    pub fn redact(&self, text: &[u8], signature: &str) -> Vec<u8> {
        redacted(text, &[&self.all()[..], &[signature]].concat())
    }

    /// The data of a response with its secrets overwritten, apart from short ones, which are data.
    pub fn redact_data(&self, text: &[u8], signature: &str) -> Vec<u8> {
        redacted(text, &[&self.long()[..], &[signature]].concat())
    }

    /// True if a text is a secret, or holds one that is too long for chance.
    pub fn is_shown_by(&self, text: &str) -> bool {
        let is_one = self.all().iter().any(|secret| secret.eq_ignore_ascii_case(text));
        is_one || redacted(text.as_bytes(), &self.long()) != text.as_bytes()
    }

    fn all(&self) -> [&str; 3] {
        [self.api_key.expose(), self.secret_key.expose(), self.passphrase.expose()]
    }

    fn long(&self) -> Vec<&str> {
        self.all().into_iter().filter(|secret| secret.len() >= MIN_SECRET_LEN_IN_DATA).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> Credentials {
        let secret = |text: &str| Secret::new(text.into());
        Credentials { api_key: secret("KEY-1234"), secret_key: secret("s/cr+t="), passphrase: secret("pass \"word\"") }
    }

    fn left_of(echo: &str) -> String {
        let masked = String::from_utf8(credentials().redact(echo.as_bytes(), "sig+1/x=")).unwrap();
        assert_eq!(masked.len(), echo.len());
        masked.replace('*', "")
    }

    #[test]
    fn echoed_secrets_are_redacted_in_every_encoding() {
        for echo in [
            "KEY-1234",
            "key-1234",
            r"\u004b\u0045\u0059-1234",
            r"K\u0045Y%2D1234",
            r"\u0025\u0034\u0042EY-1234",
            "KEY&#45;12&#x33;4",
            "s/cr+t=",
            r"s\/cr+t=",
            "s%2Fcr%2Bt%3D",
            "s%252fcr%252bt%253d",
            r"s\u002fcr\u002bt\u003d",
            r#"pass \"word\""#,
            "pass &quot;word&quot;",
            "pass+%22word%22",
            "sig+1/x=",
            "sig-1_x=",
            "sig-1_x",
            "sig%2B1%2Fx%3D",
            "SIG+1/X=",
        ] {
            assert_eq!(left_of(&format!("before {echo} after")), "before  after", "{echo}");
        }
    }

    #[test]
    fn echoed_secrets_are_redacted_at_any_base64_offset() {
        use base64::Engine as _;
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        for before in ["", "a", "ab", "abc"] {
            for after in ["", ":", ":x", ":xy"] {
                let text = format!("{before}KEY-1234{after}");
                for echo in
                    [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text), STANDARD.encode(&text).to_lowercase()]
                {
                    let left = left_of(&echo).len();
                    // Only the surrounding text may remain, and up to six base64 characters that encode parts of both.
                    assert!(left <= before.len() + after.len() + 6 && left + 8 <= echo.len(), "{echo}: {left}");
                }
            }
        }
    }

    #[test]
    fn incomplete_escape_is_kept() {
        let text = r"100% &c \u12 \ud800 %zz &#x110000; &amp %+1 \u+123";
        assert_eq!(left_of(text), text);
    }

    #[test]
    fn only_long_secrets_are_redacted_in_data() {
        let credentials = Credentials { passphrase: Secret::new("eth".into()), ..credentials() };
        let text = b"WETH of KEY-1234 of s/cr+t= of eth";
        assert_eq!(credentials.redact_data(text, "sig+1/x="), b"WETH of ******** of s/cr+t= of eth");
        assert_eq!(credentials.redact(text, "sig+1/x="), b"W*** of ******** of ******* of ***");
        for (text, shown) in [("0xeth", false), ("ETH", true), ("0xkey-1234", true), ("s/cr+t=", true), ("", false)] {
            assert_eq!(credentials.is_shown_by(text), shown, "{text}");
        }
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let shown = format!("{:?}", credentials());
        assert!(!shown.contains("KEY") && !shown.contains("cr+t") && !shown.contains("word"), "{shown}");
    }
}
