//! Every filter and order, compared with the complete list.

use std::collections::BTreeSet;

use chainframe::interface::Number;
use serde_json::Value;

use super::http_client::{Caller, busiest, integer, shared, text};

/// Sorts as the number does.
fn amount(record: &Value, member: &str) -> i128 {
    Number::parse(text(record, member)).and_then(|number| number.scaled(18)).expect("an amount")
}

async fn check(name: &str, query: impl Into<String>, whole: &[Value], keep: impl Fn(&Value) -> bool) -> usize {
    let query = query.into();
    let expected: Vec<&Value> = whole.iter().filter(|record| keep(record)).collect();
    let found = Caller::new(shared()).all(name, &query).await;
    assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{name} {query}");
    expected.len()
}

/// Some of the list's values of a member, its first and last among them.
fn samples(whole: &[Value], member: &str) -> Vec<String> {
    let values: BTreeSet<&str> = whole.iter().filter_map(|record| record[member].as_str()).collect();
    let values: Vec<&str> = values.into_iter().filter(|value| !value.is_empty()).collect();
    [0, values.len() / 3, values.len() / 2, values.len() - 1].map(|place| values[place].to_owned()).into()
}

async fn all_tokens(caller: &Caller<'_>) -> Vec<Value> {
    let mut tokens = Vec::new();
    for kind in ["token_20", "token_721", "token_1155", "token_10"] {
        let own = caller.all("tokens", &format!("protocolType={kind}")).await;
        assert!(own.len() > 40, "{kind}");
        assert!(own.iter().all(|token| text(token, "protocolType") == kind.replace("token_", "ERC")));
        tokens.extend(own);
    }
    tokens
}

#[tokio::test]
async fn tokens_by_protocol_contract_and_issue_date() {
    let caller = Caller::new(shared());
    let every = all_tokens(&caller).await;
    let fungible: Vec<Value> = every.iter().filter(|token| text(token, "protocolType") == "ERC20").cloned().collect();
    assert!(every.len() > 400);
    check("tokens", "", &fungible, |_| true).await;

    let contract = text(&fungible[5], "tokenContractAddress");
    let found = check("tokens", format!("tokenContractAddress={contract}"), &fungible, |token| {
        text(token, "tokenContractAddress") == contract
    });
    assert_eq!(found.await, 1);
    let upper = format!("tokenContractAddress=0X{}", contract[2..].to_uppercase());
    assert_eq!(check("tokens", &upper, &fungible, |token| text(token, "tokenContractAddress") == contract).await, 1);
    let other = format!("tokenContractAddress={contract}&protocolType=token_721");
    assert_eq!(check("tokens", &other, &[], |_| true).await, 0);

    let mut dates: Vec<i64> = fungible.iter().map(|token| integer(token, "issueDate")).collect();
    dates.sort_unstable();
    let (first, last) = (dates[0], dates[dates.len() - 1]);
    assert!(last - first > 3 * 365 * 86_400_000, "issue dates span {} days", (last - first) / 86_400_000);
    // Both ends are issue dates, and both are excluded.
    let (start, end) = (dates[dates.len() / 3], dates[dates.len() / 3 + 20]);
    let found = check("tokens", format!("startTime={start}&endTime={end}"), &fungible, |token| {
        (start + 1..end).contains(&integer(token, "issueDate"))
    });
    assert!(found.await > 10);
    let later = |token: &Value| integer(token, "issueDate") > start;
    assert!(check("tokens", format!("startTime={start}"), &fungible, later).await > 10);
    let earlier = |token: &Value| integer(token, "issueDate") < end;
    assert!(check("tokens", format!("endTime={end}"), &fungible, earlier).await > 10);
    for query in [format!("startTime={end}&endTime={start}"), format!("startTime={first}&endTime={last}")] {
        let (status, code, msg) = caller.error("tokens", &query).await;
        assert_eq!((status, code.as_str()), (400, "50025"));
        assert!(msg.contains("startTime"), "{msg}");
    }
}

