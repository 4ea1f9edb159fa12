//! Limits of lists: page sizes, result window, one year, hashes and logs per response, requests per second.

use chainframe::interface::{ENDPOINTS, Shape};

use super::http_client::{Caller, busiest, integer, required, shared, start, text};

#[tokio::test]
async fn page_sizes_are_limited() {
    let caller = Caller::new(shared());
    let mut checked = 0;
    for endpoint in &ENDPOINTS {
        let Shape::Paged { page_size_max, .. } = endpoint.shape else { continue };
        let required = required(&caller, endpoint.name).await;
        let page = caller.page(endpoint.name, &format!("{required}&limit={page_size_max}")).await;
        assert_eq!(page.records.len(), page_size_max as usize, "{}", endpoint.name);
        for (limit, code) in [(page_size_max + 1, "50015"), (0, "50015")] {
            let (status, found, msg) = caller.error(endpoint.name, &format!("{required}&limit={limit}")).await;
            assert_eq!((status, found.as_str()), (400, code));
            assert!(msg.contains("limit"), "{msg}");
        }
        let (status, code, _) = caller.error(endpoint.name, &format!("{required}&limit=-1")).await;
        assert_eq!((status, code.as_str()), (400, "50016"));
        checked += 1;
    }
    assert!(checked > 0, "no list is declared");
}

#[tokio::test]
async fn pages_split_a_list_without_gap_or_overlap() {
    let caller = Caller::new(shared());
    for endpoint in &ENDPOINTS {
        let Shape::Paged { .. } = endpoint.shape else { continue };
        let required = required(&caller, endpoint.name).await;
        let whole = caller.all(endpoint.name, &required).await;
        let (limit, mut records) = (7, Vec::new());
        let pages = caller.page(endpoint.name, &format!("{required}&limit={limit}")).await.number("totalPage");
        assert_eq!(pages, (whole.len() as u64).div_ceil(limit), "{}", endpoint.name);
        for number in [1, 2, pages / 2, pages] {
            let page = caller.page(endpoint.name, &format!("{required}&limit={limit}&page={number}")).await;
            let first = ((number - 1) * limit) as usize;
            assert_eq!(page.records, whole[first..(first + limit as usize).min(whole.len())]);
            records.extend(page.records);
        }
        let beyond = caller.page(endpoint.name, &format!("{required}&limit={limit}&page={}", pages + 1)).await;
        assert!(beyond.records.is_empty());
        assert_eq!(beyond.number("totalPage"), pages);
        let far = caller.page(endpoint.name, &format!("{required}&page={}", i64::MAX)).await;
        assert!(far.records.is_empty());
    }
}

#[tokio::test]
async fn result_window_limits_main_chain_lists_only() {
    let service = start(|settings| settings.deployment = settings.deployment.clone().with_windows(45, 1_000).unwrap());
    let caller = Caller::new(&service);
    for (name, query) in [
        ("transactions", String::new()),
        ("tokens", String::new()),
        ("token_transfers", format!("tokenContractAddress={}", busiest(&Caller::new(shared()), "output").await)),
    ] {
        let one = caller.page(name, &format!("{query}&limit=1")).await;
        assert_eq!(one.number("totalPage"), 45, "{name}");
        let last = caller.page(name, &format!("{query}&limit=20&page=3")).await;
        assert_eq!((last.records.len(), last.number("totalPage")), (5, 3), "{name}");
        assert!(caller.page(name, &format!("{query}&limit=20&page=4")).await.records.is_empty());
    }
    let blocks = caller.page("blocks", "limit=100&page=3").await;
    assert_eq!((blocks.records.len(), blocks.number("totalPage"), blocks.number("total")), (100, 3, 300));
}

