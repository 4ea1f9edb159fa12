//! A model of the API: one list that changes, and a reader of it.

mod changes;

use super::super::state::{ListState, Stage};
use super::super::{End, FirstPage, ListCheckpoint, ListKind, ListReader, ListSpec, PageRequest, Tuning};
use super::adversary::Adversary;
use super::bounds::Bounds;
use super::choices::Choices;
use super::served::{Record, Served, Slice, continued};
use crate::interface::Order;
use crate::message::Hint;
use crate::query::audit::{self, ListAudit, Subject};

pub struct World<'a> {
    bounds: Bounds,
    choices: &'a mut dyn Choices,
    list: Vec<Record>,
    next_id: u64,
    /// Every state of the list since the first response.
    states: Vec<Vec<Record>>,
    added: usize,
    lost: usize,
    reorganized: usize,
    omitted: usize,
    adversary: Adversary,
    /// Records that the reader has returned.
    returned: Vec<u64>,
    pub requests: usize,
    /// Phase that received the latest response.
    pub phase: String,
    /// Events of the schedule, if they are to be shown.
    pub log: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Drift(String),
    /// Called incomplete. No record is there twice.
    Incomplete,
    Wrong(Vec<u64>),
}

impl<'a> World<'a> {
    pub fn new(bounds: Bounds, choices: &'a mut dyn Choices) -> Self {
        let length = choices.choose(bounds.max_length + 1);
        let mut world = Self {
            bounds,
            choices,
            list: Vec::new(),
            next_id: 0,
            states: Vec::new(),
            added: 0,
            lost: 0,
            reorganized: 0,
            omitted: 0,
            adversary: Adversary::default(),
            returned: Vec::new(),
            requests: 0,
            phase: String::new(),
            log: None,
        };
        for _ in 0..length {
            let record = world.new_record();
            world.list.insert(0, record);
        }
        world
    }

