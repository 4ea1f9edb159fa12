//! `Reader`: reads the JSON of a response value by value, and notes the members of its records.

use super::error::DecodeError;
use super::json::{Json, ValueKind};
use crate::columns::Projection;

/// Most names of unknown members that are kept: a body may have thousands.
const MAX_UNKNOWN: usize = 64;
/// Most bytes of such a name.
const MAX_NAME: usize = 100;

/// The position in the JSON of a response, and what was seen of its records.
pub(super) struct Reader<'j> {
    pub json: Json<'j>,
    /// Most records to decode.
    pub record_limit: usize,
    /// Columns to decode. The values of others are checked for syntax only.
    pub projection: Projection,
    /// Members of the records so far.
    pub members: Members,
}

/// Members of the records of a page.
#[derive(Clone, Debug)]
pub struct Members {
    /// Bit i: some record has the member of column i, whatever its value.
    pub in_some: u64,
    /// Bit i: each record has it.
    pub in_all: u64,
    /// Members of no column.
    pub unknown: Vec<String>,
    /// True if a character of a text is not valid Unicode, and was replaced by U+FFFD.
    pub has_replaced: bool,
}

impl Default for Members {
    fn default() -> Self {
        Self { in_some: 0, in_all: u64::MAX, unknown: Vec::new(), has_replaced: false }
    }
}

impl Members {
    #[inline(never)]
    pub(super) fn add_unknown(&mut self, name: &str) {
        if self.unknown.len() < MAX_UNKNOWN && name.len() <= MAX_NAME && !self.unknown.iter().any(|known| known == name)
        {
            self.unknown.push(name.to_owned());
        }
    }

    pub(super) fn add_record(&mut self, columns: u64) {
        self.in_some |= columns;
        self.in_all &= columns;
    }
}

impl<'j> Reader<'j> {
    pub fn new(body: &'j [u8], record_limit: usize, projection: Projection) -> Self {
        Self { json: Json::new(body), record_limit, projection, members: Members::default() }
    }

    #[inline]
    pub fn peek(&mut self) -> Result<ValueKind, DecodeError> {
        self.json.peek().map_err(DecodeError::from)
    }

    /// Skips a value of any type.
    pub fn skip(&mut self) -> Result<(), DecodeError> {
        self.json.skip().map_err(DecodeError::from)
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
        let mut more = self.json.enter(b'}')?;
        while more {
            name.clear();
            name.push_str(self.json.key()?);
            self.peek()?;
            each(self, &name).map_err(|error| error.member(&name))?;
            more = self.json.next_element(b'}')?;
        }
        Ok(())
    }

    /// Calls `each` for every item of the next array, with the reader at the item.
    pub fn array(
        &mut self,
        mut each: impl FnMut(&mut Self, ValueKind) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut index = 0;
        let mut more = self.json.enter(b']')?;
        while more {
            let peek = self.peek()?;
            each(self, peek).map_err(|error| error.index(index))?;
            index += 1;
            more = self.json.next_element(b']')?;
        }
        Ok(())
    }
}
