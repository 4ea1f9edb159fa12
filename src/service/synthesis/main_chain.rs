//! The main chain: blocks of uneven size, and in them transactions with their token transfers and logs.

use super::amount::{COIN_SCALE, Spelling, decimal, units};
use super::ledger::{Ledger, Movement, Wish};
use super::log::Log;
use super::random::Random;
use super::token::Token;
use super::transaction::{Block, Draft, Gas, Transaction, Transfer};
use super::world::{Account, World};
use super::{HEAD_TIME, SPAN_MS, Sink};
use crate::service::schema;

const FIRST_HEIGHT: i64 = 18_000_000;
/// Chains of fewer transactions have no transaction with more logs than one response holds.
const CROWDED_FROM: u64 = 10_000;
const CROWD: usize = 1_200;

/// The main chain's side of a transaction that moves value to the zone chain or from it.
#[derive(Clone, Debug)]
pub struct BridgeTransaction {
    pub id: String,
    pub height: i64,
    pub time: i64,
}

/// Tokens that a transaction moves to the zone chain or from it.
#[derive(Clone, Debug)]
pub struct Crossing<'w> {
    pub main: BridgeTransaction,
    pub inward: bool,
    /// One of several withdrawals of a transaction.
    pub batch: bool,
    pub token: &'w Token,
    /// Account on the main chain that sends or receives.
    pub account: String,
    pub units: u128,
    pub id: String,
}

/// Writes blocks until all transactions are in; returns what crosses, oldest first.
pub fn fill<'w, S: Sink>(
    world: &'w World,
    ledger: &mut Ledger,
    random: &mut Random,
    sink: &mut S,
) -> Result<Vec<Crossing<'w>>, S::Error> {
    let sizes = block_sizes(world.transactions, random);
    let mut history = History {
        world,
        ledger,
        nonces: vec![0; world.accounts()],
        num_transactions: 0,
        log_index: 0,
        bridge: Random::new(world.seed, "bridge"),
        due: 0,
        crossings: Vec::new(),
    };
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
    Ok(history.crossings)
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

struct History<'w, 'l> {
    world: &'w World,
    ledger: &'l mut Ledger,
    /// The next nonce of every account.
    nonces: Vec<i64>,
    num_transactions: u64,
    /// Index of the next log in this block.
    log_index: i64,
    bridge: Random,
    /// Number of transactions that are to use the bridge as soon as their tokens can.
    due: u32,
    crossings: Vec<Crossing<'w>>,
}

/// A transaction that is stored.
struct Sent<'t> {
    transaction: &'t Transaction<'t>,
    /// `None` if there are several.
    sender: Option<Account>,
    seq: i64,
    /// Thousandths of the chain that were made before.
    progress: u64,
}

/// Use of the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passage {
    Deposit,
    Withdrawal,
    /// Several withdrawals in one transaction.
    Withdrawals,
}

enum Purpose {
    /// Coins from one to another.
    Payment,
    /// Tokens, by a call of their contract.
    Tokens,
    Call,
    Creation,
}

impl Purpose {
    fn any(random: &mut Random) -> Self {
        match random.below(100) {
            0..=47 => Self::Payment,
            48..=91 => Self::Tokens,
            92..=97 => Self::Call,
            _ => Self::Creation,
        }
    }
}

