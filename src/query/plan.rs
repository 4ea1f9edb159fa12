//! A query and the windows it is asked in: one request target a page, none of them sent here.

use std::sync::Arc;

use super::bind::{self, Arg, Options};
use super::cursor::Cursor;
use super::list::Ask;
use super::report::Outlook;
use crate::client::{Client, Error};
use crate::interface::{Endpoint, Param, ParamKind, Reach, Role, Shape};

/// The filter that names a block by its hash.
const BLOCK_HASH: &str = "blockHash";

/// A call that was checked and not sent.
#[derive(Clone)]
pub struct Query {
    pub(super) client: Client,
    pub(super) endpoint: &'static Endpoint,
    chain: String,
    filters: Arc<Filters>,
    page_size: Option<u32>,
    pub(super) max_items: Option<u64>,
    given: Arc<(Vec<(String, Arg)>, Options)>,
    pub(super) start: Option<Arc<Cursor>>,
}

#[derive(Clone, Debug)]
pub(super) struct Filters {
    pub sent: Vec<(&'static str, String)>,
    pub windows: Windows,
}

/// What the service cannot do in one list is asked in several, one after the other.
#[derive(Clone, Debug)]
pub(super) enum Windows {
    One,
    Heights { wire: &'static str, low: i64, high: i64 },
    Times(Vec<(Option<i64>, Option<i64>)>),
    Hashes { wire: &'static str, chunks: Vec<Vec<String>> },
}

impl Query {
    pub fn new(
        client: &Client,
        endpoint: &'static Endpoint,
        args: &[(String, Arg)],
        options: Options,
    ) -> Result<Self, Error> {
        let filters = Arc::new(bind::bind(endpoint, args)?);
        let given = Arc::new((args.to_vec(), options.clone()));
        let chain = options.chain.unwrap_or_else(|| client.settings().chain(endpoint.chain).to_owned());
        if chain.is_empty() {
            return Err(Error::parameter("chain", "is empty; leave it out instead"));
        }
        let max_items = match options.max_items {
            Some(most) => {
                Some(u64::try_from(most).map_err(|_| Error::parameter("max_items", format!("{most} is under 0")))?)
            }
            None => None,
        };
        let page_size = match (endpoint.page_size_max(), options.page_size) {
            (None, None) => None,
            (None, Some(_)) => return Err(Error::parameter("page_size", "this call has no pages")),
            (Some(max), Some(size)) => match u32::try_from(size).ok().filter(|size| (1..=max).contains(size)) {
                Some(size) => Some(size),
                None => return Err(Error::parameter("page_size", format!("{size} is not within 1 to {max}"))),
            },
            // Fewer requests, and no more records than are wanted.
            (Some(max), None) => Some(max_items.map_or(max, |most| most.clamp(1, u64::from(max)) as u32)),
        };
        Ok(Self { client: client.clone(), endpoint, chain, filters, page_size, max_items, given, start: None })
    }

    /// The same query from there on.
    pub(super) fn starting_at(self, cursor: Cursor) -> Self {
        Self { start: Some(Arc::new(cursor)), ..self }
    }

    /// The call's arguments and options as they were given.
    pub fn given(&self) -> &(Vec<(String, Arg)>, Options) {
        &self.given
    }

    /// The cursor that the query goes on from, if it is not one from the beginning.
    pub fn start(&self) -> Option<&Cursor> {
        self.start.as_deref()
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn endpoint(&self) -> &'static Endpoint {
        self.endpoint
    }

    pub fn chain(&self) -> &str {
        &self.chain
    }

    /// The same query for its first `most` records.
    pub fn head(&self, most: u64) -> Self {
        let most = self.max_items.map_or(most, |already| already.min(most));
        let page_size = self.page_size.map(|size| u64::from(size).min(most.max(1)) as u32);
        Self { max_items: Some(most), page_size, ..self.clone() }
    }

    /// What was given, for people.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let mut shown = bind::described(self.endpoint, &self.given.0);
        shown.extend(self.given.1.page_size.map(|size| ("page_size", size.to_string())));
        shown.extend(self.max_items.map(|most| ("max_items", most.to_string())));
        shown
    }

    /// Whether new records come to the head of the list and the rest stays in order below, so that what is newer than
    /// some record can be told. A list that is ordered by something else than age has an order to choose.
    pub fn is_newest_first(&self) -> bool {
        self.is_paged() && self.head_moves() && self.endpoint.param("order_by").is_none()
    }

    /// The query in the values that it was checked to have: equal for queries that ask for the same.
    pub fn stated(&self) -> Result<serde_json::Value, Error> {
        let arguments: serde_json::Map<_, _> = bind::stated(self.endpoint, &self.given.0)?.collect();
        Ok(serde_json::json!({
            "call": self.endpoint.name,
            "chain": self.chain,
            "arguments": arguments,
            "max_items": self.max_items,
            "cursor": self.start().map(Cursor::text),
        }))
    }

    pub(super) fn page_size_asked(&self) -> Option<i64> {
        self.page_size.map(i64::from)
    }

    pub(super) fn page_size(&self) -> u64 {
        self.page_size.map_or(0, u64::from)
    }

    pub(super) fn is_paged(&self) -> bool {
        matches!(self.endpoint.shape, Shape::Paged { .. })
    }

    /// Whether new records may come to the head of a list while it is read. One block's list does not grow.
    pub(super) fn head_moves(&self) -> bool {
        let of_one_block = self.filters.sent.iter().any(|(wire, _)| matches!(*wire, "height" | BLOCK_HASH));
        !of_one_block && !matches!(self.filters.windows, Windows::Heights { .. })
    }

    /// The filter that cuts a list off above a height, where there is one.
    fn top_wire(&self) -> Option<&'static str> {
        let param = self.endpoint.params.iter().find(|param| param.name == "end_height")?;
        param.wire().filter(|_| self.head_moves())
    }

