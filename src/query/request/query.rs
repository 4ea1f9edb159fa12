//! `Query`: a validated call that has not been sent.

mod derived;

use std::sync::Arc;

use super::args::{Arg, Options};
use super::filters::{Filters, Unresolved};
use super::params;
use super::set::{self, Members, with_value};
use super::shown_records::ShownRecords;
use super::slices::Slices;
use crate::client::{Client, Error};
use crate::columns::Projection;
use crate::interface::{Endpoint, Order, Param, RecordType, Shape, certain_window, foreign_character, meaning};
use crate::message::{Hint, Message};

/// Wire name of the filter by block hash.
pub(super) const BLOCK_HASH: &str = "blockHash";

/// Order of a result that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthOrder {
    /// New records come to the head and the rest stays in order below: those newer than a given one are above it.
    NewestFirst,
    /// Blocks in ascending order: new records come at the end.
    ByHeight,
}

#[derive(Clone)]
pub struct Query {
    client: Client,
    endpoint: &'static Endpoint,
    chain: String,
    filters: Arc<Filters>,
    page_size: Option<u32>,
    max_items: Option<u64>,
    args: Arc<[(String, Arg)]>,
    options: Options,
    /// True if all blocks of the query are younger than a year.
    is_recent: bool,
    /// Records of the list that responses of the run showed before it was read.
    shown_records: Arc<ShownRecords>,
    /// True if new records are followed, by their heights.
    is_followed: bool,
    projection: Projection,
    /// Values of a set. Its lists differ from this query in the arguments only.
    members: Option<Members>,
}

impl Query {
    pub fn new(
        client: &Client,
        endpoint: &'static Endpoint,
        args: impl Into<Arc<[(String, Arg)]>>,
        options: Options,
    ) -> Result<Self, Error> {
        let args = args.into();
        if let Some(several) = set::several(endpoint, &args, &options)? {
            return Self::set(client, endpoint, several, &args, &options);
        }
        if options.unique {
            let problem = Message::new("must not be given without several values of one argument");
            return Err(Error::parameter("unique", problem.hint(Hint::Omit("unique".into()))));
        }
        let filters = Arc::new(params::validate(endpoint, &args)?);
        let chain = options.chain.clone().unwrap_or_else(|| client.settings().chain(endpoint.chain).to_owned());
        if chain.is_empty() {
            return Err(Error::parameter("chain", Message::new("must not be empty").hint(Hint::Omit("chain".into()))));
        }
        if let Some(found) = foreign_character(&chain) {
            return Err(Error::parameter("chain", format!("must be the short name of a chain; {found}")));
        }
        let max_items = options.max_items.map(checked_max_items).transpose()?;
        let page_size = match client.settings().deployment.page_size_max(endpoint) {
            Some(max) => Some(checked_page_size(options.page_size, max, max_items)?),
            None if options.page_size.is_some() => {
                let problem = format!("is not accepted by {}(), which has no pages", endpoint.name);
                return Err(Error::parameter("page_size", problem));
            }
            None => None,
        };
        Ok(Self {
            client: client.clone(),
            endpoint,
            chain,
            filters,
            page_size,
            max_items,
            args,
            options,
            is_recent: false,
            shown_records: Arc::default(),
            is_followed: false,
            projection: Projection::ALL,
            members: None,
        })
    }

    /// A query of one list for each value of a parameter.
    fn set(
        client: &Client,
        endpoint: &'static Endpoint,
        several: (&'static Param, &[String]),
        args: &[(String, Arg)],
        options: &Options,
    ) -> Result<Self, Error> {
        let (members, first) = Members::new(several, args, |args| {
            Self::new(client, endpoint, args, Options { unique: false, ..options.clone() })
        })?;
        let args = with_value(args, members.name, &Arg::List(members.values.to_vec()));
        Ok(Self { args: args.into(), options: options.clone(), members: Some(members), ..first })
    }

    /// The values of a set; `None` of a query of one value each.
    pub(in crate::query) fn members(&self) -> Option<&Members> {
        self.members.as_ref()
    }

    /// Query of one list of a set, by the index of its value.
    #[must_use]
    pub(in crate::query) fn member(&self, index: usize) -> Self {
        let Some(members) = &self.members else { return self.clone() };
        let wire = self.endpoint.param(members.name).and_then(Param::wire);
        let mut filters = Filters::clone(&self.filters);
        if let Some((_, sent)) = filters.sent.iter_mut().find(|(name, _)| Some(*name) == wire) {
            sent.clone_from(&members.sent[index]);
        }
        let args = with_value(&self.args, members.name, &Arg::String(members.values[index].clone()));
        let options = Options { unique: false, ..self.options.clone() };
        Self { filters: Arc::new(filters), args: args.into(), options, members: None, ..self.clone() }
    }

    /// Values of a set; none of a query of one value each.
    pub fn values(&self) -> Arc<[String]> {
        self.members.as_ref().map(|members| members.values.clone()).unwrap_or_default()
    }

    /// Fails if the query is a set, which `operation` cannot take.
    pub fn reject_set(&self, operation: &str) -> Result<(), Error> {
        match &self.members {
            Some(members) => Err(Error::parameter(
                members.name,
                format!("must be one value for {operation}; call it for each of the {} values", members.values.len()),
            )),
            None => Ok(()),
        }
    }

    /// Type of the records of the result.
    pub fn record(&self) -> &'static RecordType {
        let record = self.endpoint.record();
        if self.members.is_some() { record.with_queried() } else { record }
    }

