//! The endpoints, each declared once.

use super::endpoint::{Bound, Chain, Endpoint, Order, Param, ParamKind, ParamRole, ResultLimit, Shape};

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
            )
            .bounding(&[
                ("total_market_cap", Bound::Descending("totalMarketCap")),
                ("transaction_amount_24h", Bound::Descending("transactionAmount24h")),
            ]),
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
