//! What the service says, as data: nine record types, nine endpoints, the kinds of value and the words a deployment
//! uses for them. Everything else in the project is derived from here. No I/O, and nothing of how an answer is read.

mod deployment;
mod endpoints;
mod kinds;
mod number;
mod records;

pub use deployment::{Deployment, DeploymentError, SignatureEncoding};
pub use endpoints::{Chain, ENDPOINTS, Endpoint, Param, ParamKind, Reach, Role, Shape, endpoint};
pub use kinds::{Kind, Malformed, Time};
pub use number::{AMOUNT_PRECISION, AMOUNT_SCALE, Number};
pub use records::{Field, RECORDS, RecordType, record};
