//! `Projection`: the columns of a record type that are decoded.

use crate::interface::{Field, Kind, RecordType};

/// A set of columns, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection(u64);

impl Projection {
    pub const ALL: Self = Self(u64::MAX);

    /// These columns, and those by which a run recognizes, orders and dates records.
    pub fn with_keys(record: &RecordType, names: &[String]) -> Self {
        let columns = record.fields.iter().enumerate();
        let needed = columns.filter(|(column, Field { name, kind, .. })| {
            let of_block = [record.height(), record.block()].contains(&Some(*column));
            let is_key = record.identity.contains(name) || of_block;
            *kind == Kind::Time || is_key || names.iter().any(|wanted| wanted == name)
        });
        let columns = Self(needed.fold(0, |set, (column, _)| set | 1 << column));
        if (0..record.fields.len()).all(|column| columns.contains(column)) { Self::ALL } else { columns }
    }

    /// These columns alone.
    pub fn of(record: &RecordType, names: &[String]) -> Self {
        let columns = record.fields.iter().enumerate().filter(|(_, field)| names.iter().any(|name| name == field.name));
        let columns = Self(columns.fold(0, |set, (column, _)| set | 1 << column));
        if (0..record.fields.len()).all(|column| columns.contains(column)) { Self::ALL } else { columns }
    }

    /// Bit i: column i.
    pub fn mask(self) -> u64 {
        self.0
    }

    pub fn contains(self, column: usize) -> bool {
        self.0 & (1 << column) != 0
    }
}
