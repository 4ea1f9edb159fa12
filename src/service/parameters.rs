//! A request's query, read against the declared parameters: each value checked for its kind, ranges for their order.
//! Undeclared parameters are ignored; error responses name the parameter.

use chrono::{DateTime, Months};
use percent_encoding::percent_decode_str;

use super::error_response::ErrorResponse;
use super::schema::rank;
use super::settings::Settings;
use crate::interface::{Chain, Endpoint, Param, ParamKind, ParamRole};

const DEFAULT_LIMIT: u64 = 20;

const MISSING: &str = "50014";
const OUT_OF_RANGE: &str = "50015";
const WRONG: &str = "50016";
const TOO_MANY: &str = "50024";
const WRONG_RANGE: &str = "50025";

/// A value of its declared kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd)]
pub enum ParamValue {
    /// In lower case, as addresses and hashes are kept.
    Text(String),
    Choice(&'static str),
    Height(i64),
    Time(i64),
    /// A number as its rank, see `schema::rank`.
    Amount(Vec<u8>),
    Hashes(Vec<String>),
}

#[derive(Debug, PartialEq)]
pub struct Parameters {
    /// By our names, in the declared order.
    pub values: Vec<(&'static str, ParamValue)>,
    pub page: u64,
    pub limit: u64,
}

impl Parameters {
    pub fn read(query: &str, endpoint: &'static Endpoint, settings: &Settings) -> Result<Self, ErrorResponse> {
        let sent = Sent::read(query)?;
        let chain = match endpoint.chain {
            Chain::Main => &settings.main_chain,
            Chain::Zone => &settings.zone_chain,
        };
        let chain_name = sent.single("chainShortName")?.ok_or_else(|| missing("chainShortName"))?;
        if !chain_name.eq_ignore_ascii_case(chain) {
            return Err(ErrorResponse::new(
                "50038",
                format!("chainShortName {chain_name:?} is not supported by this endpoint"),
            ));
        }
        let mut values = Vec::new();
        for param in endpoint.params {
            let Some(wire) = param.wire() else { continue };
            match sent.value(wire, param)? {
                Some(value) => values.push((param.name, value)),
                None if param.required => return Err(missing(wire)),
                None => {}
            }
        }
        let mut parameters = Self { values, page: 1, limit: DEFAULT_LIMIT };
        parameters.check_ranges(endpoint)?;
        if let Some(max_limit) = settings.deployment.page_size_max(endpoint) {
            parameters.page = sent.count("page", i64::MAX.unsigned_abs())?.unwrap_or(1);
            parameters.limit = sent.count("limit", u64::from(max_limit))?.unwrap_or(DEFAULT_LIMIT);
        }
        Ok(parameters)
    }

    pub fn get(&self, name: &str) -> Option<&ParamValue> {
        self.values.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    fn check_ranges(&self, endpoint: &Endpoint) -> Result<(), ErrorResponse> {
        for param in endpoint.params {
            let ParamRole::RangeStart(wire, partner) = param.role else { continue };
            let Some((low, high)) = self.get(param.name).zip(self.get(partner)) else { continue };
            if low > high {
                return Err(ErrorResponse::new(
                    WRONG_RANGE,
                    format!("Parameter {wire} must be <= the end of its range"),
                ));
            }
            if let (ParamValue::Time(low), ParamValue::Time(high)) = (low, high)
                && years_after(*low, 1).is_none_or(|year| *high > year)
            {
                return Err(ErrorResponse::new(
                    WRONG_RANGE,
                    format!("Parameter {wire} must be at most a year before the end of its range"),
                ));
            }
        }
        Ok(())
    }
}

/// Returns the date and time `years` later (or earlier, if negative), as the API counts years.
pub fn years_after(time: i64, years: i32) -> Option<i64> {
    let start = DateTime::from_timestamp_millis(time)?;
    let months = Months::new(12 * years.unsigned_abs());
    let shifted = if years < 0 { start.checked_sub_months(months) } else { start.checked_add_months(months) };
    shifted.map(|time| time.timestamp_millis())
}

fn missing(wire: &str) -> ErrorResponse {
    ErrorResponse::new(MISSING, format!("Parameter {wire} can not be empty"))
}

fn wrong(wire: &str, text: &str, expected: &str) -> ErrorResponse {
    ErrorResponse::new(WRONG, format!("Parameter {wire} must be {expected}; got {text:?}"))
}

/// Names and values as sent, decoded.
struct Sent(Vec<(String, String)>);

impl Sent {
    fn read(query: &str) -> Result<Self, ErrorResponse> {
        let decode =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8().map(|text| text.into_owned());
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = decode(name).and_then(|name| Ok((name, decode(value)?)));
            pairs.push(decoded.map_err(|_| wrong(name, value, "UTF-8"))?);
        }
        Ok(Self(pairs))
    }

