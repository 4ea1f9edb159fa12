//! Builders that fill columns value by value, in any order of members.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, TimestampMillisecondBuilder};
use arrow_array::{Array, NullArray, cast::AsArray};
use arrow_buffer::Buffer;
use bytes::Bytes;

use super::texts::TextBuilder;
use super::views::StringViewBuilder;
use super::{Column, Columns, Projection, StringLayout};
use crate::interface::{Kind, ParseError, RecordType, is_plain, whole};

/// Expected length of a string: most are hashes and addresses of 66 and 42 characters.
const EXPECTED_LEN: usize = 48;
/// Most bytes of strings that are allocated ahead: a service may be wrong about the number of records.
const MAX_PREALLOC: usize = 64 << 20;

enum Builder {
    Integer(Int64Builder),
    Time(TimestampMillisecondBuilder),
    Boolean(BooleanBuilder),
    Utf8(TextBuilder),
    Utf8View(StringViewBuilder),
    Utf8List(ListBuilder<StringBuilder>),
    /// Number of values that were not decoded.
    Skipped(usize),
}

impl Builder {
    fn new(kind: Kind, rows: usize, text: usize, layout: StringLayout) -> Self {
        match kind {
            Kind::Integer => Self::Integer(Int64Builder::with_capacity(rows)),
            Kind::Time => {
                Self::Time(TimestampMillisecondBuilder::with_capacity(rows).with_timezone(super::export::UTC))
            }
            Kind::Boolean => Self::Boolean(BooleanBuilder::with_capacity(rows)),
            Kind::Amount | Kind::ApproxDecimal | Kind::Uint256 | Kind::Utf8 | Kind::Direction => match layout {
                StringLayout::Utf8 => Self::Utf8(TextBuilder::with_capacity(rows, text)),
                StringLayout::Utf8View => Self::Utf8View(StringViewBuilder::with_capacity(rows, text)),
            },
            Kind::Utf8List => Self::Utf8List(
                ListBuilder::with_capacity(StringBuilder::new(), rows).with_field(super::export::item_field()),
            ),
        }
    }

    fn append_null(&mut self) {
        match self {
            Self::Integer(builder) => builder.append_null(),
            Self::Time(builder) => builder.append_null(),
            Self::Boolean(builder) => builder.append_null(),
            Self::Utf8(builder) => builder.append_null(),
            Self::Utf8View(views) => views.append_null(),
            Self::Utf8List(builder) => builder.append_null(),
            Self::Skipped(rows) => *rows += 1,
        }
    }

    /// Appends all values of a column of the same kind.
    fn append(&mut self, column: &Column) {
        match (self, column) {
            (Self::Integer(builder), Column::Integer(values)) => builder.append_array(values),
            (Self::Time(builder), Column::Time(values)) => builder.append_array(values),
            (Self::Boolean(builder), Column::Boolean(values)) => builder.append_array(values),
            (Self::Utf8(texts), Column::Utf8(values)) => texts.append_all(values),
            (Self::Utf8(texts), Column::Utf8View(values)) => texts.append_views(values),
            (Self::Utf8View(views), Column::Utf8(values)) => views.append_all(&super::views::of(values)),
            (Self::Utf8View(views), Column::Utf8View(values)) => views.append_all(values),
            (Self::Utf8List(builder), Column::Utf8List(lists)) => {
                for list in lists.iter() {
                    if let Some(list) = &list {
                        let items = list.as_string::<i32>();
                        builder
                            .values()
                            .append_array(items)
                            .expect("columns are finished long before 32-bit offsets end");
                    }
                    builder.append(list.is_some());
                }
            }
            (Self::Skipped(rows), values) => *rows += values.array().len(),
            // Decoded after all, for a page of the same run whose records have no keys.
            (builder, Column::Skipped(values)) => (0..values.len()).for_each(|_| builder.append_null()),
            _ => unreachable!("columns of one record type are of the same kinds"),
        }
    }

