//! The record types, each field declared once: our name, the wire's names, its kind, its meaning.
//!
//! `{main}` and `{zone}` in a wire name stand for the names of the deployment. Where the API has several spellings of one
//! member, all are listed and any is accepted; the first is the one the local service writes.

use std::sync::LazyLock;

use super::fields::{
    AMOUNT, BLOCK_HASH, FROM, GAS_LIMIT, GAS_PRICE, GAS_USED, HEIGHT, IS_FROM_CONTRACT, IS_INPUT_CONTRACT,
    IS_OUTPUT_CONTRACT, IS_TO_CONTRACT, METHOD_ID, NONCE, STATE, SYMBOL, TO, TOKEN_CONTRACT, TOKEN_ID,
    TRANSACTION_SYMBOL, TRANSACTION_TIME, TRANSACTION_TYPE, TX_FEE, TX_ID, TXFEE, TXID,
};
use super::kinds::Kind::{Amount, ApproxDecimal, Direction, Integer, Time, Uint256, Utf8, Utf8List};
use super::record_type::{Field, RecordType, Roles, field};

/// The record type of that class name.
pub fn record(name: &str) -> Option<&'static RecordType> {
    RECORDS.iter().copied().find(|record| record.name == name)
}

pub static RECORDS: [&RecordType; 9] = [
    &TOKEN,
    &TOKEN_TRANSFER,
    &CROSS_CHAIN_TRANSACTION,
    &BLOCK,
    &ADDRESS_TRANSACTION,
    &LARGE_TRANSACTION,
    &CHAIN_TRANSACTION,
    &TRANSACTION,
    &EVENT_LOG,
];

/// Column that the records of a set have besides those that the API returns.
pub const QUERIED: Field =
    field("queried", &[], Utf8List, "Arguments whose lists returned the record, in a query of several.");

impl RecordType {
    /// The type of the records of a set: with a last column for the arguments that returned the record.
    pub fn with_queried(&self) -> &'static Self {
        static TYPES: LazyLock<Vec<RecordType>> = LazyLock::new(|| {
            let extended = RECORDS.iter().map(|record| {
                let fields: Vec<Field> = record.fields.iter().copied().chain([QUERIED]).collect();
                RecordType { fields: fields.leak(), ..**record }
            });
            extended.collect()
        });
        TYPES.iter().find(|record| record.name == self.name).expect("every record type is declared")
    }
}

/// Records of transactions of the main chain, and of what they did.
const OF_TRANSACTION: Roles = Roles {
    height: Some("height"),
    time: Some("transaction_time"),
    block: Some("block_hash"),
    transaction_in_block: Some("tx_id"),
    transaction: Some("tx_id"),
};

static TOKEN: RecordType = RecordType {
    name: "Token",
    doc: "A token of the main chain.",
    identity: &["token_contract_address"],
    roles: Roles { height: None, time: None, block: None, transaction_in_block: None, transaction: None },
    fields: &[
        field("token", &["token"], Utf8, "Symbol."),
        field("token_full_name", &["tokenFullName"], Utf8, "Full name."),
        field("protocol_type", &["protocolType"], Utf8, "Protocol of the token, such as `ERC20`."),
        field("price", &["price"], ApproxDecimal, "Price in USD."),
        field("total_market_cap", &["totalMarketCap"], ApproxDecimal, "Market capitalization on all chains, in USD."),
        field(
            "transaction_amount_24h",
            &["transactionAmount24h"],
            ApproxDecimal,
            "Volume of the past 24 hours in USD; meaningful for ERC-20 tokens only.",
        ),
        field("tvl", &["tvl"], ApproxDecimal, "Total value locked, in USD."),
        field("total_supply", &["totalSupply"], ApproxDecimal, "Total supply, in whole tokens."),
        field("circulating_supply", &["circulatingSupply"], ApproxDecimal, "Circulating supply on all chains."),
        field("address_count", &["addressCount"], Integer, "Number of addresses that hold the token."),
        field("precision", &["precision"], Integer, "Decimals of the token's smallest unit."),
        field("issue_date", &["issueDate"], Time, "Time of the token's issue."),
        TOKEN_CONTRACT,
        field("website", &["website"], Utf8, "Website; may be empty."),
        field("logo_url", &["logoUrl"], Utf8, "Address of the logo image."),
    ],
    sent: &[
        "token_full_name",
        "token",
        "precision",
        "token_contract_address",
        "protocol_type",
        "address_count",
        "total_supply",
        "circulating_supply",
        "price",
        "website",
        "total_market_cap",
        "issue_date",
        "transaction_amount_24h",
        "tvl",
        "logo_url",
    ],
};

