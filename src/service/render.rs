//! Rows as JSON: the envelope, the page object and the records, with the names of the deployment. All of it follows the
//! declaration; values go out as they are kept, every one text but flags and lists.

use std::cell::RefCell;
use std::ops::Range;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Row};

use super::filter::Filter;
use super::listing::Listing;
use super::parameters::{ParamValue, Parameters, years_after};
use super::quirks::Turn;
use super::schema::Table;
use super::settings::Settings;
use super::store::{LookUpError, Store};
use crate::interface::{Deployment, ENDPOINTS, Endpoint, Kind, RecordType, ResultLimit, Shape};

/// Hashes that a record has through its block.
const HASHES: [&str; 6] = ["hash", "block_hash", "tx_id", "id", "main_tx_hash", "zone_tx_hash"];

/// Rendering of the responses of one endpoint.
#[derive(Debug)]
pub struct Renderer {
    pub endpoint: &'static Endpoint,
    synthetic: RowSource,
    loaded: RowSource,
    members: Vec<Member>,
    directions: [(&'static str, String); 2],
}

/// A table and the reading of its rows as this endpoint's records.
#[derive(Debug)]
struct RowSource {
    table: &'static Table,
    select: String,
}

impl RowSource {
    fn of(table: &'static Table, record: &RecordType) -> Self {
        Self { table, select: table.select(record) }
    }
}

#[derive(Debug)]
struct Member {
    /// Quoted, with its colon.
    key: String,
    kind: Kind,
    /// True if it identifies a record, and so is there without a value too.
    is_identity: bool,
    /// True if another block has another value in its place.
    is_hash: bool,
}

impl Renderer {
    pub fn all(deployment: &Deployment) -> Vec<Renderer> {
        ENDPOINTS.iter().map(|endpoint| Renderer::of(endpoint, deployment)).collect()
    }

    fn of(endpoint: &'static Endpoint, deployment: &Deployment) -> Self {
        let record = endpoint.record();
        let members = record.sent().map(|(_, field)| {
            let name = field.wire.first().map_or_else(|| field.name.to_owned(), |name| deployment.expand(name));
            let is_identity = record.identity.contains(&field.name);
            let is_hash = HASHES.contains(&field.name);
            Member { key: format!("{}:", quoted(&name)), kind: field.kind, is_identity, is_hash }
        });
        Self {
            endpoint,
            synthetic: RowSource::of(Table::of(record), record),
            loaded: RowSource::of(Table::loaded(endpoint), record),
            members: members.collect(),
            directions: directions(deployment),
        }
    }

    /// The source of the records.
    fn source(&self, store: &Store) -> Result<&RowSource, LookUpError> {
        if store.user_data().has_loaded(self.loaded.table) {
            Ok(&self.loaded)
        } else if store.user_data().is_offline() {
            Err(LookUpError::NotHeld)
        } else {
            Ok(&self.synthetic)
        }
    }

    /// Renders the whole body.
    pub fn body(
        &self,
        store: &mut Store,
        parameters: &Parameters,
        settings: &Settings,
        turn: &mut Turn<'_>,
    ) -> Result<Body, LookUpError> {
        match self.endpoint.shape {
            Shape::Paged { list, total, names_chain, .. } => {
                let (records, found) = self.page(store, parameters, settings, turn)?;
                let Totals { total: count, pages } = found;
                let mut body = format!(
                    "{{\"code\":\"0\",\"msg\":\"\",\"data\":[{{\"page\":\"{}\",\"limit\":\"{}\",\"totalPage\":\"{pages}\"",
                    parameters.page, parameters.limit
                );
                if let Some(member) = total {
                    body += &format!(",{}:\"{count}\"", quoted(member));
                }
                if names_chain {
                    let short = settings.main_chain.to_uppercase();
                    let full = quoted(&format!("{short} Chain"));
                    body += &format!(",\"chainFullName\":{full},\"chainShortName\":{}", quoted(&short));
                }
                body += &format!(",{}:[{records}]}}]}}", quoted(list));
                Ok(Body { text: body, found: count > 0 })
            }
            Shape::Direct => {
                let records = self.look_up(store, parameters, settings)?;
                Ok(Body {
                    found: !records.is_empty(),
                    text: format!("{{\"code\":\"0\",\"msg\":\"\",\"data\":[{records}]}}"),
                })
            }
        }
    }

    fn page(
        &self,
        store: &mut Store,
        parameters: &Parameters,
        settings: &Settings,
        turn: &mut Turn<'_>,
    ) -> Result<(String, Totals), LookUpError> {
        let RowSource { table, select } = self.source(store)?;
        let since = match self.endpoint.limit {
            // Records of the user may come in any order, and all of them are served.
            ResultLimit::LastYear if !table.user_data => self.last_year(store, parameters)?,
            _ => None,
        };
        let (connection, listings) = store.reader();
        let listing = listings.list(connection, table, &Filter::of(self.endpoint, table, parameters))?;
        let total = match since {
            Some(since) => count_since(since, connection, table, &listing)?,
            None => listing.len(),
        };
        let window = match self.endpoint.limit {
            ResultLimit::Window | ResultLimit::LastYear => settings.deployment.result_window(),
            ResultLimit::Unlimited | ResultLimit::Logs => u64::MAX,
        };
        let lag = turn.lag(self.endpoint, total);
        let total = total - lag;
        let limit = turn.page_size(parameters.limit, total);
        let first = (turn.page(parameters.page) - 1).saturating_mul(limit);
        let mut records = String::new();
        let mut statement = connection.prepare_cached(&format!("{select} WHERE own.seq = ?"))?;
        let heights = Heights::of(connection, table)?;
        let height_at = |place: u64| heights.as_ref().and_then(|heights| heights.of_row(listing.get(lag + place)?));
        let replaced = if turn.replaces_block() { height_at(0) } else { None };
        let mut group = 0..0;
        for place in first..first.saturating_add(limit).min(total.min(window)) {
            if let Some(ranks) = turn.moved_ranks(self.endpoint, place, total) {
                group = ranks;
            } else if turn.reorders_ties() && !group.contains(&place) {
                group = ties(place, total, height_at);
            }
            let served = if group.contains(&place) { turn.reordered(self.endpoint, place, &group) } else { place };
            let seq = listing.get(lag + served).ok_or(LookUpError::NotHeld)?;
            let is_replaced = replaced.is_some() && height_at(served) == replaced;
            let mut rows = statement.query([seq])?;
            while let Some(row) = rows.next()? {
                self.write(&mut records, row, is_replaced)?;
            }
            if is_replaced {
                turn.note_replaced();
            }
        }
        let count = turn.count(|| format!("{} {:?}", self.endpoint.name, parameters.values), total, window);
        Ok((records, Totals { total: count, pages: turn.pages(count.min(window).div_ceil(limit)) }))
    }

    /// Time one year before the address's last transaction, whatever other filters apply.
    fn last_year(&self, store: &mut Store, parameters: &Parameters) -> rusqlite::Result<Option<i64>> {
        let values = parameters.values.iter().filter(|(name, _)| *name == "address").cloned().collect();
        let table = self.synthetic.table;
        let filter = Filter::of(self.endpoint, table, &Parameters { values, page: 1, limit: 1 });
        let (connection, listings) = store.reader();
        let Some(last) = listings.list(connection, table, &filter)?.get(0) else { return Ok(None) };
        let time = times_of(connection, table)?.query_row([last], |row| row.get(0))?;
        Ok(years_after(time, -1))
    }

    fn look_up(&self, store: &mut Store, parameters: &Parameters, settings: &Settings) -> Result<String, LookUpError> {
        let max_records = match self.endpoint.limit {
            ResultLimit::Logs => i64::try_from(settings.deployment.log_window()).unwrap_or(i64::MAX),
            _ => i64::MAX,
        };
        let mut records = String::new();
        for (_, value) in &parameters.values {
            let ParamValue::Hashes(hashes) = value else { continue };
            for (index, hash) in hashes.iter().enumerate() {
                if hashes[..index].contains(hash) {
                    continue;
                }
                let RowSource { table, select } = self.source(store)?;
                // A pending transaction has logged nothing yet.
                let condition =
                    if table.belongs() { "parent.state <> 'pending' AND parent.tx_id" } else { "own.tx_id" };
                let statement = format!("{select} WHERE {condition} = ? ORDER BY own.seq LIMIT ?");
                let mut statement = store.reader().0.prepare_cached(&statement)?;
                let mut rows = statement.query((hash, max_records))?;
                while let Some(row) = rows.next()? {
                    self.write(&mut records, row, false)?;
                }
            }
        }
        Ok(records)
    }

    fn write(&self, out: &mut String, row: &Row<'_>, is_replaced: bool) -> rusqlite::Result<()> {
        out.push_str(if out.is_empty() { "{" } else { ",{" });
        let start = out.len();
        for (index, member) in self.members.iter().enumerate() {
            let value = row.get_ref(index)?;
            // A number or a time without a value is empty; what is empty text is some text, so no text is not there.
            let is_text = matches!(member.kind, Kind::Boolean | Kind::Utf8 | Kind::Direction | Kind::Utf8List);
            let is_absent = is_text && value == ValueRef::Null;
            if is_absent && !member.is_identity {
                continue;
            }
            if out.len() > start {
                out.push(',');
            }
            out.push_str(&member.key);
            match (member.kind, value) {
                _ if is_absent => out.push_str("null"),
                (Kind::Boolean, value) => out.push_str(if value == ValueRef::Integer(0) { "false" } else { "true" }),
                (Kind::Utf8List, ValueRef::Text(list)) => out.push_str(&String::from_utf8_lossy(list)),
                (Kind::Direction, ValueRef::Text(text)) => {
                    let known = self.directions.iter().find(|(neutral, _)| neutral.as_bytes() == text);
                    write_text(out, known.map_or(text, |(_, own)| own.as_bytes()));
                }
                (_, ValueRef::Text(text)) if is_replaced && member.is_hash => write_text(out, &of_other_block(text)),
                (_, ValueRef::Text(text)) => write_text(out, text),
                (_, ValueRef::Integer(number)) => out.push_str(&format!("\"{number}\"")),
                _ => out.push_str("\"\""),
            }
        }
        out.push('}');
        Ok(())
    }
}

/// Time of a row of a table.
fn times_of<'c>(connection: &'c Connection, table: &Table) -> rusqlite::Result<CachedStatement<'c>> {
    connection.prepare_cached(&format!("SELECT transaction_time FROM {} WHERE seq = ?", table.name))
}

