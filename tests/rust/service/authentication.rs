//! Who is let in: every header missing, wrong, late; and what exactly is signed.

use chrono::{TimeDelta, Utc};

use super::http_client::{Caller, now, shared, signed};

async fn response(change: impl FnOnce(&mut Vec<(String, String)>)) -> (u16, String) {
    let caller = Caller::new(shared());
    let target = caller.target("blocks", "limit=1");
    let mut headers = signed(shared().settings(), &now(), "GET", &target);
    change(&mut headers);
    let reply = caller.send("GET", &target, &headers).await.unwrap();
    assert!(reply.headers.contains_key("date"));
    (reply.status, reply.code())
}

fn set(headers: &mut [(String, String)], name: &str, value: &str) {
    for (_, own) in headers.iter_mut().filter(|(own, _)| own.ends_with(name)) {
        value.clone_into(own);
    }
}

#[tokio::test]
async fn missing_headers_have_their_codes() {
    assert_eq!(response(|_| {}).await, (200, "0".into()));
    for (name, code) in [("KEY", "50103"), ("PASSPHRASE", "50104"), ("SIGN", "50106"), ("TIMESTAMP", "50107")] {
        let missing = response(|headers| headers.retain(|(own, _)| !own.ends_with(name))).await;
        assert_eq!(missing, (401, code.into()), "{name}");
    }
    assert_eq!(response(|headers| headers.clear()).await, (401, "50103".into()));
}

#[tokio::test]
async fn wrong_headers_have_their_codes() {
    for (name, value, code) in [
        ("KEY", "other", "50111"),
        ("PASSPHRASE", "other", "50105"),
        ("SIGN", "AAAA", "50113"),
        ("TIMESTAMP", "2026-01-31", "50112"),
        ("TIMESTAMP", "2026-01-31T09:08:57.715Z", "50102"),
    ] {
        assert_eq!(response(|headers| set(headers, name, value)).await, (401, code.into()), "{name}");
    }
    // Well within tolerance, but not what was signed.
    let later = (Utc::now() + TimeDelta::seconds(2)).format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    assert_eq!(response(|headers| set(headers, "TIMESTAMP", &later)).await, (401, "50113".into()));
}

#[tokio::test]
async fn timestamps_may_differ_by_thirty_seconds() {
    let caller = Caller::new(shared());
    let target = caller.target("blocks", "limit=1");
    for (seconds, expected) in [(-40, "50102"), (-20, "0"), (20, "0"), (40, "50102")] {
        let time = (Utc::now() + TimeDelta::seconds(seconds)).format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        let headers = signed(shared().settings(), &time, "GET", &target);
        assert_eq!(caller.send("GET", &target, &headers).await.unwrap().code(), expected, "{seconds}");
    }
}

/// A list's comma goes literally or encoded; either way what was signed must be what was sent.
#[tokio::test]
async fn signature_covers_the_target_as_sent() {
    let caller = Caller::new(shared());
    let literal = caller.target("transactions_by_hash", "txId=0xaa,0xbb");
    let encoded = caller.target("transactions_by_hash", "txId=0xaa%2C0xbb");
    let lower = caller.target("transactions_by_hash", "txId=0xaa%2c0xbb");
    let targets = [literal, encoded, lower];
    for sent in &targets {
        for signed_one in &targets {
            let headers = signed(shared().settings(), &now(), "GET", signed_one);
            let code = caller.send("GET", sent, &headers).await.unwrap().code();
            assert_eq!(code == "0", sent == signed_one, "{sent} signed as {signed_one}: {code}");
        }
    }
}
