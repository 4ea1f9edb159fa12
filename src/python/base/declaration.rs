//! The declared interface as JSON, for what is generated from it: stub, reference, tests.

use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::interface::{
    Bound, Chain, ENDPOINTS, Endpoint, Field, LAWS, Law, Order, Param, ParamKind, ParamRole, RECORDS, RecordType, Roles,
};

#[pyfunction]
pub fn _declaration() -> String {
    let records: Vec<Value> = RECORDS.iter().map(|each| record(each)).collect();
    let endpoints: Vec<Value> = ENDPOINTS.iter().map(endpoint).collect();
    let laws: Vec<Value> = LAWS.iter().map(law).collect();
    json!({"records": records, "endpoints": endpoints, "laws": laws}).to_string()
}

fn record(record: &RecordType) -> Value {
    let fields: Vec<Value> = record.fields.iter().map(field).collect();
    let Roles { height, time, block, transaction, .. } = record.roles;
    json!({
        "name": record.name,
        "doc": record.doc,
        "identity": record.identity,
        "roles": {"height": height, "time": time, "block": block, "transaction": transaction},
        "fields": fields,
    })
}

fn field(field: &Field) -> Value {
    json!({
        "name": field.name,
        "wire": field.wire,
        "kind": field.kind.name(),
        "python": field.kind.python(),
        "doc": field.doc,
    })
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let params: Vec<Value> = endpoint.params.iter().map(param).collect();
    json!({
        "name": endpoint.name,
        "doc": endpoint.doc,
        "path": endpoint.path,
        "chain": if endpoint.chain == Chain::Main { "main" } else { "zone" },
        "record": endpoint.record().name,
        "page_size_max": endpoint.page_size_max(),
        "is counted": endpoint.counts(),
        "is consecutive": endpoint.order == Order::Consecutive,
        "params": params,
    })
}

fn param(param: &Param) -> Value {
    json!({
        "name": param.name,
        "wire": param.wire(),
        "required": param.required,
        "requires": param.requires(),
        "kind": kind(param.kind),
        "doc": param.doc,
        "bounds": bounds(param.bounds),
        "is inclusive": param.is_inclusive,
        "selects list": param.selects_list(),
        "is resolved": matches!(param.role, ParamRole::TimeOfHeight(..)),
    })
}

fn law(law: &Law) -> Value {
    let columns: Vec<_> = law.columns().collect();
    json!({"name": law.name, "endpoint": law.endpoint, "columns": columns, "assumption": law.assumption})
}

fn bounds(bounds: &[(&str, Bound)]) -> Value {
    let named =
        bounds.iter().filter_map(|(column, bound)| Some(((*column).to_owned(), sent_bound(bound, bounds.len() == 1)?)));
    named.collect::<serde_json::Map<_, _>>().into()
}

/// `None` of a bound on whose column no filter narrows a request.
fn sent_bound(bound: &Bound, is_only: bool) -> Option<Value> {
    match bound {
        Bound::Equal => Some(json!("equal")),
        Bound::EqualInSome => Some(json!("equal in some")),
        Bound::AtLeast => Some(json!("at least")),
        Bound::AtMost => Some(json!("at most")),
        Bound::Above => Some(json!("above")),
        Bound::Side { value, other } => Some(json!({"value": value, "equal to": other})),
        Bound::InvolvedInSome if is_only => Some(json!("involved")),
        Bound::InvolvedInSome | Bound::SameNumber | Bound::Descending(_) => None,
    }
}

fn kind(kind: ParamKind) -> Value {
    match kind {
        ParamKind::Text => json!("text"),
        ParamKind::Height => json!("height"),
        ParamKind::Time => json!("time"),
        ParamKind::Amount { .. } => json!("amount"),
        ParamKind::OneOf(choices) => json!({"one of": choices}),
        ParamKind::Hashes { per_request } => json!({"hashes per request": per_request}),
    }
}
