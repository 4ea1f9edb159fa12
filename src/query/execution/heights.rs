//! `ChainHeights`: heights by time, searched among the blocks of a chain.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::block_list::{BlockList, block_hash, blocks, call, no_block};
use super::height_search::{Search, SearchStep, TimedBlock};
use super::kept_search::KeptSearch;
use crate::cache::Anchor;
use crate::client::Error;
use crate::columns::Columns;
use crate::decode::Page;
use crate::interface::Chain;
use crate::query::follow::{self, facts, page_hash};
use crate::query::request::Query;
use crate::query::results::{SearchState, SharedReport, TimePosition};
use crate::query::snapshot::Rows;

/// The lowest heights, which a chain may begin with.
const LOWEST: RangeInclusive<i64> = 0..=1;

/// Requests after which a search is given up: far more than interpolation and bisection take among blocks that are not
/// empty.
const MAX_REQUESTS: usize = 200;

/// Last pages that are requested one after another, of a list that grows meanwhile.
const MAX_LAST_PAGES: u32 = 3;

/// The first page of the list. Its blocks show how fast blocks follow each other.
struct NewestBlocks {
    /// Times of the blocks, by height.
    blocks: BTreeMap<i64, i64>,
    /// Number of its records.
    rows: usize,
    /// Key of the first one.
    first: Option<u64>,
    pages: Option<u64>,
    /// Hash of all its records.
    hash: u64,
}

impl NewestBlocks {
    fn newest(&self) -> Option<TimedBlock> {
        self.blocks.last_key_value().map(TimedBlock::of)
    }
}

/// Searches heights of one chain. Each search starts from the blocks that earlier ones fetched.
pub(super) struct ChainHeights<'c> {
    pub list: BlockList<'c>,
    head: Option<NewestBlocks>,
    search: Option<Search>,
    /// Finds of earlier runs and of this one.
    pub kept: KeptSearch,
    /// Hashes of the blocks that responses showed, by height.
    hashes: BTreeMap<i64, String>,
    /// Times of the blocks that responses showed, by height.
    times: BTreeMap<i64, i64>,
}

impl<'c> ChainHeights<'c> {
    pub fn new(list: BlockList<'c>) -> Self {
        Self {
            list,
            head: None,
            search: None,
            kept: KeptSearch::default(),
            hashes: BTreeMap::new(),
            times: BTreeMap::new(),
        }
    }

    /// Heights of the chain that a query reads.
    pub fn of(query: &'c Query, report: &'c SharedReport) -> Self {
        Self::new(BlockList::of(query, report))
    }

    /// Heights whose search an earlier run has begun.
    #[must_use]
    pub fn continuing(mut self, state: &SearchState) -> Self {
        self.search = Search::restored(state);
        self.kept = KeptSearch::restored(state);
        self
    }

    /// The newest block as of the first call.
    pub async fn newest(&mut self) -> Result<Option<TimedBlock>, Error> {
        if self.head.is_none()
            && let Some(newest) = self.kept.newest()
        {
            return Ok(Some(newest));
        }
        let chain = self.list.chain;
        let head = self.first_page().await?;
        if head.blocks.is_empty() && head.rows > 0 {
            return Err(no_block(chain, "expected a record with a height and a time".into(), String::new()));
        }
        let newest = head.newest();
        self.save();
        Ok(newest)
    }

    /// The newest block as a follower knows it.
    pub async fn head(&mut self) -> Result<Option<follow::ChainHead>, Error> {
        let head = self.first_page().await?;
        Ok(head.newest().map(|newest| follow::ChainHead { height: newest.height, page: head.hash }))
    }

    /// The first block, if the list reaches back to it or it has one of the lowest heights.
    pub async fn first(&mut self) -> Result<Option<i64>, Error> {
        let Some(newest) = self.newest().await? else { return Ok(None) };
        if let Some(first) = self.first_listed().await? {
            return Ok(Some(first));
        }
        for height in LOWEST.filter(|height| *height <= newest.height) {
            if self.list.block(height).await?.is_some() {
                return Ok(Some(height));
            }
        }
        Ok(None)
    }

    /// The lowest height of the list, if it reaches back to the first block that the API has.
    pub async fn first_listed(&mut self) -> Result<Option<i64>, Error> {
        let pages = self.first_page().await?.pages;
        let (oldest, reaches_back) = self.oldest(pages).await?;
        Ok(oldest.filter(|_| reaches_back).map(|oldest| oldest.height))
    }

    /// Takes the records of a response and returns their blocks: times by height.
    fn blocks(&mut self, columns: &Columns) -> BTreeMap<i64, i64> {
        for row in 0..columns.rows() {
            if let Some(height) = Rows::height(columns, row) {
                self.kept.read(height, Rows::block(columns, row).unwrap_or(0));
                if let Some(hash) = block_hash(columns, row) {
                    self.hashes.entry(height).or_insert_with(|| hash.to_owned());
                }
            }
        }
        let blocks = blocks(columns);
        self.times.extend(&blocks);
        blocks
    }

