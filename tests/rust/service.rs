//! The local service as a client meets it: over HTTP, signed by hand, read as JSON. What is right is worked out from
//! whole lists read without a filter, not from the code under test.

#![expect(clippy::disallowed_methods, reason = "a server on a socket has the system's time")]

#[path = "service/authentication.rs"]
mod authentication;
#[path = "service/consistency.rs"]
mod consistency;
#[path = "service/faults.rs"]
mod faults;
#[path = "service/filters.rs"]
mod filters;
#[path = "service/growth.rs"]
mod growth;
#[path = "service/http_client.rs"]
mod http_client;
#[path = "service/lifecycle.rs"]
mod lifecycle;
#[path = "service/limits.rs"]
mod limits;
#[path = "service/responses.rs"]
mod responses;
