//! `Reader`: what the reader of each kind of list does in its own way, while the list is read.

use std::ops::Range;

use super::checkpoint::{Accepted, ListCheckpoint};
use super::snapshot::{Length, Proof, Snapshot};
use super::spec::{End, ListKind, PageRequest, Purpose, Response, View};
use super::state::ListState;
use crate::client::Error;

pub(super) trait Reader {
    fn list(&self) -> &ListState;

    fn list_mut(&mut self) -> &mut ListState;

    /// True if several pages may be in flight. Else each request waits for the response to the one before it.
    fn is_ahead(&self) -> bool;

    /// Allows a page to be requested while others are in flight, and notes what that takes to prove in the end.
    fn allow_ahead(&mut self, page: u64) -> bool {
        let list = self.list_mut();
        // While all records are equal, nothing shows where a page without a count belongs, and a final look has no anchor.
        if list.snapshot.lacks_distinct_key() || !list.has_page(page) {
            return false;
        }
        // A record may be added in the middle of the list between responses that arrive in another order.
        if list.snapshot.length.exact().is_some() {
            list.proof = Proof::FinalLook;
        }
        true
    }

    /// The page that this phase requests.
    fn request(&self) -> PageRequest;

    /// Greatest height of the part that is being read, below a result window.
    fn height_bound(&self) -> Option<i64> {
        None
    }

    /// Takes the response to the oldest request in flight.
    fn on_response(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<Accepted, Error>;

    /// Ends the list here, since the caller wants no more records. False if it was at its end already.
    fn stop(&mut self) -> bool {
        self.list_mut().end_with(End::List);
        true
    }

    /// Request for a record of the first page, by which the final look finds these anchors.
    fn final_look(&self, group: usize) -> PageRequest {
        self.list().one_record(self.list().anchor(group), Purpose::FinalLook)
    }

    /// Begins the snapshot with the first page of a list that does not change or has a count, or that has no other page.
    fn begin(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<Accepted, Error> {
        let list = self.list_mut();
        list.snapshot = Snapshot::new(request, response);
        let view = list.view(request, response);
        let rows = 0..view.rows.len();
        let is_lookup = list.spec.kind == ListKind::Lookup;
        let length = if is_lookup || view.is_whole() { Some(view.len()) } else { view.total };
        list.snapshot.length = length.map_or(Length::Unknown, Length::Exact);
        if !is_lookup {
            list.set_anchors(&view, rows.clone());
        }
        let accepted = self.accept(&view, rows);
        self.list_mut().set_next_page();
        self.finish(&view, accepted)
    }

    /// Reads rows as the next records of the snapshot, and returns them.
    fn accept(&mut self, view: &View<'_>, rows: Range<usize>) -> Accepted {
        let before = self.checkpoint();
        let list = self.list_mut();
        list.read(view, rows.clone());
        list.returned += rows.len() as u64;
        list.drift.misses = 0;
        Accepted { rows, fresh: None, before }
    }

    /// Ends the list if its last record was read. Rows of the response are returned before an error.
    fn finish(&mut self, view: &View<'_>, accepted: Accepted) -> Result<Accepted, Error> {
        match self.end_after(view) {
            Err(error) if accepted.rows.is_empty() => return Err(error),
            Err(error) => self.list_mut().fail(error),
            Ok(()) => {}
        }
        Ok(accepted)
    }

    fn end_after(&mut self, view: &View<'_>) -> Result<(), Error> {
        if let Some(end) = self.list().end_after(view)? {
            self.list_mut().end_with(end);
        }
        Ok(())
    }

    /// The position after the records returned so far.
    fn checkpoint(&self) -> ListCheckpoint {
        self.list().checkpoint()
    }

    /// About how many records are still to come.
    fn to_come(&self) -> u64 {
        let ListState { snapshot, delivered, .. } = self.list();
        snapshot.length.exact().unwrap_or(snapshot.max_length()).saturating_sub(delivered.end())
    }
}
