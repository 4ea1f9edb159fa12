//! Texts as views: of a page, into its answer, so that a page is read, compared, and copied once into a result; of a
//! result for a library that keeps texts so, into a buffer of the column's own.

use std::sync::Arc;

use arrow_array::builder::make_view;
use arrow_array::{Array, StringArray, StringViewArray};
use arrow_buffer::{Buffer, NullBufferBuilder};

/// Texts of up to this many bytes stand in their view.
const MOST_INLINE: usize = 12;

/// One column of texts in the making.
pub struct Views {
    views: Vec<u128>,
    nulls: NullBufferBuilder,
    /// The texts that are not in the answer as they should be: those that had escapes, or are told in our own words; and
    /// all where there is no answer.
    beside: Vec<u8>,
}

impl Views {
    pub fn with_capacity(rows: usize, beside: usize) -> Self {
        Self {
            views: Vec::with_capacity(rows),
            nulls: NullBufferBuilder::new(rows),
            beside: Vec::with_capacity(beside),
        }
    }

    /// Appends a text, which may be one of the answer's.
    pub fn append(&mut self, text: &str, answer: &Buffer) {
        let view = if text.len() <= MOST_INLINE { make_view(text.as_bytes(), 0, 0) } else { self.long(text, answer) };
        self.views.push(view);
        self.nulls.append_non_null();
    }

    fn long(&mut self, text: &str, answer: &Buffer) -> u128 {
        let offset = text.as_ptr().addr().wrapping_sub(answer.as_ptr().addr());
        let is_within = offset.checked_add(text.len()).is_some_and(|end| end <= answer.len());
        if let Some(offset) = u32::try_from(offset).ok().filter(|_| is_within) {
            return make_view(text.as_bytes(), 0, offset);
        }
        let offset =
            u32::try_from(self.beside.len()).expect("columns are closed long before their text outgrows its views");
        self.beside.extend_from_slice(text.as_bytes());
        make_view(text.as_bytes(), u32::from(!answer.is_empty()), offset)
    }

    pub fn append_null(&mut self) {
        self.views.push(0);
        self.nulls.append_null();
    }

    /// Copies the texts of another column; there is no answer then.
    pub fn append_all(&mut self, texts: &StringViewArray) {
        self.views.reserve(texts.len());
        for (row, view) in texts.views().iter().enumerate() {
            // A view begins with the length of its text, and its upper half says where that is.
            let is_inline = (*view as u32) as usize <= MOST_INLINE;
            let view = if is_inline {
                *view
            } else {
                u128::from(*view as u64) | u128::from(self.moved(texts.value(row))) << 96
            };
            self.views.push(view);
        }
        match texts.nulls() {
            None => self.nulls.append_n_non_nulls(texts.len()),
            Some(nulls) => self.nulls.append_buffer(nulls),
        }
    }

    fn moved(&mut self, text: &str) -> u32 {
        let offset = self.beside.len();
        self.beside.extend_from_slice(text.as_bytes());
        u32::try_from(offset).expect("columns are closed long before their text outgrows its views")
    }

    /// The column; `answer` is shared by all columns of a page, and holds no buffer where there is no answer.
    pub fn finish(&mut self, answer: &Arc<[Buffer]>) -> StringViewArray {
        let views = std::mem::take(&mut self.views).into();
        let beside = std::mem::take(&mut self.beside);
        let buffers = if beside.is_empty() {
            answer.clone()
        } else {
            answer.iter().cloned().chain([Buffer::from(beside)]).collect()
        };
        // SAFETY: each view was made from a text, which is UTF-8, and points to where it stands in these buffers.
        unsafe { StringViewArray::new_unchecked(views, buffers, self.nulls.finish()) }
    }
}

/// The same texts as views. Long ones stay where they are.
pub fn of(texts: &StringArray) -> StringViewArray {
    if texts.value_offsets().windows(2).any(|ends| (ends[1] - ends[0]) as usize > MOST_INLINE) {
        texts.into()
    } else {
        texts.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::columns::{Columns, ColumnsBuilder, Layout};
    use crate::interface::record;
    use bytes::Bytes;

    const LONG: &str = "longer than what stands in a view";
    const BLANKS: usize = 1 << 20;

    /// The hashes and miners of three blocks: in the answer, beside it, short, empty, none.
    fn page() -> Columns {
        let body = Bytes::from(format!("{LONG} and short{}", " ".repeat(BLANKS)));
        let within = std::str::from_utf8(&body).unwrap();
        let block = record("Block").unwrap();
        let (hash, miner) = (block.position("hash").unwrap(), block.position("miner").unwrap());
        let mut page = ColumnsBuilder::of_page(block, 3, &body);
        for (text, other) in
            [(&within[..LONG.len()], Some(&within[4..LONG.len() + 10])), ("", Some("short")), (LONG, None)]
        {
            page.put_text(hash, text).unwrap();
            other.map_or(Ok(()), |other| page.put_text(miner, other)).unwrap();
            page.end_row();
        }
        page.finish()
    }

    #[test]
    fn texts_are_the_same_in_an_answer_and_in_either_layout() {
        let page = page();
        let texts = |name| {
            let column = page.record().position(name).unwrap();
            (0..3).map(|row| page.text(column, row)).collect::<Vec<_>>()
        };
        assert_eq!(texts("hash"), [Some(LONG), Some(""), Some(LONG)]);
        assert_eq!(texts("miner"), [Some(&format!("{LONG} and short")[4..]), Some("short"), None]);
        for layout in [Layout::Offsets, Layout::Views] {
            let mut result = ColumnsBuilder::beginning_with(&page, 9, layout);
            for rows in [page.clone(), page.slice(1, 2), page.slice(0, 1)] {
                result.append(&rows);
            }
            let result = result.finish();
            assert_eq!(result.slice(0, 3), page);
            assert_eq!(result.slice(3, 2), page.slice(1, 2));
            assert_eq!(result.slice(5, 1), page.slice(0, 1));
            let mut again = ColumnsBuilder::beginning_with(&result, 6, Layout::Views);
            again.append(&result);
            assert_eq!(again.finish(), result);
        }
    }

    #[test]
    fn a_page_counts_its_answer_once() {
        let memory = page().memory();
        assert!((BLANKS..BLANKS * 2).contains(&memory), "{memory}");
    }
}
