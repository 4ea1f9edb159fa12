//! `Sealed`: a value as a string that another process reads: JSON with a version and a checksum.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::client::Error;
use crate::message::Message;

/// Member that detects strings which were cut or edited.
const CHECKSUM: &str = "checksum";

pub(in crate::query) trait Sealed: Serialize + DeserializeOwned {
    /// Parameter that takes the string.
    const PARAMETER: &'static str;
    /// Version of the format. Others are rejected.
    const VERSION: u32;
    const VERSION_MEMBER: &'static str;
    /// Problem of a string that has another form.
    const FORM: &'static str;
    /// Member by which another kind of cursor is recognized, and the problem of that.
    const OTHER_MEMBER: &'static str;
    const OTHER: &'static str;

    fn reject(problem: impl Into<Message>) -> Error {
        Error::parameter(Self::PARAMETER, problem)
    }

    fn seal(&self) -> String {
        let json = to_json(self);
        let open = json.strip_suffix('}').unwrap_or(&json);
        format!("{open},\"{CHECKSUM}\":\"{}\"}}", checksum(&json))
    }

    fn open(text: &str) -> Result<Self, Error> {
        let mut value: Value = serde_json::from_str(text).map_err(|_| Self::reject(malformed::<Self>(text)))?;
        match value.get(Self::VERSION_MEMBER).and_then(Value::as_u64) {
            Some(version) if version == u64::from(Self::VERSION) => {}
            Some(version) => {
                let expected = Self::VERSION;
                return Err(Self::reject(format!(
                    "has unsupported version {version} (expected {expected}); use the release that wrote it, or begin without it"
                )));
            }
            None if value.get(Self::OTHER_MEMBER).is_some() => return Err(Self::reject(Self::OTHER)),
            None => return Err(Self::reject(malformed::<Self>(text))),
        }
        let sum = value.as_object_mut().and_then(|members| members.remove(CHECKSUM));
        let opened: Self = serde_json::from_value(value).map_err(|_| Self::reject(malformed::<Self>(text)))?;
        // Spaces and the order of members may have changed.
        if sum.as_ref().and_then(Value::as_str) != Some(&checksum(&to_json(&opened))) {
            return Err(Self::reject("is corrupted (checksum mismatch); pass it unchanged"));
        }
        Ok(opened)
    }
}

/// Problem of a string of another form, and the beginning of that string.
fn malformed<T: Sealed>(text: &str) -> String {
    const SHOWN_CHARS: usize = 30;
    let is_cut = text.chars().nth(SHOWN_CHARS).is_some();
    let beginning: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{}, unchanged; got {beginning:?}{}", T::FORM, if is_cut { "…" } else { "" })
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain values")
}

fn checksum(json: &str) -> String {
    Sha256::digest(json)[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}
