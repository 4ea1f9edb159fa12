//! One record: members in any order, any spelling, missing or unknown; each value read by its kind.

use super::json::{Broken, Json, Peek};
use super::layout::Decoder;
use super::undecodable::Undecodable;
use crate::columns::ColumnsBuilder;
use crate::interface::{Kind, Malformed};

/// A cursor in an answer's JSON.
pub(super) struct Reader<'j> {
    pub json: Json<'j>,
}

pub(super) fn syntax(error: Broken) -> Undecodable {
    Undecodable::syntax(error)
}

impl<'j> Reader<'j> {
    pub fn new(body: &'j [u8]) -> Self {
        Self { json: Json::new(body) }
    }

    #[inline]
    pub fn peek(&mut self) -> Result<Peek, Undecodable> {
        self.json.peek().map_err(syntax)
    }

    /// Passes over a value of any type.
    pub fn skip(&mut self) -> Result<(), Undecodable> {
        self.json.skip().map_err(syntax)
    }

    /// Refuses the value that stands here, showing it.
    pub fn refuse(&mut self, problem: impl Into<String>) -> Undecodable {
        let start = self.json.current_index();
        match self.skip() {
            Ok(()) => Undecodable::new(problem, start..self.json.current_index()),
            Err(syntax) => syntax,
        }
    }

    /// Calls `each` for every member of the object that stands here, with the reader at its value.
    pub fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<(), Undecodable>,
    ) -> Result<(), Undecodable> {
        let mut name = String::new();
        let mut more = self.json.open(b'}').map_err(syntax)?;
        while more {
            name.clear();
            name.push_str(self.json.key().map_err(syntax)?);
            self.peek()?;
            each(self, &name).map_err(|error| error.member(&name))?;
            more = self.json.more(b'}').map_err(syntax)?;
        }
        Ok(())
    }

    /// Calls `each` for every item of the array that stands here, with the reader at the item.
    pub fn array(
        &mut self,
        mut each: impl FnMut(&mut Self, Peek) -> Result<(), Undecodable>,
    ) -> Result<(), Undecodable> {
        let mut index = 0;
        let mut more = self.json.open(b']').map_err(syntax)?;
        while more {
            let peek = self.peek()?;
            each(self, peek).map_err(|error| error.index(index))?;
            index += 1;
            more = self.json.more(b']').map_err(syntax)?;
        }
        Ok(())
    }
}

impl Decoder {
    /// Reads the records that stand here: an array, one object where an array is documented, or null for none.
    pub(super) fn records(&self, reader: &mut Reader<'_>, rows: &mut ColumnsBuilder) -> Result<(), Undecodable> {
        match reader.peek()? {
            Peek::Null => reader.skip(),
            Peek::Object => self.record(reader, rows),
            Peek::Array => reader.array(|reader, peek| match peek {
                Peek::Object => self.record(reader, rows),
                _ => Err(reader.refuse("expected a record, that is an object")),
            }),
            _ => Err(reader.refuse("expected an array of records")),
        }
    }

    fn record(&self, reader: &mut Reader<'_>, rows: &mut ColumnsBuilder) -> Result<(), Undecodable> {
        let mut hint = 0;
        let mut more = reader.json.open(b'}').map_err(syntax)?;
        while more {
            let column = self.column(reader.json.key().map_err(syntax)?, &mut hint);
            self.member(reader, column, hint, rows)?;
            // Nearly always the next declared member comes next, written without a blank.
            while let Some((written, column)) = self.expected(hint)
                && reader.json.take(written)
            {
                hint += 1;
                self.member(reader, Some(column), hint, rows)?;
            }
            more = reader.json.more(b'}').map_err(syntax)?;
        }
        rows.end_row();
        Ok(())
    }

    #[inline]
    fn member(
        &self,
        reader: &mut Reader<'_>,
        column: Option<usize>,
        hint: usize,
        rows: &mut ColumnsBuilder,
    ) -> Result<(), Undecodable> {
        let Some(column) = column else { return reader.skip() };
        self.cell(reader, column, rows).map_err(|error| error.member(self.spelling(hint)))
    }

    fn cell(&self, reader: &mut Reader<'_>, column: usize, rows: &mut ColumnsBuilder) -> Result<(), Undecodable> {
        let kind = self.record.fields[column].kind;
        let peek = reader.peek()?;
        let start = reader.json.current_index();
        let read = match peek {
            Peek::Null => return reader.skip(),
            Peek::String => {
                let text = reader.json.text().map_err(syntax)?;
                if text.is_empty() {
                    rows.put_empty(column);
                    return Ok(());
                }
                let text = if kind == Kind::Direction { self.deployment.direction(text) } else { text };
                rows.put_text(column, text)
            }
            Peek::True | Peek::False if kind == Kind::Flag => {
                let value = reader.json.flag(peek).map_err(syntax)?;
                rows.put_flag(column, value);
                Ok(())
            }
            Peek::Array if kind == Kind::Texts => return texts(reader, column, rows),
            Peek::Number if !matches!(kind, Kind::Flag | Kind::Texts) => {
                rows.put_text(column, reader.json.number().map_err(syntax)?)
            }
            _ => return Err(reader.refuse(format!("expected {}", wanted(kind)))),
        };
        read.map_err(|Malformed(expected)| {
            Undecodable::new(format!("expected {expected}"), start..reader.json.current_index())
        })
    }
}

fn texts(reader: &mut Reader<'_>, column: usize, rows: &mut ColumnsBuilder) -> Result<(), Undecodable> {
    let mut items: Vec<String> = Vec::new();
    reader.array(|reader, peek| {
        if peek != Peek::String {
            return Err(reader.refuse("expected text"));
        }
        items.push(reader.json.text().map_err(syntax)?.to_owned());
        Ok(())
    })?;
    rows.put_texts(column, &items);
    Ok(())
}

fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer | Kind::RawInteger => "a whole number",
        Kind::Time => "a Unix time in milliseconds",
        Kind::Flag => "true or false",
        Kind::Amount | Kind::Estimate => "a decimal number",
        Kind::Text | Kind::Direction => "text",
        Kind::Texts => "an array of texts",
    }
}
