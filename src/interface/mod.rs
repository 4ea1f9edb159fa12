//! Declaration of the API as data: nine record types, nine endpoints, the kinds of values and the names of a deployment.
//! Everything else in the project is derived from it. No I/O and no decoding.

mod deployment;
mod endpoints;
mod kinds;
mod number;
mod records;

pub use deployment::{Deployment, DeploymentError, SignatureEncoding};
pub use endpoints::{
    Bound, Chain, ENDPOINTS, Endpoint, Param, ParamKind, ParamRole, RangeEnd, ResultLimit, Shape, endpoint,
};
pub use kinds::{Kind, ParseError, Time};
pub use number::{AMOUNT_PRECISION, AMOUNT_SCALE, Number};
pub use records::{Field, RECORDS, RecordType, record};
