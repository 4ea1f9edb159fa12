//! Which requests a recording is played for, and what of a request or response is stored.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::interaction::{Outcome, RecordedResponse, Request};

/// Parameters that requests are compared by, by their names in the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchOn {
    /// All if empty.
    pub compared: BTreeSet<String>,
    pub left_out: BTreeSet<String>,
}

impl MatchOn {
    pub fn is_compared(&self, name: &str) -> bool {
        (self.compared.is_empty() || self.compared.contains(name)) && !self.left_out.contains(name)
    }

    /// The part of a request that is compared.
    pub fn key(&self, request: &Request) -> Request {
        let params = request.params.iter().filter(|(name, _)| self.is_compared(name));
        let params = params.map(|(name, value)| (name.clone(), value.clone())).collect();
        Request { method: request.method.clone(), path: request.path.clone(), params }
    }
}

type Replace = dyn Fn(&str) -> Result<String, String> + Send + Sync;

/// The user's function that replaces what must not be stored, in values of parameters and in bodies.
#[derive(Clone)]
pub struct Scrub(Arc<Replace>);

impl Scrub {
    pub fn new(replace: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(replace))
    }

    pub fn text(&self, text: &str) -> Result<String, String> {
        (self.0)(text)
    }

    pub fn request(&self, request: &Request) -> Result<Request, String> {
        let scrubbed = request.params.iter().map(|(name, value)| Ok((name.clone(), self.text(value)?)));
        let params = scrubbed.collect::<Result<_, String>>()?;
        Ok(Request { method: request.method.clone(), path: request.path.clone(), params })
    }

    pub fn outcome(&self, outcome: Outcome) -> Result<Outcome, String> {
        match outcome {
            Outcome::Failure(failure) => Ok(Outcome::Failure(failure)),
            Outcome::Response(response) => {
                let body = self.text(&String::from_utf8_lossy(&response.body))?.into();
                Ok(Outcome::Response(RecordedResponse { body, ..response }))
            }
        }
    }
}

impl fmt::Debug for Scrub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrub")
    }
}

impl PartialEq for Scrub {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Scrub {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_are_left_out_are_no_part_of_the_key() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let request = Request::get("/a?page=1&limit=5&startTime=3");
        let key = |compared: &[&str], left_out: &[&str]| {
            let match_on = MatchOn { compared: names(compared), left_out: names(left_out) };
            match_on.key(&request).params.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(key(&[], &["startTime"]), ["limit", "page"]);
        assert_eq!(key(&["page"], &[]), ["page"]);
        assert_eq!(key(&["page", "limit"], &["limit"]), ["page"]);
        assert_eq!(key(&[], &[]), ["limit", "page", "startTime"]);
    }
}
