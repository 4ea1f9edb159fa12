//! Error codes of the API, each declared once. Codes take precedence over HTTP statuses; messages have no meaning, since
//! one code comes with several.

/// Kind of an error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiErrorKind {
    BadRequest,
    NotFound,
    PermissionDenied,
    Authentication,
    ClockSkew,
    RateLimit,
    Unavailable,
    /// An unknown code or status.
    Other,
}

#[derive(Debug)]
pub struct ErrorCode {
    pub code: &'static str,
    /// HTTP statuses that it comes with; the local server sends the first one.
    pub statuses: &'static [u16],
    pub kind: ApiErrorKind,
    pub doc: &'static str,
}

const fn error(code: &'static str, statuses: &'static [u16], kind: ApiErrorKind, doc: &'static str) -> ErrorCode {
    ErrorCode { code, statuses, kind, doc }
}

pub static ERROR_CODES: [ErrorCode; 33] = [
    error("50001", &[503], ApiErrorKind::Unavailable, "Service temporarily unavailable."),
    error("50004", &[400], ApiErrorKind::Unavailable, "Timeout within the service."),
    error("50005", &[410], ApiErrorKind::Other, "Endpoint withdrawn."),
    error("50011", &[429, 200], ApiErrorKind::RateLimit, "Too many requests."),
    error("50012", &[200, 429], ApiErrorKind::PermissionDenied, "Invalid state of the account."),
    error("50013", &[200], ApiErrorKind::Unavailable, "System busy."),
    error("50014", &[400, 200], ApiErrorKind::BadRequest, "Parameter missing or empty."),
    error("50015", &[400, 200], ApiErrorKind::BadRequest, "Parameter out of range."),
    error("50016", &[400, 200], ApiErrorKind::BadRequest, "Parameter of the wrong form."),
    error("50024", &[400, 200], ApiErrorKind::BadRequest, "Too many values of a parameter."),
    error("50025", &[400, 200], ApiErrorKind::BadRequest, "Invalid range."),
    error("50026", &[500], ApiErrorKind::Unavailable, "System error."),
    error("50030", &[403], ApiErrorKind::PermissionDenied, "Not part of the account's plan."),
    error("50036", &[400, 200], ApiErrorKind::BadRequest, "Invalid combination of parameters."),
    error("50037", &[200], ApiErrorKind::NotFound, "Unknown token."),
    error("50038", &[200], ApiErrorKind::BadRequest, "Chain not supported by the endpoint."),
    error("50040", &[200], ApiErrorKind::NotFound, "Unknown block."),
    error("50043", &[200], ApiErrorKind::PermissionDenied, "Blocked by risk control."),
    error("50044", &[400], ApiErrorKind::NotFound, "No such data."),
    error("50047", &[400], ApiErrorKind::PermissionDenied, "Not available in the region."),
    error("50100", &[400], ApiErrorKind::PermissionDenied, "API access of the account frozen."),
    error("50102", &[401], ApiErrorKind::ClockSkew, "Timestamp expired."),
    error("50103", &[401], ApiErrorKind::Authentication, "Header of the key missing."),
    error("50104", &[401], ApiErrorKind::Authentication, "Header of the passphrase missing."),
    error("50105", &[401], ApiErrorKind::Authentication, "Wrong passphrase."),
    error("50106", &[401], ApiErrorKind::Authentication, "Header of the signature missing."),
    error("50107", &[401], ApiErrorKind::Authentication, "Header of the timestamp missing."),
    error("50111", &[401], ApiErrorKind::Authentication, "Wrong key."),
    error("50112", &[401], ApiErrorKind::ClockSkew, "Malformed timestamp."),
    error("50113", &[401], ApiErrorKind::Authentication, "Wrong signature."),
    error("50114", &[401], ApiErrorKind::Authentication, "Not authorized."),
    error("50125", &[401], ApiErrorKind::Authentication, "Not permitted for the key."),
    error("50404", &[404], ApiErrorKind::NotFound, "No such path."),
];

/// The declared code of that name.
pub fn error_code(code: &str) -> Option<&'static ErrorCode> {
    ERROR_CODES.iter().find(|declared| declared.code == code)
}

impl ApiErrorKind {
    /// The kind of an error response.
    pub fn of(status: u16, code: Option<&str>) -> Self {
        // Payment required, whatever code comes with it.
        if status == 402 {
            return Self::PermissionDenied;
        }
        if let Some(declared) = code.and_then(error_code) {
            return declared.kind;
        }
        match status {
            400 => Self::BadRequest,
            401 => Self::Authentication,
            403 => Self::PermissionDenied,
            404 => Self::NotFound,
            429 => Self::RateLimit,
            408 | 500..=599 => Self::Unavailable,
            _ => Self::Other,
        }
    }

    /// True if the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Unavailable)
    }

    /// Name in the OpenAPI document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadRequest => "bad request",
            Self::NotFound => "not found",
            Self::PermissionDenied => "permission denied",
            Self::Authentication => "authentication",
            Self::ClockSkew => "clock skew",
            Self::RateLimit => "rate limit",
            Self::Unavailable => "unavailable",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_declared_once_and_in_order() {
        assert!(ERROR_CODES.windows(2).all(|pair| pair[0].code < pair[1].code));
        assert!(ERROR_CODES.iter().all(|declared| !declared.statuses.is_empty()));
    }

    #[test]
    fn code_takes_precedence_over_status() {
        for (status, code, kind, retryable) in [
            (503, Some("50001"), ApiErrorKind::Unavailable, true),
            (400, Some("50004"), ApiErrorKind::Unavailable, true),
            (410, Some("50005"), ApiErrorKind::Other, false),
            (200, Some("50011"), ApiErrorKind::RateLimit, true),
            (429, Some("50012"), ApiErrorKind::PermissionDenied, false),
            (200, Some("50013"), ApiErrorKind::Unavailable, true),
            (200, Some("50038"), ApiErrorKind::BadRequest, false),
            (200, Some("50040"), ApiErrorKind::NotFound, false),
            (401, Some("50102"), ApiErrorKind::ClockSkew, false),
            (401, Some("50113"), ApiErrorKind::Authentication, false),
            (402, None, ApiErrorKind::PermissionDenied, false),
            (402, Some("50011"), ApiErrorKind::PermissionDenied, false),
            (429, None, ApiErrorKind::RateLimit, true),
            (502, Some("77777"), ApiErrorKind::Unavailable, true),
            (200, Some("77777"), ApiErrorKind::Other, false),
            (302, None, ApiErrorKind::Other, false),
        ] {
            let found = ApiErrorKind::of(status, code);
            assert_eq!((found, found.is_retryable()), (kind, retryable), "{status} {code:?}");
        }
    }
}
