//! Texts as views: of a page, into its answer, so that a page is read, compared, and copied once into a result; of a
//! result for a library that keeps texts so, into a buffer of the column's own.

use std::sync::Arc;

use arrow_array::builder::make_view;
use arrow_array::{StringArray, StringViewArray};
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

    /// Copies the texts of another column.
    pub fn extend<'a>(&mut self, texts: impl IntoIterator<Item = Option<&'a str>>) {
        let nowhere = Buffer::default();
        for text in texts {
            match text {
                Some(text) => self.append(text, &nowhere),
                None => self.append_null(),
            }
        }
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
