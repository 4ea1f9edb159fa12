//! Holdings of the tokens: who can send what, so that no balance is ever negative, an id has one holder at a time, and
//! what was minted minus what was burned is the supply.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::Sink;
use super::random::Random;
use super::token::Token;
use super::world::{Account, World};
use crate::service::schema;

/// A transfer as it was drawn, before the ledger says who can make it.
#[derive(Clone, Debug)]
pub struct Wish {
    pub from: Option<Account>,
    pub to: Account,
    pub units: u128,
    pub id: String,
    pub is_mint: bool,
}

/// A transfer that the holdings allow; without a sender it mints, without a receiver it burns.
#[derive(Clone, Debug)]
pub struct Movement {
    pub from: Option<Account>,
    pub to: Option<Account>,
    pub units: u128,
    pub id: String,
}

/// Holdings from which a growing chain takes its transfers, so that they overdraw nothing and add no holder.
#[derive(Clone, Debug)]
pub struct Reserve {
    pub holder: String,
    /// Another holder if there is one: the bridge if it is one.
    pub other: String,
    pub units: u128,
    pub id: String,
}

#[derive(Debug)]
pub struct Ledger {
    tokens: Vec<Holdings>,
    bridge: Account,
    chance: Random,
}

#[derive(Debug, Default)]
struct Holdings {
    /// Units of a fungible token.
    balances: HashMap<Account, u128>,
    /// Units of ids; an account may hold several parts of one id.
    parts: Vec<Part>,
    ids: HashSet<String>,
    minted: u128,
    burned: u128,
    /// Receiver of the first mint of a fungible token.
    issuer: Account,
    /// Receiver of the last units that moved of a fungible token: it holds some.
    latest: Account,
}

#[derive(Debug)]
struct Part {
    id: String,
    holder: Account,
    units: u128,
}

/// Holders that are looked at for one that fits.
const TRIES: usize = 8;

impl Ledger {
    pub fn new(world: &World) -> Self {
        let tokens = world.tokens.iter().map(|_| Holdings::default()).collect();
        Self { tokens, bridge: world.bridge(), chance: Random::new(world.seed, "ledger") }
    }

    /// The transfer that comes closest to the wish. The first one of a fungible token mints its supply.
    pub fn transfer(&mut self, token: &Token, wish: Wish) -> Movement {
        let Self { tokens, chance, .. } = self;
        let holdings = &mut tokens[token.index];
        let burns = chance.per_mille(20);
        if token.is_fungible() {
            if holdings.minted == 0 {
                return holdings.issue(token, wish.to);
            }
            let (from, units) = holdings.sender(wish.from, wish.units);
            let is_spared = holdings.balance(from) > units && holdings.burned + units <= token.burnable();
            holdings.send(from, (!burns || !is_spared).then_some(wish.to), units)
        } else if wish.is_mint || holdings.parts.is_empty() || chance.per_mille(300) {
            holdings.mint(token, wish, chance)
        } else {
            let part = holdings.part(chance, |holder| Some(holder) == wish.from);
            let part = part.unwrap_or_else(|| chance.index(holdings.parts.len()));
            holdings.hand_over(part, (!burns).then_some(wish.to), wish.units)
        }
    }

    /// A transfer to the bridge, unless no other account holds any.
    pub fn deposit(&mut self, token: &Token, wish: &Wish) -> Option<Movement> {
        let Self { tokens, bridge, chance } = self;
        let holdings = &mut tokens[token.index];
        if !token.is_fungible() {
            let part = holdings.part(chance, |holder| holder != *bridge)?;
            return Some(holdings.hand_over(part, Some(*bridge), wish.units));
        }
        let (from, units) = holdings.sender(wish.from, wish.units.max(1));
        (units > 0 && from != *bridge).then(|| holdings.send(from, Some(*bridge), units))
    }

    /// A transfer from the bridge, which remains a holder.
    pub fn withdraw(&mut self, token: &Token, wish: &Wish) -> Option<Movement> {
        let holdings = &mut self.tokens[token.index];
        if !token.is_fungible() {
            let part = holdings.parts.iter().position(|part| part.holder == self.bridge)?;
            return Some(holdings.hand_over(part, Some(wish.to), wish.units));
        }
        let units = wish.units.max(1).min(holdings.balance(self.bridge) / 2);
        (units > 0).then(|| holdings.send(self.bridge, Some(wish.to), units))
    }

    /// True if the token has moved.
    pub fn is_issued(&self, token: &Token) -> bool {
        self.tokens[token.index].minted > 0
    }

    /// A transfer of a transaction that is pending: from a holder to itself, so that it may be counted or not.
    pub fn idle(&self, token: &Token, wish: &Wish) -> Movement {
        let holdings = &self.tokens[token.index];
        let part = holdings.parts.last();
        let holder = part.map_or(holdings.latest, |part| part.holder);
        let units = part.map_or_else(|| holdings.balance(holder), |part| part.units);
        let id = part.map_or_else(String::new, |part| part.id.clone());
        Movement { from: Some(holder), to: Some(holder), units: wish.units.min(units), id }
    }

