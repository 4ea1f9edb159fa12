//! `Members`: the lists of a query that has several values for one argument.

use std::collections::HashSet;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::args::{Arg, Options};
use super::params::sent_value;
use crate::client::Error;
use crate::interface::{Endpoint, ParamKind, meaning};
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

impl Members {
    /// Heights whose lists these are.
    pub(in crate::query) fn heights(&self) -> impl Iterator<Item = i64> + '_ {
        let values = if self.name == "height" { &self.sent[..] } else { &[] };
        values.iter().filter_map(|height| height.parse().ok())
    }
}

/// Parameters that have several values and are no look-ups of hashes.
fn parameters<'a>(endpoint: &'a Endpoint, args: &'a [(String, Arg)]) -> impl Iterator<Item = &'static str> + 'a {
    let lists = args.iter().filter(|(_, arg)| matches!(arg, Arg::List(_)));
    let params = lists.filter_map(|(name, _)| endpoint.param(name));
    params.filter(|param| !matches!(param.kind, ParamKind::Hashes { .. })).map(|param| param.name)
}

/// Parameter that has several values, each of which selects a list.
pub(super) fn several(endpoint: &Endpoint, args: &[(String, Arg)]) -> Option<&'static str> {
    parameters(endpoint, args).next()
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
        endpoint: &'static Endpoint,
        name: &'static str,
        args: &[(String, Arg)],
        options: &Options,
        query: impl Fn(Vec<(String, Arg)>) -> Result<Q, Error>,
    ) -> Result<(Self, Q), Error> {
        let Some(param) = endpoint.param(name).filter(|param| param.selects_list()) else {
            return Err(Error::parameter(name, "must be one value"));
        };
        if let Some(other) = parameters(endpoint, args).find(|other| *other != name) {
            return Err(Error::parameter(other, format!("must be one value where {name} has several")));
        }
        if options.max_items.is_some() {
            let problem = Message::new(format!("must not be given with several values of {name}"));
            return Err(Error::parameter("max_items", problem.hint(Hint::Omit("max_items".into()))));
        }
        let given = args.iter().find_map(|(other, arg)| match arg {
            Arg::List(values) if other == name => Some(values.as_slice()),
            _ => None,
        });
        let mut values = Vec::new();
        let mut sent = Vec::new();
        let mut first = None;
        let mut seen = HashSet::new();
        for (index, value) in given.unwrap_or_default().iter().enumerate() {
            let arg = Arg::String(value.clone());
            let checked = query(with_value(args, name, &arg)).and_then(|query| Ok((query, sent_value(param, &arg)?)));
            let (query, text) = checked.map_err(|error| match error {
                Error::InvalidParameter { parameter, problem } if parameter == name => {
                    Error::parameter(format!("{name}[{index}]"), problem)
                }
                other => other,
            })?;
            first.get_or_insert(query);
            if seen.insert(meaning(&text)) {
                values.push(value.clone());
                sent.push(text);
            }
        }
        let Some(first) = first else { return Err(Error::parameter(name, "must not be empty")) };
        let mut by_rank: Vec<u32> = (0..sent.len() as u32).collect();
        by_rank.sort_by_cached_key(|index| meaning(&sent[*index as usize]));
        let digest = digest(by_rank.iter().map(|index| sent[*index as usize].as_str())).into();
        Ok((Self { name, values: values.into(), sent: sent.into(), by_rank: by_rank.into(), digest }, first))
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

/// Hash of values in the order of their meanings.
fn digest<'a>(sent: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for value in sent {
        hasher.update(meaning(value));
        hasher.update("\n");
    }
    hasher.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
