//! A check that holds for any event declaration and any log; apart from the others, since it needs the feature `events`.

use std::sync::LazyLock;

use bytes::Bytes;
use chainframe::columns::{DecimalPolicy, Projection};
use chainframe::decode::{Decoder, Envelope};
use chainframe::events::{self, Event};
use chainframe::interface::{Deployment, endpoint};
use chainframe::query::Records;

/// Lines as an event and a log: the declaration, topics, and the data. Returns the number of logs that are of the event.
pub fn event(input: &[u8]) -> usize {
    let text = String::from_utf8_lossy(input);
    let mut lines: Vec<&str> = text.lines().collect();
    let data = lines.pop().unwrap_or_default();
    let Some((declaration, topics)) = lines.split_first() else {
        return 0;
    };
    let event = match Event::parse(declaration) {
        Ok(event) => event,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            return 0;
        }
    };
    assert_eq!(Event::parse(event.declaration()).expect("its own spelling"), event);
    let own: Vec<String> = event.topic().into_iter().chain(topics.iter().map(|topic| (*topic).to_owned())).collect();
    let logs = serde_json::json!({"code": "0", "msg": "", "data": [
        {"logIndex": 0, "topics": topics, "data": data}, {"logIndex": 1, "topics": own, "data": data},
    ]});
    let logs = logs_of(logs.to_string());
    let decoded = events::decode(&event.into(), &logs, Projection::ALL).expect("the records have all columns");
    assert_eq!(decoded.matched.len() + decoded.unmatched.len(), logs.len());
    for numbers in [DecimalPolicy::Decimal, DecimalPolicy::Float, DecimalPolicy::String] {
        if let Ok(batches) = decoded.batches(numbers) {
            assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), decoded.matched.len());
            assert!(batches.iter().all(|batch| batch.schema() == decoded.schema(numbers)));
        }
    }
    decoded.matched.len()
}

fn logs_of(body: String) -> Records {
    static DECODER: LazyLock<Decoder> =
        LazyLock::new(|| Decoder::new(endpoint("logs").expect("declared"), &Deployment::default()));
    match DECODER.decode(&Bytes::from(body), 2) {
        Ok(Envelope::Page(page)) => Records::new(page.columns.record(), vec![page.columns]),
        other => panic!("the logs of this check are invalid: {other:?}"),
    }
}
