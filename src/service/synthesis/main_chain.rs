//! The main chain: blocks of uneven size, and in them transactions with their token transfers and logs.

use super::amount::{COIN_SCALE, Spelling, decimal, units};
use super::random::Random;
use super::token::Token;
use super::world::World;
use super::{Cell, HEAD_TIME, Row, SPAN_MS, Sink};
use crate::service::schema;

const FIRST_HEIGHT: i64 = 18_000_000;
/// Chains of fewer transactions have no transaction with more logs than one response holds.
const CROWDED_FROM: u64 = 10_000;
const CROWD: usize = 1_200;
/// Signature hashes of the events of a token contract: `Transfer(address,address,uint256)` and
/// `TransferSingle(address,address,address,uint256,uint256)`.
const TRANSFERRED: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const TRANSFERRED_OF_MANY: &str = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62";
/// Events of other contracts: `Approval(address,address,uint256)`, `Deposit(address,uint256)`,
/// `Withdrawal(address,uint256)` and `Sync(uint112,uint112)`.
const APPROVAL: &str = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7b925b3";
const DEPOSIT: &str = "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c";
const WITHDRAWAL: &str = "0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65";
const SYNC: &str = "0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1";
pub const ZERO_ADDRESS: &str = "0x0000000000000000000000000000000000000000";

#[derive(Clone, Debug)]
pub struct Block {
    pub height: i64,
    pub hash: String,
    pub time: i64,
}

#[derive(Debug)]
pub struct Transaction<'b> {
    pub block: &'b Block,
    pub id: String,
    pub from: String,
    pub to: String,
    pub from_contract: bool,
    pub to_contract: bool,
    pub amount: String,
    pub state: &'static str,
    pub method: &'static str,
    pub nonce: i64,
    pub gas: Gas,
    pub form: i64,
}

#[derive(Debug)]
pub struct Gas {
    used: i64,
    limit: i64,
    price: String,
    fee: String,
}

impl Gas {
    pub fn new(random: &mut Random, used: i64) -> Self {
        let price = random.between(1_000_000_000, 90_000_000_000) as u128;
        let fee = price * used.unsigned_abs() as u128;
        let spell = |units, random: &mut Random| decimal(units, COIN_SCALE, Spelling::any(random, units, COIN_SCALE));
        Self { used, limit: used + random.between(0, used / 2), price: spell(price, random), fee: spell(fee, random) }
    }
}

impl Row for Transaction<'_> {
    fn cell(&self, column: &str) -> Cell<'_> {
        match column {
            "tx_id" => Cell::Text(&self.id),
            "block_hash" => Cell::Text(&self.block.hash),
            "height" => Cell::Integer(self.block.height),
            "transaction_time" => Cell::Integer(self.block.time),
            "from_address" => Cell::Text(&self.from),
            "to_address" => Cell::Text(&self.to),
            "is_from_contract" => Cell::Flag(self.from_contract),
            "is_to_contract" => Cell::Flag(self.to_contract),
            "amount" => Cell::Text(&self.amount),
            "state" => Cell::Text(self.state),
            "method_id" => Cell::Text(self.method),
            "symbol" => Cell::Text("COIN"),
            "nonce" => Cell::Integer(self.nonce),
            "gas_used" => Cell::Integer(self.gas.used),
            "gas_limit" => Cell::Integer(self.gas.limit),
            "gas_price" => Cell::Text(&self.gas.price),
            "tx_fee" => Cell::Text(&self.gas.fee),
            "transaction_type" => Cell::Integer(self.form),
            _ => Cell::Nothing,
        }
    }
}

/// A token transfer; what it shares with its transaction is not here.
#[derive(Debug)]
pub struct Transfer<'w> {
    pub token: &'w Token,
    pub from: String,
    pub to: String,
    pub from_contract: Option<bool>,
    pub to_contract: bool,
    pub amount: String,
    /// The amount in the token's smallest unit.
    pub units: u128,
    pub id: String,
}

impl<'w> Transfer<'w> {
    pub fn new(random: &mut Random, token: &'w Token, from: &str, to: &str) -> Self {
        let units = match token.protocol {
            "ERC721" => 1,
            "ERC1155" => random.between(1, 50).unsigned_abs().into(),
            _ => {
                let decimals = [0, 2, 6, 18][random.index(4)];
                let most = [2, 100, 10_000, 3_000_000][random.index(4)].min(token.supply);
                units(random, 0, most, decimals, token.precision)
            }
        };
        let spelling = if token.is_fungible() { Spelling::any(random, units, token.precision) } else { Spelling::Bare };
        let amount = decimal(units, token.precision, spelling);
        let id = token.id(random);
        let (from, to) = (from.to_owned(), to.to_owned());
        Self { token, from, to, from_contract: Some(false), to_contract: false, amount, units, id }
    }
}

impl Row for Transfer<'_> {
    fn cell(&self, column: &str) -> Cell<'_> {
        match column {
            "from_address" => Cell::Text(&self.from),
            "to_address" => Cell::Text(&self.to),
            "is_from_contract" => self.from_contract.map_or(Cell::Nothing, Cell::Flag),
            "is_to_contract" => Cell::Flag(self.to_contract),
            "amount" => Cell::Text(&self.amount),
            "transaction_symbol" => Cell::Text(&self.token.symbol),
            "token_contract_address" => Cell::Text(&self.token.contract),
            "protocol_type" => Cell::Text(self.token.protocol),
            "token_id" => Cell::Text(&self.id),
            _ => Cell::Nothing,
        }
    }
}

