//! Main-chain transactions and their token transfers.

use super::amount::{COIN_SCALE, Spelling, decimal, spelled, units};
use super::ledger::{Movement, Wish};
use super::random::Random;
use super::token::Token;
use super::world::World;
use super::{Cell, Row};
use crate::interface::ZERO_ADDRESS;

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
        let limit = used + random.between(0, used / 2);
        Self { used, limit, price: spelled(price, COIN_SCALE, random), fee: spelled(fee, COIN_SCALE, random) }
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

/// A token transfer, without the columns of its transaction.
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

/// Amount, spelling and id of a transfer as they were drawn.
#[derive(Debug)]
pub struct Draft {
    pub units: u128,
    pub spelling: Spelling,
    pub id: String,
}

impl Draft {
    pub fn new(random: &mut Random, token: &Token) -> Self {
        let units = match token.protocol {
            "ERC721" => 1,
            "ERC1155" => random.between(1, 50).unsigned_abs().into(),
            _ => {
                let decimals = [0, 2, 6, 18][random.index(4)];
                let max_units = [2, 100, 10_000, 3_000_000][random.index(4)].min(token.largest);
                units(random, 0, max_units, decimals, token.precision)
            }
        };
        let spelling = if token.is_fungible() { Spelling::any(random, units, token.precision) } else { Spelling::Bare };
        Self { units, spelling, id: token.id(random) }
    }
}

impl<'w> Transfer<'w> {
    pub fn new(token: &'w Token, from: &str, to: &str, draft: Draft) -> Self {
        Self {
            token,
            from: from.to_owned(),
            to: to.to_owned(),
            from_contract: Some(false),
            to_contract: false,
            amount: decimal(draft.units, token.precision, draft.spelling),
            units: draft.units,
            id: draft.id,
        }
    }

    /// A transfer that changes no balance: it failed, or moves nothing.
    pub fn without_effect(world: &World, token: &'w Token, sender: &str, wish: Wish, spelling: Spelling) -> Self {
        let Wish { from, to, units, id, .. } = wish;
        Self {
            from_contract: Some(from.is_some_and(|account| world.is_contract(account))),
            to_contract: world.is_contract(to),
            ..Self::new(
                token,
                from.map_or(sender, |account| world.address(account)),
                world.address(to),
                Draft { units, spelling, id },
            )
        }
    }

    /// A transfer that the holdings allow.
    pub fn of(world: &World, token: &'w Token, movement: Movement, spelling: Spelling) -> Self {
        let Movement { from, to, units, id } = movement;
        let [from_address, to_address] = [from, to].map(|account| account.map_or(ZERO_ADDRESS, |of| world.address(of)));
        Self {
            from_contract: Some(from.is_some_and(|account| world.is_contract(account))),
            to_contract: to.is_some_and(|account| world.is_contract(account)),
            ..Self::new(token, from_address, to_address, Draft { units, spelling, id })
        }
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
