//! `Records` as text and as HTML.

use pyo3::prelude::*;

use super::records::Records;
use crate::display::{html, text};
use crate::interface::Kind;
use crate::message::{Syntax, counted};
use crate::python::base::{convert, errors};
use crate::query::Completeness;

impl Records {
    /// Completeness of the result, as far as it is known.
    fn completeness(&self) -> &'static str {
        match (&self.cursor, self.report.inner.state()) {
            (Some(_), _) => "followed",
            (None, Completeness::Complete) => "complete",
            (None, Completeness::Incomplete) => "possibly incomplete",
            (None, Completeness::Unfinished) => "run not finished",
        }
    }

    /// Description in one line.
    pub fn about(&self) -> String {
        let record = self.inner.record();
        let rows = html::counted(self.inner.len() as u64, "row");
        let columns = html::counted(self.fields().count() as u64, "column");
        format!("{rows} of {}, {columns}", record.name)
    }

    /// The first rows and the last ones as HTML.
    pub fn table(&self, py: Python<'_>) -> PyResult<String> {
        let (head, rows) = self.cells(py)?;
        Ok(html::table(&head, &rows))
    }

    /// Heads of the columns, and the first rows and the last ones.
    fn cells(&self, py: Python<'_>) -> PyResult<(Vec<html::ColumnHead>, Vec<html::Row>)> {
        let fields = self.inner.record().fields;
        let order: Vec<_> = (0..fields.len()).filter(|column| self.selection().contains(*column)).collect();
        let head: Vec<_> = order
            .iter()
            .map(|column| &fields[*column])
            .map(|field| html::ColumnHead {
                name: field.name,
                kind: if field.kind == Kind::Time { "time, UTC" } else { field.kind.name() },
                is_number: field.kind.is_number(),
            })
            .collect();
        let length = self.inner.len();
        let left_out = if length > html::HEAD + html::TAIL { html::HEAD..length - html::TAIL } else { 0..0 };
        let mut rows = Vec::new();
        for row in (0..length).filter(|row| !left_out.contains(row) || *row == left_out.start) {
            rows.push(match self.inner.locate(row) {
                Some((columns, at)) if !left_out.contains(&row) => {
                    let cells = order.iter().map(|column| convert::cell_text(py, columns, *column, at));
                    Some(cells.collect::<PyResult<Vec<_>>>()?)
                }
                Some(_) | None => None,
            });
        }
        Ok((head, rows))
    }
}

#[pymethods]
impl Records {
    /// The first rows and the last ones, as wide as the terminal.
    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        let size = py.import("shutil")?.call_method0("get_terminal_size")?;
        let width = size.getattr("columns")?.extract()?;
        let (head, rows) = self.cells(py)?;
        let length = html::counted(self.inner.len() as u64, "row");
        let table = text::table(&head, &rows, width);
        let remarks: String = self
            .report
            .inner
            .remarks
            .to_vec()
            .iter()
            .fold(String::new(), |text, remark| text + "\n" + &errors::printable(&remark.sentence(Syntax::Python)));
        Ok(format!("{table}\n{length} of {}, {}{remarks}", self.inner.record().name, self.completeness()))
    }

    /// Called by IPython where it shows no HTML.
    fn _repr_pretty_(&self, printer: &Bound<'_, PyAny>, cycle: bool) -> PyResult<()> {
        let _ = cycle;
        printer.call_method1("text", (self.__str__(printer.py())?,)).map(drop)
    }

    fn __repr__(&self) -> String {
        let rows = counted(self.inner.len() as u64, "row");
        format!("<Records of {}: {rows}, {}>", self.inner.record().name, self.completeness())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let parts = [self.table(py)?, html::summary(&self.report.inner)];
        Ok(html::form("Records", &self.about(), &parts))
    }
}
