//! Validation of a call's arguments against the declaration, before anything is sent.

use super::args::Arg;
use super::filters::Filters;
use super::slices::sent_time;
use super::values::{CheckedValue, check, shown};
use crate::client::Error;
use crate::interface::{Endpoint, Param, ParamKind, ParamRole, RangeEnd};
use crate::message::counted;

pub(super) fn validate(endpoint: &Endpoint, args: &[(String, Arg)]) -> Result<Filters, Error> {
    for (name, _) in args {
        if endpoint.param(name).is_none() {
            return Err(Error::parameter(name, format!("is not a parameter of {}()", endpoint.name)));
        }
    }
    let mut values = Vec::new();
    for param in endpoint.params {
        match args.iter().find(|(name, _)| name == param.name) {
            Some((_, arg)) => values.push((param, check(param, arg)?)),
            None if param.required => return Err(Error::parameter(param.name, "is required")),
            None => {}
        }
    }
    Filters::new(endpoint, values)
}

/// The validated arguments as JSON, by name: equal for arguments that mean the same.
pub(super) fn canonical(
    endpoint: &Endpoint,
    args: &[(String, Arg)],
) -> Result<impl Iterator<Item = (String, serde_json::Value)>, Error> {
    let mut canonical = Vec::new();
    for (name, arg) in args {
        let Some(param) = endpoint.param(name) else { continue };
        canonical.push((name.clone(), serde_json::json!(check(param, arg)?)));
    }
    Ok(canonical.into_iter())
}

/// A value of a parameter as it is sent.
pub fn sent_value(param: &Param, arg: &Arg) -> Result<String, Error> {
    Ok(match check(param, arg)? {
        CheckedValue::String(text) | CheckedValue::Amount(text) => text,
        CheckedValue::Number(time) if param.kind == ParamKind::Time => {
            let is_start = matches!(param.role, ParamRole::RangeStart(..));
            sent_time(time, if is_start { RangeEnd::Lower } else { RangeEnd::Upper })
        }
        CheckedValue::Number(number) => number.to_string(),
        CheckedValue::Hashes(hashes) => hashes.join(","),
    })
}

/// The arguments for display, by name.
pub(super) fn display(endpoint: &Endpoint, args: &[(String, Arg)]) -> Vec<(&'static str, String)> {
    let given = args.iter().filter_map(|(name, arg)| endpoint.param(name).zip(Some(arg)));
    let shown = given.filter_map(|(param, arg)| {
        let shown = match arg {
            Arg::List(values) if param.selects_list() => counted(values.len() as u64, "value"),
            arg => shown(param, &check(param, arg).ok()?),
        };
        Some((param.name, shown))
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::endpoint;

    fn rejected(call: &str, args: &[(&str, Arg)]) -> String {
        let args: Vec<_> = args.iter().map(|(name, arg)| ((*name).to_owned(), arg.clone())).collect();
        validate(endpoint(call).unwrap(), &args).map(|_| ()).unwrap_err().to_string()
    }

    fn text(text: &str) -> Arg {
        Arg::String(text.into())
    }

    #[test]
    fn errors_name_the_parameter() {
        for (call, args, expected) in [
            ("token_transfers", vec![], "token_contract_address is required"),
            (
                "tokens",
                vec![("protocol_type", text("ERC20"))],
                "protocol_type must be one of token_20, token_721, token_1155, token_10; got \"ERC20\"; did you mean \"token_20\"?",
            ),
            ("tokens", vec![("start_time", text("2024-01-01"))], "start_time must have a UTC offset"),
            ("tokens", vec![("start_time", text("soon"))], "start_time must be an aware datetime"),
            ("large_transactions", vec![("min_amount", text("99.99"))], "min_amount (99.99) must be >= 100"),
            (
                "large_transactions",
                vec![("min_amount", text("NaN"))],
                "min_amount must be a decimal number; got \"NaN\"",
            ),
            (
                "blocks",
                vec![("height", Arg::Integer("-1".into()))],
                "height must be a block height, an integer from 0 to 2^63-1; got \"-1\"",
            ),
            ("blocks", vec![("hight", Arg::Integer("1".into()))], "hight is not a parameter of blocks()"),
            (
                "logs",
                vec![("tx_ids", text("0x1,0x2"))],
                "tx_ids[0] must be one transaction hash; got \"0x1,0x2\", which has a comma (U+002C); pass several as a list",
            ),
            (
                "transactions",
                vec![("end_height", Arg::Integer("1".into()))],
                "start_height is required with end_height",
            ),
            ("transactions", vec![("end_time", text("2024-01-01T00:00Z"))], "start_time is required with end_time"),
            (
                "transactions",
                vec![("start_time", text("2024-01-01T00:00Z")), ("start_height", Arg::Integer("1".into()))],
                "start_height cannot be combined with start_time",
            ),
            (
                "address_transactions",
                vec![("address", text("0x1")), ("start_time", text("1700000001")), ("end_time", text("1700000000"))],
                "start_time (2023-11-14T22:13:21Z) must be <= end_time (2023-11-14T22:13:20Z)",
            ),
            (
                "cross_chain_transactions",
                vec![("start_height", Arg::Integer("2".into())), ("end_height", Arg::Integer("1".into()))],
                "start_height (2) must be <= end_height (1)",
            ),
            (
                "cross_chain_transactions",
                vec![("height", Arg::Integer("1".into())), ("start_height", Arg::Integer("2".into()))],
                "height (1) must be >= start_height (2)",
            ),
            (
                "cross_chain_transactions",
                vec![("height", Arg::Integer("2".into())), ("end_height", Arg::Integer("1".into()))],
                "height (2) must be <= end_height (1)",
            ),
            (
                "transactions",
                vec![
                    ("height", Arg::Integer("1".into())),
                    ("start_height", Arg::Integer("2".into())),
                    ("end_height", Arg::Integer("3".into())),
                ],
                "height cannot be combined with start_height and end_height",
            ),
        ] {
            let message = rejected(call, &args);
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
