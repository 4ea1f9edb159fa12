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
    accounts: Vec<Account>,
    /// Positions of the accounts, by the hashes of holders and ids.
    positions: HashedMap<u32>,
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

/// Units that moved to an address, minus those that moved from it, since some time. One line of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
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

/// A move, and where the accounts of its holders are.
struct Found<'m, 'r> {
    moved: &'m Move<'r>,
    from: Option<u32>,
    to: Option<u32>,
}

impl Balances {
    pub fn new() -> Self {
        Self {
            accounts: Vec::new(),
            positions: HashedMap::default(),
            checked: 0,
            is_counted: true,
            begins_with_mint: false,
            is_partial: false,
            has_unknown_receiver: false,
        }
    }

    /// Takes the moves of a page.
    pub fn add(&mut self, moves: &[Move<'_>]) {
        let counted = moves.iter().filter(|moved| moved.protocol != Protocol::Unique);
        // The accounts are not in the processor's nearest cache. With little between the look-ups, it waits for several at once.
        let mut found: Vec<Found<'_, '_>> = counted.map(|moved| self.find(moved)).collect();
        for found in &mut found {
            found.from = self.certain(found.from);
            found.to = self.certain(found.to);
        }
        found.iter().for_each(|found| self.add_move(found));
    }

    /// The account, unless it is in doubt: then it stays so.
    fn certain(&self, position: Option<u32>) -> Option<u32> {
        position.filter(|position| !self.accounts[*position as usize].is_unknown)
    }

    fn find<'m, 'r>(&mut self, moved: &'m Move<'r>) -> Found<'m, 'r> {
        let id = if moved.id.is_empty() { 0 } else { hash(moved.id) };
        let from = moved.from.and_then(|holder| self.position(holder, id, moved.height));
        let to = moved.to.and_then(|holder| self.position(holder, id, moved.height));
        Found { moved, from, to }
    }

    /// Position of the account of a holder for an id; `None` for no holder, or if there are too many.
    fn position(&mut self, holder: u64, id: u64, height: Option<i64>) -> Option<u32> {
        if holder == NO_HOLDER {
            return None;
        }
        let key = holder ^ id.rotate_left(1);
        if self.accounts.len() >= MAX_KEYS && !self.positions.contains_key(&key) {
            self.is_partial = true;
            return None;
        }
        let next = self.accounts.len() as u32;
        let position = *self.positions.entry(key).or_insert(next);
        if position == next {
            self.accounts.push(Account::new(height.unwrap_or(i64::MAX)));
        }
        Some(position)
    }

    fn add_move(&mut self, found: &Found<'_, '_>) {
        let Found { moved, from, to } = found;
        self.is_counted &= moved.protocol == Protocol::Counted;
        if let Some((sender, _, height)) = moved.done()
            && let Some(units) = moved.units()
        {
            self.checked += 1;
            self.begins_with_mint = sender == NO_HOLDER;
            self.account(*from).into_iter().for_each(|account| account.add_units(height, -units));
            self.account(*to).into_iter().for_each(|account| account.add_units(height, units));
        } else {
            self.has_unknown_receiver |= moved.to.is_none();
            self.account(*from).into_iter().for_each(|account| account.is_unknown = true);
            self.account(*to).into_iter().for_each(|account| account.is_unknown = true);
        }
    }

    fn account(&mut self, position: Option<u32>) -> Option<&mut Account> {
        self.accounts.get_mut(position? as usize)
    }

    fn known(&self) -> impl Iterator<Item = &Account> {
        self.accounts.iter().filter(|account| !account.is_unknown)
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

    fn add_units(&mut self, height: i64, units: i128) {
        if height != self.height {
            self.end_height();
            self.is_unknown |= height > self.height;
            self.is_old = true;
            self.height = height;
        }
        match self.sum.checked_add(units) {
            Some(sum) => self.sum = sum,
            None => self.is_unknown = true,
        }
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
