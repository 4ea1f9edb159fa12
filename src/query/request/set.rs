//! `Members`: the lists of a query that has several values for one argument.

use std::collections::HashSet;
use std::sync::Arc;

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
        query: impl Fn(Vec<(String, Arg)>) -> Result<(Q, Option<String>), Error>,
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
        let mut seen = HashSet::new();
        for (index, value) in given.unwrap_or_default().iter().enumerate() {
            let query = query(with_value(args, name, &Arg::String(value.clone())));
            let (query, meaning) = query.map_err(|error| match error {
                Error::InvalidParameter { parameter, problem } if parameter == name => {
                    Error::parameter(format!("{name}[{index}]"), problem)
                }
                other => other,
            })?;
            if seen.insert(meaning) {
                values.push(value.clone());
                queries.push(query);
            }
        }
        if queries.is_empty() {
            return Err(Error::parameter(name, "must not be empty"));
        }
        let args = with_value(args, name, &Arg::List(values.clone()));
        Ok((Self { name, values: values.into(), queries: queries.into() }, args))
    }

    /// Returns the set with `change` applied to the query of each value.
    pub(super) fn map(&self, change: impl Fn(&Q) -> Q) -> Self {
        Self { queries: self.queries.iter().map(change).collect(), ..self.clone() }
    }
}
