//! Calls of a client: each makes a query of one endpoint.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::client::Client;
use crate::client::Error;
use crate::interface::{Endpoint, Param, endpoint};
use crate::python::base::arguments;
use crate::python::base::query_arguments;
use crate::python::query::query::Query;
use crate::query::{self as core, Arg, Options, QueryStart};

/// Declares the methods. Their arguments are bound by the declaration of the endpoint, with which a test compares the
/// signatures.
macro_rules! calls {
    ($($name:ident $signature:tt)*) => {
        #[pymethods]
        impl Client {
            $(
                #[doc = doc!(Client.$name)]
                #[pyo3(signature = (*args, **named), text_signature = $signature)]
                fn $name(
                    slf: &Bound<'_, Self>,
                    args: &Bound<'_, PyTuple>,
                    named: Option<&Bound<'_, PyDict>>,
                ) -> PyResult<Query> {
                    query(slf, stringify!($name), args, named)
                }
            )*
        }
    };
}

calls! {
    tokens "($self, *, protocol_type=None, token_contract_address=None, start_time=None, end_time=None, \
        order_by=None, chain=None, page_size=None, max_items=None, unique=False)"
    token_transfers "($self, token_contract_address, *, min_amount=None, max_amount=None, chain=None, page_size=None, \
        max_items=None, unique=False)"
    cross_chain_transactions "($self, *, tx_id=None, height=None, start_height=None, end_height=None, start_time=None, \
        end_time=None, address=None, from_address=None, to_address=None, token_contract_address=None, \
        chain=None, page_size=None, max_items=None, unique=False)"
    blocks "($self, *, height=None, chain=None, page_size=None, max_items=None, unique=False)"
    address_transactions "($self, address, *, start_height=None, end_height=None, start_time=None, end_time=None, \
        direction=None, chain=None, page_size=None, max_items=None, unique=False)"
    large_transactions "($self, *, min_amount=None, height=None, chain=None, page_size=None, max_items=None, unique=False)"
    transactions "($self, *, block_hash=None, height=None, start_height=None, end_height=None, start_time=None, \
        end_time=None, chain=None, page_size=None, max_items=None, unique=False)"
    transactions_by_hash "($self, tx_ids, *, chain=None)"
    logs "($self, tx_ids, *, chain=None)"
}

#[pymethods]
impl Client {
    #[doc = doc!(Client.resume)]
    #[pyo3(signature = (cursor, query=None))]
    fn resume(slf: &Bound<'_, Self>, cursor: &Bound<'_, PyAny>, query: Option<&Bound<'_, PyAny>>) -> PyResult<Query> {
        let query = query
            .map(|query| query.cast::<Query>())
            .transpose()
            .map_err(|_| Error::parameter("query", "must be the Query that the cursor is of, or None"))?;
        let Ok(text) = cursor.cast::<PyString>() else {
            let problem = if cursor.is_none() {
                "must be a string; it is None where nothing is left to fetch".into()
            } else {
                arguments::rejected("must be a string from page.cursor, query.cursor or error.cursor", cursor)
            };
            return Err(Error::parameter("cursor", problem).into());
        };
        let text = arguments::text(text).map_err(|problem| Error::parameter("cursor", problem))?;
        resumed(slf, &text, query)
    }
}

fn query(
    slf: &Bound<'_, Client>,
    call: &'static str,
    args: &Bound<'_, PyTuple>,
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<Query> {
    let endpoint = declared(call)?;
    let required = endpoint.params.iter().filter(|param| param.required).map(|param| param.name);
    let mut given = Vec::new();
    let mut options = Options::default();
    for (name, value) in arguments::bound(|| slf.getattr(call), required, args, named)? {
        match (name.as_str(), endpoint.param(&name)) {
            (_, Some(_)) if value.is_none() => {}
            (_, Some(param)) => {
                let value = if param.selects_list() {
                    query_arguments::one_or_several(&name, &value, param.kind)?
                } else {
                    query_arguments::argument(&name, &value, param.kind)?
                };
                given.push((name, value));
            }
            ("chain", None) => options.chain = arguments::optional(&value, "chain")?,
            ("page_size", None) if endpoint.page_size_max().is_some() => {
                options.page_size = arguments::optional(&value, "page_size")?;
            }
            ("max_items", None) if endpoint.page_size_max().is_some() => {
                options.max_items = arguments::optional(&value, "max_items")?;
            }
            ("unique", None) if endpoint.params.iter().any(Param::selects_list) => {
                options.unique = arguments::flag("unique", Some(&value))?;
            }
            (name, None) => return Err(arguments::unexpected(&slf.getattr(call)?, name)),
        }
    }
    new_query(slf, call, given, options)
}

/// A value of a parameter as a call sends it.
#[pyfunction]
pub fn _sent_value(call: &str, parameter: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let param = declared(call)?
        .param(parameter)
        .ok_or_else(|| PyTypeError::new_err(format!("{call} has no parameter {parameter:?}")))?;
    let value = query_arguments::argument(parameter, value, param.kind)?;
    Ok(core::sent_value(param, &value)?)
}

#[pyfunction]
pub fn _restore_query(client: &Bound<'_, Client>, call: &str, given: &str) -> PyResult<Query> {
    let (args, options) = serde_json::from_str(given).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    new_query(client, call, args, options)
}

#[pyfunction]
pub fn _resume_query(client: &Bound<'_, Client>, cursor: &str) -> PyResult<Query> {
    resumed(client, cursor, None)
}

fn declared(call: &str) -> PyResult<&'static Endpoint> {
    endpoint(call).ok_or_else(|| PyTypeError::new_err(format!("no call {call:?}")))
}

fn new_query(client: &Bound<'_, Client>, call: &str, args: Vec<(String, Arg)>, options: Options) -> PyResult<Query> {
    let endpoint = declared(call)?;
    let query = core::Query::new(&client.get().inner, endpoint, args, options)?;
    Ok(Query::new(client, client.get().progress, query.into()))
}

fn resumed(client: &Bound<'_, Client>, cursor: &str, query: Option<&Bound<'_, Query>>) -> PyResult<Query> {
    let values = query.map(|query| query.get().start.query());
    let start = QueryStart::resume(&client.get().inner, cursor, values)?;
    Ok(Query::new(client, client.get().progress, start))
}
