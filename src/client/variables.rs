//! Variables of the environment. One that is set and cannot be read is an error, and not one that is not set: a proxy
//! would be bypassed, a secret called missing.

use std::env::VarError;

use super::error::Error;

/// Reads a variable; `setting` is named in the error. The value may be a secret and is not shown.
pub fn read(setting: &'static str, variable: &str) -> Result<Option<String>, Error> {
    match std::env::var(variable) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => {
            Err(Error::config(setting, "must be UTF-8 text; set it again in this encoding"))
        }
    }
}
