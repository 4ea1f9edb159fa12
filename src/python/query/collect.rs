//! Methods of `Query` that return the complete result: blocking, awaited, and converted.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::last_run::BegunRun;
use super::progress::Bar;
use super::query::Query;
use crate::client::Error;
use crate::columns::{DecimalPolicy, Projection, StringLayout, schema};
use crate::process;
use crate::python::base::arguments::{self, ColumnNames};
use crate::python::base::asyncio::{Coroutine, coroutine};
use crate::python::base::block_on::block_on;
use crate::python::results::arrow::{self, Conversion, DtypeBackend, Frame, FrameOptions};
use crate::python::results::frames::{ToFrame, to_frame_methods};
use crate::python::results::incomplete::report_incomplete;
use crate::python::results::record_classes;
use crate::python::results::records::Records;
use crate::python::results::report::Report;
use crate::query::{self, Partial, Run};

/// All records of a run with its report, or its error.
type Gathered = Result<(query::Records, query::Report), Error>;

impl Query {
    /// Returns a future of all records, and its progress bar. `partial` can be read meanwhile.
    fn gather(
        &self,
        py: Python<'_>,
        layout: StringLayout,
    ) -> PyResult<(impl Future<Output = Gathered> + Send + use<>, BegunRun, Bar)> {
        let result = Partial::all(self.record(), layout);
        let (run, begun) = self.last.begin(py, &self.start, query::collecting(&self.start, result).dividing())?;
        let bar = self.bar(py, &run)?;
        Ok((query::collect(self.start.clone(), run), begun, bar))
    }

    fn gathered(&self, py: Python<'_>, run: &BegunRun, result: Gathered) -> PyResult<Records> {
        let (records, report) = result.map_err(|error| run.failed(py, &error))?;
        let report = Report { inner: report };
        let records = Records::new(records, report.inner.clone(), self.numbers());
        report_incomplete(py, self.start.query().client().settings().strict, report, Some(records.clone()))?;
        Ok(records)
    }

    fn collect_in(&self, py: Python<'_>, layout: StringLayout) -> PyResult<(Records, BegunRun)> {
        let (gathering, run, bar) = self.gather(py, layout)?;
        let result = block_on(py, self.start.query().client(), gathering);
        drop(bar);
        let result = result.map_err(|raised| run.interrupted(py, raised))?;
        Ok((self.gathered(py, &run, result)?, run))
    }

    /// A coroutine of all records, which `finish` converts.
    fn collecting(
        slf: Py<Self>,
        name: &'static str,
        finish: impl FnOnce(Python<'_>, Records) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Coroutine {
        let begun = Arc::new(OnceLock::new());
        let started = begun.clone();
        let collecting = coroutine(name, slf.get().start.query().client().clone(), move |py| {
            let (gathering, run, bar) = slf.get().gather(py, StringLayout::Utf8)?;
            let run = begun.get_or_init(|| run).clone();
            Ok((gathering, move |py: Python<'_>, result| {
                drop(bar);
                finish(py, slf.get().gathered(py, &run, result)?)
            }))
        });
        collecting.annotating(move |exception| annotate(&started, exception))
    }

    fn collected(slf: Py<Self>) -> Coroutine {
        Self::collecting(slf, "Query.collect_async", |py, records| Py::new(py, records).map(Py::into_any))
    }