    fn note(&mut self, event: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(event());
        }
    }

    fn new_record(&mut self) -> Record {
        let id = self.next_id;
        self.next_id += 1;
        let key = match self.bounds.symbols {
            0 => id,
            _ if self.bounds.rows => match self.list.first() {
                // Equal to the newest record, or different from all; in a long list, one in twenty is equal.
                Some(newest) if self.choices.choose(if self.bounds.rates.is_some() { 20 } else { 2 }) == 0 => {
                    newest.key
                }
                _ => id,
            },
            symbols => self.choices.choose(symbols) as u64,
        };
        let are_of_one_height = self.bounds.symbols > 0 && !self.bounds.rows;
        Record { id, key, height: if are_of_one_height { 0 } else { key as i64 / 2 } }
    }

    fn spec(&self, page_size: u64, wanted: Option<usize>, overlap_pages: usize) -> ListSpec {
        ListSpec {
            endpoint: "list",
            kind: ListKind::Growing,
            page_size,
            max_page_size: match self.bounds {
                Bounds { rates: Some(_), .. } => page_size.max(50),
                // An overlap takes more than one record.
                Bounds { window: Some(_), .. } | Bounds { wanted: 1.., .. } => page_size.max(5),
                Bounds { max_page, .. } => page_size.max(max_page as u64),
            },
            height_bound: self.bounds.window.map(|_| i64::MAX),
            result_window: self.bounds.window.map(|window| window as u64),
            // A caller that compares pages stops where these meet what it has.
            wanted: wanted.filter(|_| self.bounds.first_page != FirstPage::Compared).map(|wanted| wanted as u64),
            first_page: self.bounds.first_page,
            hints: vec![Hint::RetryLater],
            tuning: if self.bounds.rates.is_some() {
                Tuning { max_keys: 200, ..Tuning::default() }
            } else {
                // A list that grows more often misses the last record in more of the responses.
                let max_misses = 10.max(5 * self.bounds.growth.0 as u32);
                Tuning { max_misses, max_anchors: 2, overlap_pages: overlap_pages as u64, ..Tuning::default() }
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

    fn serve(&mut self, request: &PageRequest) -> Served {
        self.requests += 1;
        if self.states.is_empty() {
            self.states.push(self.list.clone());
        }
        let max_served = if self.bounds.served > 0 { self.bounds.served } else { usize::MAX };
        let limit = max_served.min(request.limit as usize);
        let top = request.height_bound.unwrap_or(i64::MAX);
        let list: Vec<Record> = self.list.iter().copied().filter(|record| record.height <= top).collect();
        let list = self.adversary.list(self.bounds.defect, list, self.choices);
        let shown = &list[..list.len().min(self.bounds.window.unwrap_or(usize::MAX))];
        let page = self.adversary.page(self.bounds.defect, request);
        let from = ((page as usize - 1) * limit).min(shown.len());
        let rows = shown[from..(from + limit).min(shown.len())].to_vec();
        self.adversary.show(self.bounds.defect, &rows);
        self.note(|| format!("{request:?} -> {:?}", rows.iter().map(|row| row.key).collect::<Vec<_>>()));
        let may_omit = self.requests > 1 && self.omitted < self.bounds.omissions;
        let omits_count = may_omit && self.choices.choose(2) == 1;
        self.omitted += usize::from(omits_count);
        let length = self.adversary.length(self.bounds.defect, shown.len(), limit, self.choices);
        let total = length + list.len() - shown.len();
        let served = Served {
            rows,
            limit: limit as u64,
            total_pages: length.div_ceil(limit) as u64,
            total: (self.bounds.counted && !omits_count).then_some(total as u64),
        };
        if self.adversary.inserts(self.bounds.defect, self.list.len(), self.choices) {
            let record = self.new_record();
            // Of the height of the record that it follows.
            let at = 1 + self.choices.choose(self.list.len() - 1);
            self.list.insert(at, Record { height: self.list[at - 1].height, ..record });
            self.states.push(self.list.clone());
        }
        self.change();
        served
    }

    /// Reads the list, and compares the result with the states that the list had.
    pub fn read(&mut self) -> Verdict {
        let (min_size, max_size) = self.bounds.page_sizes;
        let page_size = (min_size + self.choices.choose(max_size - min_size + 1)) as u64;
        let wanted = (self.bounds.wanted > 0).then(|| 1 + self.choices.choose(self.bounds.wanted));
        let may_overlap = wanted.is_some() && !self.bounds.counted && self.bounds.rates.is_none();
        let overlap_pages = if may_overlap { 5 * self.choices.choose(2) } else { 0 };
        let mut reader = ListReader::new(self.spec(page_size, wanted, overlap_pages));
        let mut audit = ListAudit::new(self.subject(reader.spec()), 0, &[]);
        let mut open: Vec<(PageRequest, Option<Served>)> = Vec::new();
        let (mut got, mut deaths, mut empty_runs): (Vec<Record>, usize, u32) = (Vec::new(), 0, 0);
        let mut is_incomplete = false;
        loop {
            while open.len() < self.bounds.concurrency
                && let Some(request) = reader.next_request(open.len())
            {
                open.push((request, None));
            }
            if open.is_empty() && reader.end().is_some() && self.bounds.is_audited {
                let request =
                    audit.next_request(&audit::End::of(&reader, wanted.is_none_or(|wanted| got.len() < wanted)));
                open.extend(request.map(|request| (request, None)));
            }
            if open.is_empty() {
                break;
            }
            assert!(self.requests < 100 + 20 * self.list.len(), "no end: {:#?}", self.log);
            while open[0].1.is_none() {
                let waiting: Vec<usize> = (0..open.len()).filter(|index| open[*index].1.is_none()).collect();
                let next = waiting[if waiting.len() > 1 { self.choices.choose(waiting.len()) } else { 0 }];
                open[next].1 = Some(self.serve(&open[next].0.clone()));
            }
            let (request, served) = open.remove(0);
            let served = served.expect("served above");
            // Only random schedules count errors by phase, and its name takes as long as a response.
            if self.bounds.rates.is_some() {
                self.phase = phase_name(&reader);
            }
            let accepted = match served.take(&mut reader, Some(&mut audit).filter(|_| self.bounds.is_audited), &request)
            {
                Ok(accepted) => accepted,
                Err(error) => return Verdict::Drift(error),
            };
            assert!(self.is_bounded(&reader), "{:?} are kept", reader.snapshot().anchors);
            self.note(|| format!("  {:?} {} drift {}", accepted.rows, phase_name(&reader), reader.drift()));
            if !reader.is_ahead() {
                for (request, _) in open.drain(..).rev() {
                    reader.cancel(&request);
                }
            }
            let fresh = &served.rows[accepted.rows.clone()];
            let may_die = deaths < self.bounds.deaths && reader.end().is_none() && reader.error().is_none();
            // The caller takes all the rows, none, or only the first, before it dies.
            let ways = 2 + fresh.len().min(2);
            // In a long list, the reader is interrupted after one response in ten.
            let may_die = may_die && (self.bounds.rates.is_none() || self.choices.choose(10) == 0);
            let way = if may_die { self.choices.choose(ways) } else { 0 };
            let taken = if way > 1 { way - 2 } else { fresh.len() };
            got.extend(&fresh[..taken]);
            let returned = got.len() as u64;
            if wanted.is_some_and(|wanted| got.len() >= wanted) {
                got.truncate(wanted.unwrap_or(usize::MAX));
                if reader.stop() {
                    open.clear();
                }
            }
            is_incomplete |= match reader.end() {
                Some(End::ResultWindow) => wanted.is_none_or(|wanted| got.len() < wanted),
                end => end == Some(End::UnknownLength),
            };
            if self.bounds.shallow {
                self.returned = got.iter().map(|record| record.id).collect();
            }
            if way > 0 {
                deaths += 1;
                open.clear();
                let checkpoint = match way {
                    1 => reader.checkpoint(),
                    _ => accepted.before.clone().advanced(&Slice(fresh), taken),
                };
                let json = serde_json::to_string(&checkpoint).expect("plain values");
                let checkpoint: ListCheckpoint = serde_json::from_str(&json).expect("the same");
                self.note(|| format!("died: {json}"));
                let spec = self.spec(page_size, wanted, overlap_pages);
                empty_runs += u32::from(got.is_empty());
                let first_page = match spec.first_page {
                    // Only the first run compares.
                    FirstPage::Compared => FirstPage::Located,
                    _ if empty_runs >= 3 => FirstPage::AtOnce,
                    first_page => first_page,
                };
                let spec = ListSpec { first_page, wanted: wanted.map(|wanted| wanted as u64), ..spec };
                reader = ListReader::resumed(spec, got.len() as u64, &checkpoint);
                let latest: Vec<u64> = got[got.len().saturating_sub(8)..].iter().map(|record| record.key).collect();
                let next = ListAudit::new(self.subject(reader.spec()), got.len() as u64, &latest);
                let next = next.after_first_page(checkpoint.first_page(), checkpoint.newer(returned));
                audit = continued(&audit, next, &fresh[taken..], got.len());
            }
        }
        if let Some(error) = reader.error() {
            return Verdict::Drift(error.to_string());
        }
        let has_all = wanted.is_none_or(|wanted| got.len() < wanted);
        if let Err(contradiction) = audit.on_end(&audit::End::of(&reader, has_all))
            && self.bounds.is_audited
        {
            return Verdict::Drift(contradiction);
        }
        if is_incomplete && got.windows(2).all(|pair| pair[1].id < pair[0].id) {
            return Verdict::Incomplete;
        }
        let got: Vec<u64> = got.iter().map(|record| record.key).collect();
        // If records are equal, a newer one may be returned in place of one that was deleted.
        let may_lack_newer = !self.bounds.counted || self.bounds.symbols > 0 || self.omitted > 0;
        let is_right = match self.bounds.defect {
            Some(defect) => {
                self.adversary.is_right(defect, &self.states, &got, wanted.unwrap_or(usize::MAX))
                    && !(audit.doubts(&audit::End::of(&reader, has_all)).is_empty()
                        && self.adversary.showed_another_between(&got))
            }
            None => {
                let doubts = audit.doubts(&audit::End::of(&reader, has_all));
                self.is_right(&got, wanted.unwrap_or(usize::MAX), may_lack_newer)
                    && (doubts.is_empty() || !self.has_only_grown())
            }
        };
        if is_right { Verdict::Right } else { Verdict::Wrong(got) }
    }

    /// True if the reader keeps no more of what it has read than it may.
    fn is_bounded(&self, reader: &ListReader) -> bool {
        let ListState { spec, snapshot, delivered, .. } = reader.list();
        let max_keys = if matches!(reader, ListReader::Uncounted(_)) { spec.tuning.max_keys } else { 0 };
        let are_few =
            snapshot.anchors.len() <= 3 && snapshot.anchors.iter().all(|group| group.len() <= spec.tuning.max_anchors);
        delivered.keys().len() <= max_keys && are_few
    }

    pub fn length(&self) -> usize {
        self.list.len()
    }

    pub fn states(&self) -> Vec<Vec<u64>> {
        self.states.iter().map(|state| state.iter().map(|record| record.key).collect()).collect()
    }

    /// True if no record was deleted: a reason would have no cause.
    fn has_only_grown(&self) -> bool {
        let ids = |state: &[Record]| state.iter().map(|record| record.id).collect::<Vec<_>>();
        self.bounds.symbols == 0 && self.states.windows(2).all(|states| ids(&states[1]).ends_with(&ids(&states[0])))
    }

    /// True if these are the keys of the list, or of as many of its records as were wanted, at some instant since the
    /// first response, apart from records that are newer than the first page of a list without a count.
    fn is_right(&self, got: &[u64], wanted: usize, may_lack_newer: bool) -> bool {
        let Some(first) = self.states.first() else { return got.is_empty() };
        let oldest_new = first.iter().map(|record| record.id + 1).max().unwrap_or(0);
        self.states.iter().any(|state| {
            (0..=state.len())
                .take_while(|newer| {
                    *newer == 0 || may_lack_newer && state[..*newer].iter().all(|record| record.id >= oldest_new)
                })
                .any(|newer| state[newer..].iter().take(wanted).map(|record| record.key).eq(got.iter().copied()))
        })
    }
}

fn phase_name(reader: &ListReader) -> String {
    let phase = match (&reader.list().stage, reader) {
        (Stage::Reading, ListReader::Counted(reader)) => format!("{:?}", reader.phase),
        (Stage::Reading, ListReader::Uncounted(reader)) => format!("{:?}", reader.phase),
        (stage, _) => format!("{stage:?}"),
    };
    phase.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default().to_owned()
}