#[tokio::test]
async fn a_full_list_of_single_records_has_ten_thousand_pages() {
    let service = start(|settings| settings.transactions = 10_500);
    let caller = Caller::new(&service);
    assert_eq!(caller.page("transactions", "limit=1").await.number("totalPage"), 10_000);
    assert_eq!(caller.page("transactions", "limit=1&page=10000").await.records.len(), 1);
    assert!(caller.page("transactions", "limit=1&page=10001").await.records.is_empty());
    assert_eq!(caller.page("blocks", "limit=1").await.number("totalPage"), 10_500);

    // One transaction has more logs than a response holds, and a token has thousands of transfers.
    let mut max_logs = 0;
    for record in &caller.all("transactions", "").await[5_000..5_500] {
        if max_logs < 1_000 && text(record, "methodId") == "0xa9059cbb" {
            max_logs = max_logs.max(caller.look_up("logs", text(record, "txid")).await.len());
        }
    }
    assert_eq!(max_logs, 1_000);
    let token = busiest(&caller, "output").await;
    let transfers = caller.page("token_transfers", &format!("tokenContractAddress={token}")).await;
    assert!(transfers.number("totalTransfer") > 2_000, "{}", transfers.object["totalTransfer"]);
}

#[tokio::test]
async fn an_address_shows_the_year_before_its_last_transaction() {
    let caller = Caller::new(shared());
    let every = caller.all("transactions", "").await;
    let mut cut = 0;
    let mut dormant = 0;
    let addresses: std::collections::BTreeSet<&str> = every.iter().map(|record| text(record, "input")).collect();
    for address in addresses.into_iter().filter(|address| !address.contains(',')) {
        let own: Vec<_> =
            every.iter().filter(|record| [text(record, "input"), text(record, "output")].contains(&address)).collect();
        if own.len() < 8 {
            continue;
        }
        let last = integer(own[0], "transactionTime");
        // Neither the head nor its year has a 29 February, so a year is 365 days here.
        let year = own.iter().filter(|record| integer(record, "transactionTime") >= last - 365 * 86_400_000).count();
        let shown = caller.all("address_transactions", &format!("address={address}")).await;
        assert_eq!(shown.len(), year, "{address}");
        cut += usize::from(year < own.len());
        dormant += usize::from(last < 1_769_817_600_000 - 365 * 86_400_000);
        // The year is the address's, not that of what is left of it.
        let old = integer(own[own.len() - 1], "height");
        let filtered = caller.page("address_transactions", &format!("address={address}&endBlockHeight={old}")).await;
        assert_eq!(filtered.records.is_empty(), year < own.len(), "{address}");
    }
    assert!(cut > 0 && dormant > 0, "{cut} cut, {dormant} dormant");
}

#[tokio::test]
async fn lookup_accepts_twenty_hashes() {
    let caller = Caller::new(shared());
    let list = caller.page("transactions", "limit=21").await.records;
    let hashes: Vec<&str> = list.iter().map(|record| text(record, "txid")).collect();
    let found = caller.look_up("transactions_by_hash", &hashes[..20].join(",")).await;
    assert_eq!(found.iter().map(|record| text(record, "txId")).collect::<Vec<_>>(), hashes[..20]);
    let (status, code, msg) = caller.error("transactions_by_hash", &format!("txId={}", hashes.join(","))).await;
    assert_eq!((status, code.as_str()), (400, "50024"));
    assert!(msg.contains("txId"));
    let (status, code, _) = caller.error("logs", &format!("txId={}", hashes[..2].join(","))).await;
    assert_eq!((status, code.as_str()), (400, "50024"));
}

#[tokio::test]
async fn more_requests_than_the_rate_are_throttled() {
    // So slow that no machine is slow enough to be let in twice.
    let service = start(|settings| settings.rate_limit = Some(1e-6));
    let caller = Caller::new(&service);
    assert_eq!(caller.get("blocks", "").await.code(), "0");
    let (status, code, _) = caller.error("blocks", "").await;
    assert_eq!((status, code.as_str()), (429, "50011"));
}