    /// A coroutine of all records as a frame.
    fn converting(slf: Py<Self>, py: Python<'_>, name: &'static str, options: &FrameOptions) -> PyResult<Coroutine> {
        let conversion = Conversion::new(py, slf.get().record(), Projection::ALL, options)?;
        options.frame.load(py)?;
        let layout = options.frame.layout();
        let begun = Arc::new(OnceLock::new());
        let started = begun.clone();
        let converting = coroutine(name, slf.get().start.query().client().clone(), move |py| {
            let (gathering, run, bar) = slf.get().gather(py, layout)?;
            let run = begun.get_or_init(|| run).clone();
            let work = async move {
                let gathered = gathering.await?;
                let table = process::long(|| conversion.table(&gathered.0));
                Ok((gathered, conversion, table))
            };
            Ok((work, move |py: Python<'_>, result: Result<(_, Conversion, Result<_, Error>), Error>| {
                drop(bar);
                let (gathered, conversion, table) = result.map_err(|error| run.failed(py, &error))?;
                let Records { report, .. } = slf.get().gathered(py, &run, Ok(gathered))?;
                let table = table.map_err(|error| run.failed(py, &error))?;
                run.release_partial();
                conversion.finish(py, table, report).map(Bound::unbind)
            }))
        });
        Ok(converting.annotating(move |exception| annotate(&started, exception)))
    }

    fn first_page(
        &self,
        py: Python<'_>,
    ) -> PyResult<(impl Future<Output = Result<Option<query::Records>, Error>> + Send + use<>, BegunRun)> {
        let start = self.start.limited_to(1);
        // The position and the limit stay those of the query.
        let (run, begun) = self.last.begin(py, &self.start, Run::new(&start))?;
        let mut run = run.returning_first_page_at_once();
        let first = async move {
            while let Some(page) = run.next().await? {
                if page.columns.rows() > 0 {
                    return Ok(Some(query::Records::new(page.columns.record(), vec![page.columns])));
                }
            }
            Ok(None)
        };
        Ok((first, begun))
    }
}

fn first_of(py: Python<'_>, run: &BegunRun, result: Result<Option<query::Records>, Error>) -> PyResult<Py<PyAny>> {
    let records = result.map_err(|error| run.failed(py, &error))?;
    match records.as_ref().and_then(|records| records.locate(0)) {
        Some((columns, row)) => record_classes::view(py, Arc::new(columns.slice(row, 1)), 0).map(Bound::unbind),
        None => run.ended(py).map(|()| py.None()),
    }
}

/// Adds to an exception what a run has fetched, if it has begun.
fn annotate(run: &OnceLock<BegunRun>, exception: &Bound<'_, PyAny>) {
    if let Some(run) = run.get() {
        run.annotate(exception);
    }
}

impl ToFrame for Query {
    fn numbers(&self) -> Option<DecimalPolicy> {
        self.start.query().client().settings().numbers
    }

    fn to_frame<'py>(&self, py: Python<'py>, options: FrameOptions) -> PyResult<Bound<'py, PyAny>> {
        let conversion = Conversion::new(py, self.record(), Projection::ALL, &options)?;
        options.frame.load(py)?;
        let (Records { inner: records, report, .. }, run) = self.collect_in(py, options.frame.layout())?;
        // Runs on the runtime's threads, which made the columns: an allocator keeps freed memory for its thread.
        let converted = block_on(py, self.start.query().client(), async move {
            let table = process::long(|| conversion.table(&records));
            (conversion, table)
        });
        let (conversion, table) = converted.map_err(|raised| run.interrupted(py, raised))?;
        let table = table.map_err(|error| run.failed(py, &error))?;
        // From here on the result is the frame's, and is not kept beside it.
        run.release_partial();
        conversion.finish(py, table, report)
    }
}

to_frame_methods! { Query }

#[pymethods]
impl Query {
    #[doc = doc!(Query.collect)]
    #[pyo3(signature = (**unknown), text_signature = "($self)")]
    fn collect(&self, py: Python<'_>, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<Records> {
        arguments::reject_in::<Self>(py, "collect", unknown)?;
        self.collect_in(py, StringLayout::Utf8).map(|(records, _)| records)
    }

    #[doc = doc!(Query.collect_async)]
    #[pyo3(signature = (**unknown), text_signature = "($self)")]
    fn collect_async(slf: Py<Self>, py: Python<'_>, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<Coroutine> {
        arguments::reject_in::<Self>(py, "collect_async", unknown)?;
        Ok(Self::collected(slf))
    }

    fn __await__(slf: Py<Self>) -> Coroutine {
        Self::collected(slf).awaited()
    }

    #[doc = doc!(Query.first)]
    #[pyo3(signature = (**unknown), text_signature = "($self)")]
    fn first(&self, py: Python<'_>, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        arguments::reject_in::<Self>(py, "first", unknown)?;
        let (first, run) = self.first_page(py)?;
        let result = block_on(py, self.start.query().client(), first);
        first_of(py, &run, result.map_err(|raised| run.interrupted(py, raised))?)
    }

