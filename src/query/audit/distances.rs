//! `Distances`: records that an earlier run returned, by their offsets. A response that shows two of them farther apart has records
//! between them that were not returned.

use super::repeats::count;
use crate::message::{Hint, Message};
use crate::query::hashed::HashedMap;
use crate::query::snapshot::Rows;

#[derive(Clone, Debug, Default)]
pub struct Distances {
    /// Offsets by keys; `None` for a key that several of these records have.
    offsets: HashedMap<Option<u64>>,
    are_contradicted: bool,
}

impl Distances {
    /// Records by offset and key.
    pub fn of_earlier_run(returned: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut offsets = HashedMap::default();
        for (offset, key) in returned {
            let known = offsets.entry(key).or_insert(Some(offset));
            *known = known.filter(|known| *known == offset);
        }
        Self { offsets, are_contradicted: false }
    }

    /// Takes a response, of which rows are returned or not.
    pub fn on_response(&mut self, rows: &dyn Rows) {
        if self.offsets.is_empty() || self.are_contradicted {
            return;
        }
        let keys = rows.keys();
        let mut upper = None;
        let mut latest: Option<(Option<i64>, i64)> = None;
        for (row, key) in keys.iter().copied().enumerate() {
            let Some(offset) = self.offsets.get(&key).copied().flatten() else { continue };
            // Equal records have one height, and a response shows all of them that are between it and a record of another height.
            if count(key, &keys) > 1 {
                continue;
            }
            let height = rows.height(row);
            let place = row as i64 - offset.cast_signed();
            if let Some((_, place)) = latest.filter(|(above, _)| *above != height) {
                upper = Some(place);
            }
            // If the distance is less, the list has lost records.
            self.are_contradicted |= upper.is_some_and(|upper| place > upper);
            latest = Some((height, place));
        }
    }

    pub fn reason(&self) -> Option<Message> {
        let reason = "A response showed more records between two that an earlier run returned than that run did: a part of \
                      the service may have lacked them, or the chain was reorganized";
        self.are_contradicted.then(|| Message::new(reason).hint(Hint::RunAgain))
    }
}
