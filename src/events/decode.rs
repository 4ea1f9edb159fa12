//! Decoding of logs as one event.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};

use super::array::Cells;
use super::event::LOG_COLUMNS;
use super::{Event, Value as EventValue};
use crate::columns::{self, DecimalPolicy, NumericOverflow, Projection, Value};
use crate::query::Records;

/// Logs of one event with the values of its parameters. Logs that are not of the event are kept beside them.
#[derive(Clone, Debug)]
pub struct Decoded {
    event: Arc<Event>,
    /// The logs of the event.
    pub matched: Records,
    /// Logs of other events.
    pub unmatched: Records,
    /// Those logs of the event that have a value that could not be decoded, and is null.
    pub malformed: Records,
    /// Values of each parameter, one for each matched log.
    values: Vec<Vec<Option<EventValue>>>,
    selection: Projection,
}

/// Decodes the logs of an event; the error is a column that the records lack.
pub fn decode(event: &Arc<Event>, logs: &Records, selection: Projection) -> Result<Decoded, &'static str> {
    let topics = column("topics", logs, selection)?;
    let data = column("data", logs, selection)?;
    let mut values = vec![Vec::new(); event.params().len()];
    let mut matched = Vec::new();
    let mut unmatched = Vec::new();
    let mut malformed = Vec::new();
    for row in 0..logs.len() {
        let Some((chunk, at)) = logs.locate(row) else { break };
        let topics = match chunk.value(topics, at) {
            Value::Utf8List(topics) => topics,
            _ => Vec::new(),
        };
        let Some(read) = event.read(&topics, chunk.text(data, at).unwrap_or_default()) else {
            unmatched.push(row);
            continue;
        };
        matched.push(row);
        if read.iter().any(Option::is_none) {
            malformed.push(row);
        }
        for (column, value) in values.iter_mut().zip(read) {
            column.push(value);
        }
    }
    Ok(Decoded {
        event: event.clone(),
        matched: logs.take(matched),
        unmatched: logs.take(unmatched),
        malformed: logs.take(malformed),
        values,
        selection,
    })
}

/// The error is the name of a column that the records lack.
fn column(name: &'static str, logs: &Records, selection: Projection) -> Result<usize, &'static str> {
    let column = logs.record().position(name);
    column.filter(|column| selection.contains(*column)).ok_or(name)
}

impl Decoded {
    pub fn event(&self) -> &Arc<Event> {
        &self.event
    }

    /// Columns of the log that the records have.
    fn log_schema(&self) -> SchemaRef {
        let record = self.matched.record();
        let schema = columns::schema(record, DecimalPolicy::Decimal);
        let positions = LOG_COLUMNS.iter().filter_map(|name| record.position(name));
        let positions: Vec<usize> = positions.filter(|column| self.selection.contains(*column)).collect();
        Arc::new(schema.project(&positions).expect("positions of this schema"))
    }

    /// Columns of the log, then the parameters.
    pub fn schema(&self, numbers: DecimalPolicy) -> SchemaRef {
        let log = self.log_schema();
        let params = self.event.params().iter();
        let params = params.map(|param| Arc::new(Field::new(&param.column, param.ty.data_type(numbers), true)));
        Arc::new(Schema::new(log.fields().iter().cloned().chain(params).collect::<Vec<_>>()))
    }

    pub fn batches(&self, numbers: DecimalPolicy) -> Result<Vec<RecordBatch>, NumericOverflow> {
        let log_schema = self.log_schema();
        let schema = self.schema(numbers);
        let mut first = 0;
        let mut batches = Vec::with_capacity(self.matched.chunks().len());
        for chunk in self.matched.chunks() {
            let log = columns::batch(chunk, &log_schema, numbers, first)?;
            let rows = first..first + chunk.rows();
            let mut arrays = log.columns().to_vec();
            for (param, values) in self.event.params().iter().zip(&self.values) {
                let values = rows.clone().zip(values[rows.clone()].iter().map(Option::as_ref)).collect();
                arrays.push(Cells { column: &param.column, numbers, values }.array(&param.ty)?);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows()));
            let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options);
            batches.push(batch.expect("arrays of the schema's types"));
            first = rows.end;
        }
        Ok(batches)
    }

    /// Values of the parameters of one matched log.
    pub fn values(&self, row: usize) -> impl Iterator<Item = Option<&EventValue>> {
        self.values.iter().map(move |values| values.get(row).and_then(Option::as_ref))
    }
}
