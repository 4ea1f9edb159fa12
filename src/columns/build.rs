//! Filling columns value by value, in any order of members.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, TimestampMillisecondBuilder};
use arrow_array::{Array, cast::AsArray};
use arrow_buffer::Buffer;
use bytes::Bytes;

use super::views::Views;
use super::{Column, Columns, Layout};
use crate::interface::{Kind, Malformed, RecordType};

/// Hashes and addresses of 66 and 42 characters make up most of the text.
const EXPECTED_TEXT: usize = 48;
/// Room is made for so much text at most: a service may be wrong about how many records are to come.
const MOST_TEXT: usize = 64 << 20;

enum Builder {
    Integer(Int64Builder),
    Time(TimestampMillisecondBuilder),
    Flag(BooleanBuilder),
    Text(StringBuilder),
    Views(Views),
    Texts(ListBuilder<StringBuilder>),
}

impl Builder {
    fn new(kind: Kind, rows: usize, text: usize, layout: Layout) -> Self {
        match kind {
            Kind::Integer => Self::Integer(Int64Builder::with_capacity(rows)),
            Kind::Time => {
                Self::Time(TimestampMillisecondBuilder::with_capacity(rows).with_timezone(super::export::UTC))
            }
            Kind::Flag => Self::Flag(BooleanBuilder::with_capacity(rows)),
            Kind::Amount | Kind::Estimate | Kind::RawInteger | Kind::Text | Kind::Direction => match layout {
                Layout::Offsets => Self::Text(StringBuilder::with_capacity(rows, text)),
                Layout::Views => Self::Views(Views::with_capacity(rows, text)),
            },
            Kind::Texts => Self::Texts(
                ListBuilder::with_capacity(StringBuilder::new(), rows).with_field(super::export::item_field()),
            ),
        }
    }

    fn append_null(&mut self) {
        match self {
            Self::Integer(builder) => builder.append_null(),
            Self::Time(builder) => builder.append_null(),
            Self::Flag(builder) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Views(views) => views.append_null(),
            Self::Texts(builder) => builder.append_null(),
        }
    }

    /// Appends all values of a column of the same kind.
    fn append(&mut self, column: &Column) {
        match (self, column) {
            (Self::Integer(builder), Column::Integer(values)) => builder.append_array(values),
            (Self::Time(builder), Column::Time(values)) => builder.append_array(values),
            (Self::Flag(builder), Column::Flag(values)) => builder.append_array(values),
            (Self::Text(builder), Column::Text(values)) => {
                builder.append_array(values).expect("columns are closed long before their text outgrows its offsets");
            }
            (Self::Text(builder), Column::Views(values)) if values.null_count() == 0 => {
                (0..values.len()).for_each(|row| builder.append_value(values.value(row)));
            }
            (Self::Text(builder), Column::Views(values)) => builder.extend(values),
            (Self::Views(views), Column::Text(values)) => views.append_all(&super::views::of(values)),
            (Self::Views(views), Column::Views(values)) => views.append_all(values),
            (Self::Texts(builder), Column::Texts(lists)) => {
                for list in lists.iter() {
                    if let Some(list) = &list {
                        let items = list.as_string::<i32>();
                        builder.values().append_array(items).expect("likewise");
                    }
                    builder.append(list.is_some());
                }
            }
            _ => unreachable!("columns of one record type are of the same kinds"),
        }
    }

    fn finish(&mut self, answer: &Arc<[Buffer]>) -> Column {
        match self {
            Self::Integer(builder) => Column::Integer(builder.finish()),
            Self::Time(builder) => Column::Time(builder.finish()),
            Self::Flag(builder) => Column::Flag(builder.finish()),
            Self::Text(builder) => Column::Text(builder.finish()),
            Self::Views(views) => Column::Views(views.finish(answer)),
            Self::Texts(builder) => Column::Texts(builder.finish()),
        }
    }
}

/// Columns in the making. A row is filled by putting values in any order and ended by `end_row`.
pub struct ColumnsBuilder {
    record: &'static RecordType,
    builders: Vec<Builder>,
    /// The answer that the rows are read from, if any.
    answer: Buffer,
    /// Bit i: column i has its value for the current row.
    filled: u64,
    /// Bit i: column i was sent as empty text, which stands unless a value follows under another spelling.
    empty: u64,
    rows: usize,
}

impl ColumnsBuilder {
    pub fn new(record: &'static RecordType, rows: usize) -> Self {
        Self::made(record, |_, kind| Builder::new(kind, rows, rows * EXPECTED_TEXT, Layout::Offsets))
    }

    /// For the rows of an answer, whose texts stay there.
    pub fn of_page(record: &'static RecordType, rows: usize, body: &Bytes) -> Self {
        let made = Self::made(record, |_, kind| Builder::new(kind, rows, 0, Layout::Views));
        Self { answer: Buffer::from(body.clone()), ..made }
    }

