//! Records as Arrow columns: filled by decoding, viewed by records, exported as batches. Knows kinds, not JSON.

mod build;
mod export;
mod json;
mod projection;
mod texts;
mod value;
mod views;

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, ListArray, NullArray, StringArray, StringViewArray};
use arrow_array::{TimestampMillisecondArray, cast::AsArray};

pub use build::ColumnsBuilder;
pub use export::{DecimalPolicy, NumericOverflow, batch, schema, schema_in};
pub use json::{from_json, to_json};
pub use projection::Projection;
pub use value::Value;

use crate::interface::{Kind, RecordType};

/// Layout of the strings of a column: one after the other, or anywhere with a view of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringLayout {
    Utf8,
    Utf8View,
}

/// The values of one field. Numbers that must not be rounded are kept as the strings that were sent.
#[derive(Clone, Debug)]
pub enum Column {
    Integer(Int64Array),
    Time(TimestampMillisecondArray),
    Boolean(BooleanArray),
    Utf8(StringArray),
    /// Views of the strings; those of a page are in the body of its response.
    Utf8View(StringViewArray),
    Utf8List(ListArray),
    /// Values that were not decoded.
    Skipped(NullArray),
}

impl Column {
    fn array(&self) -> &dyn Array {
        match self {
            Self::Integer(array) => array,
            Self::Time(array) => array,
            Self::Boolean(array) => array,
            Self::Utf8(array) => array,
            Self::Utf8View(array) => array,
            Self::Utf8List(array) => array,
            Self::Skipped(array) => array,
        }
    }

    fn slice(&self, offset: usize, length: usize) -> Self {
        match self {
            Self::Integer(array) => Self::Integer(array.slice(offset, length)),
            Self::Time(array) => Self::Time(array.slice(offset, length)),
            Self::Boolean(array) => Self::Boolean(array.slice(offset, length)),
            Self::Utf8(array) => Self::Utf8(array.slice(offset, length)),
            Self::Utf8View(array) => Self::Utf8View(array.slice(offset, length)),
            Self::Utf8List(array) => Self::Utf8List(array.slice(offset, length)),
            Self::Skipped(_) => Self::Skipped(NullArray::new(length)),
        }
    }

    /// Frees the unused ends of buffers.
    fn shrink_to_fit(&mut self) {
        match self {
            Self::Utf8(array) => array.shrink_to_fit(),
            Self::Utf8View(array) => array.shrink_to_fit(),
            Self::Utf8List(array) => array.shrink_to_fit(),
            // Their size is known before they are filled.
            Self::Integer(_) | Self::Time(_) | Self::Boolean(_) | Self::Skipped(_) => {}
        }
    }

    /// Number of bytes of all strings.
    fn text_size(&self) -> usize {
        match self {
            Self::Utf8(texts) => size_of_texts(texts),
            // A view begins with the length of its text. Their sum cannot overflow, since the texts are in memory.
            Self::Utf8View(texts) => {
                texts.views().iter().fold(0, |size: usize, view| size.wrapping_add(*view as u32 as usize))
            }
            Self::Utf8List(lists) => size_of_texts(lists.values().as_string()),
            _ => 0,
        }
    }
}

/// Strings of a column by their rows.
#[derive(Clone, Copy, Debug)]
pub enum Texts<'r> {
    Utf8(&'r StringArray),
    Utf8View(&'r StringViewArray),
    Other,
}

impl<'r> Texts<'r> {
    #[inline]
    pub fn get(self, row: usize) -> Option<&'r str> {
        match self {
            Self::Utf8(array) if array.is_valid(row) => Some(array.value(row)),
            Self::Utf8View(array) if array.is_valid(row) => Some(array.value(row)),
            _ => None,
        }
    }
}

fn size_of_texts(texts: &StringArray) -> usize {
    let offsets = texts.value_offsets();
    (offsets[offsets.len() - 1] - offsets[0]) as usize
}

/// Records of one type, column by column. Clones and slices share the data.
#[derive(Clone, Debug)]
pub struct Columns {
    record: &'static RecordType,
    /// One allocation, since pages are cloned often.
    columns: Arc<[Column]>,
    rows: usize,
}

