//! Baseline for the benchmarks: decodes pages of token transfers into Arrow columns without signing, retries,
//! validation or error handling. `baseline URL PAGES [http]`; with `http` the bodies are not decoded.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Decimal128Builder, Int64Builder, StringBuilder, TimestampMillisecondBuilder,
};
use arrow_array::{Array, ArrayRef};
use futures_util::{StreamExt, stream};
use serde::Deserialize;

const IN_FLIGHT: usize = 8;

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    data: Vec<Page<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    transaction_list: Vec<Transfer<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transfer<'a> {
    txid: &'a str,
    block_hash: &'a str,
    height: &'a str,
    transaction_time: &'a str,
    from: &'a str,
    to: &'a str,
    is_from_contract: bool,
    is_to_contract: bool,
    amount: &'a str,
    transaction_symbol: &'a str,
    method_id: &'a str,
    token_contract_address: &'a str,
    protocol_type: &'a str,
    state: &'a str,
    token_id: &'a str,
}

#[derive(Default)]
struct Columns {
    strings: [StringBuilder; 10],
    height: Int64Builder,
    time: TimestampMillisecondBuilder,
    flags: [BooleanBuilder; 2],
    amount: Decimal128Builder,
}

impl Columns {
    fn push(&mut self, row: &Transfer<'_>) {
        let strings = [
            row.txid,
            row.block_hash,
            row.from,
            row.to,
            row.transaction_symbol,
            row.method_id,
            row.token_contract_address,
            row.protocol_type,
            row.state,
            row.token_id,
        ];
        for (column, value) in self.strings.iter_mut().zip(strings) {
            column.append_value(value);
        }
        self.height.append_value(row.height.parse().expect("a height"));
        self.time.append_value(row.transaction_time.parse().expect("a time"));
        self.flags[0].append_value(row.is_from_contract);
        self.flags[1].append_value(row.is_to_contract);
        self.amount.append_value(scaled(row.amount));
    }

    fn finish(mut self) -> Vec<ArrayRef> {
        let mut arrays: Vec<ArrayRef> = Vec::new();
        arrays.extend(self.strings.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        arrays.extend(self.flags.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        arrays.push(Arc::new(self.height.finish()));
        arrays.push(Arc::new(self.time.finish()));
        arrays.push(Arc::new(self.amount.finish().with_precision_and_scale(38, 18).expect("in range")));
        arrays
    }
}

/// The value times 10^18.
fn scaled(text: &str) -> i128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.bytes().chain(fraction.bytes());
    let value = digits.fold(0_i128, |value, digit| value * 10 + i128::from(digit - b'0'));
    value * 10_i128.pow(18 - fraction.len() as u32)
}

fn main() {
    let mut args = std::env::args().skip(1);
    let url = args.next().expect("a URL that a page number follows");
    let pages: u64 = args.next().and_then(|pages| pages.parse().ok()).expect("a number of pages");
    let only_http = args.next().is_some();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (rows, amount) = runtime.block_on(async {
        let client = reqwest::Client::new();
        let requests = (1..=pages).map(|page| {
            let request = client.get(format!("{url}{page}"));
            async move { request.send().await.expect("a response").bytes().await.expect("a body") }
        });
        let mut bodies = stream::iter(requests).buffered(IN_FLIGHT);
        let mut columns = Columns::default();
        while let Some(body) = bodies.next().await {
            if !only_http {
                let response: Response<'_> = sonic_rs::from_slice(&body).expect("a page");
                response.data.iter().flat_map(|page| &page.transaction_list).for_each(|row| columns.push(row));
            }
        }
        let arrays = columns.finish();
        let amounts = arrays[14].as_any().downcast_ref::<arrow_array::Decimal128Array>().expect("the amounts");
        (arrays[0].len(), amounts.values().iter().sum::<i128>())
    });
    println!("{rows} {amount}");
}
