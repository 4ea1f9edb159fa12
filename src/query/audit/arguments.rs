//! `Arguments`: the values that records can have under the arguments of a query. The declaration says which column an argument
//! bounds (`Param::bounds`); each bound becomes a condition here, and `Selector` drops the rows that do not meet it.

use serde_json::{Map, Value as Json};

use crate::columns::{Columns, Value};
use crate::interface::{Bound, Number, Param, ParamKind, ParamRole, digits};
use crate::query::request::Query;

/// Conditions that every record of a query meets. Values that are missing contradict none of them.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    conditions: Vec<Condition>,
    /// A parameter, and the column whose values do not rise under it.
    descending: Option<(&'static str, usize)>,
    /// The times of records of later blocks than those that the heights were found by.
    later: Option<LaterBlocks>,
}

#[derive(Clone, Debug)]
struct LaterBlocks {
    /// Height of the newest block that was known.
    newest: i64,
    /// Column of the height.
    height: usize,
    times: Condition,
}

#[derive(Clone, Debug)]
struct Condition {
    parameter: &'static str,
    /// Columns of which one has to meet the test.
    columns: Vec<usize>,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    /// Letters of either case are the same. A list of several values does not show which of them was compared.
    Text(String),
    /// The digits of a name: `ERC20` and `token_20`.
    Digits(String),
    AtLeast(String),
    AtMost(String),
    /// Heights, or Unix milliseconds; both ends are included.
    Between(i64, i64),
}

impl Arguments {
    /// The conditions of a query whose heights are known.
    pub fn of(query: &Query) -> Self {
        let given = query.canonical_args().unwrap_or_default();
        let mut arguments = Self::default();
        for param in query.endpoint().params {
            let Some(value) = text_of(&given, param.name) else { continue };
            if query.may_replay_other(param, &value) {
                continue;
            }
            match param.kind {
                // The rows of a slice of times are selected by its range; those of a look-up by its hashes.
                ParamKind::Hashes { .. } | ParamKind::Time => {}
                _ => arguments.add(query, param, &value, &given),
            }
        }
        arguments.add_times(query);
        arguments
    }

    fn add(&mut self, query: &Query, param: &'static Param, value: &str, given: &Map<String, Json>) {
        let record = query.endpoint().record();
        let mut alternatives = Vec::new();
        for (name, bound) in param.bounds {
            let Some(column) = record.position(name) else { continue };
            let test = match bound {
                Bound::EqualInSome | Bound::InvolvedInSome => {
                    alternatives.push(column);
                    continue;
                }
                Bound::Equal if param.kind == ParamKind::Height => value.parse().ok().map(|at| Test::Between(at, at)),
                Bound::AtLeast if param.kind == ParamKind::Height => {
                    value.parse().ok().map(|low| Test::Between(low, i64::MAX))
                }
                Bound::AtMost if param.kind == ParamKind::Height => {
                    value.parse().ok().map(|high| Test::Between(i64::MIN, high))
                }
                Bound::Equal => Some(Test::Text(value.to_owned())),
                Bound::SameNumber => Some(Test::Digits(digits(value))),
                // The API does not say of every bound whether it is included.
                Bound::AtLeast | Bound::Above => Some(Test::AtLeast(value.to_owned())),
                Bound::AtMost => Some(Test::AtMost(value.to_owned())),
                Bound::Descending(order) => {
                    self.descending = self.descending.or((*order == value).then_some((param.name, column)));
                    None
                }
                Bound::Side { value: side, other } if *side == value => text_of(given, other).map(Test::Text),
                Bound::Side { .. } => None,
            };
            let parameter = param.name;
            self.conditions.extend(test.map(|test| Condition { parameter, columns: vec![column], test }));
        }
        if !alternatives.is_empty() {
            let test = Test::Text(value.to_owned());
            self.conditions.push(Condition { parameter: param.name, columns: alternatives, test });
        }
    }

