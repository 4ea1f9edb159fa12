//! The pages of one window: asked ahead, and each put where it belongs although the list grows at its head meanwhile.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::cursor::Cursor;
use super::pages::CHANGED;
use super::plan::Query;
use super::report::SharedReport;
use crate::client::{Error, Expected, Fetched};
use crate::columns::Columns;
use crate::decode::Page;

/// Answers in a row that bring nothing new before a list counts as growing faster than it can be read.
const STALLS: u32 = 10;

pub(super) struct Run {
    pub window: u64,
    /// Asked for and not delivered, in order; the last is the page before `next_page`.
    pending: VecDeque<Task<Result<Fetched, Error>>>,
    next_page: u64,
    last_page: LastPage,
    /// Records and pages of the list as the first page counted them.
    pub total: Option<u64>,
    total_pages: Option<u64>,
    /// Records of that list which were delivered.
    pub records: u64,
    pages: u64,
    stalls: u32,
    /// How far the list had grown at the latest answer, and whether it still did.
    shift: u64,
    growing: bool,
    first: Option<Columns>,
    previous: Option<Columns>,
    /// Records of a look-up that were delivered before this run.
    pub skip: u64,
    resumed: Option<u64>,
    went_on: bool,
}

/// What a later run needs to find the place in a list again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alignment {
    /// The list's length when its first page was answered.
    total: Option<u64>,
}

impl Alignment {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn at(&self, _position: u64) -> Self {
        self.clone()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum LastPage {
    /// The first page will tell.
    Unasked,
    Known(u64),
    /// The service does not say: pages end with the first that is not full.
    Unknown,
}

/// Where an answer stands in the list.
pub(super) enum Where {
    /// It continues what was delivered, after this many records that were delivered already.
    After(usize),
    /// Records before it are still missing.
    Gap,
}

/// A spawned task that ends when nobody waits for it any more.
struct Task<T> {
    handle: JoinHandle<T>,
    process: u32,
}

impl<T> Task<T> {
    fn new(handle: JoinHandle<T>) -> Self {
        Self { handle, process: std::process::id() }
    }

    /// In a forked child the task's threads do not exist, and what they left may be locked.
    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if self.is_ours() {
            self.handle.abort();
        }
    }
}

impl Run {
    pub fn new(window: u64) -> Self {
        Self {
            window,
            pending: VecDeque::new(),
            next_page: 1,
            last_page: LastPage::Unasked,
            total: None,
            total_pages: None,
            records: 0,
            pages: 0,
            stalls: 0,
            shift: 0,
            growing: false,
            first: None,
            previous: None,
            skip: 0,
            resumed: None,
            went_on: false,
        }
    }

    /// Goes on where an earlier run left off.
    pub fn resumed(query: &Query, start: &Cursor) -> Self {
        let mut run = Self::new(start.window);
        if query.is_paged() && start.position > 0 {
            run.records = start.position;
            run.resumed = Some(start.position);
            run.went_on = true;
            run.total = start.list.total;
            run.next_page = start.position / query.page_size() + 1;
        } else {
            run.skip = start.position;
        }
        run
    }

    pub fn alignment(&self) -> Alignment {
        Alignment { total: self.total }
    }

    /// Whether nothing comes after what was delivered.
    pub fn is_at_end(&self) -> bool {
        matches!(self.last_page, LastPage::Known(last) if self.next_page > last && self.pending.is_empty())
    }

    pub fn open(&self) -> usize {
        self.pending.len()
    }

    pub fn wants_page(&self) -> bool {
        // Pages asked ahead of a growing list would be gone when they are answered.
        if self.growing && !self.pending.is_empty() {
            return false;
        }
        match self.last_page {
            LastPage::Unasked => self.pending.is_empty(),
            LastPage::Known(last) => self.next_page <= last,
            LastPage::Unknown => self.pending.is_empty(),
        }
    }

    pub fn ask(&mut self, query: &Query) {
        let (query, window, page) = (query.clone(), self.window, self.next_page);
        // Only the first page may be empty without having been promised.
        let promised = matches!(self.last_page, LastPage::Known(_));
        self.pending.push_back(Task::new(tokio::spawn(async move { fetch(&query, window, page, promised).await })));
        self.next_page += 1;
    }

    /// Goes on from this page; what was asked after it would come out of order.
    fn rewind(&mut self, page: u64) {
        self.next_page = page;
        self.pending.clear();
    }

    /// What a parent process had asked for has to be asked for again.
    pub fn survive_fork(&mut self) {
        if self.pending.iter().any(|task| !task.is_ours()) {
            self.rewind(self.next_page - self.pending.len() as u64);
        }
    }

    /// The next answer with its page number, or nothing if none is open. Safe to drop: the answer then stays open.
    pub async fn answered(&mut self, query: &Query) -> Option<Result<(u64, Fetched), Error>> {
        let task = self.pending.front_mut()?;
        let fetched = (&mut task.handle).await;
        self.pending.pop_front();
        let number = self.next_page - 1 - self.pending.len() as u64;
        let fetched = fetched.unwrap_or_else(|crash| Err(Error::Internal(crash.to_string())));
        Some(match fetched.and_then(|fetched| self.refuse_repeat(query, number, fetched)) {
            Ok(fetched) => Ok((number, fetched)),
            Err(error) => {
                // Asked again if the caller goes on.
                self.rewind(number);
                Err(error)
            }
        })
    }

