use super::*;
use proptest::prelude::*;

const ONE: i128 = 1_000_000_000_000_000_000;
const MAX_256: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";

fn amount(text: &str) -> Option<i128> {
    let value = Number::parse(text).unwrap_or_else(|| panic!("{text} is a number")).scaled(AMOUNT_SCALE);
    assert_eq!(scaled(text, AMOUNT_SCALE), value, "{text}");
    value
}

#[test]
fn amounts_are_exact_or_none() {
    for (text, expected) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("1", Some(ONE)),
        ("-1", Some(-ONE)),
        ("+1", Some(ONE)),
        ("0.000000000000000001", Some(1)),
        ("0.0000000000000000010", Some(1)),
        ("0.0000000000000000001", None),
        ("9007199254740993", Some(9_007_199_254_740_993 * ONE)),
        ("18446744073709551616", Some(18_446_744_073_709_551_616 * ONE)),
        ("99999999999999999999.999999999999999999", Some(10_i128.pow(38) - 1)),
        ("100000000000000000000", None),
        ("1e38", None),
        (MAX_256, None),
        ("2.625E-6", Some(2_625_000_000_000)),
        ("1e18", Some(ONE * ONE)),
        ("00012.50", Some(12 * ONE + ONE / 2)),
        ("0e999999", Some(0)),
        ("0e-999999", Some(0)),
        ("1e999999", None),
        ("1e-999999", None),
        (".5", Some(ONE / 2)),
        ("5.", Some(5 * ONE)),
    ] {
        assert_eq!(amount(text), expected, "{text}");
    }
}

#[test]
fn invalid_numbers_are_rejected() {
    for text in [
        "",
        "-",
        "+",
        ".",
        "e5",
        "1e",
        "1e+",
        "NaN",
        "inf",
        "-inf",
        "0x10",
        "1,000",
        "1_000",
        " 1",
        "1 ",
        "1.2.3",
        "--1",
        "1e1000000",
        "1e99999999999",
        "١",
        "1e5.0",
    ] {
        assert_eq!(Number::parse(text), None, "{text:?}");
        assert_eq!(scaled(text, AMOUNT_SCALE), None, "{text:?}");
    }
    assert_eq!(Number::parse(&"1".repeat(MAX_LEN + 1)), None);
}

#[test]
fn integers_with_a_point_are_integers() {
    let int = |text: &str| Number::parse(text).unwrap().to_i64();
    assert_eq!(int("4307974.0"), Some(4_307_974));
    assert_eq!(int("4307974.5"), None);
    assert_eq!(int("1779161496872"), Some(1_779_161_496_872));
    assert_eq!(int("9223372036854775807"), Some(i64::MAX));
    assert_eq!(int("9223372036854775808"), None);
    assert_eq!(int("1.5e1"), Some(15));
}

#[test]
fn raw_integers_keep_every_digit() {
    let raw = |text: &str| Number::parse(text).unwrap().to_integer_text();
    assert_eq!(raw(MAX_256).as_deref(), Some(MAX_256));
    assert_eq!(raw("1e3").as_deref(), Some("1000"));
    assert_eq!(raw("12.50e1").as_deref(), Some("125"));
    assert_eq!(raw("-007.0").as_deref(), Some("-7"));
    assert_eq!(raw("0.00").as_deref(), Some("0"));
    assert_eq!(raw("0e-400").as_deref(), Some("0"));
    assert_eq!(raw("1.5"), None);
    assert_eq!(raw("1e-1"), None);
    assert_eq!(raw("1e999999"), None);
}

#[test]
fn doubles_are_nearest_or_none() {
    let double = |text: &str| Number::parse(text).unwrap().to_f64();
    assert_eq!(double("9007199254740993"), Some(9_007_199_254_740_992.0));
    assert_eq!(double("2.625E-6"), Some(2.625e-6));
    assert_eq!(double("1e400"), None);
    assert_eq!(double(".5"), Some(0.5));
    assert_eq!(double("5."), Some(5.0));
}

#[test]
fn equal_values_have_one_canonical_form() {
    let canonical = |text: &str| Number::parse(text).unwrap().canonical();
    assert_eq!(canonical("1.50"), canonical("0.15e1"));
    assert_eq!(canonical("-0.0"), canonical("0"));
    assert_eq!(canonical("100"), canonical("1e2"));
    assert_ne!(canonical("1"), canonical("-1"));
    assert_ne!(canonical("1"), canonical("10"));
}

#[test]
fn numbers_compare_by_value() {
    let sorted = ["-1e3", "-2", "-1.5", "0", "1e-5", "0.02", "99.99", "100", "1e3"];
    for (i, low) in sorted.iter().enumerate() {
        for (j, high) in sorted.iter().enumerate() {
            let less = Number::parse(low).unwrap().is_less_than(&Number::parse(high).unwrap());
            assert_eq!(less, i < j, "{low} < {high}");
        }
    }
    assert!(Number::parse("100.0").unwrap().at_least(100));
}

#[test]
fn plain_digits_have_no_exponent() {
    for (text, plain) in [
        ("1E+2", "100"),
        ("2.625E-6", "0.000002625"),
        ("12.5e1", "125"),
        ("1.25e1", "12.5"),
        ("+7", "7"),
        ("0e9", "0"),
        ("1.50", "1.50"),
        ("-1e-1", "-0.1"),
        ("7.", "7"),
        (".5", "0.5"),
        ("5e0", "5"),
    ] {
        assert_eq!(Number::parse(text).unwrap().plain(), plain);
    }
}

proptest! {
    #[test]
    fn scaling_reverses_formatting(value in -(10_i128.pow(38) - 1)..10_i128.pow(38), dropped in 0_u32..38) {
        let value = value / 10_i128.pow(dropped);
        let (sign, digits) = (if value < 0 { "-" } else { "" }, format!("{:019}", value.unsigned_abs()));
        let (whole, fraction) = digits.split_at(digits.len() - 18);
        prop_assert_eq!(amount(&format!("{sign}{whole}.{fraction}")), Some(value));
        prop_assert_eq!(amount(&format!("{sign}{digits}e-18")), Some(value));
    }

    #[test]
    fn digits_are_counted_exactly(bytes in "[0-9]{0,20}[/:;0-9e.@é٣]{0,9}", from in 0_usize..4) {
        let (bytes, from) = (bytes.as_bytes(), from.min(bytes.len()));
        let plain = (from..bytes.len()).find(|at| !bytes[*at].is_ascii_digit()).unwrap_or(bytes.len());
        prop_assert_eq!(digits_end(bytes, from), plain);
    }

    #[test]
    fn plain_and_shortest_notations_are_told_from_others(text in "[-+]?[0-9]{0,20}[.]?[0-9]{0,20}([eE.:/]?[0-9]{1,2})?") {
        let number = Number::parse(&text);
        let is_signed = text.starts_with(['-', '+', '.']);
        prop_assert_eq!(is_plain(&text), number.is_some() && !is_signed && !text.contains(['e', 'E']));
        prop_assert_eq!(is_shortest(&text), number.is_some_and(|number| number.shortest() == text));
        let is_whole = (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        prop_assert_eq!(whole(&text), text.parse().ok().filter(|_| is_whole));
    }

    #[test]
    fn arbitrary_strings_do_not_panic(text in "[-+0-9.eE]{0,40}") {
        if let Some(number) = Number::parse(&text) {
            let _ = (number.scaled(18), number.to_i64(), number.to_integer_text(), number.canonical());
            prop_assert!(text.parse::<f64>().is_ok());
        }
    }
}
