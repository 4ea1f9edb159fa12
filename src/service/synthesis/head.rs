//! New records at the chain's head, while it is being read: the same on both chains and in every list.

use super::Sink;
use super::amount::{COIN_SCALE, Spelling, decimal, units};
use super::ledger::Reserve;
use super::log::Log;
use super::main_chain::{BridgeTransaction, Crossing};
use super::random::Random;
use super::token::Token;
use super::transaction::{Block, Draft, Gas, Transaction, Transfer};
use super::world::World;
use super::zone_chain::{self, CrossChainTransaction};
use crate::interface::ZERO_ADDRESS;
use crate::service::schema;

const MAIN_INTERVAL_MS: i64 = 12_000;
const ZONE_INTERVAL_MS: i64 = 3_000;
/// Each new transfer takes one share of its holder's units at most, so that a million of them overdraw nothing.
const SHARES: u32 = 1_000_000;

/// The last blocks of the two chains.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    pub height: i64,
    pub time: i64,
    pub zone_height: i64,
    pub zone_time: i64,
    /// Number of reorganizations so far, which makes the replacing records differ.
    pub turn: u64,
}

/// Filters of the requested list, so that it grows too.
#[derive(Clone, Debug, Default)]
pub struct Focus {
    pub sender: Option<String>,
    pub receiver: Option<String>,
    pub token: Option<String>,
    pub signer: Option<String>,
    pub destination: Option<String>,
}

/// Records of one step of growth, and shares of them, in parts per million.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    pub count: u32,
    pub late_ppm: u64,
    pub pending_ppm: u64,
}

/// The past of a growing chain, as far as what is added depends on it.
pub trait Past {
    type Error;

    /// The next nonce of a sender.
    fn nonce(&self, sender: &str) -> Result<i64, Self::Error>;

    /// Holdings of a token; `None` if it never moved.
    fn reserve(&self, token: &Token) -> Result<Option<Reserve>, Self::Error>;
}

/// Token transfers of one new transaction.
struct Moved<'w> {
    /// The last one goes to the bridge.
    transfers: Vec<Transfer<'w>>,
    minted: Vec<(&'w Token, Reserve)>,
}

impl<'w> Moved<'w> {
    /// A transfer of the requested token, and one to the bridge if that is another.
    fn of<P: Past>(world: &'w World, random: &mut Random, past: &P, focus: &Focus) -> Result<Self, P::Error> {
        let bridge = world.address(world.bridge());
        let mut moved = Self { transfers: Vec::new(), minted: Vec::new() };
        let bridged = &world.tokens[0];
        let token = world.tokens.iter().find(|token| Some(&token.contract) == focus.token.as_ref());
        if let Some(token) = token.filter(|token| token.index != bridged.index && token.has_transfers()) {
            let reserve = moved.reserve(world, past, token)?;
            moved.push(random, token, &reserve, &reserve.other);
            if token.is_bridged() && reserve.other == bridge {
                return Ok(moved);
            }
        }
        let mut reserve = moved.reserve(world, past, bridged)?;
        if reserve.other != bridge {
            // A new holder would not be counted.
            reserve.units = 0;
        }
        moved.push(random, bridged, &reserve, bridge);
        Ok(moved)
    }

    /// Holdings of a token, which is minted if it never moved.
    fn reserve<P: Past>(&mut self, world: &World, past: &P, token: &'w Token) -> Result<Reserve, P::Error> {
        if let Some(reserve) = past.reserve(token)? {
            return Ok(reserve);
        }
        let holder = world.address(0).to_owned();
        let id = if token.is_fungible() { String::new() } else { "1".into() };
        let units = if token.is_unique() { 1 } else { token.supply_units() };
        let draft = Draft { units, spelling: Spelling::Bare, id: id.clone() };
        self.transfers.push(Transfer::new(token, ZERO_ADDRESS, &holder, draft));
        let reserve = Reserve { other: holder.clone(), holder, units, id };
        self.minted.push((token, reserve.clone()));
        Ok(reserve)
    }

    fn push(&mut self, random: &mut Random, token: &'w Token, reserve: &Reserve, to: &str) {
        let units = if token.is_fungible() {
            reserve.units / u128::from(SHARES) * u128::from(1 + random.below(1_000)) / 1_000
        } else {
            reserve.units
        };
        let draft = Draft { units, spelling: Spelling::any(random, units, token.precision), id: reserve.id.clone() };
        self.transfers.push(Transfer::new(token, &reserve.holder, to, draft));
    }

