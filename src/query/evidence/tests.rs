use std::ops::Range;

use super::{Evidence, Finding, Part};
use crate::columns::Columns;
use crate::columns::ColumnsBuilder;
use crate::interface::{LAWS, endpoint};

const ZERO_ADDRESS: &str = crate::interface::ZERO_ADDRESS;

fn rows(call: &str, records: &[&[(&str, &str)]]) -> Columns {
    let record = endpoint(call).unwrap().record();
    let mut builder = ColumnsBuilder::new(record, records.len());
    for values in records {
        for (column, field) in record.fields.iter().enumerate() {
            match values.iter().find(|(name, value)| *name == field.name && !value.is_empty()) {
                Some((_, value)) => builder.append_str(column, value).unwrap(),
                None => builder.append_empty(column),
            }
        }
        builder.finish_row();
    }
    builder.finish()
}

/// Finding of a law over those of the records in a range, given newest first.
fn found(arguments: &[(&str, &str)], law: &str, records: &Columns, part: Range<usize>) -> Option<Finding> {
    let argument = |name: &str| arguments.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
    let begin = if part.start == 0 { Part::FromFirst } else { Part::FromOther };
    let call = LAWS.iter().find(|known| known.name == law).unwrap().endpoint;
    let mut evidence = Evidence::of(call, begin, argument);
    part.clone().for_each(|row| evidence.add(&records.slice(row, 1)));
    evidence.findings(part.end == records.rows()).into_iter().find(|finding| finding.law == law)
}

/// Held or not, of a law over records given newest first.
fn held(arguments: &[(&str, &str)], law: &str, records: &Columns) -> Option<bool> {
    found(arguments, law, records, 0..records.rows()).unwrap().held
}

fn sent<'a>(nonce: &'a str, state: &'a str) -> [(&'a str, &'a str); 3] {
    [("from_address", "0xA1"), ("nonce", nonce), ("state", state)]
}

fn nonces(records: &[[(&str, &str); 3]]) -> Option<bool> {
    let records: Vec<&[(&str, &str)]> = records.iter().map(|record| record.as_slice()).collect();
    held(&[("address", "0xa1")], "nonces", &rows("address_transactions", &records))
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
    assert!(Evidence::of("address_transactions", Part::FromFirst, argument).findings(true).is_empty());
}

#[test]
fn log_indexes_follow_each_other_within_a_transaction_only() {
    let log = |tx: &'static str, index: &'static str| [("tx_id", tx), ("log_index", index)];
    let of = |logs: &[[(&str, &str); 2]]| {
        let logs: Vec<&[(&str, &str)]> = logs.iter().map(|log| log.as_slice()).collect();
        held(&[], "log_indexes", &rows("logs", &logs))
    };
    assert_eq!(of(&[log("0x1", "4"), log("0x1", "5"), log("0x2", "90"), log("0x2", "91")]), Some(true));
    assert_eq!(of(&[log("0x1", "4"), log("0x1", "6"), log("0x2", "7")]), Some(false));
}

type Transfer<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

