//! The synthetic chain: one history, in every record type. The same seed and number of transactions make it byte
//! for byte again; no clock, no hashing order, no other source of chance. It knows members by name, not their tables.

mod amount;
mod head;
mod main_chain;
mod random;
mod token;
mod world;
mod zone_chain;

pub use head::{Focus, Head, grow};
pub use world::World;

use super::schema::Table;
use random::Random;

/// Version of the generated data: databases of another version are filled again.
pub const VERSION: u32 = 4;

/// The chain ends at 2026-01-31T00:00:00Z, whatever the day.
const HEAD_TIME: i64 = 1_769_817_600_000;
const DAY_MS: i64 = 86_400_000;
/// Over a year, so that lists of only the last year leave something out.
const SPAN_MS: i64 = 500 * DAY_MS;

/// A member's value.
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

    /// Appends a row, of a transaction's if the table's rows belong to one, and returns its number.
    fn put(&mut self, table: &'static Table, transaction: Option<i64>, row: &dyn Row) -> Result<i64, Self::Error>;

    /// Says that an address is one of several on that side of a transaction.
    fn put_party(&mut self, address: &str, side: &str, transaction: i64) -> Result<(), Self::Error>;
}

/// Writes the whole chain, oldest first.
pub fn fill<S: Sink>(world: &World, sink: &mut S) -> Result<(), S::Error> {
    world.put_tokens(sink)?;
    let crossings = main_chain::fill(world, &mut Random::new(world.seed, "main chain"), sink)?;
    zone_chain::fill(world, &mut Random::new(world.seed, "zone chain"), crossings, sink)
}
