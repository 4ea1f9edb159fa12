//! `Balances`: no address sends more than it has.
//!
//! Lists begin with the newest record, so a balance at any time is that in the end minus what moved since. The records of
//! one height may come in any order.

use super::finding::Finding;
use super::moves::{MAX_KEYS, Move, NO_HOLDER, Protocol, hash};
use crate::interface::{AMOUNT_SCALE, Law};
use crate::query::hashed::HashedMap;

/// Times that addresses had exactly nothing left, for each address that sent more than it had: where balances also change
/// without transfers, as with interest or deposits, hardly any address is ever left with exactly nothing. With 15, one of
/// 3,000 made-up tokens that mint with transfers and also without is called broken; with 10, ten are.
const ZEROS_FOR_EACH: usize = 15;

/// Most such times of one address: contracts that pass all on that they receive say nothing of the token.
const MAX_ZEROS: u8 = 4;

#[derive(Clone, Debug)]
pub struct Balances {
    accounts: HashedMap<Account>,
    checked: u64,
    /// True if the records so far are all of a token whose amounts no contract changes.
    is_counted: bool,
    /// True if the oldest record so far mints.
    begins_with_mint: bool,
    /// True if not all addresses are compared.
    is_partial: bool,
    /// True if some address may have received more than is known.
    has_unknown_receiver: bool,
}

/// Units that moved to an address, minus those that moved from it, since some time.
#[derive(Clone, Copy, Debug)]
struct Account {
    sum: i128,
    /// The most that the sum was above the records of a height, that height, and how often the sum was as much.
    max_sum: i128,
    max_height: i64,
    times_max: u8,
    height: i64,
    /// True if its records have several heights.
    is_old: bool,
    is_unknown: bool,
}

impl Balances {
    pub fn new() -> Self {
        Self {
            accounts: HashedMap::default(),
            checked: 0,
            is_counted: true,
            begins_with_mint: false,
            is_partial: false,
            has_unknown_receiver: false,
        }
    }

    pub fn add(&mut self, moved: &Move<'_>) {
        if moved.protocol == Protocol::Unique {
            return;
        }
        self.is_counted &= moved.protocol == Protocol::Counted;
        let id = if moved.id.is_empty() { 0 } else { hash(moved.id) };
        if let Some((from, to, height)) = moved.done()
            && let Some(units) = moved.units()
        {
            self.checked += 1;
            self.begins_with_mint = from == NO_HOLDER;
            self.add_units(from, id, height, -units);
            self.add_units(to, id, height, units);
        } else {
            self.has_unknown_receiver |= moved.to.is_none();
            self.doubt(moved.from, id);
            self.doubt(moved.to, id);
        }
    }

    /// The account of a holder for an id; `None` for no holder, or if there are too many.
    fn account(&mut self, holder: u64, id: u64, height: i64) -> Option<&mut Account> {
        if holder == NO_HOLDER {
            return None;
        }
        let key = holder ^ id.rotate_left(1);
        if self.accounts.len() >= MAX_KEYS && !self.accounts.contains_key(&key) {
            self.is_partial = true;
            return None;
        }
        Some(self.accounts.entry(key).or_insert(Account::new(height)))
    }

    fn doubt(&mut self, holder: Option<u64>, id: u64) {
        if let Some(account) = holder.and_then(|holder| self.account(holder, id, i64::MAX)) {
            account.is_unknown = true;
        }
    }

    fn add_units(&mut self, holder: u64, id: u64, height: i64, units: i128) {
        let Some(account) = self.account(holder, id, height) else { return };
        if height != account.height {
            account.end_height();
            account.is_unknown |= height > account.height;
            account.is_old = true;
            account.height = height;
        }
        match account.sum.checked_add(units) {
            Some(sum) => account.sum = sum,
            None => account.is_unknown = true,
        }
    }

    fn known(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values().filter(|account| !account.is_unknown)
    }

    /// The finding on a list that was read to its end.
    pub fn finding(&self, law: &Law) -> Finding {
        let overdrawn = self.known().filter(|account| account.overdrawn() > 0).count();
        let zeros: usize = self.known().map(|account| usize::from(account.times_zero())).sum();
        let is_exact = self.is_counted || self.begins_with_mint && zeros >= overdrawn * ZEROS_FOR_EACH;
        let held = match overdrawn {
            0 if self.is_partial || self.known().next().is_none() => None,
            0 => Some(true),
            _ if self.has_unknown_receiver || !is_exact => None,
            _ => Some(false),
        };
        let worst = self.known().max_by_key(|account| (account.overdrawn(), account.max_sum().1));
        Finding {
            law: law.name.into(),
            held,
            checked: self.checked,
            missing: overdrawn as u64,
            violation: worst.filter(|account| account.overdrawn() > 0).map(|account| {
                let amount = decimal(account.overdrawn());
                let height = account.max_sum().1;
                format!("an address sent {amount} more than it had received, up to height {height}")
            }),
            earlier: None,
            assumption: law.assumption.into(),
        }
    }
}

impl Account {
    fn new(height: i64) -> Self {
        Self { sum: 0, max_sum: 0, max_height: height, times_max: 1, height, is_old: false, is_unknown: false }
    }

    /// Compares the sum with the most that it was, after the records of a height.
    fn end_height(&mut self) {
        if self.sum > self.max_sum {
            self.max_sum = self.sum;
            self.max_height = self.height;
            self.times_max = 1;
        } else if self.sum == self.max_sum {
            self.times_max = self.times_max.saturating_add(1).min(MAX_ZEROS);
        }
    }

    /// Times that nothing was left of what the address had received, at most `MAX_ZEROS`.
    fn times_zero(&self) -> u8 {
        if self.is_old && self.sum == self.max_sum { self.times_max } else { 0 }
    }

    /// The most that the sum was, with the records of the current height, and that height.
    fn max_sum(&self) -> (i128, i64) {
        if self.sum > self.max_sum { (self.sum, self.height) } else { (self.max_sum, self.max_height) }
    }

    /// Units that it sent before it had them.
    fn overdrawn(&self) -> i128 {
        self.max_sum().0.saturating_sub(self.sum)
    }
}

/// Units of 10^-18 in digits.
fn decimal(units: i128) -> String {
    let scale = usize::from(AMOUNT_SCALE.unsigned_abs());
    let digits = format!("{units:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{whole}.{fraction}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
