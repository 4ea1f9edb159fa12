//! `ShownLists`: the lists of a set that have a record, by the values that the record shows.

use std::collections::HashMap;

use crate::columns::{Columns, Value};
use crate::interface::{Bound, ParamKind, meaning};
use crate::query::request::{Members, Query};
use crate::query::results::ANY_LIST;

pub(super) struct ShownLists {
    /// Index of each value, by its meaning.
    by_meaning: HashMap<String, u32>,
    /// Columns that show the values whose lists have a record.
    columns: Vec<usize>,
}

impl ShownLists {
    /// `None` if no two lists of the set have a record in common.
    pub fn of(query: &Query, members: &Members) -> Option<Self> {
        let param = query.endpoint().param(members.name)?;
        // A record has one height.
        if param.kind != ParamKind::Text {
            return None;
        }
        let shown = param
            .bounds
            .iter()
            .filter(|(_, bound)| matches!(bound, Bound::Equal | Bound::EqualInSome | Bound::InvolvedInSome));
        let columns = shown.filter_map(|(name, _)| query.endpoint().record().position(name)).collect();
        let indices = members.meanings().zip(0..);
        Some(Self { by_meaning: indices.collect(), columns })
    }

    /// True if one record may show several values.
    pub fn shows_several(&self) -> bool {
        self.columns.len() > 1
    }

    /// Other lists that may have the records of a page, for each row.
    pub fn of_rows(&self, this: u32, page: &Columns) -> Vec<Vec<u32>> {
        (0..page.rows()).map(|row| self.others(this, page, row)).collect()
    }

    /// Other lists that may have the record of a row, each once.
    fn others(&self, this: u32, page: &Columns, row: usize) -> Vec<u32> {
        let mut others = Vec::new();
        let mut shows_this = false;
        for column in &self.columns {
            match page.value(*column, row) {
                // The value that is missing may be any.
                Value::Null | Value::Utf8("") => return vec![ANY_LIST],
                Value::Utf8(text) => {
                    for value in text.split(',') {
                        let index = self.by_meaning.get(&meaning(value.trim())).copied();
                        shows_this |= index == Some(this);
                        others.extend(index.filter(|index| *index != this && !others.contains(index)));
                    }
                }
                _ => {}
            }
        }
        // A record that does not show the list that has it does not show the others either.
        if shows_this { others } else { vec![ANY_LIST] }
    }
}
