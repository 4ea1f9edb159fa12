//! Faults as a client sees them, and the requests they apply to.

use chainframe::service::{Fault, Service};
use chrono::DateTime;

use super::http_client::{Caller, Failure, now, signed, start};

fn faulty(faults: &[&str]) -> Service {
    start(|settings| settings.faults = read(faults))
}

fn read(faults: &[&str]) -> Vec<Fault> {
    faults.iter().map(|text| serde_json::from_str(text).expect("a fault")).collect()
}

#[tokio::test]
async fn faults_replace_responses() {
    let service = faulty(&[]);
    let caller = Caller::new(&service);
    for (fault, status, code) in [
        (r#"{"kind":"status","status":503,"code":"50001"}"#, 503, "50001"),
        (r#"{"kind":"code","code":"50013","msg":"busy"}"#, 200, "50013"),
        (r#"{"kind":"throttle"}"#, 429, "50011"),
        (r#"{"kind":"throttle","retry_after":0.5}"#, 429, "50011"),
        (r#"{"kind":"empty"}"#, 200, "0"),
    ] {
        service.set_faults(read(&[fault])).unwrap();
        let reply = caller.get("blocks", "").await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{fault}");
        assert_eq!(reply.json()["data"].as_array().map(Vec::len), Some(0), "{fault}");
        let retry_after = reply.headers.get("retry-after").map(|value| value.to_str().unwrap());
        assert_eq!(retry_after, fault.contains("retry_after").then_some("0.5"));
    }
    service.set_faults(read(&[r#"{"kind":"status","status":500}"#])).unwrap();
    let reply = caller.get("blocks", "").await;
    assert_eq!((reply.status, reply.text.as_str()), (500, ""));
    service.set_faults(read(&[r#"{"kind":"html","status":502}"#])).unwrap();
    let reply = caller.get("blocks", "").await;
    assert_eq!(reply.status, 502);
    assert!(reply.text.starts_with("<!DOCTYPE html>"));
    assert!(reply.headers["content-type"].to_str().unwrap().starts_with("text/html"));
    service.set_faults(Vec::new()).unwrap();
    assert_eq!(caller.get("blocks", "").await.code(), "0");
}

#[tokio::test]
async fn oversized_bodies_have_their_announced_length() {
    let service = faulty(&[r#"{"kind":"oversized","size_mib":3}"#]);
    let reply = Caller::new(&service).get("blocks", "").await;
    assert_eq!(reply.headers["content-length"], reply.text.len().to_string());
    assert!(reply.text.len() > 3 << 20);
    assert_eq!(reply.code(), "0");
}

#[tokio::test]
async fn truncated_bodies_end_before_their_length() {
    let service = faulty(&[r#"{"kind":"truncate"}"#]);
    let caller = Caller::new(&service);
    for faults in [
        &[r#"{"kind":"truncate"}"#][..],
        &[r#"{"kind":"truncate","bytes":10}"#],
        &[r#"{"kind":"truncate","bytes":999999}"#],
    ] {
        service.set_faults(read(faults)).unwrap();
        let Err(Failure::Body(error)) = caller.try_get(&caller.target("blocks", "")).await else {
            panic!("no incomplete body")
        };
        assert!(format!("{error:?}").contains("IncompleteBody"), "{error:?}");
    }
    service.set_faults(Vec::new()).unwrap();
    assert_eq!(caller.get("blocks", "").await.code(), "0");
}

#[tokio::test]
async fn reset_connections_send_no_response() {
    let service = faulty(&[r#"{"kind":"reset","times":1}"#]);
    let caller = Caller::new(&service);
    let target = caller.target("blocks", "");
    let Err(Failure::Request(error)) = caller.try_get(&target).await else { panic!("a response") };
    assert!(format!("{error:?}").contains("ConnectionReset"), "{error:?}");
    assert_eq!(caller.get("blocks", "").await.code(), "0");
    let log = service.request_log();
    assert_eq!((log[0].status, log[0].code.as_str(), log[1].status), (0, "", 200));
}

#[tokio::test]
async fn slow_bodies_are_complete() {
    let service = faulty(&[]);
    let caller = Caller::new(&service);
    let whole = caller.get("blocks", "").await.text;
    service
        .set_faults(read(&[r#"{"kind":"slow_body","seconds":0.04}"#, r#"{"kind":"delay","seconds":0.01}"#]))
        .unwrap();
    let slow = caller.get("blocks", "").await;
    assert_eq!(slow.text, whole);
    assert_eq!(slow.headers["content-length"], whole.len().to_string());
}

#[tokio::test]
async fn delayed_response_does_not_block_shutdown() {
    let service = faulty(&[r#"{"kind":"delay","seconds":3600}"#]);
    let caller = Caller::new(&service);
    let target = caller.target("blocks", "");
    let stop = async {
        while service.request_count() == 0 {
            tokio::task::yield_now().await;
        }
        service.stop();
    };
    let (response, ()) = tokio::join!(caller.try_get(&target), stop);
    assert!(response.is_err());
}

#[tokio::test]
async fn clock_skew_applies_to_the_date_and_the_signature_check() {
    let service = faulty(&[r#"{"kind":"clock_skew","seconds":300}"#]);
    let caller = Caller::new(&service);
    let target = caller.target("blocks", "");
    let reply = caller.try_get(&target).await.unwrap();
    assert_eq!((reply.status, reply.code().as_str()), (401, "50102"));
    let date = DateTime::parse_from_rfc2822(reply.headers["date"].to_str().unwrap()).unwrap();
    // A client that believes the date is let in.
    let time = date.to_utc().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    let reply = caller.send("GET", &target, &signed(service.settings(), &time, "GET", &target)).await.unwrap();
    assert_eq!(reply.code(), "0");
    service.set_faults(Vec::new()).unwrap();
    let reply = caller.send("GET", &target, &signed(service.settings(), &now(), "GET", &target)).await.unwrap();
    assert_eq!(reply.code(), "0");
}

#[tokio::test]
async fn selectors_limit_a_fault_to_requests() {
    let service = faulty(&[
        r#"{"kind":"status","status":503,"code":"50001","every":3}"#,
        r#"{"kind":"code","code":"50013","times":1,"path":"block-list"}"#,
    ]);
    let caller = Caller::new(&service);
    let mut codes = Vec::new();
    for name in ["tokens", "blocks", "blocks", "tokens", "blocks", "tokens"] {
        codes.push(caller.get(name, "").await.code());
    }
    assert_eq!(codes, ["0", "50013", "50001", "0", "0", "50001"]);
    let logged: Vec<String> = service.request_log().into_iter().map(|entry| entry.code).collect();
    assert_eq!(logged, codes);
    // Replacing the faults resets their counts.
    service.set_faults(read(&[r#"{"kind":"empty","times":1}"#])).unwrap();
    assert!(caller.get("blocks", "").await.text.contains("\"data\":[]"));
    assert!(!caller.get("blocks", "").await.text.contains("\"data\":[]"));
}
