//! `Move`: a row as a move of a token from a holder to another.

use crate::columns::Columns;
use crate::interface::{AMOUNT_SCALE, COUNTED, Moves, PENDING, RecordType, SUCCESS, UNIQUE, ZERO_ADDRESS, scaled};

/// Most holders or ids that are remembered, about 10 MB: the memory of a run does not grow with its list.
pub const MAX_KEYS: usize = 100_000;

/// A hash in which the case of letters does not matter.
pub fn hash(text: &str) -> u64 {
    let (pairs, rest) = text.as_bytes().as_chunks();
    let hash = pairs.iter().fold(text.len() as u64, |hash, pair| mixed(hash, *pair));
    if rest.is_empty() {
        return hash;
    }
    let mut last = [0; 16];
    match text.as_bytes().last_chunk() {
        Some(bytes) => last = *bytes,
        None => last[..rest.len()].copy_from_slice(rest),
    }
    mixed(hash, last)
}

/// A hash with sixteen bytes more: both halves of the product of two words.
#[inline]
fn mixed(hash: u64, pair: [u8; 16]) -> u64 {
    // The bit in which ASCII letters of the two cases differ.
    const LOWER_CASE: u128 = 0x2020_2020_2020_2020_2020_2020_2020_2020;
    // 2^64 divided by the golden ratio: its bits have no pattern.
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let pair = u128::from_le_bytes(pair) | LOWER_CASE;
    let product = u128::from(hash ^ MIX ^ pair as u64) * u128::from(MIX.rotate_left(32) ^ (pair >> 64) as u64);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Sender of a mint, and receiver of what is burned.
pub const NO_HOLDER: u64 = 0;

/// A transfer that happened, or may happen yet.
#[derive(Clone, Copy, Debug)]
pub struct Move<'r> {
    pub protocol: Protocol,
    pub id: &'r str,
    amount: &'r str,
    is_pending: bool,
    /// Hashes of the holders, where they are known.
    pub from: Option<u64>,
    pub to: Option<u64>,
    pub height: Option<i64>,
}

/// Kinds of tokens by their laws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Each id has one holder.
    Unique,
    /// No contract changes amounts without a transfer.
    Counted,
    Other,
}

impl Move<'_> {
    /// Sender, receiver and height of a transfer that happened, if they are known.
    #[inline]
    pub fn done(&self) -> Option<(u64, u64, i64)> {
        if self.is_pending { None } else { Some((self.from?, self.to?, self.height?)) }
    }

    /// In units of 10^-18.
    pub fn units(&self) -> Option<i128> {
        scaled(self.amount, AMOUNT_SCALE)
    }
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
    pub fn of(moves: &Moves, record: &RecordType) -> Option<Self> {
        Some(Self {
            from: record.position(moves.from)?,
            to: record.position(moves.to)?,
            amount: record.position(moves.amount)?,
            id: record.position(moves.id)?,
            height: record.position(moves.height)?,
            state: record.position(moves.state)?,
            protocol: record.position(moves.protocol)?,
            no_holder: hash(ZERO_ADDRESS),
        })
    }

    /// The rows that are transfers, without those that failed.
    pub fn moves<'r>(&self, rows: &'r Columns) -> impl Iterator<Item = Move<'r>> {
        let [from, to, amounts, ids, states, protocols] =
            [self.from, self.to, self.amount, self.id, self.state, self.protocol].map(|column| rows.texts(column));
        (0..rows.rows()).filter_map(move |row| {
            let is_pending = match states.get(row)? {
                SUCCESS => false,
                PENDING => true,
                _ => return None,
            };
            Some(Move {
                protocol: match protocols.get(row) {
                    Some(UNIQUE) => Protocol::Unique,
                    Some(COUNTED) => Protocol::Counted,
                    _ => Protocol::Other,
                },
                id: ids.get(row).unwrap_or_default(),
                amount: amounts.get(row).unwrap_or_default(),
                is_pending,
                from: from.get(row).and_then(|address| self.holder(address)),
                to: to.get(row).and_then(|address| self.holder(address)),
                height: rows.integer(self.height, row),
            })
        })
    }

    /// Hash of an address; `None` where several share a member: which of them holds the token is not known.
    fn holder(&self, address: &str) -> Option<u64> {
        match address.len() {
            0 => None,
            length if length > ZERO_ADDRESS.len() && address.contains(',') => None,
            _ => Some(hash(address)).map(|hash| if hash == self.no_holder { NO_HOLDER } else { hash }),
        }
    }
}
