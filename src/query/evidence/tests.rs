use super::Evidence;
use crate::columns::Columns;
use crate::columns::ColumnsBuilder;
use crate::interface::endpoint;

const ZERO_ADDRESS: &str = crate::interface::ZERO_ADDRESS;

fn rows(call: &str, records: &[&[(&str, &str)]]) -> Columns {
    let record = endpoint(call).unwrap().record();
    let mut builder = ColumnsBuilder::new(record, records.len());
    for values in records {
        for (column, field) in record.fields.iter().enumerate() {
            match values.iter().find(|(name, _)| *name == field.name) {
                Some((_, value)) => builder.append_str(column, value).unwrap(),
                None => builder.append_empty(column),
            }
        }
        builder.finish_row();
    }
    builder.finish()
}

/// Held or not, of a law over records given newest first.
fn held(call: &str, arguments: &[(&str, &str)], law: &str, records: &Columns) -> Option<bool> {
    let argument = |name: &str| arguments.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
    let mut evidence = Evidence::of(call, argument);
    for row in 0..records.rows() {
        evidence.add(&records.slice(row, 1));
    }
    evidence.findings(true).into_iter().find(|finding| finding.law == law).unwrap().held
}

fn sent<'a>(nonce: &'a str, state: &'a str) -> [(&'a str, &'a str); 3] {
    [("from_address", "0xA1"), ("nonce", nonce), ("state", state)]
}

fn nonces(records: &[[(&str, &str); 3]]) -> Option<bool> {
    let records: Vec<&[(&str, &str)]> = records.iter().map(|record| record.as_slice()).collect();
    held("address_transactions", &[("address", "0xa1")], "nonces", &rows("address_transactions", &records))
}

#[test]
fn missing_nonce_breaks_the_law_and_a_pending_or_replaced_one_does_not() {
    let [done, open] = ["success", "pending"];
    assert_eq!(nonces(&[sent("7", done), sent("6", "fail"), sent("5", done)]), Some(true));
    assert_eq!(nonces(&[sent("7", done), sent("5", done)]), Some(false));
    // Pending ones wait for others, which may never come, and may fill a gap.
    assert_eq!(nonces(&[sent("9", open), sent("7", open), sent("5", done)]), Some(true));
    assert_eq!(nonces(&[sent("7", done), sent("6", open), sent("5", done)]), Some(true));
    assert_eq!(nonces(&[sent("6", open), sent("6", done), sent("6", open), sent("5", done)]), Some(true));
    let other = [("from_address", "0xb2"), ("nonce", "90"), ("state", done)];
    assert_eq!(nonces(&[sent("6", done), other, sent("5", done)]), Some(true));
}

#[test]
fn list_of_received_transactions_has_no_nonces() {
    let argument = |name: &str| (name == "direction").then(|| "to".to_owned());
    assert!(Evidence::of("address_transactions", argument).findings(true).is_empty());
}

#[test]
fn log_indexes_follow_each_other_within_a_transaction_only() {
    let log = |tx: &'static str, index: &'static str| [("tx_id", tx), ("log_index", index)];
    let of = |logs: &[[(&str, &str); 2]]| {
        let logs: Vec<&[(&str, &str)]> = logs.iter().map(|log| log.as_slice()).collect();
        held("logs", &[], "log_indexes", &rows("logs", &logs))
    };
    assert_eq!(of(&[log("0x1", "4"), log("0x1", "5"), log("0x2", "90"), log("0x2", "91")]), Some(true));
    assert_eq!(of(&[log("0x1", "4"), log("0x1", "6"), log("0x2", "7")]), Some(false));
}

type Transfer<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

/// Transfers as (height, from, to, amount, id, state), newest first.
fn transfers(protocol: &str, law: &str, records: &[Transfer<'_>]) -> Option<bool> {
    let records: Vec<_> = records
        .iter()
        .map(|(height, from, to, amount, id, state)| {
            [
                ("height", *height),
                ("from_address", *from),
                ("to_address", *to),
                ("amount", *amount),
                ("token_id", *id),
                ("state", *state),
                ("protocol_type", protocol),
            ]
        })
        .collect();
    let records: Vec<&[(&str, &str)]> = records.iter().map(|record| record.as_slice()).collect();
    held("token_transfers", &[], law, &rows("token_transfers", &records))
}

#[test]
fn transfer_that_is_missing_breaks_custody() {
    let of = |records: &[Transfer<'_>]| transfers("ERC721", "custody", records);
    let whole = [
        ("9", "0xc", ZERO_ADDRESS, "1", "5", "success"),
        ("8", "0xb", "0xC", "1", "5", "success"),
        ("8", "0xz", "0xy", "1", "6", "fail"),
        ("8", "0xa", "0xb", "1", "5", "success"),
        ("7", ZERO_ADDRESS, "0xa", "1", "5", "success"),
    ];
    assert_eq!(of(&whole), Some(true));
    // Those of one height in any order.
    assert_eq!(of(&[whole[0], whole[3], whole[1], whole[4]]), Some(true));
    for missing in [1, 3] {
        let rest: Vec<_> = (0..5).filter(|index| *index != missing).map(|index| whole[index]).collect();
        assert_eq!(of(&rest), Some(false), "without {missing}");
    }
    let pending = [whole[0], ("8", "0xb", "0xc", "1", "5", "pending"), whole[3], whole[4]];
    assert_eq!(of(&pending), Some(true));
    // Minted without a transfer, burned without one and minted again.
    assert_eq!(of(&whole[..4]), Some(true));
    assert_eq!(of(&[("9", ZERO_ADDRESS, "0xd", "1", "5", "success"), whole[1], whole[3], whole[4]]), Some(true));
}

#[test]
fn address_that_sends_more_than_it_has_breaks_balances_of_exact_tokens_only() {
    let exact = [
        ("9", "0xd", "0xe", "1", "", "success"),
        ("8", "0xc", "0xd", "1", "", "success"),
        ("8", "0xb", "0xd", "2", "", "success"),
        ("7", "0xa", "0xe", "4.5", "", "success"),
        ("6", "0xa", "0xd", "0.5", "", "success"),
        ("5", ZERO_ADDRESS, "0xc", "1", "", "success"),
        ("5", ZERO_ADDRESS, "0xb", "2", "", "success"),
        ("4", ZERO_ADDRESS, "0xa", "5", "", "success"),
    ];
    let of = |records: &[Transfer<'_>]| transfers("ERC20", "balances", records);
    assert_eq!(of(&exact), Some(true));
    let overdrawn = [("10", "0xe", "0xd", "99", "", "success")];
    assert_eq!(of(&[&overdrawn[..], &exact[..]].concat()), Some(false));
    // A token that pays interest: no address ends at exactly 0.
    let rebased = [("6", "0xa", "0xb", "5.5", "", "success"), ("5", ZERO_ADDRESS, "0xa", "5", "", "success")];
    assert_eq!(of(&rebased), None);
    assert_eq!(transfers("ERC1155", "balances", &rebased), Some(false));
    // Issued without a transfer.
    assert_eq!(of(&[&overdrawn[..], &exact[..7]].concat()), None);
}
