//! The nine record types, each field declared once: our name, the wire's names, its kind, its meaning.
//!
//! `{main}` and `{zone}` in a wire name stand for the names of the deployment. Where the API has several spellings of one
//! member, all are listed and any is accepted; the first is the one the local service writes.

use std::sync::LazyLock;

use super::kinds::Kind::{self, Amount, ApproxDecimal, Boolean, Direction, Integer, Time, Uint256, Utf8, Utf8List};

/// One kind of record, and so one Arrow schema, one Python class and one table of the local service.
#[derive(Debug)]
pub struct RecordType {
    /// The class name, e.g. `TokenTransfer`.
    pub name: &'static str,
    pub doc: &'static str,
    /// Fields that identify a record among its neighbors and do not change, unlike state and price.
    pub identity: &'static [&'static str],
    /// In the order of columns everywhere: what happened, when and between whom, before heights and hashes.
    pub fields: &'static [Field],
    /// Names of the fields in the order in which the API sends their members.
    pub sent: &'static [&'static str],
}

/// One member of a record.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Our name, in snake case.
    pub name: &'static str,
    /// Every spelling seen on the wire.
    pub wire: &'static [&'static str],
    pub kind: Kind,
    /// True if some services send other texts, which are not hex, under a later spelling: such a text is no value of a
    /// record that has the first spelling.
    pub is_hex: bool,
    /// One line of meaning, for people.
    pub doc: &'static str,
}

