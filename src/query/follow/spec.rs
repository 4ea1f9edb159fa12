//! Description of a followed list, and the requests and events of a follower.

use std::time::Duration;

use super::discarded::Lacking;
use super::state::{Changes, ExportOverlap, FollowState};
use crate::client::Error;
use crate::message::{Hint, Message};

/// The start of following.
#[derive(Clone, Debug)]
pub enum Start {
    /// After the heights that are settled at the first request.
    Now,
    /// At this height.
    Height(i64),
    /// After what an earlier follower, or an export, has.
    After(FollowState),
}

/// Time between rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Poll {
    /// By the observed rate of new heights.
    Auto,
    Every(Duration),
    /// Ends once all that is settled was delivered.
    Once,
}

/// Source of the height of the chain's newest block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadSource {
    /// The list itself: it has records of every block.
    List,
    /// Another list: this one may have no records of a block.
    Chain,
}

/// Ways to read a range of heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// The list has no filter by height.
    None,
    /// As one list, newest record first.
    List,
    /// Height by height, the lowest first.
    ByHeight,
    /// As one list with a count, from whose end pages are located: as many pages as may be held, the lowest heights first.
    ByCount,
}

/// Proof that the pages of a reading down are of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundProof {
    /// The API counts the list, so that its reader proves it.
    Count,
    /// The first records of the reading are still there after it: the list has only grown.
    Recheck,
}

#[derive(Clone, Debug)]
pub struct FollowSpec {
    pub endpoint: &'static str,
    /// Lowest height that is wanted.
    pub low: i64,
    pub changes: Changes,
    /// Distance from the head within which heights may change.
    pub settle: i64,
    pub poll: Poll,
    pub head: HeadSource,
    pub ranges: Ranges,
    pub proof: RoundProof,
    /// Height up to which heights are delivered, all of which were settled before.
    pub until: Option<i64>,
    pub forgets: Forgets,
    pub page_size: u64,
    /// Most records that one round holds.
    pub max_rows: u64,
    /// Delivered heights that are remembered below those within the settle distance.
    pub remembered: usize,
    /// True of one of several lists that are followed together.
    pub is_of_set: bool,
}

/// Fate of the oldest records of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgets {
    Never,
    /// Records of more than a year ago leave the list.
    LastYear {
        /// Number of newest heights whose records are younger.
        heights: i64,
    },
}

/// Next need of a follower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request {
    /// Wait for this long.
    Wait(Duration),
    /// The height of the chain's newest block.
    Head,
    /// The height of the chain's first block.
    Oldest,
    /// The newest page of the list, of a new read.
    Newest,
    /// The next page of that read, which is expected to take `pages` more.
    Older { pages: u64 },
    /// The end of that read: proof that its pages are of one instant.
    Verify,
    /// The newest page of the list, of a new read, or the next page of that read.
    Recheck { page: u32 },
    /// All records of these heights, both ends included; of fewer heights if there are more records than that.
    Range { low: i64, high: i64, max_rows: u64 },
    /// None: following has ended.
    Finished,
}

/// The end of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// More pages follow; that many, if the API reports it.
    Page(Option<u64>),
    /// The list ends.
    List,
    /// The list is longer, and no more of it can be paged through.
    Window,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub kind: EventKind,
    /// The state after it.
    pub state: FollowState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The records of the round of heights above `above`, up to `up_to`, without those of the overlap.
    Deliver { above: i64, up_to: i64, overlap: Option<ExportOverlap> },
    /// All records above this height are void.
    Undo { after_height: i64 },
    /// No records; the position moved.
    Moved,
}

impl FollowSpec {
    /// The error of a delivered height that changed.
    pub(super) fn changed(&self, height: i64) -> Error {
        let problem = match self.changes {
            Changes::Held => "changed after it was delivered, by a reorganization or a late record",
            Changes::Undone => "changed, and the heights below it are not remembered",
        };
        let problem = Message::new(format!("height {height} {problem}; ")).append(self.way_out());
        Error::Reorganization { endpoint: self.endpoint, height, problem }
    }

