//! `Event`: a declared event and the logs that it matches.

use alloy_dyn_abi::{DynSolType, Specifier as _};
use alloy_primitives::B256;

use super::value::{Type, Value};
use crate::message::Message;

/// Columns of the log that a decoded log has as well. A parameter of the same name gets an underscore.
pub const LOG_COLUMNS: [&str; 5] = ["height", "transaction_time", "tx_id", "log_index", "address"];
/// Names that are no attributes in Python, and hardly columns in SQL.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];
/// Most topics of a log.
const MAX_TOPICS: usize = 4;

/// A parameter as a column.
#[derive(Clone, Debug)]
pub struct Param {
    pub column: String,
    pub is_indexed: bool,
    pub ty: Type,
}

/// An event of a contract. Logs match by the first topic and the number of topics.
#[derive(Clone, Debug)]
pub struct Event {
    name: String,
    declaration: String,
    signature: String,
    /// First topic; none if the event is anonymous.
    topic: Option<B256>,
    params: Vec<Param>,
    /// Layout of the data: what is not indexed.
    body: DynSolType,
}

impl Event {
    /// Parses a declaration as in Solidity, `event` and `;` left out or not.
    pub fn parse(declaration: &str) -> Result<Self, Message> {
        Self::parsed(declaration).map_err(|problem| {
            let problem = problem.split_whitespace().collect::<Vec<_>>().join(" ");
            Message::new(format!(
                "must be an event like \"Transfer(address indexed from, address indexed to, uint256 value)\"; got \
                 {declaration:?} ({problem})"
            ))
        })
    }

    fn parsed(declaration: &str) -> Result<Self, String> {
        let trimmed = declaration.trim().trim_end_matches(';');
        let parsed = alloy_json_abi::Event::parse(trimmed).map_err(|error| error.to_string())?;
        let mut params = Vec::with_capacity(parsed.inputs.len());
        for (index, input) in parsed.inputs.iter().enumerate() {
            let resolved = input.resolve().map_err(|error| error.to_string())?;
            let ty = Type::new(&resolved, &input.components).ok_or("a tuple has no members")?;
            let ty = if input.indexed && ty.is_hashed() { Type::Hash } else { ty };
            let column = column(&input.name, index, &params);
            params.push(Param { column, is_indexed: input.indexed, ty });
        }
        let topic = (!parsed.anonymous).then(|| parsed.selector());
        let indexed = params.iter().filter(|param| param.is_indexed).count();
        let max_indexed = MAX_TOPICS - usize::from(topic.is_some());
        if indexed > max_indexed {
            return Err(format!("{indexed} parameters are indexed; at most {max_indexed} can be"));
        }
        let body = params.iter().filter(|param| !param.is_indexed).map(|param| param.ty.layout()).collect();
        let full = parsed.full_signature();
        let declaration = full.strip_prefix("event ").unwrap_or(&full).to_owned();
        let signature = parsed.signature();
        Ok(Self { name: parsed.name, declaration, signature, topic, params, body: DynSolType::Tuple(body) })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The declaration in one spelling.
    pub fn declaration(&self) -> &str {
        &self.declaration
    }

    /// Name and types, of which the topic is the hash.
    pub fn signature(&self) -> &str {
        &self.signature
    }

    pub fn topic(&self) -> Option<String> {
        self.topic.map(|topic| topic.to_string())
    }

    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Returns the values of the parameters if the topics are those of this event. A value that is not of its type, or is
    /// missing, is `None`.
    pub fn read(&self, topics: &[&str], data: &str) -> Option<Vec<Option<Value>>> {
        let topics: Vec<B256> = topics.iter().map(|topic| topic.parse().ok()).collect::<Option<_>>()?;
        let indexed = self.params.iter().filter(|param| param.is_indexed).count();
        let mut indexed_topics = match self.topic {
            Some(topic) if topics.first() == Some(&topic) => topics[1..].iter(),
            Some(_) => return None,
            None => topics.iter(),
        };
        if indexed_topics.len() != indexed {
            return None;
        }
        let mut body = self.read_data(data).unwrap_or_default().into_iter();
        let values = self.params.iter().map(|param| {
            if param.is_indexed {
                param.ty.word(*indexed_topics.next()?)
            } else {
                body.next().and_then(|value| param.ty.read(value))
            }
        });
        Some(values.collect())
    }

    fn read_data(&self, data: &str) -> Option<Vec<alloy_dyn_abi::DynSolValue>> {
        let data = alloy_primitives::hex::decode(data).ok()?;
        match self.body.abi_decode_sequence(&data).ok()? {
            alloy_dyn_abi::DynSolValue::Tuple(values) => Some(values),
            _ => None,
        }
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.declaration == other.declaration
    }
}

/// Column of a parameter, other than those before it.
fn column(name: &str, index: usize, before: &[Param]) -> String {
    let mut column = if name.is_empty() { format!("arg{index}") } else { name.to_owned() };
    while LOG_COLUMNS.contains(&column.as_str())
        || KEYWORDS.contains(&column.as_str())
        || before.iter().any(|param| param.column == column)
    {
        column.push('_');
    }
    column
}
