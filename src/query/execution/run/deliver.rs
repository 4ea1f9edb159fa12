//! The page that a response becomes: its rows are selected and counted, and its position is noted.

use std::sync::Arc;

use super::Run;
use super::divide::CutPage;
use super::resume::{HashPage, HashesPage, ListPage, SlicePage};
use crate::client::Error;
use crate::columns::Columns;
use crate::decode;
use crate::process::ForkSafeMutex;
use crate::query::execution::progress::{Position, progress};
use crate::query::execution::reasons::{contradictions, limits};
use crate::query::execution::selection::{Selection, Selector};
use crate::query::results::{Checkpoint, Page};
use crate::query::snapshot::{Accepted, PageRequest};

impl Run {
    /// Returns the page of a response, or `None` if the response brought no records that come next.
    pub(super) fn deliver(&mut self, request: PageRequest, page: decode::Page) -> Result<Option<Page>, Error> {
        let Some(fetcher) = self.fetchers.front_mut() else { return Ok(None) };
        let query = &self.query;
        let offset = fetcher.list.returned();
        let moved = fetcher.list.moved();
        let drift = fetcher.list.drift();
        let missing_before = self.report.read().missing.len();
        let (slice, top) = (fetcher.slice, self.dividing.top());
        let selector = Selector { query, arguments: &self.arguments, report: &self.report, slice, top };
        let (Accepted { rows, before, .. }, selection) = fetcher.on_response(&request, &page, |accepted| {
            selector.select(&page, &page.columns.slice(accepted.rows.start, accepted.rows.len()))
        })?;
        self.report.update(|report| report.moved += fetcher.list.moved() - moved);
        let is_empty_list = offset == 0 && fetcher.list.end().is_some();
        if rows.is_empty() && !is_empty_list {
            if let Some(latest) = &self.latest {
                *latest.lock() = fetcher.list.checkpoint();
            }
            return Ok(None);
        }
        let min_length = fetcher.list.snapshot().min_length;
        fetcher.check_window(query, min_length)?;

        let left = query.max_items().map(|most| most - self.delivered);
        let cut = self.dividing.cut(&CutPage { query, list: &fetcher.list, page: &page, rows: &rows, offset, left });
        let (rows, selection) = match &cut {
            Some((count, _)) => (rows.start..rows.start + count, selection.first(*count)),
            None => (rows, selection),
        };
        if cut.is_some() {
            fetcher.stop();
        }
        let received = page.columns.slice(rows.start, rows.len());
        let division = self.dividing.at(self.delivered);
        let Trimmed { columns, skipped, is_cut } = trim(&received, selection.rows(), fetcher.skip, left);
        self.delivered += columns.rows() as u64;
        self.evidence.add(&columns);
        if page.columns.rows() > 0 {
            self.report.add_members(query.client().decoder(query.endpoint()).names(), &page.members);
        }
        let began = *self.began.get_or_insert((fetcher.slice, offset));
        let position = Position { slice: fetcher.slice, offset: fetcher.list.returned(), began };
        let total = fetcher.list.snapshot().total;
        // Other returned records were requested again on purpose.
        let grown = u64::try_from(fetcher.list.drift() - drift).unwrap_or(0);
        self.report.update(|report| {
            report.pages += 1;
            report.records += columns.rows() as u64;
            report.duplicates_dropped += grown.min(rows.start as u64);
            let of_list = || progress(query, &position, total, page.total_pages, report.pages, self.delivered);
            report.progress = self.dividing.progress(self.delivered).unwrap_or_else(of_list);
        });

        let divides = cut.map(|(_, division)| division);
        let is_cut_short = is_cut || divides.is_some();
        self.latest = if is_cut_short { None } else { Some(Arc::new(ForkSafeMutex::new(fetcher.list.checkpoint()))) };
        let has_ended = !is_cut_short && fetcher.is_ended();
        let end = has_ended.then(|| [limits(query, fetcher, &self.evidence), contradictions(query, fetcher)].concat());
        let returned = SlicePage {
            query: query.clone(),
            slice: fetcher.slice,
            rows: columns.rows(),
            end,
            division,
            divides,
            remaining: left,
            report: self.report.read(),
        };
        let checkpoint = match selection {
            Selection::Hashes { found, missing, .. } => {
                Checkpoint::after(HashesPage { page: returned, found, missing, missing_before }, columns.rows())
            }
            Selection::All | Selection::Rows(_) if !query.is_paged() => {
                Checkpoint::after(HashPage { page: returned, offset: skipped as u64 }, columns.rows())
            }
            Selection::All | Selection::Rows(_) => {
                let page = ListPage {
                    page: returned,
                    offset,
                    received: if is_cut { columns.clone() } else { received },
                    received_rows: if let Selection::Rows(rows) = selection { Some(rows) } else { None },
                    before,
                    after: self.latest.clone(),
                    repeats: fetcher.audit.open_repeats().to_vec(),
                    doubts: fetcher.audit.doubts(),
                };
                Checkpoint::after(page, columns.rows())
            }
        };
        let left = left.map_or(u64::MAX, |left| left - columns.rows() as u64);
        let ahead = left.min(fetcher.list.to_come());
        self.partial.push(&columns, usize::try_from(ahead).unwrap_or(usize::MAX), Some(&checkpoint));
        Ok(Some(Page {
            checkpoint,
            number: request.page,
            total_pages: page.total_pages,
            total: page.total,
            chain_full_name: page.chain_full_name,
            chain_short_name: page.chain_short_name,
            columns,
        }))
    }
}

/// Records of a response that are returned.
struct Trimmed {
    columns: Columns,
    /// Records of a single hash that were delivered before this run.
    skipped: usize,
    /// True if more records were received than are wanted.
    is_cut: bool,
}

/// Takes the selected rows without the first `skip` of them, up to the number of records `left` of a limit.
fn trim(received: &Columns, selected: Option<&[u32]>, skip: u64, left: Option<u64>) -> Trimmed {
    let selected = selected.map_or_else(|| received.clone(), |rows| received.take(rows));
    let skipped = (skip as usize).min(selected.rows());
    let rows = selected.rows() - skipped;
    let wanted = left.map_or(rows, |left| rows.min(usize::try_from(left).unwrap_or(usize::MAX)));
    Trimmed { columns: selected.slice(skipped, wanted), skipped, is_cut: wanted < rows }
}
