//! `Client.height_at`: the height of a chain at a time.

use std::future::Future;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::client::Client;
use crate::client::Error;
use crate::interface::{Chain, ParamKind};
use crate::python::base::asyncio::{Coroutine, coroutine};
use crate::python::base::block_on::block_on;
use crate::python::base::{arguments, query_arguments};
use crate::query::{height_at, parse_time};

/// The chain as the caller gave it, if at all: `None` of Python is no chain.
struct GivenChain<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for GivenChain<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Some(given.to_owned())))
    }
}

#[pymethods]
impl Client {
    #[doc = doc!(Client.height_at)]
    #[pyo3(signature = (time, *, chain=GivenChain(None), **unknown), text_signature = "($self, time, *, chain='main')")]
    fn height_at(
        &self,
        py: Python<'_>,
        time: &Bound<'_, PyAny>,
        chain: GivenChain<'_>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<i64> {
        arguments::reject_in::<Self>(py, "height_at", unknown)?;
        Ok(block_on(py, &self.inner, self.find_height(time, chain)?)??)
    }

    #[doc = doc!(Client.height_at_async)]
    #[pyo3(signature = (time, *, chain=GivenChain(None), **unknown), text_signature = "($self, time, *, chain='main')")]
    fn height_at_async(
        &self,
        py: Python<'_>,
        time: &Bound<'_, PyAny>,
        chain: GivenChain<'_>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Coroutine> {
        arguments::reject_in::<Self>(py, "height_at_async", unknown)?;
        let finding = self.find_height(time, chain)?;
        Ok(coroutine("Client.height_at_async", self.inner.clone(), move |_| {
            Ok((finding, |py: Python<'_>, height: Result<i64, Error>| {
                let height = height?;
                Ok(height.into_pyobject(py)?.into_any().unbind())
            }))
        }))
    }
}

impl Client {
    fn find_height(
        &self,
        time: &Bound<'_, PyAny>,
        chain: GivenChain<'_>,
    ) -> PyResult<impl Future<Output = Result<i64, Error>> + Send + use<>> {
        let chain = self.named_chain(chain)?;
        let time = parse_time("time", &query_arguments::argument("time", time, ParamKind::Time)?, None)?;
        let client = self.inner.clone();
        Ok(async move { height_at(&client, chain, None, time).await })
    }

    /// A chain by its role in the deployment, or by the short name that this client has for it.
    fn named_chain(&self, GivenChain(given): GivenChain<'_>) -> PyResult<Chain> {
        let Some(given) = given else { return Ok(Chain::Main) };
        let settings = self.inner.settings();
        let [main, zone] = [Chain::Main, Chain::Zone].map(|chain| (settings.chain(chain), chain));
        arguments::one_of("chain", &given, &[("main", Chain::Main), ("zone", Chain::Zone), main, zone])
    }
}