    async fn first_page(&mut self) -> Result<&NewestBlocks, Error> {
        if self.head.is_none() {
            let page = self.list.page(1).await?;
            // A chain has blocks.
            if page.is_bare() {
                self.list.report.doubt_empty_responses();
            }
            check_begins_with_newest(self.list.chain, &page)?;
            let hash = page_hash(&facts(&page.columns));
            let blocks = self.blocks(&page.columns);
            let rows = page.columns.rows();
            let first = (rows > 0).then(|| page.columns.key(0));
            self.head = Some(NewestBlocks { blocks, rows, first, pages: page.paging.total_pages, hash });
        }
        Ok(self.head.as_ref().expect("it was just read"))
    }

    /// Returns the oldest block of the list, and whether the list reaches back to the first one of the chain.
    async fn oldest(&mut self, pages: Option<u64>) -> Result<(Option<TimedBlock>, bool), Error> {
        let Some(mut pages) = pages else { return Ok((None, false)) };
        let list = self.list.query(Vec::new(), None)?;
        let mut oldest = None;
        // A list that grows has a further page now and then, but not at each of these.
        for _ in 0..MAX_LAST_PAGES {
            let page = self.list.page(pages.max(1)).await?;
            if self.is_other_page(pages, &page) {
                return Ok((None, false));
            }
            let listed = self.blocks(&page.columns);
            oldest = listed.first_key_value().map(TimedBlock::of);
            match page.paging.total_pages {
                Some(total) if total > pages => pages = total,
                total => {
                    let is_listed = total == Some(pages) && !list.reaches_result_window(pages * list.page_size());
                    return Ok((oldest, is_listed && self.ends_at(oldest, pages, &page).await?));
                }
            }
        }
        Ok((oldest, false))
    }

    /// True if a response that should have the last of several pages has another one: it says so, or shows the first record.
    fn is_other_page(&self, number: u64, page: &Page) -> bool {
        let first = self.head.as_ref().and_then(|head| head.first);
        let shows_first = (0..page.columns.rows()).any(|row| first == Some(page.columns.key(row)));
        number > 1 && (page.paging.number.is_some_and(|other| other > 0 && other != number) || shows_first)
    }

    /// True if the list ends with this block, of a page that should be the last one. One of several that is full may be an
    /// earlier one: some services repeat that for each page that is too deep.
    async fn ends_at(&self, oldest: Option<TimedBlock>, number: u64, page: &Page) -> Result<bool, Error> {
        let is_short = self.head.as_ref().is_some_and(|head| page.columns.rows() < head.rows);
        match oldest {
            Some(oldest) if number > 1 && !is_short && oldest.height > *LOWEST.start() => {
                Ok(self.list.rows_of(oldest.height - 1).await?.is_none())
            }
            _ => Ok(true),
        }
    }

    /// The block of a height, if a response showed its hash.
    pub fn known_block(&self, height: i64) -> Option<Anchor> {
        self.hashes.get(&height).map(|hash| Anchor { height, block_hash: hash.clone() })
    }

