//! The local service.
