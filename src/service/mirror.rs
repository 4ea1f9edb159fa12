//! Mirrored queries, and the requests that they cover. A request that is narrower than a mirrored query is served from
//! its records. A request that is not covered is an error, never an empty list.

use rusqlite::{Connection, Row};

use super::filter::Filter;
use super::parameters::{ParamValue, Parameters};
use super::schema::{Table, rank};
use super::settings::{ServiceError, Settings};
use crate::cassette::{Interaction, Outcome, Request};
use crate::columns::Columns;
use crate::interface::{Endpoint, ParamKind, Shape, endpoint};

pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS mirrored_query (id INTEGER PRIMARY KEY, endpoint TEXT, query TEXT, \
                         hashes TEXT, first INTEGER, last INTEGER, sliced INTEGER, ended INTEGER, total INTEGER, \
                         lowest_height INTEGER)";

type Values = Vec<(&'static str, ParamValue)>;

/// One list, or one set of lookups, that was requested for a mirrored query.
#[derive(Debug)]
pub struct MirroredQuery {
    pub endpoint: &'static Endpoint,
    /// The request without its page, as sent.
    pub query: String,
    /// Hashes that were looked up, in lower case.
    pub hashes: Vec<String>,
    /// Sequence numbers of the first and the last row; none if the last is smaller.
    pub rows: (i64, i64),
    /// The query was split into several lists: only rows that match the filters are of this one.
    pub sliced: bool,
    /// The list was read to its end.
    pub ended: bool,
    /// Length of the list as reported by the service.
    pub total: u64,
    /// Smallest height, if heights never rise from one row to the next: all rows above it were mirrored.
    pub lowest_height: Option<i64>,
    filters: Values,
}

/// A selection of rows that covers a request.
pub struct Coverage {
    pub filter: Filter,
    /// Length of a list of which only the beginning was mirrored.
    pub total: Option<u64>,
}

impl MirroredQuery {
    /// The lists that a query was made of, from its records and the interactions that were recorded meanwhile. `limit`
    /// is the most records that the query could return.
    pub fn of(
        endpoint: &'static Endpoint,
        records: &Columns,
        first: i64,
        interactions: &[Interaction],
        limit: Option<usize>,
        settings: &Settings,
    ) -> Result<Vec<Self>, ServiceError> {
        let count = records.rows();
        let rows = (first, first + count as i64 - 1);
        let mut lists: Vec<Self> = Vec::new();
        for Interaction { request, outcome, .. } in interactions {
            let Outcome::Response(response) = outcome else { continue };
            let Some(reported) = Reported::read(endpoint, &response.body) else { continue };
            let query = query_of(request);
            let parameters = Parameters::read(&query, endpoint, settings).map_err(|error| {
                let chain = if error.code == "50038" { "main_chain" } else { "deployment" };
                ServiceError::setting(chain, format!("does not match the mirrored requests: {}", error.msg))
            })?;
            let (filters, hashes) = split(endpoint, parameters.values);
            if let Some(known) = lists.iter_mut().find(|list| list.filters == filters) {
                known.hashes.extend(hashes);
                continue;
            }
            let total = reported.length(request).max(count as u64);
            lists.push(Self {
                endpoint,
                query,
                hashes,
                rows,
                sliced: false,
                ended: false,
                total,
                lowest_height: lowest_height(records),
                filters,
            });
        }
        // A list that another one contains was requested to read on, or to check.
        let outer: Vec<bool> = lists
            .iter()
            .map(|list| {
                !lists.iter().any(|other| !std::ptr::eq(list, other) && other.narrowing(&list.filters).is_some())
            })
            .collect();
        let mut keep = outer.into_iter();
        lists.retain(|_| keep.next().unwrap_or(true));
        let cut = limit.is_some_and(|limit| count >= limit);
        let number = lists.len();
        let counted = matches!(endpoint.shape, Shape::Paged { total: Some(_), .. });
        for (position, list) in lists.iter_mut().enumerate() {
            list.sliced = number > 1;
            let last = position + 1 == number;
            list.ended = match (list.sliced, counted) {
                (true, _) => !(cut && last),
                (false, true) => list.total <= count as u64,
                (false, false) => !cut && (count as u64) < settings.deployment.result_window(),
            };
        }
        Ok(lists)
    }

    pub fn read(row: &Row<'_>, settings: &Settings) -> rusqlite::Result<Option<Self>> {
        let name: String = row.get(0)?;
        let query: String = row.get(1)?;
        let hashes: String = row.get(2)?;
        let Some(endpoint) = endpoint(&name) else { return Ok(None) };
        let Ok(parameters) = Parameters::read(&query, endpoint, settings) else { return Ok(None) };
        Ok(Some(Self {
            endpoint,
            query,
            hashes: hashes.split(',').map(str::to_owned).collect(),
            rows: (row.get(3)?, row.get(4)?),
            sliced: row.get(5)?,
            ended: row.get(6)?,
            total: row.get::<_, i64>(7)?.unsigned_abs(),
            lowest_height: row.get(8)?,
            filters: split(endpoint, parameters.values).0,
        }))
    }

    pub fn insert(&self, connection: &Connection) -> rusqlite::Result<usize> {
        let total = i64::try_from(self.total).unwrap_or(i64::MAX);
        let Self { endpoint, query, rows: (first, last), sliced, ended, lowest_height, .. } = self;
        let hashes = self.hashes.join(",");
        let statement = "INSERT INTO mirrored_query (endpoint, query, hashes, first, last, sliced, ended, total, \
                         lowest_height) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        connection.execute(statement, (endpoint.name, query, hashes, first, last, sliced, ended, total, lowest_height))
    }

    /// Rows for a request of this page of a list, if this query covers it.
    pub fn coverage(&self, table: &Table, parameters: &Parameters) -> Option<Coverage> {
        let requested = split(self.endpoint, parameters.values.clone()).0;
        let mut narrowing = self.narrowing(&requested)?;
        let total = if narrowing.is_empty() && !self.ended {
            let held = (self.rows.1 - self.rows.0 + 1).unsigned_abs();
            let end = parameters.page.saturating_mul(parameters.limit);
            if end > held && end - parameters.limit < self.total {
                return None;
            }
            Some(self.total)
        } else if self.ended || self.holds_heights_of(&requested) {
            None
        } else {
            return None;
        };
        if self.sliced {
            narrowing.extend(self.filters.iter().cloned());
        }
        Some(Coverage { filter: Filter::narrowing(self.endpoint, table, self.rows, narrowing, &requested), total })
    }

    /// Parameters that a narrower request has beyond the filters of this query; none if it is not narrower.
    fn narrowing(&self, requested: &Values) -> Option<Values> {
        let covered = self.filters.iter().all(|(name, bound)| is_within(requested, name, bound));
        if !covered || get(requested, "order_by") != get(&self.filters, "order_by") {
            return None;
        }
        Some(requested.iter().filter(|value| !self.filters.contains(value)).cloned().collect())
    }

    /// True if only heights are requested of which all rows were mirrored.
    fn holds_heights_of(&self, requested: &Values) -> bool {
        let from = get(requested, "height").or_else(|| get(requested, "start_height"));
        let Some(lowest) = self.lowest_height else { return false };
        let Some(ParamValue::Height(from)) = from else { return false };
        // More rows of the lowest height may follow, except of blocks, where a height has one.
        if self.endpoint.name == "blocks" { *from >= lowest } else { *from > lowest }
    }

    /// Number of parameters in which a request differs.
    pub fn distance(&self, requested: &Parameters) -> usize {
        let requested = split(self.endpoint, requested.values.clone()).0;
        let ours = self.filters.iter().filter(|value| !requested.contains(value));
        let theirs = requested.iter().filter(|value| !self.filters.contains(value));
        ours.count() + theirs.count()
    }

    pub fn describe(&self) -> String {
        if !self.hashes.is_empty() {
            return format!("{} hashes of {}", self.hashes.len(), self.endpoint.name);
        }
        let records = if self.ended {
            "all records".into()
        } else {
            format!("the first {} records", self.rows.1 - self.rows.0 + 1)
        };
        format!("{records} of {}?{}", self.endpoint.name, self.query)
    }
}

/// Length of a list as reported by one of its pages.
struct Reported {
    total: Option<u64>,
    pages: Option<u64>,
}

impl Reported {
    /// `None` for an error response.
    fn read(endpoint: &Endpoint, body: &[u8]) -> Option<Self> {
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        let code = &body["code"];
        if code.as_str() != Some("0") && code.as_u64() != Some(0) {
            return None;
        }
        let number = |member: &str| {
            let value = &body["data"][0][member];
            value.as_u64().or_else(|| value.as_str()?.parse().ok())
        };
        Some(match endpoint.shape {
            Shape::Paged { total, .. } => Self { total: total.and_then(number), pages: number("totalPage") },
            Shape::Direct => Self { total: None, pages: None },
        })
    }

    fn length(&self, request: &Request) -> u64 {
        let limit = request.params.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(1);
        self.total.or_else(|| self.pages.map(|pages| pages.saturating_mul(limit))).unwrap_or_default()
    }
}

/// The query of a request, without what selects a page of a list.
pub fn query_of(request: &Request) -> String {
    let params = request.params.iter().filter(|(name, _)| !matches!(name.as_str(), "page" | "limit"));
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish()
}

/// Filters with the API's defaults, and hashes.
fn split(endpoint: &Endpoint, values: Values) -> (Values, Vec<String>) {
    let mut filters = Values::new();
    let mut hashes = Vec::new();
    for (name, value) in values {
        match value {
            ParamValue::Hashes(given) => hashes.extend(given),
            value => filters.push((name, value)),
        }
    }
    if endpoint.name == "tokens" && get(&filters, "protocol_type").is_none() {
        filters.push(("protocol_type", ParamValue::Choice("token_20")));
    }
    if endpoint.name == "large_transactions"
        && get(&filters, "min_amount").is_none()
        && let Some(ParamKind::Amount { min }) = endpoint.param("min_amount").map(|param| param.kind)
        && let Some(least) = rank(&min.to_string())
    {
        filters.push(("min_amount", ParamValue::Amount(least)));
    }
    (filters, hashes)
}

fn get<'v>(values: &'v Values, name: &str) -> Option<&'v ParamValue> {
    values.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
}

/// True if every record that matches `values` also matches this filter.
fn is_within(values: &Values, name: &str, bound: &ParamValue) -> bool {
    let exact = if name.ends_with("_height") { get(values, "height") } else { None };
    let Some(value) = get(values, name).or(exact) else { return false };
    match name.split_once('_') {
        Some(("start" | "min", _)) => value >= bound,
        Some(("end" | "max", _)) => value <= bound,
        _ => value == bound,
    }
}

fn lowest_height(records: &Columns) -> Option<i64> {
    let column = records.record().position("height")?;
    let mut lowest = i64::MAX;
    for row in 0..records.rows() {
        match records.value(column, row) {
            crate::columns::Value::Integer(height) if height <= lowest => lowest = height,
            _ => return None,
        }
    }
    (lowest < i64::MAX).then_some(lowest)
}
