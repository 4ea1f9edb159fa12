//! One chain in all endpoints: the fields that two records share agree.

use std::collections::{BTreeMap, BTreeSet};

use chainframe::interface::{Number, record};
use serde_json::Value;

use super::http_client::{Caller, integer, shared, start, text};

const ZERO: &str = "0x0000000000000000000000000000000000000000";

/// Compares what a record says with what its transaction says, over all members whose spellings meet.
fn agree(record_name: &str, found: &Value, transaction: &Value, aliases: &[(&str, &str)], but: &[&str]) -> usize {
    let (own, base) = (record(record_name).unwrap(), record("Transaction").unwrap());
    let mut compared = 0;
    for field in own.fields.iter().filter(|field| !but.contains(&field.name)) {
        let alias = aliases.iter().find(|(name, _)| *name == field.name).map(|(_, other)| *other);
        let other = base.fields.iter().find(|other| {
            alias.map_or_else(|| other.wire.iter().any(|name| field.wire.contains(name)), |name| other.name == name)
        });
        let Some(other) = other else { continue };
        assert_eq!(found[field.wire[0]], transaction[other.wire[0]], "{record_name}.{}", field.name);
        compared += 1;
    }
    compared
}

const INPUTS: [(&str, &str); 2] = [("input", "from_address"), ("output", "to_address")];

async fn by_hash(caller: &Caller<'_>) -> BTreeMap<String, Value> {
    let list = caller.all("transactions", "").await;
    let mut found = BTreeMap::new();
    for chunk in list.chunks(20) {
        let hashes: Vec<&str> = chunk.iter().map(|record| text(record, "txid")).collect();
        let records = caller.look_up("transactions_by_hash", &hashes.join(",")).await;
        assert_eq!(records.len(), hashes.len());
        found.extend(records.into_iter().map(|record| (text(&record, "txId").to_owned(), record)));
    }
    found
}

#[tokio::test]
async fn transactions_are_the_same_in_every_list() {
    let caller = Caller::new(shared());
    let transactions = by_hash(&caller).await;
    assert_eq!(transactions.len(), 3_000);
    for record in caller.all("transactions", "").await {
        let compared = agree("ChainTransaction", &record, &transactions[text(&record, "txid")], &INPUTS, &[]);
        assert_eq!(compared, 14);
    }
    for record in caller.all("large_transactions", "").await {
        let compared = agree("LargeTransaction", &record, &transactions[text(&record, "txid")], &INPUTS, &[]);
        assert_eq!(compared, 14);
    }
    let mut found = 0;
    let senders: BTreeSet<&str> = transactions.values().map(|record| text(record, "from")).collect();
    for address in senders.into_iter().filter(|address| !address.contains(',')).take(40) {
        for record in caller.all("address_transactions", &format!("address={address}")).await {
            assert_eq!(agree("AddressTransaction", &record, &transactions[text(&record, "txId")], &[], &[]), 18);
            found += 1;
        }
    }
    assert!(found > 100);
}

#[tokio::test]
async fn transfers_and_logs_belong_to_their_transactions() {
    let caller = Caller::new(shared());
    let transactions = by_hash(&caller).await;
    let mut states = BTreeSet::new();
    let (mut transfers, mut without_flag, mut big_ids) = (BTreeMap::<String, usize>::new(), 0, 0);
    for kind in ["token_20", "token_721", "token_1155", "token_10"] {
        for token in caller.all("tokens", &format!("protocolType={kind}")).await {
            let contract = text(&token, "tokenContractAddress");
            for record in caller.all("token_transfers", &format!("tokenContractAddress={contract}")).await {
                let but = [
                    "from_address",
                    "to_address",
                    "amount",
                    "transaction_symbol",
                    "is_from_contract",
                    "is_to_contract",
                ];
                let compared = agree("TokenTransfer", &record, &transactions[text(&record, "txid")], &[], &but);
                assert_eq!(compared, 6);
                assert_eq!(text(&record, "transactionSymbol"), text(&token, "token"));
                assert_eq!(text(&record, "protocolType"), text(&token, "protocolType"));
                assert!(integer(&record, "transactionTime") > integer(&token, "issueDate"));
                let nft = ["token_721", "token_1155"].contains(&kind);
                assert_eq!(!text(&record, "tokenId").is_empty(), nft);
                states.insert(text(&record, "state").to_owned());
                without_flag += usize::from(record["isFromContract"].is_null());
                big_ids += usize::from(text(&record, "tokenId").len() > 20);
                *transfers.entry(text(&record, "txid").to_owned()).or_default() += 1;
            }
        }
    }
    assert_eq!(states.into_iter().collect::<Vec<_>>(), ["fail", "pending", "success"]);
    assert!(without_flag > 0 && big_ids > 0);
    let mut logs = 0;
    for (id, transaction) in transactions.iter().step_by(7) {
        let own = caller.look_up("logs", id).await;
        let moved = transfers.get(id).copied().unwrap_or(0);
        assert!(own.len() >= moved || text(transaction, "state") != "success", "{id}");
        for record in &own {
            let compared = agree("EventLog", record, transaction, &[], &[]);
            assert_eq!(compared, 5);
            logs += 1;
        }
        assert!(own.windows(2).all(|pair| integer(&pair[0], "logIndex") < integer(&pair[1], "logIndex")));
    }
    assert!(logs > 100);
}