impl PartialEq for Columns {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.record, other.record)
            && self.rows == other.rows
            && (0..self.rows)
                .all(|row| (0..self.columns.len()).all(|column| self.value(column, row) == other.value(column, row)))
    }
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

    /// Returns the rows with this argument in the column `queried`: they came from its list.
    pub fn with_queried(&self, argument: &str) -> Self {
        let mut queried = ListBuilder::new(StringBuilder::new()).with_field(export::item_field());
        for _ in 0..self.rows {
            queried.values().append_value(argument);
            queried.append(true);
        }
        let columns = self.columns.iter().cloned().chain([Column::Utf8List(queried.finish())]).collect();
        Self { record: self.record.with_queried(), columns, rows: self.rows }
    }

    /// True if some columns were not decoded.
    pub fn is_projected(&self) -> bool {
        self.columns.iter().any(|column| matches!(column, Column::Skipped(_)))
    }

    /// True if the values of a column are not there.
    pub fn is_skipped(&self, index: usize) -> bool {
        matches!(self.columns[index], Column::Skipped(_))
    }

    /// Returns the rows without the values of the columns that are not selected.
    pub fn select(&self, selection: Projection) -> Self {
        let columns = self.columns.iter().enumerate().map(|(index, column)| {
            if selection.contains(index) { column.clone() } else { Column::Skipped(NullArray::new(self.rows)) }
        });
        Self { record: self.record, columns: columns.collect(), rows: self.rows }
    }

    /// True if a record has one of the strings that identify it.
    pub fn has_key(&self, row: usize) -> bool {
        let keys = self.record.identity.iter().filter_map(|name| self.record.position(name));
        keys.filter_map(|column| self.text(column, row)).any(|text| !text.is_empty())
    }

    /// Heights of the rows; none if the records have no height, or it was not decoded.
    pub fn heights(&self) -> impl DoubleEndedIterator<Item = Option<i64>> + Clone + '_ {
        let heights = self.record.height().and_then(|column| match &self.columns[column] {
            Column::Integer(heights) => Some(heights),
            _ => None,
        });
        heights.into_iter().flatten()
    }

    /// Times of the rows, in Unix milliseconds; none if the records have no time, or it was not decoded.
    pub fn times(&self) -> impl Iterator<Item = Option<i64>> + '_ {
        let times = self.record.time().and_then(|column| match &self.columns[column] {
            Column::Time(times) => Some(times),
            _ => None,
        });
        times.into_iter().flatten()
    }

    pub fn kind(&self, index: usize) -> Kind {
        self.record.fields[index].kind
    }

    /// The value of one field in one row.
    pub fn value(&self, column: usize, row: usize) -> Value<'_> {
        Value::of(&self.columns[column], self.kind(column), row)
    }

    /// The number of a column that holds integers.
    pub fn integer(&self, column: usize, row: usize) -> Option<i64> {
        match &self.columns[column] {
            Column::Integer(numbers) if numbers.is_valid(row) => Some(numbers.value(row)),
            _ => None,
        }
    }

    /// The string of a column that holds strings.
    pub fn text(&self, column: usize, row: usize) -> Option<&str> {
        self.texts(column).get(row)
    }

    /// The strings of a column, for many rows; none if the column holds other values.
    pub fn texts(&self, column: usize) -> Texts<'_> {
        match &self.columns[column] {
            Column::Utf8(array) => Texts::Utf8(array),
            Column::Utf8View(array) => Texts::Utf8View(array),
            _ => Texts::Other,
        }
    }

    /// The strings of all rows of a column of lists.
    pub fn list_values(&self, column: usize) -> Option<impl Iterator<Item = Option<&str>>> {
        let Column::Utf8List(lists) = &self.columns[column] else { return None };
        let offsets = lists.value_offsets();
        let rows = offsets[0] as usize..offsets[self.rows] as usize;
        Some(lists.values().as_string::<i32>().iter().take(rows.end).skip(rows.start))
    }

    pub fn slice(&self, offset: usize, length: usize) -> Self {
        if length == self.rows {
            return self.clone();
        }
        let columns = self.columns.iter().map(|column| column.slice(offset, length)).collect();
        Self { record: self.record, columns, rows: length }
    }

    /// Returns the rows without the response that they were decoded from: a row that is kept would keep all of it.
    pub fn detached(&self) -> Self {
        let columns = self.columns.iter().map(|column| match column {
            Column::Utf8View(texts) => Column::Utf8(views::copied(texts)),
            other => other.clone(),
        });
        Self { record: self.record, columns: columns.collect(), rows: self.rows }
    }

    /// Frees the unused ends of buffers: those of strings double as they grow.
    pub fn shrink_to_fit(&mut self) {
        Arc::get_mut(&mut self.columns).into_iter().flatten().for_each(Column::shrink_to_fit);
    }

    /// Copies of these rows, in this order.
    pub fn take(&self, rows: &[u32]) -> Self {
        let mut taken = ColumnsBuilder::with_capacity_from(self, rows.len(), StringLayout::Utf8);
        for run in rows.chunk_by(|row, next| row + 1 == *next) {
            taken.append(&self.slice(run[0] as usize, run.len()));
        }
        taken.finish()
    }

    pub fn empty(record: &'static RecordType) -> Self {
        ColumnsBuilder::new(record, 0).finish()
    }

    /// Number of bytes of memory.
    pub fn get_array_memory_size(&self) -> usize {
        let columns = self.columns.iter().map(|column| match column {
            Column::Utf8View(texts) => size_of_val::<[u128]>(texts.views()),
            other => other.array().get_array_memory_size(),
        });
        // All views of a page point into one body.
        let body = self.columns.iter().find_map(|column| match column {
            Column::Utf8View(texts) => Some(texts.data_buffers().iter().map(|buffer| buffer.len()).sum::<usize>()),
            _ => None,
        });
        columns.sum::<usize>() + body.unwrap_or(0)
    }

    /// Number of bytes of all strings.
    pub fn text_size(&self) -> usize {
        self.columns.iter().map(Column::text_size).sum()
    }

    /// About the bytes that a copy of the rows takes.
    pub fn copied_size(&self) -> usize {
        self.text_size() + self.rows * self.columns.len() * size_of::<i64>()
    }

    fn share(&self, index: usize, layout: StringLayout) -> ArrayRef {
        match (&self.columns[index], layout) {
            (Column::Utf8(array), StringLayout::Utf8View) => Arc::new(views::of(array)),
            (Column::Utf8View(array), StringLayout::Utf8) => Arc::new(array.iter().collect::<StringArray>()),
            (Column::Skipped(_), _) => unreachable!("the schema of a projected result has decoded columns only"),
            (column, _) => column.array().slice(0, self.rows),
        }
    }
}
