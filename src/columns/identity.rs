//! Which record a row is of, in a few characters, however its other fields have changed since.

use sha2::{Digest as _, Sha256};

use super::{Columns, Value};

impl Columns {
    /// The same for a row and for a later state of the same record; identical records share it.
    pub fn identity(&self, row: usize) -> String {
        let mut digest = Sha256::new();
        let mut told = false;
        for column in self.record.identifying() {
            match self.value(column, row) {
                // Services differ in the case of what is hexadecimal.
                Value::Text(text) => {
                    told |= !text.is_empty();
                    digest.update(text.to_ascii_lowercase());
                }
                Value::Integer(number) => {
                    told = true;
                    digest.update(number.to_le_bytes());
                }
                Value::Number(number) => digest.update(number.plain()),
                _ => {}
            }
            digest.update([0]);
        }
        if !told {
            // Nothing identifies it, so it is told by all it has.
            (0..self.record.fields.len()).for_each(|column| digest.update(format!("{:?}", self.value(column, row))));
        }
        digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