#[tokio::test]
async fn log_has_the_amount_of_its_transfer() {
    let caller = Caller::new(shared());
    let mut found = BTreeMap::<&str, usize>::new();
    for kind in ["token_20", "token_721", "token_1155", "token_10"] {
        for token in caller.all("tokens", &format!("protocolType={kind}")).await.iter().take(40) {
            let contract = text(token, "tokenContractAddress");
            let transfers = caller.all("token_transfers", &format!("tokenContractAddress={contract}")).await;
            for transfer in transfers.iter().filter(|transfer| text(transfer, "state") == "success").take(5) {
                let logs = caller.look_up("logs", text(transfer, "txid")).await;
                let padded =
                    |address: &str| format!("0x{:0>64}", address.split(',').next().unwrap().trim_start_matches("0x"));
                let (from, to) = (padded(text(transfer, "from")), padded(text(transfer, "to")));
                let number = |word: &str| Number::parse(word).unwrap().canonical();
                let says_so = logs.iter().any(|log| {
                    let topics: Vec<&str> =
                        log["topics"].as_array().unwrap().iter().map(|topic| topic.as_str().unwrap()).collect();
                    let data = text(log, "data").trim_start_matches("0x");
                    let unit = |word: &str| u128::from_str_radix(word, 16).unwrap().to_string();
                    let amount =
                        || number(&format!("{}e-{}", unit(&data[data.len() - 64..]), text(token, "precision")));
                    let moved = || number(text(transfer, "amount")) == amount();
                    text(log, "address") == contract
                        && topics.windows(2).any(|pair| pair == [from.as_str(), to.as_str()])
                        && match kind {
                            "token_721" => topics.len() == 4 && data.is_empty(),
                            "token_1155" => topics.len() == 4 && data.len() == 128 && moved(),
                            _ => topics.len() == 3 && data.len() == 64 && moved(),
                        }
                });
                assert!(says_so, "{transfer} is in none of {logs:?}");
                *found.entry(kind).or_default() += 1;
            }
        }
    }
    assert_eq!(found.len(), 4, "{found:?}");
}

#[tokio::test]
async fn cross_chain_transactions_agree_with_both_chains() {
    let caller = Caller::new(shared());
    let transactions = by_hash(&caller).await;
    let blocks: BTreeMap<i64, Value> =
        caller.all("blocks", "").await.into_iter().map(|block| (integer(&block, "height"), block)).collect();
    let mut in_block = BTreeMap::<i64, i64>::new();
    let (mut directions, mut types) = (BTreeSet::new(), BTreeSet::new());
    let whole = caller.all("cross_chain_transactions", "").await;
    for record in &whole {
        let main = &transactions[text(record, "mainTxHash")];
        assert_eq!(text(record, "mainBlockHeight"), text(main, "height"));
        assert_eq!(text(record, "mainBlockTime"), text(main, "transactionTime"));
        let height = integer(record, "zoneBlockHeight");
        assert_eq!(text(record, "zoneBlockTime"), text(&blocks[&height], "blockTime"));
        *in_block.entry(height).or_default() += 1;
        directions.insert(text(record, "txType"));
        types.insert((text(record, "tokenType"), text(record, "crossType"), text(record, "status")));
        assert_eq!(text(record, "tokenId").is_empty(), text(record, "tokenType") == "ERC20");

        let contract = text(record, "tokenContractAddress");
        let kind = text(record, "tokenType").replace("ERC", "token_");
        let query = format!("protocolType={kind}&tokenContractAddress={contract}");
        let token = &caller.page("tokens", &query).await.records[0];
        assert_eq!(text(record, "tokenName"), text(token, "tokenFullName"));
        // value × 10^precision is the raw integer, to the last digit.
        let scaled = format!("{}e-{}", text(record, "valueRaw"), text(token, "precision"));
        let canonical = |text: &str| Number::parse(text).unwrap().canonical();
        assert_eq!(canonical(text(record, "value")), canonical(&scaled), "{record}");
    }
    assert_eq!(directions.into_iter().collect::<Vec<_>>(), ["MainToZone", "ZoneToMain"]);
    assert!((100..250).contains(&whole.len()), "{} of 3,000 cross", whole.len());
    assert!(whole.iter().any(|record| text(record, "id").is_empty()));
    for (height, count) in in_block {
        assert!(integer(&blocks[&height], "transactionCount") >= count);
    }
    for wanted in ["Deposit", "Withdraw", "BatchWithdraw"] {
        assert!(types.iter().any(|(_, cross, _)| *cross == wanted), "{wanted}");
    }
    assert!(types.iter().any(|(token, ..)| *token == "ERC1155") && types.iter().any(|(.., status)| *status == "0x0"));
}

