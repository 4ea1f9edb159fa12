//! `Forks`: the records of one height at the end of a page and at the beginning of the next one. They are of one block, unless
//! the chain was reorganized between the two responses.

use crate::query::snapshot::Response;

#[derive(Debug, Default)]
pub struct Forks {
    /// Height and block of the latest returned record.
    latest: Option<(i64, u64)>,
    /// A height of which two pages have one block each.
    mixed: Option<i64>,
}

impl Forks {
    /// Takes the rows of a page that are returned.
    pub fn on_page(&mut self, response: &Response<'_>, rows: &[usize]) {
        let level = |row: &usize| response.rows.height(*row).zip(response.rows.block(*row));
        if let Some((height, block)) = self.latest
            && let Some((first, other)) = rows.first().and_then(level)
            && first == height
            && other != block
            && !has_two_blocks_of_a_height(response)
        {
            self.mixed.get_or_insert(height);
        }
        self.latest = rows.last().and_then(level);
    }

    pub fn mixed(&self) -> Option<i64> {
        self.mixed
    }
}

/// True if the service lists the records of both sides of a fork: a response is of one moment.
fn has_two_blocks_of_a_height(response: &Response<'_>) -> bool {
    let level = |row| (response.rows.height(row), response.rows.block(row));
    (1..response.rows.len()).any(|row| {
        let ((height, block), (before, other)) = (level(row), level(row - 1));
        height == before && block != other
    })
}
