//! Error responses: a code, its HTTP status, and a message that names the parameter or header.

use crate::interface::error_code;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorResponse {
    pub code: &'static str,
    pub status: u16,
    pub msg: String,
}

impl ErrorResponse {
    pub fn new(code: &'static str, msg: impl Into<String>) -> Self {
        let status = error_code(code).and_then(|declared| declared.statuses.first()).copied().unwrap_or(200);
        Self { code, status, msg: msg.into() }
    }
}
