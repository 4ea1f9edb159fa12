//! Lists that grow while they are read: at the head only, in every list alike, and the same way each time.

use std::collections::BTreeSet;

use serde_json::Value;

use super::http_client::{Caller, busiest, integer, shared, start, text};

/// The lists that grow, with what each requires.
async fn growing() -> Vec<(&'static str, String)> {
    let caller = Caller::new(shared());
    let token = busiest(&caller, "output").await;
    let address = busiest(&caller, "input").await;
    vec![
        ("transactions", String::new()),
        ("large_transactions", "type=500".into()),
        ("token_transfers", format!("tokenContractAddress={token}")),
        ("address_transactions", format!("address={address}")),
        ("address_transactions", format!("address={address}&isFromOrTo=to")),
        ("cross_chain_transactions", String::new()),
        ("cross_chain_transactions", format!("address={address}")),
        ("blocks", String::new()),
    ]
}

#[tokio::test]
async fn each_list_request_grows_every_list_at_its_head() {
    const GROWTH: usize = 3;
    for (name, query) in growing().await {
        let service = start(|settings| {
            settings.transactions = 3_000;
            settings.growth = GROWTH as u32;
        });
        let caller = Caller::new(&service);
        let query = format!("{query}&limit=50");
        let before = caller.page(name, &query).await.records;
        let after = caller.page(name, &query).await.records;
        let left = before.len().min(50 - GROWTH);
        assert!(left > 20, "{name} {query}");
        assert_eq!(after[GROWTH..], before[..left], "{name} {query}");
        assert!(after[..GROWTH].iter().all(|record| !before.contains(record)), "{name} {query}");
        // Records that were added to one list were added to all; both responses so far did that.
        for (other, _) in growing().await.into_iter().filter(|(_, query)| !query.contains("address=")) {
            let fresh = Caller::new(shared()).page(other, &other_query(other).await).await.records;
            let grown = caller.page(other, &other_query(other).await).await.records;
            let first = grown.iter().position(|record| *record == fresh[0]).expect("the old head");
            assert!(first >= 2 * GROWTH && first.is_multiple_of(GROWTH), "{other}: {first}");
        }
    }
}

async fn other_query(name: &str) -> String {
    match name {
        "token_transfers" => {
            format!("tokenContractAddress={}&limit=50", busiest(&Caller::new(shared()), "output").await)
        }
        "large_transactions" => "type=500&limit=50".into(),
        _ => "limit=50".into(),
    }
}

#[tokio::test]
async fn grown_records_form_one_chain() {
    let service = start(|settings| settings.growth = 2);
    let caller = Caller::new(&service);
    let (old, old_blocks) = (caller.page("transactions", "").await, caller.page("blocks", "").await);
    for _ in 0..4 {
        caller.page("transactions", "").await;
    }
    let lists = ["transactions", "large_transactions", "cross_chain_transactions", "blocks"];
    let mut pages = Vec::new();
    for name in lists {
        pages.push(caller.page(name, "limit=50").await.records);
    }
    let [transactions, large, transfers, blocks] = &pages[..] else { panic!("four lists") };
    let new: Vec<&Value> = transactions.iter().take_while(|record| **record != old.records[0]).collect();
    assert_eq!(new.len(), 6 * 2);
    let ids: BTreeSet<&str> = new.iter().map(|record| text(record, "txid")).collect();
    assert_eq!(ids.len(), new.len());
    let large: BTreeSet<&str> = large.iter().map(|record| text(record, "txid")).collect();
    let bridged: BTreeSet<&str> = transfers.iter().map(|record| text(record, "mainTxHash")).collect();
    assert!(ids.is_subset(&large) && ids.is_subset(&bridged));
    let old_height = integer(&old.records[0], "height");
    for record in &new {
        assert!(integer(record, "height") > old_height);
        assert!(integer(record, "transactionTime") > integer(&old.records[0], "transactionTime"));
        let hash = text(record, "txid");
        let found = caller.look_up("transactions_by_hash", hash).await;
        assert_eq!(text(&found[0], "blockHash"), text(record, "blockHash"));
        let logs = caller.look_up("logs", hash).await;
        assert_eq!(text(&logs[0], "blockHash"), text(record, "blockHash"));
        let transfers = format!("tokenContractAddress={}&limit=50", text(&logs[0], "address"));
        let transfers = caller.page("token_transfers", &transfers).await.records;
        assert!(transfers.iter().any(|transfer| text(transfer, "txid") == hash));
    }
    assert!(blocks.windows(2).all(|pair| integer(&pair[0], "height") == integer(&pair[1], "height") + 1));
    assert!(integer(&blocks[0], "height") > integer(&old_blocks.records[0], "height"));
    let nonces = caller.page("address_transactions", &format!("address={}", text(new[0], "input"))).await.records;
    assert!(nonces.windows(2).take(8).all(|pair| integer(&pair[0], "nonce") == integer(&pair[1], "nonce") + 1));
}

#[tokio::test]
async fn growth_is_deterministic_and_needs_a_list_request() {
    let ask = || async {
        let service = start(|settings| settings.growth = 1);
        let caller = Caller::new(&service);
        let head = caller.page("transactions", "limit=2").await.records;
        caller.error("transactions", "limit=0").await;
        caller.look_up("logs", text(&head[0], "txid")).await;
        let grown = caller.page("transactions", "limit=2").await.records;
        assert_eq!(grown[1], head[0]);
        grown
    };
    assert_eq!(ask().await, ask().await);
    // A chain that had nothing starts to.
    let service = start(|settings| {
        settings.transactions = 0;
        settings.growth = 1;
    });
    let caller = Caller::new(&service);
    assert!(caller.page("transactions", "").await.records.is_empty());
    assert_eq!(caller.page("transactions", "").await.records.len(), 1);
}

#[tokio::test]
async fn a_reorganization_replaces_the_newest_heights_of_both_chains() {
    const DEPTH: i64 = 3;
    let service = start(|settings| settings.reorg = Some((2, DEPTH as u32)));
    let caller = Caller::new(&service);
    for (name, height) in [("transactions", "height"), ("blocks", "height")] {
        // Every second request is followed by one.
        let mut pages = Vec::new();
        for _ in 0..3 {
            pages.push(caller.page(name, "limit=50").await.records);
        }
        let moved = pages.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(moved, 1, "{name}");
        let (before, after) = (&pages[0], &pages[2]);
        let kept = integer(&before[0], height) - DEPTH;
        let depth = before.iter().take_while(|record| integer(record, height) > kept).count();
        assert_eq!(before[depth..], after[depth..], "{name}");
        assert!(after[..depth].iter().all(|record| !before.contains(record)), "{name}");
        caller.page(name, "").await;
    }
}

#[tokio::test]
async fn list_can_grow_over_time() {
    let service = start(|settings| settings.growth_rate = Some(2_000.0));
    let caller = Caller::new(&service);
    let first = caller.page("blocks", "limit=1").await.records;
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let later = caller.page("blocks", "limit=1").await.records;
    assert!(integer(&later[0], "height") >= integer(&first[0], "height") + 20);
}
