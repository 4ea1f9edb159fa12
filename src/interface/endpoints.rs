//! The nine endpoints, each declared once: path, parameters with their types and limits, shape of the payload, reach.

use super::records::{RecordType, record};

/// One operation of the service, and so one query method, one subcommand and one route of the local service.
#[derive(Debug)]
pub struct Endpoint {
    /// The method name, e.g. `token_transfers`.
    pub name: &'static str,
    pub doc: &'static str,
    /// Path below the base URL; `{main}` and `{zone}` stand for the deployment's words.
    pub path: &'static str,
    pub chain: Chain,
    record: &'static str,
    /// All but `chainShortName`, `page` and `limit`, which every call or every paged call has.
    pub params: &'static [Param],
    pub shape: Shape,
    pub reach: Reach,
}

/// Which of the two chains' short names a call carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    Main,
    Zone,
}

#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// `data` holds one page object, and that holds the records under `list`.
    Paged {
        list: &'static str,
        page_size_max: u32,
        /// The member that counts all records, where there is one.
        total: Option<&'static str>,
        /// Whether the page object names the chain.
        names_chain: bool,
    },
    /// `data` holds the records.
    Direct,
}

/// How far a list can be read whatever is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Unlimited,
    /// Lists of the main chain end at about 10,000 records, whatever the page size.
    Records(u64),
    /// Only the last year, and the cap on top of it.
    LastYear(u64),
    /// A look-up answers with about this many records at most.
    Answer(u64),
}

#[derive(Debug)]
pub struct Param {
    /// Our name.
    pub name: &'static str,
    pub role: Role,
    pub kind: ParamKind,
    pub required: bool,
    pub doc: &'static str,
}

/// What a parameter becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is sent under this wire name.
    Sent(&'static str),
    /// It is sent, and is the lower end of a range of which the named parameter of ours is the upper end.
    From(&'static str, &'static str),
    /// The service has no such filter: with the named partner it spans a range of the filter sent under the wire name,
    /// which is then asked value by value.
    Spans(&'static str, &'static str),
}

impl Param {
    /// The wire name, unless the service has no such filter.
    pub fn wire(&self) -> Option<&'static str> {
        match self.role {
            Role::Sent(wire) | Role::From(wire, _) => Some(wire),
            Role::Spans(..) => None,
        }
    }

    /// Whether a list has fewer records with it: an order leaves none out, and a kind of token has a default.
    pub fn narrows(&self) -> bool {
        !self.required && !matches!(self.name, "order_by" | "protocol_type")
    }

    /// Whether it is the lower or the upper end of a range, if it is either.
    pub fn is_low_end(&self) -> Option<bool> {
        let ends = [("start_", true), ("min_", true), ("end_", false), ("max_", false)];
        ends.iter().find(|(prefix, _)| self.name.starts_with(prefix)).map(|(_, low)| *low)
    }
}

/// How a parameter's value is checked before it is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// Any text but the empty one.
    Text,
    /// A whole number from 0 to 2^63-1.
    Height,
    /// An instant, sent as Unix milliseconds. The service excludes both ends of a range and refuses one over a year.
    Time,
    /// An exact decimal number of at least `min`.
    Amount { min: u32 },
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Hashes, at most `per_request` of them in a request.
    Hashes { per_request: usize },
}

const MAIN_CAP: u64 = 10_000;

const fn optional(name: &'static str, wire: &'static str, kind: ParamKind, doc: &'static str) -> Param {
    Param { name, role: Role::Sent(wire), kind, required: false, doc }
}

const fn required(name: &'static str, wire: &'static str, kind: ParamKind, doc: &'static str) -> Param {
    Param { name, role: Role::Sent(wire), kind, required: true, doc }
}

const fn from(name: &'static str, wire: &'static str, to: &'static str, kind: ParamKind, doc: &'static str) -> Param {
    Param { name, role: Role::From(wire, to), kind, required: false, doc }
}

const START_HEIGHT: Param =
    from("start_height", "startBlockHeight", "end_height", ParamKind::Height, "Lowest block height, inclusive.");
const END_HEIGHT: Param =
    optional("end_height", "endBlockHeight", ParamKind::Height, "Highest block height, inclusive.");
const HEIGHT: Param = optional("height", "height", ParamKind::Height, "Only this block height.");
const TOKEN_CONTRACT: Param =
    optional("token_contract_address", "tokenContractAddress", ParamKind::Text, "Only this token contract.");

const fn main_list(list: &'static str, total: Option<&'static str>) -> Shape {
    Shape::Paged { list, page_size_max: 50, total, names_chain: true }
}

const fn zone_list() -> Shape {
    Shape::Paged { list: "data", page_size_max: 100, total: Some("total"), names_chain: false }
}

impl Endpoint {
    pub fn record(&self) -> &'static RecordType {
        record(self.record).expect("every endpoint names a declared record type")
    }

    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// Whether an answer says how many records the whole list has.
    pub fn counts(&self) -> bool {
        matches!(self.shape, Shape::Paged { total: Some(_), .. })
    }

    pub fn page_size_max(&self) -> Option<u32> {
        match self.shape {
            Shape::Paged { page_size_max, .. } => Some(page_size_max),
            Shape::Direct => None,
        }
    }
}

/// The endpoint of that method name.
pub fn endpoint(name: &str) -> Option<&'static Endpoint> {
    ENDPOINTS.iter().find(|endpoint| endpoint.name == name)
}

