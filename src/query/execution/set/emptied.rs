//! Lists of a set with an empty page where the API counts records.

use super::Set;
use crate::client::Error;
use crate::query::results::SharedReport;

impl Set {
    /// Judges the lists with an empty page after other lists have returned records: a throttle would have emptied those as
    /// well. Such a list is begun again, or ends with its error.
    pub(super) fn judge_emptied(&mut self, report: &SharedReport) {
        for (index, mut run, error) in std::mem::take(&mut self.emptied) {
            let have_others_returned = self.open.get(&index).is_some_and(|list| list.asked_at < self.num_pages);
            if !have_others_returned {
                self.emptied.push((index, run, error));
            } else if self.begin_again(index, &mut *run) {
                self.account(report);
            } else {
                self.end(index, Some(error), report);
            }
        }
    }

    /// Returns the error of the lists with an empty page, where no other list is open: the service may throttle. The next
    /// call asks them again.
    pub(super) fn ask_emptied_again(&mut self) -> Option<Error> {
        let error = self.emptied.first().map(|(_, _, error)| error.clone());
        self.waiting.extend(self.emptied.drain(..).map(|(index, run, _)| (index, run)));
        error
    }
}