/// Transfers as (height, from, to, amount, id, state), newest first.
fn transfer_rows(protocol: &str, records: &[Transfer<'_>]) -> Columns {
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
    rows("token_transfers", &records)
}

fn transfers(protocol: &str, law: &str, records: &[Transfer<'_>]) -> Option<bool> {
    held(&[], law, &transfer_rows(protocol, records))
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
    let of = |records: &[Transfer<'_>]| transfers("ERC20", "balances", records);
    // Four addresses that were left with nothing four times each.
    let pairs = [("0xa", "0xb"), ("0xb", "0xa"), ("0xc", "0xd"), ("0xd", "0xc")];
    let heights = ["29", "28", "27", "26", "25", "24", "23", "22"];
    let rounds = heights.iter().enumerate().flat_map(|(round, height)| {
        let moves = if round % 2 == 0 { [pairs[0], pairs[2]] } else { [pairs[1], pairs[3]] };
        moves.map(|(from, to)| (*height, from, to, "1.5", "", "success"))
    });
    let minted = ["0xb", "0xd"].map(|to| ("20", ZERO_ADDRESS, to, "1.5", "", "success"));
    let exact: Vec<Transfer<'_>> = rounds.chain(minted).collect();
    assert_eq!(of(&exact), Some(true));
    let overdrawn = [("30", "0xe", "0xf", "99", "", "success")];
    assert_eq!(of(&[&overdrawn[..], &exact[..]].concat()), Some(false));
    // Too few: the token may change balances without transfers.
    assert_eq!(of(&[&overdrawn[..], &exact[2..]].concat()), None);
    let rebased = [("6", "0xa", "0xb", "5.5", "", "success"), ("5", ZERO_ADDRESS, "0xa", "5", "", "success")];
    assert_eq!(of(&rebased), None);
    assert_eq!(transfers("ERC1155", "balances", &rebased), Some(false));
    // Issued without a transfer.
    assert_eq!(of(&[&overdrawn[..], &exact[..exact.len() - 2]].concat()), None);
}

#[test]
fn address_that_passes_everything_on_says_little_of_a_token() {
    let heights: Vec<String> = (10..40).rev().map(|height| height.to_string()).collect();
    let passed = heights.iter().flat_map(|height| {
        [(height.as_str(), "0xc", "0xb", "1", "", "success"), (height, "0xa", "0xc", "1", "", "success")]
    });
    let minted = ("5", ZERO_ADDRESS, "0xa", "31", "", "success");
    let overdrawn = ("9", "0xe", "0xf", "99", "", "success");
    let list: Vec<Transfer<'_>> = passed.chain([overdrawn, minted]).collect();
    assert_eq!(transfers("ERC20", "balances", &list), None);
}

#[test]
fn transfers_in_a_circle_leave_one_holder_of_several() {
    let of = |records: &[Transfer<'_>]| transfers("ERC721", "custody", records);
    let circle = [
        ("9", "0xc", "0xd", "1", "5", "success"),
        ("8", "0xb", "0xc", "1", "5", "success"),
        ("8", "0xc", "0xb", "1", "5", "success"),
        ("7", "0xa", "0xc", "1", "5", "success"),
        ("6", ZERO_ADDRESS, "0xa", "1", "5", "success"),
    ];
    assert_eq!(of(&circle), Some(true));
    assert_eq!(of(&[&circle[..3], &circle[4..]].concat()), Some(false));
    assert_eq!(of(&[&circle[1..3], &circle[4..]].concat()), Some(false));
    assert_eq!(of(&circle[1..]), Some(true));
}

#[test]
fn doubtful_transfers_leave_the_rest_of_an_id_comparable() {
    let of = |records: &[Transfer<'_>]| transfers("ERC721", "custody", records);
    let list = [
        ("", "0xd", "0xe", "1", "5", "pending"),
        ("9", "0xc", "0xd", "1", "5", "success"),
        ("8", "0xb", "0xc", "1", "5", "success"),
        ("7", "0xa", "0xb", "1", "5", "success"),
        ("6", ZERO_ADDRESS, "0xa", "1", "5", "success"),
    ];
    assert_eq!(of(&list), Some(true));
    assert_eq!(of(&[&list[..3], &list[4..]].concat()), Some(false));
    // A pending one may have happened at any of the heights around it, or not at all.
    assert_eq!(of(&[list[1], list[0], list[3], list[4]]), Some(true));
    let shared =
        [list[1], ("8", "0xb,0xa000000000000000000000000000000000000000", "0xc", "1", "5", "success"), list[3]];
    assert_eq!(of(&[&shared[..], &list[4..]].concat()), Some(true));
}

#[test]
fn transfers_without_ids_or_not_in_order_decide_nothing() {
    let of = |records: &[Transfer<'_>]| found(&[], "custody", &transfer_rows("ERC721", records), 0..records.len());
    let list = [
        ("9", "0xc", "0xd", "1", "5", "success"),
        ("8", "0xb", "0xc", "1", "5", "success"),
        ("7", "0xa", "0xb", "1", "5", "success"),
    ];
    let without: Vec<Transfer<'_>> = list.iter().map(|row| (row.0, row.1, row.2, row.3, "", row.5)).collect();
    assert!(of(&without).is_none());
    assert_eq!(of(&[without[0], list[1], list[2]]).unwrap().held, None);
    let ascending = [list[2], list[1], list[0]];
    assert!(of(&ascending).is_none_or(|found| found.held.is_none()));
    assert!(of(&[list[2], list[0]]).is_none_or(|found| found.held.is_none()));
}

#[test]
fn address_that_may_have_received_more_is_not_overdrawn() {
    let both = "0x000000000000000000000000000000000000000a,0x000000000000000000000000000000000000000b";
    let list = [
        ("7", "0xa", "0xb", "5", "1", "success"),
        ("6", ZERO_ADDRESS, both, "5", "1", "success"),
        ("5", ZERO_ADDRESS, "0xa", "1", "1", "success"),
    ];
    assert_eq!(transfers("ERC1155", "balances", &list), None);
    assert_eq!(transfers("ERC1155", "balances", &[list[0], list[2]]), Some(false));
}

#[test]
fn record_without_a_number_may_be_that_of_a_gap() {
    let [done, open] = ["success", "pending"];
    assert_eq!(nonces(&[sent("7", done), sent("", done), sent("5", done)]), None);
    assert_eq!(nonces(&[sent("7", done), sent("", open), sent("5", done)]), None);
    assert_eq!(nonces(&[sent("7", done), sent("", done), sent("6", done)]), Some(true));
}

/// Every part of a list breaks no law that the list obeys, whatever the order of the records of one height.
#[test]
fn cut_within_a_height_breaks_no_law() {
    let of = |height, nonce| [("from_address", "0xa1"), ("height", height), ("nonce", nonce), ("state", "success")];
    let sent = [of("9", "8"), of("9", "9"), of("8", "6"), of("8", "4"), of("8", "7"), of("8", "5"), of("7", "3")];
    let sent = rows("address_transactions", &sent.each_ref().map(|record| &record[..]));
    let log = |tx, index| [("tx_id", tx), ("log_index", index)];
    let logs = [log("0x1", "6"), log("0x1", "4"), log("0x1", "5"), log("0x2", "9"), log("0x2", "7"), log("0x2", "8")];
    let logs = rows("logs", &logs.each_ref().map(|record| &record[..]));
    let moves = [
        ("9", "0xd", "0xe", "1", "5", "success"),
        ("8", "0xa", "0xb", "1", "5", "success"),
        ("8", "0xc", "0xd", "1", "5", "success"),
        ("8", "0xb", "0xc", "1", "5", "success"),
        ("7", ZERO_ADDRESS, "0xa", "1", "5", "success"),
    ];
    let [unique, counted] = ["ERC721", "ERC1155"].map(|protocol| transfer_rows(protocol, &moves));
    let lists = [("nonces", sent), ("log_indexes", logs), ("custody", unique), ("balances", counted)];
    for (law, list) in &lists {
        assert_eq!(held(&[("address", "0xa1")], law, list), Some(true), "{law}");
        for start in 0..list.rows() {
            for end in start..=list.rows() {
                let found = found(&[("address", "0xa1")], law, list, start..end);
                assert!(found.is_none_or(|found| found.held != Some(false)), "{law}: {start}..{end}");
            }
        }
    }
}
