//! The nine endpoints, each declared once: path, parameters with their types and limits, shape of the payload, result limit.

use super::records::{RecordType, record};

/// One operation of the service, and so one query method, one subcommand and one route of the local service.
#[derive(Debug)]
pub struct Endpoint {
    /// The method name, e.g. `token_transfers`.
    pub name: &'static str,
    pub doc: &'static str,
    /// Path below the base URL; `{main}` and `{zone}` stand for the deployment's chain names.
    pub path: &'static str,
    pub chain: Chain,
    record: &'static str,
    /// All but `chainShortName`, `page` and `limit`, which every call or every paged call has.
    pub params: &'static [Param],
    pub shape: Shape,
    pub limit: ResultLimit,
    pub order: Order,
    /// True if each record key occurs once in a list. One transaction may have several equal transfers or outputs.
    pub has_unique_keys: bool,
}

/// Order of the records of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// New records are added at the head, and heights do not rise from one page to the next.
    NewestFirst,
    /// As `NewestFirst`, with one record for each height.
    Consecutive,
    /// By a value that changes, so that records change their positions.
    Ranked,
    /// Look-ups: the order of the arguments.
    AsRequested,
}

/// The chain whose short name a call carries.
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
        /// True if the page object names the chain.
        names_chain: bool,
    },
    /// `data` holds the records.
    Direct,
}

/// Most records that the API returns of one list or lookup. The numbers are settings of the deployment:
/// [`Deployment::max_results`](super::Deployment::max_results).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultLimit {
    Unlimited,
    /// The list ends at the result window, whatever the page size.
    Window,
    /// The list has the last year only, and ends at the result window as well.
    LastYear,
    /// A response to a lookup of logs ends at the log window.
    Logs,
}

#[derive(Debug)]
pub struct Param {
    /// Our name.
    pub name: &'static str,
    pub role: ParamRole,
    pub kind: ParamKind,
    pub required: bool,
    pub doc: &'static str,
    /// Columns whose values the parameter bounds: a filter on such a column can be sent as the parameter.
    pub bounds: &'static [(&'static str, Bound)],
    /// True if a range certainly includes the value: the API's document says so, or the client sees to it.
    pub is_inclusive: bool,
}

/// Values of a column that the records of a list have where a parameter is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The value of the parameter. The API ignores the case of addresses and hashes, which records have in lower case.
    Equal,
    /// The value of the parameter, in one or several of the columns with this bound: the API does not say in which.
    EqualInSome,
    /// The value of the parameter, in one or several of the columns with this bound. The API may compare other values as
    /// well, so that a filter on these columns cannot be sent as the parameter.
    InvolvedInSome,
    /// A name with the number of the parameter's value: `ERC20` and `token_20`.
    SameNumber,
    AtLeast,
    AtMost,
    /// Values above the parameter's, which itself is excluded.
    Above,
    /// The value of another parameter, where this one has a given value.
    Side {
        value: &'static str,
        other: &'static str,
    },
}

/// The use of a parameter in requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamRole {
    /// Sent under this wire name.
    Plain(&'static str),
    /// Sent under the first name, and the lower end of a range whose upper end is the parameter of the second name.
    RangeStart(&'static str, &'static str),
    /// Not sent, since the API has no such filter: with the parameter of the second name it spans a range of values of the
    /// filter with the first name, which are requested one by one.
    ExpandedRange(&'static str, &'static str),
    /// The API has no such filter: the time, with its named partner, becomes the named bound by height when a run starts.
    TimeOfHeight(&'static str, &'static str),
}

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    Lower,
    Upper,
}

