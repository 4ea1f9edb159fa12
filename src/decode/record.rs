//! One record: members in any order, any spelling, missing or unknown; each value read by its kind.

use jiter::{Jiter, JiterError, Peek};

use super::layout::Decoder;
use super::undecodable::Undecodable;
use crate::columns::ColumnsBuilder;
use crate::interface::{Kind, Malformed};

/// A cursor in an answer's JSON.
pub(super) struct Reader<'j> {
    pub json: Jiter<'j>,
}

pub(super) fn syntax(error: JiterError) -> Undecodable {
    Undecodable::syntax(&error)
}

impl<'j> Reader<'j> {
    pub fn new(body: &'j [u8]) -> Self {
        Self { json: Jiter::new(body) }
    }

    pub fn peek(&mut self) -> Result<Peek, Undecodable> {
        self.json.peek().map_err(syntax)
    }

    /// Passes over a value of any type.
    pub fn skip(&mut self) -> Result<(), Undecodable> {
        self.json.next_skip().map_err(syntax)
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
        let mut found = put(&mut name, self.json.known_object().map_err(syntax)?);
        while found {
            each(self, &name).map_err(|error| error.member(&name))?;
            found = put(&mut name, self.json.next_key().map_err(syntax)?);
        }
        Ok(())
    }

    /// Calls `each` for every item of the array that stands here, with the reader at the item.
    pub fn array(
        &mut self,
        mut each: impl FnMut(&mut Self, Peek) -> Result<(), Undecodable>,
    ) -> Result<(), Undecodable> {
        let mut index = 0;
        let mut next = self.json.known_array().map_err(syntax)?;
        while let Some(peek) = next {
            each(self, peek).map_err(|error| error.index(index))?;
            index += 1;
            next = self.json.array_step().map_err(syntax)?;
        }
        Ok(())
    }
}

fn put(name: &mut String, key: Option<&str>) -> bool {
    name.clear();
    key.map(|key| name.push_str(key)).is_some()
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
        let mut key = reader.json.known_object().map_err(syntax)?;
        while let Some(name) = key {
            match self.column(name, &mut hint) {
                None => reader.skip()?,
                Some(column) => {
                    if let Err(error) = self.cell(reader, column, rows) {
                        return Err(error.member(self.spelling(hint)));
                    }
                }
            }
            key = reader.json.next_key().map_err(syntax)?;
        }
        rows.end_row();
        Ok(())
    }

    fn cell(&self, reader: &mut Reader<'_>, column: usize, rows: &mut ColumnsBuilder) -> Result<(), Undecodable> {
        let kind = self.record.fields[column].kind;
        let peek = reader.peek()?;
        let start = reader.json.current_index();
        let read = match peek {
            Peek::Null => return reader.skip(),
            Peek::String => {
                let text = reader.json.known_str().map_err(syntax)?;
                if text.is_empty() {
                    rows.put_empty(column);
                    return Ok(());
                }
                let text = if kind == Kind::Direction { self.deployment.direction(text) } else { text };
                rows.put_text(column, text)
            }
            Peek::True | Peek::False if kind == Kind::Flag => {
                let value = reader.json.known_bool(peek).map_err(syntax)?;
                rows.put_flag(column, value);
                Ok(())
            }
            Peek::Array if kind == Kind::Texts => return texts(reader, column, rows),
            _ if peek.is_num() && !matches!(kind, Kind::Flag | Kind::Texts) => {
                // A JSON number is ASCII.
                let digits = reader.json.known_number_bytes(peek).map_err(syntax)?;
                rows.put_text(column, std::str::from_utf8(digits).unwrap_or_default())
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
        items.push(reader.json.known_str().map_err(syntax)?.to_owned());
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
