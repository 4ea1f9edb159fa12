//! A chain that grows and changes, a list of it, and a consumer that applies the events of a follower.

use std::time::Duration;

use crate::client::Error;
use crate::query::follow::fingerprint::{RowFacts, spread};
use crate::query::follow::spec::Forgets;
use crate::query::follow::{
    ChainHead, Changes, Event, EventKind, FollowSpec, FollowState, Follower, HeadSource, Poll, Ranges, Request,
    RoundProof, Shown, Start, Stop,
};

/// Steps in which a follower does what a test waits for.
pub const MAX_STEPS: usize = 1_000;

/// One change of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Grow,
    /// A block without records of the list.
    GrowEmpty,
    /// The newest blocks are replaced, by one more.
    Reorganize(usize),
    /// The newest blocks are replaced by fewer.
    Shrink(usize),
    /// The newest blocks are replaced by one more, without records of the list.
    Remove(usize),
    /// A record is added to the block that many below the head.
    Late(usize),
}

#[derive(Clone, Debug)]
pub struct Chain {
    /// Records of each height, from 0 on, with the hash of the block.
    blocks: Vec<(u64, Vec<u64>)>,
    num_blocks: u64,
    pub window: usize,
}

impl Chain {
    /// A chain of `blocks` heights, of which each has `records` records.
    pub fn new(blocks: usize, records: usize) -> Self {
        let mut chain = Self { blocks: Vec::new(), num_blocks: 0, window: usize::MAX };
        (0..blocks).for_each(|_| chain.grow(records));
        chain
    }

    fn next(&mut self) -> u64 {
        self.num_blocks += 1;
        self.num_blocks
    }

    pub fn grow(&mut self, records: usize) {
        let block = self.next();
        let records = (0..records).map(|_| self.next()).collect();
        self.blocks.push((block, records));
    }

    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Grow => self.grow(1 + self.blocks.len() % 2),
            Change::GrowEmpty => self.grow(0),
            Change::Reorganize(depth) => self.replace_newest(depth, depth + 1, 1),
            Change::Shrink(depth) => self.replace_newest(depth, depth - 1, 1),
            Change::Remove(depth) => self.replace_newest(depth, depth + 1, 0),
            Change::Late(below) => {
                let record = self.next();
                let height = self.blocks.len().saturating_sub(1 + below);
                if let Some((_, records)) = self.blocks.get_mut(height) {
                    records.push(record);
                }
            }
        }
    }

    fn replace_newest(&mut self, depth: usize, blocks: usize, records: usize) {
        self.blocks.truncate(self.blocks.len().saturating_sub(depth));
        (0..blocks).for_each(|_| self.grow(records));
    }

    /// The API returns fewer records of a height.
    pub fn lose(&mut self, height: usize, records: usize) {
        let (_, kept) = &mut self.blocks[height];
        kept.truncate(kept.len() - records);
    }

    /// Another block at a height, with the same records.
    pub fn replace(&mut self, height: usize) {
        self.blocks[height].0 = self.next();
    }

    /// The API returns no records below this height any more.
    pub fn forget(&mut self, height: usize) {
        self.blocks[..height].iter_mut().for_each(|(_, records)| records.clear());
    }

    /// The lowest height with records.
    pub fn first(&self) -> Option<i64> {
        self.blocks.iter().position(|(_, records)| !records.is_empty()).map(|height| height as i64)
    }

    pub fn head(&self) -> i64 {
        self.blocks.len() as i64 - 1
    }

    /// The head as a list of blocks shows it, which does not show late records.
    pub fn newest(&self) -> ChainHead {
        let page = self.blocks.iter().fold(0, |hash, (block, _)| spread(hash ^ block));
        ChainHead { height: self.head(), page }
    }

    /// All records, the newest first.
    pub fn list(&self) -> Vec<RowFacts> {
        let rows = self.blocks.iter().enumerate().rev().flat_map(|(height, (block, records))| {
            let height = Some(height as i64);
            records.iter().rev().map(move |key| RowFacts {
                height,
                key: *key,
                block: *block,
                chain: *block,
                content: *key,
            })
        });
        rows.collect()
    }
}

/// A read of the list: as of one instant, or page by page as the list is then.
#[derive(Clone, Debug, Default)]
struct ReadDown {
    /// Versions of the list during the read.
    lists: Vec<Vec<RowFacts>>,
    read: usize,
    /// True once a page showed that the list has moved: from then on, a page is placed by the last record that was read.
    drifted: bool,
    /// True if that record was the last one of a page.
    is_placed: bool,
}

impl ReadDown {
    fn new(chain: &Chain) -> Self {
        Self { lists: vec![chain.list()], ..Self::default() }
    }

