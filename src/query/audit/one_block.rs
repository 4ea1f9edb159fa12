//! `OneBlock`: the list of one block, which does not change. Its first page and the records before a cursor are compared
//! with other responses once the others were read. The page size of that look shows the number of records.

use std::ops::Range;

use super::known_keys::KnownKeys;
use super::subject::Subject;
use crate::query::snapshot::{PageRequest, Response, Rows};

/// Records of a run that are kept: as many as any page has.
const KEPT: usize = 1_024;

const CHANGED: &str = "the list of one block changed while it was read";

/// The first page, as it was read.
#[derive(Clone, Debug)]
struct FirstRead {
    /// Some of its records, by offset and key.
    records: Vec<(u64, u64)>,
    /// Number of its records, if all are known.
    rows: Option<u64>,
}

impl FirstRead {
    /// True if a page has these records, as far as it reaches.
    fn is_shown(&self, limit: u64, rows: &dyn Rows) -> bool {
        let shown = rows.len() as u64;
        let has_rows = self.rows.is_none_or(|known| shown >= known.min(limit));
        // An anchor of an earlier run may lie on a page after this one.
        let mut records = self.records.iter().filter(|(offset, _)| (*offset as usize) < rows.len());
        has_rows && shown > 0 && records.all(|(offset, key)| rows.key(*offset as usize) == *key)
    }
}

#[derive(Clone, Debug, Default)]
pub struct OneBlock {
    /// Block hash of the records.
    block: Option<u64>,
    /// Offset of the last record before a cursor, which is still to be looked for.
    last_before: Option<u64>,
    head: Option<FirstRead>,
    /// The first records that were accepted, and those before a cursor, by offset and key: a look may show them as well.
    accepted: Vec<(u64, u64)>,
    /// Records of a full page.
    page_rows: u64,
    /// Number of pages that the list has.
    pages: Option<u64>,
    /// Number of pages that the look at the first page has to report, if its page size shows the number of records.
    exact_pages: Option<u64>,
    /// Keys of the records that discarded readings of the list received, each with the block of the reading.
    discarded: Vec<(u64, Vec<u64>)>,
}

impl OneBlock {
    /// A list that continues after these records, the last of them before `offset`.
    pub fn continued(offset: u64, latest: &[u64]) -> Self {
        let first = offset.saturating_sub(latest.len() as u64);
        let last_before = offset.checked_sub(1).filter(|_| !latest.is_empty());
        Self { last_before, accepted: (first..).zip(latest.iter().copied()).collect(), ..Self::default() }
    }

    /// Takes what a reading of the list that was discarded received, and these keys of its records.
    #[must_use]
    pub fn after_discarded(self, discarded: Self, known: &KnownKeys) -> Self {
        let latest = discarded.block.map(|block| (block, known.iter().collect()));
        Self { discarded: discarded.discarded.into_iter().chain(latest).collect(), ..self }
    }

    /// Takes a response that contradicts others, and is discarded with them. These rows of it meet the arguments, or all do.
    pub fn on_rejected(&mut self, response: &Response<'_>, kept: Option<&[u32]>) {
        let rows = response.rows;
        let kept: Vec<usize> = match kept {
            Some(kept) => kept.iter().map(|row| *row as usize).collect(),
            None => (0..rows.len()).collect(),
        };
        let mut blocks = kept.iter().map(|row| rows.block(*row));
        let Some(block) = blocks.next().flatten() else { return };
        if blocks.all(|other| other == Some(block)) {
            self.discarded.push((block, kept.iter().map(|row| rows.key(*row)).collect()));
        }
    }

    /// True if a discarded reading received a record of the block that is not among these.
    pub fn lacks_discarded(&self, known: &KnownKeys) -> bool {
        let of_block = self.discarded.iter().filter(|(block, _)| self.block == Some(*block));
        of_block.flat_map(|(_, keys)| keys).any(|key| !known.contains(*key))
    }

    /// Takes the block of the records that an earlier run has read.
    pub fn set_block(&mut self, block: u64) {
        self.block = Some(block);
    }

    /// Takes records of the first page that an earlier run has read.
    pub fn set_first_page(&mut self, records: Vec<(u64, u64)>) {
        self.head = (!records.is_empty()).then_some(FirstRead { records, rows: None });
    }

