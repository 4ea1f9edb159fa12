//! Names of parameters and settings in each front end.

/// Front end that a message is rendered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Python,
    Shell,
}

/// Settings that the command line reads from the environment only.
pub(super) const SECRETS: [&str; 3] = ["api_key", "secret_key", "passphrase"];

/// Settings that have an environment variable.
pub(super) const FROM_ENVIRONMENT: [&str; 6] =
    ["base_url", "api_key", "secret_key", "passphrase", "main_chain", "zone_chain"];

/// True for the name of an environment variable, which a setting may come from.
fn is_variable(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase()) || name.ends_with("_proxy")
}

/// Environment variable of a setting.
pub fn variable(setting: &str) -> String {
    format!("CHAINFRAME_{}", setting.to_uppercase())
}

impl Syntax {
    /// Name of a parameter or setting.
    pub fn name(self, parameter: &str) -> String {
        match self {
            Self::Python => parameter.to_owned(),
            Self::Shell if is_variable(parameter) => parameter.to_owned(),
            Self::Shell if SECRETS.contains(&parameter) => variable(parameter),
            Self::Shell => format!("--{}", parameter.replace('_', "-")),
        }
    }

    pub(super) fn names(self, parameters: &[String]) -> Vec<String> {
        parameters.iter().map(|parameter| self.name(parameter)).collect()
    }

    /// Name of a setting, with its environment variable if it has one.
    pub(super) fn setting(self, setting: &str) -> String {
        if self == Self::Shell && SECRETS.contains(&setting) {
            return variable(setting);
        }
        let name = self.name(setting);
        if FROM_ENVIRONMENT.contains(&setting) { format!("{name} ({})", variable(setting)) } else { name }
    }

    /// Name of a parameter that is to be passed.
    pub(super) fn argument(self, parameter: &str) -> String {
        match self {
            Self::Python => format!("{parameter}="),
            Self::Shell => self.name(parameter),
        }
    }
}
