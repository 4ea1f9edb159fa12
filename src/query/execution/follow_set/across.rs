//! Comparisons of the lists of a followed set with each other, as those of a set that is read to its end.

use std::collections::BTreeMap;

use crate::columns::Columns;
use crate::message::Message;
use crate::query::audit::{Blocks, InCommon, Reach, Source};
use crate::query::execution::set::{add_records, in_common_of, lacking_reason};
use crate::query::execution::shown_lists::ShownLists;
use crate::query::follow::Changes;
use crate::query::request::{Members, Query};
use crate::query::results::Records;
use crate::query::snapshot::Rows as _;

pub(super) struct FollowedLists {
    shown_lists: Option<ShownLists>,
    in_common: Option<InCommon>,
    blocks: Blocks,
    /// Heights below the highest one of a list that may still be taken back.
    distance: i64,
    /// Blocks of each list that may still be taken back, by their heights.
    unsettled: BTreeMap<usize, BTreeMap<i64, u64>>,
    has_news: bool,
}

impl FollowedLists {
    pub fn new(query: &Query, members: &Members, changes: Changes, settle: u64) -> Self {
        let shown_lists = ShownLists::of(query, members);
        let distance = if changes == Changes::Undone { settle as i64 } else { 0 };
        Self {
            in_common: in_common_of(query, members, shown_lists.as_ref())
                .map(|_| InCommon::of_lists_that_change(distance)),
            shown_lists,
            blocks: Blocks::default(),
            distance,
            unsettled: BTreeMap::new(),
            has_news: false,
        }
    }

    /// Takes records that a list delivered.
    pub fn deliver(&mut self, list: usize, records: &Records) {
        self.has_news = true;
        for columns in records.chunks() {
            self.add_blocks(list, columns);
            self.add_records(list, columns);
        }
    }

    fn add_blocks(&mut self, list: usize, columns: &Columns) {
        let unsettled = self.unsettled.entry(list).or_default();
        unsettled.extend((0..columns.rows()).filter_map(|row| columns.height(row).zip(columns.block(row))));
        let Some((highest, _)) = unsettled.last_key_value() else { return };
        let above = unsettled.split_off(&(highest.saturating_sub(self.distance) + 1));
        for (height, block) in std::mem::replace(unsettled, above) {
            self.blocks.add_block(Source::List(list as u64), height, block);
        }
    }

    /// Compares the latest records: those before them are forgotten when there are too many.
    fn add_records(&mut self, list: usize, columns: &Columns) {
        let (Some(shown_lists), Some(in_common)) = (&self.shown_lists, &mut self.in_common) else { return };
        if !in_common.has_room(columns.rows()) {
            *in_common = InCommon::of_lists_that_change(self.distance);
        }
        // A list that is followed may get a late record of a block that it has shown, at any age.
        if !add_records(in_common, list, columns, &shown_lists.of_rows(list as u32, columns), i64::MIN) {
            self.in_common = None;
        }
    }

    /// Takes back the records of a list above a height.
    pub fn undo(&mut self, list: usize, after_height: i64) {
        self.blocks.forget(Source::List(list as u64));
        if let Some(unsettled) = self.unsettled.get_mut(&list) {
            unsettled.split_off(&(after_height + 1));
        }
        if let Some(in_common) = &mut self.in_common {
            in_common.forget(list as u32, after_height);
        }
    }

    /// True if there are records that were not compared.
    pub fn has_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Reasons why the records of lists are not of one chain.
    pub fn blocks_reasons(&self) -> Vec<Message> {
        self.blocks.reasons()
    }

    /// Lists that lack a record of another one, with the reason.
    pub fn lacking(&self, members: &Members, is_followed: impl Fn(usize) -> bool) -> Option<(Vec<usize>, Message)> {
        lacking_reason(self.in_common.as_ref()?, members, |list| match is_followed(list) {
            true => Reach::LowestRecord,
            false => Reach::Nowhere,
        })
    }
}
