//! Where a run stands, as a small JSON text: with it another process goes on. It holds no secret and no address of a
//! service, and says for which call, deployment and chain it is good.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::bind::{Arg, Options};
use super::list::Seam;
use super::plan::Query;
use super::report::SharedReport;
use super::seams::identities;
use crate::client::{Client, Error};
use crate::columns::Columns;
use crate::interface::{Endpoint, endpoint};

/// Of the text's form and meaning; a text of another version is refused.
const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    version: u32,
    call: String,
    deployment: String,
    chain: String,
    args: Vec<(String, Arg)>,
    options: Options,
    /// The window that is being read, and how many of its records were delivered.
    pub(super) window: u64,
    pub(super) position: u64,
    #[serde(default, skip_serializing_if = "Seam::is_empty")]
    pub(super) list: Seam,
    /// What already speaks against completeness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) reasons: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) missing: Vec<String>,
    /// Over all else, so that a text which was cut or edited is not followed.
    sum: String,
}

fn refuse(problem: impl Into<String>) -> Error {
    Error::parameter("cursor", problem)
}

/// The words that a service of this deployment goes by.
fn deployment(client: &Client) -> String {
    let words = &client.settings().deployment;
    format!("{} {} {}", words.header_prefix(), words.main(), words.zone())
}

impl Cursor {
    /// Of a place in a window's list, from where so many records are wanted, or all.
    fn at(query: &Query, window: u64, position: u64, list: Seam, left: Option<u64>) -> Self {
        let (args, options) = query.given();
        let left = left.map(|left| left.try_into().unwrap_or(i64::MAX));
        Self {
            version: VERSION,
            call: query.endpoint().name.to_owned(),
            deployment: deployment(query.client()),
            chain: query.chain().to_owned(),
            args: args.clone(),
            options: Options { page_size: query.page_size_asked(), max_items: left, ..options.clone() },
            window,
            position,
            list,
            reasons: Vec::new(),
            missing: Vec::new(),
            sum: String::new(),
        }
    }

    /// The records of a list from one place on, or so many of them.
    pub(super) fn part(query: &Query, position: u64, list: Seam, most: Option<u64>) -> Result<Query, Error> {
        let cursor = Self::at(query, 0, position, list, most).sealed();
        let part = Query::new(query.client(), query.endpoint(), &cursor.args, cursor.options.clone())?;
        Ok(part.starting_at(cursor))
    }

    fn sealed(mut self) -> Self {
        self.sum.clear();
        let text = serde_json::to_string(&self).expect("plain values");
        let digest = Sha256::digest(text.as_bytes());
        self.sum = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        self
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("plain values")
    }

    /// Reads a cursor and checks that it is good for this client; the query then goes on from there.
    pub fn resume(client: &Client, text: &str) -> Result<Query, Error> {
        const FORM: &str = "is not the text of a cursor";
        let value: serde_json::Value = serde_json::from_str(text).map_err(|_| refuse(FORM))?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => return Err(refuse(format!("is of version {version}, and this is version {VERSION}"))),
            None => return Err(refuse(FORM)),
        }
        let cursor: Self = serde_json::from_value(value).map_err(|_| refuse(FORM))?;
        if cursor.clone().sealed().sum != cursor.sum {
            return Err(refuse("was changed or cut since it was made; use it as it was given"));
        }
        let call: &'static Endpoint =
            endpoint(&cursor.call).ok_or_else(|| refuse(format!("is of an unknown call, {:?}", cursor.call)))?;
        let ours = deployment(client);
        if cursor.deployment != ours {
            let problem = format!("is of the deployment {:?}, and this client's is {ours:?}", cursor.deployment);
            return Err(refuse(problem));
        }
        let query = Query::new(client, call, &cursor.args, cursor.options.clone()).map_err(|error| match error {
            Error::InvalidParameter { parameter, problem } => refuse(format!("{parameter}: {problem}")),
            other => other,
        })?;
        if !query.chain().eq_ignore_ascii_case(&cursor.chain) {
            return Err(refuse(format!("is of the chain {}, and this client's is {}", cursor.chain, query.chain())));
        }
        if cursor.window > query.windows() {
            return Err(refuse(FORM));
        }
        Ok(query.starting_at(cursor))
    }
}

/// A place in a run: after so many of a page's records.
#[derive(Clone)]
pub struct Place {
    mark: Arc<Mark>,
    rows: usize,
}

/// A page on its way out, and what it takes to find it again.
pub(super) struct Mark {
    pub query: Query,
    pub window: u64,
    /// Of the page's first record in the window's list.
    pub position: u64,
    /// Of each record, where the page lost some on its way out.
    pub offsets: Option<Vec<u32>>,
    /// Records of the page, and of the list those that it covers.
    pub rows: usize,
    pub covered: Columns,
    /// What the window could not give, if it ends with this page.
    pub ending: Option<Vec<String>>,
    /// The list before this page.
    pub list: Seam,
    /// The list after it, unless not all of it was wanted.
    pub after: Option<Seam>,
    /// Records that were still wanted before this page, where there is a limit.
    pub left: Option<u64>,
    pub report: SharedReport,
    /// Reasons and missing hashes that the report had by then.
    pub said: (usize, usize),
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.cursor())
    }
}

impl Place {
    pub(super) fn after(mark: Mark) -> Self {
        Self { rows: mark.rows, mark: Arc::new(mark) }
    }

    /// The place after so many of the page's records.
    pub fn back_to(&self, rows: usize) -> Self {
        Self { mark: self.mark.clone(), rows }
    }

    pub fn cursor(&self) -> String {
        let mark = &*self.mark;
        let whole = self.rows >= mark.rows;
        let within = match &mark.offsets {
            _ if whole => mark.covered.rows(),
            Some(offsets) => offsets[self.rows] as usize,
            None => self.rows,
        };
        let ending = mark.ending.as_ref().filter(|_| whole);
        let (window, position, list) = if ending.is_some() {
            (mark.window + 1, 0, Seam::default())
        } else {
            let position = mark.position + within as u64;
            let list = match &mark.after {
                Some(after) if whole => after.clone().told(),
                _ => {
                    let fresh = mark.covered.slice(0, within.min(mark.covered.rows()));
                    mark.list.clone().told().after(&identities(&fresh))
                }
            };
            (mark.window, position, list)
        };
        let (mut reasons, missing) = mark.report.said(mark.said);
        for reason in ending.into_iter().flatten() {
            if !reasons.contains(reason) {
                reasons.push(reason.clone());
            }
        }
        let left = mark.left.map(|left| left - self.rows as u64);
        Cursor { reasons, missing, ..Cursor::at(&mark.query, window, position, list, left) }.sealed().text()
    }
}