    fn finish(&mut self, body: &Arc<[Buffer]>) -> Column {
        match self {
            Self::Integer(builder) => Column::Integer(builder.finish()),
            Self::Time(builder) => Column::Time(builder.finish()),
            Self::Boolean(builder) => Column::Boolean(builder.finish()),
            Self::Utf8(builder) => Column::Utf8(builder.finish()),
            Self::Utf8View(views) => Column::Utf8View(views.finish(body)),
            Self::Utf8List(builder) => Column::Utf8List(builder.finish()),
            Self::Skipped(rows) => Column::Skipped(NullArray::new(std::mem::take(rows))),
        }
    }
}

/// Columns that are being built. A row gets its values in any order and is ended by `finish_row`.
pub struct ColumnsBuilder {
    record: &'static RecordType,
    builders: Vec<Builder>,
    /// The response body that the rows are read from, if any.
    body: Buffer,
    /// Bit i: column i has its value for the current row.
    filled: u64,
    /// Bit i: column i was sent as an empty string, which is kept unless a value follows under another spelling.
    empty: u64,
    rows: usize,
}

impl ColumnsBuilder {
    pub fn new(record: &'static RecordType, rows: usize) -> Self {
        Self::with_builders(record, |_, kind| Builder::new(kind, rows, rows * EXPECTED_LEN, StringLayout::Utf8))
    }

    /// For the rows of a response, whose strings stay in its body.
    pub fn of_page(record: &'static RecordType, rows: usize, body: &Bytes, projection: Projection) -> Self {
        // A page may have far fewer rows than were requested.
        let rows = rows.min(body.len() / EXPECTED_LEN + 1);
        let builder = Self::with_builders(record, |column, kind| {
            if projection.contains(column) {
                Builder::new(kind, rows, 0, StringLayout::Utf8View)
            } else {
                Builder::Skipped(0)
            }
        });
        Self { body: Buffer::from(body.clone()), ..builder }
    }

    /// With capacity for `rows` rows like those of `page`: a builder that has to grow copies.
    pub fn with_capacity_from(page: &Columns, rows: usize, layout: StringLayout) -> Self {
        let rows = rows.min(MAX_PREALLOC / (page.text_size() / page.rows.max(1)).max(1)).max(page.rows);
        Self::with_builders(page.record, |column, kind| {
            if matches!(page.columns[column], Column::Skipped(_)) {
                return Builder::Skipped(0);
            }
            let text = page.columns[column].text_size() * rows / page.rows.max(1);
            // Numbers are mostly read from their strings, which are then dropped: the smaller, the better.
            let layout = if matches!(kind, Kind::Amount | Kind::ApproxDecimal) { StringLayout::Utf8 } else { layout };
            Builder::new(kind, rows, text + text / 16, layout)
        })
    }

    fn with_builders(record: &'static RecordType, builder: impl Fn(usize, Kind) -> Builder) -> Self {
        assert!(record.fields.len() <= 64, "rows are tracked in 64 bits");
        let builders = record.fields.iter().enumerate().map(|(column, field)| builder(column, field.kind)).collect();
        Self { record, builders, body: Buffer::default(), filled: 0, empty: 0, rows: 0 }
    }

    /// True if the column has no value for this row yet. Marks it as having one.
    fn is_open(&mut self, column: usize) -> bool {
        let before = self.filled;
        self.filled |= 1 << column;
        self.filled != before
    }

    /// The builder of a column, unless the column already has a value for this row.
    fn slot(&mut self, column: usize) -> Option<&mut Builder> {
        self.is_open(column).then(|| &mut self.builders[column])
    }

    /// Appends a value as it was sent. Where both spellings of a field came, the first value is kept, and the second is
    /// still checked.
    pub fn append_str(&mut self, column: usize, text: &str) -> Result<(), ParseError> {
        match self.record.fields[column].kind {
            Kind::Integer => {
                let value = Kind::integer(text)?;
                if let Some(Builder::Integer(integers)) = self.slot(column) {
                    integers.append_value(value);
                }
            }
            Kind::Time => self.append_time(column, Kind::time(text)?.0),
            Kind::Boolean => self.append_bool(column, Kind::flag(text)?),
            Kind::Amount | Kind::ApproxDecimal => {
                Kind::number(text)?;
                self.append_text(column, text);
            }
            Kind::Uint256 => self.append_text(column, &Kind::raw_integer(text)?),
            Kind::Utf8 | Kind::Direction => self.append_text(column, text),
            Kind::Utf8List => return Err(ParseError("an array of strings")),
        }
        Ok(())
    }

