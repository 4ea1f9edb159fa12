//! `GivenSettings`: keyword arguments that are settings. An error names the setting, as PyO3's own errors do not.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::arguments::{self, DeferredArg, Readable};

/// Settings as the caller gave them, by name.
pub struct GivenSettings<'py>(Bound<'py, PyDict>);

impl<'py> GivenSettings<'py> {
    pub fn new(py: Python<'py>, given: Option<&Bound<'py, PyDict>>) -> Self {
        Self(given.map_or_else(|| PyDict::new(py), Bound::clone))
    }

    /// Raises for a name that the signature of a class does not have.
    pub fn check_names(&self, class: &Bound<'py, PyType>) -> PyResult<()> {
        let signature: String = class.getattr("__text_signature__")?.extract()?;
        let names: Vec<&str> = signature.split(", ").filter_map(|known| Some(known.split_once('=')?.0)).collect();
        for name in self.0.keys() {
            let name: String = name.extract()?;
            if !names.contains(&name.as_str()) {
                return Err(arguments::unexpected(class, &name));
            }
        }
        Ok(())
    }

    /// The value of a setting, if it was given.
    pub fn item(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.get_item(name)
    }

    /// The value of a setting, if one other than None was given.
    pub fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.item(name)?.filter(|given| !given.is_none()))
    }

    /// The value of a setting of this type, if one other than None was given.
    pub fn optional<T: Readable>(&self, name: &'static str) -> PyResult<Option<T>> {
        self.get(name)?.map(|given| setting_of(&given, name)).transpose()
    }

    /// The value of a setting of this type, if it was given. None may be a value.
    pub fn read<T: Readable>(&self, name: &'static str) -> PyResult<Option<T>> {
        self.item(name)?.map(|given| setting_of(&given, name)).transpose()
    }

    /// The value of a setting of this type, which was given.
    pub fn required<T: Readable>(&self, name: &'static str) -> PyResult<T> {
        let given = self.item(name)?.ok_or_else(|| PyTypeError::new_err(format!("missing argument '{name}'")))?;
        setting_of(&given, name)
    }
}

/// The value of a setting; raises if it has another type.
pub fn setting_of<T: Readable>(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<T> {
    let given = DeferredArg(T::read(value).map_err(|_| T::problem(value)));
    Ok(given.named(name)?)
}

/// The value of a setting that may be None.
pub fn optional_setting_of<T: Readable>(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Option<T>> {
    if value.is_none() { Ok(None) } else { setting_of(value, name).map(Some) }
}
