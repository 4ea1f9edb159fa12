//! Records as columns: what decoding fills, what a record is a view of, what leaves as Arrow. Knows kinds, not JSON.

mod build;
mod export;
mod value;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, ListArray, StringArray, TimestampMillisecondArray};
use arrow_array::{UInt32Array, cast::AsArray};
use arrow_select::take::take;

pub use build::{ColumnsBuilder, TextSizes};
pub use export::{Numbers, Overflow, batch, laid_out, schema, with_views};
pub use value::Value;

use crate::interface::{Kind, RecordType};

/// The values of one field. Numbers that must not be rounded are kept as the text that was sent.
#[derive(Clone, Debug)]
pub enum Column {
    Integer(Int64Array),
    Time(TimestampMillisecondArray),
    Flag(BooleanArray),
    Text(StringArray),
    Texts(ListArray),
}

impl Column {
    fn array(&self) -> &dyn Array {
        match self {
            Self::Integer(array) => array,
            Self::Time(array) => array,
            Self::Flag(array) => array,
            Self::Text(array) => array,
            Self::Texts(array) => array,
        }
    }

    /// The reverse of `array`, for the results of Arrow's kernels, which keep the type of their input.
    fn like(&self, array: &ArrayRef) -> Self {
        match self {
            Self::Integer(_) => Self::Integer(array.as_primitive().clone()),
            Self::Time(_) => Self::Time(array.as_primitive().clone()),
            Self::Flag(_) => Self::Flag(array.as_boolean().clone()),
            Self::Text(_) => Self::Text(array.as_string().clone()),
            Self::Texts(_) => Self::Texts(array.as_list().clone()),
        }
    }

    fn slice(&self, offset: usize, length: usize) -> Self {
        self.like(&self.array().slice(offset, length))
    }

    /// Bytes of all its text.
    fn text_size(&self) -> usize {
        let size = |texts: &StringArray| {
            let offsets = texts.value_offsets();
            (offsets[offsets.len() - 1] - offsets[0]) as usize
        };
        match self {
            Self::Text(texts) => size(texts),
            Self::Texts(lists) => size(lists.values().as_string()),
            _ => 0,
        }
    }
}

impl PartialEq for Columns {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.record, other.record)
            && self.rows == other.rows
            && (0..self.rows)
                .all(|row| (0..self.columns.len()).all(|column| self.value(column, row) == other.value(column, row)))
    }
}

/// Some records of one type, column by column. Cloning and slicing share the data.
#[derive(Clone, Debug)]
pub struct Columns {
    record: &'static RecordType,
    columns: Vec<Column>,
    rows: usize,
}

impl Columns {
    pub fn record(&self) -> &'static RecordType {
        self.record
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn column(&self, index: usize) -> &Column {
        &self.columns[index]
    }

    pub fn kind(&self, index: usize) -> Kind {
        self.record.fields[index].kind
    }

    /// The value of one field in one row.
    pub fn value(&self, column: usize, row: usize) -> Value<'_> {
        Value::of(&self.columns[column], self.kind(column), row)
    }

    /// The value as text, of a column that is held as text.
    pub fn text(&self, column: usize, row: usize) -> Option<&str> {
        match &self.columns[column] {
            Column::Text(array) => array.is_valid(row).then(|| array.value(row)),
            _ => None,
        }
    }

    pub fn slice(&self, offset: usize, length: usize) -> Self {
        let columns = self.columns.iter().map(|column| column.slice(offset, length)).collect();
        Self { record: self.record, columns, rows: length }
    }

    /// These rows, in this order.
    pub fn take(&self, rows: &[u32]) -> Self {
        let indices = UInt32Array::from(rows.to_vec());
        let columns = self
            .columns
            .iter()
            .map(|column| column.like(&take(column.array(), &indices, None).expect("the rows exist")))
            .collect();
        Self { record: self.record, columns, rows: rows.len() }
    }

    pub fn empty(record: &'static RecordType) -> Self {
        ColumnsBuilder::new(record, 0).finish()
    }

    /// Bytes that the values take in memory.
    pub fn memory(&self) -> usize {
        self.columns.iter().map(|column| column.array().get_array_memory_size()).sum()
    }

    /// Bytes of all its text.
    pub fn text_size(&self) -> usize {
        self.columns.iter().map(Column::text_size).sum()
    }

    fn share(&self, index: usize) -> ArrayRef {
        match &self.columns[index] {
            Column::Integer(array) => Arc::new(array.clone()),
            Column::Time(array) => Arc::new(array.clone()),
            Column::Flag(array) => Arc::new(array.clone()),
            Column::Text(array) => Arc::new(array.clone()),
            Column::Texts(array) => Arc::new(array.clone()),
        }
    }
}
