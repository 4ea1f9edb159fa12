//! The decoder of one endpoint in one deployment: its field names with the deployment's chain names filled in.

use std::sync::Arc;

use crate::interface::{Deployment, Endpoint, RecordType, Shape};

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
    /// Wire name as written between two values, and its column. The first spelling of every field comes first, in the order
    /// in which the API sends them.
    keys: Vec<(String, usize)>,
    /// First spelling of each column.
    names: Arc<[String]>,
}

impl Decoder {
    pub fn new(endpoint: &Endpoint, deployment: &Deployment) -> Self {
        let record = endpoint.record();
        let spellings = record.fields.iter().map(|field| field.wire.len()).max().unwrap_or(0);
        let mut keys = Vec::new();
        for nth in 0..spellings {
            for (column, field) in record.sent() {
                let name = field.wire.get(nth).map(|name| format!(",\"{}\":", deployment.expand(name)));
                keys.extend(name.map(|name| (name, column)));
            }
        }
        let max_results =
            deployment.max_results(endpoint.limit).and_then(|most| usize::try_from(most).ok()).unwrap_or(0);
        let names = record.fields.iter().map(|field| deployment.expand(field.wire[0])).collect();
        let identity = record.identity.iter().filter_map(|name| record.position(name));
        let identity = identity.fold(0, |mask, column| mask | 1 << column);
        Self { record, shape: endpoint.shape, deployment: deployment.clone(), max_results, identity, keys, names }
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
        let found = after.iter().position(|(written, _)| unquoted(written) == name);
        let found = match found {
            Some(position) => before.len() + position,
            None => before.iter().position(|(written, _)| unquoted(written) == name)?,
        };
        *hint = found + 1;
        Some(self.keys[found].1)
    }

    /// Index of a wire name among the keys.
    pub(super) fn key(&self, name: &str) -> Option<usize> {
        self.keys.iter().position(|(written, _)| unquoted(written) == name)
    }

    pub(super) fn key_column(&self, key: usize) -> usize {
        self.keys[key].1
    }

    /// The next member where members come in the usual order.
    pub(super) fn expected(&self, hint: usize) -> Option<(&str, usize)> {
        self.keys.get(hint).map(|(written, column)| (written.as_str(), *column))
    }

    /// The wire name that was found most recently.
    pub(super) fn spelling(&self, hint: usize) -> &str {
        unquoted(&self.keys[hint - 1].0)
    }

    /// First spelling of each column.
    pub fn names(&self) -> &Arc<[String]> {
        &self.names
    }
}

fn unquoted(written: &str) -> &str {
    &written[2..written.len() - 2]
}