#[derive(Debug)]
pub struct Log {
    address: String,
    topics: Vec<String>,
    data: String,
    index: i64,
}

impl Log {
    /// The event that the token's contract logs for a transfer.
    pub fn of(transfer: &Transfer<'_>, sender: &str, index: i64) -> Self {
        let (from, to) = (padded(&transfer.from), padded(&transfer.to));
        let amount = format!("{:064x}", transfer.units);
        let (topics, data) = match transfer.token.protocol {
            "ERC721" => (vec![TRANSFERRED.into(), from, to, format!("0x{}", word(&transfer.id))], "0x".into()),
            "ERC1155" => {
                let topics = vec![TRANSFERRED_OF_MANY.into(), padded(sender), from, to];
                (topics, format!("0x{}{amount}", word(&transfer.id)))
            }
            _ => (vec![TRANSFERRED.into(), from, to], format!("0x{amount}")),
        };
        Self { address: transfer.token.contract.clone(), topics, data, index }
    }

    /// An event of a contract that is not a transfer, with its arguments encoded as the ABI has it.
    fn any(world: &World, random: &mut Random, index: i64) -> Self {
        let address = world.contract(random).to_owned();
        let mut party = || padded(world.address(world.person(random, 1_000)));
        let (one, other) = (party(), party());
        let amount = |random: &mut Random| format!("{:064x}", random.below(u64::MAX));
        let (topics, words) = match random.index(5) {
            0 => (vec![APPROVAL.into(), one, other], 1),
            1 => (vec![DEPOSIT.into(), one], 1),
            2 => (vec![WITHDRAWAL.into(), one], 1),
            3 => (vec![SYNC.into()], 2),
            // An anonymous event.
            _ => (Vec::new(), 0),
        };
        let data = (0..words).map(|_| amount(random)).collect::<String>();
        Self { address, topics, data: format!("0x{data}"), index }
    }
}

/// An address as a topic. Of several senders the first one counts.
fn padded(address: &str) -> String {
    let address = address.split(',').next().unwrap_or_default();
    format!("0x{:0>64}", address.trim_start_matches("0x"))
}

/// Decimal digits as a word of 32 bytes, in hex.
fn word(digits: &str) -> String {
    let mut bytes = [0_u8; 32];
    for digit in digits.bytes() {
        let mut carry = u16::from(digit - b'0');
        for byte in bytes.iter_mut().rev() {
            carry += u16::from(*byte) * 10;
            *byte = carry as u8;
            carry >>= 8;
        }
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Row for Log {
    fn cell(&self, column: &str) -> Cell<'_> {
        match column {
            "address" => Cell::Text(&self.address),
            "topics" => Cell::Texts(&self.topics),
            "data" => Cell::Text(&self.data),
            "log_index" => Cell::Integer(self.index),
            _ => Cell::Nothing,
        }
    }
}

/// A transaction that moves value to the zone chain or from it.
#[derive(Clone, Debug)]
pub struct Crossing {
    pub id: String,
    pub height: i64,
    pub time: i64,
    pub sender: String,
}

/// Writes blocks until all transactions are in; returns those that cross, oldest first.
pub fn fill<S: Sink>(world: &World, random: &mut Random, sink: &mut S) -> Result<Vec<Crossing>, S::Error> {
    let sizes = block_sizes(world.transactions, random);
    let mut history =
        History { world, nonces: vec![0; world.people().len()], made: 0, log_index: 0, crossings: Vec::new() };
    if let Some(busy) = history.nonces.get_mut(1) {
        // Beyond 32 bits, as of an account that counts in microseconds.
        *busy = 1_779_161_496_872;
    }
    let step = SPAN_MS / (sizes.len() as i64).max(1);
    for (place, size) in sizes.iter().enumerate() {
        let after = (sizes.len() - 1 - place) as i64;
        let early = if after == 0 { 0 } else { random.between(0, (step - 1).max(0)) };
        let time = HEAD_TIME - after * step - early;
        let block = Block { height: FIRST_HEIGHT + place as i64, hash: random.hash(), time };
        history.log_index = 0;
        for _ in 0..*size {
            history.transaction(&block, random, sink)?;
        }
    }
    Ok(history.crossings)
}

/// Some empty, most small, a few crowded.
fn block_sizes(transactions: u64, random: &mut Random) -> Vec<u64> {
    let (mut sizes, mut left) = (Vec::new(), transactions);
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
    crossings: Vec<Crossing>,
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
            let (one, other) = (random.address(), random.address());
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
            self.crossings.push(Crossing { id, height: block.height, time: block.time, sender: from });
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
        for place in 0..count {
            let token = if place == 0 || random.per_mille(400) { token } else { world.moving(random) };
            let to = world.person(random, progress);
            let mut transfer = Transfer::new(random, token, &transaction.from, world.address(to));
            transfer.from_contract = if random.per_mille(60) { None } else { Some(transaction.from_contract) };
            if place > 0 && random.per_mille(500) {
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

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn integer_is_encoded_as_an_abi_word() {
        assert_eq!(word("0"), "0".repeat(64));
        assert_eq!(word("4660"), format!("{:064x}", 4660));
        let most = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(word(most), "f".repeat(64));
    }
}
