//! CPU cost of a page apart from the network: decoding it, signing its request, parsing numbers. `cargo bench`.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use chainframe::client::{Secret, signature, timestamp};
use chainframe::columns::Value;
use chainframe::decode::{Decoder, Envelope};
use chainframe::interface::{AMOUNT_SCALE, Deployment, Kind, Number, endpoint};

const ROWS: usize = 50;

fn page() -> String {
    let mut rows = String::new();
    for row in 0..ROWS {
        let comma = if row == 0 { "" } else { "," };
        let _ = write!(
            rows,
            r#"{comma}{{"txid":"0x{row:064x}","blockHash":"0x{row:064x}","height":"{}","transactionTime":"{}","#,
            20_000_000 + row,
            1_700_000_000_000_u64 + row as u64,
        );
        let _ = write!(
            rows,
            r#""from":"0x{row:040x}","to":"0x{row:040x}","isFromContract":false,"isToContract":true,"amount":"{row}.15085183","#
        );
        let _ = write!(
            rows,
            r#""transactionSymbol":"MADEUP","methodId":"0xa9059cbb","tokenContractAddress":"0x{row:040x}","protocolType":"token_20","state":"success","tokenId":""}}"#
        );
    }
    format!(
        r#"{{"code":"0","msg":"","data":[{{"page":"1","limit":"50","totalPage":"1","transactionList":[{rows}]}}]}}"#
    )
}

/// Prints the least time of a call, of a hundred turns of ten milliseconds.
fn measure<T>(name: &str, mut call: impl FnMut() -> T) {
    let mut calls = 1;
    while seconds(calls, &mut call) < 0.01 {
        calls *= 2;
    }
    let least = (0..100).map(|_| seconds(calls, &mut call)).fold(f64::INFINITY, f64::min);
    println!("{name:48} {:10.1} ns", least / f64::from(calls) * 1e9);
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn seconds<T>(calls: u32, call: &mut impl FnMut() -> T) -> f64 {
    let begin = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    begin.elapsed().as_secs_f64()
}

fn decode() {
    let decoder = Decoder::new(endpoint("token_transfers").expect("declared"), &Deployment::default());
    let body = Bytes::from(page());
    measure("decode/page of 50 token transfers", || decoder.decode(black_box(&body), ROWS).expect("a page"));
    let Ok(Envelope::Page(page)) = decoder.decode(&body, ROWS) else { panic!("no page") };
    let amount = page.columns.record().position("amount").expect("declared");
    measure("value/amount of a record", || match page.columns.value(black_box(amount), 7) {
        Value::Number(digits) => digits.len(),
        _ => 0,
    });
}

fn sign() {
    let (deployment, secret) = (Deployment::default(), Secret::new("0123456789ABCDEF".into()));
    let target = "/api/v5/main/token/transaction-list?chainShortName=MAIN&limit=50&page=1";
    measure("sign/a request", || {
        let now = timestamp(chrono::DateTime::UNIX_EPOCH);
        signature(&deployment, &secret, &now, black_box(target))
    });
}

fn numbers() {
    for text in ["0.150851832900380503", "99999999999999999999.999999999999999999", "2.625E-6"] {
        measure(&format!("number/{text}"), || {
            Number::parse(black_box(text)).and_then(|number| number.scaled(AMOUNT_SCALE))
        });
    }
    measure("number/1700000000123 to a time", || Kind::time(black_box("1700000000123")));
}

fn main() {
    decode();
    sign();
    numbers();
}
