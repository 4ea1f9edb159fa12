//! Which record a row is of, in a few characters, however its other fields have changed since.

use sha2::{Digest as _, Sha256};

use super::{Columns, Value};

impl Columns {
    /// The same for a row and for a later state of the same record; identical records share it.
    pub fn identity(&self, row: usize) -> String {
        let mut digest = Sha256::new();
        for column in self.record.identity() {
            match self.value(column, row) {
                // Services differ in the case of what is hexadecimal.
                Value::Text(text) => digest.update(text.to_ascii_lowercase()),
                Value::Integer(number) => digest.update(number.to_le_bytes()),
                _ => {}
            }
            digest.update([0]);
        }
        digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