    /// Advice on a list that cannot be followed from its position.
    fn way_out(&self) -> Message {
        if self.is_of_set {
            return self.way_out_of_set();
        }
        match self.changes {
            Changes::Held => Message::new("drop the records from that height on and continue with ")
                .parameter("undo")
                .text(", or begin again with a larger ")
                .parameter("settle")
                .text(format!(" than {}", self.settle)),
            Changes::Undone => Message::new("drop all records that were delivered, and begin again with a larger ")
                .parameter("settle")
                .text(format!(" than {}", self.settle)),
        }
    }

    /// Advice on one list of a set that cannot be followed from its position.
    fn way_out_of_set(&self) -> Message {
        match self.changes {
            Changes::Held => Message::new(
                "to have the list again, export to another directory, or follow from the beginning, or with ",
            )
            .parameter("undo"),
            Changes::Undone => {
                Message::new("to have the list again, pass reset=True to sync, or follow from the beginning")
            }
        }
    }

    /// The error of a list without records, which had some up to `highest`.
    pub(super) fn emptied(&self, highest: i64) -> Error {
        let problem = emptied_since(highest);
        let problem =
            if self.is_of_set { Message::new(format!("{problem}; ")).append(self.way_out()) } else { problem.into() };
        Error::Reorganization { endpoint: self.endpoint, height: highest, problem }
    }

    /// The error of such a list, if the next response may have records.
    pub(super) fn seemingly_emptied(&self, highest: i64) -> Error {
        Error::Drift { endpoint: self.endpoint, problem: emptied_since(highest).into() }
    }

    /// The error of records that were delivered, and are missing below blocks that are as they were.
    pub(super) fn contradicted(&self, first: i64, last: i64) -> Error {
        let problem = Message::new(format!(
            "heights {first} to {last} lack records that were delivered, or have other blocks, although the blocks above them \
             are the same; a part of the service may lack them, or the service removed them: if this error stays, follow the \
             list from its beginning, export to another directory, or pass reset=True to sync"
        ));
        Error::Drift { endpoint: self.endpoint, problem: problem.hints([Hint::RetryLater]) }
    }

    /// The error of a round that lacks records which a response showed.
    pub(super) fn lacking(&self, lacking: Lacking) -> Error {
        let problem = match lacking {
            Lacking::Record(height) => format!(
                "height {height} lacks a record that an earlier response showed, and no reorganization explains it; a part of \
                 the service may lack the record, or the service removed it"
            ),
            Lacking::Count(height) => format!(
                "the list has fewer records up to height {height} than an earlier response counted, although the block of this \
                 height is the same; a part of the service may lack some, or the service removed them"
            ),
        };
        let problem = Message::new(problem).hints([Hint::RetryLater]);
        Error::Drift { endpoint: self.endpoint, problem }
    }

    pub(super) fn drift(&self) -> Error {
        let problem = Message::new("the newest records were replaced while the list was read");
        let problem = problem.hints([Hint::RetryLater]);
        Error::Drift { endpoint: self.endpoint, problem }
    }

    /// The error of heights that may still change, and so cannot be read by height, where the result window ends above
    /// `first`: it has the records from `complete_from` on.
    pub(super) fn unsettled_gap(&self, first: i64, complete_from: i64) -> Error {
        let problem = Message::new(format!(
            "heights from {first} on may still change and have to be read together, and the API's result window begins \
             with height {complete_from}; pass a smaller "
        ))
        .parameter("settle")
        .text(format!(" than {}", self.settle));
        Error::Gap { endpoint: self.endpoint, first, last: complete_from - 1, problem }
    }

    pub(super) fn gap(&self, first: i64, last: i64) -> Error {
        let problem = format!(
            "the API no longer returns the records of heights {first} to {last}; narrow the query, or export the list: \
             follow(start=export) and to_parquet(since=export) continue after it"
        );
        Error::Gap { endpoint: self.endpoint, first, last, problem: problem.into() }
    }
}

fn emptied_since(highest: i64) -> String {
    format!(
        "the list is empty, and had records up to height {highest} when it was read last; check the arguments, base_url and \
         the deployment"
    )
}
