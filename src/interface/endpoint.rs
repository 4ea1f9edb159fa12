//! `Endpoint`: how an endpoint is declared: its path, parameters, shape of the payload and limits.

use super::record_type::RecordType;
use super::records::record;

/// One operation of the service, and so one query method, one subcommand and one route of the local service.
#[derive(Debug)]
pub struct Endpoint {
    /// The method name, e.g. `token_transfers`.
    pub name: &'static str,
    pub doc: &'static str,
    /// Path below the base URL; `{main}` and `{zone}` stand for the deployment's chain names.
    pub path: &'static str,
    pub chain: Chain,
    pub(super) record: &'static str,
    /// All but `chainShortName`, `page` and `limit`, which every call or every paged call has.
    pub params: &'static [Param],
    pub shape: Shape,
    pub limit: ResultLimit,
    pub order: Order,
    /// True if each record key occurs once in a list. One transaction may have several equal transfers or outputs.
    pub has_unique_keys: bool,
}

/// Order of the records of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// New records are added at the head, and heights do not rise from one page to the next.
    NewestFirst,
    /// As `NewestFirst`, with one record for each height.
    Consecutive,
    /// By a value that changes, so that records change their positions.
    Ranked,
    /// Look-ups: the order of the arguments.
    AsRequested,
}

/// The chain whose short name a call carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    Main,
    Zone,
}

#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// `data` holds one page object, and that holds the records under `list`.
    Paged {
        list: &'static str,
        page_size_max: u32,
        /// The member that counts all records, where there is one.
        total: Option<&'static str>,
        /// True if the page object names the chain.
        names_chain: bool,
    },
    /// `data` holds the records.
    Direct,
}

/// Most records that the API returns of one list or lookup. The numbers are settings of the deployment:
/// [`Deployment::max_results`](super::Deployment::max_results).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultLimit {
    Unlimited,
    /// The list ends at the result window, whatever the page size.
    Window,
    /// The list has the last year only, and ends at the result window as well.
    LastYear,
    /// A response to a lookup of logs ends at the log window.
    Logs,
}

#[derive(Debug)]
pub struct Param {
    /// Our name.
    pub name: &'static str,
    pub role: ParamRole,
    pub kind: ParamKind,
    pub required: bool,
    pub doc: &'static str,
    /// Columns whose values the parameter bounds: a filter on such a column can be sent as the parameter.
    pub bounds: &'static [(&'static str, Bound)],
    /// True if a range certainly includes the value: the API's document says so, or the client sees to it.
    pub is_inclusive: bool,
}

/// Values of a column that the records of a list have where a parameter is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The value of the parameter. The API ignores the case of addresses and hashes, which records have in lower case.
    Equal,
    /// The value of the parameter, in one or several of the columns with this bound: the API does not say in which.
    EqualInSome,
    /// The value of the parameter, in one or several of the columns with this bound. The API may compare other values as
    /// well, so that a filter on these columns cannot be sent as the parameter.
    InvolvedInSome,
    /// A name with the number of the parameter's value: `ERC20` and `token_20`.
    SameNumber,
    AtLeast,
    AtMost,
    /// Values above the parameter's, which itself is excluded.
    Above,
    /// Values that do not rise from one record to the next, where the parameter has this value.
    Descending(&'static str),
    /// The value of another parameter, where this one has a given value.
    Side {
        value: &'static str,
        other: &'static str,
    },
}

/// The use of a parameter in requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamRole {
    /// Sent under this wire name.
    Plain(&'static str),
    /// Sent under the first name, and the lower end of a range whose upper end is the parameter of the second name.
    RangeStart(&'static str, &'static str),
    /// Not sent, since the API has no such filter: with the parameter of the second name it spans a range of values of the
    /// filter with the first name, which are requested one by one.
    ExpandedRange(&'static str, &'static str),
    /// The API has no such filter: the time, with its named partner, becomes the named bound by height when a run starts.
    TimeOfHeight(&'static str, &'static str),
}

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    Lower,
    Upper,
}

