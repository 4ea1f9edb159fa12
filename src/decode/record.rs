//! Decodes records: members in any order and any spelling, missing or unknown; each value by its kind.

use super::decoder::{Decoder, Key};
use super::error::DecodeError;
use super::json::ValueKind;
use super::members::{TWICE, Use};
use super::reader::Reader;
use crate::columns::ColumnsBuilder;
use crate::interface::{Kind, ParseError};

/// A record that is being decoded.
struct Record {
    /// Index of its first byte.
    start: usize,
    /// Bit i: the member of column i came.
    columns: u64,
    /// Bit i: a later spelling of column i was skipped.
    skipped: u64,
}

impl Decoder {
    /// Decodes the next value as records: an array, one object where an array is documented, or null for none.
    pub(super) fn records(&self, reader: &mut Reader<'_>, rows: &mut ColumnsBuilder) -> Result<(), DecodeError> {
        match reader.peek()? {
            ValueKind::Null => reader.skip(),
            ValueKind::Object => self.record(reader, rows),
            ValueKind::Array => reader.array(|reader, peek| match peek {
                ValueKind::Object => self.record(reader, rows),
                _ => Err(reader.error("expected a record (an object)")),
            }),
            _ => Err(reader.error("expected an array of records")),
        }
    }

    fn record(&self, reader: &mut Reader<'_>, rows: &mut ColumnsBuilder) -> Result<(), DecodeError> {
        if rows.rows() >= reader.record_limit {
            return Err(reader.error(format!("the response has more than {} records", reader.record_limit)));
        }
        let mut record = Record { start: reader.json.current_index(), columns: 0, skipped: 0 };
        let mut hint = 0;
        let mut is_after_value = false;
        let mut more = reader.json.enter(b'}')?;
        while more {
            // Nearly always the next declared member follows, without whitespace.
            let expected = self.expected(hint).filter(|key| reader.json.consume(key.written(is_after_value)));
            if let Some(key) = expected {
                hint += 1;
                is_after_value = true;
                if !self.plain(reader, key, &mut record, rows) {
                    self.member(reader, Some(key.column), hint, &mut record, rows)?;
                }
            } else if is_after_value {
                is_after_value = false;
                more = reader.json.next_element(b'}')?;
            } else {
                let name = reader.json.key()?;
                let column = self.column(name, &mut hint);
                if column.is_none() {
                    reader.members.add_unknown(name);
                }
                self.member(reader, column, hint, &mut record, rows)?;
                is_after_value = true;
            }
        }
        if record.columns & self.identity == 0 {
            return Err(self.unidentified(reader, record.start));
        }
        if reader.json.has_replaced {
            self.replaced(reader, record.start)?;
        }
        reader.members.add_record(record.columns);
        rows.finish_row();
        Ok(())
    }

    /// Reads the value of a member that is written plainly, as nearly all are. False if the next value is another one, and was
    /// not read.
    #[inline]
    fn plain(&self, reader: &mut Reader<'_>, key: &Key, record: &mut Record, rows: &mut ColumnsBuilder) -> bool {
        if key.plain & reader.projection.mask() & !record.columns == 0 {
            return false;
        }
        let end = if key.kind == Kind::Boolean {
            let flag = reader.json.plain_boolean();
            flag.map(|(value, end)| {
                rows.append_bool(key.column, value);
                end
            })
        } else {
            let text = reader.json.plain_string();
            text.filter(|(text, _)| rows.append_plain(key.column, key.kind, text)).map(|(_, end)| end)
        };
        let Some(end) = end else { return false };
        reader.json.seek(end);
        record.columns |= key.plain;
        true
    }

    #[inline]
    fn member(
        &self,
        reader: &mut Reader<'_>,
        column: Option<usize>,
        hint: usize,
        record: &mut Record,
        rows: &mut ColumnsBuilder,
    ) -> Result<(), DecodeError> {
        let Some(column) = column else { return reader.skip() };
        let is_again = record.columns & 1 << column != 0;
        let is_later_spelling = hint > self.record.fields.len();
        if (is_again || is_later_spelling) && self.conflict(reader, record, column, hint)? == Use::Skip {
            return reader.skip();
        }
        record.columns |= 1 << column;
        if !reader.projection.contains(column) {
            return reader.skip();
        }
        self.cell(reader, column, rows).map_err(|error| error.member(self.spelling(hint)))
    }

    /// Decides about a member that may not be the only one of its column. Apart, so that the loop over members is small.
    #[inline(never)]
    fn conflict(
        &self,
        reader: &mut Reader<'_>,
        record: &mut Record,
        column: usize,
        hint: usize,
    ) -> Result<Use, DecodeError> {
        let decided = self.use_of(reader, record, column, hint);
        decided.map_err(|error| error.member(self.spelling(hint)))
    }

    fn use_of(
        &self,
        reader: &mut Reader<'_>,
        record: &mut Record,
        column: usize,
        hint: usize,
    ) -> Result<Use, DecodeError> {
        if hint > self.record.fields.len() && self.record.fields[column].is_hex {
            if record.skipped & 1 << column != 0 {
                return Err(reader.error(TWICE));
            }
            if self.loose(reader, record.start, hint - 1)? == Use::Skip {
                record.skipped |= 1 << column;
                return Ok(Use::Skip);
            }
        }
        if record.columns & 1 << column == 0 {
            return Ok(Use::Read);
        }
        self.repeated(reader, record.start, hint - 1)
    }

    fn cell(&self, reader: &mut Reader<'_>, column: usize, rows: &mut ColumnsBuilder) -> Result<(), DecodeError> {
        let kind = self.record.fields[column].kind;
        let peek = reader.peek()?;
        let start = reader.json.current_index();
        let read = match peek {
            ValueKind::Null => return reader.skip(),
            ValueKind::String => {
                let text = reader.json.string()?;
                if text.is_empty() {
                    rows.append_empty(column);
                    return Ok(());
                }
                let text = if kind == Kind::Direction { self.deployment.direction(text) } else { text };
                rows.append_str(column, text)
            }
            ValueKind::True | ValueKind::False if kind == Kind::Boolean => {
                let value = reader.json.boolean(peek)?;
                rows.append_bool(column, value);
                Ok(())
            }
            ValueKind::Array if kind == Kind::Utf8List => return string_list(reader, column, rows),
            ValueKind::Number if !matches!(kind, Kind::Boolean | Kind::Utf8List) => {
                rows.append_str(column, reader.json.number()?)
            }
            _ => return Err(reader.error(format!("expected {}", expected(kind)))),
        };
        read.map_err(|ParseError(expected)| {
            DecodeError::new(format!("expected {expected}"), start..reader.json.current_index())
        })
    }
}

fn string_list(reader: &mut Reader<'_>, column: usize, rows: &mut ColumnsBuilder) -> Result<(), DecodeError> {
    let mut list = rows.start_list(column);
    reader.array(|reader, peek| {
        if peek != ValueKind::String {
            return Err(reader.error("expected a string"));
        }
        let item = reader.json.string()?;
        if let Some(list) = &mut list {
            list.values().append_value(item);
        }
        Ok(())
    })?;
    if let Some(list) = list {
        list.append(true);
    }
    Ok(())
}

fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer | Kind::Uint256 => "an integer",
        Kind::Time => "a Unix time in milliseconds",
        Kind::Boolean => "true or false",
        Kind::Amount | Kind::ApproxDecimal => "a decimal number",
        Kind::Utf8 | Kind::Direction => "a string",
        Kind::Utf8List => "an array of strings",
    }
}
