//! `SmallPages`: pages with fewer records than were requested, as the API says or as others follow. The number of pages may
//! be that of the requested size, and so too low.

use crate::query::snapshot::{PageRequest, Response};

/// A list that the reader has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedList {
    pub is_one_block: bool,
    /// True if one response had all its records.
    pub is_one_page: bool,
    pub records: u64,
    pub page_size: u64,
    /// Records of a full page.
    pub page_rows: u64,
}

#[derive(Clone, Debug, Default)]
pub struct SmallPages {
    is_counted: bool,
    has_pages: bool,
    has_requested_length: bool,
    has_exact_length: bool,
    has_requested_end: bool,
}

impl SmallPages {
    /// Takes a response of which rows are returned.
    pub fn on_response(&mut self, response: &Response<'_>) {
        self.is_counted |= response.total.is_some();
        self.has_pages |= response.total_pages.is_some();
    }

    /// Request that shows whether records follow, where that is still to be shown.
    pub fn request(&self, read: &EndedList) -> Option<PageRequest> {
        if self.is_counted || !self.has_pages || read.page_rows >= read.page_size || read.records == 0 {
            return None;
        }
        if read.is_one_block && !read.is_one_page && !self.has_requested_length {
            // With pages of one record, their number is that of the records. A list that grows was read by it.
            return Some(PageRequest::of_audit(1, 1));
        }
        let is_doubtful = (read.is_one_block || read.is_one_page) && !self.has_exact_length && !self.has_requested_end;
        let is_open = is_doubtful && read.records.is_multiple_of(read.page_rows);
        is_open.then(|| PageRequest::of_audit(read.records / read.page_rows + 1, read.page_size))
    }

    /// Takes the response to that request. False if the list has another number of records.
    pub fn on_look(
        &mut self,
        request: &PageRequest,
        response: &Response<'_>,
        returned: u64,
        has_unknown_record: bool,
    ) -> bool {
        if request.limit > 1 {
            self.has_requested_end = true;
            return !has_unknown_record;
        }
        self.has_requested_length = true;
        if response.rows.len() != 1 {
            return true;
        }
        self.has_exact_length = response.total_pages.is_some();
        response.total_pages.is_none_or(|length| length == returned)
    }
}