    /// Times for which heights were found: block times that are not in the order of heights lie outside.
    fn add_times(&mut self, query: &Query) {
        let Some((low, high)) = query.options().times else { return };
        let record = query.endpoint().record();
        let mut params = query.endpoint().params.iter();
        let Some(param) = params.find(|param| matches!(param.role, ParamRole::TimeOfHeight(..))) else { return };
        let columns: Vec<usize> = param.bounds.iter().filter_map(|(name, _)| record.position(name)).collect();
        let (low, high) = (low.unwrap_or(i64::MIN), high.unwrap_or(i64::MAX));
        let times = || Condition { parameter: param.name, columns: columns.clone(), test: Test::Between(low, high) };
        self.conditions.push(times());
        let later = query.options().known_newest.zip(record.height());
        self.later = later.map(|(newest, height)| LaterBlocks { newest, height, times: times() });
    }

    /// True if a record is outside of the times that are wanted, in a later block than those that the heights were found
    /// by.
    pub fn is_of_other_time(&self, columns: &Columns, row: usize) -> bool {
        self.later.as_ref().is_some_and(|later| {
            matches!(columns.value(later.height, row), Value::Integer(height) if height > later.newest)
                && !later.times.is_possible(columns, row)
        })
    }

    /// Adds the height of one slice of a range of heights.
    #[must_use]
    pub fn of_height(column: Option<usize>, height: i64) -> Self {
        let conditions = column.into_iter().map(|column| Condition {
            parameter: "height",
            columns: vec![column],
            test: Test::Between(height, height),
        });
        Self { conditions: conditions.collect(), ..Self::default() }
    }

    /// Parameter whose order the records of a page do not have. A response is of one moment.
    pub fn out_of_order(&self, columns: &Columns) -> Option<&'static str> {
        let (parameter, column) = self.descending?;
        let rises = (1..columns.rows()).any(|row| match (columns.value(column, row - 1), columns.value(column, row)) {
            (Value::Number(above), Value::Number(below)) => compare(above, below).unwrap_or(false),
            _ => false,
        });
        rises.then_some(parameter)
    }

    pub fn are_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Parameter that a record contradicts, if it does.
    pub fn contradicted(&self, columns: &Columns, row: usize) -> Option<&'static str> {
        let broken = self.conditions.iter().find(|condition| !condition.is_possible(columns, row));
        broken.map(|condition| condition.parameter)
    }
}

impl Condition {
    /// True if one of the columns meets the test, or none of them has a value. A value that is not known may meet it.
    fn is_possible(&self, columns: &Columns, row: usize) -> bool {
        let mut is_met = None;
        for column in &self.columns {
            let value = columns.value(*column, row);
            if matches!(value, Value::Null) {
                return true;
            }
            is_met = self.test.is_met(&value).map(|this| this || is_met == Some(true)).or(is_met);
        }
        is_met.unwrap_or(true)
    }
}

impl Test {
    /// `None` if the value is missing.
    fn is_met(&self, value: &Value<'_>) -> Option<bool> {
        match (self, value) {
            (_, Value::Utf8("") | Value::Number("")) => None,
            // Most values are equal in their letters' case too, which is faster to compare.
            (Self::Text(expected), Value::Utf8(text)) if text == expected => Some(true),
            // Several senders or receivers are one text: another column must not decide against the one that is among them.
            (Self::Text(expected), Value::Utf8(text)) if text.contains(',') => {
                text.split(',').any(|each| each.trim().eq_ignore_ascii_case(expected)).then_some(true)
            }
            (Self::Text(expected), Value::Utf8(text)) => Some(text.eq_ignore_ascii_case(expected)),
            (Self::Digits(expected), Value::Utf8(text)) => {
                Some(digits(text)).filter(|digits| !digits.is_empty()).map(|digits| digits == *expected)
            }
            (Self::AtLeast(low), Value::Number(text)) => compare(text, low).map(|is_less| !is_less),
            (Self::AtMost(high), Value::Number(text)) => compare(high, text).map(|is_less| !is_less),
            (Self::Between(low, high), Value::Integer(number) | Value::Time(number)) => {
                Some((*low..=*high).contains(number))
            }
            _ => None,
        }
    }
}

fn text_of(given: &Map<String, Json>, name: &str) -> Option<String> {
    let value = given.get(name)?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn compare(number: &str, other: &str) -> Option<bool> {
    Some(Number::parse(number)?.is_less_than(&Number::parse(other)?))
}
