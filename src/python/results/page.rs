//! `Page`: one page of a result.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::records::Records;
use crate::columns::DecimalPolicy;
use crate::decode::Paging;
use crate::display::html;
use crate::message::counted;
use crate::python::base::pickle::{Reduced, reduced};
use crate::query;

type Members<'py> = (u64, Option<u64>, Option<u64>, Option<String>, Option<String>, Bound<'py, Records>, String);

#[doc = doc!(Page)]
#[pyclass(frozen, module = "chainframe")]
pub struct Page {
    #[doc = doc!(Page.number)]
    #[pyo3(get)]
    number: u64,
    #[doc = doc!(Page.total_pages)]
    #[pyo3(get)]
    total_pages: Option<u64>,
    #[doc = doc!(Page.total)]
    #[pyo3(get)]
    total: Option<u64>,
    #[doc = doc!(Page.chain_full_name)]
    #[pyo3(get)]
    chain_full_name: Option<String>,
    #[doc = doc!(Page.chain_short_name)]
    #[pyo3(get)]
    chain_short_name: Option<String>,
    #[doc = doc!(Page.records)]
    #[pyo3(get)]
    records: Py<Records>,
    after: After,
}

/// Position after the page, serialized when it is read.
enum After {
    Checkpoint(query::Checkpoint),
    Cursor(String),
}

impl Page {
    pub fn new(
        py: Python<'_>,
        page: query::Page,
        report: query::Report,
        numbers: Option<DecimalPolicy>,
    ) -> PyResult<Self> {
        let records = query::Records::new(page.columns.record(), vec![page.columns]);
        let Paging { total_pages, total, chain_full_name, chain_short_name, .. } = page.paging;
        Ok(Self {
            number: page.number,
            total_pages,
            total,
            chain_full_name,
            chain_short_name,
            records: Py::new(py, Records::new(records, report, numbers))?,
            after: After::Checkpoint(page.checkpoint),
        })
    }

    fn members<'py>(&self, py: Python<'py>) -> Members<'py> {
        (
            self.number,
            self.total_pages,
            self.total,
            self.chain_full_name.clone(),
            self.chain_short_name.clone(),
            self.records.bind(py).clone(),
            self.cursor(),
        )
    }
}

#[pymethods]
impl Page {
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, record: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        crate::python::base::generic(class, record)
    }

    #[doc = doc!(Page.cursor)]
    #[getter]
    fn cursor(&self) -> String {
        match &self.after {
            After::Checkpoint(checkpoint) => checkpoint.cursor().to_json(),
            After::Cursor(text) => text.clone(),
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        self.members(py).into_pyobject(py)?.eq(other.get().members(py))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.members(py).into_pyobject(py)?.hash()
    }

    fn __repr__(&self) -> String {
        let records = &self.records.get().inner;
        let of = self.total_pages.map_or(String::new(), |total| format!(" of {total}"));
        let rows = counted(records.len() as u64, "row");
        format!("<Page {}{of}: {rows} of {}>", self.number, records.record().name)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let records = self.records.get();
        let mut about = records.about();
        about.insert_str(
            0,
            &match self.total_pages {
                Some(pages) => format!("{} of {}: ", html::count(self.number), html::count(pages)),
                None => format!("{}: ", html::count(self.number)),
            },
        );
        if let Some(total) = self.total {
            about += &format!(", {} in the list", html::counted(total, "row"));
        }
        if let Some(chain) = self.chain_full_name.as_ref().or(self.chain_short_name.as_ref()) {
            about += &format!(", chain {chain}");
        }
        Ok(html::form("Page", &about, &[records.table(py)?]))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "_restore_page", self.members(py))
    }
}

#[pyfunction]
pub fn _restore_page(
    number: u64,
    total_pages: Option<u64>,
    total: Option<u64>,
    chain_full_name: Option<String>,
    chain_short_name: Option<String>,
    records: Py<Records>,
    cursor: String,
) -> Page {
    Page { number, total_pages, total, chain_full_name, chain_short_name, records, after: After::Cursor(cursor) }
}