    /// The height that the list is cut off above, or none yet, where it can be.
    pub(super) fn top(&self) -> Option<i64> {
        let wire = self.top_wire()?;
        let given = self.filters.sent.iter().find(|(name, _)| *name == wire);
        Some(given.and_then(|(_, height)| height.parse().ok()).unwrap_or(i64::MAX))
    }

    /// How many records of one list can be reached, where the service sets a limit.
    pub(super) fn cap(&self) -> Option<u64> {
        match self.endpoint.reach {
            Reach::Records(cap) | Reach::LastYear(cap) | Reach::Answer(cap) => Some(cap),
            Reach::Unlimited => None,
        }
    }

    /// What makes the list shorter: parameters that were not given, and given ends of a range that can be moved. Heights
    /// are no help with the list of one block, nor with one that goes on by height where its reach ends.
    fn narrowing(&self) -> Option<String> {
        let given = |name: &str| self.given.0.iter().any(|(given, _)| given == name);
        let by_height = self.head_moves() && self.top().is_none();
        let helps = |param: &&Param| {
            let of_height = param.kind == ParamKind::Height || param.wire() == Some(BLOCK_HASH);
            param.narrows() && (by_height || !of_height)
        };
        let mut words = Vec::new();
        let mut moved = Vec::new();
        for param in self.endpoint.params.iter().filter(helps) {
            let (low, time) = (param.is_low_end(), param.kind == ParamKind::Time);
            match (given(param.name), low, param.role) {
                (false, Some(true), Role::Spans(_, high)) => words.push(format!("{} with {high}", param.name)),
                (false, _, Role::Spans(..)) | (true, None, _) => {}
                (false, ..) => words.push(param.name.to_owned()),
                (true, Some(true), _) => {
                    moved.push(format!("a {} {}", if time { "later" } else { "higher" }, param.name))
                }
                (true, Some(false), _) => {
                    moved.push(format!("{} {}", if time { "an earlier" } else { "a lower" }, param.name));
                }
            }
        }
        words.append(&mut moved);
        let last = words.pop()?;
        let list = if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) };
        Some(format!("narrow the query with {list}"))
    }

    /// What to do about a query that meets a limit.
    pub(super) fn advice(&self) -> String {
        self.narrowing().map_or_else(
            || "No parameter of this call makes it shorter.".into(),
            |narrowing| format!("N{}.", &narrowing[1..]),
        )
    }

    /// What to do about a list that could not be read.
    pub(super) fn way_on(&self) -> String {
        self.narrowing().map_or_else(|| "try later".into(), |narrowing| format!("{narrowing}, or try later"))
    }

    pub(super) fn windows(&self) -> u64 {
        match &self.filters.windows {
            Windows::One => 1,
            Windows::Heights { low, high, .. } => (high - low) as u64 + 1,
            Windows::Times(windows) => windows.len() as u64,
            Windows::Hashes { chunks, .. } => chunks.len() as u64,
        }
    }

    /// How far a run is that has delivered so many pages and records, the last of them of this window, whose list has
    /// so many records or else so many pages.
    pub(super) fn outlook(
        &self,
        window: u64,
        total: Option<u64>,
        total_pages: Option<u64>,
        pages: u64,
        records: u64,
    ) -> Outlook {
        let most = self.max_items;
        let several = match &self.filters.windows {
            _ if self.windows() == 1 => None,
            Windows::One => None,
            Windows::Heights { .. } => Some("blocks"),
            Windows::Times(_) => Some("years"),
            Windows::Hashes { .. } => Some("requests"),
        };
        match (several, total, total_pages) {
            (Some(unit), ..) => {
                Outlook { unit, done: window + 1, total: Some(self.windows()).filter(|_| most.is_none()) }
            }
            (None, Some(total), _) => {
                Outlook { unit: "records", done: records, total: Some(most.map_or(total, |most| most.min(total))) }
            }
            (None, None, Some(last)) if last > 0 => {
                let wanted = most.map(|most| most.div_ceil(self.page_size().max(1)));
                Outlook { unit: "pages", done: pages, total: Some(wanted.map_or(last, |wanted| wanted.min(last))) }
            }
            _ => Outlook { unit: "records", done: records, total: None },
        }
    }

    /// The window in words, for reasons.
    pub(super) fn window_name(&self, window: u64) -> Option<String> {
        match &self.filters.windows {
            Windows::One | Windows::Times(_) => None,
            Windows::Heights { low, .. } => Some(format!("block {}", low + window as i64)),
            Windows::Hashes { chunks, .. } => match chunks[window as usize].as_slice() {
                [hash] => Some(format!("transaction {hash}")),
                _ => None,
            },
        }
    }

    /// The hashes that a window asks for.
    pub(super) fn asked(&self, window: u64) -> &[String] {
        match &self.filters.windows {
            Windows::Hashes { chunks, .. } => &chunks[window as usize],
            _ => &[],
        }
    }

    /// The block that a window asks for, of a range of heights.
    pub(super) fn asked_height(&self, window: u64) -> Option<i64> {
        match &self.filters.windows {
            Windows::Heights { low, .. } => Some(low + window as i64),
            _ => None,
        }
    }

    /// Whether a window keeps the records that have no time: they could come with every window, and are given once.
    pub(super) fn keeps_undated(&self, window: u64) -> bool {
        window == 0 && !self.given.1.later
    }

    /// The instants that a window keeps, both ends included.
    pub(super) fn kept_times(&self, window: u64) -> Option<(i64, i64)> {
        match &self.filters.windows {
            Windows::Times(windows) => {
                let (low, high) = windows[window as usize];
                Some((low.unwrap_or(i64::MIN), high.unwrap_or(i64::MAX)))
            }
            _ => None,
        }
    }

    /// The target of one page of one window.
    pub(super) fn target(&self, window: u64, ask: &Ask) -> String {
        let mut params: Vec<(&str, String)> = vec![("chainShortName", self.chain.clone())];
        params.extend(self.filters.sent.iter().cloned());
        match &self.filters.windows {
            Windows::One => {}
            Windows::Heights { wire, low, .. } => params.push((wire, (low + window as i64).to_string())),
            Windows::Times(windows) => {
                // The service leaves both ends out: it gives what is later than the one and earlier than the other.
                let (low, high) = windows[window as usize];
                params.extend(low.map(|low| ("startTime", low.saturating_sub(1).to_string())));
                params.extend(high.map(|high| ("endTime", high.saturating_add(1).to_string())));
            }
            Windows::Hashes { wire, chunks } => params.push((wire, chunks[window as usize].join(","))),
        }
        if let (Some(top), Some(wire)) = (ask.top, self.top_wire()) {
            params.retain(|(name, _)| *name != wire);
            params.push((wire, top.to_string()));
        }
        if self.is_paged() {
            params.push(("limit", ask.limit.to_string()));
            params.push(("page", ask.page.to_string()));
        }
        self.client.target(self.endpoint, params.iter().map(|(name, value)| (*name, value.as_str())))
    }
}