    /// Writes the tokens with what their transfers add up to, unless the chain is empty.
    pub fn put_tokens<S: Sink>(&self, world: &World, sink: &mut S) -> Result<(), S::Error> {
        if world.transactions == 0 {
            return Ok(());
        }
        for token in &world.tokens {
            match self.totals(token) {
                Some((supply, holders)) => {
                    sink.put(&schema::TOKEN, None, &token.with_totals(supply, holders))?;
                }
                None => {
                    sink.put(&schema::TOKEN, None, token)?;
                }
            }
            if let Some(reserve) = self.reserve(world, token) {
                sink.put_reserve(token, &reserve)?;
            }
        }
        Ok(())
    }

    /// Supply and number of holders; `None` of a token that never moved.
    fn totals(&self, token: &Token) -> Option<(u128, usize)> {
        let holdings = &self.tokens[token.index];
        let parts: HashSet<Account> = holdings.parts.iter().map(|part| part.holder).collect();
        let holders = parts.len() + holdings.balances.values().filter(|units| **units > 0).count();
        (holdings.minted > 0).then_some((holdings.minted - holdings.burned, holders))
    }

    fn reserve(&self, world: &World, token: &Token) -> Option<Reserve> {
        let holdings = &self.tokens[token.index];
        if let Some(Part { id, holder, units }) = holdings.parts.last() {
            let holder = world.address(*holder).to_owned();
            return Some(Reserve { other: holder.clone(), holder, units: *units, id: id.clone() });
        }
        // The bridge only where no other account holds any.
        let (holder, units) =
            holdings.holders().max_by_key(|(account, units)| (*account != self.bridge, *units, Reverse(*account)))?;
        let other = if holdings.balance(self.bridge) > 0 {
            self.bridge
        } else {
            holdings.holders().map(|(account, _)| account).filter(|account| *account != holder).min().unwrap_or(holder)
        };
        let [holder, other] = [holder, other].map(|account| world.address(account).to_owned());
        Some(Reserve { holder, other, units, id: String::new() })
    }
}

impl Holdings {
    /// Accounts with a balance, and the balance.
    fn holders(&self) -> impl Iterator<Item = (Account, u128)> {
        self.balances.iter().map(|(account, units)| (*account, *units)).filter(|(_, units)| *units > 0)
    }

    fn balance(&self, account: Account) -> u128 {
        self.balances.get(&account).copied().unwrap_or(0)
    }

    fn issue(&mut self, token: &Token, to: Account) -> Movement {
        let units = token.supply_units();
        self.minted = units;
        self.issuer = to;
        self.latest = to;
        self.balances.insert(to, units);
        Movement { from: None, to: Some(to), units, id: String::new() }
    }

    /// The account that sends: the given one or the issuer if it holds that many units, else one that holds some.
    fn sender(&self, from: Option<Account>, units: u128) -> (Account, u128) {
        let enough = from.into_iter().chain([self.issuer]).find(|account| self.balance(*account) >= units);
        let from = enough.unwrap_or(self.latest);
        (from, units.min(self.balance(from)))
    }

    fn send(&mut self, from: Account, to: Option<Account>, units: u128) -> Movement {
        *self.balances.entry(from).or_default() -= units;
        match to {
            Some(to) => *self.balances.entry(to).or_default() += units,
            None => self.burned += units,
        }
        if let Some(to) = to
            && units > 0
        {
            self.latest = to;
        }
        Movement { from: Some(from), to, units, id: String::new() }
    }

    fn mint(&mut self, token: &Token, wish: Wish, chance: &mut Random) -> Movement {
        let Wish { to, units, mut id, .. } = wish;
        while token.is_unique() && !self.ids.insert(id.clone()) {
            id = chance.digits(8);
        }
        self.minted += units;
        self.parts.push(Part { id: id.clone(), holder: to, units });
        Movement { from: None, to: Some(to), units, id }
    }

    /// A part whose holder fits, if one is found in a few tries.
    fn part(&self, chance: &mut Random, fits: impl Fn(Account) -> bool) -> Option<usize> {
        let mut parts = (0..TRIES).map(|_| chance.index(self.parts.len()));
        parts.find(|part| self.parts.get(*part).is_some_and(|part| fits(part.holder)))
    }

    fn hand_over(&mut self, index: usize, to: Option<Account>, units: u128) -> Movement {
        let part = &mut self.parts[index];
        let from = part.holder;
        let id = part.id.clone();
        let units = units.min(part.units);
        part.units -= units;
        if part.units == 0 {
            self.parts.swap_remove(index);
        }
        match to {
            Some(to) => self.parts.push(Part { id: id.clone(), holder: to, units }),
            None => self.burned += units,
        }
        Movement { from: Some(from), to, units, id }
    }
}
