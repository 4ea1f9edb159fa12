//! `Read`: a reader of the modelled list, with the audit that a caller has, up to the verdict on what it returned.

use super::super::state::{ListState, Stage};
use super::super::{Accepted, End, FirstPage, ListCheckpoint, ListKind, ListReader, ListSpec, PageRequest, Tuning};
use super::bounds::Bounds;
use super::choices::Choices;
use super::served::{Record, Served, Slice};
use super::world::World;
use crate::interface::Order;
use crate::message::Hint;
use crate::query::audit::{self, AuditCheckpoint, Latest, ListAudit, Subject};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Drift(String),
    /// Called incomplete. No record is there twice.
    Incomplete,
    Wrong(Vec<u64>),
    /// Called incomplete, for no cause, or for another one than what is wrong.
    Doubted(Vec<u64>),
}

/// Request of a caller.
#[derive(Clone, Copy)]
struct Asked {
    bounds: Bounds,
    page_size: u64,
    wanted: Option<usize>,
    overlap_pages: u64,
}

#[derive(Clone)]
pub struct Read {
    asked: Asked,
    pub world: World,
    reader: ListReader,
    audit: ListAudit,
    /// The checkpoint of the audit after the latest page, as a cursor has it.
    audited: AuditCheckpoint,
    /// Requests in flight, in the order in which they were sent, with the responses to those that were served.
    open: Vec<(PageRequest, Option<Served>)>,
    got: Vec<Record>,
    deaths: usize,
    /// Interruptions before the first record.
    empty_runs: u32,
    is_incomplete: bool,
    /// Phase that received the latest response.
    pub phase: String,
}

impl Read {
    pub fn new(bounds: Bounds, choices: &mut dyn Choices) -> Self {
        let world = World::new(bounds, choices);
        let (min_size, max_size) = bounds.page_sizes;
        let page_size = (min_size + choices.choose(max_size - min_size + 1)) as u64;
        let wanted = (bounds.wanted > 0).then(|| 1 + choices.choose(bounds.wanted));
        let may_overlap = wanted.is_some() && !bounds.counted && bounds.rates.is_none();
        let overlap_pages = if may_overlap { 5 * choices.choose(2) as u64 } else { 0 };
        let asked = Asked { bounds, page_size, wanted, overlap_pages };
        let reader = ListReader::new(asked.spec());
        let audit = ListAudit::new(asked.subject(reader.spec()), 0, &[]);
        Self {
            asked,
            world,
            reader,
            audit,
            audited: AuditCheckpoint::default(),
            open: Vec::new(),
            got: Vec::new(),
            deaths: 0,
            empty_runs: 0,
            is_incomplete: false,
            phase: String::new(),
        }
    }

    /// False if no decision is left.
    pub fn may_choose(&self) -> bool {
        let bounds = &self.asked.bounds;
        self.deaths < bounds.deaths || bounds.concurrency > 1 || self.world.may_change()
    }

    /// Reads the list to its end.
    pub fn finish(&mut self, choices: &mut dyn Choices) -> Verdict {
        loop {
            if let Some(verdict) = self.step(choices) {
                return verdict;
            }
        }
    }

    /// Sends requests and takes one response. The verdict, once all is read.
    pub fn step(&mut self, choices: &mut dyn Choices) -> Option<Verdict> {
        self.send();
        if self.open.is_empty() {
            return Some(self.verdict());
        }
        assert!(self.world.requests < 100 + 20 * self.world.length(), "no end: {:#?}", self.world.log);
        while self.open[0].1.is_none() {
            let waiting: Vec<usize> = (0..self.open.len()).filter(|index| self.open[*index].1.is_none()).collect();
            let next = waiting[if waiting.len() > 1 { choices.choose(waiting.len()) } else { 0 }];
            self.open[next].1 = Some(self.world.serve(&self.open[next].0, choices));
        }
        let (request, served) = self.open.remove(0);
        let served = served.expect("served above");
        // Only random schedules count errors by phase, and its name takes as long as a response.
        if self.asked.bounds.rates.is_some() {
            self.phase = phase_name(&self.reader);
        }
        let latest = self.audit.latest().clone();
        let audit = Some(&mut self.audit).filter(|_| self.asked.bounds.is_audited);
        match served.take(&mut self.reader, audit, &request) {
            Ok(accepted) => self.on_accepted(&request, &served, accepted, latest, choices),
            Err(error) => return Some(Verdict::Drift(error)),
        }
        None
    }

