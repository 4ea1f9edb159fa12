//! `Delivery`: what a run makes of a response. Its rows are accepted and selected, cut, counted, and become a page with the
//! position after each of them.

use std::ops::Range;
use std::sync::Arc;

use super::divide::{CutPage, Dividing};
use super::output::RunOutput;
use super::resume::{HashPage, HashesPage, ListPage, SlicePage};
use super::slice::CurrentSlice;
use super::{Run, RunStage};
use crate::client::Error;
use crate::columns::Columns;
use crate::decode;
use crate::message::Message;
use crate::process::ForkSafeMutex;
use crate::query::audit::{Arguments, Latest, Source};
use crate::query::execution::progress::{RunPosition, progress};
use crate::query::execution::reasons::{contradictions, label, lacks_shown, limits};
use crate::query::execution::selection::{Selection, Selector};
use crate::query::execution::slice_fetcher::SliceFetcher;
use crate::query::request::Query;
use crate::query::results::{Checkpoint, Division, Page};
use crate::query::snapshot::{Accepted, ListCheckpoint, PageRequest};

/// One response to the slice that is being delivered, and the parts of the run that it changes.
struct Delivery<'r> {
    page: decode::Page,
    request: PageRequest,
    query: &'r Query,
    fetcher: &'r mut SliceFetcher,
    output: &'r mut RunOutput,
    current: &'r mut CurrentSlice,
    dividing: &'r mut Dividing,
}

/// Rows of the response that come next in the list.
struct Next {
    rows: Range<usize>,
    /// The rows that belong to the result.
    selection: Selection,
    /// Offset of the first of them.
    offset: u64,
    /// State of the list before them.
    before: ListCheckpoint,
    /// Records that were added to the list since the response before this one.
    grown: u64,
    /// The latest records before them.
    latest: Latest,
    /// Hashes missing before this response.
    missing_before: usize,
}

/// Records that are returned.
struct Trimmed {
    columns: Columns,
    /// These records, and those before and after them.
    selected: Columns,
    /// Records of a single hash that were delivered before this run.
    skipped: usize,
    /// True if more records were received than are wanted.
    is_cut: bool,
}

impl Run {
    /// Returns the page of a response, or `None` if the response brought no records that come next.
    pub(super) fn deliver(&mut self, request: PageRequest, page: decode::Page) -> Result<Option<Page>, Error> {
        let RunStage::Started(arguments) = &self.stage else { return Ok(None) };
        let Some(fetcher) = self.fetchers.front_mut() else { return Ok(None) };
        let delivery = Delivery {
            page,
            request,
            query: &self.query,
            fetcher,
            output: &mut self.output,
            current: &mut self.current,
            dividing: &mut self.dividing,
        };
        delivery.page(arguments)
    }
}

