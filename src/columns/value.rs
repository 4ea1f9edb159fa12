//! One value of one record, typed.

use std::hash::{Hash, Hasher};

use arrow_array::cast::AsArray;

use super::Column;
use crate::interface::{Kind, Number};

/// A value as its kind reads it; equal when the values are, however their numbers were written.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    /// Unix milliseconds.
    Time(i64),
    Flag(bool),
    /// The digits as sent.
    Number(&'a str),
    RawInteger(&'a str),
    Text(&'a str),
    Texts(Vec<&'a str>),
}

impl<'a> Value<'a> {
    pub(super) fn of(column: &'a Column, kind: Kind, row: usize) -> Self {
        if column.array().is_null(row) {
            return Self::Null;
        }
        match column {
            Column::Integer(array) => Self::Integer(array.value(row)),
            Column::Time(array) => Self::Time(array.value(row)),
            Column::Flag(array) => Self::Flag(array.value(row)),
            Column::Text(array) => Self::of_text(array.value(row), kind),
            Column::Views(array) => Self::of_text(array.value(row), kind),
            Column::Texts(array) => {
                let (start, end) = (array.value_offsets()[row] as usize, array.value_offsets()[row + 1] as usize);
                let items = array.values().as_string::<i32>();
                Self::Texts((start..end).map(|item| items.value(item)).collect())
            }
        }
    }
}

impl<'a> Value<'a> {
    fn of_text(text: &'a str, kind: Kind) -> Self {
        match kind {
            Kind::Amount | Kind::Estimate => Self::Number(text),
            Kind::RawInteger => Self::RawInteger(text),
            _ => Self::Text(text),
        }
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Integer(a), Self::Integer(b)) | (Self::Time(a), Self::Time(b)) => a == b,
            (Self::Flag(a), Self::Flag(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b || canonical(a) == canonical(b),
            (Self::RawInteger(a), Self::RawInteger(b)) | (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Texts(a), Self::Texts(b)) => a == b,
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
            Self::Flag(value) => value.hash(state),
            Self::Number(text) => canonical(text).hash(state),
            Self::RawInteger(text) | Self::Text(text) => text.hash(state),
            Self::Texts(texts) => texts.hash(state),
        }
    }
}

fn canonical(number: &str) -> Option<(bool, Vec<u8>, i32)> {
    Number::parse(number).map(|number| number.canonical())
}