    fn send(&mut self) {
        while self.open.len() < self.asked.bounds.concurrency
            && let Some(request) = self.reader.next_request(self.open.len())
        {
            self.open.push((request, None));
        }
        if self.open.is_empty() && self.reader.end().is_some() && self.asked.bounds.is_audited {
            let request = self.audit.next_request(&self.end());
            self.open.extend(request.map(|request| (request, None)));
        }
    }

    /// Returns rows, before which these records were the latest.
    fn on_accepted(
        &mut self,
        request: &PageRequest,
        served: &Served,
        accepted: Accepted,
        latest: Latest,
        choices: &mut dyn Choices,
    ) {
        assert!(is_bounded(&self.reader), "{:?} are kept", self.reader.snapshot().anchors);
        let reader = &self.reader;
        self.world.note(|| format!("  {:?} {} drift {}", accepted.rows, phase_name(reader), reader.drift()));
        if !self.reader.is_ahead() {
            for (request, _) in self.open.drain(..).rev() {
                self.reader.cancel(&request);
            }
        }
        let bounds = self.asked.bounds;
        let rows = &served.rows[accepted.rows.clone()];
        let left = self.asked.wanted.unwrap_or(usize::MAX) - self.got.len();
        let fresh = &rows[..rows.len().min(left)];
        let may_die = self.deaths < bounds.deaths && self.reader.end().is_none() && self.reader.error().is_none();
        // The caller takes all the rows, none, or only the first, before it dies.
        let ways = 2 + fresh.len().min(2);
        // In a long list, the reader is interrupted after one response in ten.
        let may_die = may_die && (bounds.rates.is_none() || choices.choose(10) == 0);
        let way = if may_die { choices.choose(ways) } else { 0 };
        let taken = if way > 1 { way - 2 } else { fresh.len() };
        self.got.extend(&fresh[..taken]);
        if !self.wants_more() && self.reader.stop() {
            self.open.clear();
        }
        self.is_incomplete |= match self.reader.end() {
            Some(End::ResultWindow) => self.wants_more(),
            end => end == Some(End::UnknownLength),
        };
        if bounds.shallow {
            self.world.returned = self.got.iter().map(|record| record.id).collect();
        }
        if !fresh.is_empty() && bounds.deaths > 0 {
            let page = self.audit.audited_page(request, latest);
            self.audited = page.checkpoint(&Slice(fresh), taken, self.got.len() as u64);
        }
        if way > 0 {
            let checkpoint = match way {
                1 if fresh.len() == rows.len() => self.reader.checkpoint(),
                _ => accepted.before.advanced(&Slice(fresh), taken),
            };
            self.continue_from(&checkpoint);
        }
    }

    /// The process died, and another one continues.
    fn continue_from(&mut self, checkpoint: &ListCheckpoint) {
        self.deaths += 1;
        self.open.clear();
        let json = serde_json::to_string(checkpoint).expect("plain values");
        let checkpoint: ListCheckpoint = serde_json::from_str(&json).expect("the same");
        self.world.note(|| format!("died: {json}"));
        self.empty_runs += u32::from(self.got.is_empty());
        let spec = self.asked.spec();
        let first_page = match spec.first_page {
            // Only the first run compares.
            FirstPage::Compared => FirstPage::Located,
            _ if self.empty_runs >= 3 => FirstPage::AtOnce,
            first_page => first_page,
        };
        let spec = ListSpec { first_page, wanted: self.asked.wanted.map(|wanted| wanted as u64), ..spec };
        let returned = self.got.len() as u64;
        self.reader = ListReader::resumed(spec, returned, &checkpoint);
        let subject = self.asked.subject(self.reader.spec());
        self.audit = ListAudit::resumed(subject, returned, &self.audited, &checkpoint);
    }

