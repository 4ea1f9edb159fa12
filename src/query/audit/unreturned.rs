//! `Unreturned`: records that responses showed and that were not returned with the others. A page may be discarded because its
//! place is unknown: its records are returned with another page, or the result lacks them. It has to have
//!
//! - a record below a returned one, or above one in the same chain (`Below`, `FirstRows`): records of a list that grows at its head
//!   keep their neighbors;
//! - a record of a block of which others were returned (`InBlocks`): blocks do not change;
//! - as many equal records as one response shows (`Copies`): a response is of one moment.

mod below;
mod copies;
mod first_rows;
mod in_blocks;

use std::ops::Range;

pub use below::{Below, PAIRS_IN_CURSOR, Pair};
pub use copies::Copies;
pub use in_blocks::{InBlocks, ReadHeights, UNRETURNED_IN_CURSOR, UnreturnedRecord};

use super::forks::Forks;
use super::known_keys::KnownKeys;
use crate::query::snapshot::Rows;

/// The rows of a response other than those that are about to be returned.
#[derive(Clone, Copy)]
pub struct OtherRows<'a> {
    pub rows: &'a dyn Rows,
    pub returning: &'a Range<usize>,
    /// Blocks of the records that were returned, and the keys of these.
    pub forks: &'a Forks,
    pub known: &'a KnownKeys,
    /// Number of the response.
    pub number: u64,
}

impl OtherRows<'_> {
    fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.returning.start).chain(self.returning.end..self.rows.len())
    }
}

#[derive(Clone, Debug)]
pub struct Unreturned {
    pub below: Below,
    pub in_blocks: InBlocks,
    pub copies: Copies,
    /// The latest returned records, which a reading that takes the place of this one has to have as well.
    returned: InBlocks,
    /// True if records show their blocks.
    has_blocks: bool,
}

impl Unreturned {
    /// Those of a list of which an earlier run returned these records last.
    pub fn new(has_blocks: bool, latest: &[u64]) -> Self {
        Self {
            below: Below::new(has_blocks),
            in_blocks: InBlocks::default(),
            copies: Copies::of_earlier_run(latest),
            returned: InBlocks::default(),
            has_blocks,
        }
    }

    /// Those of a reading of the same list that was discarded, with the records that it returned last.
    pub fn after(discarded: Self, returned: &[u64]) -> Self {
        let Self { below, in_blocks, copies, returned: in_hand, has_blocks } = discarded;
        let below = Below::after(below, returned);
        // Without their blocks, a reorganization may have moved the records.
        let after = Self { below, ..Self::new(has_blocks, &[]) };
        if !has_blocks {
            return after;
        }
        let in_blocks = in_blocks.and(in_hand).of_earlier_reading();
        Self { in_blocks, copies: copies.of_earlier_reading(), ..after }
    }

    /// Takes records that are about to be returned: their rows, and the offset that the first row of the response has.
    pub fn on_returned(&mut self, rows: &dyn Rows, returned: &[usize], first: i64, forks: &Forks) {
        self.below.on_returned(rows, returned, first);
        if self.has_blocks {
            self.returned.add_rows(rows, returned.iter().copied(), forks, 0);
        }
    }
}
