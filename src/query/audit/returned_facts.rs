//! `ReturnedFacts`: what is known of the returned records when others are looked for.

use super::known_keys::KnownKeys;

/// The keys of the records that were returned.
#[derive(Clone, Copy, Debug)]
pub struct ReturnedFacts<'a> {
    pub keys: &'a KnownKeys,
    /// True if some are equal, so that a key does not show which of them was returned.
    pub has_equal: bool,
    /// The last record that is wanted, if others may follow.
    pub last: Option<Last>,
    /// In descending order of heights: that from which on a record may be newer than those that were returned.
    pub newest: Option<i64>,
    /// Key of the first record of the list, if this run returned it and no others can be equal.
    pub top: Option<u64>,
    /// Number of responses that were received before the first of these records were requested.
    pub began_after: u64,
}

/// The last record that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Last {
    pub offset: u64,
    /// Height of the record, in a list in descending order of heights.
    pub height: Option<i64>,
}

impl Last {
    /// True if the last one is after the record below the one at this offset. A record after it may be equal to a returned
    /// one: its key does not show where it is.
    fn is_after(self, offset: Option<u64>, height: Option<i64>) -> bool {
        offset.is_some_and(|offset| offset < self.offset) || self.height.is_some() && height > self.height
    }
}

impl ReturnedFacts<'_> {
    pub fn contains(&self, key: u64) -> bool {
        self.keys.contains(key)
    }

    /// True if a record of this height may be newer than those that were returned.
    pub fn may_be_newer(&self, height: Option<i64>) -> bool {
        height.is_none_or(|height| self.newest.is_none_or(|newest| height >= newest))
    }

    /// True if a record was returned and one below it was not.
    pub fn lacks_below(&self, above: u64, below: u64) -> bool {
        self.contains(above) && !self.contains(below)
    }

    /// True if a record below one at this offset is wanted.
    pub fn is_wanted_below(&self, offset: Option<u64>, height: Option<i64>) -> bool {
        self.last.is_none_or(|last| last.is_after(offset, height))
    }
}
