//! `Faults`: which of the declared faults apply to a request, by its path and by count.

use std::time::Duration;

use super::fault::{Fault, FaultKind, Unreachable};

/// The faults with their counts.
#[derive(Debug, Default)]
pub struct Faults {
    faults: Vec<Counted>,
}

#[derive(Debug)]
struct Counted {
    fault: Fault,
    /// Requests of its path.
    selected: u64,
    /// Requests whose response it changed.
    applied: u64,
}

/// The faults that apply to one request.
#[derive(Debug, Default, PartialEq)]
pub struct ActiveFaults {
    pub delay: Duration,
    pub clock_ms: i64,
    /// The first fault that replaces the response.
    pub response: Option<FaultKind>,
    /// The first fault that disturbs the delivery of the response.
    pub delivery: Option<FaultKind>,
    pub unreachable: Option<Unreachable>,
    /// Kinds of the faults that have an effect, in the order they were given.
    pub kinds: Vec<&'static str>,
}

impl ActiveFaults {
    fn of<'f>(kinds: impl Iterator<Item = &'f FaultKind>) -> Self {
        let mut due = Self::default();
        for kind in kinds {
            due.add(kind);
        }
        due
    }

    /// With the user's response, which may be any kind of fault.
    #[must_use]
    pub fn with(mut self, given: Option<FaultKind>) -> Self {
        if let Some(kind) = given {
            self.add(&kind);
        }
        self
    }

    /// Adds a fault. False if it does not apply, since another one of its sort came first.
    fn add(&mut self, kind: &FaultKind) -> bool {
        match kind {
            FaultKind::Delay { seconds } => {
                self.delay += Duration::from_secs_f64(*seconds);
                true
            }
            FaultKind::ClockSkew { seconds } => {
                self.clock_ms += (seconds * 1_000.0) as i64;
                true
            }
            FaultKind::Unreachable(reason) => set_first(&mut self.unreachable, reason),
            FaultKind::Truncate { .. } | FaultKind::Reset | FaultKind::SlowBody { .. } => {
                set_first(&mut self.delivery, kind)
            }
            _ => set_first(&mut self.response, kind),
        }
    }

    /// True if that fault, the first of its sort, changes what the client gets.
    fn shows(&self, kind: &FaultKind) -> bool {
        let is_connected = self.unreachable.is_none();
        match kind {
            FaultKind::Delay { .. } | FaultKind::Unreachable(_) => true,
            // The body is generated while it is sent.
            FaultKind::Truncate { .. } | FaultKind::SlowBody { .. } => {
                is_connected && !matches!(self.response, Some(FaultKind::Oversized { .. }))
            }
            FaultKind::Reset => is_connected,
            _ => is_connected && self.delivery != Some(FaultKind::Reset),
        }
    }
}

fn set_first<T: Clone>(slot: &mut Option<T>, value: &T) -> bool {
    let is_first = slot.is_none();
    slot.get_or_insert_with(|| value.clone());
    is_first
}

impl Faults {
    pub fn new(faults: Vec<Fault>) -> Self {
        Self { faults: faults.into_iter().map(|fault| Counted { fault, selected: 0, applied: 0 }).collect() }
    }

    /// As they were given.
    pub fn declared(&self) -> Vec<Fault> {
        self.faults.iter().map(|counted| counted.fault.clone()).collect()
    }

    /// Those that have changed no response: they selected no request, or another fault came first.
    pub fn unused(&self) -> Vec<Fault> {
        self.faults.iter().filter(|counted| counted.applied == 0).map(|counted| counted.fault.clone()).collect()
    }

    /// Counts the request for every fault that selects its path, and returns those that apply.
    pub fn match_request(&mut self, path: &str) -> ActiveFaults {
        let mut selected: Vec<&mut Counted> =
            self.faults.iter_mut().filter_map(|counted| counted.select(path).then_some(counted)).collect();
        let mut due = ActiveFaults::of(selected.iter().map(|counted| &counted.fault.kind));
        let mut seen = ActiveFaults::default();
        for Counted { fault, applied, .. } in &mut selected {
            if seen.add(&fault.kind) && due.shows(&fault.kind) {
                *applied += 1;
                due.kinds.push(fault.kind.name());
            }
        }
        due
    }
}

