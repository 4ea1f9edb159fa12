//! Texts that no value of the API has.

/// Longest text: far longer than an address, and short enough for every server's limit of a URL.
const MAX_CHARS: usize = 2_000;

/// The first character that no address, hash or name of a chain has, as an error shows it: white space, a control or format
/// character, or a comma. Such characters come with copied text and are hard to see; a service that ignores or strips them
/// returns a result that looks right.
pub fn foreign_character(text: &str) -> Option<String> {
    let count = text.chars().count();
    if count > MAX_CHARS {
        return Some(format!("got {count} characters"));
    }
    let found = text.chars().find(|c| *c == ',' || c.is_whitespace() || is_invisible(*c))?;
    let name = match found {
        ',' => "a comma",
        '\u{feff}' => "a byte order mark",
        c if c.is_whitespace() => "white space",
        c if c.is_control() => "a control character",
        _ => "an invisible character",
    };
    Some(format!("got {text:?}, which has {name} (U+{:04X})", u32::from(found)))
}

/// Meaning of an address, a hash or a name: hexadecimal digits are the same in either letter case. Letters of base58 are not.
pub fn meaning(text: &str) -> String {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let is_hex = digits.is_some() || text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { text.to_ascii_lowercase() } else { text.to_owned() }
}

/// Digits of a name, which two spellings of it have in common: `ERC20` and `token_20`.
pub fn digits(name: &str) -> String {
    name.chars().filter(char::is_ascii_digit).collect()
}

fn is_invisible(c: char) -> bool {
    // Fillers are letters to Unicode, although they are not drawn.
    let is_filler = matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}');
    // Apart from quotes, Rust escapes characters that are not drawn: control and format characters, marks without a letter.
    let is_escaped = !matches!(c, '"' | '\'' | '\\') && c.escape_debug().len() > 1;
    is_filler || is_escaped
}
