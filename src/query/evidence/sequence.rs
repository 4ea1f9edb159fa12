//! `Numbers`: whole numbers that follow each other, such as the nonces of an address.

use super::finding::Finding;
use super::spans::Spans;
use crate::columns::{Columns, Value};
use crate::interface::{Law, PENDING, Sequence};

#[derive(Clone, Debug)]
pub struct Numbers {
    rule: &'static Sequence,
    /// Value of the owner's column.
    owner: Option<String>,
    numbers: Spans,
    /// Numbers of pending records: they may fill a gap, and leave one.
    pending: Spans,
    /// Value of the column within which the current numbers follow each other.
    group: Option<String>,
    checked: u64,
    missing: u64,
    violation: Option<String>,
    /// True if a record has no number, so that nothing is known of its place.
    is_partial: bool,
}

impl Numbers {
    pub fn new(rule: &'static Sequence, owner: Option<String>) -> Self {
        Self {
            rule,
            owner,
            numbers: Spans::default(),
            pending: Spans::default(),
            group: None,
            checked: 0,
            missing: 0,
            violation: None,
            is_partial: false,
        }
    }

    pub fn add(&mut self, rows: &Columns) {
        let position = |name: &str| rows.record().position(name);
        let Some(number) = position(self.rule.number) else { return };
        let owner = self.rule.owner.and_then(|(column, _)| position(column));
        let within = self.rule.within.and_then(position);
        let state = self.rule.state.and_then(position);
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
            if let Some(within) = within
                && self.group.as_deref() != rows.text(within, row)
            {
                self.end_group();
                self.group = rows.text(within, row).map(str::to_owned);
            }
            let is_pending = state.and_then(|column| rows.text(column, row)) == Some(PENDING);
            if is_pending {
                self.pending.insert(number)
            } else {
                self.numbers.insert(number)
            }
            self.checked += 1;
        }
    }

    /// Adds up the gaps of the numbers so far, and forgets them.
    fn end_group(&mut self) {
        let numbers = std::mem::take(&mut self.numbers);
        let (missing, first) = self.gaps(&numbers);
        self.missing += missing;
        if self.violation.is_none() {
            self.violation = first;
        }
    }

    /// Count of the numbers that are missing among those, and the first gap in words.
    fn gaps(&self, numbers: &Spans) -> (u64, Option<String>) {
        let mut missing = 0;
        let mut first = None;
        for (low, high) in numbers.gaps() {
            let width = high.abs_diff(low).saturating_add(1);
            let filled = (low..=high).take(PENDING_LOOKED_AT).filter(|number| self.pending.contains(*number)).count();
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
        let of = self.group.as_ref().map_or(String::new(), |group| format!(" of {group}"));
        match low == high {
            true => format!("no record{of} has {number} {low}"),
            false => format!("no record{of} has {number} {low} to {high}"),
        }
    }

    /// True if the records begin with number 0 and miss none since.
    pub fn is_whole(&self) -> bool {
        let first = self.numbers.first().into_iter().chain(self.pending.first()).min();
        !self.is_partial && !self.numbers.is_full() && first == Some(0) && self.gaps(&self.numbers).0 == 0
    }

    /// Number of records before the first one.
    pub fn earlier(&self) -> Option<u64> {
        self.rule.whole?;
        self.numbers.first().and_then(|first| u64::try_from(first).ok())
    }

    pub fn finding(&self, law: &Law) -> Finding {
        let (missing, first) = self.gaps(&self.numbers);
        let missing = self.missing + missing;
        Finding {
            law: law.name.into(),
            held: if self.numbers.is_full() { None } else { Some(missing == 0) },
            checked: self.checked,
            missing,
            violation: self.violation.clone().or(first),
            earlier: self.earlier(),
            assumption: law.assumption.into(),
        }
    }
}

/// Numbers of a gap that may be those of pending records.
const PENDING_LOOKED_AT: usize = 4_096;
