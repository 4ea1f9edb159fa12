//! Accounts, contracts and tokens of the chain.

use super::random::Random;
use super::token::{self, Token};
use super::{Sink, VERSION};
use crate::service::schema;

#[derive(Debug)]
pub struct World {
    pub seed: u64,
    pub transactions: u64,
    pub tokens: Vec<Token>,
    /// The first few are busy, see `person`.
    people: Vec<String>,
    contracts: Vec<String>,
    pub producers: Vec<String>,
    pub signer: String,
    pub bridge: String,
}

/// Shares of all that happens, per mille, of the busiest.
const BUSY: [u64; 5] = [120, 80, 50, 30, 20];
/// Did nothing in the last four fifths of the time, which are over a year.
const DORMANT: usize = 7;
const DORMANT_FROM: u64 = 200;

impl World {
    pub fn new(seed: u64, transactions: u64) -> Self {
        let mut random = Random::new(seed, "world");
        let tokens = (0..token::COUNT).map(|index| Token::new(&mut random, index)).collect();
        let mut addresses = |count: u64| (0..count).map(|_| random.address()).collect::<Vec<_>>();
        let people = addresses((transactions / 10).clamp(20, 200_000));
        let contracts = addresses(40);
        let producers = addresses(12);
        let signer = random.address();
        let bridge = random.address();
        Self { seed, transactions, tokens, people, contracts, producers, signer, bridge }
    }

    /// Identity of the chain: databases with the same one hold the same data.
    pub fn fingerprint(&self) -> String {
        let tables: Vec<String> = schema::TABLES.iter().map(|table| table.create()).collect();
        format!("{VERSION} {} {} {}", self.seed, self.transactions, tables.join("; "))
    }

    /// Writes the tokens, unless the chain is empty.
    pub fn put_tokens<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        if self.transactions == 0 {
            return Ok(());
        }
        self.tokens.iter().try_for_each(|token| sink.put(&schema::TOKEN, None, token).map(drop))
    }

    /// Someone, at that per mille of the chain's time.
    pub fn person(&self, random: &mut Random, progress: u64) -> usize {
        if progress <= DORMANT_FROM && random.per_mille(20) {
            return DORMANT;
        }
        let mut draw = random.below(1_000);
        for (index, share) in BUSY.iter().enumerate() {
            if draw < *share {
                return index;
            }
            draw -= share;
        }
        match random.popular(self.people.len()) {
            DORMANT if progress > DORMANT_FROM => DORMANT + 1,
            index => index,
        }
    }

    pub fn people(&self) -> &[String] {
        &self.people
    }

    pub fn address(&self, person: usize) -> &str {
        self.people.get(person).map_or(&self.bridge, |address| address)
    }

    pub fn contract(&self, random: &mut Random) -> &str {
        &self.contracts[random.popular(self.contracts.len())]
    }

    /// A token that moves; the first takes about two fifths of all.
    pub fn moving(&self, random: &mut Random) -> &Token {
        let index = if random.per_mille(370) { 0 } else { random.popular(token::MOVING) };
        &self.tokens[index]
    }

    /// A token that the bridge accepts.
    pub fn bridged_token(&self, random: &mut Random) -> &Token {
        loop {
            let token = self.moving(random);
            if matches!(token.protocol, "ERC20" | "ERC1155") {
                return token;
            }
        }
    }
}