#[tokio::test]
async fn chain_has_the_edge_cases_of_real_ones() {
    let caller = Caller::new(shared());
    let list = caller.all("transactions", "").await;
    let any = |member: &str, test: &dyn Fn(&str) -> bool| list.iter().any(|record| test(text(record, member)));
    assert!(any("input", &|input| input.split(',').count() == 3));
    assert!(any("output", &str::is_empty) && any("methodId", &str::is_empty));
    assert!(any("amount", &|amount| amount.contains("E-")));
    assert!(any("amount", &|amount| amount.contains('.') && amount.ends_with('0')));
    assert!(any("amount", &|amount| amount.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 18)));
    for state in ["success", "fail", "pending"] {
        assert!(any("state", &|own| own == state), "{state}");
    }
    let first = integer(&list[list.len() - 1], "transactionTime");
    let last = integer(&list[0], "transactionTime");
    assert_eq!(last, 1_769_817_600_000);
    assert!(last - first > 366 * 86_400_000);
    let mut blocks = BTreeMap::<i64, usize>::new();
    for record in &list {
        *blocks.entry(integer(record, "height")).or_default() += 1;
    }
    let (low, high) = (*blocks.keys().next().unwrap(), *blocks.keys().last().unwrap());
    assert!((blocks.len() as i64) < high - low + 1, "no block is empty");
    assert!(blocks.values().any(|size| *size > 50) && blocks.values().any(|size| *size == 1));
    let tokens = caller.all("tokens", "").await;
    assert!(tokens.iter().any(|token| text(token, "totalSupply").len() == 60));
    assert!(tokens.iter().any(|token| text(token, "website").is_empty()));
}

/// A hex word of 32 bytes.
fn is_word(text: &str) -> bool {
    text.len() == 66 && text.starts_with("0x") && text[2..].bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[tokio::test]
async fn logs_are_abi_encoded() {
    let caller = Caller::new(shared());
    let (mut topics, mut several) = (0, 0);
    for transaction in caller.all("transactions", "").await {
        let logs = caller.look_up("logs", text(&transaction, "txid")).await;
        several += usize::from(text(&transaction, "input").contains(',') && !logs.is_empty());
        for log in logs {
            for topic in log["topics"].as_array().unwrap() {
                assert!(is_word(topic.as_str().unwrap()), "{log}");
                topics += 1;
            }
            let data = text(&log, "data");
            assert!(data.starts_with("0x") && (data.len() - 2).is_multiple_of(64), "{log}");
        }
    }
    assert!(topics > 1_000, "{topics}");
    assert!(several > 0);
}

#[tokio::test]
async fn no_transfer_exceeds_what_was_minted_of_its_token() {
    let caller = Caller::new(shared());
    let number = |text: &str| text.parse::<f64>().unwrap();
    let mut compared = 0;
    for protocol in ["token_20", "token_10"] {
        for token in caller.all("tokens", &format!("protocolType={protocol}")).await {
            let contract = text(&token, "tokenContractAddress");
            let transfers = caller.all("token_transfers", &format!("tokenContractAddress={contract}")).await;
            let mints = transfers.iter().filter(|transfer| text(transfer, "from") == ZERO);
            // What was burned later is not part of the supply.
            let minted: f64 = mints.map(|transfer| number(text(transfer, "amount"))).sum();
            for transfer in transfers {
                assert!(number(text(&transfer, "amount")) <= minted, "{transfer} of {minted}");
                compared += 1;
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}

#[tokio::test]
async fn deposits_precede_their_arrival() {
    let service = start(|settings| settings.growth = 4);
    let caller = Caller::new(&service);
    for _ in 0..20 {
        caller.page("blocks", "limit=1").await;
    }
    service.set_growth(0);
    let mut deposits = 0;
    for transfer in caller.all("cross_chain_transactions", "").await {
        if text(&transfer, "txType") == "MainToZone" {
            assert!(integer(&transfer, "mainBlockTime") <= integer(&transfer, "zoneBlockTime"), "{transfer}");
            deposits += 1;
        }
    }
    assert!(deposits >= 80, "{deposits}");
    let blocks = caller.all("blocks", "").await;
    let times: Vec<i64> = blocks.iter().map(|block| integer(block, "blockTime")).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older));
}
