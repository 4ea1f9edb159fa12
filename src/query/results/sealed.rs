//! `Sealed`: a value as a string that another process reads: JSON with a version and a checksum.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::client::Error;
use crate::message::Message;

pub(in crate::query) trait Sealed: Clone + Serialize + DeserializeOwned {
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

    /// Last member, which detects strings that were cut or edited. A value that is no string has none.
    fn checksum(&mut self) -> &mut Option<String>;

    /// About the length of the string, where that is large: a vector that grows has up to twice the room.
    fn expected_length(&self) -> usize {
        0
    }

    fn seal(&self) -> String {
        let mut json = Vec::with_capacity(self.expected_length());
        self.seal_to(&mut json, CompactFormatter).expect("a vector takes all bytes");
        String::from_utf8(json).expect("JSON is UTF-8")
    }

    /// Writes the string piece by piece: the position of a large set has many megabytes.
    fn seal_to(&self, to: impl Write, formatter: impl Formatter) -> io::Result<()> {
        let mut sealed = self.clone();
        *sealed.checksum() = Some(checksum(self));
        sealed.serialize(&mut Serializer::with_formatter(to, formatter)).map_err(io::Error::from)
    }

    fn open(text: &str) -> Result<Self, Error> {
        let members: BTreeMap<String, &RawValue> =
            serde_json::from_str(text).map_err(|_| Self::reject(malformed::<Self>(text)))?;
        match members.get(Self::VERSION_MEMBER).and_then(|version| version.get().parse::<u64>().ok()) {
            Some(version) if version == u64::from(Self::VERSION) => {}
            Some(version) => {
                let expected = Self::VERSION;
                return Err(Self::reject(format!(
                    "has unsupported version {version} (expected {expected}); use the release that wrote it, or begin without it"
                )));
            }
            None if members.contains_key(Self::OTHER_MEMBER) => return Err(Self::reject(Self::OTHER)),
            None => return Err(Self::reject(malformed::<Self>(text))),
        }
        let mut opened: Self = serde_json::from_str(text).map_err(|_| Self::reject(malformed::<Self>(text)))?;
        // Spaces and the order of members may have changed.
        if opened.checksum().take() != Some(checksum(&opened)) {
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

fn checksum(value: &impl Serialize) -> String {
    let mut hash = HashedBytes(Sha256::new());
    serde_json::to_writer(&mut hash, value).expect("plain values");
    hash.0.finalize()[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

struct HashedBytes(Sha256);

impl Write for HashedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
