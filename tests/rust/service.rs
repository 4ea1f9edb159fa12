//! The local service as a client meets it: over HTTP, signed by hand, read as JSON. What is right is worked out from
//! whole lists read without a filter, not from the code under test.

#[path = "service/answers.rs"]
mod answers;
#[path = "service/authentication.rs"]
mod authentication;
#[path = "service/caller.rs"]
mod caller;
#[path = "service/consistency.rs"]
mod consistency;
#[path = "service/faults.rs"]
mod faults;
#[path = "service/filters.rs"]
mod filters;
#[path = "service/growth.rs"]
mod growth;
#[path = "service/life.rs"]
mod life;
#[path = "service/limits.rs"]
mod limits;