pub static ENDPOINTS: [Endpoint; 9] = [
    Endpoint {
        name: "tokens",
        doc: "Tokens of the main chain, by market capitalisation unless ordered otherwise.",
        path: "/api/v5/{main}/token/token-list",
        chain: Chain::Main,
        record: "Token",
        params: &[
            optional(
                "protocol_type",
                "protocolType",
                ParamKind::OneOf(&["token_20", "token_721", "token_1155", "token_10"]),
                "Kind of token; the service's default is `token_20`.",
            ),
            TOKEN_CONTRACT,
            from("start_time", "startTime", "end_time", ParamKind::Time, "Issued at this time or later."),
            optional("end_time", "endTime", ParamKind::Time, "Issued at this time or earlier."),
            optional(
                "order_by",
                "orderBy",
                ParamKind::OneOf(&["totalMarketCap", "transactionAmount24h"]),
                "Descending order; for `token_20` only.",
            ),
        ],
        shape: main_list("tokenList", None),
        reach: Reach::Records(MAIN_CAP),
    },
    Endpoint {
        name: "token_transfers",
        doc: "Transfers of one token.",
        path: "/api/v5/{main}/token/transaction-list",
        chain: Chain::Main,
        record: "TokenTransfer",
        params: &[
            required("token_contract_address", "tokenContractAddress", ParamKind::Text, "The token's contract."),
            from("min_amount", "minAmount", "max_amount", ParamKind::Amount { min: 0 }, "Smallest amount."),
            optional("max_amount", "maxAmount", ParamKind::Amount { min: 0 }, "Largest amount."),
        ],
        shape: main_list("transactionList", Some("totalTransfer")),
        reach: Reach::Records(MAIN_CAP),
    },
    Endpoint {
        name: "cross_chain_transactions",
        doc: "Transactions that moved value between the main chain and the zone chain.",
        path: "/api/v5/{main}/{zone}/cross/transaction-list",
        chain: Chain::Zone,
        record: "CrossChainTransaction",
        params: &[
            optional("tx_id", "txid", ParamKind::Text, "Only this transaction hash."),
            HEIGHT,
            START_HEIGHT,
            END_HEIGHT,
            optional("address", "address", ParamKind::Text, "Only transactions that involve this address."),
            optional("from_address", "from", ParamKind::Text, "Only from this sender."),
            optional("to_address", "to", ParamKind::Text, "Only to this recipient."),
            TOKEN_CONTRACT,
        ],
        shape: zone_list(),
        reach: Reach::Unlimited,
    },
    Endpoint {
        name: "blocks",
        doc: "Blocks of the zone chain.",
        path: "/api/v5/{main}/{zone}/block/block-list",
        chain: Chain::Zone,
        record: "Block",
        params: &[HEIGHT],
        shape: zone_list(),
        reach: Reach::Unlimited,
    },
    Endpoint {
        name: "address_transactions",
        doc: "Ordinary transactions of one address, of the last year only.",
        path: "/api/v5/{main}/address/normal-transaction-list",
        chain: Chain::Main,
        record: "AddressTransaction",
        params: &[
            required("address", "address", ParamKind::Text, "The address."),
            START_HEIGHT,
            END_HEIGHT,
            optional(
                "direction",
                "isFromOrTo",
                ParamKind::OneOf(&["from", "to"]),
                "`from`: only what the address sent; `to`: only what it received.",
            ),
        ],
        shape: Shape::Paged { list: "transactionList", page_size_max: 50, total: None, names_chain: false },
        reach: Reach::LastYear(MAIN_CAP),
    },
    Endpoint {
        name: "large_transactions",
        doc: "Transactions of the main chain above an amount.",
        path: "/api/v5/{main}/transaction/large-transaction-list",
        chain: Chain::Main,
        record: "LargeTransaction",
        params: &[
            optional(
                "min_amount",
                "type",
                ParamKind::Amount { min: 100 },
                "Only amounts above this value; 100 is the least and the service's default.",
            ),
            HEIGHT,
        ],
        shape: main_list("transactionList", None),
        reach: Reach::Records(MAIN_CAP),
    },
    Endpoint {
        name: "transactions",
        doc: "The main chain's transaction list; a range of heights is asked height by height.",
        path: "/api/v5/{main}/transaction/transaction-list",
        chain: Chain::Main,
        record: "ChainTransaction",
        params: &[
            optional("block_hash", "blockHash", ParamKind::Text, "Only this block, by hash."),
            HEIGHT,
            Param {
                name: "start_height",
                role: Role::Spans("height", "end_height"),
                kind: ParamKind::Height,
                required: false,
                doc: "Lowest block height, inclusive; goes with `end_height`.",
            },
            Param {
                name: "end_height",
                role: Role::Spans("height", "start_height"),
                kind: ParamKind::Height,
                required: false,
                doc: "Highest block height, inclusive; goes with `start_height`.",
            },
        ],
        shape: main_list("transactionList", None),
        reach: Reach::Records(MAIN_CAP),
    },
    Endpoint {
        name: "transactions_by_hash",
        doc: "Transactions of the main chain by their hashes, in the order asked.",
        path: "/api/v5/{main}/transaction/transaction-multi",
        chain: Chain::Main,
        record: "Transaction",
        params: &[required(
            "tx_ids",
            "txId",
            ParamKind::Hashes { per_request: 20 },
            "One hash or many; more than 20 are asked 20 at a time.",
        )],
        shape: Shape::Direct,
        reach: Reach::Unlimited,
    },
    Endpoint {
        name: "logs",
        doc: "Event logs of transactions, in the order asked.",
        path: "/api/v5/{main}/log/by-transaction",
        chain: Chain::Main,
        record: "EventLog",
        params: &[required(
            "tx_ids",
            "txId",
            ParamKind::Hashes { per_request: 1 },
            "One hash or many; each is asked by itself.",
        )],
        shape: Shape::Direct,
        reach: Reach::Answer(1_000),
    },
];
