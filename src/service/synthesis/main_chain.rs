//! The main chain: blocks of uneven size, and in them transactions with their token transfers and logs.

use super::amount::{COIN_SCALE, Spelling, decimal, units};
use super::log::Log;
use super::random::Random;
use super::token::Token;
use super::transaction::{Block, Gas, Transaction, Transfer};
use super::world::World;
use super::{HEAD_TIME, SPAN_MS, Sink};
use crate::service::schema;

const FIRST_HEIGHT: i64 = 18_000_000;
/// Chains of fewer transactions have no transaction with more logs than one response holds.
const CROWDED_FROM: u64 = 10_000;
const CROWD: usize = 1_200;
pub const ZERO_ADDRESS: &str = "0x0000000000000000000000000000000000000000";

/// A transaction that moves value to the zone chain or from it.
#[derive(Clone, Debug)]
pub struct BridgeTransaction {
    pub id: String,
    pub height: i64,
    pub time: i64,
    pub sender: String,
}

/// Writes blocks until all transactions are in; returns those that cross, oldest first.
pub fn fill<S: Sink>(world: &World, random: &mut Random, sink: &mut S) -> Result<Vec<BridgeTransaction>, S::Error> {
    let sizes = block_sizes(world.transactions, random);
    let mut history =
        History { world, nonces: vec![0; world.people().len()], made: 0, log_index: 0, bridged: Vec::new() };
    if let Some(busy) = history.nonces.get_mut(1) {
        // Beyond 32 bits, as of an account that counts in microseconds.
        *busy = 1_779_161_496_872;
    }
    let step = SPAN_MS / (sizes.len() as i64).max(1);
    for (index, size) in sizes.iter().enumerate() {
        let after = (sizes.len() - 1 - index) as i64;
        let early = if after == 0 { 0 } else { random.between(0, (step - 1).max(0)) };
        let time = HEAD_TIME - after * step - early;
        let block = Block { height: FIRST_HEIGHT + index as i64, hash: random.hash(), time };
        history.log_index = 0;
        for _ in 0..*size {
            history.transaction(&block, random, sink)?;
        }
    }
    Ok(history.bridged)
}

/// Some empty, most small, a few crowded.
fn block_sizes(transactions: u64, random: &mut Random) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut left = transactions;
    while left > 0 {
        let size = match random.below(100) {
            0..=14 => 0,
            15..=64 => 1 + random.below(6),
            65..=95 => 5 + random.below(25),
            _ => 60 + random.below(200),
        };
        sizes.push(size.min(left));
        left -= size.min(left);
    }
    sizes
}

struct History<'w> {
    world: &'w World,
    nonces: Vec<i64>,
    made: u64,
    /// Index of the next log in this block.
    log_index: i64,
    bridged: Vec<BridgeTransaction>,
}

enum Purpose {
    /// Coins from one to another.
    Payment,
    /// Tokens, by a call of their contract.
    Tokens,
    Call,
    Creation,
}

