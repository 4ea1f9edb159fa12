//! Export as Arrow: schemas, and the policy for columns of numbers.

use std::sync::Arc;

use arrow_array::types::Decimal128Type;
use arrow_array::{ArrayAccessor, ArrayRef, Float64Array, PrimitiveArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::{Column, Columns, StringLayout};
use crate::interface::{AMOUNT_PRECISION, AMOUNT_SCALE, Kind, Number, RecordType, scaled};

pub(super) const UTC: &str = "UTC";

/// Type of the columns of amounts and estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DecimalPolicy {
    /// Amounts decimal128(38, 18), estimates float64.
    #[default]
    Decimal,
    /// The nearest double.
    Float,
    /// The digits as sent.
    String,
}

/// A number that its column cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumericOverflow {
    pub column: String,
    pub row: usize,
    pub text: String,
    pub numbers: DecimalPolicy,
}

pub(super) fn item_field() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Utf8, true))
}

impl DecimalPolicy {
    pub const NAMES: [(&'static str, Self); 3] =
        [("decimal", Self::Decimal), ("float", Self::Float), ("string", Self::String)];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Decimal => "decimal",
            Self::Float => "float",
            Self::String => "string",
        }
    }

    /// The type of a column under this policy.
    fn data_type(self, kind: Kind) -> DataType {
        match (kind, self) {
            (Kind::Integer, _) => DataType::Int64,
            (Kind::Time, _) => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
            (Kind::Boolean, _) => DataType::Boolean,
            (Kind::Amount, Self::Decimal) => DataType::Decimal128(AMOUNT_PRECISION, AMOUNT_SCALE),
            (Kind::ApproxDecimal, Self::Decimal) | (Kind::Amount | Kind::ApproxDecimal, Self::Float) => {
                DataType::Float64
            }
            (Kind::Amount | Kind::ApproxDecimal, Self::String) | (Kind::Uint256 | Kind::Utf8 | Kind::Direction, _) => {
                DataType::Utf8
            }
            (Kind::Utf8List, _) => DataType::List(item_field()),
        }
    }
}

/// The schema of a record type under a policy; every column may hold nulls.
pub fn schema(record: &RecordType, numbers: DecimalPolicy) -> SchemaRef {
    schema_in(record, numbers, StringLayout::Utf8)
}

/// The schema of a record type under a policy and a layout of strings.
pub fn schema_in(record: &RecordType, numbers: DecimalPolicy, layout: StringLayout) -> SchemaRef {
    let fields = record.fields.iter().map(|field| {
        let data_type = match (numbers.data_type(field.kind), layout) {
            (DataType::Utf8, StringLayout::Utf8View) => DataType::Utf8View,
            (data_type, _) => data_type,
        };
        Field::new(field.name, data_type, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of the schema as an Arrow batch; only columns that the policy or the layout converts are copied.
/// `first_row` is the index of the first row in the whole result, for the error.
pub fn batch(
    columns: &Columns,
    schema: &SchemaRef,
    numbers: DecimalPolicy,
    first_row: usize,
) -> Result<RecordBatch, NumericOverflow> {
    let arrays = schema
        .fields()
        .iter()
        .map(|field| {
            let index = columns.record.position(field.name()).expect("a schema of this record type, or a part of one");
            let array = match (&columns.columns[index], field.data_type()) {
                (Column::Utf8(texts), DataType::Decimal128(..)) => decimals(texts),
                (Column::Utf8View(texts), DataType::Decimal128(..)) => decimals(texts),
                (Column::Utf8(texts), DataType::Float64) => doubles(texts),
                (Column::Utf8View(texts), DataType::Float64) => doubles(texts),
                (_, DataType::Utf8View) => Ok(columns.share(index, StringLayout::Utf8View)),
                _ => Ok(columns.share(index, StringLayout::Utf8)),
            };
            array.map_err(|row| NumericOverflow {
                column: columns.record.fields[index].name.into(),
                row: first_row + row,
                text: columns.text(index, row).unwrap_or_default().into(),
                numbers,
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(columns.rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), arrays, &options).expect("arrays of the schema's types"))
}

/// The texts as decimals, or the row of the first that has too many digits.
fn decimals<'a>(texts: impl ArrayAccessor<Item = &'a str> + Copy) -> Result<ArrayRef, usize> {
    let amounts = converted(texts, |text| scaled(text, AMOUNT_SCALE))?;
    let array = PrimitiveArray::<Decimal128Type>::new(amounts.into(), texts.nulls().cloned());
    let array = array.with_precision_and_scale(AMOUNT_PRECISION, AMOUNT_SCALE).expect("38 digits are Arrow's limit");
    Ok(Arc::new(array))
}

/// The texts as floating-point numbers, or the row of the first that is beyond their range.
fn doubles<'a>(texts: impl ArrayAccessor<Item = &'a str> + Copy) -> Result<ArrayRef, usize> {
    let doubles = converted(texts, |text| Number::parse(text)?.to_f64())?;
    Ok(Arc::new(Float64Array::new(doubles.into(), texts.nulls().cloned())))
}

fn converted<'a, T: Copy + Default>(
    texts: impl ArrayAccessor<Item = &'a str> + Copy,
    convert: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, usize> {
    let mut values = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        let value = if texts.is_null(row) { Some(T::default()) } else { convert(texts.value(row)) };
        values.push(value.ok_or(row)?);
    }
    Ok(values)
}
