//! Decodes the bytes of a response into columns, once. Knows the envelope and the quirks of deployed services; no I/O.

mod decoder;
mod envelope;
mod error;
mod json;
mod members;
mod reader;
mod record;
mod specials;
#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use envelope::{Envelope, Page, Paging, code_and_msg};
pub use error::{DecodeError, is_unprintable, one_line};
pub use reader::Members;

/// The body without the byte order mark that some proxies put in front.
fn strip_bom(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body)
}
