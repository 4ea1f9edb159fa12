//! `OneBlock`: the list of one block, which does not change. Its first page, or the records before a cursor, are compared
//! with another response once the others were read.

use crate::query::snapshot::{PageRequest, Response};

const CHANGED: &str = "the list of one block changed while it was read";

/// Records that are known with their offsets.
#[derive(Debug)]
struct Witness {
    offset: u64,
    keys: Vec<u64>,
    /// True if these are all records of a page.
    is_page: bool,
}

impl Witness {
    /// Offset of the last record.
    fn last(&self) -> u64 {
        (self.offset + self.keys.len() as u64).saturating_sub(1)
    }
}

#[derive(Debug, Default)]
pub struct OneBlock {
    /// Block hash of the records.
    block: Option<u64>,
    witness: Option<Witness>,
    /// Records of the first page, by offset and key, if another run read it.
    first_page: Vec<(u64, u64)>,
    /// Number of pages that the list has.
    pages: Option<u64>,
}

impl OneBlock {
    /// A list that continues after these records, the last of them before `offset`.
    pub fn continued(offset: u64, latest: &[u64]) -> Self {
        let witness = (!latest.is_empty()).then(|| Witness {
            offset: offset.saturating_sub(latest.len() as u64),
            keys: latest.to_vec(),
            is_page: false,
        });
        Self { witness, ..Self::default() }
    }

    /// Takes records of the first page that an earlier run has read.
    pub fn set_first_page(&mut self, first_page: Vec<(u64, u64)>) {
        self.first_page = first_page;
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
        if self.witness.is_none() && is_first {
            // Rows that contradict the arguments have their places in the list, too.
            self.witness = Some(Witness { offset: 0, keys: response.rows.keys(), is_page: true });
        }
        Ok(())
    }

    /// True if the pages are still to be compared with the first one, or with the records before a cursor.
    pub fn is_open(&self) -> bool {
        self.witness.is_some() || !self.first_page.is_empty()
    }

    /// The page of the records that are compared.
    pub fn request(&self, page_size: u64, page_rows: u64) -> PageRequest {
        let page = self.witness.as_ref().map_or(1, |witness| witness.last() / page_rows + 1);
        PageRequest::of_audit(page, page_size)
    }

    /// Takes the response to that request. Fails if the records are not those that are known.
    pub fn on_look(&mut self, request: &PageRequest, response: &Response<'_>) -> Result<(), String> {
        let is_same = match self.witness.take() {
            Some(witness) => self.is_confirmed(&witness, request, response),
            None => has_first_page(&std::mem::take(&mut self.first_page), response),
        };
        if is_same { Ok(()) } else { Err(CHANGED.into()) }
    }

    fn is_confirmed(&self, witness: &Witness, request: &PageRequest, response: &Response<'_>) -> bool {
        // The request is for the page of the last of these records, which has as many rows before it as are known.
        let shown = response.rows.keys();
        let known = &witness.keys;
        let is_there = match shown.iter().rposition(|key| known.last() == Some(key)) {
            Some(last) => shown[..=last].iter().rev().zip(known.iter().rev()).all(|(shown, known)| shown == known),
            None => false,
        };
        let has_length = if witness.is_page { shown.len() == known.len() } else { shown.len() >= known.len() };
        let is_first = witness.offset > 0 || request.page == 1 && has_length;
        let has_pages = self.pages.is_none() || response.total_pages.is_none() || self.pages == response.total_pages;
        has_pages && is_first && is_there
    }
}

fn has_first_page(first_page: &[(u64, u64)], response: &Response<'_>) -> bool {
    let rows = response.rows;
    // A later anchor may lie on another page.
    let mut shown = first_page.iter().filter(|(offset, _)| (*offset as usize) < rows.len());
    rows.len() > 0 && shown.all(|(offset, key)| rows.key(*offset as usize) == *key)
}
