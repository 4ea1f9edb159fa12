//! `Members`: the lists of a query that has several values for one argument.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::args::{Arg, Options};
use super::params::sent_value;
use crate::client::Error;
use crate::interface::{Endpoint, Param, ParamKind, meaning};
use crate::message::{Hint, Message};

/// The values that select the lists of a set. The query of each list is made when the list is read: a set may have tens
/// of thousands.
#[derive(Clone)]
pub struct Members {
    /// Parameter with several values.
    pub name: &'static str,
    /// Values as the caller wrote them.
    pub values: Arc<[String]>,
    /// Values as they are sent.
    pub sent: Arc<[String]>,
    /// Indices of the values in the order of their meanings: the same whatever order the caller has chosen. A rank is an
    /// index of this order.
    pub by_rank: Arc<[u32]>,
    /// Hash of the values, in whatever order they are.
    pub digest: Arc<str>,
}

/// The parameter that has several values, each of which selects a list, and the values; `None` if the call is not a set.
pub(super) fn several<'a>(
    endpoint: &'static Endpoint,
    args: &'a [(String, Arg)],
    options: &Options,
) -> Result<Option<(&'static Param, &'a [String])>, Error> {
    let mut several = args.iter().filter_map(|(name, arg)| {
        let Arg::List(values) = arg else { return None };
        let param = endpoint.param(name).filter(|param| !matches!(param.kind, ParamKind::Hashes { .. }))?;
        Some((param, values.as_slice()))
    });
    let Some((param, values)) = several.next() else { return Ok(None) };
    let name = param.name;
    if !param.selects_list() {
        return Err(Error::parameter(name, "must be one value"));
    }
    if let Some((other, _)) = several.find(|(other, _)| other.name != name) {
        return Err(Error::parameter(other.name, format!("must be one value where {name} has several")));
    }
    if options.max_items.is_some() {
        let problem = Message::new(format!("must not be given with several values of {name}"));
        return Err(Error::parameter("max_items", problem.hint(Hint::Omit("max_items".into()))));
    }
    Ok(Some((param, values)))
}

/// Arguments with another value for one of them.
pub fn with_value(args: &[(String, Arg)], name: &str, value: &Arg) -> Vec<(String, Arg)> {
    let args = args.iter().map(|(other, old)| (other.clone(), if other == name { value } else { old }.clone()));
    args.collect()
}

impl Members {
    /// Checks every value before anything is sent, each together with the other arguments. `query` makes the query of
    /// one value. Returns the query of the first value, too.
    pub(super) fn new<Q>(
        (param, given): (&'static Param, &[String]),
        args: &[(String, Arg)],
        query: impl Fn(Vec<(String, Arg)>) -> Result<Q, Error>,
    ) -> Result<(Self, Q), Error> {
        let name = param.name;
        let mut values = Vec::new();
        let mut sent = Vec::new();
        let mut first = None;
        let mut by_meaning = BTreeMap::new();
        for (index, value) in given.iter().enumerate() {
            let arg = Arg::String(value.clone());
            let checked = query(with_value(args, name, &arg)).and_then(|query| Ok((query, sent_value(param, &arg)?)));
            let (query, text) = checked.map_err(|error| match error {
                Error::InvalidParameter { parameter, problem } if parameter == name => {
                    Error::parameter(format!("{name}[{index}]"), problem)
                }
                other => other,
            })?;
            first.get_or_insert(query);
            if let Entry::Vacant(entry) = by_meaning.entry(meaning(&text)) {
                entry.insert(sent.len() as u32);
                values.push(value.clone());
                sent.push(text);
            }
        }
        let Some(first) = first else { return Err(Error::parameter(name, "must not be empty")) };
        let digest = digest(by_meaning.keys()).into();
        let by_rank = by_meaning.into_values().collect();
        Ok((Self { name, values: values.into(), sent: sent.into(), by_rank, digest }, first))
    }

    /// Heights whose lists these are.
    pub(in crate::query) fn heights(&self) -> impl Iterator<Item = i64> + '_ {
        let values = if self.name == "height" { &self.sent[..] } else { &[] };
        values.iter().filter_map(|height| height.parse().ok())
    }

    /// Meanings of the values, in their order.
    pub fn meanings(&self) -> impl Iterator<Item = String> {
        self.sent.iter().map(|sent| meaning(sent))
    }

    /// Ranks of the values, by index.
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.by_rank.len()];
        for (rank, index) in self.by_rank.iter().enumerate() {
            ranks[*index as usize] = rank as u32;
        }
        ranks
    }
}

/// Hash of the meanings of values, in their order.
fn digest<'a>(meanings: impl Iterator<Item = &'a String>) -> String {
    let mut hasher = Sha256::new();
    for meaning in meanings {
        hasher.update(meaning);
        hasher.update("\n");
    }
    hasher.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
