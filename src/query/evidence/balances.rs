//! `Balances`: no address sends more than it has.
//!
//! Lists begin with the newest record, so a balance at any time is that in the end minus what moved since. The records of
//! one height may come in any order.

use super::finding::Finding;
use super::moves::{Holder, Keyed, MAX_KEYS, Positions, Read};
use crate::columns::Columns;
use crate::interface::{AMOUNT_SCALE, COUNTED, Law, Moves, UNIQUE};

/// Addresses that sent exactly what they had for each one that sent more: where balances change without transfers, as
/// interest does, hardly any address ends at exactly nothing.
const EXACT_FOR_EACH: usize = 3;

#[derive(Clone, Debug)]
pub struct Balances {
    moves: &'static Moves,
    accounts: Keyed<Account>,
    checked: u64,
    /// True if the records so far are all of a token whose amounts no contract changes.
    is_counted: bool,
    /// True if the oldest record so far mints.
    begins_with_mint: bool,
    is_full: bool,
}

/// Units that moved to an address, minus those that moved from it, since some time.
#[derive(Clone, Copy, Debug)]
struct Account {
    height: i64,
    newest: i64,
    sum: i128,
    /// The most that the sum was above the records of a height, and that height.
    most: (i128, i64),
    is_unknown: bool,
}

impl Balances {
    pub fn new(moves: &'static Moves) -> Self {
        Self {
            moves,
            accounts: Keyed::default(),
            checked: 0,
            is_counted: true,
            begins_with_mint: false,
            is_full: false,
        }
    }

    pub fn add(&mut self, rows: &Columns) {
        let Some(positions) = Positions::of(self.moves, rows) else { return };
        for row in 0..rows.rows() {
            let protocol = positions.protocol(rows, row);
            if self.is_full || protocol == Some(UNIQUE) {
                continue;
            }
            self.is_counted &= protocol == Some(COUNTED);
            match positions.read(rows, row) {
                Read::Moved(moved) => {
                    self.checked += 1;
                    self.begins_with_mint = moved.from.0.is_none();
                    self.move_units(moved.from, moved.id, moved.height, -moved.amount);
                    self.move_units(moved.to, moved.id, moved.height, moved.amount);
                }
                Read::Unknown { holders, id } => {
                    for holder in holders.into_iter().flatten() {
                        self.account(holder, id.unwrap_or_default(), i64::MAX).is_unknown = true;
                    }
                }
                Read::Nothing => {}
            }
        }
    }

    fn account(&mut self, holder: u64, id: u64, height: i64) -> &mut Account {
        self.is_full |= self.accounts.len() >= MAX_KEYS;
        let most = (0, height);
        let account = Account { height, newest: height, sum: 0, most, is_unknown: false };
        self.accounts.entry(holder ^ id.rotate_left(1)).or_insert(account)
    }

    fn move_units(&mut self, holder: Holder, id: u64, height: i64, units: i128) {
        let Some(holder) = holder.0 else { return };
        let account = self.account(holder, id, height);
        if height < account.height {
            account.end_height();
        }
        account.is_unknown |= height > account.height;
        account.height = height;
        match account.sum.checked_add(units) {
            Some(sum) => account.sum = sum,
            None => account.is_unknown = true,
        }
    }

    /// The finding on a list that was read from its beginning to its end; before that no balance is known.
    pub fn finding(mut self, law: &Law) -> Option<Finding> {
        if self.checked == 0 {
            return None;
        }
        self.accounts.values_mut().for_each(Account::end_height);
        let known = || self.accounts.values().filter(|account| !account.is_unknown);
        let overdrawn = known().filter(|account| account.sum < account.most.0).count();
        let exact = known().filter(|account| account.sum == 0 && account.newest != account.height).count();
        let is_exact = self.is_counted || self.begins_with_mint && exact >= overdrawn * EXACT_FOR_EACH;
        let worst = known().map(|account| (account.most.0 - account.sum, account.most.1)).max();
        Some(Finding {
            law: law.name.into(),
            held: if self.is_full || overdrawn > 0 && !is_exact { None } else { Some(overdrawn == 0) },
            checked: self.checked,
            missing: overdrawn as u64,
            violation: worst.filter(|(units, _)| *units > 0).map(|(units, height)| {
                let amount = decimal(units);
                format!("an address sent {amount} more than it had received, up to height {height}")
            }),
            earlier: None,
            assumption: law.assumption.into(),
        })
    }
}

impl Account {
    fn end_height(&mut self) {
        if self.sum > self.most.0 {
            self.most = (self.sum, self.height);
        }
    }
}

/// Units of 10^-18 in digits.
fn decimal(units: i128) -> String {
    let scale = usize::from(AMOUNT_SCALE.unsigned_abs());
    let digits = format!("{units:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{whole}.{fraction}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