    /// Arguments as the caller passed them.
    pub fn args(&self) -> &Arc<[(String, Arg)]> {
        &self.args
    }

    /// Options as the caller passed them.
    pub fn options(&self) -> &Options {
        &self.options
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn endpoint(&self) -> &'static Endpoint {
        self.endpoint
    }

    /// True if a recording may be replayed that was requested with another value of the parameter.
    pub fn may_replay_other(&self, param: &Param, value: &str) -> bool {
        let cassette = self.client.settings().cassette.as_ref();
        cassette.is_some_and(|cassette| param.wire().is_some_and(|wire| cassette.may_differ(wire, value)))
    }

    /// Largest page of the list; `None` for a look-up.
    pub fn max_page_size(&self) -> Option<u64> {
        self.client.settings().deployment.page_size_max(self.endpoint).map(u64::from)
    }

    pub fn chain(&self) -> &str {
        &self.chain
    }

    pub(in crate::query) fn is_followed(&self) -> bool {
        self.is_followed
    }

    pub(in crate::query) fn slices(&self) -> &Slices {
        &self.filters.slices
    }

    /// Range for which heights are still to be found.
    pub(in crate::query) fn unresolved(&self) -> Option<Unresolved> {
        self.filters.unresolved
    }

    /// Lowest height of a list, where one is given.
    pub(in crate::query) fn start_height(&self) -> Option<i64> {
        let param = self.endpoint.param("start_height")?;
        let (_, height) = self.filters.sent.iter().find(|(wire, _)| Some(*wire) == param.wire())?;
        height.parse().ok()
    }

    pub(in crate::query) fn is_recent(&self) -> bool {
        self.is_recent
    }

    pub(in crate::query) fn projection(&self) -> Projection {
        self.projection
    }

    pub(in crate::query) fn max_items(&self) -> Option<u64> {
        self.max_items
    }

    /// True if the query is read by ranges of values.
    pub(super) fn is_divided(&self) -> bool {
        matches!(self.filters.slices, Slices::Divided { .. })
    }

    /// Arguments and options for display.
    pub fn display_args(&self) -> Vec<(&'static str, String)> {
        let mut shown = params::display(self.endpoint, &self.args);
        shown.extend(self.options.page_size.map(|size| ("page_size", size.to_string())));
        shown.extend(self.max_items.map(|max_items| ("max_items", max_items.to_string())));
        if self.options.unique {
            shown.push(("unique", "True".to_owned()));
        }
        shown
    }

    /// Order in which new records join the result, where it is known.
    pub fn growth_order(&self) -> Option<GrowthOrder> {
        if self.members.is_some() {
            return None;
        }
        if self.has_slice_per_height() {
            return Some(GrowthOrder::ByHeight);
        }
        match self.endpoint.order {
            Order::NewestFirst | Order::Consecutive if self.may_grow() => Some(GrowthOrder::NewestFirst),
            Order::NewestFirst | Order::Consecutive | Order::Ranked | Order::AsRequested => None,
        }
    }

    /// True if each height of a range is a list of its own.
    fn has_slice_per_height(&self) -> bool {
        matches!(self.filters.slices, Slices::Heights { .. })
            || self.filters.unresolved.is_some_and(|unresolved| unresolved.is_expanded)
    }

