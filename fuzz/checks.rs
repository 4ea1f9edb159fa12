//! Checks that hold for any input of the decoder and of the parsers. The fuzz targets and `tests/rust/mutations.rs` share them.

use std::sync::LazyLock;

use bytes::Bytes;
use chainframe::client::{Client, Credentials, Error, Secret, Settings, SettingsInput};
use chainframe::columns::{DecimalPolicy, batch, schema};
use chainframe::decode::{Decoder, Envelope, code_and_msg};
use chainframe::interface::{AMOUNT_SCALE, Number, endpoint};
use chainframe::query::{
    Changes, Cursor, FollowCursor, FollowOptions, FollowRun, FollowStart, Options, Poll, Query, QueryStart,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const POLICIES: [DecimalPolicy; 3] = [DecimalPolicy::Decimal, DecimalPolicy::Float, DecimalPolicy::String];

/// Result for an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    /// An error response.
    Refused,
    Rejected,
}

/// Any bytes as a response: the decoder returns what they hold or what is wrong with them.
pub fn response(decoder: &Decoder, body: &[u8]) -> Outcome {
    let _ = code_and_msg(body);
    match decoder.decode(&Bytes::copy_from_slice(body), 4) {
        Ok(Envelope::Page(page)) => {
            for numbers in POLICIES {
                let record = page.columns.record();
                if let Ok(batch) = batch(&page.columns, &schema(record, numbers), numbers, 0) {
                    assert_eq!(batch.num_rows(), page.columns.rows());
                }
            }
            Outcome::Accepted
        }
        Ok(Envelope::Error { code, .. }) => {
            assert!(!code.is_empty());
            Outcome::Refused
        }
        Err(error) => {
            assert!(!error.path().is_empty() && !error.problem.is_empty());
            assert!(error.excerpt(body, <[u8]>::to_vec).chars().count() <= 81);
            Outcome::Rejected
        }
    }
}

/// Any string as a number: each conversion returns the number itself or nothing, and the standard library agrees.
pub fn number(input: &[u8]) -> Outcome {
    let Some(number) = std::str::from_utf8(input).ok().and_then(Number::parse) else {
        return Outcome::Rejected;
    };
    let same = |text: &str| Number::parse(text).expect("a number").canonical() == number.canonical();
    assert!(same(&number.plain()));
    assert_eq!(number.to_f64(), number.text().parse().ok().filter(|double: &f64| double.is_finite()));
    if let Some(units) = number.scaled(AMOUNT_SCALE) {
        assert!(same(&format!("{units}e-{AMOUNT_SCALE}")));
    }
    if let Some(integer) = number.to_i64() {
        assert!(same(&integer.to_string()));
        assert_eq!(number.to_integer_text(), Some(integer.to_string()));
    }
    assert!(number.to_integer_text().is_none_or(|text| same(&text)));
    assert!(!number.is_less_than(&number));
    Outcome::Accepted
}

/// Any string as a cursor of a query or of a follower, also with the version and the checksum of this release.
pub fn cursor(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else {
        return Outcome::Rejected;
    };
    let mut outcome = Outcome::Rejected;
    for cursor in [Some(text.to_owned()), resealed::<Cursor>(text, "version", &VERSION)].into_iter().flatten() {
        match QueryStart::resume(&CLIENT, &cursor, None) {
            Ok(run) => {
                let again = run.cursor();
                assert_eq!(QueryStart::resume(&CLIENT, &again, None).expect("its own cursor").cursor(), again);
                outcome = Outcome::Accepted;
            }
            Err(error) => rejected("cursor", &error),
        }
    }
    for json in [Some(text.to_owned()), resealed::<FollowCursor>(text, "follow", &FOLLOW_VERSION)].into_iter().flatten()
    {
        let cursor = match FollowCursor::from_json(&json) {
            Ok(cursor) => cursor,
            Err(error) => {
                rejected("start", &error);
                continue;
            }
        };
        match follow(FollowStart::Cursor(cursor)) {
            Ok(_) => outcome = Outcome::Accepted,
            Err(error) => rejected("start", &error),
        }
    }
    outcome
}

fn follow(start: FollowStart) -> Result<FollowRun, Error> {
    let options = FollowOptions {
        start,
        end: None,
        settle: 0,
        poll: Poll::Auto,
        changes: Changes::Held,
        max_rows: FollowOptions::MAX_ROWS,
    };
    FollowRun::new(&QueryStart::from(BLOCKS.clone()), options)
}

fn rejected(name: &str, error: &Error) {
    assert!(matches!(error, Error::InvalidParameter { parameter, .. } if *parameter == name), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
}

/// The cursor with this version and the checksum of its content, so that a new version leaves the corpus alive.
fn resealed<T: Serialize + DeserializeOwned>(text: &str, member: &str, version: &Value) -> Option<String> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    let members = value.as_object_mut()?;
    members.remove("checksum");
    members.insert(member.to_owned(), version.clone());
    let json = serde_json::to_string(&serde_json::from_value::<T>(value).ok()?).ok()?;
    let checksum: String = Sha256::digest(&json)[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("{},\"checksum\":\"{checksum}\"}}", json.strip_suffix('}')?))
}

static VERSION: LazyLock<Value> = LazyLock::new(|| {
    let cursor: Value = serde_json::from_str(&QueryStart::from(BLOCKS.clone()).cursor()).expect("JSON");
    cursor["version"].clone()
});

static FOLLOW_VERSION: LazyLock<Value> = LazyLock::new(|| {
    let run = follow(FollowStart::Now).expect("a valid follower");
    serde_json::to_value(run.cursor()).expect("JSON")["follow"].clone()
});

static BLOCKS: LazyLock<Query> = LazyLock::new(|| {
    let blocks = endpoint("blocks").expect("declared");
    Query::new(&CLIENT, blocks, [], Options::default()).expect("a valid query")
});

static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let secret = || Secret::new("local".into());
    let credentials = Credentials { api_key: secret(), secret_key: secret(), passphrase: secret() };
    let settings = SettingsInput::minimal("https://service.invalid", credentials);
    Settings::new(settings).and_then(Client::new).expect("valid settings")
});
