//! The tokens: hundreds, of every protocol, issued over four years; the first of them are the ones that move.

use super::amount::{Spelling, decimal};
use super::random::Random;
use super::{Cell, DAY_MS, HEAD_TIME, Row, SPAN_MS};

pub const COUNT: usize = 480;
/// Tokens that have transfers. They were issued before the chain's first block that is kept.
pub const MOVING: usize = 150;
const YEARS_MS: i64 = 4 * 365 * DAY_MS;
/// Worth nothing, with a supply of sixty digits.
const SPAM: usize = 15;

const NAMES: [&str; 16] = [
    "Amber", "Birch", "Cobalt", "Delta", "Ember", "Fjord", "Garnet", "Harbor", "Iris", "Juniper", "Kelp", "Lumen",
    "Mosaic", "Nimbus", "Onyx", "Prism",
];
const THINGS: [&str; 8] = ["Coin", "Credit", "Dollar", "Finance", "Network", "Pass", "Share", "Vault"];

#[derive(Clone, Debug)]
pub struct Token {
    pub contract: String,
    pub protocol: &'static str,
    pub symbol: String,
    pub name: String,
    pub precision: u32,
    issued: i64,
    holders: i64,
    /// Whole tokens of the total supply, or fewer.
    pub supply: u64,
    total_supply: String,
    circulating_supply: String,
    price: String,
    market_cap: String,
    volume: String,
    locked: String,
    website: String,
    logo: String,
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
        let first = NAMES[index % NAMES.len()];
        let second = THINGS[(index / NAMES.len()) % THINGS.len()];
        let round = index / (NAMES.len() * THINGS.len());
        let number = if round == 0 { String::new() } else { format!(" {}", round + 1) };
        let name = if index == SPAM { "Free \"Airdrop\" \u{2714}".into() } else { format!("{first} {second}{number}") };
        let symbol = format!("{}{}{}", &first[..2], &second[..1], index).to_uppercase();
        let newest = if index < MOVING { HEAD_TIME - SPAN_MS - DAY_MS } else { HEAD_TIME - DAY_MS };
        let supply = u128::from(1 + random.below(9)) * 10_u128.pow(3 + random.below(9) as u32);
        let circulating = supply * u128::from(40 + random.below(61));
        // The tokens that move most are worth most, a trillion dollars shared out as such things are; in
        // hundred-millionths of a dollar, by hundredths of a token.
        let worth_wanted = 10_u128.pow(22) * u128::from(80 + random.below(20)) / 100 / (index as u128 + 1);
        let price = if fungible && index != SPAM { (worth_wanted / circulating).max(1) } else { 0 };
        let worth = circulating * price;
        let dollars = |units, scale, random: &mut Random| decimal(units, scale, Spelling::any(random, units, scale));
        let contract = random.address();
        Self {
            protocol,
            symbol,
            name,
            precision,
            issued: random.between(HEAD_TIME - YEARS_MS, newest),
            holders: random.between(1, 2_000_000),
            supply: u64::try_from(supply).unwrap_or(u64::MAX),
            total_supply: if index == SPAM { random.digits(60) } else { decimal(supply, 0, Spelling::Bare) },
            circulating_supply: decimal(circulating, 2, Spelling::Bare),
            price: dollars(price, 8, random),
            market_cap: decimal(worth, 10, Spelling::Bare),
            volume: if fungible {
                dollars(worth / u128::from(20 + random.below(400)), 10, random)
            } else {
                String::new()
            },
            locked: if random.per_mille(300) { dollars(worth / 7, 10, random) } else { "0".into() },
            website: if random.per_mille(600) { format!("https://token-{index}.example/") } else { String::new() },
            logo: format!("https://static.example/logo/{contract}.png"),
            contract,
        }
    }

    pub fn is_fungible(&self) -> bool {
        self.precision > 0 || matches!(self.protocol, "ERC20" | "ERC10")
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
            "address_count" => Cell::Integer(self.holders),
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
