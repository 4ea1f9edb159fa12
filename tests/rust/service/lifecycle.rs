//! Starting, stopping, counting, and the database in a file.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use chainframe::service::{Service, ServiceError, Settings};

use super::http_client::{Caller, start};

/// A path of its own, removed when done.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("chainframe-{}-{name}.sqlite", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_service_can_be_shared_between_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<Service>();
}

#[tokio::test]
async fn requests_are_counted_and_logged() {
    let service = start(|_| {});
    let caller = Caller::new(&service);
    caller.get("blocks", "limit=3").await;
    caller.get("blocks", "limit=0").await;
    caller.try_get("/nowhere?x=1").await.unwrap();
    assert_eq!(service.request_count(), 3);
    let log = service.request_log();
    let brief: Vec<_> = log.iter().map(|entry| (entry.status, entry.code.as_str())).collect();
    assert_eq!(brief, [(200, "0"), (400, "50015"), (404, "50404")]);
    assert_eq!((log[0].method.as_str(), log[0].query.as_str()), ("GET", "chainShortName=ZONE_CHAIN&limit=3"));
    assert_eq!((log[2].path.as_str(), log[2].query.as_str()), ("/nowhere", "x=1"));
}

#[test]
fn stopping_closes_idle_connections_and_may_be_repeated() {
    let service = start(|_| {});
    let address = service.url().trim_start_matches("http://").to_owned();
    let mut connection = TcpStream::connect(&address).unwrap();
    connection.write_all(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut buffer = [0; 4_096];
    assert!(connection.read(&mut buffer).unwrap() > 0);
    service.stop();
    service.stop();
    // The connection was kept open, and is closed now.
    assert!(matches!(connection.read(&mut buffer), Ok(0) | Err(_)));
    assert!(TcpStream::connect(&address).is_err());
    assert_eq!(service.request_count(), 1);
}

#[test]
fn a_taken_port_is_an_error_that_names_it() {
    let service = start(|_| {});
    let port: u16 = service.url().rsplit(':').next().unwrap().parse().unwrap();
    let error = Service::start(Settings { port, transactions: 0, ..Settings::default() }).unwrap_err();
    assert!(matches!(error, ServiceError::Setting { setting: "port", .. }));
    assert!(error.to_string().contains(&port.to_string()));
}

#[tokio::test]
async fn database_file_is_created_once_and_reused() {
    let scratch = Scratch::new("reuse");
    let open = |seed: u64, growth: u32| {
        start(|settings| {
            settings.db = Some(scratch.0.clone());
            settings.seed = seed;
            settings.growth = growth;
        })
    };
    let response = |service: Service| async move { Caller::new(&service).get("transactions", "limit=50").await.text };
    let in_memory = response(start(|_| {})).await;
    assert_eq!(response(open(7, 0)).await, in_memory);
    let written = std::fs::metadata(&scratch.0).unwrap().modified().unwrap();
    assert_eq!(response(open(7, 0)).await, in_memory);
    assert_eq!(std::fs::metadata(&scratch.0).unwrap().modified().unwrap(), written);
    // What grew is gone the next time: the same seed is the same chain.
    assert_eq!(response(open(7, 2)).await, in_memory);
    assert_eq!(response(open(7, 0)).await, in_memory);
    // Another seed makes another chain in the same file.
    assert_ne!(response(open(8, 0)).await, in_memory);
    assert_eq!(response(open(7, 0)).await, in_memory);
}

#[test]
fn foreign_files_are_left_alone() {
    let text = Scratch::new("text");
    std::fs::write(&text.0, "not a database, but dear to someone, and of some length").unwrap();
    let other = Scratch::new("other");
    let connection = rusqlite::Connection::open(&other.0).unwrap();
    connection.execute_batch("CREATE TABLE dear (to_someone TEXT)").unwrap();
    drop(connection);
    for scratch in [&text, &other] {
        let before = std::fs::read(&scratch.0).unwrap();
        let settings = Settings { db: Some(scratch.0.clone()), transactions: 10, ..Settings::default() };
        let error = Service::start(settings).unwrap_err();
        assert!(matches!(error, ServiceError::Setting { setting: "db", .. }), "{error}");
        assert!(error.to_string().contains("chainframe-"), "{error}");
        assert_eq!(std::fs::read(&scratch.0).unwrap(), before);
    }
    let nowhere = Settings { db: Some("/nonexistent/dir/x.sqlite".into()), ..Settings::default() };
    assert!(Service::start(nowhere).unwrap_err().to_string().contains("/nonexistent/dir/x.sqlite"));
}

#[test]
fn connection_with_an_unfinished_head_is_closed() {
    let service = start(|settings| settings.header_timeout = std::time::Duration::from_millis(20));
    let mut connection = TcpStream::connect(service.url().trim_start_matches("http://")).unwrap();
    connection.write_all(b"GET / HTTP/1.1\r\nHost: lo").unwrap();
    let mut response = Vec::new();
    // Ends only when the service closes the connection.
    let _ = connection.read_to_end(&mut response);
    assert_eq!(service.request_count(), 0);
}

#[test]
fn handling_of_a_request_is_not_limited_by_the_head_timeout() {
    let fault = serde_json::from_str(r#"{"kind":"delay","seconds":0.2}"#).unwrap();
    let service = start(|settings| {
        settings.header_timeout = std::time::Duration::from_millis(20);
        settings.faults = vec![fault];
    });
    let mut connection = TcpStream::connect(service.url().trim_start_matches("http://")).unwrap();
    for _ in 0..2 {
        connection.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut status = [0; 12];
        connection.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 404");
        let mut rest = [0; 4_096];
        while !rest.starts_with(b"}") {
            let read = connection.read(&mut rest).unwrap();
            assert!(read > 0);
            if rest[..read].ends_with(b"}") {
                break;
            }
        }
    }
}