impl Delivery<'_> {
    fn page(mut self, arguments: &Arguments) -> Result<Option<Page>, Error> {
        let Some(mut next) = self.accept(arguments)? else { return Ok(None) };
        let left = self.query.max_items().map(|max_items| max_items - self.output.delivered);
        let division = self.dividing.at(self.output.delivered);
        let divides = self.cut(&mut next, left);
        let received = self.page.columns.slice(next.rows.start, next.rows.len());
        let trimmed = self.trim(&next.selection, &received, left)?;
        let is_cut_short = trimmed.is_cut || divides.is_some();
        // If the page was cut short, the position of the list is after records that are not returned.
        let after = self.fetcher.list.checkpoint();
        self.current.latest = if is_cut_short { None } else { Some(Arc::new(ForkSafeMutex::new(after))) };

        let columns = trimmed.columns.clone();
        self.account(&next, &columns);
        let has_ended = !is_cut_short && self.fetcher.is_ended();
        let returned = SlicePage {
            query: self.query.clone(),
            slice: self.fetcher.slice,
            rows: columns.rows(),
            end: if has_ended { Some(self.reasons()) } else { None },
            division,
            divides,
            remaining: left,
            report: self.output.report.read_for_cursor(),
            blocks: self.output.blocks.latest(),
        };
        let checkpoint = self.checkpoint(next, received, trimmed, returned);
        let wanted = left.map_or(u64::MAX, |left| left - columns.rows() as u64);
        let ahead = wanted.min(self.fetcher.list.to_come());
        self.output.partial.push(&columns, usize::try_from(ahead).unwrap_or(usize::MAX), Some(&checkpoint));
        Ok(Some(Page { number: self.request.page, paging: self.page.paging, columns, checkpoint }))
    }

    /// The rows that the reader takes, the audit does not contradict and the arguments allow; `None` if there are none and
    /// the list is not an empty one.
    fn accept(&mut self, arguments: &Arguments) -> Result<Option<Next>, Error> {
        let Self { query, fetcher, page, .. } = self;
        let report = &self.output.report;
        let offset = fetcher.list.returned();
        let moved = fetcher.list.moved();
        let drift = fetcher.list.drift();
        let latest = fetcher.audit.latest().clone();
        let missing_before = report.read().missing.len();
        let slice = fetcher.slice;
        let undated = &self.output.undated;
        let selector = Selector { query, arguments, report, slice, undated, top: self.dividing.top() };
        let (Accepted { rows, before, .. }, selection) = fetcher.on_response(&self.request, page, |accepted| {
            selector.select(page, &page.columns.slice(accepted.rows.start, accepted.rows.len()))
        })?;
        report.update(|report| report.moved += fetcher.list.moved() - moved);
        let is_empty_list = offset == 0 && fetcher.list.end().is_some();
        if rows.is_empty() && !is_empty_list {
            if let Some(latest) = &self.current.latest {
                *latest.lock() = fetcher.list.checkpoint();
            }
            return Ok(None);
        }
        let min_length = fetcher.list.snapshot().min_length;
        fetcher.check_window(query, min_length)?;
        let grown = u64::try_from(fetcher.list.drift() - drift).unwrap_or(0);
        Ok(Some(Next { rows, selection, offset, before, grown, latest, missing_before }))
    }

    /// Cuts a list that is divided from here on, and returns its division.
    fn cut(&mut self, next: &mut Next, left: Option<u64>) -> Option<Division> {
        let Next { rows, offset, .. } = &*next;
        let list = &self.fetcher.list;
        let limit = self.request.limit;
        let page = CutPage { query: self.query, list, page: &self.page, limit, rows, offset: *offset, left };
        let (count, division) = self.dividing.cut(&page)?;
        next.rows.end = next.rows.start + count;
        next.selection.truncate(count);
        self.fetcher.stop();
        Some(division)
    }

    /// Takes the selected rows without those that were delivered before this run, up to the number of records `left` of a limit.
    fn trim(&mut self, selection: &Selection, received: &Columns, left: Option<u64>) -> Result<Trimmed, Error> {
        let selected = selection.rows().map_or_else(|| received.clone(), |rows| received.take(rows));
        let skipped = self.fetcher.skipped(&selected)?;
        let rows = selected.rows() - skipped;
        let wanted = left.map_or(rows, |left| rows.min(usize::try_from(left).unwrap_or(usize::MAX)));
        Ok(Trimmed { columns: selected.slice(skipped, wanted), selected, skipped, is_cut: wanted < rows })
    }

    /// Counts what is returned.
    fn account(&mut self, next: &Next, columns: &Columns) {
        let Self { query, fetcher, output, dividing, page, .. } = self;
        if !query.is_paged() && output.report.is_other_lookup(fetcher.slice, &page.columns) {
            output.report.add_contradiction(lacks_shown(&label(query, fetcher.slice)));
        }
        output.delivered += columns.rows() as u64;
        output.evidence.add(columns);
        // Each height of a range has a list of its own.
        let is_of_height = query.slices().height(fetcher.slice).is_some();
        if !query.is_paged() || dividing.divided().is_some() || is_of_height {
            let source = if query.is_paged() { Source::List(fetcher.slice) } else { Source::Lookup };
            output.blocks.add(source, columns);
            output.blocks.reasons().into_iter().for_each(|reason| output.report.add_contradiction(reason));
        }
        if query.slices().time_range(fetcher.slice).is_some() {
            output.undated.add(fetcher.slice, columns);
        }
        if page.columns.rows() > 0 {
            output.report.add_members(query.client().decoder(query.endpoint()).names(), &page.members);
        }
        output.report.add_identities(columns);
        let began = *output.began.get_or_insert((fetcher.slice, next.offset));
        let position = RunPosition { slice: fetcher.slice, offset: fetcher.list.returned(), began };
        let total = fetcher.list.snapshot().total;
        let delivered = output.delivered;
        output.report.update(|report| {
            report.pages += 1;
            report.records += columns.rows() as u64;
            // Other returned records were requested again on purpose.
            report.duplicates_dropped += next.grown.min(next.rows.start as u64);
            report.progress = match dividing.divided() {
                Some(list) => list.progress(delivered),
                None => progress(query, &position, total, page.paging.total_pages, report.pages, delivered),
            };
        });
    }

    /// Reasons why the slice, which has ended, is incomplete.
    fn reasons(&self) -> Vec<Message> {
        let mut reasons = limits(self.query, self.fetcher, &self.output.evidence);
        reasons.extend(contradictions(self.query, self.fetcher));
        reasons
    }

    /// The position after any row of the page.
    fn checkpoint(&self, next: Next, received: Columns, trimmed: Trimmed, page: SlicePage) -> Checkpoint {
        let Trimmed { columns, selected, skipped, is_cut } = trimmed;
        let rows = columns.rows();
        let Next { selection, offset, before, latest, missing_before, .. } = next;
        match selection {
            Selection::Hashes { found, missing, .. } => {
                Checkpoint::after(HashesPage { page, found, missing, missing_before }, rows)
            }
            Selection::All | Selection::Rows(_) if !self.query.is_paged() => Checkpoint::after(
                HashPage { page, selected, offset: skipped, report: self.output.report.clone() },
                rows,
            ),
            Selection::All | Selection::Rows(_) => {
                let list = ListPage {
                    page,
                    offset,
                    received: if is_cut { received.slice(0, selection.received(rows)) } else { received },
                    received_rows: if let Selection::Rows(rows) = selection { Some(rows) } else { None },
                    before,
                    audit: self.fetcher.audit.audited_page(&self.request, latest),
                    after: self.current.latest.clone(),
                    doubts: self.fetcher.doubts(),
                };
                Checkpoint::after(list, rows)
            }
        }
    }
}
