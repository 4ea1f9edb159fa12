//! A client of a few lines: signs, sends, reads. It shares no code with the service but the declared interface.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chainframe::interface::{Chain, Endpoint, Shape, SignatureEncoding, endpoint};
use chainframe::service::{Service, Settings};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use sha2::Sha256;

pub struct Caller<'s> {
    service: &'s Service,
    http: Client<HttpConnector, Empty<Bytes>>,
}

/// Why there is no response, or no whole one.
#[derive(Debug)]
pub enum Failure {
    Request(legacy::Error),
    Body(hyper::Error),
}

pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII").to_owned())
    }

    pub fn code(&self) -> String {
        self.json()["code"].as_str().expect("a code").to_owned()
    }
}

/// A page object's records.
pub struct Page {
    pub object: Value,
    pub records: Vec<Value>,
}

impl Page {
    pub fn number(&self, member: &str) -> u64 {
        text(&self.object, member).parse().expect("a number")
    }
}

pub fn text<'v>(object: &'v Value, member: &str) -> &'v str {
    object[member].as_str().unwrap_or_else(|| panic!("{member} is no text in {object}"))
}

pub fn integer(object: &Value, member: &str) -> i64 {
    text(object, member).parse().unwrap_or_else(|_| panic!("{member} is no integer in {object}"))
}

pub fn now() -> String {
    chrono::Utc::now().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// The four headers of a request.
pub fn signed(settings: &Settings, timestamp: &str, method: &str, target: &str) -> Vec<(String, String)> {
    let (credentials, deployment) = (&settings.credentials, &settings.deployment);
    let prehash = deployment.prehash(timestamp, method, target, "");
    let mac = Hmac::<Sha256>::new_from_slice(credentials.secret_key.as_bytes()).unwrap().chain_update(prehash);
    let tag = mac.finalize().into_bytes();
    let signature = match deployment.signature_encoding() {
        SignatureEncoding::Base64 => STANDARD.encode(tag),
        SignatureEncoding::Hex => tag.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let value = |what: &str, value: &str| (deployment.header(what), value.to_owned());
    vec![
        value("KEY", &credentials.api_key),
        value("PASSPHRASE", &credentials.passphrase),
        value("SIGN", &signature),
        value("TIMESTAMP", timestamp),
    ]
}

impl<'s> Caller<'s> {
    pub fn new(service: &'s Service) -> Self {
        Self { service, http: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// The target of a call, required parameters not included.
    pub fn target(&self, name: &str, query: &str) -> String {
        let (endpoint, settings) = (endpoint(name).unwrap(), self.service.settings());
        let chain = if endpoint.chain == Chain::Main { &settings.main_chain } else { &settings.zone_chain };
        let path = settings.deployment.expand(endpoint.path);
        format!("{path}?chainShortName={chain}{}{query}", if query.is_empty() { "" } else { "&" })
    }

    pub async fn send(&self, method: &str, target: &str, headers: &[(String, String)]) -> Result<Reply, Failure> {
        let mut request = Request::builder().method(method).uri(format!("{}{target}", self.service.url()));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Empty::new()).unwrap();
        let (head, body) = self.http.request(request).await.map_err(Failure::Request)?.into_parts();
        let body = body.collect().await.map_err(Failure::Body)?.to_bytes();
        let text = String::from_utf8(body.into()).unwrap();
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, text })
    }

    pub async fn try_get(&self, target: &str) -> Result<Reply, Failure> {
        self.send("GET", target, &signed(self.service.settings(), &now(), "GET", target)).await
    }

    pub async fn get(&self, name: &str, query: &str) -> Reply {
        self.try_get(&self.target(name, query)).await.expect("a response")
    }

    /// HTTP status, code and message of an error response.
    pub async fn error(&self, name: &str, query: &str) -> (u16, String, String) {
        let reply = self.get(name, query).await;
        let json = reply.json();
        assert_eq!(json["data"], Value::Array(Vec::new()), "{json}");
        (reply.status, reply.code(), text(&json, "msg").to_owned())
    }

    pub async fn page(&self, name: &str, query: &str) -> Page {
        let reply = self.get(name, query).await;
        let mut json = reply.json();
        assert_eq!((reply.status, json["code"].as_str()), (200, Some("0")), "{query}: {json}");
        let Shape::Paged { list, .. } = endpoint(name).unwrap().shape else { panic!("{name} has no pages") };
        let object = json["data"][0].take();
        let records = object[list].as_array().unwrap_or_else(|| panic!("no {list} in {object}")).clone();
        Page { object, records }
    }

    /// Every page of a list, in the largest pages there are.
    pub async fn all(&self, name: &str, query: &str) -> Vec<Value> {
        let limit = endpoint(name).and_then(Endpoint::page_size_max).unwrap();
        let mut records = Vec::new();
        for number in 1.. {
            let page = self.page(name, &format!("{query}&limit={limit}&page={number}")).await;
            records.extend(page.records.iter().cloned());
            if number >= page.number("totalPage") {
                break;
            }
        }
        records
    }

    /// The records of a lookup.
    pub async fn look_up(&self, name: &str, hashes: &str) -> Vec<Value> {
        let reply = self.get(name, &format!("txId={hashes}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (200, "0"), "{}", reply.text);
        reply.json()["data"].as_array().expect("records").clone()
    }
}

/// A small chain that tests only read; made once.
pub fn shared() -> &'static Service {
    static SHARED: OnceLock<Service> = OnceLock::new();
    SHARED.get_or_init(|| start(|settings| settings.transactions = 3_000))
}

pub fn start(change: impl FnOnce(&mut Settings)) -> Service {
    let mut settings = Settings { transactions: 300, ..Settings::default() };
    change(&mut settings);
    Service::start(settings).expect("the service starts")
}

/// Parameters that an endpoint requires, with values that find something.
pub async fn required(caller: &Caller<'_>, name: &str) -> String {
    match name {
        "token_transfers" => format!("tokenContractAddress={}", busiest(caller, "output").await),
        "address_transactions" => format!("address={}", busiest(caller, "input").await),
        "transactions_by_hash" | "logs" => {
            let list = caller.page("transactions", "limit=50").await;
            for record in &list.records {
                let hash = text(record, "txid");
                if !caller.look_up("logs", hash).await.is_empty() {
                    return format!("txId={hash}");
                }
            }
            panic!("nothing has logs");
        }
        _ => String::new(),
    }
}

/// The address most often seen in that member; for outputs, of those that take calls.
pub async fn busiest(caller: &Caller<'_>, member: &str) -> String {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for record in caller.all("transactions", "").await {
        if member == "input" || text(&record, "methodId") == "0xa9059cbb" {
            *counts.entry(text(&record, member).to_owned()).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).expect("transactions").0
}
