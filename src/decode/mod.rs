//! From an answer's bytes to columns, once. Knows the envelope and the quirks of deployed services; no I/O.

mod answer;
mod json;
mod layout;
mod record;
#[cfg(test)]
mod tests;
mod undecodable;

pub use answer::{Answer, Page, refusal};
pub use layout::Decoder;
pub use undecodable::Undecodable;

/// The answer without a byte order mark, which some proxies put in front.
fn strip_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body)
}
