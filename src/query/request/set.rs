//! `Members`: the lists of a query that has several values for one argument.

use std::collections::HashSet;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::args::{Arg, Options};
use crate::client::Error;
use crate::interface::{Endpoint, ParamKind};
use crate::message::{Hint, Message};

/// Queries of a set, in the order of their values.
#[derive(Clone)]
pub struct Members<Q> {
    /// Parameter with several values.
    pub name: &'static str,
    /// Values as the caller wrote them.
    pub values: Arc<[String]>,
    pub queries: Arc<[Q]>,
    /// Meanings of the values: addresses and hashes are the same in either letter case.
    pub meanings: Arc<[String]>,
    /// Indices of the values in the order of their meanings: the same whatever order the caller has chosen. A rank is an
    /// index of this order.
    pub by_rank: Arc<[u32]>,
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

impl<Q: Clone> Members<Q> {
    /// Checks every value before anything is sent. `query` makes the query of one value, and says what the value means.
    /// Returns the arguments with each value once.
    pub(super) fn new(
        endpoint: &'static Endpoint,
        name: &'static str,
        args: &[(String, Arg)],
        options: &Options,
        query: impl Fn(Vec<(String, Arg)>) -> Result<(Q, String), Error>,
    ) -> Result<(Self, Vec<(String, Arg)>), Error> {
        if !endpoint.param(name).is_some_and(|param| param.selects_list()) {
            return Err(Error::parameter(name, "must be one value"));
        }
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
        let mut queries = Vec::new();
        let mut meanings = Vec::new();
        let mut seen = HashSet::new();
        for (index, value) in given.unwrap_or_default().iter().enumerate() {
            let query = query(with_value(args, name, &Arg::String(value.clone())));
            let (query, meaning) = query.map_err(|error| match error {
                Error::InvalidParameter { parameter, problem } if parameter == name => {
                    Error::parameter(format!("{name}[{index}]"), problem)
                }
                other => other,
            })?;
            if seen.insert(meaning.clone()) {
                values.push(value.clone());
                meanings.push(meaning);
                queries.push(query);
            }
        }
        if queries.is_empty() {
            return Err(Error::parameter(name, "must not be empty"));
        }
        let args = with_value(args, name, &Arg::List(values.clone()));
        let mut by_rank: Vec<u32> = (0..meanings.len() as u32).collect();
        by_rank.sort_by_key(|index| &meanings[*index as usize]);
        let members = Self {
            name,
            values: values.into(),
            queries: queries.into(),
            meanings: meanings.into(),
            by_rank: by_rank.into(),
        };
        Ok((members, args))
    }

    /// Ranks of the values, by index.
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.by_rank.len()];
        for (rank, index) in self.by_rank.iter().enumerate() {
            ranks[*index as usize] = rank as u32;
        }
        ranks
    }

    /// Hash of the values, in whatever order they are.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        for index in self.by_rank.iter() {
            hasher.update(&self.meanings[*index as usize]);
            hasher.update("\n");
        }
        hasher.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the set with `change` applied to the query of each value.
    pub(super) fn map(&self, change: impl Fn(&Q) -> Q) -> Self {
        Self { queries: self.queries.iter().map(change).collect(), ..self.clone() }
    }
}
