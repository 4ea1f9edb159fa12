//! Accounts, contracts and tokens of the chain.

use super::VERSION;
use super::random::Random;
use super::token::{self, Token};
use crate::service::schema;

#[derive(Debug)]
pub struct World {
    pub seed: u64,
    pub transactions: u64,
    pub tokens: Vec<Token>,
    /// Addresses of people, the first few of them busy, see `person`; then those of contracts, the bridge last.
    accounts: Vec<String>,
    people: usize,
    pub producers: Vec<String>,
    pub signer: String,
}

/// Number of an address.
pub type Account = usize;

const CONTRACTS: usize = 40;

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
        let mut accounts = addresses((transactions / 10).clamp(20, 200_000));
        let people = accounts.len();
        accounts.extend(addresses(CONTRACTS as u64));
        let producers = addresses(12);
        let signer = random.address();
        accounts.push(random.address());
        Self { seed, transactions, tokens, accounts, people, producers, signer }
    }

    /// Identity of the chain: databases with the same one hold the same data.
    pub fn fingerprint(&self) -> String {
        let tables: Vec<String> = schema::TABLES.iter().map(|table| table.create()).collect();
        format!("{VERSION} {} {} {}", self.seed, self.transactions, tables.join("; "))
    }

    /// Someone, at that per mille of the chain's time.
    pub fn person(&self, random: &mut Random, progress: u64) -> Account {
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
        match random.popular(self.people) {
            DORMANT if progress > DORMANT_FROM => DORMANT + 1,
            index => index,
        }
    }

    /// Number of accounts.
    pub fn accounts(&self) -> usize {
        self.accounts.len()
    }

    pub fn address(&self, account: Account) -> &str {
        &self.accounts[account]
    }

    pub fn is_contract(&self, account: Account) -> bool {
        account >= self.people
    }

    pub fn contract(&self, random: &mut Random) -> Account {
        self.people + random.popular(CONTRACTS)
    }

    pub fn bridge(&self) -> Account {
        self.accounts.len() - 1
    }

    /// A token that moves; the first takes about two fifths of all.
    pub fn moving(&self, random: &mut Random) -> &Token {
        let index = if random.per_mille(370) { 0 } else { random.popular(token::MOVING) };
        &self.tokens[if index == token::SPAM { index - 1 } else { index }]
    }
}
