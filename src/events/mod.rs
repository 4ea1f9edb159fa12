//! Events of contracts, and the decoding of their logs by the Ethereum ABI.

mod array;
mod decode;
mod event;
mod known;
mod value;

pub use decode::{Decoded, decode};
pub use event::{Event, Param};
pub use known::{KNOWN, named};
pub use value::{Type, Value};