/// Number of records of a list from a time on. The newest come first, so records that are too old are at its end.
fn count_since(since: i64, connection: &Connection, table: &Table, listing: &Listing<'_>) -> rusqlite::Result<u64> {
    let mut times = times_of(connection, table)?;
    let mut low = 0;
    let mut high = listing.len();
    while low < high {
        let middle = low + (high - low) / 2;
        let time: i64 = times.query_row([listing.get(middle)], |row| row.get(0))?;
        if time >= since { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

/// The places around one that have records of the same height.
fn ties(place: u64, total: u64, height_at: impl Fn(u64) -> Option<i64>) -> Range<u64> {
    let height = height_at(place);
    if height.is_none() {
        return place..place + 1;
    }
    let before = (0..place).rev().take_while(|other| height_at(*other) == height).count() as u64;
    let after = (place + 1..total).take_while(|other| height_at(*other) == height).count() as u64;
    place - before..place + after + 1
}

/// Heights of the rows of a table that has them.
struct Heights<'c>(RefCell<CachedStatement<'c>>);

impl<'c> Heights<'c> {
    fn of(connection: &'c Connection, table: &Table) -> rusqlite::Result<Option<Self>> {
        let Some(column) = table.height() else { return Ok(None) };
        let statement = connection.prepare_cached(&format!("SELECT {column} FROM {} WHERE seq = ?", table.name))?;
        Ok(Some(Self(RefCell::new(statement))))
    }

    fn of_row(&self, seq: i64) -> Option<i64> {
        self.0.borrow_mut().query_row([seq], |row| row.get(0)).ok()
    }
}

/// A hash with another first digit.
fn of_other_block(hash: &[u8]) -> Vec<u8> {
    let mut other = hash.to_vec();
    if let Some(digit) = other.get_mut(2) {
        *digit = if *digit == b'f' { b'e' } else { b'f' };
    }
    other
}

/// A successful response.
#[derive(Debug)]
pub struct Body {
    pub text: String,
    pub found: bool,
}

struct Totals {
    total: u64,
    pages: u64,
}

pub fn envelope(code: &str, msg: &str) -> String {
    format!("{{\"code\":{},\"msg\":{},\"data\":[]}}", quoted(code), quoted(msg))
}

fn write_text(out: &mut String, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(&text);
        out.push('"');
    } else {
        out.push_str(&quoted(&text));
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn capitalized(name: &str) -> String {
    format!("{}{}", name[..1].to_uppercase(), &name[1..])
}

/// Names of the directions: those of the chains in paths, capitalized; a zone name other than the default in capitals.
fn directions(deployment: &Deployment) -> [(&'static str, String); 2] {
    let main = capitalized(deployment.main());
    let zone = deployment.zone();
    let zone = if zone == Deployment::default().zone() { capitalized(zone) } else { zone.to_uppercase() };
    [("MainToZone", format!("{main}To{zone}")), ("ZoneToMain", format!("{zone}To{main}"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_round_trip_in_the_names_of_a_deployment() {
        let own = Deployment::new("XY", "alpha", "beta", "{target}", "hex").unwrap();
        for (deployment, expected) in [(Deployment::default(), "MainToZone"), (own, "AlphaToBETA")] {
            let [(neutral, there), (_, back)] = directions(&deployment);
            assert_eq!(there, expected);
            assert_eq!(deployment.direction(&there), neutral);
            assert_eq!(deployment.direction(&back), "ZoneToMain");
        }
    }

    #[test]
    fn text_is_escaped_where_it_has_to_be() {
        let mut out = String::new();
        write_text(&mut out, "plain \"quoted\" \\ \n".as_bytes());
        write_text(&mut out, "plain é".as_bytes());
        assert_eq!(out, r#""plain \"quoted\" \\ \n""plain é""#);
        assert_eq!(envelope("50014", "a \"b\""), r#"{"code":"50014","msg":"a \"b\"","data":[]}"#);
    }
}
