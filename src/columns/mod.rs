//! Records as columns: what decoding fills, what a record is a view of, what leaves as Arrow. Knows kinds, not JSON.

mod build;
mod export;
mod value;
mod views;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, ListArray, StringArray, StringViewArray};
use arrow_array::{TimestampMillisecondArray, UInt32Array, cast::AsArray};
use arrow_select::take::take;

pub use build::ColumnsBuilder;
pub use export::{Numbers, Overflow, batch, schema, schema_in};
pub use value::Value;

use crate::interface::{Kind, RecordType};

/// How a column has its texts: one after the other, or anywhere, with a view of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    Offsets,
    Views,
}

/// The values of one field. Numbers that must not be rounded are kept as the text that was sent.
#[derive(Clone, Debug)]
pub enum Column {
    Integer(Int64Array),
    Time(TimestampMillisecondArray),
    Flag(BooleanArray),
    Text(StringArray),
    /// Where the texts are: those of a page in its answer.
    Views(StringViewArray),
    Texts(ListArray),
}

impl Column {
    fn array(&self) -> &dyn Array {
        match self {
            Self::Integer(array) => array,
            Self::Time(array) => array,
            Self::Flag(array) => array,
            Self::Text(array) => array,
            Self::Views(array) => array,
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
            Self::Views(_) => Self::Views(array.as_string_view().clone()),
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
            // A view begins with the length of its text.
            Self::Views(texts) => texts.views().iter().map(|view| *view as u32 as usize).sum(),
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
    /// In one allocation, since pages are passed on whole and often.
    columns: Arc<[Column]>,
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
            Column::Views(array) => array.is_valid(row).then(|| array.value(row)),
            _ => None,
        }
    }

    pub fn slice(&self, offset: usize, length: usize) -> Self {
        if length == self.rows {
            return self.clone();
        }
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
        let memory = |column: &Column| match column {
            Column::Views(texts) => size_of_val::<[u128]>(texts.views()),
            other => other.array().get_array_memory_size(),
        };
        // All views of a page are into one answer.
        let answer = self.columns.iter().find_map(|column| match column {
            Column::Views(texts) => Some(texts.data_buffers().iter().map(|buffer| buffer.len()).sum::<usize>()),
            _ => None,
        });
        self.columns.iter().map(memory).sum::<usize>() + answer.unwrap_or(0)
    }

    /// Bytes of all its text.
    pub fn text_size(&self) -> usize {
        self.columns.iter().map(Column::text_size).sum()
    }

    fn share(&self, index: usize, layout: Layout) -> ArrayRef {
        match (&self.columns[index], layout) {
            (Column::Integer(array), _) => Arc::new(array.clone()),
            (Column::Time(array), _) => Arc::new(array.clone()),
            (Column::Flag(array), _) => Arc::new(array.clone()),
            (Column::Text(array), Layout::Offsets) => Arc::new(array.clone()),
            (Column::Text(array), Layout::Views) => Arc::new(views::of(array)),
            (Column::Views(array), Layout::Offsets) => Arc::new(array.iter().collect::<StringArray>()),
            (Column::Views(array), Layout::Views) => Arc::new(array.clone()),
            (Column::Texts(array), _) => Arc::new(array.clone()),
        }
    }
}