    fn all(&self, wire: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(name, _)| name == wire).map(|(_, value)| value.as_str())
    }

    fn single(&self, wire: &str) -> Result<Option<&str>, ErrorResponse> {
        let mut values = self.all(wire);
        let first = values.next();
        if values.next().is_some() {
            return Err(ErrorResponse::new(TOO_MANY, format!("Parameter {wire} must be given once")));
        }
        match first {
            Some("") => Err(missing(wire)),
            first => Ok(first),
        }
    }

    fn count(&self, wire: &str, max: u64) -> Result<Option<u64>, ErrorResponse> {
        let Some(text) = self.single(wire)? else { return Ok(None) };
        let count: u64 = plain_digits(text).ok_or_else(|| wrong(wire, text, "an integer"))?;
        if count == 0 || count > max {
            return Err(ErrorResponse::new(
                OUT_OF_RANGE,
                format!("Parameter {wire} must be from 1 to {max}; got {count}"),
            ));
        }
        Ok(Some(count))
    }

    fn value(&self, wire: &'static str, param: &Param) -> Result<Option<ParamValue>, ErrorResponse> {
        if let ParamKind::Hashes { per_request } = param.kind {
            return self.hashes(wire, per_request);
        }
        let Some(text) = self.single(wire)? else { return Ok(None) };
        let value = match param.kind {
            ParamKind::Text => Some(ParamValue::Text(text.to_ascii_lowercase())),
            ParamKind::OneOf(choices) => {
                choices.iter().find(|choice| **choice == text).map(|choice| ParamValue::Choice(choice))
            }
            ParamKind::Height => plain_digits(text).map(ParamValue::Height),
            ParamKind::Time => plain_digits(text).map(ParamValue::Time),
            ParamKind::Amount { min } => {
                let amount = if is_plain_decimal(text) { rank(text) } else { None };
                if amount.is_some() && amount < rank(&min.to_string()) {
                    return Err(ErrorResponse::new(
                        OUT_OF_RANGE,
                        format!("Parameter {wire} must be >= {min}; got {text}"),
                    ));
                }
                amount.map(ParamValue::Amount)
            }
            ParamKind::Hashes { .. } => None,
        };
        value.map(Some).ok_or_else(|| wrong(wire, text, &expected(param.kind)))
    }

