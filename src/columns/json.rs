//! Columns as JSON, with their values as they were decoded.

use std::collections::BTreeMap;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{BooleanArray, Int64Array, StringArray, TimestampMillisecondArray, cast::AsArray};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use super::export::{UTC, item_field};
use super::{Column, Columns};
use crate::interface::{Kind, RecordType};

/// Returns the rows of columns that are all decoded.
pub fn to_json(record: &'static RecordType, chunks: &[Columns]) -> serde_json::Result<Vec<u8>> {
    let names = record.fields.iter().map(|field| field.name);
    let chunks = chunks.iter().map(|chunk| names.clone().zip(chunk.columns.iter().cloned()).collect());
    serde_json::to_vec(&chunks.collect::<Vec<BTreeMap<&str, Column>>>())
}

/// Returns the rows that `to_json` wrote for the same record type.
pub fn from_json(record: &'static RecordType, bytes: &[u8]) -> serde_json::Result<Vec<Columns>> {
    let chunks: Vec<BTreeMap<&str, &RawValue>> = serde_json::from_slice(bytes)?;
    chunks.iter().map(|chunk| chunk_of(record, chunk)).collect()
}

fn chunk_of(record: &'static RecordType, named: &BTreeMap<&str, &RawValue>) -> serde_json::Result<Columns> {
    let other = || serde::de::Error::custom(format_args!("the rows are no {}", record.name));
    let mut columns = Vec::with_capacity(record.fields.len());
    for field in record.fields {
        columns.push(Column::from_json(field.kind, named.get(field.name).ok_or_else(other)?)?);
    }
    let rows = columns.first().map_or(0, |column| column.array().len());
    if named.len() != columns.len() || columns.iter().any(|column| column.array().len() != rows) {
        return Err(other());
    }
    Ok(Columns { record, columns: columns.into(), rows })
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(array) => serializer.collect_seq(array),
            Self::Time(array) => serializer.collect_seq(array),
            Self::Boolean(array) => serializer.collect_seq(array),
            Self::Utf8(array) => serializer.collect_seq(array),
            Self::Utf8View(array) => serializer.collect_seq(array),
            Self::Utf8List(array) => serializer.collect_seq(array.iter().map(|list| {
                let list = list?;
                Some(list.as_string::<i32>().iter().map(|item| item.map(str::to_owned)).collect::<Vec<_>>())
            })),
            Self::Skipped(_) => Err(S::Error::custom("a column was not decoded")),
        }
    }
}

impl Column {
    fn from_json(kind: Kind, values: &RawValue) -> serde_json::Result<Self> {
        let text = values.get();
        Ok(match kind {
            Kind::Integer => Self::Integer(Int64Array::from(serde_json::from_str::<Vec<Option<i64>>>(text)?)),
            Kind::Time => {
                let times: Vec<Option<i64>> = serde_json::from_str(text)?;
                Self::Time(TimestampMillisecondArray::from(times).with_timezone(UTC))
            }
            Kind::Boolean => Self::Boolean(BooleanArray::from(serde_json::from_str::<Vec<Option<bool>>>(text)?)),
            Kind::Amount | Kind::ApproxDecimal | Kind::Uint256 | Kind::Utf8 | Kind::Direction => {
                Self::Utf8(StringArray::from(serde_json::from_str::<Vec<Option<String>>>(text)?))
            }
            Kind::Utf8List => {
                let mut lists = ListBuilder::new(StringBuilder::new()).with_field(item_field());
                for list in serde_json::from_str::<Vec<Option<Vec<Option<String>>>>>(text)? {
                    lists.append_option(list);
                }
                Self::Utf8List(lists.finish())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::ColumnsBuilder;
    use crate::interface::RECORDS;

    fn rows(record: &'static RecordType, count: usize) -> Columns {
        let mut rows = ColumnsBuilder::new(record, count);
        for row in 0..count {
            for (column, field) in record.fields.iter().enumerate() {
                let text = row.to_string();
                if field.kind != Kind::Utf8List && (row + column) % 3 > 0 {
                    rows.append_str(column, if field.kind == Kind::Boolean { "true" } else { &text }).unwrap();
                }
            }
            rows.finish_row();
        }
        rows.finish()
    }

    #[test]
    fn rows_of_every_record_type_are_the_same_after_a_round_trip() {
        for record in RECORDS {
            let chunks = [rows(record, 7), rows(record, 2)];
            let restored = from_json(record, &to_json(record, &chunks).unwrap()).unwrap();
            assert_eq!(restored, chunks, "{}", record.name);
        }
    }

    #[test]
    fn rows_of_another_type_or_cut_short_are_an_error() {
        let bytes = to_json(RECORDS[0], &[rows(RECORDS[0], 3)]).unwrap();
        assert!(from_json(RECORDS[1], &bytes).is_err());
        assert!(from_json(RECORDS[0], &bytes[..bytes.len() / 2]).is_err());
    }
}
