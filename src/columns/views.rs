//! Builder of string views. The views of a page point into the body of its response, so that a page is copied once, into
//! a result; those of a result for a library with views point into a buffer of the column.

use std::sync::Arc;

use arrow_array::builder::make_view;
use arrow_array::{Array, StringArray, StringViewArray};
use arrow_buffer::{Buffer, NullBufferBuilder};

use super::texts::TextBuilder;

/// Longest string that is stored within its view.
const MAX_INLINE: usize = 12;

/// One column of strings that is being built.
pub struct StringViewBuilder {
    views: Vec<u128>,
    /// Validity of the rows up to the last null.
    nulls: NullBufferBuilder,
    /// Strings that are not in the body as they should be: those that had escapes, or were replaced; all strings where
    /// there is no body.
    overflow: Vec<u8>,
}

impl StringViewBuilder {
    pub fn with_capacity(rows: usize, overflow: usize) -> Self {
        Self {
            views: Vec::with_capacity(rows),
            nulls: NullBufferBuilder::new(rows),
            overflow: Vec::with_capacity(overflow),
        }
    }

    /// Appends a string, which may be a part of the body.
    #[inline]
    pub fn append(&mut self, text: &str, body: &Buffer) {
        let view = view_within(text, body).unwrap_or_else(|| self.view_of_other(text, body));
        self.views.push(view);
    }

    /// The view of a string that is not in the body, or at its very end.
    #[cold]
    fn view_of_other(&mut self, text: &str, body: &Buffer) -> u128 {
        if text.len() <= MAX_INLINE {
            return make_view(text.as_bytes(), 0, 0);
        }
        make_view(text.as_bytes(), u32::from(!body.is_empty()), self.push_overflow(text))
    }

    pub fn append_null(&mut self) {
        self.fill_nulls();
        self.views.push(0);
        self.nulls.append_null();
    }

    /// Marks the rows since the last null as valid.
    fn fill_nulls(&mut self) {
        self.nulls.append_n_non_nulls(self.views.len() - self.nulls.len());
    }

    /// Appends copies of the strings of another column; there is no body then.
    pub fn append_all(&mut self, texts: &StringViewArray) {
        self.fill_nulls();
        self.views.reserve(texts.len());
        for (row, view) in texts.views().iter().enumerate() {
            // A view begins with the length of its string; its upper half is the position.
            let is_inline = (*view as u32) as usize <= MAX_INLINE;
            let view = if is_inline {
                *view
            } else {
                u128::from(*view as u64) | u128::from(self.push_overflow(texts.value(row))) << 96
            };
            self.views.push(view);
        }
        if let Some(nulls) = texts.nulls() {
            self.nulls.append_buffer(nulls);
        }
    }

    fn push_overflow(&mut self, text: &str) -> u32 {
        let offset = self.overflow.len();
        self.overflow.extend_from_slice(text.as_bytes());
        u32::try_from(offset).expect("columns are finished long before their strings exceed 32-bit offsets")
    }

    /// Returns the column. `body` is shared by all columns of a page, and has no buffer where there is no body.
    pub fn finish(&mut self, body: &Arc<[Buffer]>) -> StringViewArray {
        self.fill_nulls();
        let views = std::mem::take(&mut self.views).into();
        let overflow = std::mem::take(&mut self.overflow);
        let buffers = if overflow.is_empty() {
            body.clone()
        } else {
            body.iter().cloned().chain([Buffer::from(overflow)]).collect()
        };
        // SAFETY: each view was made from a string, which is UTF-8, and points to its position in these buffers.
        unsafe { StringViewArray::new_unchecked(views, buffers, self.nulls.finish()) }
    }
}

/// The view of a string in the body: its length and itself if it is short; or its length, its first four bytes, the number
/// of the body, and the offset there. `None` if the string is not in the body, or near its end.
#[inline]
fn view_within(text: &str, body: &[u8]) -> Option<u128> {
    let offset = text.as_ptr().addr().wrapping_sub(body.as_ptr().addr());
    let after = body.get(offset..)?;
    let first = u128::from_le_bytes(*after.first_chunk()?);
    let length = text.len();
    if length <= MAX_INLINE {
        return Some(length as u128 | (first & ((1 << (8 * length)) - 1)) << 32);
    }
    if length > after.len() {
        return None;
    }
    let offset = u32::try_from(offset).ok()?;
    Some(length as u128 | u128::from(first as u32) << 32 | u128::from(offset) << 96)
}

/// Views of the strings of an array. Long strings are not copied.
pub fn of(texts: &StringArray) -> StringViewArray {
    if texts.value_offsets().windows(2).any(|ends| (ends[1] - ends[0]) as usize > MAX_INLINE) {
        texts.into()
    } else {
        texts.iter().collect()
    }
}

/// The strings of an array without its buffers.
pub fn copied(texts: &StringViewArray) -> StringArray {
    let size = texts.lengths().map(|length| length as usize).sum();
    let mut copy = TextBuilder::with_capacity(texts.len(), size);
    copy.append_views(texts);
    copy.finish()
}

#[cfg(test)]
mod tests {
    use crate::columns::{Columns, ColumnsBuilder, Projection, StringLayout};
    use crate::interface::record;
    use bytes::Bytes;

    const LONG: &str = "longer than what stands in a view";
    const BLANKS: usize = 1 << 20;

    /// The hashes and miners of three blocks: in the body, outside of it, short, empty, none.
    fn page() -> Columns {
        let body = Bytes::from(format!("{LONG} and short{}", " ".repeat(BLANKS)));
        let within = std::str::from_utf8(&body).unwrap();
        let block = record("Block").unwrap();
        let (hash, miner) = (block.position("hash").unwrap(), block.position("miner").unwrap());
        let mut page = ColumnsBuilder::of_page(block, 3, &body, Projection::ALL);
        for (text, other) in
            [(&within[..LONG.len()], Some(&within[4..LONG.len() + 10])), ("", Some("short")), (LONG, None)]
        {
            page.append_str(hash, text).unwrap();
            other.map_or(Ok(()), |other| page.append_str(miner, other)).unwrap();
            page.finish_row();
        }
        page.finish()
    }

    #[test]
    fn strings_are_equal_in_a_body_and_in_either_layout() {
        let page = page();
        let texts = |name| {
            let column = page.record().position(name).unwrap();
            (0..3).map(|row| page.text(column, row)).collect::<Vec<_>>()
        };
        assert_eq!(texts("hash"), [Some(LONG), Some(""), Some(LONG)]);
        assert_eq!(texts("miner"), [Some(&format!("{LONG} and short")[4..]), Some("short"), None]);
        for layout in [StringLayout::Utf8, StringLayout::Utf8View] {
            let mut result = ColumnsBuilder::with_capacity_from(&page, 9, layout);
            for rows in [page.clone(), page.slice(1, 2), page.slice(0, 1)] {
                result.append(&rows);
            }
            let result = result.finish();
            assert_eq!(result.slice(0, 3), page);
            assert_eq!(result.slice(3, 2), page.slice(1, 2));
            assert_eq!(result.slice(5, 1), page.slice(0, 1));
            let mut again = ColumnsBuilder::with_capacity_from(&result, 6, StringLayout::Utf8View);
            again.append(&result);
            assert_eq!(again.finish(), result);
        }
    }

    #[test]
    fn a_page_counts_its_body_once() {
        let memory = page().get_array_memory_size();
        assert!((BLANKS..BLANKS * 2).contains(&memory), "{memory}");
    }
}