const fn field(name: &'static str, wire: &'static [&'static str], kind: Kind, doc: &'static str) -> Field {
    Field { name, wire, kind, is_hex: false, doc }
}

impl RecordType {
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Columns with their fields, in the order in which the API sends them, and then those that it does not send. What is
    /// stored depends on this order: columns may move in another version.
    pub fn sent(&self) -> impl Iterator<Item = (usize, &'static Field)> {
        let sent = self.sent.iter().filter_map(|name| self.position(name));
        sent.chain(self.sent.len()..self.fields.len()).map(|column| (column, &self.fields[column]))
    }

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

    /// Column of the height by which lists of the type are ordered.
    pub fn height(&self) -> Option<usize> {
        self.position("height").or_else(|| self.position("zone_block_height"))
    }
}

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

// Members that several record types share. Their spellings vary between endpoints and deployments alike.
const TX_ID: Field = field("tx_id", &["txId", "txid"], Utf8, "Transaction hash.");
const BLOCK_HASH: Field = field("block_hash", &["blockHash"], Utf8, "Hash of the transaction's block.");
const HEIGHT: Field = field("height", &["height"], Integer, "Block height.");
const TRANSACTION_TIME: Field = field("transaction_time", &["transactionTime"], Time, "Time of the transaction.");
const FROM: Field = field("from_address", &["from"], Utf8, "Sending address; several are separated by commas.");
const TO: Field = field("to_address", &["to"], Utf8, "Receiving address; several are separated by commas.");
const IS_FROM_CONTRACT: Field =
    field("is_from_contract", &["isFromContract", "isInputContract"], Boolean, "True if the sender is a contract.");
const IS_TO_CONTRACT: Field =
    field("is_to_contract", &["isToContract", "isOutputContract"], Boolean, "True if the receiver is a contract.");
const IS_INPUT_CONTRACT: Field = field(
    "is_input_contract",
    &["isInputContract", "isFromContract"],
    Boolean,
    "True if the input address is a contract.",
);
const IS_OUTPUT_CONTRACT: Field = field(
    "is_output_contract",
    &["isOutputContract", "isToContract"],
    Boolean,
    "True if the output address is a contract.",
);
const AMOUNT: Field = field("amount", &["amount"], Amount, "Amount moved, in whole coins or tokens.");
const SYMBOL: Field = field("symbol", &["symbol", "transactionSymbol"], Utf8, "Symbol of the coin moved.");
const TRANSACTION_SYMBOL: Field =
    field("transaction_symbol", &["transactionSymbol", "symbol"], Utf8, "Symbol of the coin or token moved.");
const METHOD_ID: Field = Field {
    is_hex: true,
    ..field("method_id", &["methodId", "method"], Utf8, "Identifier of the contract method called.")
};
const STATE: Field = field("state", &["state"], Utf8, "`success`, `fail` or `pending`.");
const NONCE: Field = field("nonce", &["nonce"], Integer, "Number of earlier transactions of the sender.");
const GAS_USED: Field = field("gas_used", &["gasUsed"], Integer, "Gas used.");
const GAS_LIMIT: Field = field("gas_limit", &["gasLimit"], Integer, "Gas allowed.");
const GAS_PRICE: Field = field("gas_price", &["gasPrice"], Amount, "Price of one unit of gas.");
const TX_FEE: Field = field("tx_fee", &["txFee", "txfee"], Amount, "Fee paid for the transaction.");
const TRANSACTION_TYPE: Field =
    field("transaction_type", &["transactionType"], Integer, "Kind of transaction: 0 legacy, 1 EIP-2930, 2 EIP-1559.");
const TOKEN_CONTRACT: Field =
    field("token_contract_address", &["tokenContractAddress"], Utf8, "Contract address of the token.");
const TOKEN_ID: Field = field(
    "token_id",
    &["tokenId"],
    Utf8,
    "Token ID of an NFT, a string since it may exceed 64 bits; empty for other tokens.",
);

/// `txid` and `txfee` are the spellings of the transaction lists of the main chain.
const TXID: Field = Field { wire: &["txid", "txId"], ..TX_ID };
const TXFEE: Field = Field { wire: &["txfee", "txFee"], ..TX_FEE };

static TOKEN: RecordType = RecordType {
    name: "Token",
    doc: "A token of the main chain.",
    identity: &["token_contract_address"],
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
    fields: &[
        TRANSACTION_TIME,
        FROM,
        TO,
        AMOUNT,
        TRANSACTION_SYMBOL,
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
    fields: &[
        field("zone_block_time", &["{zone}BlockTime"], Time, "Block time on the zone chain."),
        field("source_address", &["sourceAddress"], Utf8, "Address the value came from."),
        field("target_address", &["targetAddress"], Utf8, "Address the value went to."),
        field("value", &["value"], Amount, "Amount, in whole tokens."),
        field("token_name", &["tokenName"], Utf8, "Name of the token."),
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
    fields: &[
        HEIGHT,
        field("block_time", &["blockTime"], Time, "Time of the block."),
        field("transaction_count", &["transactionCount"], Integer, "Number of transactions in the block."),
        field("miner", &["miner"], Utf8, "Address of the block's producer."),
        field("hash", &["hash"], Utf8, "Block hash."),
    ],
    sent: &["hash", "height", "miner", "block_time", "transaction_count"],
};

static ADDRESS_TRANSACTION: RecordType = RecordType {
    name: "AddressTransaction",
    doc: "A normal transaction that an address sent or received.",
    identity: &["tx_id", "from_address", "to_address", "amount"],
    fields: &[
        TRANSACTION_TIME,
        FROM,
        TO,
        AMOUNT,
        SYMBOL,
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

static LARGE_TRANSACTION: RecordType = RecordType {
    name: "LargeTransaction",
    doc: "A transaction of the main chain that moved a large amount.",
    identity: &["tx_id", "input", "output", "amount"],
    fields: &[
        TRANSACTION_TIME,
        field("input", &["input"], Utf8, "Input address; several are separated by commas."),
        field("output", &["output"], Utf8, "Output address; several are separated by commas."),
        AMOUNT,
        TRANSACTION_SYMBOL,
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
    sent: &[
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
    ],
};

static CHAIN_TRANSACTION: RecordType = RecordType {
    name: "ChainTransaction",
    doc: "A transaction in the main chain's list.",
    identity: &["tx_id", "input", "output", "amount"],
    fields: &[
        TRANSACTION_TIME,
        field("input", &["input"], Utf8, "Input address as the API returns it; several are separated by commas."),
        field("output", &["output"], Utf8, "Output address as the API returns it; several are separated by commas."),
        AMOUNT,
        TRANSACTION_SYMBOL,
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
    sent: &[
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
    ],
};

static TRANSACTION: RecordType = RecordType {
    name: "Transaction",
    doc: "A transaction of the main chain, looked up by its hash.",
    identity: &["tx_id"],
    fields: &[
        TRANSACTION_TIME,
        FROM,
        TO,
        AMOUNT,
        SYMBOL,
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
            let mut columns: Vec<_> = record.sent().map(|(column, _)| column).collect();
            assert_eq!(columns.len(), record.sent.len(), "{}", record.name);
            columns.sort_unstable();
            assert_eq!(columns, (0..record.fields.len()).collect::<Vec<_>>(), "{}", record.name);
            let last = record.with_queried().sent().last().map(|(_, field)| field.name);
            assert_eq!(last, Some(QUERIED.name), "{}", record.name);
        }
    }
}