    /// Unix milliseconds.
    pub fn append_time(&mut self, column: usize, milliseconds: i64) {
        if let Some(Builder::Time(times)) = self.slot(column) {
            times.append_value(milliseconds);
        }
    }

    pub fn append_bool(&mut self, column: usize, value: bool) {
        if let Some(Builder::Boolean(flags)) = self.slot(column) {
            flags.append_value(value);
        }
    }

    /// The builder of a list column, unless the column already has a value for this row.
    pub fn start_list(&mut self, column: usize) -> Option<&mut ListBuilder<StringBuilder>> {
        match self.slot(column) {
            Some(Builder::Utf8List(lists)) => Some(lists),
            _ => None,
        }
    }

    pub fn append_list(&mut self, column: usize, items: &[impl AsRef<str>]) {
        if let Some(lists) = self.start_list(column) {
            for item in items {
                lists.values().append_value(item.as_ref());
            }
            lists.append(true);
        }
    }

    /// Appends a value that is written as nearly all are: a text, digits, or a time. The column must not have
    /// one for this row. Returns false, and appends nothing, if the value is written in another way.
    #[inline]
    pub fn append_plain(&mut self, column: usize, kind: Kind, text: &str) -> bool {
        match (kind, &mut self.builders[column]) {
            (Kind::Utf8, Builder::Utf8View(_)) if text.is_empty() => {
                self.empty |= 1 << column;
                return true;
            }
            (Kind::Utf8, Builder::Utf8View(views)) => views.append(text, &self.body),
            (Kind::Amount | Kind::ApproxDecimal, Builder::Utf8View(views)) if is_plain(text) => {
                views.append(text, &self.body);
            }
            (Kind::Integer, Builder::Integer(integers)) => match whole(text) {
                Some(value) => integers.append_value(value),
                None => return false,
            },
            (Kind::Time, Builder::Time(times)) => match Kind::time(text) {
                Ok(value) => times.append_value(value.0),
                Err(_) => return false,
            },
            _ => return false,
        }
        self.filled |= 1 << column;
        true
    }

    #[inline]
    fn append_text(&mut self, column: usize, text: &str) {
        if self.is_open(column) {
            match &mut self.builders[column] {
                Builder::Utf8(texts) => texts.append(text),
                Builder::Utf8View(views) => views.append(text, &self.body),
                _ => {}
            }
        }
    }

    /// Appends an empty string, which is a value of string columns alone.
    pub fn append_empty(&mut self, column: usize) {
        if matches!(self.record.fields[column].kind, Kind::Utf8 | Kind::Direction) {
            self.empty |= 1 << column;
        }
    }

    pub fn finish_row(&mut self) {
        let all = if self.builders.len() == 64 { u64::MAX } else { (1 << self.builders.len()) - 1 };
        let mut open = all & !self.filled;
        while open != 0 {
            let column = open.trailing_zeros() as usize;
            match &mut self.builders[column] {
                Builder::Utf8(texts) if self.empty & (1 << column) != 0 => texts.append(""),
                Builder::Utf8View(views) if self.empty & (1 << column) != 0 => views.append("", &self.body),
                builder => builder.append_null(),
            }
            open &= open - 1;
        }
        self.filled = 0;
        self.empty = 0;
        self.rows += 1;
    }

    /// Appends copies of whole rows.
    pub fn append(&mut self, rows: &Columns) {
        for (builder, column) in self.builders.iter_mut().zip(rows.columns.iter()) {
            builder.append(column);
        }
        self.rows += rows.rows;
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the columns and leaves the builder empty.
    pub fn finish(&mut self) -> Columns {
        let body = std::mem::take(&mut self.body);
        let body = if body.is_empty() { Arc::new([]) as Arc<[Buffer]> } else { Arc::new([body]) };
        let columns = self.builders.iter_mut().map(|builder| builder.finish(&body)).collect();
        Columns { record: self.record, columns, rows: std::mem::take(&mut self.rows) }
    }
}
