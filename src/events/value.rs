//! Types of parameters, and values of them.

use alloy_dyn_abi::{DynSolType, DynSolValue};
use alloy_primitives::{B256, I256, U256, hex};

/// A type of the ABI as a column has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Bool,
    /// Number of bits.
    Int(usize),
    /// Number of bits.
    Uint(usize),
    Address,
    /// Number of bytes; 24 for a function.
    FixedBytes(usize),
    Bytes,
    Utf8,
    /// Hash of an indexed value that does not fit into a topic.
    Hash,
    List(Box<Type>, Option<usize>),
    Struct(Vec<(String, Type)>),
}

/// A value of a `Type`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Int(I256),
    Uint(U256),
    Text(String),
    List(Vec<Self>),
    /// The members in order.
    Struct(Vec<Self>),
}

impl Type {
    /// Returns the type with the names of its members, unless a tuple has none.
    pub fn new(ty: &DynSolType, members: &[alloy_json_abi::Param]) -> Option<Self> {
        Some(match ty {
            DynSolType::Bool => Self::Bool,
            DynSolType::Int(bits) => Self::Int(*bits),
            DynSolType::Uint(bits) => Self::Uint(*bits),
            DynSolType::FixedBytes(bytes) => Self::FixedBytes(*bytes),
            DynSolType::Address => Self::Address,
            DynSolType::Function => Self::FixedBytes(24),
            DynSolType::Bytes => Self::Bytes,
            DynSolType::String => Self::Utf8,
            DynSolType::Array(item) => Self::List(Box::new(Self::new(item, members)?), None),
            DynSolType::FixedArray(item, length) => Self::List(Box::new(Self::new(item, members)?), Some(*length)),
            DynSolType::Tuple(types) if types.is_empty() => return None,
            DynSolType::Tuple(types) => {
                let mut parts = Vec::with_capacity(types.len());
                for (index, ty) in types.iter().enumerate() {
                    let param = members.get(index);
                    let ty = Self::new(ty, param.map_or(&[], |param| &param.components))?;
                    let name = param.map(|param| param.name.as_str()).filter(|name| !name.is_empty());
                    parts.push((name.map_or_else(|| format!("arg{index}"), str::to_owned), ty));
                }
                Self::Struct(parts)
            }
        })
    }

    /// True if an indexed parameter of this type is logged as its hash.
    pub fn is_hashed(&self) -> bool {
        matches!(self, Self::Bytes | Self::Utf8 | Self::List(..) | Self::Struct(_))
    }

    /// The type with the same layout in data, whose words and bytes are not interpreted: `read` does that, and rejects
    /// what the type does not allow.
    pub fn layout(&self) -> DynSolType {
        match self {
            Self::Bytes | Self::Utf8 => DynSolType::Bytes,
            Self::List(item, None) => DynSolType::Array(Box::new(item.layout())),
            Self::List(item, Some(length)) => DynSolType::FixedArray(Box::new(item.layout()), *length),
            Self::Struct(members) => DynSolType::Tuple(members.iter().map(|(_, ty)| ty.layout()).collect()),
            _ => DynSolType::FixedBytes(32),
        }
    }

    /// Interprets a value of the layout.
    pub fn read(&self, value: DynSolValue) -> Option<Value> {
        match (self, value) {
            (Self::Bytes, DynSolValue::Bytes(bytes)) => Some(Value::Text(hex::encode_prefixed(bytes))),
            (Self::Utf8, DynSolValue::Bytes(bytes)) => String::from_utf8(bytes).ok().map(Value::Text),
            (Self::List(item, _), DynSolValue::Array(values) | DynSolValue::FixedArray(values)) => {
                values.into_iter().map(|value| item.read(value)).collect::<Option<_>>().map(Value::List)
            }
            (Self::Struct(members), DynSolValue::Tuple(values)) => {
                let values = members.iter().zip(values).map(|((_, ty), value)| ty.read(value));
                values.collect::<Option<_>>().map(Value::Struct)
            }
            (_, DynSolValue::FixedBytes(word, 32)) => self.word(word),
            _ => None,
        }
    }

    /// Interprets a word of 32 bytes, unless it has bits that the type does not allow.
    pub fn word(&self, word: B256) -> Option<Value> {
        match self {
            Self::Bool => match U256::from_be_bytes(word.0) {
                U256::ZERO => Some(Value::Bool(false)),
                U256::ONE => Some(Value::Bool(true)),
                _ => None,
            },
            Self::Uint(bits) => {
                let value = U256::from_be_bytes(word.0);
                (value.bit_len() <= *bits).then_some(Value::Uint(value))
            }
            Self::Int(bits) => {
                let value = I256::from_be_bytes(word.0);
                (value.bits() as usize <= *bits).then_some(Value::Int(value))
            }
            Self::Address => text(&word[12..], &word[..12]),
            Self::FixedBytes(count) => text(&word[..*count], &word[*count..]),
            Self::Hash => Some(Value::Text(hex::encode_prefixed(word))),
            Self::Bytes | Self::Utf8 | Self::List(..) | Self::Struct(_) => None,
        }
    }
}

/// Bytes in hexadecimal, unless the rest of their word has bits.
fn text(bytes: &[u8], rest: &[u8]) -> Option<Value> {
    if rest.iter().all(|byte| *byte == 0) { Some(Value::Text(hex::encode_prefixed(bytes))) } else { None }
}
