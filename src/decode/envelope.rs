//! The envelope: code, message and data in any order, and the page object with its paging members.

use bytes::Bytes;

use super::decoder::Decoder;
use super::error::DecodeError;
use super::json::ValueKind;
use super::reader::{Members, Reader};
use super::strip_bom;
use crate::columns::{Columns, ColumnsBuilder, Projection};
use crate::interface::{Kind, RecordType, Shape};
use crate::planted::Bug;

/// Most names of members that an error lists.
const MAX_NAMES: usize = 8;
/// Larger counts are not of records or pages, and offsets computed from them could overflow.
const MAX_COUNT: u64 = 1 << 50;

/// The content of a well-formed response.
#[derive(Debug)]
pub enum Envelope {
    Page(Page),
    /// A code other than zero.
    Error {
        code: String,
        msg: String,
    },
}

/// The records of one response, with the paging members where the endpoint has them.
#[derive(Clone, Debug)]
pub struct Page {
    pub paging: Paging,
    pub columns: Columns,
    /// True if the response has a page object.
    pub has_page_object: bool,
    /// Members of its records.
    pub members: Members,
}

/// Members of the page object apart from its list.
#[derive(Clone, Debug, Default)]
pub struct Paging {
    pub number: Option<u64>,
    /// The page size that the service applied.
    pub limit: Option<u64>,
    pub total_pages: Option<u64>,
    pub total: Option<u64>,
    pub chain_full_name: Option<String>,
    pub chain_short_name: Option<String>,
}

impl Page {
    /// The only page of a list without records.
    pub fn empty(record: &'static RecordType) -> Self {
        let paging = Paging { total_pages: Some(0), ..Paging::default() };
        let rows = ColumnsBuilder::new(record, 0);
        PageBuilder { paging, has_page_object: true, rows }.finish(Members::default())
    }

    /// True if a key identifies each record.
    fn has_keys(&self) -> bool {
        (0..self.columns.rows()).all(|row| self.columns.has_key(row))
    }

    /// True if the response has neither records nor a page object: nothing was found, or the API throttles.
    pub fn is_bare(&self) -> bool {
        self.columns.rows() == 0 && !self.has_page_object
    }
}

/// Code and message of a response, if it has a code.
pub fn code_and_msg(body: &[u8]) -> (Option<String>, String) {
    let mut reader = Reader::new(strip_bom(body), 0, Projection::ALL);
    let mut code = None;
    let mut msg = String::new();
    if !matches!(reader.peek(), Ok(ValueKind::Object)) {
        return (None, msg);
    }
    // A body that is truncated after its code still has its code.
    let _ = reader.object(|reader, name| {
        match name {
            "code" => code = scalar(reader)?,
            "msg" => msg = scalar(reader)?.unwrap_or_default(),
            // Gateways in front of the API have names of their own.
            "message" | "error"
                if msg.is_empty() && !matches!(reader.peek()?, ValueKind::Object | ValueKind::Array) =>
            {
                msg = scalar(reader)?.unwrap_or_default();
            }
            _ => reader.skip()?,
        }
        Ok(())
    });
    (code, msg)
}

/// True for the code of success: `"0"`, or a bare 0, which sibling services send.
fn is_success(code: &str) -> bool {
    !code.is_empty() && code.bytes().all(|byte| byte == b'0')
}

impl Decoder {
    /// Decodes a response of status 200. `rows` is the requested number of records.
    pub fn decode(&self, body: &Bytes, rows: usize) -> Result<Envelope, DecodeError> {
        self.decode_columns(body, rows, Projection::ALL)
    }

    /// Decodes some of the columns; all of them if a record has no key, since it is then recognized by all it has.
    pub fn decode_columns(&self, body: &Bytes, rows: usize, projection: Projection) -> Result<Envelope, DecodeError> {
        let decoded = match self.envelope(body, rows, projection) {
            Ok(Envelope::Page(page)) if projection != Projection::ALL && !page.has_keys() => {
                self.envelope(body, rows, Projection::ALL)
            }
            decoded => decoded,
        };
        decoded.or_else(|error| {
            // An error body may have anything under `data`: only its code counts.
            match code_and_msg(body) {
                (Some(code), msg) if !is_success(&code) => Ok(Envelope::Error { code, msg }),
                _ => Err(error),
            }
        })
    }