    /// The next rows of a list without a count, as its reader reads it; None if their place is not known.
    fn live_page(&mut self, chain: &Chain, read: &[RowFacts], page_size: usize) -> Option<(Vec<RowFacts>, Stop)> {
        let list = chain.list();
        self.lists.push(list.clone());
        let start = (self.read - usize::from(self.is_placed)).min(list.len());
        let end = (start + page_size + usize::from(self.is_placed)).min(list.len());
        let (page, last) = (&list[start..end], read.last().copied());
        let is_new = |row: &RowFacts| last.is_none_or(|last| row.height <= last.height) && !read.contains(row);
        let stop = if end == list.len() { Stop::List } else { Stop::Page(None) };
        let place = page.iter().position(|row| Some(*row) == last);
        self.read = end;
        if !self.drifted && page.iter().all(is_new) {
            return Some((page.to_vec(), stop));
        }
        (self.drifted, self.is_placed) = (true, place.is_some());
        match place {
            Some(at) => Some((page[at + 1..].to_vec(), stop)),
            None if page.iter().any(is_new) || stop == Stop::List => None,
            None => Some((Vec::new(), stop)),
        }
    }

    /// The next page, as the list is now.
    fn page(&mut self, page_size: usize, window: usize) -> (Vec<RowFacts>, Stop) {
        let list = &self.lists[self.lists.len() - 1];
        let end = (self.read + page_size).min(list.len()).min(window);
        let page = list.get(self.read..end).unwrap_or_default().to_vec();
        self.read = end.max(self.read);
        let stop = match end {
            end if end == list.len() => Stop::List,
            end if end == window => Stop::Window,
            // A list that ends at a window reports its pages.
            _ if window == usize::MAX => Stop::Page(None),
            end => Stop::Page(Some((window.min(list.len()) - end).div_ceil(page_size) as u64)),
        };
        (page, stop)
    }
}

/// A follower, and the records that its consumer has, oldest first.
#[derive(Clone)]
pub struct Run {
    pub follower: Follower,
    pub consumer: Vec<(i64, u64)>,
    pub cursor: Option<FollowState>,
    /// The versions of the list in the last round that delivered, and its position.
    pub settled: Option<(Vec<Vec<RowFacts>>, i64)>,
    down: ReadDown,
    again: ReadDown,
    rows: Vec<RowFacts>,
    pub requests: u64,
    pub undos: u64,
    now: Duration,
}

pub fn spec(changes: Changes, settle: i64, page_size: u64) -> FollowSpec {
    FollowSpec {
        endpoint: "blocks",
        low: 0,
        changes,
        settle,
        poll: Poll::Every(Duration::from_secs(1)),
        head: HeadSource::List,
        ranges: Ranges::None,
        proof: RoundProof::Count,
        until: None,
        forgets: Forgets::Never,
        page_size,
        max_rows: 10_000,
        remembered: settle as usize + 16,
        is_of_set: false,
    }
}

/// Outcome of one step of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// A request was answered.
    Request,
    /// A round ended: time has passed.
    Waited,
    Finished,
}

impl Run {
    pub fn new(spec: FollowSpec, start: Start) -> Self {
        Self {
            follower: Follower::new(spec, start),
            consumer: Vec::new(),
            cursor: None,
            settled: None,
            down: ReadDown::default(),
            again: ReadDown::default(),
            rows: Vec::new(),
            requests: 0,
            undos: 0,
            now: Duration::ZERO,
        }
    }

    /// Another process continues from the cursor of the last event; the consumer keeps what it has.
    pub fn restart(&mut self) {
        let Some(state) = self.cursor.clone() else { return };
        self.follower = Follower::new(self.follower.spec().clone(), Start::After(state));
        self.now = Duration::ZERO;
    }

    /// Takes steps up to the first with this result.
    pub fn step_to(&mut self, chain: &Chain, result: Stepped) {
        let has_result = (0..MAX_STEPS).any(|_| self.step(chain).unwrap() == result);
        assert!(has_result, "no {result:?} in {MAX_STEPS} steps");
    }

