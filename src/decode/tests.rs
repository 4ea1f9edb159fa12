//! The habits of deployed services, each accepted or refused.

use bytes::Bytes;
use proptest::prelude::*;

use super::{Answer, Decoder, Page, Undecodable};
use crate::columns::Value;
use crate::interface::{Deployment, Number, endpoint};

fn decoder(call: &str) -> Decoder {
    Decoder::new(endpoint(call).unwrap(), &Deployment::default())
}

fn bytes(body: &str) -> Bytes {
    Bytes::copy_from_slice(body.as_bytes())
}

fn page(call: &str, body: &str) -> Page {
    match decoder(call).decode(&bytes(body), 4) {
        Ok(Answer::Page(page)) => page,
        other => panic!("{body} gave {other:?}"),
    }
}

fn refused(call: &str, body: &str) -> (String, String) {
    let error: Undecodable = decoder(call).decode(&bytes(body), 4).unwrap_err();
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
fn numbers_come_as_text_or_bare() {
    for height in ["\"4307974\"", "4307974", "\"4307974.0\"", "4307974.0", "\"4.307974e6\""] {
        assert_eq!(
            value(&page("blocks", &block(&format!("\"height\":{height}"))), "height", 0),
            Value::Integer(4_307_974)
        );
    }
}

#[test]
fn empty_text_is_no_value_but_for_text() {
    let page = page("blocks", &block(r#""height":"","blockTime":"","miner":"","hash":null"#));
    assert_eq!(value(&page, "height", 0), Value::Null);
    assert_eq!(value(&page, "block_time", 0), Value::Null);
    assert_eq!(value(&page, "miner", 0), Value::Text(""));
    assert_eq!(value(&page, "hash", 0), Value::Null);
    assert_eq!(value(&page, "transaction_count", 0), Value::Null);
}

#[test]
fn an_error_names_the_member_and_shows_it() {
    for (members, path, excerpt) in [
        (r#""height":"4307974.5""#, "data[0].data[0].height", "\"4307974.5\""),
        (r#""height":true"#, "data[0].data[0].height", "true"),
        (r#""blockTime":"yesterday""#, "data[0].data[0].blockTime", "\"yesterday\""),
        (r#""hash":{"a":[1]}"#, "data[0].data[0].hash", r#"{"a":[1]}"#),
        (r#""hash":"0x1"},{"height":[]"#, "data[0].data[1].height", "[]"),
    ] {
        assert_eq!(refused("blocks", &block(members)), (path.into(), excerpt.into()));
    }
    let transfers = |amount: &str| {
        format!(r#"{{"code":0,"data":[{{"totalPage":1,"transactionList":[{{}},{{"amount":"{amount}"}}]}}]}}"#)
    };
    for amount in ["NaN", "inf", "0x10", "1,000"] {
        assert_eq!(refused("token_transfers", &transfers(amount)).0, "data[0].transactionList[1].amount");
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
        assert_eq!(value(&page, "tx_id", 0), Value::Text("0x1"));
        assert_eq!(value(&page, "is_input_contract", 0), Value::Flag(true));
        assert_eq!(value(&page, "is_output_contract", 0), Value::Flag(false));
        assert_eq!(value(&page, "transaction_symbol", 0), Value::Text("A"));
        assert_eq!(value(&page, "method_id", 0), Value::Text("0x"));
        let Value::Number(fee) = value(&page, "tx_fee", 0) else { panic!("no fee") };
        assert_eq!(Number::parse(fee).and_then(|fee| fee.scaled(18)), Some(2_625_000_000_000));
    }
}

#[test]
fn nothing_found_takes_several_shapes() {
    for data in ["[]", "null", "{\"totalPage\":\"0\"}", "[{\"totalPage\":\"0\",\"tokenList\":null}]"] {
        let page = page("tokens", &format!(r#"{{"code":"0","msg":"","data":{data}}}"#));
        assert_eq!(page.columns.rows(), 0);
    }
    assert_eq!(page("logs", r#"{"code":"0","data":{"topics":["0x1","0x2"]}}"#).columns.rows(), 1);
}

#[test]
fn records_are_never_lost_in_silence() {
    assert_eq!(refused("tokens", r#"{"code":"0","data":[{"totalPage":"3"}]}"#).0, "data[0].tokenList");
    assert_eq!(refused("tokens", r#"{"code":"0","data":[{"tokenFullName":"x"}]}"#).0, "data[0].tokenList");
    assert_eq!(refused("tokens", r#"{"code":"0","msg":""}"#).0, "data");
    assert_eq!(refused("tokens", r#"{"data":[]}"#).0, "code");
    assert_eq!(refused("logs", r#"{"code":"0","data":["x"]}"#).0, "data[0]");
}

#[test]
fn an_error_code_counts_whatever_else_is_there() {
    for body in [
        r#"{"code":"50011","msg":"slow down"}"#,
        r#"{"msg":"slow down","code":50011,"data":"nothing"}"#,
        r#"{"data":{"height":[]},"msg":"slow down","code":"50011"}"#,
    ] {
        match decoder("blocks").decode(&bytes(body), 4) {
            Ok(Answer::Refused { code, msg }) => assert_eq!((code.as_str(), msg.as_str()), ("50011", "slow down")),
            other => panic!("{body} gave {other:?}"),
        }
    }
}

#[test]
fn what_is_not_json_is_broken_and_may_be_asked_again() {
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
fn a_deployments_words_name_members_and_directions() {
    let deployment = Deployment::new("XY", "alpha", "beta", "{timestamp}{target}", "hex").unwrap();
    let decoder = Decoder::new(endpoint("cross_chain_transactions").unwrap(), &deployment);
    let body = block(r#""txType":"BETAToAlpha","alphaTxHash":"0xa","betaBlockHeight":"7","valueRaw":"1e3""#);
    let Ok(Answer::Page(page)) = decoder.decode(&bytes(&body), 1) else { panic!("refused") };
    assert_eq!(value(&page, "tx_type", 0), Value::Text("ZoneToMain"));
    assert_eq!(value(&page, "main_tx_hash", 0), Value::Text("0xa"));
    assert_eq!(value(&page, "zone_block_height", 0), Value::Integer(7));
    assert_eq!(value(&page, "value_raw", 0), Value::RawInteger("1000"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decoder("blocks").decode(&bytes.into(), 4);
    }

    #[test]
    fn no_damage_to_an_answer_makes_it_panic(at in 0_usize..150, byte in any::<u8>(), cut in 0_usize..200) {
        let mut body = block(r#""height":"12","hash":"0x\u00e9","blockTime":"1700000000000","miner":"é""#).into_bytes();
        let at = at % body.len();
        body[at] = byte;
        body.truncate(cut.max(1));
        if let Err(error) = decoder("blocks").decode(&body.clone().into(), 4) {
            prop_assert!(error.excerpt(&body, <[u8]>::to_vec).chars().count() <= 81);
        }
    }
}
