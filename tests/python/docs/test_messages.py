"""The list of all messages in tests/messages.txt, which is meant to be read."""

from __future__ import annotations

import list_messages


def test_list_of_messages_is_up_to_date() -> None:
    listed = list_messages.LISTED.read_text(encoding="utf-8").splitlines()
    current = list_messages.listing().splitlines()
    assert current == listed, "run: python scripts/list_messages.py, and read what changed"


def test_texts_of_rust_are_found_without_tests_and_panics() -> None:
    source = """
        /// A "doc comment" here.
        #[pyo3(text_signature = "(self, of words)")]
        fn reject() -> Error { Error::config("base_url", format!("must be a URL; got {text:?}, \\
            not this")) } // "a comment here"
        fn quote() -> char { '"' }
        const TWO: &str = r#"raw "text" here"#;
        fn fail() { None::<u8>.expect("never seen by callers"); }
        #[cfg(test)]
        mod tests { const NAME: &str = "in a test"; }
    """
    found = [text for text in list_messages.rust_texts(source) if list_messages.WORDS.search(text)]
    assert found == ["must be a URL; got {text:?}, not this", 'raw "text" here']


def test_texts_of_python_are_found_without_docstrings() -> None:
    source = '''
def check(name):
    """A docstring of words."""
    raise ValueError(f"{name} must be one of {', '.join(NAMES)}; got {name!r}" + " and so on")
'''
    found = [text for text in list_messages.python_texts(source) if list_messages.WORDS.search(text)]
    assert found == ["{name} must be one of {', '.join(NAMES)}; got {name}", " and so on"]


def test_advice_of_the_core_to_run_a_query_again_is_a_hint() -> None:
    # A follower replaces the hint: it does not read what it has delivered.
    section = ""
    found = []
    for line in list_messages.listing().splitlines():
        section = line if line.startswith("# ") else section
        if section.startswith("# src/") and "un the query again" in line:
            found.append(section)
    assert found == ["# src/message/hint.rs"]
