//! Leaving as Arrow: schemas, and the policy that decides what a column of numbers becomes.

use std::sync::Arc;

use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef, Float64Array, PrimitiveArray, RecordBatch, RecordBatchOptions};
use arrow_array::{StringArray, StringViewArray, cast::AsArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::{Column, Columns};
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
    let fields: Vec<Field> =
        record.fields.iter().map(|field| Field::new(field.name, numbers.data_type(field.kind), true)).collect();
    Arc::new(Schema::new(fields))
}

/// The columns of the schema as an Arrow batch; only the numbers that the policy converts are copied. `first_row` is the place of
/// these rows in the whole result, for the error.
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
                (Column::Text(texts), DataType::Float64) => doubles(texts, overflow),
                _ => Ok(columns.share(index)),
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(columns.rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), arrays, &options).expect("arrays of the schema's types"))
}

/// Texts of up to this many bytes stand in their view.
const MOST_INLINE: i32 = 12;

/// The same schema with texts as views.
pub fn with_views(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        _ => field.clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The same rows as that schema has them, with views where it wants them. Long texts stay where they are.
pub fn laid_out(batch: RecordBatch, schema: &SchemaRef) -> RecordBatch {
    let (_, arrays, rows) = batch.into_parts();
    let columns = arrays.into_iter().zip(schema.fields());
    let arrays = columns.map(|(array, field)| match (array.as_string_opt::<i32>(), field.data_type()) {
        (Some(texts), DataType::Utf8View) => Arc::new(views(texts)),
        _ => array,
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema.clone(), arrays.collect(), &options);
    batch.expect("arrays of the schema's types")
}

fn views(texts: &StringArray) -> StringViewArray {
    if texts.value_offsets().windows(2).any(|ends| ends[1] - ends[0] > MOST_INLINE) {
        texts.into()
    } else {
        texts.iter().collect()
    }
}

fn decimals(texts: &StringArray, overflow: impl Fn(usize, &str) -> Overflow) -> Result<ArrayRef, Overflow> {
    let values: Vec<i128> =
        converted(texts, |text| Number::parse(text).and_then(|number| number.scaled(AMOUNT_SCALE)), overflow)?;
    let array = PrimitiveArray::<Decimal128Type>::new(values.into(), texts.nulls().cloned());
    let array = array.with_precision_and_scale(AMOUNT_PRECISION, AMOUNT_SCALE).expect("38 digits are Arrow's limit");
    Ok(Arc::new(array))
}

fn doubles(texts: &StringArray, overflow: impl Fn(usize, &str) -> Overflow) -> Result<ArrayRef, Overflow> {
    let values = converted(texts, |text| Number::parse(text).and_then(|number| number.to_f64()), overflow)?;
    Ok(Arc::new(Float64Array::new(values.into(), texts.nulls().cloned())))
}

fn converted<T: Copy + Default>(
    texts: &StringArray,
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
