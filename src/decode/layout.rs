//! One endpoint in one deployment's words, made ready for decoding.

use crate::interface::{Deployment, Endpoint, RecordType, Shape};

/// Decodes the answers of one endpoint. Made once for a client, since a deployment's words are part of the names.
#[derive(Debug)]
pub struct Decoder {
    pub(super) record: &'static RecordType,
    pub(super) shape: Shape,
    pub(super) deployment: Deployment,
    /// Wire name as it is written between two values, and column, the first spelling of every field first, in the declared order.
    keys: Vec<(String, usize)>,
}

impl Decoder {
    pub fn new(endpoint: &Endpoint, deployment: &Deployment) -> Self {
        let record = endpoint.record();
        let spelling = |nth: usize| {
            let fields = record.fields.iter().enumerate();
            fields.filter_map(move |(column, field)| {
                Some((format!(",\"{}\":", deployment.words(field.wire.get(nth)?)), column))
            })
        };
        let most = record.fields.iter().map(|field| field.wire.len()).max().unwrap_or(0);
        let keys = (0..most).flat_map(spelling).collect();
        Self { record, shape: endpoint.shape, deployment: deployment.clone(), keys }
    }

    /// The column of a wire name. Members mostly come in one order, so the search starts where the last one ended.
    pub(super) fn column(&self, name: &str, hint: &mut usize) -> Option<usize> {
        let (before, after) = self.keys.split_at((*hint).min(self.keys.len()));
        let is = |(written, _): &(String, usize)| unquoted(written) == name;
        let found = after.iter().position(is).map(|position| before.len() + position);
        let found = found.or_else(|| before.iter().position(is))?;
        *hint = found + 1;
        Some(self.keys[found].1)
    }

    /// The member that comes next where members come in the declared order.
    pub(super) fn expected(&self, hint: usize) -> Option<(&str, usize)> {
        self.keys.get(hint).map(|(written, column)| (written.as_str(), *column))
    }

    /// The wire name that was found last.
    pub(super) fn spelling(&self, hint: usize) -> &str {
        unquoted(&self.keys[hint - 1].0)
    }
}

fn unquoted(written: &str) -> &str {
    &written[2..written.len() - 2]
}
