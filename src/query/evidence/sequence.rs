//! `Numbers`: whole numbers that follow each other, such as the nonces of an address.

use super::Part;
use super::finding::Finding;
use super::moves::hash;
use super::spans::Spans;
use crate::columns::{Columns, Value};
use crate::interface::{Groups, Law, PENDING, Sequence};

#[derive(Clone, Debug)]
pub struct Numbers {
    rule: &'static Sequence,
    /// Value of the owner's column.
    owner: Option<String>,
    /// Numbers of the records of the current group, which may be listed in any order.
    open: Spans,
    /// Key of the current group.
    group: Option<u64>,
    /// True until the second group begins in a part of a list.
    is_cut: bool,
    /// Name of the current group, where it has a sequence of its own.
    name: Option<String>,
    /// Numbers of the groups before it, where they are one sequence.
    numbers: Spans,
    /// Numbers that may fill a gap, and leave one: those of pending records, and of a group that is cut.
    loose: Spans,
    checked: u64,
    missing: u64,
    violation: Option<String>,
    /// True if a record has no number, so that nothing is known of its place.
    is_partial: bool,
}

impl Numbers {
    pub fn new(rule: &'static Sequence, part: Part, owner: Option<String>) -> Self {
        Self {
            rule,
            owner,
            open: Spans::default(),
            group: None,
            is_cut: part == Part::FromOther,
            name: None,
            numbers: Spans::default(),
            loose: Spans::default(),
            checked: 0,
            missing: 0,
            violation: None,
            is_partial: false,
        }
    }

    pub fn add(&mut self, rows: &Columns) {
        let record = rows.record();
        let Some(number) = record.position(self.rule.number) else { return };
        let owner = self.rule.owner.as_ref().and_then(|owner| record.position(owner.column));
        let group = match self.rule.groups {
            Groups::Each => None,
            Groups::Of(column) | Groups::Separate(column) => record.position(column),
        };
        let state = self.rule.state.and_then(|state| record.position(state));
        for row in 0..rows.rows() {
            if let (Some(column), Some(owner)) = (owner, &self.owner)
                && !rows.text(column, row).is_some_and(|text| text.eq_ignore_ascii_case(owner))
            {
                continue;
            }
            let Value::Integer(number) = rows.value(number, row) else {
                self.is_partial = true;
                continue;
            };
            self.checked += 1;
            if state.and_then(|column| rows.text(column, row)) == Some(PENDING) {
                self.loose.insert(number);
                continue;
            }
            if let Some(column) = group {
                self.begin_group(rows, column, row);
            }
            self.open.insert(number);
        }
    }

    fn begin_group(&mut self, rows: &Columns, column: usize, row: usize) {
        let key = key(rows, column, row);
        if key == self.group {
            return;
        }
        let is_cut = self.is_cut && self.group.is_some();
        self.is_cut &= !is_cut;
        self.group = key;
        let mut open = std::mem::take(&mut self.open);
        match self.rule.groups {
            Groups::Separate(_) => {
                let (missing, first) = if is_cut { (0, None) } else { self.gaps(&open) };
                self.missing += missing;
                self.violation = self.violation.take().or(first);
                self.name = rows.text(column, row).map(str::to_owned);
            }
            _ if is_cut => self.loose.append(&mut open),
            _ => self.numbers.append(&mut open),
        }
    }

    /// Count of the numbers that are missing among those, and the first gap in words.
    fn gaps(&self, numbers: &Spans) -> (u64, Option<String>) {
        let mut missing = 0;
        let mut first = None;
        for (low, high) in numbers.gaps() {
            let width = high.abs_diff(low).saturating_add(1);
            let filled = (low..=high).take(PENDING_LOOKED_AT).filter(|number| self.loose.contains(*number)).count();
            let gap = width.saturating_sub(filled as u64);
            missing += gap;
            if gap > 0 && first.is_none() {
                first = Some(self.in_words(low, high));
            }
        }
        (missing, first)
    }

    fn in_words(&self, low: i64, high: i64) -> String {
        let number = self.rule.number;
        let of = self.name.as_ref().map_or(String::new(), |name| format!(" of {name}"));
        if low == high {
            format!("no record{of} has {number} {low}")
        } else {
            format!("no record{of} has {number} {low} to {high}")
        }
    }

    /// True if the records begin with number 0 and miss none since.
    pub fn is_whole(&self) -> bool {
        let numbers = self.whole();
        let first = numbers.first().into_iter().chain(self.loose.first()).min();
        !self.is_partial && !numbers.is_full() && first == Some(0) && self.gaps(&numbers).0 == 0
    }

    /// Number of records before the first one.
    pub fn earlier(&self) -> Option<u64> {
        self.rule.whole.as_ref()?;
        self.whole().first().and_then(|first| u64::try_from(first).ok())
    }

    /// Numbers of all groups of one sequence.
    fn whole(&self) -> Spans {
        let mut numbers = self.numbers.clone();
        numbers.append(&mut self.open.clone());
        numbers
    }

    /// The finding on the records so far; the current group is cut unless the list was read to its end.
    pub fn finding(&self, law: &Law, is_to_end: bool) -> Finding {
        let is_ordered = matches!(self.rule.groups, Groups::Each);
        let is_open_whole = is_ordered || is_to_end && !self.is_cut;
        let numbers = if is_open_whole { self.whole() } else { self.numbers.clone() };
        let (missing, first) = self.gaps(&numbers);
        let missing = self.missing + missing;
        Finding {
            law: law.name.into(),
            held: match missing {
                _ if numbers.is_full() => None,
                // A record without a number may be that of the gap.
                1.. if self.is_partial => None,
                _ => Some(missing == 0),
            },
            checked: self.checked,
            missing,
            violation: self.violation.clone().or(first),
            earlier: self.earlier(),
            assumption: law.assumption.into(),
        }
    }
}

/// A value that identifies a group, as a whole number.
fn key(rows: &Columns, column: usize, row: usize) -> Option<u64> {
    match rows.value(column, row) {
        Value::Integer(number) => Some(number.cast_unsigned()),
        _ => rows.text(column, row).map(hash),
    }
}

/// Numbers of a gap that may be those of pending records.
const PENDING_LOOKED_AT: usize = 4_096;
