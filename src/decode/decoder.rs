//! The decoder of one endpoint in one deployment: its field names with the deployment's chain names filled in.

use std::sync::Arc;

use crate::interface::{Deployment, Endpoint, Kind, RecordType, Shape};

/// Number of records that any page may have.
const MIN_RECORD_LIMIT: usize = 10_000;
/// Multiple of the requested number of records that a page may have.
const EXCESS: usize = 100;

/// Decodes the responses of one endpoint. A client makes one for each endpoint, since field names contain the deployment's
/// chain names.
#[derive(Debug)]
pub struct Decoder {
    pub(super) record: &'static RecordType,
    pub(super) shape: Shape,
    pub(super) deployment: Deployment,
    /// Most records that the deployment returns in one response, if it sets a limit.
    max_results: usize,
    /// Bit i: column i is part of a record's identity.
    pub(super) identity: u64,
    /// First those with the first spelling of each field, in the order in which the API sends them.
    keys: Vec<Key>,
    /// First spelling of each column.
    names: Arc<[String]>,
}

/// A member of records.
#[derive(Debug)]
pub(super) struct Key {
    /// Wire name of the member as written between two values.
    written: String,
    pub column: usize,
    pub kind: Kind,
    /// The bit of the column if this is its first spelling and `append_plain` takes its kind; otherwise 0.
    pub plain: u64,
}

impl Key {
    /// The name with quotes and a colon, and with a comma before it if it follows a value.
    pub fn written(&self, is_after_value: bool) -> &str {
        &self.written[usize::from(!is_after_value)..]
    }

    fn name(&self) -> &str {
        &self.written[2..self.written.len() - 2]
    }
}

impl Decoder {
    pub fn new(endpoint: &Endpoint, deployment: &Deployment) -> Self {
        let record = endpoint.record();
        let spellings = record.fields.iter().map(|field| field.wire.len()).max().unwrap_or(0);
        let mut keys = Vec::new();
        for nth in 0..spellings {
            for (column, field) in record.sent() {
                let is_plain = nth == 0 && !matches!(field.kind, Kind::Uint256 | Kind::Direction | Kind::Utf8List);
                let plain = if is_plain { 1 << column } else { 0 };
                keys.extend(field.wire.get(nth).map(|name| {
                    let written = format!(",\"{}\":", deployment.expand(name));
                    Key { written, column, kind: field.kind, plain }
                }));
            }
        }
        let max_results = deployment.max_results(endpoint.limit).and_then(|max| usize::try_from(max).ok()).unwrap_or(0);
        let names = record.fields.iter().map(|field| deployment.expand(field.wire[0])).collect();
        let identity = record.identity.iter().filter_map(|name| record.position(name));
        let identity = identity.fold(0, |mask, column| mask | 1 << column);
        let deployment = deployment.clone();
        Self { record, shape: endpoint.shape, deployment, max_results, identity, keys, names }
    }

    /// Maximum number of records of a response to a request for `rows`: a body of a few kilobytes can hold millions
    /// of empty records, each of which takes hundreds of bytes as columns.
    pub(super) fn record_limit(&self, rows: usize) -> usize {
        let of_look_up = if matches!(self.shape, Shape::Direct) { self.max_results.saturating_mul(2) } else { 0 };
        MIN_RECORD_LIMIT.max(rows.saturating_mul(EXCESS)).max(of_look_up)
    }

    /// The column of a wire name. Members mostly come in one order, so the search starts where the last one ended.
    pub(super) fn column(&self, name: &str, hint: &mut usize) -> Option<usize> {
        let (before, after) = self.keys.split_at((*hint).min(self.keys.len()));
        let found = after.iter().position(|key| key.name() == name);
        let found = match found {
            Some(position) => before.len() + position,
            None => before.iter().position(|key| key.name() == name)?,
        };
        *hint = found + 1;
        Some(self.keys[found].column)
    }

    /// Index of a wire name among the keys.
    pub(super) fn key(&self, name: &str) -> Option<usize> {
        self.keys.iter().position(|key| key.name() == name)
    }

    pub(super) fn key_column(&self, key: usize) -> usize {
        self.keys[key].column
    }

    /// The next member where members come in the usual order.
    pub(super) fn expected(&self, hint: usize) -> Option<&Key> {
        self.keys.get(hint)
    }

    /// The wire name that was found most recently.
    pub(super) fn spelling(&self, hint: usize) -> &str {
        self.keys[hint - 1].name()
    }

    /// First spelling of each column.
    pub fn names(&self) -> &Arc<[String]> {
        &self.names
    }
}
