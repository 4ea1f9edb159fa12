//! The recorded responses of tests/payloads, which the Python tests read too: each is decoded into what is expected of
//! it, and each known error code has a response.

use std::collections::BTreeSet;
use std::path::PathBuf;

use chainframe::cassette::{self, Outcome};
use chainframe::columns::{Columns, Value};
use chainframe::decode::{Decoder, Envelope, Page, code_and_msg};
use chainframe::interface::{ApiErrorKind, Deployment, ENDPOINTS, endpoint};
use serde_json::{Map, Value as Json};

fn payloads() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/payloads")
}

fn expected() -> Map<String, Json> {
    let text = std::fs::read_to_string(payloads().join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn call(file: &str) -> &str {
    file.split('.').next().unwrap()
}

fn decode(file: &str) -> Result<Page, String> {
    let body = std::fs::read(payloads().join(file)).unwrap();
    match Decoder::new(endpoint(call(file)).unwrap(), &Deployment::default()).decode(&body.into(), 4) {
        Ok(Envelope::Page(page)) => Ok(page),
        Ok(other) => panic!("{file} gave {other:?}"),
        Err(error) => Err(error.path()),
    }
}

fn is(value: &Value<'_>, expected: &Json) -> bool {
    match value {
        Value::Null => expected.is_null(),
        Value::Integer(number) | Value::Time(number) => expected.as_i64() == Some(*number),
        Value::Boolean(flag) => expected.as_bool() == Some(*flag),
        Value::Number(text) | Value::Uint256(text) | Value::Utf8(text) => expected.as_str() == Some(*text),
        Value::Utf8List(texts) => *expected == Json::from(texts.as_slice()),
    }
}

fn value<'c>(columns: &'c Columns, name: &str, row: usize) -> Value<'c> {
    columns.value(columns.record().position(name).unwrap_or_else(|| panic!("no field {name}")), row)
}

#[test]
fn every_recorded_response_decodes_as_expected() {
    let mut compared = 0;
    for (file, wanted) in expected() {
        let decoded = decode(&file);
        if let Some(path) = wanted.get("path") {
            assert_eq!(decoded.map(|page| page.columns.rows()), Err(path.as_str().unwrap().to_owned()), "{file}");
            continue;
        }
        let page = decoded.unwrap_or_else(|path| panic!("{file}: {path}"));
        let records = wanted["records"].as_array().unwrap();
        assert_eq!(page.columns.rows(), records.len(), "{file}");
        for (row, record) in records.iter().enumerate() {
            for (name, expected) in record.as_object().unwrap() {
                let value = value(&page.columns, name, row);
                assert!(is(&value, expected), "{file}: {name} of record {row} is {value:?}, not {expected}");
                compared += 1;
            }
        }
    }
    assert!(compared > 150, "{compared} values compared");
}

#[test]
fn every_endpoint_has_a_recording() {
    let expected = expected();
    for endpoint in &ENDPOINTS {
        let plain = &expected[&format!("{}.json", endpoint.name)]["records"];
        assert!(!plain.as_array().unwrap().is_empty(), "{}", endpoint.name);
    }
    let files: BTreeSet<String> = std::fs::read_dir(payloads())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|file| !["expected.json", "errors.jsonl"].contains(&file.as_str()))
        .collect();
    assert_eq!(files, expected.keys().cloned().collect());
    // The notes on deployed services have fifteen points; the last two are about errors.
    for point in 1..=15 {
        let part = format!(".{point:02}-");
        assert!(files.iter().any(|file| file.contains(&part)), "{part}");
    }
}

#[test]
fn every_error_has_a_class() {
    let mut classes = BTreeSet::new();
    let interactions = cassette::read(&payloads().join("errors.jsonl")).unwrap();
    for interaction in &interactions {
        let Outcome::Response(response) = &interaction.outcome else { panic!("{interaction:?}") };
        let requested = &interaction.request.params["height"];
        let (code, _) = code_and_msg(&response.body);
        // The requested height is the code; short ones are of bodies without a code.
        assert_eq!(code.as_ref(), Some(requested).filter(|height| height.len() == 5), "{interaction:?}");
        let class = ApiErrorKind::of(response.status, code.as_deref());
        let unknown = matches!(requested.as_str(), "50005" | "59999");
        assert!(class != ApiErrorKind::Other || unknown, "{interaction:?}");
        classes.insert(format!("{class:?}"));
    }
    assert_eq!(classes.len(), 8, "{classes:?}");
    assert!(interactions.len() > 50);
}
