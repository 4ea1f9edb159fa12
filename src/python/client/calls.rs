//! Calls of a client: each makes a query of one endpoint.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use super::client::Client;
use crate::interface::endpoint;
use crate::python::base::arguments;
use crate::python::base::arguments::Readable;
use crate::python::base::errors;
use crate::python::query::query::Query;
use crate::query::{self as core, Arg, Options, Run};

type Any<'py> = Option<Bound<'py, PyAny>>;

#[pymethods]
impl Client {
    #[doc = doc!(Client.tokens)]
    #[pyo3(signature = (
        *, protocol_type=None, token_contract_address=None, start_time=None, end_time=None, order_by=None,
        chain=None, page_size=None, max_items=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the call's parameters, all by keyword")]
    fn tokens(
        slf: &Bound<'_, Self>,
        protocol_type: Any<'_>,
        token_contract_address: Any<'_>,
        start_time: Any<'_>,
        end_time: Any<'_>,
        order_by: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [
            ("protocol_type", protocol_type),
            ("token_contract_address", token_contract_address),
            ("start_time", start_time),
            ("end_time", end_time),
            ("order_by", order_by),
        ];
        query(slf, "tokens", &args, (chain, page_size, max_items))
    }

    #[doc = doc!(Client.token_transfers)]
    #[pyo3(signature = (
        token_contract_address, *, min_amount=None, max_amount=None, chain=None, page_size=None, max_items=None,
    ))]
    fn token_transfers(
        slf: &Bound<'_, Self>,
        token_contract_address: Any<'_>,
        min_amount: Any<'_>,
        max_amount: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [
            ("token_contract_address", token_contract_address),
            ("min_amount", min_amount),
            ("max_amount", max_amount),
        ];
        query(slf, "token_transfers", &args, (chain, page_size, max_items))
    }

    #[doc = doc!(Client.cross_chain_transactions)]
    #[pyo3(signature = (
        *, tx_id=None, height=None, start_height=None, end_height=None, start_time=None, end_time=None,
        address=None, from_address=None, to_address=None, token_contract_address=None, chain=None, page_size=None, max_items=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the call's parameters, all by keyword")]
    fn cross_chain_transactions(
        slf: &Bound<'_, Self>,
        tx_id: Any<'_>,
        height: Any<'_>,
        start_height: Any<'_>,
        end_height: Any<'_>,
        start_time: Any<'_>,
        end_time: Any<'_>,
        address: Any<'_>,
        from_address: Any<'_>,
        to_address: Any<'_>,
        token_contract_address: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [
            ("tx_id", tx_id),
            ("height", height),
            ("start_height", start_height),
            ("end_height", end_height),
            ("start_time", start_time),
            ("end_time", end_time),
            ("address", address),
            ("from_address", from_address),
            ("to_address", to_address),
            ("token_contract_address", token_contract_address),
        ];
        query(slf, "cross_chain_transactions", &args, (chain, page_size, max_items))
    }

    #[doc = doc!(Client.blocks)]
    #[pyo3(signature = (*, height=None, chain=None, page_size=None, max_items=None))]
    fn blocks(
        slf: &Bound<'_, Self>,
        height: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        query(slf, "blocks", &[("height", height)], (chain, page_size, max_items))
    }

    #[doc = doc!(Client.address_transactions)]
    #[pyo3(signature = (
        address, *, start_height=None, end_height=None, start_time=None, end_time=None, direction=None,
        chain=None, page_size=None, max_items=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the call's parameters, nearly all by keyword")]
    fn address_transactions(
        slf: &Bound<'_, Self>,
        address: Any<'_>,
        start_height: Any<'_>,
        end_height: Any<'_>,
        start_time: Any<'_>,
        end_time: Any<'_>,
        direction: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [
            ("address", address),
            ("start_height", start_height),
            ("end_height", end_height),
            ("start_time", start_time),
            ("end_time", end_time),
            ("direction", direction),
        ];
        query(slf, "address_transactions", &args, (chain, page_size, max_items))
    }

    #[doc = doc!(Client.large_transactions)]
    #[pyo3(signature = (*, min_amount=None, height=None, chain=None, page_size=None, max_items=None))]
    fn large_transactions(
        slf: &Bound<'_, Self>,
        min_amount: Any<'_>,
        height: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [("min_amount", min_amount), ("height", height)];
        query(slf, "large_transactions", &args, (chain, page_size, max_items))
    }

    #[doc = doc!(Client.transactions)]
    #[pyo3(signature = (
        *, block_hash=None, height=None, start_height=None, end_height=None, start_time=None, end_time=None,
        chain=None, page_size=None, max_items=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the call's parameters, all by keyword")]
    fn transactions(
        slf: &Bound<'_, Self>,
        block_hash: Any<'_>,
        height: Any<'_>,
        start_height: Any<'_>,
        end_height: Any<'_>,
        start_time: Any<'_>,
        end_time: Any<'_>,
        chain: Any<'_>,
        page_size: Any<'_>,
        max_items: Any<'_>,
    ) -> PyResult<Query> {
        let args = [
            ("block_hash", block_hash),
            ("height", height),
            ("start_height", start_height),
            ("end_height", end_height),
            ("start_time", start_time),
            ("end_time", end_time),
        ];
        query(slf, "transactions", &args, (chain, page_size, max_items))
    }

    #[doc = doc!(Client.transactions_by_hash)]
    #[pyo3(signature = (tx_ids, *, chain=None))]
    fn transactions_by_hash(slf: &Bound<'_, Self>, tx_ids: Any<'_>, chain: Any<'_>) -> PyResult<Query> {
        query(slf, "transactions_by_hash", &[("tx_ids", tx_ids)], (chain, None, None))
    }

    #[doc = doc!(Client.logs)]
    #[pyo3(signature = (tx_ids, *, chain=None))]
    fn logs(slf: &Bound<'_, Self>, tx_ids: Any<'_>, chain: Any<'_>) -> PyResult<Query> {
        query(slf, "logs", &[("tx_ids", tx_ids)], (chain, None, None))
    }

    #[doc = doc!(Client.resume)]
    fn resume(slf: &Bound<'_, Self>, cursor: &Bound<'_, PyAny>) -> PyResult<Query> {
        match cursor.cast::<PyString>() {
            Ok(text) => {
                let text = arguments::text(text).map_err(|problem| errors::parameter(slf.py(), "cursor", problem))?;
                resumed(slf, &text)
            }
            Err(_) => Err(errors::parameter(slf.py(), "cursor", "must be a string")),
        }
    }
}

