//! `Entries`: an append-only list whose snapshots cost nothing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::process::{ForkSafeGuard, ForkSafeMutex};

/// The first `len` entries of a list that others may be appended to. Clones share the entries; only the owner of a
/// report appends, so that what a clone contains never changes.
#[derive(Clone, Deserialize, Serialize)]
#[serde(from = "Vec<T>", into = "Vec<T>", bound(serialize = "T: Clone + Serialize"))]
pub struct Entries<T> {
    shared: Arc<ForkSafeMutex<Vec<T>>>,
    len: usize,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Clone> Entries<T> {
    fn lock(&self) -> ForkSafeGuard<'_, Vec<T>> {
        self.shared.lock()
    }

    pub(super) fn push(&mut self, entry: T) {
        let mut shared = self.lock();
        debug_assert_eq!(shared.len(), self.len, "appended to a snapshot");
        shared.push(entry);
        drop(shared);
        self.len += 1;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first `len` entries.
    #[must_use]
    pub fn first(&self, len: usize) -> Self {
        Self { shared: self.shared.clone(), len: len.min(self.len) }
    }

    pub fn to_vec(&self) -> Vec<T> {
        self.lock()[..self.len].to_vec()
    }
}

impl<T: Clone> From<Entries<T>> for Vec<T> {
    fn from(entries: Entries<T>) -> Self {
        entries.to_vec()
    }
}

impl<T> From<Vec<T>> for Entries<T> {
    fn from(entries: Vec<T>) -> Self {
        Self { len: entries.len(), shared: Arc::new(ForkSafeMutex::new(entries)) }
    }
}

impl<T: Clone + PartialEq> PartialEq for Entries<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.len == other.len || self.to_vec() == other.to_vec()
    }
}

impl<T: Clone + std::fmt::Debug> std::fmt::Debug for Entries<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.to_vec()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_share_entries_and_do_not_change() {
        let mut entries = Entries::default();
        let mut snapshots = Vec::new();
        for number in 0..1_000 {
            snapshots.push(entries.clone());
            entries.push(number.to_string());
        }
        for (number, snapshot) in snapshots.iter().enumerate() {
            assert_eq!(snapshot.len(), number);
            assert_eq!(snapshot.to_vec().last().cloned(), number.checked_sub(1).map(|last| last.to_string()));
            assert!(Arc::ptr_eq(&snapshot.shared, &entries.shared));
        }
        assert_eq!(entries.first(2).to_vec(), ["0", "1"]);
        assert_eq!(entries.first(2), Entries::from(vec!["0".to_owned(), "1".to_owned()]));
    }
}
