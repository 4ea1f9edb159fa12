//! `Row`: one move of a token from a holder to another, and `Keyed`: a map by hashes of holders and ids.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::columns::{Columns, Value};
use crate::interface::{AMOUNT_SCALE, Moves, Number, PENDING, SUCCESS, ZERO_ADDRESS};

/// Most holders or ids that are remembered, about 10 MB: the memory of a run does not grow with its list.
pub const MAX_KEYS: usize = 100_000;

pub type Keyed<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

/// Hasher of keys that are hashes.
#[derive(Default)]
pub struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A hash in which the case of letters does not matter.
pub fn hash(text: &str) -> u64 {
    const LOWER_CASE: u64 = 0x2020_2020_2020_2020;
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    text.as_bytes().chunks(8).fold(text.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let product = u128::from(hash ^ (u64::from_le_bytes(word) | LOWER_CASE)) * u128::from(MIX);
        (product as u64) ^ ((product >> 64) as u64)
    })
}

/// A holder; `None` where tokens are minted or burned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder(pub Option<u64>);

/// One move.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub from: Holder,
    pub to: Holder,
    /// In units of 10^-18.
    pub amount: i128,
    /// Hash of the token id.
    pub id: u64,
    pub height: i64,
}

/// Meaning of a row.
pub enum Read {
    Moved(Row),
    /// Nothing has moved.
    Nothing,
    /// Something may have moved: the holders and the id are no longer known.
    Unknown {
        holders: [Option<u64>; 2],
        id: Option<u64>,
    },
}

/// Positions of the columns of moves.
#[derive(Clone, Copy, Debug)]
pub struct Positions {
    from: usize,
    to: usize,
    amount: usize,
    id: usize,
    height: usize,
    state: usize,
    protocol: usize,
    /// Hash of the address that holds nothing.
    no_holder: u64,
}

impl Positions {
    pub fn of(moves: &Moves, rows: &Columns) -> Option<Self> {
        let position = |name| rows.record().position(name);
        Some(Self {
            from: position(moves.from)?,
            to: position(moves.to)?,
            amount: position(moves.amount)?,
            id: position(moves.id)?,
            height: position(moves.height)?,
            state: position(moves.state)?,
            protocol: position(moves.protocol)?,
            no_holder: hash(ZERO_ADDRESS),
        })
    }

    pub fn protocol<'r>(&self, rows: &'r Columns, row: usize) -> Option<&'r str> {
        rows.text(self.protocol, row)
    }

    pub fn id<'r>(&self, rows: &'r Columns, row: usize) -> Option<&'r str> {
        rows.text(self.id, row)
    }

    fn holder(&self, address: &str) -> Holder {
        Holder(Some(hash(address)).filter(|hash| *hash != self.no_holder))
    }

    pub fn read(&self, rows: &Columns, row: usize) -> Read {
        let from = rows.text(self.from, row);
        let to = rows.text(self.to, row);
        let id = rows.text(self.id, row);
        let state = rows.text(self.state, row);
        if state != Some(SUCCESS) && state != Some(PENDING) {
            return Read::Nothing;
        }
        let known = (state == Some(SUCCESS)).then(|| {
            // Several addresses share a member: which of them holds the token is not known.
            let is_one = |text: &&str| text.len() <= ZERO_ADDRESS.len() || !text.contains(',');
            let from = from.filter(is_one)?;
            let to = to.filter(is_one)?;
            let Value::Integer(height) = rows.value(self.height, row) else { return None };
            let amount = Number::parse(rows.text(self.amount, row)?)?.scaled(AMOUNT_SCALE)?;
            let id = hash(id.unwrap_or_default());
            Some(Row { from: self.holder(from), to: self.holder(to), amount, id, height })
        });
        match known.flatten() {
            Some(row) => Read::Moved(row),
            None => {
                let holder = |text: Option<&str>| text.and_then(|text| self.holder(text).0);
                Read::Unknown { holders: [holder(from), holder(to)], id: id.map(hash) }
            }
        }
    }
}
