//! How results are shown: HTML forms for notebooks, tables in plain text for terminals.

pub mod html;
pub mod text;