    fn wants_more(&self) -> bool {
        self.asked.wanted.is_none_or(|wanted| self.got.len() < wanted)
    }

    fn end(&self) -> audit::End {
        audit::End::of(&self.reader, self.wants_more())
    }

    /// Compares the result with the states that the list had.
    fn verdict(&mut self) -> Verdict {
        let bounds = self.asked.bounds;
        if let Some(error) = self.reader.error() {
            return Verdict::Drift(error.to_string());
        }
        if let Err(contradiction) = self.audit.on_end(&self.end())
            && bounds.is_audited
        {
            return Verdict::Drift(contradiction);
        }
        if self.is_incomplete && self.got.windows(2).all(|pair| pair[1].id < pair[0].id) {
            return Verdict::Incomplete;
        }
        let got: Vec<u64> = self.got.iter().map(|record| record.key).collect();
        let has_doubts = !self.audit.doubts(&self.end()).is_empty();
        match self.world.is_right(&got, self.asked.wanted.unwrap_or(usize::MAX), has_doubts) {
            true => Verdict::Right,
            false if has_doubts || self.is_incomplete => Verdict::Doubted(got),
            false => Verdict::Wrong(got),
        }
    }
}

impl Asked {
    fn spec(&self) -> ListSpec {
        let Self { bounds, page_size, overlap_pages, .. } = *self;
        ListSpec {
            endpoint: "list",
            kind: ListKind::Growing,
            page_size,
            max_page_size: match bounds {
                Bounds { rates: Some(_), .. } => page_size.max(50),
                // An overlap takes more than one record.
                Bounds { window: Some(_), .. } | Bounds { wanted: 1.., .. } => page_size.max(5),
                Bounds { max_page, .. } => page_size.max(max_page as u64),
            },
            height_bound: bounds.window.map(|_| i64::MAX),
            result_window: bounds.window.map(|window| window as u64),
            // A caller that compares pages stops where these meet what it has.
            wanted: self.wanted.filter(|_| bounds.first_page != FirstPage::Compared).map(|wanted| wanted as u64),
            first_page: bounds.first_page,
            hints: vec![Hint::RetryLater],
            tuning: if bounds.rates.is_some() {
                Tuning { max_keys: 200, ..Tuning::default() }
            } else {
                // A list that grows more often misses the last record in more of the responses.
                let max_misses = 10.max(5 * bounds.growth.0 as u32);
                Tuning { max_misses, max_anchors: 2, overlap_pages, ..Tuning::default() }
            },
        }
    }

    fn subject(&self, spec: &ListSpec) -> Subject {
        Subject {
            kind: spec.kind,
            order: Order::NewestFirst,
            drops_oldest: false,
            compares_growth: false,
            has_blocks: false,
            has_unique_keys: self.bounds.symbols == 0,
            page_size: spec.page_size,
            max_page_size: spec.max_page_size,
            wanted: spec.wanted,
        }
    }
}

/// True if the reader keeps no more of what it has read than it may.
fn is_bounded(reader: &ListReader) -> bool {
    let ListState { spec, snapshot, delivered, .. } = reader.list();
    let max_keys = if matches!(reader, ListReader::Uncounted(_)) { spec.tuning.max_keys } else { 0 };
    let are_few =
        snapshot.anchors.len() <= 3 && snapshot.anchors.iter().all(|group| group.len() <= spec.tuning.max_anchors);
    delivered.keys().len() <= max_keys && are_few
}

fn phase_name(reader: &ListReader) -> String {
    let phase = match (&reader.list().stage, reader) {
        (Stage::Reading, ListReader::Counted(reader)) => format!("{:?}", reader.phase),
        (Stage::Reading, ListReader::Uncounted(reader)) => format!("{:?}", reader.phase),
        (stage, _) => format!("{stage:?}"),
    };
    phase.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default().to_owned()
}