    pub fn step(&mut self, chain: &Chain) -> Result<Stepped, Error> {
        let request = self.follower.next_request(self.now)?;
        self.requests += u64::from(!matches!(request, Request::Wait(_) | Request::Finished));
        let page_size = self.follower.spec().page_size as usize;
        let events = match request {
            Request::Finished => return Ok(Stepped::Finished),
            Request::Wait(time) => {
                self.now += time;
                return Ok(Stepped::Waited);
            }
            Request::Head => {
                self.follower.on_head(Some(chain.newest()));
                Vec::new()
            }
            Request::Oldest => self.follower.on_oldest(chain.first().unwrap_or(0))?,
            Request::Newest | Request::Older { .. } => {
                if request == Request::Newest {
                    self.down = ReadDown::new(chain);
                    self.rows.clear();
                }
                let is_live = request != Request::Newest && self.follower.spec().proof == RoundProof::Recheck;
                let page = if is_live {
                    self.down.live_page(chain, &self.rows, page_size)
                } else {
                    Some(self.down.page(page_size, chain.window))
                };
                let Some((page, stop)) = page else {
                    self.follower.repeat();
                    return Ok(Stepped::Request);
                };
                self.rows.extend(&page);
                self.show(&self.down.clone(), chain.window, &page);
                self.follower.on_page(&page, stop)?
            }
            Request::Verify => self.follower.on_verified()?,
            Request::Recheck { page } => {
                if page == 1 {
                    self.again = ReadDown::new(chain);
                } else {
                    self.again.lists.push(chain.list());
                }
                let (page, stop) = self.again.page(page_size, chain.window);
                self.show(&self.again.clone(), chain.window, &page);
                match self.follower.on_recheck(&page, stop) {
                    Err(Error::Drift { .. }) => {
                        self.follower.repeat();
                        Vec::new()
                    }
                    rechecked => rechecked?,
                }
            }
            Request::Range { low, high, max_rows } => {
                let all = chain.list();
                let count =
                    |high| all.iter().filter(|row| row.height.is_some_and(|at| (low..=high).contains(&at))).count();
                let is_cut = !matches!(self.follower.spec().ranges, Ranges::List | Ranges::None);
                // Height by height, and by count, a range ends with the height that exceeds the limit.
                let cut = || (low..high).find(|height| count(*height) as u64 > max_rows).unwrap_or(high);
                let up_to = if is_cut { cut() } else { high };
                let in_range = all.iter().filter(|row| row.height.is_some_and(|at| (low..=up_to).contains(&at)));
                self.rows = in_range.copied().collect();
                self.down.lists = vec![all];
                if !is_cut && self.rows.len() as u64 > max_rows {
                    let reached = self.rows[max_rows as usize].height.unwrap_or(high);
                    self.follower.on_large_range(high, max_rows + 1, reached);
                    return Ok(Stepped::Request);
                }
                let rows = self.rows.clone();
                self.follower.on_shown(vec![Shown { rows: rows.clone(), is_first: false, count: None }]);
                self.follower.on_range(up_to, &rows)?
            }
        };
        events.into_iter().for_each(|event| self.apply(&event));
        Ok(Stepped::Request)
    }

    /// Shows the follower the latest response of a read, whose rows end where it has read to.
    fn show(&mut self, read: &ReadDown, window: usize, rows: &[RowFacts]) {
        let first = read.read - rows.len();
        let count = (read.lists[read.lists.len() - 1].len() - first) as u64;
        let has_count = window == usize::MAX && self.follower.spec().forgets == Forgets::Never;
        let count = has_count.then_some(count..=count);
        self.follower.on_shown(vec![Shown { rows: rows.to_vec(), is_first: first == 0, count }]);
    }

    fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Deliver { above, up_to, overlap } => {
                let mut overlap = overlap.clone();
                let is_wanted = |row: &&RowFacts| row.height.is_some_and(|height| height > *above && height <= *up_to);
                let rows = self.rows.iter().rev().filter(is_wanted);
                let new = rows.filter(|row| !overlap.as_mut().is_some_and(|overlap| overlap.take(row)));
                self.consumer.extend(new.map(|row| (row.height.unwrap(), row.key)));
            }
            EventKind::Undo { after_height } => {
                self.consumer.retain(|(height, _)| height <= after_height);
                self.undos += 1;
            }
            EventKind::Moved => {}
        }
        self.settled = Some((self.down.lists.clone(), event.state.delivered_to()));
        self.cursor = Some(event.state.clone());
    }

    /// Records that the consumer has to have, by the list of the last round that delivered.
    pub fn expected(&self, above: i64) -> Vec<(i64, u64)> {
        self.versions(above).pop().unwrap_or_default()
    }

    /// True if the consumer has the list as it was at one instant of that round.
    pub fn is_exact(&self, above: i64) -> bool {
        self.settled.is_none() || self.versions(above).contains(&self.consumer)
    }

    fn versions(&self, above: i64) -> Vec<Vec<(i64, u64)>> {
        let Some((lists, position)) = &self.settled else { return Vec::new() };
        let version = |list: &Vec<RowFacts>| {
            let rows = list.iter().rev().filter_map(|row| Some((row.height?, row.key)));
            rows.filter(|(height, _)| height > &above && height <= position).collect()
        };
        lists.iter().map(version).collect()
    }
}
