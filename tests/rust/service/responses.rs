//! The format of every response: envelope, paging members, records with the declared members and nothing else.

use std::collections::BTreeSet;

use chainframe::interface::{Chain, Deployment, ENDPOINTS, Kind, Shape};
use serde_json::Value;

use super::http_client::{Caller, required, shared, start, text};

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().expect("an object").keys().cloned().collect()
}

#[tokio::test]
async fn page_objects_have_the_documented_members_and_no_others() {
    let caller = Caller::new(shared());
    let mut checked = 0;
    for endpoint in &ENDPOINTS {
        let Shape::Paged { list, total, names_chain, .. } = endpoint.shape else { continue };
        let page = caller.page(endpoint.name, &required(&caller, endpoint.name).await).await;
        let mut expected: BTreeSet<String> = ["page", "limit", "totalPage", list].map(String::from).into();
        expected.extend(total.map(String::from));
        if names_chain {
            expected.extend(["chainFullName", "chainShortName"].map(String::from));
            assert_eq!(text(&page.object, "chainShortName"), "MAIN");
            assert!(!text(&page.object, "chainFullName").is_empty());
        }
        assert_eq!(keys(&page.object), expected, "{}", endpoint.name);
        assert_eq!((text(&page.object, "page"), text(&page.object, "limit")), ("1", "20"));
        assert!(!page.records.is_empty(), "{}", endpoint.name);
        checked += 1;
    }
    assert!(checked > 0, "no list is declared");
}

/// A field that is declared and that nothing gives a value to would be empty in every row.
#[tokio::test]
async fn every_declared_field_has_a_value_in_some_record() {
    let caller = Caller::new(shared());
    let deployment = Deployment::default();
    let mut fields = 0;
    for endpoint in &ENDPOINTS {
        let given = required(&caller, endpoint.name).await;
        let records = match endpoint.shape {
            Shape::Paged { .. } if endpoint.name == "tokens" => caller.all("tokens", "protocolType=token_20").await,
            Shape::Paged { .. } => caller.all(endpoint.name, &given).await,
            Shape::Direct => caller.look_up(endpoint.name, given.trim_start_matches("txId=")).await,
        };
        let nfts = if endpoint.name == "token_transfers" { nft_transfers(&caller).await } else { Vec::new() };
        for field in endpoint.record().fields {
            let wire = deployment.expand(field.wire[0]);
            let has_value = |record: &&Value| match field.kind {
                Kind::Boolean => record[&wire].is_boolean(),
                Kind::Utf8List => record[&wire].as_array().is_some_and(|texts| !texts.is_empty()),
                _ => record[&wire].as_str().is_some_and(|text| !text.is_empty()),
            };
            let found = records.iter().chain(&nfts).filter(has_value).count();
            assert!(found > 0, "{}.{} has no value anywhere", endpoint.name, field.name);
            fields += 1;
        }
        let declared: BTreeSet<String> =
            endpoint.record().fields.iter().map(|field| deployment.expand(field.wire[0])).collect();
        for record in &records {
            let missing: Vec<_> = declared.difference(&keys(record)).cloned().collect();
            // The one member that a record may lack.
            let may_lack = missing.is_empty() || (endpoint.name == "token_transfers" && missing == ["isFromContract"]);
            assert!(may_lack, "{}: {missing:?}", endpoint.name);
            assert!(keys(record).is_subset(&declared), "{}: {record}", endpoint.name);
        }
    }
    assert!(fields > 100, "{fields} fields found");
}

async fn nft_transfers(caller: &Caller<'_>) -> Vec<Value> {
    let mut transfers = Vec::new();
    for kind in ["token_721", "token_1155"] {
        for token in caller.all("tokens", &format!("protocolType={kind}")).await {
            let contract = text(&token, "tokenContractAddress");
            transfers.extend(caller.page("token_transfers", &format!("tokenContractAddress={contract}")).await.records);
        }
    }
    transfers
}

#[tokio::test]
async fn every_value_reads_as_its_kind() {
    let caller = Caller::new(shared());
    let deployment = Deployment::default();
    for endpoint in &ENDPOINTS {
        let Shape::Paged { .. } = endpoint.shape else { continue };
        for record in caller.all(endpoint.name, &required(&caller, endpoint.name).await).await {
            for field in endpoint.record().fields {
                let value = &record[deployment.expand(field.wire[0])];
                let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { continue };
                let fits = match field.kind {
                    Kind::Integer => Kind::integer(text).is_ok(),
                    Kind::Time => Kind::time(text).is_ok_and(|time| time.0.to_string() == text),
                    Kind::Amount => Kind::number(text).is_ok_and(|number| number.scaled(18).is_some()),
                    Kind::ApproxDecimal => Kind::number(text).is_ok(),
                    Kind::Uint256 => Kind::raw_integer(text).is_ok_and(|digits| digits == text),
                    Kind::Direction => deployment.direction(text) == text,
                    Kind::Utf8 => true,
                    Kind::Boolean | Kind::Utf8List => false,
                };
                assert!(fits, "{}.{}: {text:?}", endpoint.name, field.name);
            }
        }
    }
}