static TOKEN_TRANSFER: RecordType = RecordType {
    name: "TokenTransfer",
    doc: "One transfer of a token from one address to another.",
    identity: &["tx_id", "from_address", "to_address", "amount", "token_contract_address", "token_id"],
    roles: OF_TRANSACTION,
    fields: &[
        TRANSACTION_TIME,
        AMOUNT,
        TRANSACTION_SYMBOL,
        FROM,
        TO,
        TOKEN_CONTRACT,
        TOKEN_ID,
        field("protocol_type", &["protocolType"], Utf8, "Protocol of the token."),
        HEIGHT,
        STATE,
        IS_FROM_CONTRACT,
        IS_TO_CONTRACT,
        METHOD_ID,
        BLOCK_HASH,
        TXID,
    ],
    sent: &[
        "tx_id",
        "block_hash",
        "height",
        "transaction_time",
        "from_address",
        "to_address",
        "is_from_contract",
        "is_to_contract",
        "amount",
        "transaction_symbol",
        "method_id",
        "token_contract_address",
        "protocol_type",
        "state",
        "token_id",
    ],
};

static CROSS_CHAIN_TRANSACTION: RecordType = RecordType {
    name: "CrossChainTransaction",
    doc: "A transaction that moved value between the main chain and the zone chain.",
    // A withdrawal may get its transaction on the main chain later.
    identity: &["id", "zone_tx_hash", "source_address", "target_address", "value", "token_id"],
    roles: Roles {
        height: Some("zone_block_height"),
        time: Some("zone_block_time"),
        block: None,
        transaction_in_block: Some("zone_tx_hash"),
        transaction: Some("main_tx_hash"),
    },
    fields: &[
        field("zone_block_time", &["{zone}BlockTime"], Time, "Block time on the zone chain."),
        field("value", &["value"], Amount, "Amount, in whole tokens."),
        field("token_name", &["tokenName"], Utf8, "Name of the token."),
        field("source_address", &["sourceAddress"], Utf8, "Address the value came from."),
        field("target_address", &["targetAddress"], Utf8, "Address the value went to."),
        field("tx_type", &["txType"], Direction, "`MainToZone` or `ZoneToMain`, whatever the deployment calls them."),
        field("cross_type", &["crossType"], Utf8, "`Deposit`, `Withdraw` or `BatchWithdraw`."),
        field("status", &["status"], Utf8, "`0x1` success, `0x0` failure."),
        field("zone_block_height", &["{zone}BlockHeight"], Integer, "Block height on the zone chain."),
        field("main_block_time", &["{main}BlockTime"], Time, "Block time on the main chain."),
        field("main_block_height", &["{main}BlockHeight"], Integer, "Block height on the main chain."),
        field("from_address", &["from"], Utf8, "Address that signed on the link layer."),
        field("to_address", &["to"], Utf8, "Address the transaction was sent to."),
        TOKEN_CONTRACT,
        field("token_type", &["tokenType"], Utf8, "`ERC20` or `ERC1155`."),
        TOKEN_ID,
        field("value_raw", &["valueRaw"], Uint256, "Amount in the token's smallest unit, up to 2^256-1."),
        field("id", &["id"], Utf8, "Hash of the cross-chain transaction; may be empty."),
        field("main_tx_hash", &["{main}TxHash"], Utf8, "Hash of the transaction on the main chain."),
        field("zone_tx_hash", &["{zone}TxHash"], Utf8, "Hash of the transaction on the zone chain."),
    ],
    sent: &[
        "id",
        "tx_type",
        "cross_type",
        "status",
        "main_tx_hash",
        "main_block_height",
        "main_block_time",
        "zone_tx_hash",
        "zone_block_height",
        "zone_block_time",
        "from_address",
        "to_address",
        "source_address",
        "target_address",
        "value",
        "value_raw",
        "token_contract_address",
        "token_type",
        "token_id",
        "token_name",
    ],
};

static BLOCK: RecordType = RecordType {
    name: "Block",
    doc: "A block of the zone chain.",
    identity: &["hash", "height"],
    roles: Roles {
        height: Some("height"),
        time: Some("block_time"),
        block: Some("hash"),
        transaction_in_block: None,
        transaction: None,
    },
    fields: &[
        HEIGHT,
        field("block_time", &["blockTime"], Time, "Time of the block."),
        field("transaction_count", &["transactionCount"], Integer, "Number of transactions in the block."),
        field("miner", &["miner"], Utf8, "Address of the block's producer."),
        field("hash", &["hash"], Utf8, "Block hash."),
    ],
    sent: &["hash", "height", "miner", "block_time", "transaction_count"],
};

/// Fields of a transaction with one sender and one receiver.
const FIELDS_OF_TRANSACTION: [Field; 18] = [
    TRANSACTION_TIME,
    AMOUNT,
    SYMBOL,
    FROM,
    TO,
    TX_FEE,
    HEIGHT,
    STATE,
    NONCE,
    GAS_USED,
    GAS_LIMIT,
    GAS_PRICE,
    TRANSACTION_TYPE,
    IS_FROM_CONTRACT,
    IS_TO_CONTRACT,
    METHOD_ID,
    BLOCK_HASH,
    TX_ID,
];

