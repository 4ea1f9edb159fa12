//! `MembersReport`: the members of the records of a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::entries::Entries;
use crate::decode::Members;

/// Most names of unknown members.
const MAX_UNKNOWN: usize = 64;

/// Names of members as a report is stored. Older reports have none.
#[derive(Serialize, Deserialize)]
struct MemberNames {
    #[serde(default)]
    members_absent: Vec<String>,
    #[serde(default)]
    members_unknown: Vec<String>,
}

impl From<MembersReport> for MemberNames {
    fn from(members: MembersReport) -> Self {
        Self { members_absent: members.absent(), members_unknown: members.unknown.to_vec() }
    }
}

impl From<MemberNames> for MembersReport {
    fn from(names: MemberNames) -> Self {
        Self { declared: Some(names.members_absent.into()), unknown: names.members_unknown.into(), ..Self::default() }
    }
}

/// Members of the records of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "MemberNames", into = "MemberNames")]
pub struct MembersReport {
    /// First spelling of each declared member, once there are records.
    declared: Option<Arc<[String]>>,
    /// Bit i: some record has the member of column i.
    in_some: u64,
    /// Bit i: some record has another spelling of that member, which is not read.
    in_other_spelling: u64,
    pub unknown: Entries<String>,
}

impl MembersReport {
    /// Declared members that no record has.
    pub fn absent(&self) -> Vec<String> {
        let declared = self.declared.iter().flat_map(|names| names.iter().enumerate());
        declared.filter(|(column, _)| self.in_some & 1 << column == 0).map(|(_, name)| name.clone()).collect()
    }

    /// Name of a member that some records have, and others have in a spelling that is not read.
    pub fn ambiguous(&self) -> Option<&str> {
        let in_both = self.in_some & self.in_other_spelling;
        let mut names = self.declared.iter().flat_map(|names| names.iter().enumerate());
        names.find(|(column, _)| in_both & 1 << column != 0).map(|(_, name)| name.as_str())
    }

    /// Adds the members of a page with records.
    pub fn add_page(&mut self, declared: &Arc<[String]>, members: &Members) {
        self.add_names(declared, members.in_some, &members.unknown);
        for (column, name) in declared.iter().enumerate().filter(|(column, _)| members.in_all & 1 << column == 0) {
            if members.unknown.iter().any(|unknown| is_spelling_of(unknown, name)) {
                self.in_other_spelling |= 1 << column;
            }
        }
    }

    /// Adds the members of other records of the same type.
    pub fn add(&mut self, other: &Self) {
        self.in_other_spelling |= other.in_other_spelling;
        if let Some(declared) = &other.declared {
            self.add_names(declared, other.in_some, &other.unknown.to_vec());
        }
    }

    fn add_names(&mut self, declared: &Arc<[String]>, in_some: u64, unknown: &[String]) {
        self.declared.get_or_insert_with(|| declared.clone());
        self.in_some |= in_some;
        if unknown.is_empty() {
            return;
        }
        let known = self.unknown.to_vec();
        let added = unknown.iter().filter(|name| !known.contains(name)).take(MAX_UNKNOWN.saturating_sub(known.len()));
        added.for_each(|name| self.unknown.push(name.clone()));
    }
}

/// True if two names differ in the case of letters and in underscores at most.
fn is_spelling_of(name: &str, other: &str) -> bool {
    letters(name).eq(letters(other))
}

fn letters(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(|byte| *byte != b'_').map(|byte| byte.to_ascii_lowercase())
}
