//! Decoded values as Arrow arrays.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::types::Decimal128Type;
use arrow_array::{Array as _, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, PrimitiveArray};
use arrow_array::{StringArray, StructArray, UInt64Array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::value::{Type, Value};
use crate::columns::{DecimalPolicy, NumericOverflow};

/// Digits of the decimals that wide integers become.
const PRECISION: u8 = 38;

/// Values of one column, or of a part of it.
pub struct Cells<'a> {
    pub column: &'a str,
    pub numbers: DecimalPolicy,
    /// The row of each value, and the value.
    pub values: Vec<(usize, Option<&'a Value>)>,
}

impl Type {
    pub fn data_type(&self, numbers: DecimalPolicy) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Uint(64) => DataType::UInt64,
            Self::Int(bits) | Self::Uint(bits) if *bits <= 64 => DataType::Int64,
            Self::Int(_) | Self::Uint(_) => match numbers {
                DecimalPolicy::String => DataType::Utf8,
                DecimalPolicy::Decimal => DataType::Decimal128(PRECISION, 0),
                DecimalPolicy::Float => DataType::Float64,
            },
            Self::Address | Self::FixedBytes(_) | Self::Bytes | Self::Utf8 | Self::Hash => DataType::Utf8,
            Self::List(item, _) => DataType::List(Arc::new(Field::new("item", item.data_type(numbers), true))),
            Self::Struct(members) => {
                let fields = members.iter().map(|(name, ty)| Field::new(name, ty.data_type(numbers), true));
                DataType::Struct(fields.collect())
            }
        }
    }
}

impl Cells<'_> {
    /// Returns the values as an array of the type.
    pub fn array(&self, ty: &Type) -> Result<ArrayRef, NumericOverflow> {
        Ok(match (ty, ty.data_type(self.numbers)) {
            (Type::List(item, _), DataType::List(field)) => self.lists(item, field)?,
            (Type::Struct(members), DataType::Struct(fields)) => self.structs(members, fields)?,
            (_, DataType::Boolean) => {
                let flags = self.values.iter().map(|(_, value)| value.map(|value| *value == Value::Bool(true)));
                Arc::new(flags.collect::<BooleanArray>())
            }
            (_, DataType::Int64) => Arc::new(Int64Array::from(self.parsed(|_| true)?)),
            (_, DataType::UInt64) => Arc::new(UInt64Array::from(self.parsed(|_| true)?)),
            (_, DataType::Float64) => Arc::new(Float64Array::from(self.parsed(|_| true)?)),
            (_, DataType::Decimal128(..)) => {
                let end = 10_u128.pow(PRECISION.into());
                let values = self.parsed(|value: &i128| value.unsigned_abs() < end)?;
                let array = PrimitiveArray::<Decimal128Type>::from(values).with_precision_and_scale(PRECISION, 0);
                Arc::new(array.expect("38 digits are Arrow's limit"))
            }
            _ => Arc::new(self.values.iter().map(|(_, value)| value.map(Value::text)).collect::<StringArray>()),
        })
    }

    /// Returns the numbers, each of which has to be one that fits.
    fn parsed<T: FromStr>(&self, fits: impl Fn(&T) -> bool) -> Result<Vec<Option<T>>, NumericOverflow> {
        let parsed = self.values.iter().map(|(row, value)| {
            let Some(text) = value.map(Value::text) else { return Ok(None) };
            let number = text.parse().ok().filter(&fits);
            number.map(Some).ok_or_else(|| NumericOverflow {
                column: self.column.to_owned(),
                row: *row,
                text: text.into_owned(),
                numbers: self.numbers,
            })
        });
        parsed.collect()
    }

    fn part<'a>(&'a self, values: Vec<(usize, Option<&'a Value>)>) -> Cells<'a> {
        Cells { column: self.column, numbers: self.numbers, values }
    }

    fn nulls(&self) -> NullBuffer {
        self.values.iter().map(|(_, value)| value.is_some()).collect()
    }

    fn lists(&self, item: &Type, field: Arc<Field>) -> Result<ArrayRef, NumericOverflow> {
        let items = self.values.iter().map(|(row, value)| (*row, value.map_or(&[][..], Value::parts)));
        let offsets = OffsetBuffer::from_lengths(items.clone().map(|(_, items)| items.len()));
        let parts = items.flat_map(|(row, items)| items.iter().map(move |item| (row, Some(item))));
        let values = self.part(parts.collect()).array(item)?;
        Ok(Arc::new(ListArray::new(field, offsets, values, Some(self.nulls()))))
    }

    fn structs(&self, members: &[(String, Type)], fields: Fields) -> Result<ArrayRef, NumericOverflow> {
        let mut arrays = Vec::with_capacity(members.len());
        for (index, (_, ty)) in members.iter().enumerate() {
            let parts = self.values.iter().map(|(row, value)| (*row, value.and_then(|value| value.parts().get(index))));
            arrays.push(self.part(parts.collect()).array(ty)?);
        }
        debug_assert!(arrays.iter().all(|array| array.len() == self.values.len()));
        Ok(Arc::new(StructArray::new(fields, arrays, Some(self.nulls()))))
    }
}

impl Value {
    /// Returns a number or string as a string.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Self::Int(value) => Cow::Owned(value.to_string()),
            Self::Uint(value) => Cow::Owned(value.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
            Self::List(_) | Self::Struct(_) => Cow::Borrowed(""),
        }
    }

    /// Items of a list, or members of a struct.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::List(parts) | Self::Struct(parts) => parts,
            _ => &[],
        }
    }
}
