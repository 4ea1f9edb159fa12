//! Which requests a recording is played for.

use std::collections::BTreeSet;

use super::interaction::Request;

/// Parameters that requests are compared by, by their names in the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchOn {
    /// All if empty.
    pub compared: BTreeSet<String>,
    pub left_out: BTreeSet<String>,
}

impl MatchOn {
    /// Names of the parameters, after "-" where they are left out.
    pub fn names(&self) -> Vec<String> {
        self.compared.iter().cloned().chain(self.left_out.iter().map(|name| format!("-{name}"))).collect()
    }

    pub fn is_compared(&self, name: &str) -> bool {
        (self.compared.is_empty() || self.compared.contains(name)) && !self.left_out.contains(name)
    }

    /// The part of a request that is compared, in one letter case where the API knows none.
    pub fn key(&self, request: &Request) -> Request {
        let params = request.params.iter().filter(|(name, _)| self.is_compared(name));
        let params = params.map(|(name, value)| (name.clone(), in_one_case(name, value))).collect();
        Request { method: request.method.clone(), path: request.path.clone(), params }
    }
}

/// Names of chains, and hexadecimal addresses and hashes, mean the same in either case.
fn in_one_case(name: &str, value: &str) -> String {
    match name {
        "chainShortName" => value.to_ascii_uppercase(),
        _ if value.starts_with("0x") || value.starts_with("0X") => value.to_ascii_lowercase(),
        _ => value.to_owned(),
    }
}

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

    #[test]
    fn letter_case_is_compared_where_the_api_knows_it() {
        let key = |query: &str| MatchOn::default().key(&Request::get(query));
        assert_eq!(key("/a?chainShortName=main&address=0xAb"), key("/a?chainShortName=MAIN&address=0XaB"));
        assert_ne!(key("/a?symbol=Ab"), key("/a?symbol=ab"));
    }
}
