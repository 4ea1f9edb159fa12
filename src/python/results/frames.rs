//! `to_pandas`, `to_polars` and `to_arrow`, which are the same for several classes.

use pyo3::prelude::*;

use super::arrow::{DtypeBackend, Frame};
use crate::columns::DecimalPolicy;
use crate::python::base::arguments::ColumnNames;

/// A class whose rows can be converted.
pub trait ToFrame {
    fn to_frame<'py>(
        &self,
        py: Python<'py>,
        frame: Frame,
        numbers: DecimalPolicy,
        columns: Option<&ColumnNames>,
        dtype_backend: Option<DtypeBackend>,
    ) -> PyResult<Bound<'py, PyAny>>;
}

/// Adds the methods to a class that is `ToFrame`: its name, the default of `numbers`, the signature of `to_pandas`, and
/// that of the others.
macro_rules! to_frame_methods {
    ($class:ident, $numbers:ident, $of_pandas:tt, $of_others:tt) => {
        #[pymethods]
        impl $class {
            #[doc = doc!($class.to_pandas)]
            #[pyo3(
                        signature = (numbers=DecimalPolicy::$numbers, *, dtype_backend=None, columns=None, **unknown),
                        text_signature = $of_pandas
                    )]
            fn to_pandas<'py>(
                &self,
                py: Python<'py>,
                numbers: DecimalPolicy,
                dtype_backend: Option<DtypeBackend>,
                columns: Option<ColumnNames>,
                unknown: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                arguments::reject_in::<Self>(py, "to_pandas", unknown)?;
                self.to_frame(py, Frame::Pandas, numbers, columns.as_ref(), dtype_backend)
            }

            #[doc = doc!($class.to_polars)]
            #[pyo3(
                        signature = (numbers=DecimalPolicy::$numbers, *, columns=None, **unknown),
                        text_signature = $of_others
                    )]
            fn to_polars<'py>(
                &self,
                py: Python<'py>,
                numbers: DecimalPolicy,
                columns: Option<ColumnNames>,
                unknown: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                arguments::reject_in::<Self>(py, "to_polars", unknown)?;
                self.to_frame(py, Frame::Polars, numbers, columns.as_ref(), None)
            }

            #[doc = doc!($class.to_arrow)]
            #[pyo3(
                        signature = (numbers=DecimalPolicy::$numbers, *, columns=None, **unknown),
                        text_signature = $of_others
                    )]
            fn to_arrow<'py>(
                &self,
                py: Python<'py>,
                numbers: DecimalPolicy,
                columns: Option<ColumnNames>,
                unknown: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                arguments::reject_in::<Self>(py, "to_arrow", unknown)?;
                self.to_frame(py, Frame::Arrow, numbers, columns.as_ref(), None)
            }
        }
    };
}
pub(crate) use to_frame_methods;