    /// Validated arguments as JSON: equal for queries that request the same. The values of a set have no order.
    pub fn canonical_args(&self) -> Result<serde_json::Map<String, serde_json::Value>, Error> {
        let Some(members) = &self.members else { return Ok(params::canonical(self.endpoint, &self.args)?.collect()) };
        let mut args = self.member(0).canonical_args()?;
        let mut values = Vec::new();
        for value in members.values.iter() {
            let value = [(members.name.to_owned(), Arg::String(value.clone()))];
            values.extend(params::canonical(self.endpoint, &value)?.map(|(_, canonical)| canonical));
        }
        values.sort_by_cached_key(|value| value.as_str().map_or_else(|| value.to_string(), meaning));
        args.insert(members.name.to_owned(), values.into());
        if self.options.unique {
            args.insert("unique".to_owned(), true.into());
        }
        Ok(args)
    }

    /// Records per page, or 0 for a lookup.
    pub(in crate::query) fn page_size(&self) -> u64 {
        self.page_size.map_or(0, u64::from)
    }

    pub(in crate::query) fn is_paged(&self) -> bool {
        matches!(self.endpoint.shape, Shape::Paged { .. })
    }

    /// True if new records may come to the head of a list while it is read. The list of one block does not grow.
    pub(in crate::query) fn may_grow(&self) -> bool {
        let is_of_one_block = self.filters.sent.iter().any(|(wire, _)| matches!(*wire, "height" | BLOCK_HASH));
        !is_of_one_block && !self.has_slice_per_height()
    }

    /// Height of the one block whose list this is, if it is requested by its height.
    pub(in crate::query) fn height(&self) -> Option<i64> {
        self.filters.sent.iter().find(|(wire, _)| *wire == "height").and_then(|(_, height)| height.parse().ok())
    }

    /// Wire name of the filter that bounds a list above by height, where there is one.
    fn height_bound_param(&self) -> Option<&'static str> {
        let param = self.endpoint.params.iter().find(|param| param.name == "end_height")?;
        if self.may_grow() { param.wire() } else { None }
    }

    /// Upper height bound of the list (`i64::MAX` if none is given), or `None` if the list cannot be bounded.
    pub(in crate::query) fn height_bound(&self) -> Option<i64> {
        let wire = self.height_bound_param()?;
        let given = self.filters.sent.iter().find(|(name, _)| *name == wire);
        Some(given.and_then(|(_, height)| height.parse().ok()).unwrap_or(i64::MAX))
    }

    /// Number of records up to which one list can be paged through, where the API sets a limit.
    pub(in crate::query) fn result_window(&self) -> Option<u64> {
        self.client.settings().deployment.max_results(self.endpoint.limit)
    }

    /// True if a list of this many records ends about at the result window.
    pub fn reaches_result_window(&self, records: u64) -> bool {
        self.result_window().is_some_and(|window| records >= certain_window(window))
    }

    /// Request target of one page of one slice, up to a height where one is given.
    pub(in crate::query) fn target(&self, slice: u64, page: u64, limit: u64, top: Option<i64>) -> String {
        let mut params: Vec<(&str, String)> = vec![("chainShortName", self.chain.clone())];
        let of_slice = self.filters.slices.params(slice);
        // A part of a divided list has a narrower range than the list.
        let sent = self.filters.sent.iter().filter(|(name, _)| !of_slice.iter().any(|(narrower, _)| narrower == name));
        params.extend(sent.cloned());
        params.extend(of_slice);
        if let (Some(top), Some(wire)) = (top, self.height_bound_param()) {
            params.retain(|(name, _)| *name != wire);
            params.push((wire, top.to_string()));
        }
        if self.is_paged() {
            params.push(("limit", limit.to_string()));
            params.push(("page", page.to_string()));
        }
        self.client.target(self.endpoint, params.iter().map(|(name, value)| (*name, value.as_str())))
    }
}

fn checked_max_items(max_items: i64) -> Result<u64, Error> {
    u64::try_from(max_items).map_err(|_| Error::parameter("max_items", format!("({max_items}) must be >= 0")))
}

/// Number of records of a page. The maximum takes the fewest requests; a smaller limit needs no more records than it returns.
fn checked_page_size(requested: Option<i64>, max: u32, max_items: Option<u64>) -> Result<u32, Error> {
    let Some(size) = requested else {
        return Ok(max_items.map_or(max, |max_items| max_items.clamp(1, u64::from(max)) as u32));
    };
    let fitting = u32::try_from(size).ok().filter(|size| (1..=max).contains(size));
    fitting.ok_or_else(|| Error::parameter("page_size", format!("({size}) must be between 1 and {max}")))
}
