//! Variants of responses of deployed services, each accepted or rejected.

use bytes::Bytes;
use proptest::prelude::*;

use super::{DecodeError, Decoder, Envelope, Page};
use crate::columns::{Column, Columns, ColumnsBuilder, Projection, StringLayout, Value};
use crate::interface::{Deployment, Number, endpoint};

fn decoder(call: &str) -> Decoder {
    Decoder::new(endpoint(call).unwrap(), &Deployment::default())
}

fn bytes(body: &str) -> Bytes {
    Bytes::copy_from_slice(body.as_bytes())
}

fn page(call: &str, body: &str) -> Page {
    match decoder(call).decode(&bytes(body), 4) {
        Ok(Envelope::Page(page)) => page,
        other => panic!("{body} gave {other:?}"),
    }
}

fn rejected(call: &str, body: &str) -> (String, String) {
    let error: DecodeError = decoder(call).decode(&bytes(body), 4).unwrap_err();
    (error.path(), error.excerpt(body.as_bytes(), <[u8]>::to_vec))
}

fn block(members: &str) -> String {
    format!(
        r#"{{"code":"0","msg":"","data":[{{"page":"1","limit":"20","totalPage":"1","total":"1","data":[{{{members}}}]}}]}}"#
    )
}

fn value<'a>(page: &'a Page, name: &str, row: usize) -> Value<'a> {
    page.columns.value(page.columns.record().position(name).unwrap(), row)
}

#[test]
fn numbers_may_be_strings_or_numbers() {
    for height in ["\"4307974\"", "4307974", "\"4307974.0\"", "4307974.0", "\"4.307974e6\""] {
        assert_eq!(
            value(&page("blocks", &block(&format!("\"height\":{height}"))), "height", 0),
            Value::Integer(4_307_974)
        );
    }
}