impl<'w> History<'w, '_> {
    fn transaction<S: Sink>(&mut self, block: &Block, random: &mut Random, sink: &mut S) -> Result<(), S::Error> {
        let world = self.world;
        let progress = self.num_transactions * 1_000 / world.transactions.max(1);
        let crowded = world.transactions >= CROWDED_FROM && self.num_transactions == world.transactions / 2;
        let any = Purpose::any(random);
        let purpose = if crowded { Purpose::Tokens } else { any };
        let (sender, from) = self.sender(progress, random);
        let nonce = sender.map_or(0, |sender| self.next_nonce(sender));
        let token = world.moving(random);
        let (to, to_contract, method, used) = match purpose {
            Purpose::Payment => (world.address(world.person(random, progress)).to_owned(), false, "", 21_000),
            Purpose::Tokens => (token.contract.clone(), true, "0xa9059cbb", random.between(40_000, 250_000)),
            Purpose::Call => {
                (world.address(world.contract(random)).to_owned(), true, "0x7ff36ab5", random.between(30_000, 900_000))
            }
            Purpose::Creation => (String::new(), false, "0x60806040", random.between(500_000, 4_000_000)),
        };
        let coins = if matches!(purpose, Purpose::Payment) || random.per_mille(100) { coins(random) } else { 0 };
        let transaction = Transaction {
            block,
            id: random.hash(),
            amount: decimal(coins, COIN_SCALE, Spelling::any(random, coins, COIN_SCALE)),
            state: if crowded { "success" } else { self.state(&purpose, random) },
            gas: Gas::new(random, used),
            form: [0, 1, 2, 2, 2][random.index(5)],
            from,
            to,
            from_contract: sender.is_some_and(|sender| world.is_contract(sender)),
            to_contract,
            method,
            nonce,
        };
        let seq = sink.put(&schema::CHAIN_TRANSACTION, None, &transaction)?;
        self.num_transactions += 1;
        if sender.is_none() {
            for address in transaction.from.split(',') {
                sink.put_party(address, "from", seq)?;
            }
        }
        match purpose {
            Purpose::Tokens => {
                let sent = Sent { transaction: &transaction, sender, seq, progress };
                self.transfers(&sent, token, random, sink)?;
            }
            Purpose::Call => self.logs(&transaction, random.index(3), seq, random, sink)?,
            Purpose::Payment | Purpose::Creation => {}
        }
        if crowded {
            self.logs(&transaction, CROWD, seq, random, sink)?;
        }
        if transaction.state == "success" && sender.is_some() && (self.num_transactions == 1 || random.per_mille(46)) {
            self.due += 1;
        }
        Ok(())
    }

    fn next_nonce(&mut self, sender: Account) -> i64 {
        self.nonces[sender] += 1;
        self.nonces[sender] - 1
    }

    /// The account that sends a transaction, and its address; no account if there are several.
    fn sender(&self, progress: u64, random: &mut Random) -> (Option<Account>, String) {
        let mut sender = self.world.person(random, progress);
        if random.per_mille(4) {
            // Used nowhere else; the first of them twice.
            let first = random.address();
            let second = random.address();
            return (None, format!("{first},{second},{first}"));
        }
        if random.per_mille(10) {
            sender = self.world.contract(random);
            random.skip();
        }
        (Some(sender), self.world.address(sender).to_owned())
    }

    /// The newest few are not through yet, unless they move tokens that no account holds.
    fn state(&self, purpose: &Purpose, random: &mut Random) -> &'static str {
        let newer = self.world.transactions - 1 - self.num_transactions.min(self.world.transactions - 1);
        if newer == 0 || (newer < 12 && random.per_mille(500)) {
            let is_idle = !matches!(purpose, Purpose::Tokens) || self.ledger.is_issued(&self.world.tokens[0]);
            if is_idle { "pending" } else { "success" }
        } else if random.per_mille(40) {
            "fail"
        } else {
            "success"
        }
    }

    fn transfers<S: Sink>(
        &mut self,
        sent: &Sent<'_>,
        token: &'w Token,
        random: &mut Random,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let world = self.world;
        let transaction = sent.transaction;
        let count = match random.below(100) {
            0..=69 => 1,
            70..=97 => 2 + random.index(3),
            _ => 10 + random.index(20),
        };
        let mut passage = self.passage(sent, count);
        for index in 0..count {
            let token = if index == 0 || random.per_mille(400) { token } else { world.moving(random) };
            let to = world.person(random, sent.progress);
            let Draft { units, spelling, id } = Draft::new(random, token);
            let names_sender = !random.per_mille(60);
            let mut wish = Wish { from: sent.sender, to, units, id, is_mint: false };
            if index > 0 && random.per_mille(500) {
                wish.from = Some(world.contract(random));
            } else if !token.is_fungible() && random.per_mille(200) {
                wish.is_mint = true;
            }
            if random.per_mille(150) {
                wish.to = world.contract(random);
            }
            let mut transfer = self.transfer(transaction, token, wish, spelling, &mut passage);
            if !names_sender {
                transfer.from_contract = None;
            }
            sink.put(&schema::TOKEN_TRANSFER, Some(sent.seq), &transfer)?;
            // Those of a pending transaction are served once it is through.
            if transaction.state != "fail" {
                sink.put(&schema::EVENT_LOG, Some(sent.seq), &Log::of(&transfer, &transaction.from, self.log_index))?;
                self.log_index += 1;
            }
        }
        let more = random.index(2);
        self.logs(transaction, more, sent.seq, random, sink)
    }

    /// The transfer that a wish leads to. `passage` is `None` once it is used.
    fn transfer(
        &mut self,
        transaction: &Transaction<'_>,
        token: &'w Token,
        wish: Wish,
        spelling: Spelling,
        passage: &mut Option<Passage>,
    ) -> Transfer<'w> {
        let world = self.world;
        match transaction.state {
            // Several senders hold nothing together.
            "success" if wish.from.is_none() && token.is_fungible() && self.ledger.is_issued(token) => {
                Transfer::without_effect(world, token, &transaction.from, Wish { units: 0, ..wish }, spelling)
            }
            "success" => {
                let crossed = passage.and_then(|passage| self.cross(transaction, passage, token, &wish));
                if crossed.is_some() && *passage != Some(Passage::Withdrawals) {
                    *passage = None;
                }
                let movement = crossed.unwrap_or_else(|| self.ledger.transfer(token, wish));
                Transfer::of(world, token, movement, spelling)
            }
            "pending" => {
                let token = if self.ledger.is_issued(token) { token } else { &world.tokens[0] };
                Transfer::of(world, token, self.ledger.idle(token, &wish), spelling)
            }
            _ => Transfer::without_effect(world, token, &transaction.from, wish, spelling),
        }
    }

    /// The use that a transaction makes of the bridge, if one is due.
    fn passage(&mut self, sent: &Sent<'_>, count: usize) -> Option<Passage> {
        if self.due == 0 || sent.transaction.state != "success" || sent.sender.is_none() {
            return None;
        }
        if self.bridge.per_mille(600) {
            return Some(Passage::Deposit);
        }
        let is_batch = count > 1 && self.bridge.per_mille(500);
        Some(if is_batch { Passage::Withdrawals } else { Passage::Withdrawal })
    }

    /// The transfer to the bridge or from it, if the token and its holders allow one.
    fn cross(
        &mut self,
        transaction: &Transaction<'_>,
        passage: Passage,
        token: &'w Token,
        wish: &Wish,
    ) -> Option<Movement> {
        if !token.is_bridged() {
            return None;
        }
        let inward = passage == Passage::Deposit;
        let movement = if inward { self.ledger.deposit(token, wish) } else { self.ledger.withdraw(token, wish) }?;
        let Block { height, time, .. } = *transaction.block;
        let main = BridgeTransaction { id: transaction.id.clone(), height, time };
        let account = if inward { movement.from } else { movement.to };
        let account = account.map(|account| self.world.address(account).to_owned())?;
        let is_next = self.crossings.last().is_none_or(|last| last.main.id != main.id);
        self.due -= u32::from(is_next);
        let units = movement.units;
        let id = movement.id.clone();
        self.crossings.push(Crossing {
            main,
            inward,
            batch: passage == Passage::Withdrawals,
            token,
            account,
            units,
            id,
        });
        Some(movement)
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
