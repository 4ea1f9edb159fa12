//! The questions of one window that are open, and their answers in the order asked.

use std::collections::VecDeque;

use tokio::task::JoinHandle;

use super::cursor::Cursor;
use super::list::{Ask, List, Purpose, Terms};
use super::plan::Query;
use super::report::SharedReport;
use crate::client::{Error, Expected, process};
use crate::decode::Page;

pub(super) struct Run {
    pub window: u64,
    pub list: List,
    pending: VecDeque<(Ask, Task<Result<Page, Error>>)>,
    /// Records of a look-up that were delivered before this run.
    pub skip: u64,
}

/// A spawned task that ends when nobody waits for it any more.
struct Task<T> {
    handle: JoinHandle<T>,
    process: u32,
}

impl<T> Task<T> {
    fn new(handle: JoinHandle<T>) -> Self {
        Self { handle, process: process::id() }
    }

    /// In a forked child the task's threads do not exist, and what they left may be locked.
    fn is_ours(&self) -> bool {
        self.process == process::id()
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
    pub fn new(query: &Query, window: u64) -> Self {
        let list = List::new(query.terms());
        Self { window, list, pending: VecDeque::new(), skip: 0 }
    }

    /// Goes on where an earlier run left off.
    pub fn resumed(query: &Query, start: &Cursor) -> Self {
        let mut run = Self::new(query, start.window);
        if query.is_paged() {
            run.list = List::resumed(query.terms(), start.position, &start.list);
        } else {
            run.skip = start.position;
        }
        run
    }

    pub fn open(&self) -> usize {
        self.pending.len()
    }

    /// Asks the next question, if there is one by now.
    pub fn ask(&mut self, query: &Query, report: &SharedReport) -> bool {
        let open = self.pending.len();
        let Some(ask) = self.list.ask(open) else { return false };
        let (query, window, promised) = (query.clone(), self.window, self.list.promises(&ask));
        let report = report.clone();
        let fetch = async move { fetch(&query, window, ask, promised, &report).await };
        self.pending.push_back((ask, Task::new(tokio::spawn(fetch))));
        true
    }

    /// Gives up all open questions.
    pub fn give_up(&mut self) {
        for (ask, _) in self.pending.drain(..).rev() {
            self.list.give_up(&ask);
        }
    }

    /// What a parent process had asked for has to be asked for again.
    pub fn survive_fork(&mut self) {
        if self.pending.iter().any(|(_, task)| !task.is_ours()) {
            self.give_up();
        }
    }

    /// Whether the next answer is there.
    pub fn is_answered(&self) -> bool {
        self.pending.front().is_some_and(|(_, task)| task.handle.is_finished())
    }

    /// The next answer with its question, or nothing if none is open. Safe to drop: the answer then stays open.
    pub async fn answered(&mut self) -> Option<Result<(Ask, Page), Error>> {
        let (ask, task) = self.pending.front_mut()?;
        let ask = *ask;
        let fetched = (&mut task.handle).await.unwrap_or_else(|crash| Err(Error::Internal(crash.to_string())));
        if fetched.is_err() {
            // Asked again if the caller goes on.
            self.give_up();
        } else {
            self.pending.pop_front();
        }
        Some(fetched.map(|page| (ask, page)))
    }
}

/// Gets one page; `promised` says that the service spoke of its records before.
pub(super) async fn fetch(
    query: &Query,
    window: u64,
    ask: Ask,
    promised: bool,
    report: &SharedReport,
) -> Result<Page, Error> {
    let page = fetch_once(query, window, ask, promised, report).await?;
    // A block without any transaction, and without so much as a page to say so, is asked for once more.
    let bare = page.columns.rows() == 0 && page.total_pages.is_none() && page.total.is_none();
    if bare && query.asked_height(window).is_some() {
        return fetch_once(query, window, ask, promised, report).await;
    }
    Ok(page)
}

async fn fetch_once(
    query: &Query,
    window: u64,
    ask: Ask,
    promised: bool,
    report: &SharedReport,
) -> Result<Page, Error> {
    let rows = if query.is_paged() { ask.limit as usize } else { query.asked(window).len().max(16) };
    let expected = Expected { rows, page: ask.page, before: (ask.page - 1) * ask.limit, promised };
    // Counted when it goes out: nobody may be waiting any more when it is answered.
    report.update(|report| report.requests += 1);
    let fetched = query.client().get(query.endpoint(), &query.target(window, &ask), expected).await;
    let attempts = fetched.as_ref().map_or_else(Error::attempts, |fetched| fetched.attempts);
    report.update(|report| {
        report.requests += u64::from(attempts.saturating_sub(1));
        report.retries += u64::from(attempts.saturating_sub(1));
        report.bytes += fetched.as_ref().map_or(0, |fetched| fetched.bytes as u64);
    });
    Ok(fetched?.page)
}

impl Query {
    /// What is known of each of its lists.
    pub(super) fn terms(&self) -> Terms {
        Terms {
            endpoint: self.endpoint().name,
            size: self.page_size().max(1),
            size_max: self.endpoint().page_size_max().map_or(1, u64::from),
            paged: self.is_paged(),
            moves: self.head_moves(),
            top: self.top(),
            cap: self.cap(),
            way_on: self.way_on(),
        }
    }
}

impl List {
    /// Whether an answer without records would contradict what is known of the list.
    fn promises(&self, ask: &Ask) -> bool {
        let pages = self.first.and_then(|first| first.pages).unwrap_or(0);
        match ask.purpose {
            Purpose::Length | Purpose::Head => true,
            // The list's last page holds one record at least.
            Purpose::Records => {
                ask.top.is_none() && pages > 0 && (ask.page - 1) * ask.limit <= (pages - 1) * self.page_rows()
            }
        }
    }
}