    /// For so many rows, of which these are the first: what has to grow is copied on the way.
    pub fn beginning_with(page: &Columns, rows: usize, layout: Layout) -> Self {
        let rows = rows.min(MOST_TEXT / (page.text_size() / page.rows.max(1)).max(1)).max(page.rows);
        Self::made(page.record, |column, kind| {
            let text = page.columns[column].text_size() * rows / page.rows.max(1);
            // Numbers are mostly read from their text, which is then let go: the less it is, the better.
            let layout = if matches!(kind, Kind::Amount | Kind::Estimate) { Layout::Offsets } else { layout };
            Builder::new(kind, rows, text + text / 16, layout)
        })
    }

    fn made(record: &'static RecordType, builder: impl Fn(usize, Kind) -> Builder) -> Self {
        assert!(record.fields.len() <= 64, "rows are tracked in 64 bits");
        let builders = record.fields.iter().enumerate().map(|(column, field)| builder(column, field.kind)).collect();
        Self { record, builders, answer: Buffer::default(), filled: 0, empty: 0, rows: 0 }
    }

    /// Whether the column has no value for this row yet; from now on it has.
    fn is_open(&mut self, column: usize) -> bool {
        let before = self.filled;
        self.filled |= 1 << column;
        self.filled != before
    }

    /// The builder to append one value to, unless the column already has one for this row.
    fn slot(&mut self, column: usize) -> Option<&mut Builder> {
        self.is_open(column).then(|| &mut self.builders[column])
    }

    /// Puts a value by the text it was sent as. Where both spellings of a pair came, the first value stands, but the
    /// second is still looked at.
    pub fn put_text(&mut self, column: usize, text: &str) -> Result<(), Malformed> {
        match self.record.fields[column].kind {
            Kind::Integer => {
                let value = Kind::integer(text)?;
                if let Some(Builder::Integer(integers)) = self.slot(column) {
                    integers.append_value(value);
                }
            }
            Kind::Time => self.put_time(column, Kind::time(text)?.0),
            Kind::Flag => self.put_flag(column, Kind::flag(text)?),
            Kind::Amount | Kind::Estimate => {
                Kind::number(text)?;
                self.append_text(column, text);
            }
            Kind::RawInteger => self.append_text(column, &Kind::raw_integer(text)?),
            Kind::Text | Kind::Direction => self.append_text(column, text),
            Kind::Texts => return Err(Malformed("an array of texts")),
        }
        Ok(())
    }

    /// Unix milliseconds.
    pub fn put_time(&mut self, column: usize, milliseconds: i64) {
        if let Some(Builder::Time(times)) = self.slot(column) {
            times.append_value(milliseconds);
        }
    }

    pub fn put_flag(&mut self, column: usize, value: bool) {
        if let Some(Builder::Flag(flags)) = self.slot(column) {
            flags.append_value(value);
        }
    }

    pub fn put_texts(&mut self, column: usize, items: &[impl AsRef<str>]) {
        if let Some(Builder::Texts(lists)) = self.slot(column) {
            for item in items {
                lists.values().append_value(item.as_ref());
            }
            lists.append(true);
        }
    }

    fn append_text(&mut self, column: usize, text: &str) {
        if self.is_open(column) {
            match &mut self.builders[column] {
                Builder::Text(texts) => texts.append_value(text),
                Builder::Views(views) => views.append(text, &self.answer),
                _ => {}
            }
        }
    }

    /// Text columns keep an empty text; for all others it is no value.
    pub fn put_empty(&mut self, column: usize) {
        if matches!(self.record.fields[column].kind, Kind::Text | Kind::Direction) {
            self.empty |= 1 << column;
        }
    }

    pub fn end_row(&mut self) {
        let all = if self.builders.len() == 64 { u64::MAX } else { (1 << self.builders.len()) - 1 };
        let mut open = all & !self.filled;
        while open != 0 {
            let column = open.trailing_zeros() as usize;
            match &mut self.builders[column] {
                Builder::Text(builder) if self.empty & (1 << column) != 0 => builder.append_value(""),
                Builder::Views(views) if self.empty & (1 << column) != 0 => views.append("", &self.answer),
                builder => builder.append_null(),
            }
            open &= open - 1;
        }
        self.filled = 0;
        self.empty = 0;
        self.rows += 1;
    }

    /// Appends whole rows, which are copied.
    pub fn append(&mut self, rows: &Columns) {
        for (builder, column) in self.builders.iter_mut().zip(rows.columns.iter()) {
            builder.append(column);
        }
        self.rows += rows.rows;
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns, which are no longer here.
    pub fn finish(&mut self) -> Columns {
        let answer = std::mem::take(&mut self.answer);
        let answer = if answer.is_empty() { Arc::new([]) as Arc<[Buffer]> } else { Arc::new([answer]) };
        let columns = self.builders.iter_mut().map(|builder| builder.finish(&answer)).collect();
        Columns { record: self.record, columns, rows: std::mem::take(&mut self.rows) }
    }
}
