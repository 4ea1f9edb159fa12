//! Leaving as Arrow: schemas, and the policy that decides what a column of numbers becomes.

use std::sync::Arc;

use arrow_array::types::Decimal128Type;
use arrow_array::{ArrayAccessor, ArrayRef, Float64Array, PrimitiveArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::{Column, Columns, Layout};
use crate::interface::{AMOUNT_PRECISION, AMOUNT_SCALE, Kind, Number, RecordType};

pub(super) const UTC: &str = "UTC";

/// What the columns of amounts and estimates become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// Amounts decimal128(38, 18), estimates float64.
    #[default]
    Decimal,
    /// The nearest double.
    Float,
    /// The digits as sent.
    Text,
}

/// A number that its column cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    pub column: &'static str,
    pub row: usize,
    pub text: String,
    pub numbers: Numbers,
}

pub(super) fn item_field() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Utf8, true))
}

impl Numbers {
    /// Kinds of numbers this policy decides on, by what they become.
    fn data_type(self, kind: Kind) -> DataType {
        match (kind, self) {
            (Kind::Integer, _) => DataType::Int64,
            (Kind::Time, _) => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
            (Kind::Flag, _) => DataType::Boolean,
            (Kind::Amount, Self::Decimal) => DataType::Decimal128(AMOUNT_PRECISION, AMOUNT_SCALE),
            (Kind::Estimate, Self::Decimal) | (Kind::Amount | Kind::Estimate, Self::Float) => DataType::Float64,
            (Kind::Amount | Kind::Estimate, Self::Text) | (Kind::RawInteger | Kind::Text | Kind::Direction, _) => {
                DataType::Utf8
            }
            (Kind::Texts, _) => DataType::List(item_field()),
        }
    }
}

/// The schema of a record type under a policy; every column may hold nulls.
pub fn schema(record: &RecordType, numbers: Numbers) -> SchemaRef {
    schema_in(record, numbers, Layout::Offsets)
}

/// The same for a library that has its texts in that layout.
pub fn schema_in(record: &RecordType, numbers: Numbers, layout: Layout) -> SchemaRef {
    let fields = record.fields.iter().map(|field| {
        let data_type = match (numbers.data_type(field.kind), layout) {
            (DataType::Utf8, Layout::Views) => DataType::Utf8View,
            (data_type, _) => data_type,
        };
        Field::new(field.name, data_type, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of the schema as an Arrow batch; only what the policy of numbers or the layout converts is copied.
/// `first_row` is the place of these rows in the whole result, for the error.
pub fn batch(
    columns: &Columns,
    schema: &SchemaRef,
    numbers: Numbers,
    first_row: usize,
) -> Result<RecordBatch, Overflow> {
    let arrays = schema
        .fields()
        .iter()
        .map(|field| {
            let index = columns.record.position(field.name()).expect("a schema of this record type, or a part of one");
            let overflow = |row: usize, text: &str| Overflow {
                column: columns.record.fields[index].name,
                row: first_row + row,
                text: text.into(),
                numbers,
            };
            match (&columns.columns[index], field.data_type()) {
                (Column::Text(texts), DataType::Decimal128(..)) => decimals(texts, overflow),
                (Column::Views(texts), DataType::Decimal128(..)) => decimals(texts, overflow),
                (Column::Text(texts), DataType::Float64) => doubles(texts, overflow),
                (Column::Views(texts), DataType::Float64) => doubles(texts, overflow),
                (_, DataType::Utf8View) => Ok(columns.share(index, Layout::Views)),
                _ => Ok(columns.share(index, Layout::Offsets)),
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(columns.rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), arrays, &options).expect("arrays of the schema's types"))
}

fn decimals<'a>(
    texts: impl ArrayAccessor<Item = &'a str> + Copy,
    overflow: impl Fn(usize, &str) -> Overflow,
) -> Result<ArrayRef, Overflow> {
    let amount = |text: &str| Number::parse(text).and_then(|number| number.scaled(AMOUNT_SCALE));
    let array =
        PrimitiveArray::<Decimal128Type>::new(converted(texts, amount, overflow)?.into(), texts.nulls().cloned());
    let array = array.with_precision_and_scale(AMOUNT_PRECISION, AMOUNT_SCALE).expect("38 digits are Arrow's limit");
    Ok(Arc::new(array))
}

fn doubles<'a>(
    texts: impl ArrayAccessor<Item = &'a str> + Copy,
    overflow: impl Fn(usize, &str) -> Overflow,
) -> Result<ArrayRef, Overflow> {
    let double = |text: &str| Number::parse(text).and_then(|number| number.to_f64());
    Ok(Arc::new(Float64Array::new(converted(texts, double, overflow)?.into(), texts.nulls().cloned())))
}

fn converted<'a, T: Copy + Default>(
    texts: impl ArrayAccessor<Item = &'a str> + Copy,
    convert: impl Fn(&str) -> Option<T>,
    overflow: impl Fn(usize, &str) -> Overflow,
) -> Result<Vec<T>, Overflow> {
    let mut values = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        values.push(if texts.is_null(row) {
            T::default()
        } else {
            let text = texts.value(row);
            convert(text).ok_or_else(|| overflow(row, text))?
        });
    }
    Ok(values)
}
