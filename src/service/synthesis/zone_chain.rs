//! The zone chain: blocks without a gap, and the transactions that move value to or from the main chain.

use super::amount::{Spelling, decimal};
use super::main_chain::{BridgeTransaction, Crossing};
use super::random::Random;
use super::token::Token;
use super::world::World;
use super::{Cell, HEAD_TIME, Row, SPAN_MS, Sink};
use crate::service::schema;

const FIRST_HEIGHT: i64 = 4_300_000;

#[derive(Debug)]
pub struct Block {
    pub hash: String,
    pub height: i64,
    pub miner: String,
    pub time: i64,
    pub transactions: i64,
}

impl Row for Block {
    fn cell(&self, column: &str) -> Cell<'_> {
        match column {
            "hash" => Cell::Text(&self.hash),
            "height" => Cell::Integer(self.height),
            "miner" => Cell::Text(&self.miner),
            "block_time" => Cell::Integer(self.time),
            "transaction_count" => Cell::Integer(self.transactions),
            _ => Cell::Nothing,
        }
    }
}

#[derive(Debug)]
pub struct CrossChainTransaction<'w> {
    pub main: BridgeTransaction,
    pub id: String,
    pub inward: bool,
    pub batch: bool,
    pub status: &'static str,
    pub zone_hash: String,
    pub zone_height: i64,
    pub zone_time: i64,
    pub from: String,
    pub to: String,
    pub source: String,
    pub target: String,
    pub token: &'w Token,
    pub value: String,
    pub value_raw: String,
    pub token_id: String,
}

impl<'w> CrossChainTransaction<'w> {
    /// The caller sets its height and time on the zone chain.
    pub fn new(world: &World, random: &mut Random, crossing: &Crossing<'w>) -> Self {
        let Crossing { main, inward, batch, token, account, units, id } = crossing.clone();
        let other = world.address(world.person(random, 1_000)).to_owned();
        let (source, target) = if inward { (account, other) } else { (other, account) };
        let spelling = Spelling::any(random, units, token.precision);
        Self {
            id: if random.per_mille(200) { String::new() } else { random.hash() },
            inward,
            batch,
            // What left the zone chain did arrive.
            status: if inward && random.per_mille(50) { "0x0" } else { "0x1" },
            zone_hash: random.hash(),
            zone_height: 0,
            zone_time: 0,
            from: world.signer.clone(),
            to: world.address(world.bridge()).to_owned(),
            source,
            target,
            value: decimal(units, token.precision, spelling),
            value_raw: units.to_string(),
            token_id: id,
            token,
            main,
        }
    }
}

impl Row for CrossChainTransaction<'_> {
    fn cell(&self, column: &str) -> Cell<'_> {
        match column {
            "id" => Cell::Text(&self.id),
            "tx_type" => Cell::Text(if self.inward { "MainToZone" } else { "ZoneToMain" }),
            "cross_type" if self.inward => Cell::Text("Deposit"),
            "cross_type" => Cell::Text(if self.batch { "BatchWithdraw" } else { "Withdraw" }),
            "status" => Cell::Text(self.status),
            "main_tx_hash" => Cell::Text(&self.main.id),
            "main_block_height" => Cell::Integer(self.main.height),
            "main_block_time" => Cell::Integer(self.main.time),
            "zone_tx_hash" => Cell::Text(&self.zone_hash),
            "zone_block_height" => Cell::Integer(self.zone_height),
            "zone_block_time" => Cell::Integer(self.zone_time),
            "from_address" => Cell::Text(&self.from),
            "to_address" => Cell::Text(&self.to),
            "source_address" => Cell::Text(&self.source),
            "target_address" => Cell::Text(&self.target),
            "value" => Cell::Text(&self.value),
            "value_raw" => Cell::Text(&self.value_raw),
            "token_contract_address" => Cell::Text(&self.token.contract),
            "token_type" => Cell::Text(self.token.protocol),
            "token_id" => Cell::Text(&self.token_id),
            "token_name" => Cell::Text(&self.token.name),
            _ => Cell::Nothing,
        }
    }
}

/// Writes one block for each transaction of the main chain.
pub fn fill<S: Sink>(
    world: &World,
    random: &mut Random,
    crossings: &[Crossing<'_>],
    sink: &mut S,
) -> Result<(), S::Error> {
    let count = world.transactions as i64;
    let step = SPAN_MS / count.max(1);
    let times: Vec<i64> = (0..count)
        .map(|index| {
            HEAD_TIME - (count - 1 - index) * step - if index + 1 == count { 0 } else { random.between(0, step / 2) }
        })
        .collect();
    let mut counts: Vec<i64> = times.iter().map(|_| [0, 0, 1, 1, 2, 3, 5, 30][random.index(8)]).collect();
    let mut crossed = cross(world, random, crossings, &times);
    // By block, since the list is; within one as they came.
    crossed.sort_by_key(|transaction| transaction.zone_height);
    for transaction in &crossed {
        if let Some(own) = counts.get_mut((transaction.zone_height - FIRST_HEIGHT) as usize) {
            *own += 1;
        }
        sink.put(&schema::CROSS_CHAIN_TRANSACTION, None, transaction)?;
    }
    for ((index, time), transactions) in times.into_iter().enumerate().zip(counts) {
        let miner = world.producers[random.popular(world.producers.len())].clone();
        let height = FIRST_HEIGHT + index as i64;
        sink.put(&schema::BLOCK, None, &Block { hash: random.hash(), height, miner, time, transactions })?;
    }
    Ok(())
}

fn cross<'w>(
    world: &World,
    random: &mut Random,
    crossings: &[Crossing<'w>],
    times: &[i64],
) -> Vec<CrossChainTransaction<'w>> {
    let mut crossed = Vec::new();
    // What a transaction moves is in one block.
    for crossings in crossings.chunk_by(|left, right| left.main.id == right.main.id) {
        let Some(Crossing { main, inward, .. }) = crossings.first() else { continue };
        // What goes in arrives later than it left, what comes out left earlier than it arrived.
        let at = times.partition_point(|time| *time <= main.time);
        let delay = random.index(3);
        let index =
            if *inward { (at + delay).min(times.len().saturating_sub(1)) } else { at.saturating_sub(1 + delay) };
        for crossing in crossings {
            let mut transaction = CrossChainTransaction::new(world, random, crossing);
            transaction.zone_height = FIRST_HEIGHT + index as i64;
            transaction.zone_time = times.get(index).copied().unwrap_or(HEAD_TIME);
            crossed.push(transaction);
        }
    }
    crossed
}