    fn hashes(&self, wire: &'static str, max_hashes: usize) -> Result<Option<ParamValue>, ErrorResponse> {
        let hashes: Vec<String> =
            self.all(wire).flat_map(|text| text.split(',')).map(str::to_ascii_lowercase).collect();
        if hashes.iter().any(String::is_empty) {
            return Err(missing(wire));
        }
        if hashes.len() > max_hashes {
            return Err(ErrorResponse::new(
                TOO_MANY,
                format!("Parameter {wire} must hold at most {max_hashes} hashes; got {}", hashes.len()),
            ));
        }
        Ok(if hashes.is_empty() { None } else { Some(ParamValue::Hashes(hashes)) })
    }
}

fn expected(kind: ParamKind) -> String {
    match kind {
        ParamKind::Text | ParamKind::Hashes { .. } => "a string".into(),
        ParamKind::Height => "a block height".into(),
        ParamKind::Time => "a Unix time in milliseconds".into(),
        ParamKind::Amount { .. } => "a non-negative decimal number".into(),
        ParamKind::OneOf(choices) => format!("one of {}", choices.join(", ")),
    }
}

/// Digits with an optional fraction: neither sign nor exponent.
fn is_plain_decimal(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    [whole, fraction].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An integer of digits only, without sign, point or blank.
fn plain_digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::{ENDPOINTS, endpoint};

    fn read(name: &str, query: &str) -> Result<Parameters, ErrorResponse> {
        let endpoint = endpoint(name).unwrap();
        let chain = if endpoint.chain == Chain::Main { "MAIN" } else { "ZONE_CHAIN" };
        Parameters::read(&format!("chainShortName={chain}{query}"), endpoint, &Settings::default())
    }

    fn assert_rejected(name: &str, query: &str, code: &str, named: &str) {
        let error_response = read(name, query).expect_err(query);
        assert_eq!((error_response.code, error_response.status), (code, 400), "{query}: {}", error_response.msg);
        assert!(error_response.msg.contains(named), "{query}: {}", error_response.msg);
    }

    #[test]
    fn paging_has_defaults_and_limits_of_its_endpoint() {
        let mut checked = 0;
        for endpoint in &ENDPOINTS {
            let Some(max_page_size) = endpoint.page_size_max() else { continue };
            let given = if endpoint.param("address").is_some_and(|param| param.required) { "&address=0xa" } else { "" };
            let given = format!("{given}&tokenContractAddress=0xb");
            let parameters = read(endpoint.name, &given).unwrap();
            assert_eq!((parameters.page, parameters.limit), (1, 20));
            let parameters = read(endpoint.name, &format!("{given}&page=7&limit={max_page_size}")).unwrap();
            assert_eq!((parameters.page, parameters.limit), (7, u64::from(max_page_size)));
            assert_rejected(endpoint.name, &format!("{given}&limit={}", max_page_size + 1), OUT_OF_RANGE, "limit");
            for wrong in ["abc", "-1", "1.0", "+1", "%201", "99999999999999999999"] {
                assert_rejected(endpoint.name, &format!("{given}&limit={wrong}"), WRONG, "limit");
                assert_rejected(endpoint.name, &format!("{given}&page={wrong}"), WRONG, "page");
            }
            assert_rejected(endpoint.name, &format!("{given}&page=0"), OUT_OF_RANGE, "page");
            assert_rejected(endpoint.name, &format!("{given}&limit=0"), OUT_OF_RANGE, "limit");
            assert_rejected(endpoint.name, &format!("{given}&page="), MISSING, "page");
            assert_rejected(endpoint.name, &format!("{given}&page=1&page=2"), TOO_MANY, "page");
            checked += 1;
        }
        assert!(checked > 0);
    }

    #[test]
    fn required_parameters_are_required() {
        let mut checked = 0;
        for endpoint in &ENDPOINTS {
            for param in endpoint.params.iter().filter(|param| param.required) {
                let wire = param.wire().unwrap();
                assert_rejected(endpoint.name, "", MISSING, wire);
                assert_rejected(endpoint.name, &format!("&{wire}="), MISSING, wire);
                checked += 1;
            }
        }
        assert!(checked > 0);
        let none = Parameters::read("", &ENDPOINTS[0], &Settings::default()).unwrap_err();
        assert_eq!((none.code, none.status), (MISSING, 400));
    }

    #[test]
    fn values_of_the_wrong_kind_are_rejected_by_name() {
        assert_rejected("tokens", "&protocolType=token_21", WRONG, "protocolType");
        assert_rejected("tokens", "&orderBy=totalmarketcap", WRONG, "orderBy");
        assert_rejected("tokens", "&startTime=2026-01-31", WRONG, "startTime");
        assert_rejected("address_transactions", "&address=0xa&isFromOrTo=both", WRONG, "isFromOrTo");
        assert_rejected("token_transfers", "&tokenContractAddress=0xa&minAmount=-1", WRONG, "minAmount");
        assert_rejected("token_transfers", "&tokenContractAddress=0xa&maxAmount=1,5", WRONG, "maxAmount");
        assert_rejected("large_transactions", "&type=99.999", OUT_OF_RANGE, "type");
        for amount in ["NaN", "1e3", "+100", "100.", ".5", "\u{661}00"] {
            assert_rejected("large_transactions", &format!("&type={amount}"), WRONG, "type");
        }
        assert_rejected("blocks", "&height=1.5", WRONG, "height");
        assert_rejected("blocks", "&height=9223372036854775808", WRONG, "height");
        assert_rejected("blocks", "&height=%ff", WRONG, "height");
    }

    #[test]
    fn reversed_and_overlong_ranges_are_rejected() {
        assert_rejected(
            "token_transfers",
            "&tokenContractAddress=0xa&minAmount=2&maxAmount=1.9",
            WRONG_RANGE,
            "minAmount",
        );
        assert_rejected(
            "cross_chain_transactions",
            "&startBlockHeight=2&endBlockHeight=1",
            WRONG_RANGE,
            "startBlockHeight",
        );
        assert_rejected("tokens", "&startTime=1700000000001&endTime=1700000000000", WRONG_RANGE, "startTime");
        // 2024 has a 29 February, so a year from 2023-03-01 is 366 days.
        let (start, year) = (1_677_628_800_000_i64, 366 * 86_400_000);
        assert!(read("tokens", &format!("&startTime={start}&endTime={}", start + year)).is_ok());
        assert_rejected(
            "tokens",
            &format!("&startTime={start}&endTime={}", start + year + 1),
            WRONG_RANGE,
            "startTime",
        );
        assert!(read("tokens", &format!("&startTime=0&endTime={}", i64::MAX)).is_err());
    }

    #[test]
    fn hashes_may_be_separated_by_commas_or_repeated() {
        let read = |query: &str| read("transactions_by_hash", query).map(|found| found.values[0].1.clone());
        let expected = Ok(ParamValue::Hashes(vec!["0xa".into(), "0xb".into()]));
        assert_eq!(read("&txId=0xA,0xb"), expected);
        assert_eq!(read("&txId=0xa%2C0xB"), expected);
        assert_eq!(read("&txId=0xa&txId=0xb"), expected);
        let hashes = |count: usize| format!("&txId={}", vec!["0xa"; count].join(","));
        assert!(read(&hashes(20)).is_ok());
        assert_rejected("transactions_by_hash", &hashes(21), TOO_MANY, "txId");
        assert_rejected("logs", &hashes(2), TOO_MANY, "txId");
        assert_rejected("transactions_by_hash", "&txId=0xa,,0xb", MISSING, "txId");
    }

    #[test]
    fn the_chain_is_named_in_either_case_and_fits_the_endpoint() {
        let settings = Settings::default();
        let code = |name: &str, chain: &str| {
            Parameters::read(&format!("chainShortName={chain}"), endpoint(name).unwrap(), &settings)
                .map_or_else(|error_response| (error_response.code, error_response.status), |_| ("0", 200))
        };
        assert_eq!(code("tokens", "main"), ("0", 200));
        assert_eq!(code("blocks", "Zone_Chain"), ("0", 200));
        assert_eq!(code("tokens", "ZONE_CHAIN"), ("50038", 200));
        assert_eq!(code("blocks", "MAIN"), ("50038", 200));
        assert_eq!(code("tokens", ""), (MISSING, 400));
    }
}