static ADDRESS_TRANSACTION: RecordType = RecordType {
    name: "AddressTransaction",
    doc: "A normal transaction that an address sent or received.",
    identity: &["tx_id", "from_address", "to_address", "amount"],
    roles: OF_TRANSACTION,
    fields: &FIELDS_OF_TRANSACTION,
    sent: &[
        "tx_id",
        "block_hash",
        "height",
        "transaction_time",
        "from_address",
        "to_address",
        "is_from_contract",
        "is_to_contract",
        "amount",
        "state",
        "method_id",
        "symbol",
        "nonce",
        "gas_used",
        "gas_limit",
        "gas_price",
        "tx_fee",
        "transaction_type",
    ],
};

/// Members of the lists of transactions of the main chain.
const SENT_BY_LISTS: [&str; 14] = [
    "tx_id",
    "block_hash",
    "height",
    "transaction_time",
    "input",
    "output",
    "is_input_contract",
    "is_output_contract",
    "amount",
    "transaction_symbol",
    "tx_fee",
    "method_id",
    "transaction_type",
    "state",
];

static LARGE_TRANSACTION: RecordType = RecordType {
    name: "LargeTransaction",
    doc: "A transaction of the main chain that moved a large amount.",
    identity: &["tx_id", "input", "output", "amount"],
    roles: OF_TRANSACTION,
    fields: &[
        TRANSACTION_TIME,
        AMOUNT,
        TRANSACTION_SYMBOL,
        field("input", &["input"], Utf8, "Input address; several are separated by commas."),
        field("output", &["output"], Utf8, "Output address; several are separated by commas."),
        TXFEE,
        HEIGHT,
        STATE,
        TRANSACTION_TYPE,
        IS_INPUT_CONTRACT,
        IS_OUTPUT_CONTRACT,
        METHOD_ID,
        BLOCK_HASH,
        TXID,
    ],
    sent: &SENT_BY_LISTS,
};

static CHAIN_TRANSACTION: RecordType = RecordType {
    name: "ChainTransaction",
    doc: "A transaction in the main chain's list.",
    identity: &["tx_id", "input", "output", "amount"],
    roles: OF_TRANSACTION,
    fields: &[
        TRANSACTION_TIME,
        AMOUNT,
        TRANSACTION_SYMBOL,
        field("input", &["input"], Utf8, "Input address as the API returns it; several are separated by commas."),
        field("output", &["output"], Utf8, "Output address as the API returns it; several are separated by commas."),
        TXFEE,
        HEIGHT,
        STATE,
        TRANSACTION_TYPE,
        Field { wire: IS_FROM_CONTRACT.wire, ..IS_INPUT_CONTRACT },
        Field { wire: IS_TO_CONTRACT.wire, ..IS_OUTPUT_CONTRACT },
        METHOD_ID,
        BLOCK_HASH,
        TXID,
    ],
    sent: &SENT_BY_LISTS,
};

static TRANSACTION: RecordType = RecordType {
    name: "Transaction",
    doc: "A transaction of the main chain, looked up by its hash.",
    identity: &["tx_id"],
    roles: OF_TRANSACTION,
    fields: &FIELDS_OF_TRANSACTION,
    sent: &[
        "tx_id",
        "block_hash",
        "height",
        "transaction_time",
        "from_address",
        "to_address",
        "is_from_contract",
        "is_to_contract",
        "amount",
        "symbol",
        "nonce",
        "gas_limit",
        "gas_used",
        "gas_price",
        "tx_fee",
        "state",
        "transaction_type",
        "method_id",
    ],
};

static EVENT_LOG: RecordType = RecordType {
    name: "EventLog",
    doc: "One event that a contract logged during a transaction.",
    identity: &["tx_id", "log_index"],
    roles: OF_TRANSACTION,
    fields: &[
        TRANSACTION_TIME,
        field("address", &["address"], Utf8, "Contract that logged the event."),
        HEIGHT,
        field("log_index", &["logIndex"], Integer, "Position of the log in its block."),
        field("topics", &["topics"], Utf8List, "Indexed parameters, as hex; the first names the event."),
        field("data", &["data"], Utf8, "Parameters that are not indexed, as hex."),
        METHOD_ID,
        BLOCK_HASH,
        TX_ID,
    ],
    sent: &["height", "address", "topics", "data", "block_hash", "method_id", "transaction_time", "log_index", "tx_id"],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_sent_once_and_the_queried_arguments_last() {
        for record in RECORDS {
            let mut fields: Vec<_> = record.fields.iter().map(|field| field.name).collect();
            let mut sent = record.sent.to_vec();
            fields.sort_unstable();
            sent.sort_unstable();
            assert_eq!(sent, fields, "`sent` of {}", record.name);
            let last = record.with_queried().sent().last().map(|(_, field)| field.name);
            assert_eq!(last, Some(QUERIED.name), "{}", record.name);
        }
    }
}
