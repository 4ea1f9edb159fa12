//! CPU cost of a page apart from the network: decoding it, signing its request, parsing numbers. `cargo bench`.

use std::fmt::Write as _;
use std::hint::black_box;

use bytes::Bytes;
use chainframe::client::{Secret, signature, timestamp};
use chainframe::columns::Value;
use chainframe::decode::{Decoder, Envelope};
use chainframe::interface::{AMOUNT_SCALE, Deployment, Kind, Number, endpoint};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

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

fn decode(criterion: &mut Criterion) {
    let decoder = Decoder::new(endpoint("token_transfers").expect("declared"), &Deployment::default());
    let body = Bytes::from(page());
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("page of 50 token transfers", |bencher| {
        bencher.iter(|| decoder.decode(black_box(&body), ROWS).expect("a page"));
    });
    group.finish();
    let Ok(Envelope::Page(page)) = decoder.decode(&body, ROWS) else { panic!("no page") };
    criterion.bench_function("value/amount of a record", |bencher| {
        let amount = page.columns.record().position("amount").expect("declared");
        bencher.iter(|| match page.columns.value(black_box(amount), 7) {
            Value::Number(digits) => digits.len(),
            _ => 0,
        });
    });
}

fn sign(criterion: &mut Criterion) {
    let (deployment, secret) = (Deployment::default(), Secret::new("0123456789ABCDEF".into()));
    let target = "/api/v5/main/token/transaction-list?chainShortName=MAIN&limit=50&page=1";
    criterion.bench_function("sign/a request", |bencher| {
        bencher.iter(|| {
            let now = timestamp(chrono::DateTime::UNIX_EPOCH);
            signature(&deployment, &secret, &now, black_box(target))
        });
    });
}

fn numbers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("number");
    for text in ["0.150851832900380503", "99999999999999999999.999999999999999999", "2.625E-6"] {
        group.bench_function(format!("{text} to decimal128"), |bencher| {
            bencher.iter(|| Number::parse(black_box(text)).and_then(|number| number.scaled(AMOUNT_SCALE)));
        });
    }
    group.bench_function("1700000000123 to a time", |bencher| bencher.iter(|| Kind::time(black_box("1700000000123"))));
    group.finish();
}

criterion_group!(core, decode, sign, numbers);
criterion_main!(core);