#[tokio::test]
async fn tokens_are_ordered_by_market_cap_or_volume() {
    let caller = Caller::new(shared());
    for (query, member) in [
        ("", "totalMarketCap"),
        ("orderBy=totalMarketCap", "totalMarketCap"),
        ("orderBy=transactionAmount24h", "transactionAmount24h"),
        // The order applies to fungible tokens only.
        ("protocolType=token_10&orderBy=transactionAmount24h", "totalMarketCap"),
    ] {
        let list = caller.all("tokens", query).await;
        let sorted = list.windows(2).all(|pair| amount(&pair[0], member) >= amount(&pair[1], member));
        assert!(sorted, "{query}");
        assert!(amount(&list[0], member) > amount(&list[list.len() - 1], member));
    }
    let by_worth = caller.all("tokens", "orderBy=totalMarketCap").await;
    assert_ne!(by_worth, caller.all("tokens", "orderBy=transactionAmount24h").await);
}

#[tokio::test]
async fn token_transfers_by_amount() {
    let caller = Caller::new(shared());
    let token = format!("tokenContractAddress={}", busiest(&caller, "output").await);
    let whole = caller.all("token_transfers", &token).await;
    assert!(whole.len() > 500);
    let mut amounts: Vec<&Value> = whole.iter().collect();
    amounts.sort_by_key(|record| amount(record, "amount"));
    let (low, high) = (amounts[whole.len() / 3], amounts[2 * whole.len() / 3]);
    let (min, max) = (amount(low, "amount"), amount(high, "amount"));
    let (low, high) = (text(low, "amount"), text(high, "amount"));
    let over =
        check("token_transfers", format!("{token}&minAmount={low}"), &whole, |record| amount(record, "amount") >= min);
    let under =
        check("token_transfers", format!("{token}&maxAmount={high}"), &whole, |record| amount(record, "amount") <= max);
    let both = check("token_transfers", format!("{token}&minAmount={low}&maxAmount={high}"), &whole, |record| {
        (min..=max).contains(&amount(record, "amount"))
    });
    let (over, under, both) = (over.await, under.await, both.await);
    assert_eq!(over + under - both, whole.len());
    let total = caller.page("token_transfers", &format!("{token}&minAmount={low}")).await.number("totalTransfer");
    assert_eq!(total, over as u64);
}

#[tokio::test]
async fn cross_chain_transactions_by_every_parameter() {
    const NAME: &str = "cross_chain_transactions";
    let caller = Caller::new(shared());
    let whole = caller.all(NAME, "").await;
    assert!(whole.len() > 100);
    assert!(whole.windows(2).all(|pair| integer(&pair[0], "zoneBlockHeight") >= integer(&pair[1], "zoneBlockHeight")));
    let is = |record: &Value, members: &[&str], value: &str| members.iter().any(|member| text(record, member) == value);
    for (param, members) in [
        ("txid", &["id", "mainTxHash", "zoneTxHash"][..]),
        ("height", &["zoneBlockHeight"]),
        ("address", &["from", "to", "sourceAddress", "targetAddress"]),
        ("from", &["from"]),
        ("to", &["to"]),
        ("tokenContractAddress", &["tokenContractAddress"]),
    ] {
        for member in members {
            for value in samples(&whole, member) {
                let query = format!("{param}={value}");
                assert!(check(NAME, &query, &whole, |record| is(record, members, &value)).await > 0, "{query}");
            }
        }
    }
    let (low, high) = (integer(&whole[80], "zoneBlockHeight"), integer(&whole[20], "zoneBlockHeight"));
    let height = |record: &Value| integer(record, "zoneBlockHeight");
    let range = format!("startBlockHeight={low}&endBlockHeight={high}");
    assert!(check(NAME, &range, &whole, |record| (low..=high).contains(&height(record))).await > 50);
    check(NAME, format!("startBlockHeight={low}"), &whole, |record| height(record) >= low).await;
    check(NAME, format!("endBlockHeight={high}"), &whole, |record| height(record) <= high).await;
    let token = text(&whole[50], "tokenContractAddress");
    check(NAME, format!("{range}&tokenContractAddress={token}"), &whole, |record| {
        (low..=high).contains(&height(record)) && text(record, "tokenContractAddress") == token
    })
    .await;
}

#[tokio::test]
async fn blocks_by_height() {
    let whole = Caller::new(shared()).all("blocks", "").await;
    assert_eq!(whole.len(), 3_000);
    assert!(whole.windows(2).all(|pair| integer(&pair[0], "height") == integer(&pair[1], "height") + 1));
    for height in samples(&whole, "height") {
        let found = check("blocks", format!("height={height}"), &whole, |block| text(block, "height") == height);
        assert_eq!(found.await, 1);
    }
}