    /// A service that gives one page for every number would be asked for ever, or would fill a result with repeats.
    fn refuse_repeat(&mut self, query: &Query, number: u64, fetched: Fetched) -> Result<Fetched, Error> {
        let columns = &fetched.page.columns;
        // Two pages of one record each may well be twins, where the service says how many pages there are.
        let least = if self.last_page == LastPage::Unknown { 1 } else { 2 };
        let moved = fetched.page.total != self.total;
        if columns.rows() >= least && !moved && self.previous.as_ref() == Some(columns) {
            let problem = format!("page {number} is the same as the page before it; narrow the query or try later");
            return Err(Error::Drift { endpoint: query.endpoint().name, problem });
        }
        self.previous = Some(columns.clone());
        Ok(fetched)
    }

    /// Where a page's records stand in the list as it was when its first page was answered.
    ///
    /// The list grows at its head only, so a page that counts `shift` records more than the first page did has moved
    /// back by as many: page p of size s starts at (p - 1) s - shift.
    pub fn place(&mut self, query: &Query, report: &SharedReport, number: u64, page: &Page) -> Result<Where, Error> {
        let rows = page.columns.rows();
        self.learn(query, page);
        self.pages += 1;
        if self.first.is_none() {
            self.first = Some(page.columns.clone());
            (self.total, self.total_pages) = (self.total.or(page.total), page.total_pages);
        }
        let shift = match (self.total, page.total) {
            (Some(first), Some(now)) if now >= first => now - first,
            (None, None) if page.total_pages == self.total_pages => 0,
            _ => {
                report.reason(CHANGED.into());
                0
            }
        };
        let size = page.limit.unwrap_or(query.page_size()).min(query.page_size());
        if matches!(self.last_page, LastPage::Known(last) if number < last) && (rows as u64) < size {
            report.reason("A page before the last was not full: records may be missing.".into());
        }
        if let Some(resumed) = self.resumed.take().filter(|_| shift == 0) {
            let skip = ((resumed - (number - 1) * size) as usize).min(rows);
            self.records += (rows - skip) as u64;
            return Ok(Where::After(skip));
        }
        if shift == 0 {
            self.records += rows as u64;
            return Ok(Where::After(0));
        }
        self.align(query, number, page, shift)
    }

    /// Puts a page of a list that has grown by `shift` where it belongs, and chooses the page to ask for next.
    fn align(&mut self, query: &Query, number: u64, page: &Page, shift: u64) -> Result<Where, Error> {
        let (rows, size) = (page.columns.rows(), page.limit.unwrap_or(query.page_size()).max(1));
        let before = (number - 1) * size;
        let known = self.records + shift;
        let place = if before > known { Where::Gap } else { Where::After(((known - before) as usize).min(rows)) };
        let fresh = match place {
            Where::After(skip) => rows - skip,
            Where::Gap => 0,
        };
        self.records += fresh as u64;
        self.stalls = if fresh == 0 { self.stalls + 1 } else { 0 };
        if self.stalls > STALLS {
            let problem = "the list grows faster than it can be read; use a larger page_size or narrow the query";
            return Err(Error::Drift { endpoint: query.endpoint().name, problem: problem.into() });
        }
        let last = match (self.last_page, page.total_pages) {
            (LastPage::Known(last), now) => last.max(now.unwrap_or(0)),
            _ => u64::MAX - 1,
        };
        if last < u64::MAX - 1 {
            self.last_page = LastPage::Known(last);
        }
        let growth = shift.saturating_sub(self.shift);
        (self.shift, self.growing) = (shift, growth > 0);
        let holding = |record: u64| (record / size + 1).min(last);
        match place {
            _ if Some(self.records) == self.total => self.rewind(last + 1),
            // While it grows, the page to ask for is the one that will hold the next record when it is answered; a
            // guess that went too far is taken back.
            Where::After(_) if growth > 0 => self.rewind(holding(self.records + shift + growth)),
            Where::After(_) => {}
            Where::Gap => self.rewind(holding(self.records + shift)),
        }
        Ok(place)
    }

    /// How far the window goes, from its first page or, where no page says, from the last one's length.
    fn learn(&mut self, query: &Query, page: &Page) {
        let rows = page.columns.rows() as u64;
        self.last_page = match self.last_page {
            LastPage::Unasked if !query.is_paged() => LastPage::Known(1),
            LastPage::Unasked => match page.total_pages {
                Some(last) if last > 0 || rows == 0 => LastPage::Known(last),
                _ => Self::goes_on(query, page, rows),
            },
            LastPage::Unknown => Self::goes_on(query, page, rows),
            known => known,
        };
    }

    fn goes_on(query: &Query, page: &Page, rows: u64) -> LastPage {
        let full = page.limit.unwrap_or(query.page_size()).min(query.page_size()).max(1);
        if rows < full { LastPage::Known(0) } else { LastPage::Unknown }
    }

    /// The first page, where nothing else shows that the list did not move: it was read in several pages, and the
    /// service does not count it.
    pub fn unproven_head(&self, query: &Query) -> Option<&Columns> {
        let unproven = self.pages > 1 && !self.went_on && self.total.is_none() && query.head_moves();
        self.first.as_ref().filter(|_| unproven)
    }
}

/// Gets one page; `promised` says that the service spoke of its records before.
pub(super) async fn fetch(query: &Query, window: u64, page: u64, promised: bool) -> Result<Fetched, Error> {
    let rows = if query.is_paged() { query.page_size() as usize } else { query.asked(window).len().max(16) };
    query.client().get(query.endpoint(), &query.target(window, page), Expected { rows, promised }).await
}