impl Param {
    pub(super) const fn bounding(self, bounds: &'static [(&'static str, Bound)]) -> Self {
        Self { bounds, ..self }
    }

    pub(super) const fn inclusive(self) -> Self {
        Self { is_inclusive: true, ..self }
    }

    /// The wire name, or `None` if the API has no such filter.
    pub fn wire(&self) -> Option<&'static str> {
        match self.role {
            ParamRole::Plain(wire) | ParamRole::RangeStart(wire, _) => Some(wire),
            ParamRole::ExpandedRange(..) | ParamRole::TimeOfHeight(..) => None,
        }
    }

    /// Parameter that must be passed together with this one.
    pub fn requires(&self) -> Option<&'static str> {
        match self.role {
            ParamRole::ExpandedRange(_, partner) if self.range_end() == Some(RangeEnd::Upper) => Some(partner),
            _ => None,
        }
    }

    /// True if a list has fewer records with it: an order leaves none out, and a kind of token has a default.
    pub fn is_filter(&self) -> bool {
        !self.required && !matches!(self.name, "order_by" | "protocol_type")
    }

    /// True if each value selects a list of its own, so that several values make a set of lists.
    pub fn selects_list(&self) -> bool {
        matches!(self.kind, ParamKind::Text | ParamKind::Height) && self.range_end().is_none()
    }

    /// The end of a range that it bounds, if any.
    pub fn range_end(&self) -> Option<RangeEnd> {
        let bounds = [
            ("start_", RangeEnd::Lower),
            ("min_", RangeEnd::Lower),
            ("end_", RangeEnd::Upper),
            ("max_", RangeEnd::Upper),
        ];
        bounds.iter().find(|(prefix, _)| self.name.starts_with(prefix)).map(|(_, bound)| *bound)
    }
}

/// The kind of a parameter's value, which is checked before it is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// An address or a hash.
    Text,
    /// An integer from 0 to 2^63-1.
    Height,
    /// An instant. Where it is sent, in Unix milliseconds, the API excludes both ends of a range and rejects one over a
    /// year.
    Time,
    /// An exact decimal number of at least `min`.
    Amount { min: u32 },
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Hashes, at most `per_request` of them in a request.
    Hashes { per_request: usize },
}

/// The range of a filter, by which a list is read in parts: each of them has the records whose values are in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divider {
    /// Wire names of the ends of a range.
    pub low: &'static str,
    pub high: &'static str,
    /// The column whose values the range bounds.
    pub column: &'static str,
}

impl Endpoint {
    pub fn record(&self) -> &'static RecordType {
        record(self.record).expect("every endpoint names a declared record type")
    }

    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// True if a response counts the records of the whole list.
    pub fn counts(&self) -> bool {
        matches!(self.shape, Shape::Paged { total: Some(_), .. })
    }

    /// The filter by which a list is divided that is longer than the result window. Its parts are added up to the count of
    /// the list, and ordered by age.
    pub fn divider(&self) -> Option<Divider> {
        if !self.counts() || self.limit != ResultLimit::Window || self.order != Order::NewestFirst {
            return None;
        }
        self.params.iter().find_map(|param| {
            let (ParamRole::RangeStart(low, partner), ParamKind::Amount { .. }) = (param.role, param.kind) else {
                return None;
            };
            let partner = self.param(partner)?;
            let [(column, Bound::AtLeast)] = param.bounds else { return None };
            partner.bounds.contains(&(*column, Bound::AtMost)).then_some(Divider { low, high: partner.wire()?, column })
        })
    }

    pub fn page_size_max(&self) -> Option<u32> {
        match self.shape {
            Shape::Paged { page_size_max, .. } => Some(page_size_max),
            Shape::Direct => None,
        }
    }
}
