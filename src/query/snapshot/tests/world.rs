//! A model of the API: one list that changes.

mod changes;

use super::super::PageRequest;
use super::adversary::Adversary;
use super::bounds::Bounds;
use super::choices::Choices;
use super::served::{Record, Served};

#[derive(Clone)]
pub struct World {
    bounds: Bounds,
    list: Vec<Record>,
    next_id: u64,
    /// Every state of the list since the first response.
    states: Vec<Vec<Record>>,
    added: usize,
    lost: usize,
    reorganized: usize,
    omitted: usize,
    adversary: Adversary,
    /// Records that the reader has returned, if a reorganization is to leave them.
    pub returned: Vec<u64>,
    pub requests: usize,
    /// Events of the schedule, if they are to be shown.
    pub log: Option<Vec<String>>,
}

impl World {
    pub fn new(bounds: Bounds, choices: &mut dyn Choices) -> Self {
        let length = choices.choose(bounds.max_length + 1);
        let mut world = Self {
            bounds,
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
            log: None,
        };
        for _ in 0..length {
            let record = world.new_record(choices);
            world.list.insert(0, record);
        }
        world
    }

    /// False if no decision is left.
    pub fn may_change(&self) -> bool {
        let bounds = &self.bounds;
        let may_lose = self.lost < bounds.losses || self.reorganized < bounds.reorganizations;
        let may_mislead = self.omitted < bounds.omissions || bounds.defect.is_some();
        self.added < bounds.growth.0 || may_lose || may_mislead || bounds.rates.is_some()
    }

    pub fn note(&mut self, event: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(event());
        }
    }

    fn new_record(&mut self, choices: &mut dyn Choices) -> Record {
        let id = self.next_id;
        self.next_id += 1;
        let key = match self.bounds.symbols {
            0 => id,
            _ if self.bounds.rows => match self.list.first() {
                // Equal to the newest record, or different from all; in a long list, one in twenty is equal.
                Some(newest) if choices.choose(if self.bounds.rates.is_some() { 20 } else { 2 }) == 0 => newest.key,
                _ => id,
            },
            symbols => choices.choose(symbols) as u64,
        };
        let are_of_one_height = self.bounds.symbols > 0 && !self.bounds.rows;
        Record { id, key, height: if are_of_one_height { 0 } else { key as i64 / 2 } }
    }

    pub fn serve(&mut self, request: &PageRequest, choices: &mut dyn Choices) -> Served {
        self.requests += 1;
        if self.states.is_empty() {
            self.states.push(self.list.clone());
        }
        let max_served = if self.bounds.served > 0 { self.bounds.served } else { usize::MAX };
        let limit = max_served.min(request.limit as usize);
        let top = request.height_bound.unwrap_or(i64::MAX);
        let list: Vec<Record> = self.list.iter().copied().filter(|record| record.height <= top).collect();
        let list = self.adversary.list(self.bounds.defect, list, choices);
        let shown = &list[..list.len().min(self.bounds.window.unwrap_or(usize::MAX))];
        let page = self.adversary.page(self.bounds.defect, request);
        let from = ((page as usize - 1) * limit).min(shown.len());
        let rows = shown[from..(from + limit).min(shown.len())].to_vec();
        self.adversary.show(self.bounds.defect, &rows);
        self.note(|| format!("{request:?} -> {:?}", rows.iter().map(|row| row.key).collect::<Vec<_>>()));
        let may_omit = self.requests > 1 && self.omitted < self.bounds.omissions;
        let omits_count = may_omit && choices.choose(2) == 1;
        self.omitted += usize::from(omits_count);
        let length = self.adversary.length(self.bounds.defect, shown.len(), limit, choices);
        let total = length + list.len() - shown.len();
        let served = Served {
            rows,
            limit: limit as u64,
            total_pages: length.div_ceil(limit) as u64,
            total: (self.bounds.counted && !omits_count).then_some(total as u64),
        };
        if self.adversary.inserts(self.bounds.defect, self.list.len(), choices) {
            let record = self.new_record(choices);
            // Of the height of the record that it follows.
            let at = 1 + choices.choose(self.list.len() - 1);
            self.list.insert(at, Record { height: self.list[at - 1].height, ..record });
            self.states.push(self.list.clone());
        }
        self.change(choices);
        served
    }

    pub fn length(&self) -> usize {
        self.list.len()
    }

    pub fn states(&self) -> Vec<Vec<u64>> {
        self.states.iter().map(|state| state.iter().map(|record| record.key).collect()).collect()
    }

    /// True if a caller may be told that these are the keys of the records that it wanted, with or without doubts.
    pub fn is_right(&self, got: &[u64], wanted: usize, has_doubts: bool) -> bool {
        match self.bounds.defect {
            Some(defect) => {
                self.adversary.is_right(defect, &self.states, got, wanted)
                    && (has_doubts || !self.adversary.showed_another_between(got))
            }
            // A doubt needs a cause.
            None => self.had(got, wanted) && !(has_doubts && self.has_only_grown()),
        }
    }

    /// True if no record was deleted.
    fn has_only_grown(&self) -> bool {
        let ids = |state: &[Record]| state.iter().map(|record| record.id).collect::<Vec<_>>();
        self.bounds.symbols == 0 && self.states.windows(2).all(|states| ids(&states[1]).ends_with(&ids(&states[0])))
    }

    /// True if these are the keys of the list, or of as many of its records as were wanted, at some instant since the
    /// first response, apart from records that are newer than the first page of a list without a count.
    fn had(&self, got: &[u64], wanted: usize) -> bool {
        let Some(first) = self.states.first() else { return got.is_empty() };
        // If records are equal, a newer one may be returned in place of one that was deleted.
        let may_lack_newer = !self.bounds.counted || self.bounds.symbols > 0 || self.omitted > 0;
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
