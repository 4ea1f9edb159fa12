//! New records at the chain's head, while it is being read: the same on both chains and in every list.

use super::Sink;
use super::amount::{COIN_SCALE, Spelling, decimal, units};
use super::log::Log;
use super::main_chain::BridgeTransaction;
use super::random::Random;
use super::transaction::{Block, Gas, Transaction, Transfer};
use super::world::World;
use super::zone_chain::{self, CrossChainTransaction};
use crate::service::schema;

const MAIN_INTERVAL_MS: i64 = 12_000;
const ZONE_INTERVAL_MS: i64 = 3_000;

/// The last blocks of the two chains.
#[derive(Clone, Copy, Debug)]
pub struct Head {
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

/// Appends one block of transactions to the main chain, and a block for each transaction to the zone chain.
pub fn grow<S: Sink>(
    world: &World,
    head: Head,
    mut nonce: impl FnMut(&str) -> Result<i64, S::Error>,
    growth: Growth,
    focus: &Focus,
    sink: &mut S,
) -> Result<(), S::Error> {
    let mut random = Random::new(world.seed ^ head.height.unsigned_abs() ^ (head.turn << 40), "head");
    let mut fate = Random::new(world.seed ^ head.height.unsigned_abs() ^ (head.turn << 40), "fate");
    let block = Block { height: head.height + 1, hash: random.hash(), time: head.time + MAIN_INTERVAL_MS };
    let sender = focus.sender.clone().unwrap_or_else(|| world.address(0).to_owned());
    let receiver = focus.receiver.clone().unwrap_or_else(|| world.address(2).to_owned());
    let token = world.tokens.iter().find(|token| Some(&token.contract) == focus.token.as_ref());
    let token = token.unwrap_or(&world.tokens[0]);
    let first = nonce(&sender)?;
    for index in 0..i64::from(growth.count) {
        // Above any usual threshold, so that the list of large transactions grows too.
        let coins = units(&mut random, 1_000, 10_000, 6, COIN_SCALE);
        let transaction = Transaction {
            block: &block,
            id: random.hash(),
            from: sender.clone(),
            to: receiver.clone(),
            from_contract: false,
            to_contract: false,
            amount: decimal(coins, COIN_SCALE, Spelling::Bare),
            state: if fate.below(1_000_000) < growth.pending_ppm { "pending" } else { "success" },
            method: "0xa9059cbb",
            nonce: first + index,
            gas: Gas::new(&mut random, 65_000),
            form: 2,
        };
        sink.set_late(fate.below(1_000_000) < growth.late_ppm);
        let seq = sink.put(&schema::CHAIN_TRANSACTION, None, &transaction)?;
        let transfer = Transfer::new(&mut random, token, &sender, &receiver);
        sink.put(&schema::TOKEN_TRANSFER, Some(seq), &transfer)?;
        sink.put(&schema::EVENT_LOG, Some(seq), &Log::of(&transfer, &sender, index))?;

        let zone = zone_chain::Block {
            hash: random.hash(),
            height: head.zone_height + 1 + index,
            miner: world.producers[random.index(world.producers.len())].clone(),
            // A deposit arrives after it left the main chain.
            time: head.zone_time.max(block.time) + (1 + index) * ZONE_INTERVAL_MS,
            transactions: 1,
        };
        let Transaction { id, from, .. } = transaction;
        let main = BridgeTransaction { id, height: block.height, time: block.time, sender: from };
        let bridged = if matches!(token.protocol, "ERC20" | "ERC1155") { token } else { &world.tokens[0] };
        let mut transfer = CrossChainTransaction::new(world, &mut random, main, true, bridged);
        transfer.zone_height = zone.height;
        transfer.zone_time = zone.time;
        if let Some(signer) = &focus.signer {
            transfer.from.clone_from(signer);
        }
        if let Some(destination) = &focus.destination {
            transfer.to.clone_from(destination);
        }
        sink.set_late(fate.below(1_000_000) < growth.late_ppm);
        sink.put(&schema::CROSS_CHAIN_TRANSACTION, None, &transfer)?;
        sink.set_late(false);
        sink.put(&schema::BLOCK, None, &zone)?;
    }
    Ok(())
}
