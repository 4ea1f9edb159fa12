//! The tokens: hundreds, of every protocol, issued over four years; the first of them are the ones that move.

use super::amount::{Spelling, decimal, spelled};
use super::random::Random;
use super::{Cell, DAY_MS, HEAD_TIME, Row, SPAN_MS};

pub const COUNT: usize = 480;
/// Tokens that have transfers. They were issued before the chain's first block that is kept.
pub const MOVING: usize = 150;
/// Whole tokens that are more than the transfers of a usual chain move, so that senders have what they send.
const LEAST_SUPPLY: u128 = 1_000_000_000;
const YEARS_MS: i64 = 4 * 365 * DAY_MS;
/// Worth nothing, with a supply of sixty digits. It has no transfers: the mint of that supply would fit no column.
pub const SPAM: usize = 15;

const NAMES: [&str; 16] = [
    "Amber", "Birch", "Cobalt", "Delta", "Ember", "Fjord", "Garnet", "Harbor", "Iris", "Juniper", "Kelp", "Lumen",
    "Mosaic", "Nimbus", "Onyx", "Prism",
];
const THINGS: [&str; 8] = ["Coin", "Credit", "Dollar", "Finance", "Network", "Pass", "Share", "Vault"];

#[derive(Clone, Debug)]
pub struct Token {
    pub index: usize,
    pub contract: String,
    pub protocol: &'static str,
    pub symbol: String,
    pub name: String,
    pub precision: u32,
    issued: i64,
    holders: usize,
    /// Whole tokens of the total supply.
    supply: u64,
    /// Whole tokens that are the most of one transfer.
    pub largest: u64,
    total_supply: String,
    circulating_supply: String,
    /// Circulating supply in hundredths of whole tokens.
    circulating: u128,
    price: String,
    market_cap: String,
    volume: String,
    locked: String,
    website: String,
    logo: String,
}

fn name_and_symbol(index: usize) -> (String, String) {
    let first = NAMES[index % NAMES.len()];
    let second = THINGS[(index / NAMES.len()) % THINGS.len()];
    let round = index / (NAMES.len() * THINGS.len());
    let number = if round == 0 { String::new() } else { format!(" {}", round + 1) };
    let name = if index == SPAM { "Free \"Airdrop\" \u{2714}".into() } else { format!("{first} {second}{number}") };
    (name, format!("{}{}{}", &first[..2], &second[..1], index).to_uppercase())
}

impl Token {
    pub fn new(random: &mut Random, index: usize) -> Self {
        let protocol = match index % 10 {
            6 | 7 => "ERC721",
            8 => "ERC1155",
            9 => "ERC10",
            _ => "ERC20",
        };
        let fungible = matches!(protocol, "ERC20" | "ERC10");
        let precision = if fungible { [18, 18, 6, 8, 18, 0, 2, 18][index % 8] } else { 0 };
        let (name, symbol) = name_and_symbol(index);
        let newest = if index < MOVING { HEAD_TIME - SPAN_MS - DAY_MS } else { HEAD_TIME - DAY_MS };
        let largest = u128::from(1 + random.below(9)) * 10_u128.pow(3 + random.below(9) as u32);
        let mut supply = largest;
        while fungible && supply < LEAST_SUPPLY {
            supply *= 1_000;
        }
        let circulating = supply * u128::from(40 + random.below(61));
        // The tokens that move most are worth most, a trillion dollars shared out as such things are; in
        // hundred-millionths of a dollar, by hundredths of a token.
        let worth_wanted = 10_u128.pow(22) * u128::from(80 + random.below(20)) / 100 / (index as u128 + 1);
        let price = if fungible && index != SPAM { (worth_wanted / circulating).max(1) } else { 0 };
        let worth = circulating * price;
        let contract = random.address();
        let issued = random.between(HEAD_TIME - YEARS_MS, newest);
        random.skip();
        Self {
            index,
            protocol,
            symbol,
            name,
            precision,
            issued,
            holders: 1,
            supply: u64::try_from(supply).unwrap_or(u64::MAX),
            largest: u64::try_from(largest).unwrap_or(u64::MAX),
            total_supply: match protocol {
                _ if index == SPAM => random.digits(60),
                // The first transfer mints one id.
                "ERC721" => "1".into(),
                _ => decimal(supply, 0, Spelling::Bare),
            },
            circulating_supply: if protocol == "ERC721" { "1".into() } else { decimal(circulating, 2, Spelling::Bare) },
            circulating,
            price: spelled(price, 8, random),
            market_cap: decimal(worth, 10, Spelling::Bare),
            volume: if fungible {
                spelled(worth / u128::from(20 + random.below(400)), 10, random)
            } else {
                String::new()
            },
            locked: if random.per_mille(300) { spelled(worth / 7, 10, random) } else { "0".into() },
            website: if random.per_mille(600) { format!("https://token-{index}.example/") } else { String::new() },
            logo: format!("https://static.example/logo/{contract}.png"),
            contract,
        }
    }

    pub fn is_fungible(&self) -> bool {
        matches!(self.protocol, "ERC20" | "ERC10")
    }

    /// True if each id exists once.
    pub fn is_unique(&self) -> bool {
        self.protocol == "ERC721"
    }

    /// True if the amounts of its transfers fit the columns.
    pub fn has_transfers(&self) -> bool {
        self.index != SPAM
    }

    /// True if the bridge accepts the token.
    pub fn is_bridged(&self) -> bool {
        matches!(self.protocol, "ERC20" | "ERC1155")
    }

    /// Total supply in the smallest unit, before anything is burned.
    pub fn supply_units(&self) -> u128 {
        u128::from(self.supply) * 10_u128.pow(self.precision)
    }

    /// Units that can be burned while those in circulation remain.
    pub fn burnable(&self) -> u128 {
        self.supply_units() - self.circulating * 10_u128.pow(self.precision) / 100
    }

    /// The token with the supply and the number of holders that its transfers add up to.
    pub fn with_totals(&self, supply: u128, holders: usize) -> Self {
        let mut token = self.clone();
        token.holders = holders;
        token.total_supply = decimal(supply, self.precision, Spelling::Bare);
        if !self.is_fungible() {
            let circulating = supply * self.circulating / u128::from(self.supply);
            token.circulating_supply = decimal(circulating, 2, Spelling::Bare);
        }
        token
    }

    /// Id of a token that is not fungible; some exceed 64 bits.
    pub fn id(&self, random: &mut Random) -> String {
        if self.is_fungible() {
            return String::new();
        }
        let count = if random.per_mille(150) { 20 + random.index(58) } else { 1 + random.index(6) };
        random.digits(count)
    }
}

impl Row for Token {
    fn cell(&self, column: &str) -> Cell<'_> {
        match column {
            "token_full_name" => Cell::Text(&self.name),
            "token" => Cell::Text(&self.symbol),
            "precision" => Cell::Integer(i64::from(self.precision)),
            "token_contract_address" => Cell::Text(&self.contract),
            "protocol_type" => Cell::Text(self.protocol),
            "address_count" => Cell::Integer(self.holders as i64),
            "total_supply" => Cell::Text(&self.total_supply),
            "circulating_supply" => Cell::Text(&self.circulating_supply),
            "price" => Cell::Text(&self.price),
            "website" => Cell::Text(&self.website),
            "total_market_cap" => Cell::Text(&self.market_cap),
            "issue_date" => Cell::Integer(self.issued),
            "transaction_amount_24h" => Cell::Text(&self.volume),
            "tvl" => Cell::Text(&self.locked),
            "logo_url" => Cell::Text(&self.logo),
            _ => Cell::Nothing,
        }
    }
}