impl Param {
    const fn bounding(self, bounds: &'static [(&'static str, Bound)]) -> Self {
        Self { bounds, ..self }
    }

    const fn inclusive(self) -> Self {
        Self { is_inclusive: true, ..self }
    }

    /// The wire name, or `None` if the API has no such filter.
    pub fn wire(&self) -> Option<&'static str> {
        match self.role {
            ParamRole::Plain(wire) | ParamRole::RangeStart(wire, _) => Some(wire),
            ParamRole::ExpandedRange(..) | ParamRole::TimeOfHeight(..) => None,
        }
    }

    /// Parameter that must be passed together with this one.
    pub fn requires(&self) -> Option<&'static str> {
        match self.role {
            ParamRole::ExpandedRange(_, partner) if self.range_end() == Some(RangeEnd::Upper) => Some(partner),
            _ => None,
        }
    }

    /// True if a list has fewer records with it: an order leaves none out, and a kind of token has a default.
    pub fn is_filter(&self) -> bool {
        !self.required && !matches!(self.name, "order_by" | "protocol_type")
    }

    /// True if each value selects a list of its own, so that several values make a set of lists.
    pub fn selects_list(&self) -> bool {
        matches!(self.kind, ParamKind::Text | ParamKind::Height) && self.range_end().is_none()
    }

    /// The end of a range that it bounds, if any.
    pub fn range_end(&self) -> Option<RangeEnd> {
        let bounds = [
            ("start_", RangeEnd::Lower),
            ("min_", RangeEnd::Lower),
            ("end_", RangeEnd::Upper),
            ("max_", RangeEnd::Upper),
        ];
        bounds.iter().find(|(prefix, _)| self.name.starts_with(prefix)).map(|(_, bound)| *bound)
    }
}

/// The kind of a parameter's value, which is checked before it is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// An address or a hash.
    Text,
    /// An integer from 0 to 2^63-1.
    Height,
    /// An instant. Where it is sent, in Unix milliseconds, the API excludes both ends of a range and rejects one over a
    /// year.
    Time,
    /// An exact decimal number of at least `min`.
    Amount { min: u32 },
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Hashes, at most `per_request` of them in a request.
    Hashes { per_request: usize },
}

const fn optional(name: &'static str, wire: &'static str, kind: ParamKind, doc: &'static str) -> Param {
    Param { name, role: ParamRole::Plain(wire), kind, required: false, doc, bounds: &[], is_inclusive: false }
}

const fn required(name: &'static str, wire: &'static str, kind: ParamKind, doc: &'static str) -> Param {
    Param { required: true, ..optional(name, wire, kind, doc) }
}

const fn from(name: &'static str, wire: &'static str, to: &'static str, kind: ParamKind, doc: &'static str) -> Param {
    Param { role: ParamRole::RangeStart(wire, to), ..optional(name, wire, kind, doc) }
}

const START_TIME: Param = Param {
    name: "start_time",
    role: ParamRole::TimeOfHeight("start_height", "end_time"),
    kind: ParamKind::Time,
    required: false,
    doc: "Blocks of this time or later.",
    bounds: &[("transaction_time", Bound::AtLeast), ("zone_block_time", Bound::AtLeast)],
    is_inclusive: true,
};
const END_TIME: Param = Param {
    name: "end_time",
    role: ParamRole::TimeOfHeight("end_height", "start_time"),
    kind: ParamKind::Time,
    required: false,
    doc: "Blocks of this time or earlier.",
    bounds: &[("transaction_time", Bound::AtMost), ("zone_block_time", Bound::AtMost)],
    is_inclusive: true,
};
const START_HEIGHT: Param =
    from("start_height", "startBlockHeight", "end_height", ParamKind::Height, "Lowest block height, inclusive.")
        .bounding(&[("height", Bound::AtLeast), ("zone_block_height", Bound::AtLeast)]);
const END_HEIGHT: Param =
    optional("end_height", "endBlockHeight", ParamKind::Height, "Highest block height, inclusive.")
        .bounding(&[("height", Bound::AtMost), ("zone_block_height", Bound::AtMost)]);
const HEIGHT: Param = optional("height", "height", ParamKind::Height, "Only this block height.")
    .bounding(&[("height", Bound::Equal), ("zone_block_height", Bound::Equal)]);
