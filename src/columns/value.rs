//! `Value`, one typed value of one record.

use std::hash::{Hash, Hasher};

use arrow_array::{Array as _, cast::AsArray};

use super::Column;
use crate::interface::{Kind, Number};

/// A value as its kind reads it; equal when the values are, however their numbers were written.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    /// Unix milliseconds.
    Time(i64),
    Boolean(bool),
    /// The digits as sent.
    Number(&'a str),
    Uint256(&'a str),
    Utf8(&'a str),
    Utf8List(Vec<&'a str>),
}

impl<'a> Value<'a> {
    pub(super) fn of(column: &'a Column, kind: Kind, row: usize) -> Self {
        match column {
            Column::Integer(array) if array.is_valid(row) => Self::Integer(array.value(row)),
            Column::Time(array) if array.is_valid(row) => Self::Time(array.value(row)),
            Column::Boolean(array) if array.is_valid(row) => Self::Boolean(array.value(row)),
            Column::Utf8(array) if array.is_valid(row) => Self::of_text(array.value(row), kind),
            Column::Utf8View(array) if array.is_valid(row) => Self::of_text(array.value(row), kind),
            Column::Utf8List(array) if array.is_valid(row) => {
                let offsets = array.value_offsets();
                let items = array.values().as_string::<i32>();
                let range = offsets[row] as usize..offsets[row + 1] as usize;
                Self::Utf8List(range.map(|item| items.value(item)).collect())
            }
            _ => Self::Null,
        }
    }
}

impl<'a> Value<'a> {
    fn of_text(text: &'a str, kind: Kind) -> Self {
        match kind {
            Kind::Amount | Kind::ApproxDecimal => Self::Number(text),
            Kind::Uint256 => Self::Uint256(text),
            _ => Self::Utf8(text),
        }
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Integer(a), Self::Integer(b)) | (Self::Time(a), Self::Time(b)) => a == b,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b || canonical(a) == canonical(b),
            (Self::Uint256(a), Self::Uint256(b)) | (Self::Utf8(a), Self::Utf8(b)) => a == b,
            (Self::Utf8List(a), Self::Utf8List(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value<'_> {}

impl Hash for Value<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Integer(value) | Self::Time(value) => value.hash(state),
            Self::Boolean(value) => value.hash(state),
            Self::Number(text) => canonical(text).hash(state),
            Self::Uint256(text) | Self::Utf8(text) => text.hash(state),
            Self::Utf8List(texts) => texts.hash(state),
        }
    }
}

fn canonical(number: &str) -> Option<(bool, Vec<u8>, i32)> {
    Number::parse(number).map(|number| number.canonical())
}
