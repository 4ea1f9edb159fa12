use super::*;
use proptest::prelude::*;

fn is_valid(bytes: &[u8]) -> bool {
    let mut json = Json::new(bytes);
    json.skip().and_then(|()| json.finish()).is_ok()
}

fn read(written: &str) -> Result<String, &'static str> {
    let mut json = Json::new(written.as_bytes());
    json.string().map(str::to_owned).map_err(|error| error.problem)
}

#[test]
fn lone_surrogates_become_replacement_characters() {
    for (written, expected) in [
        (r#""B\ud83d""#, "B\u{fffd}"),
        (r#""\ud83d\ude00!""#, "\u{1f600}!"),
        (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
        (r#""\ud83d\n""#, "\u{fffd}\n"),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
    ] {
        assert_eq!(read(written), Ok(expected.into()), "{written}");
    }
    for written in [r#""\x""#, r#""\u12""#, r#""\u+123""#, r#""\ud83d\u12""#] {
        assert_eq!(read(written), Err("invalid escape"), "{written}");
    }
}

proptest! {
    #[test]
    fn escapes_agree_with_serde_json(
        text in "(a|é|\\\\[\"\\\\/bfnrtx]|\\\\u00[0-9a-fA-F]{2}|\\\\ud83d\\\\ude0[0-9]){0,8}"
    ) {
        let written = format!("\"{text}\"");
        prop_assert_eq!(read(&written).ok(), serde_json::from_str::<String>(&written).ok(), "{}", written);
    }

    #[test]
    fn validity_agrees_with_serde_json(text in "[\\[\\]{},:\"\\\\untrefalsbd0-9.eE+ é-]{0,24}") {
        let other = serde_json::from_str::<serde_json::Value>(&text);
        // A number beyond all doubles is JSON, though not to everyone.
        // Lone surrogates are accepted here and not there.
        let known = !other.as_ref().is_err_and(|error| {
            let error = error.to_string();
            error.starts_with("number out of range") || error.contains("hex escape")
        });
        prop_assert!(!known || is_valid(text.as_bytes()) == other.is_ok(), "{}", text);
    }

    #[test]
    fn strings_round_trip(text in any::<String>(), before in 0_usize..9) {
        let written = " ".repeat(before) + &serde_json::to_string(&text).unwrap();
        let mut json = Json::new(written.as_bytes());
        prop_assert_eq!(json.peek().unwrap(), ValueKind::String);
        prop_assert_eq!(json.string().unwrap(), text.as_str());
        prop_assert!(json.finish().is_ok());
    }

    #[test]
    fn prefixes_are_found(text in "[ab]{0,30}", length in 0_usize..30, wrong in 0_usize..30) {
        let word = &text.as_bytes()[..length.min(text.len())];
        prop_assert!(starts_with(text.as_bytes(), word));
        prop_assert!(!starts_with(word, (text.clone() + "a").as_bytes()));
        let mut other = word.to_vec();
        if let Some(byte) = other.get_mut(wrong) {
            *byte = b'c';
            prop_assert!(!starts_with(text.as_bytes(), &other));
        }
    }
}
