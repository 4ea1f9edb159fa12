//! Treatment of records whose members contradict each other.

use super::decoder::Decoder;
use super::error::DecodeError;
use super::json::ValueKind;
use super::reader::Reader;
use crate::interface::{Kind, Number};

/// Most members of a record that an error names.
const MAX_SHOWN: usize = 12;
/// Problem of a member that is there twice.
pub(super) const TWICE: &str = "the record has this member twice";
/// Length of a method identifier without its prefix.
const SELECTOR: usize = 8;

/// Treatment of a member's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Skip,
}

impl Decoder {
    /// Error of a record without any member that identifies it. The reader is behind the record.
    #[cold]
    pub(super) fn unidentified(&self, reader: &mut Reader<'_>, start: usize) -> DecodeError {
        let end = reader.json.current_index();
        let mut found = Vec::new();
        let mut count = 0;
        let read = self.each_member(reader, start, |_, name, _| {
            count += 1;
            if found.len() < MAX_SHOWN {
                found.push(name.to_owned());
            }
            Ok(())
        });
        if let Err(error) = read {
            return error;
        }
        let names = self.names().iter().enumerate();
        let expected = names.filter(|(column, _)| self.identity & 1 << column != 0);
        let expected: Vec<_> = expected.map(|(_, name)| name.as_str()).collect();
        let others = if count > MAX_SHOWN { " and others" } else { "" };
        let found = if found.is_empty() { "no member".to_owned() } else { found.join(", ") + others };
        let problem = format!("expected a {} with {}; found {found}", self.record.name, expected.join(" or "));
        DecodeError::new(problem, start..end)
    }

    /// Decides about the second member of one column: a second spelling of it, or the same one twice.
    #[cold]
    pub(super) fn repeated(&self, reader: &mut Reader<'_>, start: usize, key: usize) -> Result<Use, DecodeError> {
        let value_at = reader.json.current_index();
        let column = self.key_column(key);
        let mut earlier = None;
        let mut is_same_name = false;
        self.each_member(reader, start, |reader, name, at| {
            let other = self.key(name).filter(|other| at < value_at && self.key_column(*other) == column);
            if let Some(other) = other {
                is_same_name |= other == key;
                earlier = value(reader)?.or(earlier.take());
            } else {
                reader.skip()?;
            }
            Ok(())
        })?;
        reader.json.seek(value_at);
        let current = value(reader)?;
        let end = reader.json.current_index();
        reader.json.seek(value_at);
        if is_same_name {
            return Err(DecodeError::new(TWICE, value_at..end));
        }
        match (earlier, current) {
            (None, Some(_)) => Ok(Use::Read),
            (_, None) => Ok(Use::Skip),
            (Some(earlier), Some(current)) if is_equal(self.record.fields[column].kind, &earlier, &current) => {
                Ok(Use::Skip)
            }
            (Some(earlier), Some(_)) => {
                let problem = format!("another spelling of this member has the value {}", shortened(&earlier));
                Err(DecodeError::new(problem, value_at..end))
            }
        }
    }

    /// Decides about a later spelling of a field, under which some services send another text than its value.
    #[cold]
    pub(super) fn loose(&self, reader: &mut Reader<'_>, start: usize, key: usize) -> Result<Use, DecodeError> {
        let value_at = reader.json.current_index();
        let column = self.key_column(key);
        let is_identifier = match reader.json.peek()? {
            ValueKind::String => is_hex(reader.json.string()?),
            _ => true,
        };
        let mut has_first = false;
        if !is_identifier {
            self.each_member(reader, start, |reader, name, _| {
                let first = self.key(name).filter(|key| *key < self.record.fields.len());
                has_first |= first.is_some_and(|first| self.key_column(first) == column);
                reader.skip()
            })?;
        }
        reader.json.seek(value_at);
        Ok(if has_first { Use::Skip } else { Use::Read })
    }

    /// Decides about a record with a character that was replaced. The reader is behind the record.
    #[cold]
    pub(super) fn replaced(&self, reader: &mut Reader<'_>, start: usize) -> Result<(), DecodeError> {
        let end = reader.json.current_index();
        let mut has_replaced = false;
        self.each_member(reader, start, |reader, name, at| {
            let column = self.key(name).map(|key| self.key_column(key));
            reader.json.has_replaced = false;
            reader.skip()?;
            match column.filter(|column| reader.json.has_replaced && reader.projection.contains(*column)) {
                Some(column) if self.identity & 1 << column != 0 => {
                    let problem = "expected valid Unicode: a surrogate has no pair";
                    return Err(DecodeError::new(problem, at..reader.json.current_index()));
                }
                found => has_replaced |= found.is_some(),
            }
            Ok(())
        })?;
        reader.json.seek(end);
        reader.json.has_replaced = false;
        reader.members.has_replaced |= has_replaced;
        Ok(())
    }

    /// Calls `each` for every member of the record at `start`, with the reader at its value. Leaves the reader behind it.
    fn each_member(
        &self,
        reader: &mut Reader<'_>,
        start: usize,
        mut each: impl FnMut(&mut Reader<'_>, &str, usize) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        reader.json.seek(start);
        reader.object(|reader, name| {
            let at = reader.json.current_index();
            each(reader, name, at)?;
            if reader.json.current_index() == at { reader.skip() } else { Ok(()) }
        })
    }
}

/// A value as text, without the quotes of a string; `None` for an empty string or null.
fn value(reader: &mut Reader<'_>) -> Result<Option<String>, DecodeError> {
    Ok(match reader.peek()? {
        ValueKind::Null => reader.skip().map(|()| None)?,
        ValueKind::String => Some(reader.json.string()?.to_owned()).filter(|text| !text.is_empty()),
        _ => Some(reader.json.raw()?.to_owned()),
    })
}

/// True if two texts are one value of that kind.
fn is_equal(kind: Kind, left: &str, right: &str) -> bool {
    left == right
        || match kind {
            Kind::Integer => Kind::integer(left).is_ok_and(|left| Kind::integer(right) == Ok(left)),
            Kind::Time => Kind::time(left).is_ok_and(|left| Kind::time(right).is_ok_and(|right| left.0 == right.0)),
            Kind::Boolean => Kind::flag(left).is_ok_and(|left| Kind::flag(right) == Ok(left)),
            Kind::Uint256 => {
                Kind::raw_integer(left).is_ok_and(|left| Kind::raw_integer(right).is_ok_and(|right| left == right))
            }
            Kind::Amount | Kind::ApproxDecimal => {
                let numbers = Number::parse(left).zip(Number::parse(right));
                numbers.is_some_and(|(left, right)| !left.is_less_than(&right) && !right.is_less_than(&left))
            }
            // Hashes and addresses have no case.
            Kind::Utf8 | Kind::Direction => is_hex(left) && left.eq_ignore_ascii_case(right),
            Kind::Utf8List => false,
        }
}

/// True for hex digits with their prefix, or without it if they are as many as a method identifier has.
fn is_hex(text: &str) -> bool {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = digits.or(Some(text).filter(|text| text.len() == SELECTOR));
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn shortened(text: &str) -> String {
    format!("{:?}", text.chars().take(80).collect::<String>())
}
