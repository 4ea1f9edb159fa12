//! Advice on a query: arguments that look wrong, and those that would avoid a limitation.

use super::args::Arg;
use super::params;
use super::query::{BLOCK_HASH, Query};
use crate::interface::{Param, ParamKind, ParamRole, RangeEnd};
use crate::message::{Hint, Message, Narrowing};

/// True if a parameter selects blocks, by their heights, hashes or times.
fn selects_heights(param: &Param) -> bool {
    let is_block = param.kind == ParamKind::Height || param.wire() == Some(BLOCK_HASH);
    is_block || matches!(param.role, ParamRole::TimeOfHeight(..))
}

impl Query {
    /// Remarks on addresses and hashes of another form than those of the two chains.
    pub(in crate::query) fn implausible_args(&self) -> Vec<Message> {
        let remarks = params::display(self.endpoint(), self.args()).into_iter().filter_map(|(name, text)| {
            let digits = if name.ends_with("address") {
                40
            } else if name.ends_with("hash") || name == "tx_id" {
                64
            } else {
                return None;
            };
            let is_list = matches!(self.args().iter().find(|(given, _)| given == name), Some((_, Arg::List(_))));
            let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            let is_plausible = hex.is_some_and(|hex| hex.len() == digits && hex.bytes().all(|b| b.is_ascii_hexdigit()));
            let shown: String = text.chars().take(80).collect();
            let problem = format!(" ({shown:?}) is not 0x and {digits} hexadecimal digits");
            (!is_list && !is_plausible).then(|| Message::new("").parameter(name).text(problem))
        });
        remarks.collect()
    }

    /// Changes of parameters that make the list shorter: those not given, and the given ends of a range. Heights do not
    /// help with the list of one block, nor with one that continues by height below the result window.
    fn narrowing(&self) -> Option<Hint> {
        // The ranges of a divided list are as narrow as they can be.
        if self.is_divided() {
            return None;
        }
        let by_height = self.may_grow() && self.height_bound().is_none();
        let mut passed = Vec::new();
        let mut moved = Vec::new();
        for param in self.endpoint().params {
            if !param.is_filter() || !by_height && selects_heights(param) {
                continue;
            }
            let is_given = self.args().iter().any(|(given, _)| given == param.name);
            let is_time = param.kind == ParamKind::Time;
            let name = param.name.to_owned();
            if !is_given {
                // The upper end needs the lower one, which may be passed alone.
                let needs_lower = matches!(param.role, ParamRole::ExpandedRange(..) | ParamRole::TimeOfHeight(..));
                if !(needs_lower && param.range_end() == Some(RangeEnd::Upper)) {
                    passed.push(Narrowing::Pass(name));
                }
                continue;
            }
            moved.extend(param.range_end().map(|end| match end {
                RangeEnd::Lower if is_time => Narrowing::Later(name),
                RangeEnd::Lower => Narrowing::Higher(name),
                RangeEnd::Upper if is_time => Narrowing::Earlier(name),
                RangeEnd::Upper => Narrowing::Lower(name),
            }));
        }
        passed.append(&mut moved);
        (!passed.is_empty()).then_some(Hint::NarrowQuery(passed))
    }

    /// A limitation of the query, with the parameters that avoid it.
    pub(in crate::query) fn with_narrowing(&self, problem: String) -> Message {
        match self.narrowing() {
            // All of the list can be read by ranges, but not the newest records beyond the result window.
            Some(_) if self.endpoint().divider().is_some() && self.max_items().is_some() => {
                Message::new(problem).hint(Hint::Omit("max_items".into()))
            }
            Some(hint) => Message::new(problem).hint(hint),
            None => Message::new(problem + "; no parameter of this call narrows it"),
        }
    }

    /// Advice for a list that could not be read.
    pub(in crate::query) fn retry_hints(&self) -> Vec<Hint> {
        let max_page_size = self.max_page_size().unwrap_or(0);
        let larger = (self.page_size() < max_page_size).then(|| Hint::raise(&["page_size"]));
        larger.into_iter().chain(self.narrowing()).chain([Hint::RetryLater]).collect()
    }
}
