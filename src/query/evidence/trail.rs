//! `Trail`: the transfers of one id at one height, which may be listed in any order.

use super::moves::NO_HOLDER;

/// Most transfers of an id at one height that are ordered.
const MAX_TRANSFERS: usize = 64;

/// Sender and receiver.
type Transfer = (u64, u64);

#[derive(Clone, Debug, Default)]
pub struct Trail {
    first: Option<Transfer>,
    others: Vec<Transfer>,
}

/// Addresses of which one holds an id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Holders {
    #[default]
    Unknown,
    One(u64),
    Several(Box<[u64]>),
}

impl Holders {
    fn may_be(&self, holder: u64) -> bool {
        match self {
            Self::Unknown => true,
            Self::One(single) => *single == holder,
            Self::Several(several) => several.contains(&holder),
        }
    }
}

impl Trail {
    pub fn push(&mut self, from: u64, to: u64) {
        match self.first {
            None => self.first = Some((from, to)),
            // One more than can be ordered tells that there are too many.
            Some(_) if self.others.len() < MAX_TRANSFERS => self.others.push((from, to)),
            Some(_) => {}
        }
    }

    pub fn len(&self) -> u64 {
        self.transfers().count() as u64
    }

    fn transfers(&self) -> impl Iterator<Item = Transfer> {
        self.first.into_iter().chain(self.others.iter().copied())
    }

    /// Holders before the transfers, given those after them; `None` if the transfers follow from each other in no order
    /// that ends there.
    pub fn holders_before(&self, after: &Holders) -> Option<Holders> {
        let Some(first) = self.first else { return Some(Holders::Unknown) };
        if self.others.len() == MAX_TRANSFERS {
            return Some(Holders::Unknown);
        }
        if let ([], (from, to)) = (&self.others[..], first) {
            let before = if from == NO_HOLDER { Holders::Unknown } else { Holders::One(from) };
            return after.may_be(to).then_some(before);
        }
        if !self.is_connected(first) {
            return None;
        }
        // Each transfer adds its receiver and takes away its sender, in any order: what is left is the last holder and the
        // first.
        let sum = self.transfers().fold(0_u64, |sum, (from, to)| sum.wrapping_add(to).wrapping_sub(from));
        let mut before: Vec<u64> = self.transfers().map(|(from, _)| from).collect();
        before.retain(|from| {
            let last = from.wrapping_add(sum);
            after.may_be(last) && self.transfers().any(|(_, to)| to == last)
        });
        before.sort_unstable();
        before.dedup();
        match before[..] {
            [] => None,
            // An id that is minted again may have been burned without a transfer.
            [NO_HOLDER, ..] => Some(Holders::Unknown),
            [single] => Some(Holders::One(single)),
            _ => Some(Holders::Several(before.into())),
        }
    }

    /// True if each transfer can be reached from the first one: an id is in one place at a time.
    fn is_connected(&self, first: Transfer) -> bool {
        let mut reached = vec![first.0, first.1];
        let mut left = self.others.clone();
        loop {
            let before = left.len();
            left.retain(|(from, to)| {
                let is_reached = reached.contains(from) || reached.contains(to);
                if is_reached {
                    reached.extend([*from, *to]);
                }
                !is_reached
            });
            if left.len() == before {
                return left.is_empty();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINTED: u64 = NO_HOLDER;
    // Hashes.
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xbf58_476d_1ce4_e5b9;
    const C: u64 = 0x94d0_49bb_1331_11eb;
    const D: u64 = 0xd6e8_feb8_6659_fd93;

    fn before(transfers: &[Transfer], after: &Holders) -> Option<Holders> {
        let mut trail = Trail::default();
        transfers.iter().for_each(|(from, to)| trail.push(*from, *to));
        trail.holders_before(after)
    }

    fn several(holders: &[u64]) -> Option<Holders> {
        let mut holders = holders.to_vec();
        holders.sort_unstable();
        Some(Holders::Several(holders.into()))
    }

    /// Holders before the transfers, by trying each order of them.
    fn by_trying(transfers: &[Transfer], after: &Holders) -> Vec<u64> {
        if transfers.is_empty() {
            return [MINTED, A, B, C, D].into_iter().filter(|holder| after.may_be(*holder)).collect();
        }
        let mut found = Vec::new();
        for last in 0..transfers.len() {
            let (from, to) = transfers[last];
            if after.may_be(to) {
                let rest = [&transfers[..last], &transfers[last + 1..]].concat();
                found.extend(by_trying(&rest, &Holders::One(from)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn closed_trail_begins_at_any_of_its_holders_that_may_hold_the_id_after_it() {
        let closed = [(A, B), (B, C), (C, A)];
        assert_eq!(before(&closed, &Holders::Unknown), several(&[A, B, C]));
        assert_eq!(before(&closed, &Holders::One(B)), Some(Holders::One(B)));
        assert_eq!(before(&closed, &Holders::One(D)), None);
        assert_eq!(before(&[(A, D)], &Holders::Several([B, D].into())), Some(Holders::One(A)));
        assert_eq!(before(&[(A, D)], &Holders::Several([B, C].into())), None);
        assert_eq!(before(&[(MINTED, A), (A, MINTED)], &Holders::Unknown), Some(Holders::Unknown));
    }

    #[test]
    fn transfers_in_two_places_are_no_trail() {
        assert_eq!(before(&[(A, B), (B, A), (C, D), (D, C)], &Holders::Unknown), None);
        assert_eq!(before(&[(A, B), (C, D), (D, C)], &Holders::Unknown), None);
    }

    #[test]
    fn all_trails_of_four_transfers_are_those_that_some_order_explains() {
        let holders = [MINTED, A, B, C];
        let pairs: Vec<Transfer> = holders.iter().flat_map(|from| holders.map(|to| (*from, to))).collect();
        let mut trails = vec![Vec::new()];
        for _ in 0..4 {
            trails =
                trails.iter().flat_map(|trail| pairs.iter().map(move |pair| [&trail[..], &[*pair]].concat())).collect();
        }
        for trail in &trails {
            for after in [Holders::Unknown, Holders::One(A), Holders::Several([A, B].into())] {
                let expected = match by_trying(trail, &after)[..] {
                    [] => None,
                    [MINTED, ..] => Some(Holders::Unknown),
                    [single] => Some(Holders::One(single)),
                    ref holders => several(holders),
                };
                assert_eq!(before(trail, &after), expected, "{trail:x?} {after:x?}");
            }
        }
    }

    #[test]
    fn transfers_beyond_a_bound_are_not_ordered() {
        let mut trail = Trail::default();
        (0..1_000).for_each(|_| trail.push(A, B));
        assert_eq!(trail.holders_before(&Holders::One(C)), Some(Holders::Unknown));
        assert!(trail.others.len() == MAX_TRANSFERS);
    }
}
