//! Comparisons of the lists of a set with each other.

use super::Set;
use crate::columns::Columns;
use crate::interface::Order;
use crate::query::audit::Source;
use crate::query::results::SharedReport;

impl Set {
    /// Compares the blocks of a page with those of the other lists.
    pub(super) fn compare_blocks(&mut self, index: usize, rows: &Columns, report: &SharedReport) {
        self.blocks.add(Source::List(index as u64), rows);
        for reason in self.blocks.reasons() {
            self.outcome.add_reason(reason.into(), report);
        }
    }

    /// True if the API has one block for each value.
    pub(super) fn misses_blocks(&self) -> bool {
        self.query.endpoint().order == Order::Consecutive && self.members.name == "height"
    }

    /// Lists of heights that have ended without a block, between heights that have one.
    fn absent_blocks(&self) -> Vec<usize> {
        let mut absent = Vec::new();
        if !self.misses_blocks() {
            return absent;
        }
        for list in &self.empty {
            let height = self.members.values[*list].parse();
            if height.is_ok_and(|height| self.blocks.have_both_sides_of(height)) {
                absent.push(*list);
            }
        }
        // The reason names the first one, in whichever order they were received.
        absent.sort_unstable();
        absent
    }

    /// Opens the lists of absent blocks again, once: a chain that grows may have had none of them before.
    pub(super) fn read_absent_again(&mut self, report: &SharedReport) -> bool {
        let mut absent = self.absent_blocks();
        absent.retain(|list| self.absent.insert(*list));
        self.empty.retain(|list| !absent.contains(list));
        for list in &absent {
            self.ended.remove(*list);
            self.outcome.begin_again(*list, report);
            self.unopened.push_back(*list);
        }
        !absent.is_empty()
    }

    /// Gives a reason for blocks that the API does not have, and has others below and above them.
    pub(super) fn doubt_absent_blocks(&mut self, report: &SharedReport) {
        let absent = self.absent_blocks();
        let Some(first) = absent.first() else { return };
        let height = &self.members.values[*first];
        let missing = if absent.len() == 1 { "1 block is".to_owned() } else { format!("{} blocks are", absent.len()) };
        let reason = format!(
            "The API returned no block of height {height}, although it has blocks below and above it: {missing} missing. Run the \
             query again."
        );
        self.outcome.doubt_empty(&absent, &reason.into(), report);
    }
}