    /// Blocks that responses showed.
    pub fn shown(&self, heights: RangeInclusive<i64>) -> impl Iterator<Item = TimedBlock> + '_ {
        let shown = if heights.is_empty() { None } else { Some(self.times.range(heights)) };
        shown.into_iter().flatten().map(TimedBlock::of)
    }

    /// True if a response showed a block that is earlier than one below it.
    pub fn has_falling_times(&self) -> bool {
        let is_listed = self.head.as_ref().is_some_and(|head| !head.blocks.values().is_sorted());
        self.kept.had_falling_times() || is_listed || self.search.as_ref().is_some_and(Search::has_falling_times)
    }

    /// True if a response showed that a height has no block, or one without transactions.
    pub fn is_absent(&self, height: i64) -> bool {
        self.search.as_ref().is_some_and(|search| search.is_empty(height))
    }

    /// Height of the newest block, if it was fetched.
    pub fn known_newest(&self) -> Option<i64> {
        let listed = self.head.as_ref().and_then(NewestBlocks::newest);
        listed.or_else(|| self.kept.newest()).map(|newest| newest.height)
    }

    /// The newest block, if it was fetched with its hash.
    pub fn known_newest_block(&self) -> Option<Anchor> {
        self.known_block(self.known_newest()?)
    }

    /// Takes the position of a time, for this run and those that continue it.
    pub fn keep_position(&mut self, time: i64, position: TimePosition) {
        self.kept.add_found(time, position);
        self.save();
    }

    pub fn keep_age(&mut self, block: TimedBlock) {
        self.kept.add_age(block);
        self.save();
    }

    /// Returns the position of a time.
    pub async fn find(&mut self, time: i64) -> Result<TimePosition, Error> {
        if let Some(found) = self.kept.found(time) {
            return Ok(found);
        }
        let found = self.find_unchanged(time).await;
        match found {
            Ok(position) => self.keep_position(time, position),
            Err(_) => self.save(),
        }
        found
    }

    /// Searches a time, again if the chain no longer has the blocks that an earlier run has read.
    async fn find_unchanged(&mut self, time: i64) -> Result<TimePosition, Error> {
        loop {
            let Some(newest) = self.newest().await? else { return Ok(TimePosition::NoBlock) };
            if newest.time <= time {
                if self.head.is_some() {
                    return Ok(TimePosition::Newest(newest.height));
                }
                // The chain may have grown since an earlier run.
                self.forget();
                continue;
            }
            let mut search = self.search.take().unwrap_or_else(|| {
                let known = self.head.as_ref().map_or_else(BTreeMap::new, |head| head.blocks.clone());
                Search::new(known, newest)
            });
            let found = self.search_for(time, &mut search).await;
            self.search = Some(search);
            let found = found?;
            if self.is_unchanged().await? {
                return Ok(found);
            }
            self.kept.discard();
            self.forget();
        }
    }

    async fn search_for(&mut self, time: i64, search: &mut Search) -> Result<TimePosition, Error> {
        search.retarget(time);
        for _ in 0..MAX_REQUESTS {
            let before = search.before_step();
            let Some(step) = search.next_step() else { return Ok(search.found_with_absent()) };
            if let Err(error) = self.take_step(step, search).await {
                search.step_back(before);
                return Err(error);
            }
        }
        let problem =
            format!("no block with transactions found in {MAX_REQUESTS} requests; pass heights instead of times");
        Err(Error::Drift { endpoint: call(self.list.chain), problem: problem.into() })
    }

    async fn take_step(&mut self, step: SearchStep, search: &mut Search) -> Result<(), Error> {
        match step {
            SearchStep::Block(height) => match self.request_block(height).await? {
                Some(block) => search.on_block(block),
                None => {
                    self.kept.read(height, 0);
                    search.on_empty(height);
                }
            },
            SearchStep::Oldest => {
                let pages = match &self.head {
                    Some(head) => head.pages,
                    None => self.kept.pages(),
                };
                let (oldest, reaches_back) = self.oldest(pages).await?;
                search.on_oldest(oldest, reaches_back);
            }
        }
        Ok(())
    }

    /// True if the chain has the blocks of earlier runs on which a search relies, as one block above them tells.
    async fn is_unchanged(&mut self) -> Result<bool, Error> {
        let Some(search) = &self.search else { return Ok(true) };
        let Some(known) = self.kept.block_to_compare(search) else { return Ok(true) };
        let rows = self.list.rows_of(known.height).await?;
        let is_unchanged = rows.is_some_and(|rows| {
            let hash = Rows::block(&rows, 0).unwrap_or(0);
            let is_same = hash == known.block || hash == 0 || known.block == 0;
            is_same && blocks(&rows).get(&known.height) == Some(&known.time)
        });
        if is_unchanged {
            self.kept.are_unchanged();
        }
        Ok(is_unchanged)
    }

    /// Forgets the blocks of earlier runs.
    fn forget(&mut self) {
        self.search = None;
        self.head = None;
        self.times.clear();
        self.kept.forget_blocks();
    }

    /// Adds what was found to the report, for a run that continues this one.
    fn save(&mut self) {
        let pages = self.head.as_ref().and_then(|head| head.pages).or(self.kept.pages());
        let falling = self.has_falling_times();
        let state = match (&self.search, &self.head) {
            (Some(search), _) => self.kept.state(search, pages, falling),
            (None, Some(head)) => {
                let search = head.newest().map(|newest| Search::new(head.blocks.clone(), newest));
                search.map_or_else(|| self.kept.without_blocks(), |search| self.kept.state(&search, pages, falling))
            }
            (None, None) => self.kept.without_blocks(),
        };
        self.list.report.update(|report| report.search = Some(Arc::new(state)));
    }

    /// Requests the block of a height for the search.
    async fn request_block(&mut self, height: i64) -> Result<Option<TimedBlock>, Error> {
        let rows = self.list.rows_of(height).await?;
        let blocks = rows.map_or_else(BTreeMap::new, |rows| self.blocks(&rows));
        Ok(blocks.first_key_value().map(TimedBlock::of))
    }
}

/// Fails if the first page of a list of several begins below the height that it ends with: the newest block is on another one.
fn check_begins_with_newest(chain: Chain, page: &Page) -> Result<(), Error> {
    let heights: Vec<i64> = page.columns.heights().flatten().collect();
    let has_others = page.paging.total_pages.is_none_or(|pages| pages > 1);
    match heights[..] {
        [first, .., last] if first < last && has_others => {
            let problem = format!(
                "the newest block is looked for on the first page, where height {last} comes below {first}: the list changed, or \
                 is in another order, such as data of a local server that was not loaded newest first"
            );
            Err(Error::Drift { endpoint: call(chain), problem: problem.into() })
        }
        _ => Ok(()),
    }
}