const TOKEN_CONTRACT: Param =
    optional("token_contract_address", "tokenContractAddress", ParamKind::Text, "Only this token contract.")
        .bounding(&[("token_contract_address", Bound::Equal)]);

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

    /// True if a response counts the records of the whole list.
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
        doc: "Tokens of the main chain, by market capitalization unless ordered otherwise.",
        path: "/api/v5/{main}/token/token-list",
        chain: Chain::Main,
        record: "Token",
        params: &[
            optional(
                "protocol_type",
                "protocolType",
                ParamKind::OneOf(&["token_20", "token_721", "token_1155", "token_10"]),
                "Kind of token. Default: `token_20`.",
            )
            .bounding(&[("protocol_type", Bound::SameNumber)]),
            TOKEN_CONTRACT,
            from("start_time", "startTime", "end_time", ParamKind::Time, "Issued at this time or later.")
                .bounding(&[("issue_date", Bound::AtLeast)])
                .inclusive(),
            optional("end_time", "endTime", ParamKind::Time, "Issued at this time or earlier.")
                .bounding(&[("issue_date", Bound::AtMost)])
                .inclusive(),
            optional(
                "order_by",
                "orderBy",
                ParamKind::OneOf(&["totalMarketCap", "transactionAmount24h"]),
                "Descending order; for `token_20` only.",
            ),
        ],
        shape: main_list("tokenList", None),
        limit: ResultLimit::Window,
        order: Order::Ranked,
        has_unique_keys: true,
    },
    Endpoint {
        name: "token_transfers",
        doc: "Transfers of one token.",
        path: "/api/v5/{main}/token/transaction-list",
        chain: Chain::Main,
        record: "TokenTransfer",
        params: &[
            required("token_contract_address", "tokenContractAddress", ParamKind::Text, "The token's contract.")
                .bounding(&[("token_contract_address", Bound::InvolvedInSome)]),
            from("min_amount", "minAmount", "max_amount", ParamKind::Amount { min: 0 }, "Smallest amount.")
                .bounding(&[("amount", Bound::AtLeast)]),
            optional("max_amount", "maxAmount", ParamKind::Amount { min: 0 }, "Largest amount.")
                .bounding(&[("amount", Bound::AtMost)]),
        ],
        shape: main_list("transactionList", Some("totalTransfer")),
        limit: ResultLimit::Window,
        order: Order::NewestFirst,
        has_unique_keys: false,
    },
    Endpoint {
        name: "cross_chain_transactions",
        doc: "Deposits and withdrawals between the two chains.",
        path: "/api/v5/{main}/{zone}/cross/transaction-list",
        chain: Chain::Zone,
        record: "CrossChainTransaction",
        params: &[
            optional("tx_id", "txid", ParamKind::Text, "Only this transaction hash.").bounding(&[
                ("id", Bound::EqualInSome),
                ("main_tx_hash", Bound::EqualInSome),
                ("zone_tx_hash", Bound::EqualInSome),
            ]),
            HEIGHT,
            START_HEIGHT.inclusive(),
            END_HEIGHT.inclusive(),
            START_TIME,
            END_TIME,
            optional("address", "address", ParamKind::Text, "Only transactions that involve this address.").bounding(
                &[
                    ("from_address", Bound::InvolvedInSome),
                    ("to_address", Bound::InvolvedInSome),
                    ("source_address", Bound::InvolvedInSome),
                    ("target_address", Bound::InvolvedInSome),
                ],
            ),
            optional("from_address", "from", ParamKind::Text, "Only from this sender.")
                .bounding(&[("from_address", Bound::Equal)]),
            optional("to_address", "to", ParamKind::Text, "Only to this recipient.")
                .bounding(&[("to_address", Bound::Equal)]),
            TOKEN_CONTRACT,
        ],
        shape: zone_list(),
        limit: ResultLimit::Unlimited,
        order: Order::NewestFirst,
        has_unique_keys: false,
    },
    Endpoint {
        name: "blocks",
        doc: "Blocks of the zone chain.",
        path: "/api/v5/{main}/{zone}/block/block-list",
        chain: Chain::Zone,
        record: "Block",
        params: &[HEIGHT],
        shape: zone_list(),
        limit: ResultLimit::Unlimited,
        order: Order::Consecutive,
        has_unique_keys: true,
    },
    Endpoint {
        name: "address_transactions",
        doc: "Normal transactions of one address, of the last 12 months.",
        path: "/api/v5/{main}/address/normal-transaction-list",
        chain: Chain::Main,
        record: "AddressTransaction",
        params: &[
            required("address", "address", ParamKind::Text, "Address of the sender or the receiver.")
                .bounding(&[("from_address", Bound::InvolvedInSome), ("to_address", Bound::InvolvedInSome)]),
            START_HEIGHT,
            END_HEIGHT,
            START_TIME,
            END_TIME,
            optional(
                "direction",
                "isFromOrTo",
                ParamKind::OneOf(&["from", "to"]),
                "`from`: only what the address sent; `to`: only what it received.",
            )
            .bounding(&[
                ("from_address", Bound::Side { value: "from", other: "address" }),
                ("to_address", Bound::Side { value: "to", other: "address" }),
            ]),
        ],
        shape: Shape::Paged { list: "transactionList", page_size_max: 50, total: None, names_chain: false },
        limit: ResultLimit::LastYear,
        order: Order::NewestFirst,
        has_unique_keys: false,
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
                "Only amounts above this value, at least 100. Default: 100.",
            )
            .bounding(&[("amount", Bound::Above)]),
            HEIGHT,
        ],
        shape: main_list("transactionList", None),
        limit: ResultLimit::Window,
        order: Order::NewestFirst,
        has_unique_keys: false,
    },
    Endpoint {
        name: "transactions",
        doc: "Transactions of the main chain; a range of heights is requested height by height.",
        path: "/api/v5/{main}/transaction/transaction-list",
        chain: Chain::Main,
        record: "ChainTransaction",
        params: &[
            optional("block_hash", "blockHash", ParamKind::Text, "Only this block, by hash.")
                .bounding(&[("block_hash", Bound::Equal)]),
            HEIGHT,
            Param {
                name: "start_height",
                role: ParamRole::ExpandedRange("height", "end_height"),
                kind: ParamKind::Height,
                required: false,
                doc: "Lowest block height, inclusive.",
                bounds: &[("height", Bound::AtLeast)],
                is_inclusive: true,
            },
            Param {
                name: "end_height",
                role: ParamRole::ExpandedRange("height", "start_height"),
                kind: ParamKind::Height,
                required: false,
                doc: "Highest block height, inclusive. Default: the newest block.",
                bounds: &[("height", Bound::AtMost)],
                is_inclusive: true,
            },
            START_TIME,
            END_TIME,
        ],
        shape: main_list("transactionList", None),
        limit: ResultLimit::Window,
        order: Order::NewestFirst,
        has_unique_keys: false,
    },
    Endpoint {
        name: "transactions_by_hash",
        doc: "Transactions of the main chain by their hashes, in the order given.",
        path: "/api/v5/{main}/transaction/transaction-multi",
        chain: Chain::Main,
        record: "Transaction",
        params: &[required(
            "tx_ids",
            "txId",
            ParamKind::Hashes { per_request: 20 },
            "One hash or several, requested 20 at a time.",
        )
        .bounding(&[("tx_id", Bound::Equal)])],
        shape: Shape::Direct,
        limit: ResultLimit::Unlimited,
        order: Order::AsRequested,
        has_unique_keys: true,
    },
    Endpoint {
        name: "logs",
        doc: "Event logs of transactions, in the order given.",
        path: "/api/v5/{main}/log/by-transaction",
        chain: Chain::Main,
        record: "EventLog",
        params: &[required(
            "tx_ids",
            "txId",
            ParamKind::Hashes { per_request: 1 },
            "One hash or several, requested one at a time.",
        )
        .bounding(&[("tx_id", Bound::Equal)])],
        shape: Shape::Direct,
        limit: ResultLimit::Logs,
        order: Order::AsRequested,
        has_unique_keys: true,
    },
];
