//! The user's function that replaces parts of what is stored of a request or response.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::error::Error;
use super::interaction::{Interaction, Outcome, RecordedResponse, Request, json_problem};

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
                let text = String::from_utf8_lossy(&response.body);
                let scrubbed = self.text(&text)?;
                if let Some(problem) = json_problem(&scrubbed)
                    && json_problem(&text).is_none()
                {
                    return Err(format!("made a body invalid JSON ({problem}); replace text within values only"));
                }
                Ok(Outcome::Response(RecordedResponse { body: scrubbed.into(), ..response }))
            }
        }
    }

    /// The interaction as it is to be stored.
    pub fn interaction(&self, interaction: Interaction) -> Result<Interaction, String> {
        let request = self.request(&interaction.request)?;
        let outcome = self.outcome(interaction.outcome)?;
        Ok(Interaction { request, outcome, is_scrubbed: true, ..interaction })
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

pub fn failed(path: &Path, problem: &str) -> Error {
    Error::File { path: path.to_owned(), problem: format!("scrub {problem}; nothing was written") }
}
