//! Fields that several record types share. Their spellings vary between endpoints and deployments alike.

use super::kinds::Kind::{Amount, Boolean, Integer, Time, Utf8};
use super::record_type::{Field, field};

pub(super) const TX_ID: Field = field("tx_id", &["txId", "txid"], Utf8, "Transaction hash.");
pub(super) const BLOCK_HASH: Field = field("block_hash", &["blockHash"], Utf8, "Hash of the transaction's block.");
pub(super) const HEIGHT: Field = field("height", &["height"], Integer, "Block height.");
pub(super) const TRANSACTION_TIME: Field =
    field("transaction_time", &["transactionTime"], Time, "Time of the transaction.");
pub(super) const FROM: Field =
    field("from_address", &["from"], Utf8, "Sending address; several are separated by commas.");
pub(super) const TO: Field = field("to_address", &["to"], Utf8, "Receiving address; several are separated by commas.");
pub(super) const IS_FROM_CONTRACT: Field =
    field("is_from_contract", &["isFromContract", "isInputContract"], Boolean, "True if the sender is a contract.");
pub(super) const IS_TO_CONTRACT: Field =
    field("is_to_contract", &["isToContract", "isOutputContract"], Boolean, "True if the receiver is a contract.");
pub(super) const IS_INPUT_CONTRACT: Field = field(
    "is_input_contract",
    &["isInputContract", "isFromContract"],
    Boolean,
    "True if the input address is a contract.",
);
pub(super) const IS_OUTPUT_CONTRACT: Field = field(
    "is_output_contract",
    &["isOutputContract", "isToContract"],
    Boolean,
    "True if the output address is a contract.",
);
pub(super) const AMOUNT: Field = field("amount", &["amount"], Amount, "Amount moved, in whole coins or tokens.");
pub(super) const SYMBOL: Field = field("symbol", &["symbol", "transactionSymbol"], Utf8, "Symbol of the coin moved.");
pub(super) const TRANSACTION_SYMBOL: Field =
    field("transaction_symbol", &["transactionSymbol", "symbol"], Utf8, "Symbol of the coin or token moved.");
pub(super) const METHOD_ID: Field = Field {
    is_hex: true,
    ..field("method_id", &["methodId", "method"], Utf8, "Identifier of the contract method called.")
};
pub(super) const STATE: Field = field("state", &["state"], Utf8, "`success`, `fail` or `pending`.");
pub(super) const NONCE: Field = field("nonce", &["nonce"], Integer, "Number of earlier transactions of the sender.");
pub(super) const GAS_USED: Field = field("gas_used", &["gasUsed"], Integer, "Gas used.");
pub(super) const GAS_LIMIT: Field = field("gas_limit", &["gasLimit"], Integer, "Gas allowed.");
pub(super) const GAS_PRICE: Field = field("gas_price", &["gasPrice"], Amount, "Price of one unit of gas.");
pub(super) const TX_FEE: Field = field("tx_fee", &["txFee", "txfee"], Amount, "Fee paid for the transaction.");
pub(super) const TRANSACTION_TYPE: Field =
    field("transaction_type", &["transactionType"], Integer, "Kind of transaction: 0 legacy, 1 EIP-2930, 2 EIP-1559.");
pub(super) const TOKEN_CONTRACT: Field =
    field("token_contract_address", &["tokenContractAddress"], Utf8, "Contract address of the token.");
pub(super) const TOKEN_ID: Field = field(
    "token_id",
    &["tokenId"],
    Utf8,
    "Token ID of an NFT, a string since it may exceed 64 bits; empty for other tokens.",
);

/// `txid` and `txfee` are the spellings of the transaction lists of the main chain.
pub(super) const TXID: Field = Field { wire: &["txid", "txId"], ..TX_ID };
pub(super) const TXFEE: Field = Field { wire: &["txfee", "txFee"], ..TX_FEE };
