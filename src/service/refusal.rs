//! What a request is refused with: a code, its HTTP status and words that name the culprit.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: &'static str,
    pub status: u16,
    pub msg: String,
}

impl Refusal {
    pub fn new(code: &'static str, msg: impl Into<String>) -> Self {
        Self { code, status: status(code), msg: msg.into() }
    }
}

/// The status a code comes with.
fn status(code: &str) -> u16 {
    match code {
        "50014" | "50015" | "50016" | "50024" | "50025" => 400,
        "50102" | "50103" | "50104" | "50105" | "50106" | "50107" | "50111" | "50112" | "50113" => 401,
        "50404" => 404,
        "50405" => 405,
        "50011" => 429,
        "50026" => 500,
        _ => 200,
    }
}
