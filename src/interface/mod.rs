//! Declaration of the API as data: record types, endpoints, the kinds of values, the error codes and the names
//! of a deployment; and its rendering as an OpenAPI document.
//! Everything else in the project is derived from it. No I/O and no decoding.

mod characters;
mod deployment;
mod endpoint;
mod endpoints;
mod error_codes;
mod fields;
mod kinds;
mod laws;
mod number;
mod openapi;
mod record_type;
mod records;
mod result_window;

pub use characters::{digits, foreign_character, meaning};
pub use deployment::{Deployment, DeploymentError, SignatureEncoding};
pub use endpoint::{Bound, Chain, Divider, Endpoint, Order, Param, ParamKind, ParamRole, RangeEnd, ResultLimit, Shape};
pub use endpoints::{ENDPOINTS, endpoint};
pub use error_codes::{ApiErrorKind, ERROR_CODES, ErrorCode, error_code};
pub use kinds::{Kind, ParseError, Time};
pub use laws::{COUNTED, Groups, LAWS, Law, Moves, PENDING, Rule, SUCCESS, Sequence, UNIQUE, ZERO_ADDRESS};
pub use number::{AMOUNT_PRECISION, AMOUNT_SCALE, Number, is_plain, is_shortest, scaled, whole};
pub use openapi::{Names, openapi};
pub use record_type::{Field, RecordType, Roles};
pub use records::{QUERIED, RECORDS, record};
pub use result_window::certain_window;