#[test]
fn empty_string_is_missing_except_in_string_fields() {
    let page = page("blocks", &block(r#""height":"","blockTime":"","miner":"","hash":null"#));
    assert_eq!(value(&page, "height", 0), Value::Null);
    assert_eq!(value(&page, "block_time", 0), Value::Null);
    assert_eq!(value(&page, "miner", 0), Value::Utf8(""));
    assert_eq!(value(&page, "hash", 0), Value::Null);
    assert_eq!(value(&page, "transaction_count", 0), Value::Null);
}

#[test]
fn error_has_path_and_excerpt() {
    for (members, path, excerpt) in [
        (r#""height":"4307974.5""#, "data[0].data[0].height", "\"4307974.5\""),
        (r#""height":true"#, "data[0].data[0].height", "true"),
        (r#""blockTime":"yesterday""#, "data[0].data[0].blockTime", "\"yesterday\""),
        (r#""hash":{"a":[1]}"#, "data[0].data[0].hash", r#"{"a":[1]}"#),
        (r#""hash":"0x1"},{"height":[]"#, "data[0].data[1].height", "[]"),
    ] {
        assert_eq!(rejected("blocks", &block(members)), (path.into(), excerpt.into()));
    }
    let transfers = |amount: &str| {
        format!(
            r#"{{"code":0,"data":[{{"totalPage":1,"transactionList":[{{"txid":"0x1"}},{{"amount":"{amount}"}}]}}]}}"#
        )
    };
    for amount in ["NaN", "inf", "0x10", "1,000"] {
        assert_eq!(rejected("token_transfers", &transfers(amount)).0, "data[0].transactionList[1].amount");
    }
}

#[test]
fn either_spelling_of_a_pair_is_read_in_any_order() {
    let list = |members: &str| {
        format!(r#"{{"data":[{{"transactionList":[{{{members}}}],"totalPage":"1"}}],"msg":"","code":"0"}}"#)
    };
    for members in [
        r#""unknown":[{"deep":{}}],"txId":"0x1","txFee":"2.625E-6","isFromContract":true,"isToContract":false,"symbol":"A","method":"0x""#,
        r#""methodId":"0x","transactionSymbol":"A","isOutputContract":false,"isInputContract":true,"txfee":"0.000002625","txid":"0x1""#,
        r#""methodId":"","method":"0x","symbol":"","transactionSymbol":"A","isInputContract":"","isFromContract":true,"isToContract":false,"txfee":"2.625E-6","txid":"0x1""#,
    ] {
        let page = page("large_transactions", &list(members));
        assert_eq!(value(&page, "tx_id", 0), Value::Utf8("0x1"));
        assert_eq!(value(&page, "is_input_contract", 0), Value::Boolean(true));
        assert_eq!(value(&page, "is_output_contract", 0), Value::Boolean(false));
        assert_eq!(value(&page, "transaction_symbol", 0), Value::Utf8("A"));
        assert_eq!(value(&page, "method_id", 0), Value::Utf8("0x"));
        let Value::Number(fee) = value(&page, "tx_fee", 0) else { panic!("no fee") };
        assert_eq!(Number::parse(fee).and_then(|fee| fee.scaled(18)), Some(2_625_000_000_000));
    }
}

#[test]
fn empty_results_have_several_forms() {
    for data in ["[]", "null", "{\"totalPage\":\"0\"}", "[{\"totalPage\":\"0\",\"tokenList\":null}]"] {
        let page = page("tokens", &format!(r#"{{"code":"0","msg":"","data":{data}}}"#));
        assert_eq!(page.columns.rows(), 0);
    }
    assert_eq!(page("logs", r#"{"code":"0","data":{"txId":"0x3","topics":["0x1","0x2"]}}"#).columns.rows(), 1);
}

#[test]
fn unexpected_structure_is_an_error() {
    assert_eq!(rejected("tokens", r#"{"code":"0","data":[{"totalPage":"3"}]}"#).0, "data[0].tokenList");
    assert_eq!(rejected("tokens", r#"{"code":"0","data":[{"tokenFullName":"x"}]}"#).0, "data[0].tokenList");
    // One page twice, or two parts of it.
    for page in
        [r#"{"tokenList":[{"tokenContractAddress":"0x1"}],"totalPage":"1"}"#, r#"{"tokenList":[],"totalPage":"0"}"#]
    {
        assert_eq!(rejected("tokens", &format!(r#"{{"code":"0","data":[{page},{page}]}}"#)).0, "data[1]");
    }
    assert_eq!(rejected("tokens", r#"{"code":"0","msg":""}"#).0, "data");
    assert_eq!(rejected("tokens", r#"{"data":[]}"#).0, "code");
    assert_eq!(rejected("logs", r#"{"code":"0","data":["x"]}"#).0, "data[0]");
}

#[test]
fn error_code_takes_precedence_over_data() {
    for body in [
        r#"{"code":"50011","msg":"slow down"}"#,
        r#"{"msg":"slow down","code":50011,"data":"nothing"}"#,
        r#"{"data":{"height":[]},"msg":"slow down","code":"50011"}"#,
    ] {
        match decoder("blocks").decode(&bytes(body), 4) {
            Ok(Envelope::Error { code, msg }) => assert_eq!((code.as_str(), msg.as_str()), ("50011", "slow down")),
            other => panic!("{body} gave {other:?}"),
        }
    }
}

#[test]
fn invalid_json_is_retryable() {
    let whole = block(r#""height":"1""#);
    for body in ["", "<html>", &whole[..whole.len() - 3], "[]x", "{\"code\":\"0\",\"data\":[]} trailing"] {
        let error = decoder("blocks").decode(&bytes(body), 4).unwrap_err();
        assert!(error.broken || body == "[]x", "{body}: {error:?}");
    }
    assert!(!decoder("blocks").decode(&bytes(&block(r#""height":"x""#)), 4).unwrap_err().broken);
    let deep = format!(r#"{{"code":"0","data":{}"#, "[".repeat(100_000));
    assert!(decoder("blocks").decode(&bytes(&deep), 4).is_err());
}

#[test]
fn memory_for_a_page_is_that_of_its_body_whatever_was_requested() {
    let decoded = decoder("blocks").decode_columns(&bytes(&block(r#""hash":"0x1""#)), 1 << 50, Projection::ALL);
    assert!(matches!(decoded.unwrap(), Envelope::Page(page) if page.columns.rows() == 1));
}

#[test]
#[cfg_attr(miri, ignore = "Miri takes an hour for the records")]
fn responses_are_bounded_in_records() {
    let list = |records: usize| {
        let records = vec![r#"{"hash":""}"#; records].join(",");
        format!(r#"{{"code":"0","data":[{{"totalPage":"1","total":"1","data":[{records}]}}]}}"#)
    };
    assert_eq!(page("blocks", &list(10_000)).columns.rows(), 10_000);
    let error = decoder("blocks").decode(&bytes(&list(10_001)), 100).unwrap_err();
    assert_eq!((error.path(), error.broken), ("data[0].data[10000]".into(), false));
    assert_eq!(error.problem, "the response has more than 10000 records");
    assert!(decoder("blocks").decode(&bytes(&list(10_001)), 101).is_ok());
    // Lookups of logs are bounded by the deployment's log window.
    let logs = format!(r#"{{"code":"0","data":[{}]}}"#, vec![r#"{"txId":""}"#; 10_001].join(","));
    assert!(decoder("logs").decode(&bytes(&logs), 16).is_err());
    let wide = Deployment::default().with_windows(1, 10_000).unwrap();
    assert!(Decoder::new(endpoint("logs").unwrap(), &wide).decode(&bytes(&logs), 16).is_ok());
}

#[test]
fn a_page_with_two_lists_is_an_error() {
    let body = r#"{"code":"0","data":[{"total":"2","data":[{"height":"1"}],"data":[{"height":"2"}]}]}"#;
    assert_eq!(rejected("blocks", body), ("data[0].data".into(), r#"[{"height":"2"}]"#.into()));
}

#[test]
fn counts_that_offsets_could_overflow_with_are_errors() {
    let body = |count: u64| format!(r#"{{"code":"0","data":[{{"totalPage":"{count}","data":[]}}]}}"#);
    assert_eq!(page("blocks", &body(1 << 50)).paging.total_pages, Some(1 << 50));
    assert_eq!(rejected("blocks", &body((1 << 50) + 1)).0, "data[0].totalPage");
}

#[test]
fn lone_surrogates_do_not_hide_a_record() {
    let page = page("blocks", &block(r#""hash":"0x1","miner":"cut \ud83d","h\udc00":1"#));
    assert_eq!(value(&page, "miner", 0), Value::Utf8("cut \u{fffd}"));
}

#[test]
fn lists_of_strings_may_be_empty() {
    let page = page("logs", r#"{"code":"0","data":[{"txId":"0x1","topics":["","0x1"]},{"txId":"0x2","topics":[]}]}"#);
    assert_eq!(value(&page, "topics", 0), Value::Utf8List(vec!["", "0x1"]));
    assert_eq!(value(&page, "topics", 1), Value::Utf8List(vec![]));
}

#[test]
fn excerpt_has_no_line_breaks_or_direction_marks() {
    use super::one_line;
    assert_eq!(one_line("a\nb\u{2028}c\u{202e}d\0e\u{1b}[31m", 80), "a b c d e [31m");
    assert_eq!(one_line("a\u{200b}b\u{ad}c\u{feff}d\u{e0041}e\u{2060}f", 80), "a b c d e f");
    assert_eq!(one_line("\u{1f468}\u{200d}\u{1f469}", 80), "\u{1f468}\u{200d}\u{1f469}");
    assert_eq!(one_line("abcdef", 6), "abcdef");
    assert_eq!(one_line("abcdefg", 6), "abcdef…");
}

#[test]
fn names_of_a_deployment_apply_to_members_and_directions() {
    let deployment = Deployment::new("XY", "alpha", "beta", "{timestamp}{target}", "hex").unwrap();
    let decoder = Decoder::new(endpoint("cross_chain_transactions").unwrap(), &deployment);
    let body = block(r#""id":"","txType":"BETAToAlpha","alphaTxHash":"0xa","betaBlockHeight":"7","valueRaw":"1e3""#);
    let Ok(Envelope::Page(page)) = decoder.decode(&bytes(&body), 1) else { panic!("rejected") };
    assert_eq!(value(&page, "tx_type", 0), Value::Utf8("ZoneToMain"));
    assert_eq!(value(&page, "main_tx_hash", 0), Value::Utf8("0xa"));
    assert_eq!(value(&page, "zone_block_height", 0), Value::Integer(7));
    assert_eq!(value(&page, "value_raw", 0), Value::Uint256("1000"));
}

#[test]
fn only_projected_columns_and_keys_are_decoded() {
    let record = endpoint("blocks").unwrap().record();
    let projection = Projection::with_keys(record, &["miner".into()]);
    let decode = |body: &str| match decoder("blocks").decode_columns(&bytes(body), 4, projection) {
        Ok(Envelope::Page(page)) => page.columns,
        other => panic!("{body} gave {other:?}"),
    };
    let is_skipped =
        |columns: &Columns, name| matches!(columns.column(record.position(name).unwrap()), Column::Skipped(_));
    let columns = decode(&block(r#""hash":"0xa","height":"7","miner":"0xb","transactionCount":"no number""#));
    assert!(is_skipped(&columns, "transaction_count"));
    assert!(["hash", "height", "block_time", "miner"].iter().all(|name| !is_skipped(&columns, name)));
    assert_eq!(columns.text(record.position("miner").unwrap(), 0), Some("0xb"));
    // A record without a key is recognized by all it has.
    let columns = decode(&block(r#""hash":"","miner":"0xb","transactionCount":"5""#));
    assert!(!columns.is_projected());
    rejected("blocks", &block(r#""hash":"0xa","transactionCount":"no number""#));
}

#[test]
fn projected_and_whole_pages_make_one_result() {
    let record = endpoint("blocks").unwrap().record();
    let projection = Projection::with_keys(record, &["miner".into()]);
    let pages =
        [r#""hash":"0xa","miner":"0xb","transactionCount":"5""#, r#""hash":null,"miner":"0xc","transactionCount":"6""#];
    let pages = pages.map(|members| match decoder("blocks").decode_columns(&bytes(&block(members)), 4, projection) {
        Ok(Envelope::Page(page)) => page.columns,
        other => panic!("{members} gave {other:?}"),
    });
    for order in [[0, 1], [1, 0]] {
        let mut result = ColumnsBuilder::with_capacity_from(&pages[order[0]], 2, StringLayout::Utf8);
        order.iter().for_each(|page| result.append(&pages[*page]));
        let result = result.finish();
        let miners = (0..2).map(|row| result.text(record.position("miner").unwrap(), row).unwrap());
        assert_eq!(miners.collect::<Vec<_>>(), order.map(|page| ["0xb", "0xc"][page]));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decoder("blocks").decode(&bytes.into(), 4);
    }

    #[test]
    fn damaged_responses_do_not_panic(at in 0_usize..150, byte in any::<u8>(), cut in 0_usize..200) {
        let mut body = block(r#""height":"12","hash":"0x\u00e9","blockTime":"1700000000000","miner":"é""#).into_bytes();
        let at = at % body.len();
        body[at] = byte;
        body.truncate(cut.max(1));
        if let Err(error) = decoder("blocks").decode(&body.clone().into(), 4) {
            prop_assert!(error.excerpt(&body, <[u8]>::to_vec).chars().count() <= 81);
        }
    }
}

#[test]
fn detached_columns_do_not_keep_the_response() {
    let body = bytes(&block(r#""hash":"0x0123456789abcdef","miner":"","height":"7","blockTime":"1700000000000""#));
    let columns = match decoder("blocks").decode(&body, 4) {
        Ok(Envelope::Page(page)) => page.columns,
        other => panic!("{other:?}"),
    };
    assert!(!body.is_unique());
    let detached = columns.detached();
    assert_eq!(detached, columns);
    drop(columns);
    assert!(body.is_unique());
    assert_eq!(detached.value(detached.record().position("height").unwrap(), 0), Value::Integer(7));
}

#[test]
fn members_of_a_page_are_counted_whatever_is_projected() {
    let record = endpoint("blocks").unwrap().record();
    let bit = |name| 1_u64 << record.position(name).unwrap();
    let body =
        block(r#""hash":"0x1","height":null,"Miner":"0x2"},{"hash":"0x3","blockTime":"","Miner":"0x2","x":[{}]"#);
    for projection in [Projection::ALL, Projection::with_keys(record, &["miner".into()])] {
        let decoded = decoder("blocks").decode_columns(&bytes(&body), 4, projection);
        let Ok(Envelope::Page(page)) = decoded else { panic!("{decoded:?}") };
        assert_eq!(page.members.in_some, bit("hash") | bit("height") | bit("block_time"));
        assert_eq!(page.members.in_all, bit("hash"));
        assert_eq!(page.members.unknown, ["Miner", "x"]);
        assert!(!page.members.has_replaced);
    }
}

#[test]
fn names_of_unknown_members_are_bounded() {
    let unknown: String = (0..1_000).map(|number| format!(r#","unknown{number}":"{}""#, "x".repeat(200))).collect();
    let long = format!(r#","{}":1"#, "y".repeat(5_000));
    let page = page("blocks", &block(&format!(r#""hash":"0x1"{long}{unknown}"#)));
    assert_eq!(page.members.unknown.len(), 64);
    let (_, excerpt) = rejected("blocks", &block(&format!(r#""a":"0x1"{long}{unknown}"#)));
    assert!(excerpt.chars().count() <= 81);
}

#[test]
fn nothing_is_left_of_a_record_that_is_read_again() {
    // Each record takes one of the slow ways, and the next one is read from its own beginning.
    let records = [
        r#"{"txId":"0x1" , "txid": "0x1","amount":"1"}"#,
        r#"{ "amount":"2","method":"swap","methodId":"0xa","txid":"0x2"}"#,
        r#"{"txid":"0x3","transactionSymbol":"\ud83d","amount":"3"}"#,
        r#"{"txid":"0x4","txfee":"","txFee":"7","amount":"4"}"#,
    ];
    let body = format!(r#"{{"code":"0","data":[{{"transactionList":[{}],"totalPage":"1"}}]}}"#, records.join(" , "));
    let page = page("transactions", &body);
    assert_eq!((page.columns.rows(), page.paging.total_pages), (4, Some(1)));
    for row in 0..4 {
        assert_eq!(value(&page, "tx_id", row), Value::Utf8(&format!("0x{}", row + 1)));
        assert_eq!(value(&page, "amount", row), Value::Number(&(row + 1).to_string()));
    }
    assert_eq!(value(&page, "method_id", 1), Value::Utf8("0xa"));
    assert_eq!(value(&page, "transaction_symbol", 2), Value::Utf8("\u{fffd}"));
    assert_eq!(value(&page, "tx_fee", 3), Value::Number("7"));
    assert!(page.members.has_replaced);
}

#[test]
fn a_name_that_comes_often_under_a_later_spelling_is_an_error() {
    // Each of them would be compared with the whole record.
    let names = vec![r#""method":"swap""#; 100_000].join(",");
    let body = format!(r#"{{"code":"0","data":[{{"txId":"0x1","methodId":"0xa",{names}}}]}}"#);
    assert_eq!(rejected("transactions_by_hash", &body).0, "data[0].method");
}