    fn put<S: Sink>(&self, seq: i64, sender: &str, first_log: i64, sink: &mut S) -> Result<(), S::Error> {
        for (log_index, transfer) in (first_log..).zip(&self.transfers) {
            sink.put(&schema::TOKEN_TRANSFER, Some(seq), transfer)?;
            sink.put(&schema::EVENT_LOG, Some(seq), &Log::of(transfer, sender, log_index))?;
        }
        for (token, reserve) in &self.minted {
            sink.put_reserve(token, reserve)?;
        }
        Ok(())
    }
}

/// Appends one block of transactions to the main chain, and a block for each transaction to the zone chain.
pub fn grow<S: Sink>(
    world: &World,
    head: Heads,
    past: &impl Past<Error = S::Error>,
    growth: Growth,
    focus: &Focus,
    sink: &mut S,
) -> Result<(), S::Error> {
    let mut random = Random::new(world.seed ^ head.height.unsigned_abs() ^ (head.turn << 40), "head");
    let mut fate = Random::new(world.seed ^ head.height.unsigned_abs() ^ (head.turn << 40), "fate");
    let block = Block { height: head.height + 1, hash: random.hash(), time: head.time + MAIN_INTERVAL_MS };
    let sender = focus.sender.clone().unwrap_or_else(|| world.address(0).to_owned());
    let receiver = focus.receiver.clone().unwrap_or_else(|| world.address(2).to_owned());
    let first = past.nonce(&sender)?;
    let mut log_index = 0;
    for index in 0..i64::from(growth.count) {
        // Above any usual threshold, so that the list of large transactions grows too.
        let coins = units(&mut random, 1_000, 10_000, 6, COIN_SCALE);
        let is_pending = fate.below(1_000_000) < growth.pending_ppm;
        let is_late = fate.below(1_000_000) < growth.late_ppm;
        let moved = Moved::of(world, &mut random, past, focus)?;
        let transaction = Transaction {
            block: &block,
            id: random.hash(),
            from: sender.clone(),
            to: receiver.clone(),
            from_contract: false,
            to_contract: false,
            amount: decimal(coins, COIN_SCALE, Spelling::Bare),
            // The supply is there from the first transfer on.
            state: if is_pending && moved.minted.is_empty() { "pending" } else { "success" },
            method: "0xa9059cbb",
            nonce: first + index,
            gas: Gas::new(&mut random, 65_000),
            form: 2,
        };
        sink.set_late(is_late);
        let seq = sink.put(&schema::CHAIN_TRANSACTION, None, &transaction)?;
        moved.put(seq, &sender, log_index, sink)?;
        log_index += moved.transfers.len() as i64;

        let zone = zone_block(world, &mut random, head, block.time, index);
        let Some(deposit) = moved.transfers.last() else { continue };
        let main = BridgeTransaction { id: transaction.id, height: block.height, time: block.time };
        let crossed = crossed(world, &mut random, focus, deposit, main, &zone);
        sink.set_late(fate.below(1_000_000) < growth.late_ppm);
        sink.put(&schema::CROSS_CHAIN_TRANSACTION, None, &crossed)?;
        sink.set_late(false);
        sink.put(&schema::BLOCK, None, &zone)?;
    }
    Ok(())
}

/// The block of the zone chain that has a transaction of the new block. A deposit arrives after it left the main chain.
fn zone_block(world: &World, random: &mut Random, head: Heads, main_time: i64, index: i64) -> zone_chain::Block {
    zone_chain::Block {
        hash: random.hash(),
        height: head.zone_height + 1 + index,
        miner: world.producers[random.index(world.producers.len())].clone(),
        time: head.zone_time.max(main_time) + (1 + index) * ZONE_INTERVAL_MS,
        transactions: 1,
    }
}

/// A deposit of the main chain as a block of the zone chain has it.
fn crossed<'w>(
    world: &World,
    random: &mut Random,
    focus: &Focus,
    deposit: &Transfer<'w>,
    main: BridgeTransaction,
    zone: &zone_chain::Block,
) -> CrossChainTransaction<'w> {
    let crossing = Crossing {
        main,
        inward: true,
        batch: false,
        token: deposit.token,
        account: deposit.from.clone(),
        units: deposit.units,
        id: String::new(),
    };
    let mut crossed = CrossChainTransaction::new(world, random, &crossing);
    crossed.zone_height = zone.height;
    crossed.zone_time = zone.time;
    if let Some(signer) = &focus.signer {
        crossed.from.clone_from(signer);
    }
    if let Some(destination) = &focus.destination {
        crossed.to.clone_from(destination);
    }
    // Only a holder can deposit; anyone can receive it.
    if let Some(address) = focus.sender.as_ref().or(focus.receiver.as_ref()) {
        crossed.target.clone_from(address);
    }
    crossed
}
