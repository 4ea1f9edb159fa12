//! Error responses: a code, its HTTP status, and a message that names the parameter or header.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorResponse {
    pub code: &'static str,
    pub status: u16,
    pub msg: String,
}

impl ErrorResponse {
    pub fn new(code: &'static str, msg: impl Into<String>) -> Self {
        Self { code, status: status(code), msg: msg.into() }
    }
}

/// HTTP status of a code.
fn status(code: &str) -> u16 {
    match code {
        "50014" | "50015" | "50016" | "50024" | "50025" | "50044" => 400,
        "50102" | "50103" | "50104" | "50105" | "50106" | "50107" | "50111" | "50112" | "50113" => 401,
        "50404" => 404,
        "50011" => 429,
        "50026" => 500,
        _ => 200,
    }
}
