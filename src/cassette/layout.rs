//! The layout of an interaction in the file. Objects of a list have a line each, so that a difference between two
//! recordings can be read. A line that begins with a space continues the interaction above.

use std::iter::Peekable;

/// JSON with a line break before each object of a list, and after the last.
pub fn fold(json: &str) -> String {
    let mut folded = String::with_capacity(json.len() + json.len() / 64);
    // For each open bracket: true if it is a list of objects.
    let mut open: Vec<bool> = Vec::new();
    let mut in_string = false;
    let mut is_escaped = false;
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            in_string = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
            folded.push(character);
            continue;
        }
        match character {
            '"' => in_string = true,
            '{' => open.push(false),
            '[' => open.push(is_next(&mut characters, '{')),
            '}' | ']' if open.pop() == Some(true) => folded.push_str("\n "),
            _ => {}
        }
        folded.push(character);
        if matches!(character, '[' | ',') && open.last() == Some(&true) {
            folded.push_str("\n ");
        }
    }
    folded
}

fn is_next(characters: &mut Peekable<std::str::Chars<'_>>, expected: char) -> bool {
    characters.peek() == Some(&expected)
}

/// Folded JSON as it was before.
pub fn unfold(json: &str) -> String {
    json.replace("\n ", "")
}

/// The interactions of a file, each with the number of its first line.
pub fn interactions(content: &[u8]) -> Vec<(usize, &[u8])> {
    let mut found: Vec<(usize, &[u8])> = Vec::new();
    let mut start = 0;
    for (position, line) in content.split(|byte| *byte == b'\n').enumerate() {
        let end = start + line.len();
        match found.last_mut() {
            Some((_, above)) if line.starts_with(b" ") => {
                *above = &content[start - above.len() - 1..end];
            }
            _ => found.push((position + 1, line)),
        }
        start = end + 1;
    }
    found.retain(|(_, interaction)| !interaction.trim_ascii().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_a_list_have_a_line_each() {
        let json = r#"{"data":[{"page":"1","list":[{"a":"x,[{"},{"a":"\""}],"topics":["0x1","0x2"]}],"none":[]}"#;
        let lines = [
            r#"{"data":["#,
            r#" {"page":"1","list":["#,
            r#" {"a":"x,[{"},"#,
            r#" {"a":"\""}"#,
            r#" ],"topics":["0x1","0x2"]}"#,
            r#" ],"none":[]}"#,
        ];
        assert_eq!(fold(json), lines.join("\n"));
        assert_eq!(unfold(&fold(json)), json);
    }

    #[test]
    fn lines_that_begin_with_a_space_continue_the_interaction_above() {
        let content = b"{\"a\":[\n {}\n ]}\n\n{\"b\":1}\n";
        let found = interactions(content);
        assert_eq!(found, [(1, &b"{\"a\":[\n {}\n ]}"[..]), (5, &b"{\"b\":1}"[..])]);
        assert_eq!(interactions(b""), []);
        assert_eq!(interactions(b" {\"a\":1}"), [(1, &b" {\"a\":1}"[..])]);
    }
}
