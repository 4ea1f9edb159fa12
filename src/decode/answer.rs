//! The envelope: code, message and data in any order, and the page object with its paging members.

use bytes::Bytes;

use super::json::Peek;
use super::layout::Decoder;
use super::record::{Reader, syntax};
use super::strip_mark;
use super::undecodable::Undecodable;
use crate::columns::{Columns, ColumnsBuilder};
use crate::interface::{Kind, Shape};

/// What a well-formed answer says.
#[derive(Debug)]
pub enum Answer {
    Page(Page),
    /// A code other than zero.
    Refused {
        code: String,
        msg: String,
    },
}

/// The records of one answer, with the paging members where the endpoint has them.
#[derive(Clone, Debug)]
pub struct Page {
    pub number: Option<u64>,
    /// The page size as the service understood it.
    pub limit: Option<u64>,
    pub total_pages: Option<u64>,
    pub total: Option<u64>,
    pub chain_full_name: Option<String>,
    pub chain_short_name: Option<String>,
    pub columns: Columns,
}

/// Code and message of an answer of which nothing else is wanted, if it has a code at all.
pub fn refusal(body: &[u8]) -> Option<(String, String)> {
    let mut reader = Reader::new(strip_mark(body));
    let (mut code, mut msg) = (None, String::new());
    if reader.peek().ok()? != Peek::Object {
        return None;
    }
    // A body that breaks off after its code still says its code.
    let _ = reader.object(|reader, name| {
        match name {
            "code" => code = scalar(reader)?,
            "msg" => msg = scalar(reader)?.unwrap_or_default(),
            _ => reader.skip()?,
        }
        Ok(())
    });
    code.map(|code| (code, msg))
}

/// Whether a code says success: `"0"`, or a bare 0 as siblings of the service send.
fn is_success(code: &str) -> bool {
    !code.is_empty() && code.bytes().all(|byte| byte == b'0')
}

impl Decoder {
    /// Decodes an answer of status 200. `rows` is how many are expected, for the buffers.
    pub fn decode(&self, body: &Bytes, rows: usize) -> Result<Answer, Undecodable> {
        self.answer(body, rows).or_else(|error| {
            // An error body may hold anything under `data`: its code is what counts.
            match refusal(body) {
                Some((code, msg)) if !is_success(&code) => Ok(Answer::Refused { code, msg }),
                _ => Err(error),
            }
        })
    }

    fn answer(&self, whole: &Bytes, rows: usize) -> Result<Answer, Undecodable> {
        let body = strip_mark(whole);
        let mut reader = Reader::new(body);
        let (mut code, mut msg, mut has_data) = (None, String::new(), false);
        let mut draft = Draft::new(ColumnsBuilder::of_page(self.record, rows, whole));
        if reader.peek()? != Peek::Object {
            return Err(reader.refuse("expected an object with code, msg and data"));
        }
        reader.object(|reader, name| {
            match name {
                "code" => code = scalar(reader)?,
                "msg" => msg = scalar(reader)?.unwrap_or_default(),
                "data" if !has_data => {
                    has_data = true;
                    match self.shape {
                        Shape::Direct => self.records(reader, &mut draft.rows)?,
                        Shape::Paged { list, total, .. } => self.pages(reader, list, total, &mut draft)?,
                    }
                }
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        reader.json.finish().map_err(syntax)?;
        match code {
            None => Err(Undecodable::new("the code is missing", 0..body.len()).member("code")),
            Some(code) if !is_success(&code) => Ok(Answer::Refused { code, msg }),
            Some(_) if !has_data => Err(Undecodable::new("the data are missing", 0..body.len()).member("data")),
            Some(_) => Ok(Answer::Page(draft.finish())),
        }
    }

    /// The page object, alone or in its array; null or an empty array for nothing found.
    fn pages(
        &self,
        reader: &mut Reader<'_>,
        list: &str,
        total: Option<&str>,
        draft: &mut Draft,
    ) -> Result<(), Undecodable> {
        match reader.peek()? {
            Peek::Null => reader.skip(),
            Peek::Object => self.page(reader, list, total, draft),
            Peek::Array => reader.array(|reader, peek| match peek {
                Peek::Object => self.page(reader, list, total, draft),
                _ => Err(reader.refuse("expected a page, that is an object")),
            }),
            _ => Err(reader.refuse("expected an array with a page")),
        }
    }

    fn page(
        &self,
        reader: &mut Reader<'_>,
        list: &str,
        total: Option<&str>,
        draft: &mut Draft,
    ) -> Result<(), Undecodable> {
        let start = reader.json.current_index();
        let mut has_list = false;
        reader.object(|reader, name| {
            match name {
                _ if name == list => {
                    has_list = true;
                    self.records(reader, &mut draft.rows)?;
                }
                "page" => draft.number = count(reader)?,
                "limit" => draft.limit = count(reader)?,
                "totalPage" => draft.total_pages = count(reader)?,
                "chainFullName" => draft.chain_full_name = scalar(reader)?,
                "chainShortName" => draft.chain_short_name = scalar(reader)?,
                _ if Some(name) == total => draft.total = count(reader)?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        // Without its list a page is empty only if it says so; anything else would lose records in silence.
        if has_list || draft.total_pages == Some(0) || draft.total == Some(0) {
            return Ok(());
        }
        Err(Undecodable::new("the records are missing", start..reader.json.current_index()).member(list))
    }
}

/// A page in the making.
struct Draft {
    number: Option<u64>,
    limit: Option<u64>,
    total_pages: Option<u64>,
    total: Option<u64>,
    chain_full_name: Option<String>,
    chain_short_name: Option<String>,
    rows: ColumnsBuilder,
}

impl Draft {
    fn new(rows: ColumnsBuilder) -> Self {
        Self {
            number: None,
            limit: None,
            total_pages: None,
            total: None,
            chain_full_name: None,
            chain_short_name: None,
            rows,
        }
    }

    fn finish(mut self) -> Page {
        Page {
            number: self.number,
            limit: self.limit,
            total_pages: self.total_pages,
            total: self.total,
            chain_full_name: self.chain_full_name,
            chain_short_name: self.chain_short_name,
            columns: self.rows.finish(),
        }
    }
}

/// Text, or a number by its digits; empty text and null are nothing.
fn scalar(reader: &mut Reader<'_>) -> Result<Option<String>, Undecodable> {
    let peek = reader.peek()?;
    match peek {
        Peek::Null => reader.skip().map(|()| None),
        Peek::String => {
            let text = reader.json.text().map_err(syntax)?;
            Ok((!text.is_empty()).then(|| text.to_owned()))
        }
        Peek::Number => Ok(Some(reader.json.number().map_err(syntax)?.to_owned())),
        _ => Err(reader.refuse("expected text or a number")),
    }
}

fn count(reader: &mut Reader<'_>) -> Result<Option<u64>, Undecodable> {
    reader.peek()?;
    let start = reader.json.current_index();
    let Some(text) = scalar(reader)? else { return Ok(None) };
    let value = Kind::integer(&text).ok().and_then(|value| u64::try_from(value).ok());
    value.map(Some).ok_or_else(|| Undecodable::new("expected a count", start..reader.json.current_index()))
}
