//! Columns as a stream of Arrow IPC, with their values as they were decoded.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, cast::AsArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use super::export::{UTC, item_field};
use super::{Column, Columns, StringLayout};
use crate::interface::{Kind, RecordType};

/// Returns the rows of columns that are all decoded.
pub fn to_ipc(record: &'static RecordType, chunks: &[Columns]) -> Result<Vec<u8>, ArrowError> {
    let schema = decoded_schema(record);
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    for chunk in chunks {
        let columns = (0..record.fields.len()).map(|column| chunk.share(column, StringLayout::Utf8)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows()));
        writer.write(&RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)?;
    }
    writer.into_inner()
}

/// Returns the rows that `to_ipc` wrote for the same record type.
pub fn from_ipc(record: &'static RecordType, bytes: &[u8]) -> Result<Vec<Columns>, ArrowError> {
    let reader = StreamReader::try_new(Cursor::new(bytes), None)?;
    if reader.schema().fields() != decoded_schema(record).fields() {
        return Err(ArrowError::SchemaError(format!("the rows are no {}", record.name)));
    }
    reader
        .map(|batch| {
            let batch = batch?;
            let fields = record.fields.iter().zip(batch.columns());
            let columns = fields.map(|(field, array)| Column::decoded(field.kind, array)).collect();
            Ok(Columns { record, columns, rows: batch.num_rows() })
        })
        .collect()
}

fn decoded_schema(record: &RecordType) -> SchemaRef {
    let fields = record.fields.iter().map(|field| Field::new(field.name, decoded_type(field.kind), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn decoded_type(kind: Kind) -> DataType {
    match kind {
        Kind::Integer => DataType::Int64,
        Kind::Time => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
        Kind::Boolean => DataType::Boolean,
        Kind::Amount | Kind::ApproxDecimal | Kind::Uint256 | Kind::Utf8 | Kind::Direction => DataType::Utf8,
        Kind::Utf8List => DataType::List(item_field()),
    }
}

impl Column {
    /// Wraps an array of the type that the kind is decoded to.
    fn decoded(kind: Kind, array: &ArrayRef) -> Self {
        match kind {
            Kind::Integer => Self::Integer(array.as_primitive().clone()),
            Kind::Time => Self::Time(array.as_primitive().clone()),
            Kind::Boolean => Self::Boolean(array.as_boolean().clone()),
            Kind::Amount | Kind::ApproxDecimal | Kind::Uint256 | Kind::Utf8 | Kind::Direction => {
                Self::Utf8(array.as_string().clone())
            }
            Kind::Utf8List => Self::Utf8List(array.as_list().clone()),
        }
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
            let restored = from_ipc(record, &to_ipc(record, &chunks).unwrap()).unwrap();
            assert_eq!(restored, chunks, "{}", record.name);
        }
    }

    #[test]
    fn rows_of_another_type_or_cut_short_are_an_error() {
        let bytes = to_ipc(RECORDS[0], &[rows(RECORDS[0], 3)]).unwrap();
        assert!(from_ipc(RECORDS[1], &bytes).is_err());
        assert!(from_ipc(RECORDS[0], &bytes[..bytes.len() / 2]).is_err());
    }
}
