//! `Custody`: an id has one holder at a time, so that each transfer comes from the receiver of the one before it.
//!
//! Lists begin with the newest record. Those of one height may come in any order: each adds its receiver and takes away its
//! sender, so that the holder before all of them follows from the holder after them.

use super::finding::Finding;
use super::moves::{Keyed, MAX_KEYS, Positions, Read, Row};
use crate::columns::Columns;
use crate::interface::{Law, Moves, UNIQUE};

#[derive(Clone, Debug)]
pub struct Custody {
    moves: &'static Moves,
    ids: Keyed<Id>,
    checked: u64,
    missing: u64,
    violation: Option<String>,
    is_full: bool,
}

/// Transfers of one id at one height.
#[derive(Clone, Debug)]
struct Id {
    height: i64,
    /// Holder after this height, as far as newer transfers tell.
    holder: Option<u64>,
    /// Senders and receivers.
    transfers: Vec<(u64, u64)>,
    /// True if the order of its transfers is not known.
    is_unknown: bool,
}

/// Sender of a mint, and receiver of what is burned.
const NO_HOLDER: u64 = 0;

impl Custody {
    pub fn new(moves: &'static Moves) -> Self {
        Self { moves, ids: Keyed::default(), checked: 0, missing: 0, violation: None, is_full: false }
    }

    pub fn add(&mut self, rows: &Columns) {
        let Some(positions) = Positions::of(self.moves, rows) else { return };
        for row in 0..rows.rows() {
            if self.is_full || positions.protocol(rows, row) != Some(UNIQUE) {
                continue;
            }
            match positions.read(rows, row) {
                Read::Moved(moved) => {
                    self.checked += 1;
                    if let Some(height) = self.take(moved) {
                        let id = positions.id(rows, row).unwrap_or_default();
                        self.on_broken(&format!("token id {id}"), height);
                    }
                }
                Read::Unknown { id: Some(id), .. } => self.id(id, i64::MAX).is_unknown = true,
                Read::Unknown { id: None, .. } => self.is_full = true,
                Read::Nothing => {}
            }
        }
    }

    fn id(&mut self, id: u64, height: i64) -> &mut Id {
        self.is_full |= self.ids.len() >= MAX_KEYS;
        self.ids.entry(id).or_insert(Id { height, holder: None, transfers: Vec::new(), is_unknown: false })
    }

    /// Takes a transfer, and returns the height of those above it if they do not follow from each other.
    fn take(&mut self, row: Row) -> Option<i64> {
        let id = self.id(row.id, row.height);
        let height = id.height;
        id.is_unknown |= row.height > height;
        let is_broken = row.height < height && id.end_height();
        id.height = row.height;
        id.transfers.push((row.from.0.unwrap_or(NO_HOLDER), row.to.0.unwrap_or(NO_HOLDER)));
        is_broken.then_some(height)
    }

    fn on_broken(&mut self, id: &str, height: i64) {
        self.missing += 1;
        self.violation.get_or_insert_with(|| {
            format!("{id} left an address that did not receive it last, at height {height} or next")
        });
    }

    pub fn finding(mut self, law: &Law) -> Finding {
        let ids = std::mem::take(&mut self.ids);
        let mut broken: Vec<i64> =
            ids.into_values().filter_map(|mut id| id.end_height().then_some(id.height)).collect();
        broken.sort_unstable_by(|one, other| other.cmp(one));
        for height in broken {
            self.on_broken("a token id", height);
        }
        Finding {
            law: law.name.into(),
            held: if self.is_full { None } else { Some(self.missing == 0) },
            checked: self.checked,
            missing: self.missing,
            violation: self.violation,
            earlier: None,
            assumption: law.assumption.into(),
        }
    }
}

impl Id {
    /// Ends a height: the holder before it becomes that after the next lower one. True if its transfers do not follow from
    /// each other, or the newer ones not from them.
    fn end_height(&mut self) -> bool {
        let transfers = std::mem::take(&mut self.transfers);
        let after = self.holder.take();
        if self.is_unknown || transfers.is_empty() {
            return false;
        }
        let sum = transfers.iter().fold(0_u64, |sum, (from, to)| sum.wrapping_add(*to).wrapping_sub(*from));
        let is_end = |holder: u64| transfers.iter().any(|(_, to)| *to == holder);
        let mut befores = transfers.iter().map(|(from, _)| *from).filter(|from| is_end(from.wrapping_add(sum)));
        let before = befores.next();
        let is_certain = befores.all(|other| Some(other) == before);
        // An id that is minted again may have been burned without a transfer.
        self.holder = before.filter(|before| is_certain && *before != NO_HOLDER);
        match (before, after) {
            (None, _) => true,
            (Some(before), Some(after)) if is_certain => before.wrapping_add(sum) != after,
            (Some(_), after) => after.is_some_and(|after| !is_end(after)),
        }
    }
}
