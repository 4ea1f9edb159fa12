//! `to_pandas`, `to_polars` and `to_arrow`, which are the same for several classes.

use pyo3::prelude::*;

use super::arrow::FrameOptions;
use crate::columns::DecimalPolicy;

/// A class whose rows can be converted.
pub trait ToFrame {
    /// Type of amounts where neither the caller nor the client names one.
    const NUMBERS: DecimalPolicy = DecimalPolicy::Decimal;

    /// Type of amounts that the client names.
    fn numbers(&self) -> Option<DecimalPolicy>;

    fn numbers_or(&self, given: Option<DecimalPolicy>) -> DecimalPolicy {
        given.or_else(|| self.numbers()).unwrap_or(Self::NUMBERS)
    }

    fn to_frame<'py>(&self, py: Python<'py>, options: FrameOptions) -> PyResult<Bound<'py, PyAny>>;
}

/// Adds the methods to a class that is `ToFrame`.
macro_rules! to_frame_methods {
    ($class:ident) => {
        to_frame_methods! { $class, to_polars Polars to_arrow Arrow }
    };
    ($class:ident, $($other:ident $frame:ident)*) => {
        #[pymethods]
        impl $class {
            #[doc = doc!($class.to_pandas)]
            #[pyo3(
                signature = (numbers=None, *, dtype_backend=None, columns=None, **unknown),
                text_signature = "($self, numbers=None, *, dtype_backend=None, columns=None)"
            )]
            fn to_pandas<'py>(
                &self,
                py: Python<'py>,
                numbers: Option<DecimalPolicy>,
                dtype_backend: Option<DtypeBackend>,
                columns: Option<ColumnNames>,
                unknown: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                arguments::reject_in::<Self>(py, "to_pandas", unknown)?;
                let numbers = self.numbers_or(numbers);
                self.to_frame(py, FrameOptions { frame: Frame::Pandas, numbers, columns, dtype_backend })
            }

            $(
                #[doc = doc!($class.$other)]
                #[pyo3(
                    signature = (numbers=None, *, columns=None, **unknown),
                    text_signature = "($self, numbers=None, *, columns=None)"
                )]
                fn $other<'py>(
                    &self,
                    py: Python<'py>,
                    numbers: Option<DecimalPolicy>,
                    columns: Option<ColumnNames>,
                    unknown: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    arguments::reject_in::<Self>(py, stringify!($other), unknown)?;
                    let numbers = self.numbers_or(numbers);
                    self.to_frame(py, FrameOptions { frame: Frame::$frame, numbers, columns, dtype_backend: None })
                }
            )*
        }
    };
}
pub(crate) use to_frame_methods;
