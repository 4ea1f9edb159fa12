//! Decodes records: members in any order and any spelling, missing or unknown; each value by its kind.

use super::decoder::Decoder;
use super::error::DecodeError;
use super::json::{Json, SyntaxError, ValueKind};
use super::members::{Members, TWICE, Use};
use crate::columns::{ColumnsBuilder, Projection};
use crate::interface::{Kind, ParseError};

/// A cursor in the JSON of a response.
pub(super) struct Reader<'j> {
    pub json: Json<'j>,
    /// Most records to decode.
    record_limit: usize,
    /// Columns to decode. The values of others are checked for syntax only.
    pub projection: Projection,
    /// Members of the records so far.
    pub members: Members,
}

/// A record that is being decoded.
struct Record {
    /// Index of its first byte.
    start: usize,
    /// Bit i: the member of column i came.
    columns: u64,
    /// Bit i: a later spelling of column i was skipped.
    skipped: u64,
}

pub(super) fn syntax(error: SyntaxError) -> DecodeError {
    DecodeError::syntax(error)
}

impl<'j> Reader<'j> {
    pub fn new(body: &'j [u8], record_limit: usize, projection: Projection) -> Self {
        Self { json: Json::new(body), record_limit, projection, members: Members::default() }
    }

    #[inline]
    pub fn peek(&mut self) -> Result<ValueKind, DecodeError> {
        self.json.peek().map_err(syntax)
    }

    /// Skips a value of any type.
    pub fn skip(&mut self) -> Result<(), DecodeError> {
        self.json.skip().map_err(syntax)
    }

    /// An error about the next value, with the value in its excerpt.
    pub fn error(&mut self, problem: impl Into<String>) -> DecodeError {
        let start = self.json.current_index();
        match self.skip() {
            Ok(()) => DecodeError::new(problem, start..self.json.current_index()),
            Err(syntax) => syntax,
        }
    }

    /// Calls `each` for every member of the next object, with the reader at the member's value.
    pub fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut name = String::new();
        let mut more = self.json.enter(b'}').map_err(syntax)?;
        while more {
            name.clear();
            name.push_str(self.json.key().map_err(syntax)?);
            self.peek()?;
            each(self, &name).map_err(|error| error.member(&name))?;
            more = self.json.next_element(b'}').map_err(syntax)?;
        }
        Ok(())
    }

    /// Calls `each` for every item of the next array, with the reader at the item.
    pub fn array(
        &mut self,
        mut each: impl FnMut(&mut Self, ValueKind) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut index = 0;
        let mut more = self.json.enter(b']').map_err(syntax)?;
        while more {
            let peek = self.peek()?;
            each(self, peek).map_err(|error| error.index(index))?;
            index += 1;
            more = self.json.next_element(b']').map_err(syntax)?;
        }
        Ok(())
    }
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
        let mut more = reader.json.enter(b'}').map_err(syntax)?;
        while more {
            let name = reader.json.key().map_err(syntax)?;
            let column = self.column(name, &mut hint);
            if column.is_none() {
                reader.members.add_unknown(name);
            }
            self.member(reader, column, hint, &mut record, rows)?;
            // Nearly always the next declared member follows, without whitespace.
            while let Some((written, column)) = self.expected(hint)
                && reader.json.consume(written)
            {
                hint += 1;
                self.member(reader, Some(column), hint, &mut record, rows)?;
            }
            more = reader.json.next_element(b'}').map_err(syntax)?;
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
        let (came, is_later_spelling) = (record.columns & 1 << column != 0, hint > self.record.fields.len());
        if (came || is_later_spelling) && self.conflict(reader, record, column, hint)? == Use::Skip {
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
        let at_member = |error: DecodeError| error.member(self.spelling(hint));
        if hint > self.record.fields.len() && self.record.fields[column].is_hex {
            let is_again = record.skipped & 1 << column != 0;
            if is_again || self.loose(reader, record.start, hint - 1).map_err(at_member)? == Use::Skip {
                record.skipped |= 1 << column;
                return if is_again { Err(at_member(reader.error(TWICE))) } else { Ok(Use::Skip) };
            }
        }
        if record.columns & 1 << column == 0 {
            return Ok(Use::Read);
        }
        self.repeated(reader, record.start, hint - 1).map_err(at_member)
    }

    fn cell(&self, reader: &mut Reader<'_>, column: usize, rows: &mut ColumnsBuilder) -> Result<(), DecodeError> {
        let kind = self.record.fields[column].kind;
        let peek = reader.peek()?;
        let start = reader.json.current_index();
        let read = match peek {
            ValueKind::Null => return reader.skip(),
            ValueKind::String => {
                let text = reader.json.string().map_err(syntax)?;
                if text.is_empty() {
                    rows.append_empty(column);
                    return Ok(());
                }
                let text = if kind == Kind::Direction { self.deployment.direction(text) } else { text };
                rows.append_str(column, text)
            }
            ValueKind::True | ValueKind::False if kind == Kind::Boolean => {
                let value = reader.json.boolean(peek).map_err(syntax)?;
                rows.append_bool(column, value);
                Ok(())
            }
            ValueKind::Array if kind == Kind::Utf8List => return string_list(reader, column, rows),
            ValueKind::Number if !matches!(kind, Kind::Boolean | Kind::Utf8List) => {
                rows.append_str(column, reader.json.number().map_err(syntax)?)
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
        let item = reader.json.string().map_err(syntax)?;
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