impl History<'_> {
    fn transaction<S: Sink>(&mut self, block: &Block, random: &mut Random, sink: &mut S) -> Result<(), S::Error> {
        let world = self.world;
        let progress = self.made * 1_000 / world.transactions.max(1);
        let crowded = world.transactions >= CROWDED_FROM && self.made == world.transactions / 2;
        let purpose = match random.below(100) {
            _ if crowded => Purpose::Tokens,
            0..=47 => Purpose::Payment,
            48..=91 => Purpose::Tokens,
            92..=97 => Purpose::Call,
            _ => Purpose::Creation,
        };
        let sender = world.person(random, progress);
        let mut from = world.address(sender).to_owned();
        let mut nonce = self.nonces.get(sender).copied().unwrap_or(0);
        let several = random.per_mille(4);
        let from_contract = !several && random.per_mille(10);
        if several {
            // Used nowhere else; the first of them twice.
            let one = random.address();
            let other = random.address();
            from = format!("{one},{other},{one}");
            nonce = 0;
        } else if from_contract {
            from = world.contract(random).to_owned();
            nonce = random.between(0, 100_000);
        } else if let Some(next) = self.nonces.get_mut(sender) {
            *next += 1;
        }
        let token = world.moving(random);
        let (to, to_contract, method, used) = match purpose {
            Purpose::Payment => (world.address(world.person(random, progress)).to_owned(), false, "", 21_000),
            Purpose::Tokens => (token.contract.clone(), true, "0xa9059cbb", random.between(40_000, 250_000)),
            Purpose::Call => (world.contract(random).to_owned(), true, "0x7ff36ab5", random.between(30_000, 900_000)),
            Purpose::Creation => (String::new(), false, "0x60806040", random.between(500_000, 4_000_000)),
        };
        let coins = if matches!(purpose, Purpose::Payment) || random.per_mille(100) { coins(random) } else { 0 };
        let transaction = Transaction {
            block,
            id: random.hash(),
            amount: decimal(coins, COIN_SCALE, Spelling::any(random, coins, COIN_SCALE)),
            state: self.state(crowded, random),
            gas: Gas::new(random, used),
            form: [0, 1, 2, 2, 2][random.index(5)],
            from,
            to,
            from_contract,
            to_contract,
            method,
            nonce,
        };
        let seq = sink.put(&schema::CHAIN_TRANSACTION, None, &transaction)?;
        self.made += 1;
        if several {
            for address in transaction.from.split(',') {
                sink.put_party(address, "from", seq)?;
            }
        }
        match purpose {
            Purpose::Tokens => self.transfers(&transaction, token, seq, progress, random, sink)?,
            Purpose::Call => self.logs(&transaction, random.index(3), seq, random, sink)?,
            Purpose::Payment | Purpose::Creation => {}
        }
        if crowded {
            self.logs(&transaction, CROWD, seq, random, sink)?;
        }
        if transaction.state == "success" && !several && (self.made == 1 || random.per_mille(46)) {
            let Transaction { id, from, .. } = transaction;
            self.bridged.push(BridgeTransaction { id, height: block.height, time: block.time, sender: from });
        }
        Ok(())
    }

    /// The newest few are not through yet.
    fn state(&self, certain: bool, random: &mut Random) -> &'static str {
        let newer = self.world.transactions - 1 - self.made.min(self.world.transactions - 1);
        if certain {
            "success"
        } else if newer == 0 || (newer < 12 && random.per_mille(500)) {
            "pending"
        } else if random.per_mille(40) {
            "fail"
        } else {
            "success"
        }
    }

    fn transfers<S: Sink>(
        &mut self,
        transaction: &Transaction<'_>,
        token: &Token,
        seq: i64,
        progress: u64,
        random: &mut Random,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let world = self.world;
        let count = match random.below(100) {
            0..=69 => 1,
            70..=97 => 2 + random.index(3),
            _ => 10 + random.index(20),
        };
        for index in 0..count {
            let token = if index == 0 || random.per_mille(400) { token } else { world.moving(random) };
            let to = world.person(random, progress);
            let mut transfer = Transfer::new(random, token, &transaction.from, world.address(to));
            transfer.from_contract = if random.per_mille(60) { None } else { Some(transaction.from_contract) };
            if index > 0 && random.per_mille(500) {
                transfer.from = world.contract(random).to_owned();
                transfer.from_contract = transfer.from_contract.map(|_| true);
            } else if !token.is_fungible() && random.per_mille(200) {
                // Made just now, out of nothing.
                transfer.from = ZERO_ADDRESS.into();
            }
            if random.per_mille(150) {
                transfer.to = world.contract(random).to_owned();
                transfer.to_contract = true;
            }
            sink.put(&schema::TOKEN_TRANSFER, Some(seq), &transfer)?;
            if transaction.state == "success" {
                sink.put(&schema::EVENT_LOG, Some(seq), &Log::of(&transfer, &transaction.from, self.log_index))?;
                self.log_index += 1;
            }
        }
        let more = random.index(2);
        self.logs(transaction, more, seq, random, sink)
    }

    /// Writes logs, unless the transaction failed.
    fn logs<S: Sink>(
        &mut self,
        transaction: &Transaction<'_>,
        count: usize,
        seq: i64,
        random: &mut Random,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        for _ in 0..if transaction.state == "success" { count } else { 0 } {
            sink.put(&schema::EVENT_LOG, Some(seq), &Log::any(self.world, random, self.log_index))?;
            self.log_index += 1;
        }
        Ok(())
    }
}

/// Mostly little, now and then a lot, sometimes exactly the threshold of large transactions or just over it.
fn coins(random: &mut Random) -> u128 {
    let decimals = [0, 2, 4, 9, 18, 18][random.index(6)];
    let hundred = 100 * 10_u128.pow(COIN_SCALE);
    match random.below(100) {
        0..=3 => 0,
        4..=15 => u128::from(random.below(10_u64.pow(15))),
        16..=54 => units(random, 0, 10, decimals, COIN_SCALE),
        55..=76 => units(random, 10, 100, decimals, COIN_SCALE),
        77 => hundred,
        78 => hundred + 1,
        79..=96 => units(random, 100, 5_000, decimals, COIN_SCALE),
        _ => units(random, 5_000, 2_000_000, decimals, COIN_SCALE),
    }
}