    #[doc = doc!(Query.first_async)]
    #[pyo3(signature = (**unknown), text_signature = "($self)")]
    fn first_async(slf: Py<Self>, py: Python<'_>, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<Coroutine> {
        arguments::reject_in::<Self>(py, "first_async", unknown)?;
        Ok(coroutine("Query.first_async", slf.get().start.query().client().clone(), move |py| {
            let (first, run) = slf.get().first_page(py)?;
            Ok((first, move |py: Python<'_>, result| first_of(py, &run, result)))
        }))
    }

    #[doc = doc!(Query.to_dicts)]
    #[pyo3(
        signature = (*, json=None, columns=None, **unknown),
        text_signature = "($self, *, json=False, columns=None)"
    )]
    fn to_dicts<'py>(
        &self,
        py: Python<'py>,
        json: Option<&Bound<'py, PyAny>>,
        columns: Option<ColumnNames>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        arguments::reject_in::<Self>(py, "to_dicts", unknown)?;
        // Arguments are checked before anything is fetched.
        let json = arguments::flag("json", json)?;
        arrow::project(py, schema(self.record(), DecimalPolicy::Decimal), columns.as_ref())?;
        self.collect(py, None)?.dicts(py, json, columns.as_ref())
    }

    #[doc = doc!(Query.to_dicts_async)]
    #[pyo3(
        signature = (*, json=None, columns=None, **unknown),
        text_signature = "($self, *, json=False, columns=None)"
    )]
    fn to_dicts_async(
        slf: Py<Self>,
        py: Python<'_>,
        json: Option<&Bound<'_, PyAny>>,
        columns: Option<ColumnNames>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Coroutine> {
        arguments::reject_in::<Self>(py, "to_dicts_async", unknown)?;
        let json = arguments::flag("json", json)?;
        arrow::project(py, schema(slf.get().record(), DecimalPolicy::Decimal), columns.as_ref())?;
        Ok(Self::collecting(slf, "Query.to_dicts_async", move |py, records| {
            Ok(records.dicts(py, json, columns.as_ref())?.unbind().into_any())
        }))
    }

    #[doc = doc!(Query.to_pandas_async)]
    #[pyo3(
        signature = (numbers=None, *, dtype_backend=None, columns=None, **unknown),
        text_signature = "($self, numbers=None, *, dtype_backend=None, columns=None)"
    )]
    fn to_pandas_async(
        slf: Py<Self>,
        py: Python<'_>,
        numbers: Option<DecimalPolicy>,
        dtype_backend: Option<DtypeBackend>,
        columns: Option<ColumnNames>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Coroutine> {
        arguments::reject_in::<Self>(py, "to_pandas_async", unknown)?;
        let numbers = slf.get().numbers_or(numbers);
        let options = FrameOptions { frame: Frame::Pandas, numbers, columns, dtype_backend };
        Self::converting(slf, py, "Query.to_pandas_async", &options)
    }
}

/// Declares the awaitable forms of frames without options of their own.
macro_rules! awaitable_frames {
    ($($name:ident: $frame:ident),*) => {
        #[pymethods]
        impl Query {
            $(
                #[doc = doc!(Query.$name)]
                #[pyo3(
                    signature = (numbers=None, *, columns=None, **unknown),
                    text_signature = "($self, numbers=None, *, columns=None)"
                )]
                fn $name(
                    slf: Py<Self>,
                    py: Python<'_>,
                    numbers: Option<DecimalPolicy>,
                    columns: Option<ColumnNames>,
                    unknown: Option<&Bound<'_, PyDict>>,
                ) -> PyResult<Coroutine> {
                    arguments::reject_in::<Self>(py, stringify!($name), unknown)?;
                    let numbers = slf.get().numbers_or(numbers);
                    let options = FrameOptions { frame: Frame::$frame, numbers, columns, dtype_backend: None };
                    Self::converting(slf, py, concat!("Query.", stringify!($name)), &options)
                }
            )*
        }
    };
}

awaitable_frames! { to_polars_async: Polars, to_arrow_async: Arrow }
