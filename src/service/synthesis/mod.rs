//! The synthetic chain: one history, in every record type. It is a function of the seed and the number of transactions,
//! byte for byte: no clock and no hash order is involved. It sets columns by name, whatever their tables.

mod amount;
mod head;
mod ledger;
mod log;
mod main_chain;
mod random;
mod token;
mod transaction;
mod world;
mod zone_chain;

pub use head::{Focus, Growth, Heads, Past, grow};
pub use ledger::Reserve;
pub use random::Random;
pub use token::Token;
pub use world::World;

use super::schema::Table;
use ledger::Ledger;

/// Version of the generated data: databases of another version are filled again.
pub const VERSION: u32 = 6;

/// The chain ends at 2026-01-31T00:00:00Z.
const HEAD_TIME: i64 = 1_769_817_600_000;
const DAY_MS: i64 = 86_400_000;
/// Over a year, so that lists of the last year are not complete.
const SPAN_MS: i64 = 500 * DAY_MS;

/// A column's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Nothing,
    Text(&'a str),
    Integer(i64),
    Flag(bool),
    Texts(&'a [String]),
}

/// Access to a row's values by column name; `Cell::Nothing` for other names.
pub trait Row {
    fn cell(&self, column: &str) -> Cell<'_>;
}

/// Destination of the rows.
pub trait Sink {
    type Error;

    /// Appends a row, to a transaction if the table's rows belong to one, and returns its number.
    fn put(&mut self, table: &'static Table, transaction: Option<i64>, row: &dyn Row) -> Result<i64, Self::Error>;

    /// Keeps the rows that follow from being listed yet, or no longer.
    fn set_late(&mut self, late: bool);

    /// Registers an address as one of several on that side of a transaction.
    fn put_party(&mut self, address: &str, side: &str, transaction: i64) -> Result<(), Self::Error>;

    /// Keeps the holdings from which a token's transfers come while the chain grows.
    fn put_reserve(&mut self, token: &Token, reserve: &Reserve) -> Result<(), Self::Error>;
}

/// Writes the complete chain, oldest first.
pub fn fill<S: Sink>(world: &World, sink: &mut S) -> Result<(), S::Error> {
    let mut ledger = Ledger::new(world);
    let crossings = main_chain::fill(world, &mut ledger, &mut Random::new(world.seed, "main chain"), sink)?;
    ledger.put_tokens(world, sink)?;
    zone_chain::fill(world, &mut Random::new(world.seed, "zone chain"), &crossings, sink)
}