    /// Takes a response of which these rows are returned, the first of the list if `is_first`. Fails if their block is
    /// another one.
    pub fn on_response(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        kept: &[usize],
        is_first: bool,
    ) -> Result<(), String> {
        let blocks: Vec<u64> = kept.iter().filter_map(|row| response.rows.block(*row)).collect();
        // A response with records of two blocks is of one moment all the same: a record may be listed late.
        if let Some(block) = blocks.first().filter(|first| blocks.iter().all(|block| block == *first))
            && self.block.replace(*block).is_some_and(|known| known != *block)
        {
            return Err("records of one height have two block hashes: the block was replaced".into());
        }
        if request.page == 1 {
            self.pages = response.total_pages;
        }
        if self.head.is_none() && is_first {
            // Rows that contradict the arguments have their places in the list, too.
            let records = (0..).zip(response.rows.keys()).collect();
            self.head = Some(FirstRead { records, rows: Some(response.rows.len() as u64) });
        }
        Ok(())
    }

    /// Takes the rows that were accepted of a response, the first of them at `offset`. Those that contradict the arguments
    /// have their places in the list, too.
    pub fn on_accepted(&mut self, response: &Response<'_>, rows: Range<usize>, offset: u64) {
        let room = KEPT.saturating_sub(self.accepted.len());
        self.accepted.extend((offset..).zip(rows.take(room).map(|row| response.rows.key(row))));
    }

    fn shown_offsets(&self, request: &PageRequest, response: &Response<'_>) -> Range<u64> {
        let first = request.position_by(self.page_rows);
        first..first.saturating_add(response.rows.len() as u64)
    }

    /// True if a page shows the accepted records at their offsets, as far as it has them.
    fn shows_accepted(&self, request: &PageRequest, response: &Response<'_>) -> bool {
        let shown = self.shown_offsets(request, response);
        let mut accepted = self.accepted.iter().filter(|(offset, _)| shown.contains(offset));
        accepted.all(|(offset, key)| response.rows.key((offset - shown.start) as usize) == *key)
    }

    /// True if the pages are still to be compared with the first one, or with the records before a cursor.
    pub fn is_open(&self) -> bool {
        self.last_before.is_some() || self.head.is_some()
    }

    /// The page of the records that are compared, in a list of which `length` records were read, if that is all of it.
    pub fn request(&mut self, subject: &Subject, page_rows: u64, length: Option<u64>) -> PageRequest {
        let page_size = subject.page_size;
        self.page_rows = page_rows;
        if let Some(last) = self.last_before {
            return PageRequest::of_audit(last / page_rows + 1, page_size);
        }
        // Pages smaller than the requested ones may be all that the service has.
        let length = length.filter(|_| page_rows == page_size);
        let Some((length, size)) = length.and_then(|length| Some((length, exact_size(length, subject)?))) else {
            return PageRequest::of_audit(1, page_size);
        };
        self.exact_pages = Some(length / size);
        PageRequest::of_audit(1, size)
    }

    /// Takes the response to that request. Fails if the records are not those that are known, or more.
    pub fn on_look(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<(), String> {
        let is_shown = match self.last_before.take() {
            Some(last) => self.shown_offsets(request, response).contains(&last),
            None => self.head.take().is_none_or(|head| head.is_shown(request.limit, response.rows)),
        };
        let is_same = is_shown && self.has_pages(request, response) && self.shows_accepted(request, response);
        if is_same { Ok(()) } else { Err(CHANGED.into()) }
    }

    /// True if a response reports as many pages as the list has of the requested size, as far as that is known.
    fn has_pages(&self, request: &PageRequest, response: &Response<'_>) -> bool {
        let is_of_size = response.rows.len() as u64 == request.limit;
        let known = if self.exact_pages.is_none() { self.pages } else { self.exact_pages.filter(|_| is_of_size) };
        known.is_none() || response.total_pages.is_none() || known == response.total_pages
    }
}

/// Greatest page size, other than that of the pages, of which a list has full pages only: one record more is a page more.
fn exact_size(length: u64, subject: &Subject) -> Option<u64> {
    let sizes = (1..=subject.max_page_size.max(subject.page_size)).rev();
    sizes.filter(|size| *size != subject.page_size).find(|size| length.is_multiple_of(*size))
}