impl Counted {
    /// Counts a request of that path; returns true if the fault selects it.
    fn select(&mut self, path: &str) -> bool {
        let Fault { every, times, path: part, .. } = &self.fault;
        if part.as_deref().is_some_and(|part| !path.contains(part)) {
            return false;
        }
        self.selected += 1;
        every.is_none_or(|every| self.selected.is_multiple_of(every))
            && times.is_none_or(|times| self.selected <= times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Fault {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn selectors_count_the_requests_of_their_path() {
        let mut faults = Faults::new(vec![
            fault(r#"{"kind":"empty","every":2,"path":"block"}"#),
            fault(r#"{"kind":"reset","times":1}"#),
            fault(r#"{"kind":"delay","seconds":2,"every":3,"times":4}"#),
        ]);
        let due: Vec<_> = ["/block", "/token", "/block", "/block", "/block", "/block"]
            .iter()
            .map(|path| faults.match_request(path))
            .map(|due| (due.response.is_some(), due.delivery.is_some(), due.delay.as_secs()))
            .collect();
        let unused = |faults: &Faults| faults.unused().len();
        assert_eq!((unused(&faults), unused(&Faults::new(faults.declared()))), (0, 3));
        let nothing = (false, false, 0);
        assert_eq!(due, [(false, true, 0), nothing, (true, false, 2), nothing, (true, false, 0), nothing]);
    }

    #[test]
    fn fault_behind_another_one_is_unused() {
        for (kinds, unused) in [
            (&[r#"{"kind":"empty"}"#, r#"{"kind":"html"}"#][..], &["html"][..]),
            (&[r#"{"kind":"empty"}"#, r#"{"kind":"reset"}"#], &["empty"]),
            (&[r#"{"kind":"clock_skew","seconds":5}"#, r#"{"kind":"reset"}"#], &["clock_skew"]),
            (&[r#"{"kind":"reset"}"#, r#"{"kind":"truncate"}"#, r#"{"kind":"delay","seconds":0}"#], &["truncate"]),
            (&[r#"{"kind":"oversized","size_mib":1}"#, r#"{"kind":"truncate"}"#], &["truncate"]),
            (&[r#"{"kind":"html"}"#, r#"{"kind":"truncate"}"#], &[]),
            (&[r#"{"kind":"refused"}"#, r#"{"kind":"tls"}"#, r#"{"kind":"reset"}"#], &["tls", "reset"]),
            (&[r#"{"kind":"empty","times":1}"#, r#"{"kind":"html","times":2}"#], &[]),
        ] {
            let mut faults = Faults::new(kinds.iter().map(|text| fault(text)).collect());
            let due = [faults.match_request("/"), faults.match_request("/")];
            let left: Vec<_> = faults.unused().iter().map(|fault| fault.kind.name()).collect();
            assert_eq!(left, unused, "{kinds:?}");
            assert!(left.iter().all(|name| !due[0].kinds.contains(name)), "{kinds:?}");
        }
    }

    #[test]
    fn several_faults_apply_to_one_request() {
        let kinds =
            [r#"{"kind":"clock_skew","seconds":5}"#, r#"{"kind":"clock_skew","seconds":7}"#, r#"{"kind":"empty"}"#];
        let more = [r#"{"kind":"html"}"#, r#"{"kind":"slow_body","seconds":1}"#, r#"{"kind":"reset"}"#];
        let due = Faults::new(kinds.iter().chain(&more).map(|text| fault(text)).collect()).match_request("/");
        assert_eq!(due.clock_ms, 12_000);
        assert_eq!(due.response, Some(FaultKind::Empty));
        assert_eq!(due.delivery, Some(FaultKind::SlowBody { seconds: 1.0 }));
    }
}
