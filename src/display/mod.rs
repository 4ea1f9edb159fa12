//! HTML forms of results for notebooks, and tables in plain text for terminals.

pub mod html;
pub mod text;