fn query(
    slf: &Bound<'_, Client>,
    call: &'static str,
    args: &[(&'static str, Any<'_>)],
    (chain, page_size, max_items): (Any<'_>, Any<'_>, Any<'_>),
) -> PyResult<Query> {
    let py = slf.py();
    let endpoint = endpoint(call).ok_or_else(|| PyTypeError::new_err(format!("no call {call:?}")))?;
    let args = arguments::given(py, endpoint, args)?;
    let whole = |name: &str, value: Any<'_>| match value {
        None => Ok(None),
        Some(value) if value.is_instance_of::<PyBool>() => {
            Err(errors::parameter(py, name, "must be an integer, not a bool"))
        }
        Some(value) => i64::read(&value).map(Some).map_err(|_| errors::parameter(py, name, i64::EXPECTED)),
    };
    let chain = match chain {
        None => None,
        Some(chain) => Some(String::read(&chain).map_err(|_| errors::parameter(py, "chain", String::EXPECTED))?),
    };
    let options = Options {
        chain,
        page_size: whole("page_size", page_size)?,
        max_items: whole("max_items", max_items)?,
        exclude_undated: false,
    };
    new_query(slf, call, args, options)
}

#[pyfunction]
pub fn _restore_query(client: &Bound<'_, Client>, call: &str, given: &str) -> PyResult<Query> {
    let (args, options) = serde_json::from_str(given).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    new_query(client, call, args, options)
}

#[pyfunction]
pub fn _resume_query(client: &Bound<'_, Client>, cursor: &str) -> PyResult<Query> {
    resumed(client, cursor)
}

fn new_query(client: &Bound<'_, Client>, call: &str, args: Vec<(String, Arg)>, options: Options) -> PyResult<Query> {
    let endpoint = endpoint(call).ok_or_else(|| PyTypeError::new_err(format!("no call {call:?}")))?;
    let made = core::Query::new(&client.get().inner, endpoint, args, options);
    let run = made.map_err(|error| errors::raise(client.py(), &error))?.into();
    Ok(Query::new(client, client.get().progress, run))
}

fn resumed(client: &Bound<'_, Client>, cursor: &str) -> PyResult<Query> {
    let run = Run::resume(&client.get().inner, cursor).map_err(|error| errors::raise(client.py(), &error))?;
    Ok(Query::new(client, client.get().progress, run))
}
