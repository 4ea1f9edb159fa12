//! The record classes. A class needs a Rust type of its own, so their names stand here once more; that they are
//! the declared ones is checked when the module is made.

use std::sync::Arc;

use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::record::{Field, Record};
use crate::columns::{Columns, Projection};
use crate::interface::{QUERIED, RECORDS, record};

macro_rules! record_classes {
    ($($name:ident),* $(,)?) => {
        $(
            #[pyclass(extends = Record, frozen, module = "chainframe")]
            pub struct $name;

            #[pymethods]
            impl $name {
                #[new]
                #[pyo3(signature = (**fields))]
                fn new(fields: Option<&Bound<'_, PyDict>>) -> PyResult<PyClassInitializer<Self>> {
                    let record = record(stringify!($name)).expect("checked when the module was made");
                    Ok(PyClassInitializer::from(Record::from_fields(record, fields)?).add_subclass(Self))
                }
            }
        )*

        /// The record in that row, as its class.
        pub fn view<'py>(py: Python<'py>, columns: Arc<Columns>, row: usize) -> PyResult<Bound<'py, PyAny>> {
            match columns.record().name {
                $(stringify!($name) => {
                    let view = PyClassInitializer::from(Record::new(columns, row)).add_subclass($name);
                    Bound::new(py, view).map(Bound::into_any)
                })*
                other => Err(PyImportError::new_err(format!("the record type {other} has no class"))),
            }
        }

        pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            let classes = [$((stringify!($name), py.get_type::<$name>())),*];
            for record in RECORDS {
                let class = classes.iter().find(|(name, _)| *name == record.name);
                let Some((name, class)) = class else {
                    let problem = format!("src/python/results/record_classes.rs has no class {}", record.name);
                    return Err(PyImportError::new_err(problem));
                };
                Field::add_all(class, record)?;
                module.add(*name, class)?;
            }
            Ok(())
        }
    };
}

record_classes! {
    Token,
    TokenTransfer,
    CrossChainTransaction,
    Block,
    AddressTransaction,
    LargeTransaction,
    ChainTransaction,
    Transaction,
    EventLog,
}

#[pyfunction]
pub fn _restore_record<'py>(name: &str, fields: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let py = fields.py();
    let record = record(name).ok_or_else(|| PyTypeError::new_err(format!("no record type {name:?}")))?;
    let record = if fields.contains(QUERIED.name)? { record.with_queried() } else { record };
    let row = Record::from_fields(record, Some(fields))?;
    let columns = row.columns().select(Projection::of(record, &fields.keys().extract::<Vec<String>>()?));
    view(py, Arc::new(columns), row.row())
}