#[tokio::test]
async fn responses_use_the_names_of_the_deployment() {
    let deployment = Deployment::new("XY", "alpha", "beta", "{timestamp}{method}{target}{body}", "hex").unwrap();
    let service = start(|settings| {
        settings.deployment = deployment;
        settings.main_chain = "Alpha".into();
        settings.zone_chain = "ALPHA_BETA".into();
    });
    let caller = Caller::new(&service);
    assert!(caller.target("blocks", "").starts_with("/api/v5/alpha/beta/block/block-list?"));
    let record = &caller.page("cross_chain_transactions", "").await.records[0];
    assert!(keys(record).contains("alphaTxHash") && keys(record).contains("betaBlockHeight"), "{record}");
    assert!(["AlphaToBETA", "BETAToAlpha"].contains(&text(record, "txType")));
    let page = caller.page("transactions", "").await;
    assert_eq!(text(&page.object, "chainShortName"), "ALPHA");
}

#[tokio::test]
async fn chains_are_named_in_either_case() {
    let caller = Caller::new(shared());
    for endpoint in &ENDPOINTS {
        let required = required(&caller, endpoint.name).await;
        let chain = if endpoint.chain == Chain::Main { "MAIN" } else { "ZONE_CHAIN" };
        let upper = caller.target(endpoint.name, &required);
        let lower = upper.replace(&format!("={chain}"), &format!("={}", chain.to_lowercase()));
        assert_ne!(upper, lower);
        let (upper, lower) = (caller.try_get(&upper).await.unwrap(), caller.try_get(&lower).await.unwrap());
        assert_eq!(upper.text, lower.text);
        assert_eq!(lower.code(), "0");
        let unknown = caller.target(endpoint.name, &required).replace(&format!("={chain}"), "=NOWHERE");
        let unknown = caller.try_get(&unknown).await.unwrap();
        assert_eq!((unknown.status, unknown.code().as_str()), (200, "50038"));
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_errors() {
    let caller = Caller::new(shared());
    for path in ["/", "/api/v5/main/token", "/api/v5/other/token/token-list?chainShortName=MAIN"] {
        let reply = caller.try_get(path).await.unwrap();
        assert_eq!((reply.status, reply.code().as_str()), (404, "50404"), "{path}");
        assert!(reply.headers.contains_key("date"));
    }
    let target = caller.target("blocks", "");
    for method in ["POST", "PUT", "DELETE"] {
        let reply = caller.send(method, &target, &[]).await.unwrap();
        assert_eq!((reply.status, reply.code().as_str()), (405, "50404"), "{method}");
        assert_eq!(reply.header("allow").as_deref(), Some("GET"), "{method}");
    }
}

#[tokio::test]
async fn same_seed_gives_identical_responses() {
    let (one, two) = (start(|_| {}), start(|_| {}));
    let other = start(|settings| settings.seed = 8);
    let (one, two, other) = (Caller::new(&one), Caller::new(&two), Caller::new(&other));
    for endpoint in &ENDPOINTS {
        let required = required(&one, endpoint.name).await;
        let query = if endpoint.page_size_max().is_some() { format!("{required}&limit=50") } else { required };
        let response = one.get(endpoint.name, &query).await.text;
        assert_eq!(response, two.get(endpoint.name, &query).await.text, "{}", endpoint.name);
        assert_ne!(response, other.get(endpoint.name, &query).await.text, "{}", endpoint.name);
    }
}

#[tokio::test]
async fn empty_result_is_a_success() {
    let caller = Caller::new(shared());
    let nowhere = "0x00000000000000000000000000000000000000ff";
    for (name, query) in [
        ("token_transfers", format!("tokenContractAddress={nowhere}")),
        ("tokens", format!("tokenContractAddress={nowhere}")),
        ("address_transactions", format!("address={nowhere}")),
        ("blocks", "height=1".into()),
        ("transactions", "height=1".into()),
        ("cross_chain_transactions", format!("txid={nowhere}")),
    ] {
        let page = caller.page(name, &query).await;
        assert!(page.records.is_empty());
        assert_eq!(text(&page.object, "totalPage"), "0");
    }
    assert!(caller.look_up("logs", nowhere).await.is_empty());
    assert!(caller.look_up("transactions_by_hash", nowhere).await.is_empty());
}

#[tokio::test]
async fn empty_chain_serves_every_endpoint() {
    let service = start(|settings| settings.transactions = 0);
    let caller = Caller::new(&service);
    for name in ["transactions", "large_transactions", "blocks", "cross_chain_transactions"] {
        assert!(caller.page(name, "").await.records.is_empty(), "{name}");
    }
    for transactions in 1..4 {
        let service = start(|settings| settings.transactions = transactions);
        let list = Caller::new(&service).all("transactions", "").await;
        assert_eq!(list.len() as u64, transactions);
    }
}
