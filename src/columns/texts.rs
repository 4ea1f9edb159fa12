//! Builder of strings that lie one after the other: those of a result, which are copied from the pages.

use arrow_array::{Array, StringArray, StringViewArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};

use super::size_of_texts;

/// One column of strings that is being built.
pub struct TextBuilder {
    text: Vec<u8>,
    /// Offsets of the strings, and the end of the last one.
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl TextBuilder {
    /// For `rows` rows of `size` bytes in all.
    pub fn with_capacity(rows: usize, size: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { text: Vec::with_capacity(size), offsets, nulls: NullBufferBuilder::new(rows) }
    }

    pub fn append(&mut self, text: &str) {
        self.push(text);
        self.nulls.append_non_null();
    }

    pub fn append_null(&mut self) {
        self.push("");
        self.nulls.append_null();
    }

    /// Appends copies of the strings of another column.
    pub fn append_all(&mut self, texts: &StringArray) {
        let ends = &texts.value_offsets()[1..];
        let first = texts.value_offsets()[0];
        let before = self.offsets[self.offsets.len() - 1];
        self.offsets.extend(ends.iter().map(|end| end - first + before));
        self.text.extend_from_slice(&texts.value_data()[first as usize..][..size_of_texts(texts)]);
        self.append_nulls(texts);
    }

    /// Appends copies of the strings of a page. Those of its nulls are empty.
    pub fn append_views(&mut self, texts: &StringViewArray) {
        self.offsets.reserve(texts.len());
        (0..texts.len()).for_each(|row| self.push(texts.value(row)));
        self.append_nulls(texts);
    }

    #[inline]
    fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
        let end = i32::try_from(self.text.len());
        self.offsets.push(end.expect("columns are finished long before their strings exceed 32-bit offsets"));
    }

    fn append_nulls(&mut self, of: &dyn Array) {
        match of.nulls() {
            Some(nulls) => self.nulls.append_buffer(nulls),
            None => self.nulls.append_n_non_nulls(of.len()),
        }
    }

    /// Returns the column and leaves the builder empty.
    pub fn finish(&mut self) -> StringArray {
        let Self { text, offsets, mut nulls } = std::mem::replace(self, Self::with_capacity(0, 0));
        // SAFETY: the offsets are those of whole strings, in order, of which the first begins at 0.
        unsafe {
            let offsets = OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets));
            StringArray::new_unchecked(offsets, text.into(), nulls.finish())
        }
    }
}