    fn envelope(&self, whole: &Bytes, rows: usize, projection: Projection) -> Result<Envelope, DecodeError> {
        let body = strip_bom(whole);
        let mut reader = Reader::new(body, self.record_limit(rows), projection);
        let mut code = None;
        let mut msg = String::new();
        let mut has_data = false;
        let rows = ColumnsBuilder::of_page(self.record, rows, whole, projection);
        let mut page = PageBuilder { paging: Paging::default(), has_page_object: false, rows };
        if reader.peek()? != ValueKind::Object {
            return Err(reader.error("expected an object with code, msg and data"));
        }
        reader.object(|reader, name| {
            match name {
                "code" => set(&mut code, reader, scalar)?,
                "msg" => msg = scalar(reader)?.unwrap_or_default(),
                "data" => {
                    // Two could be two versions of the response, or two parts of it.
                    if std::mem::replace(&mut has_data, true) {
                        return Err(reader.error("the response has \"data\" twice"));
                    }
                    match self.shape {
                        Shape::Direct => self.records(reader, &mut page.rows)?,
                        Shape::Paged { list, total, .. } => self.pages(reader, list, total, &mut page)?,
                    }
                }
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        reader.json.finish()?;
        match code {
            None => Err(DecodeError::new("the code is missing", 0..body.len()).member("code")),
            Some(code) if !is_success(&code) => Ok(Envelope::Error { code, msg }),
            Some(_) if !has_data => Err(DecodeError::new("data is missing", 0..body.len()).member("data")),
            Some(_) => Ok(Envelope::Page(page.finish(reader.members))),
        }
    }

    /// Decodes the page object, alone or in its array; null or an empty array if nothing was found.
    fn pages(
        &self,
        reader: &mut Reader<'_>,
        list: &str,
        total: Option<&str>,
        page: &mut PageBuilder,
    ) -> Result<(), DecodeError> {
        match reader.peek()? {
            ValueKind::Null => reader.skip(),
            ValueKind::Object => self.page(reader, list, total, page),
            ValueKind::Array => reader.array(|reader, peek| match peek {
                ValueKind::Object => self.page(reader, list, total, page),
                _ => Err(reader.error("expected a page (an object)")),
            }),
            _ => Err(reader.error("expected an array with a page")),
        }
    }

    fn page(
        &self,
        reader: &mut Reader<'_>,
        list: &str,
        total: Option<&str>,
        page: &mut PageBuilder,
    ) -> Result<(), DecodeError> {
        let start = reader.json.current_index();
        // Two could be one page twice, or two parts of it.
        if std::mem::replace(&mut page.has_page_object, true) {
            return Err(reader.error("the response has two pages"));
        }
        page.paging = Paging::default();
        let paging = &mut page.paging;
        let mut has_list = false;
        let mut others: Vec<String> = Vec::new();
        reader.object(|reader, name| {
            match name {
                _ if name == list => {
                    // Two lists could be two versions of one page, or two parts of it.
                    if std::mem::replace(&mut has_list, true) && !Bug::DoubledListAccepted.is_planted() {
                        return Err(reader.error(format!("the page has {list:?} twice")));
                    }
                    self.records(reader, &mut page.rows)?;
                }
                "page" => set(&mut paging.number, reader, count)?,
                "limit" => set(&mut paging.limit, reader, count)?,
                "totalPage" => set(&mut paging.total_pages, reader, count)?,
                "chainFullName" => set(&mut paging.chain_full_name, reader, scalar)?,
                "chainShortName" => set(&mut paging.chain_short_name, reader, scalar)?,
                _ if Some(name) == total => set(&mut paging.total, reader, count)?,
                _ => {
                    if others.len() < MAX_NAMES {
                        others.push(name.to_owned());
                    }
                    reader.skip()?;
                }
            }
            Ok(())
        })?;
        // Without its list a page is empty only if a count says so; anything else would lose records silently.
        if has_list || paging.total_pages == Some(0) || paging.total == Some(0) {
            return Ok(());
        }
        let found =
            if others.is_empty() { String::new() } else { format!("; other members are {}", others.join(", ")) };
        let problem = format!("the records are missing{found}");
        Err(DecodeError::new(problem, start..reader.json.current_index()).member(list))
    }
}

/// A page that is being decoded.
struct PageBuilder {
    paging: Paging,
    has_page_object: bool,
    rows: ColumnsBuilder,
}

impl PageBuilder {
    fn finish(mut self, members: Members) -> Page {
        let columns = self.rows.finish();
        if columns.rows() > 0 {
            // Some services report 0 pages in place of none.
            self.paging.total_pages = self.paging.total_pages.filter(|pages| *pages > 0);
        }
        Page { paging: self.paging, columns, has_page_object: self.has_page_object, members }
    }
}

/// Reads a member that may come twice, with one value.
fn set<T: PartialEq>(
    slot: &mut Option<T>,
    reader: &mut Reader<'_>,
    read: impl Fn(&mut Reader<'_>) -> Result<Option<T>, DecodeError>,
) -> Result<(), DecodeError> {
    let start = reader.json.current_index();
    let value = read(reader)?;
    if slot.is_some() && value.is_some() && *slot != value {
        return Err(DecodeError::new(
            "differs from an earlier member of this name",
            start..reader.json.current_index(),
        ));
    }
    *slot = value.or(slot.take());
    Ok(())
}

/// A string, or a number as written; `None` for an empty string or null.
fn scalar(reader: &mut Reader<'_>) -> Result<Option<String>, DecodeError> {
    let peek = reader.peek()?;
    match peek {
        ValueKind::Null => reader.skip().map(|()| None),
        ValueKind::String => {
            let text = reader.json.string()?;
            Ok((!text.is_empty()).then(|| text.to_owned()))
        }
        ValueKind::Number => Ok(Some(reader.json.number()?.to_owned())),
        _ => Err(reader.error("expected a string or a number")),
    }
}

fn count(reader: &mut Reader<'_>) -> Result<Option<u64>, DecodeError> {
    reader.peek()?;
    let start = reader.json.current_index();
    let Some(text) = scalar(reader)? else { return Ok(None) };
    let value = Kind::integer(&text).ok().and_then(|value| u64::try_from(value).ok());
    let value = value.filter(|count| *count <= MAX_COUNT);
    value.map(Some).ok_or_else(|| DecodeError::new("expected a count", start..reader.json.current_index()))
}