#[tokio::test]
async fn address_transactions_by_height_and_side() {
    let caller = Caller::new(shared());
    let address = busiest(&caller, "input").await;
    let query = format!("address={address}");
    let whole = caller.all("address_transactions", &query).await;
    assert!(whole.len() > 100);
    let upper = format!("address=0x{}", address[2..].to_uppercase());
    check("address_transactions", &upper, &whole, |_| true).await;
    let sent = |record: &Value| text(record, "from") == address;
    let received = |record: &Value| text(record, "to") == address;
    assert!(whole.iter().all(|record| sent(record) || received(record)));
    assert!(check("address_transactions", format!("{query}&isFromOrTo=from"), &whole, sent).await > 10);
    assert!(check("address_transactions", format!("{query}&isFromOrTo=to"), &whole, received).await > 10);
    let (low, high) = (integer(&whole[70], "height"), integer(&whole[10], "height"));
    let range = format!("{query}&startBlockHeight={low}&endBlockHeight={high}");
    let inside = |record: &Value| (low..=high).contains(&integer(record, "height"));
    assert!(check("address_transactions", &range, &whole, inside).await > 50);
    check("address_transactions", format!("{range}&isFromOrTo=from"), &whole, |record| inside(record) && sent(record))
        .await;
}

/// An address that shares its member with others is found all the same.
#[tokio::test]
async fn an_address_among_several_is_found() {
    let caller = Caller::new(shared());
    let every = caller.all("transactions", "").await;
    let several: Vec<&Value> = every.iter().filter(|record| text(record, "input").contains(',')).collect();
    assert!(!several.is_empty());
    for address in text(several[0], "input").split(',') {
        let found = caller.all("address_transactions", &format!("address={address}&isFromOrTo=from")).await;
        assert_eq!(found.len(), 1);
        assert_eq!(text(&found[0], "txId"), text(several[0], "txid"));
        assert!(caller.all("address_transactions", &format!("address={address}&isFromOrTo=to")).await.is_empty());
    }
}

#[tokio::test]
async fn large_transactions_by_threshold_and_height() {
    let caller = Caller::new(shared());
    let every = caller.all("transactions", "").await;
    let over = |threshold: &str| {
        let min = Number::parse(threshold).and_then(|number| number.scaled(18)).unwrap();
        move |record: &&Value| amount(record, "amount") > min
    };
    for (query, threshold) in [
        ("", "100"),
        ("type=100", "100"),
        ("type=100.000000000000000000", "100"),
        ("type=100.000000000000000001", "100.000000000000000001"),
        ("type=2500.0", "2500"),
    ] {
        let found = caller.all("large_transactions", query).await;
        let ids: Vec<&str> = found.iter().map(|record| text(record, "txid")).collect();
        let expected: Vec<&str> = every.iter().filter(over(threshold)).map(|record| text(record, "txid")).collect();
        assert_eq!(ids, expected, "{query}");
        assert!(!ids.is_empty());
    }
    // On the threshold is not above it, and the chain has both cases.
    assert!(every.iter().any(|record| amount(record, "amount") == 100 * 10_i128.pow(18)));
    assert!(every.iter().any(|record| amount(record, "amount") == 100 * 10_i128.pow(18) + 1));
    let whole = caller.all("large_transactions", "").await;
    for height in samples(&whole, "height") {
        let query = format!("height={height}");
        assert!(check("large_transactions", &query, &whole, |record| text(record, "height") == height).await > 0);
    }
    let (status, code, msg) = caller.error("large_transactions", "type=99").await;
    assert_eq!((status, code.as_str()), (400, "50015"));
    assert!(msg.contains("type"));
}

#[tokio::test]
async fn transactions_by_block() {
    let caller = Caller::new(shared());
    let whole = caller.all("transactions", "").await;
    assert_eq!(whole.len(), 3_000);
    assert!(whole.windows(2).all(|pair| integer(&pair[0], "height") >= integer(&pair[1], "height")));
    for height in samples(&whole, "height") {
        let query = format!("height={height}");
        assert!(check("transactions", &query, &whole, |record| text(record, "height") == height).await > 0);
    }
    for hash in samples(&whole, "blockHash") {
        let upper = format!("blockHash=0x{}", hash[2..].to_uppercase());
        assert!(check("transactions", &upper, &whole, |record| text(record, "blockHash") == hash).await > 0);
    }
}
