//! `RecordType`: how a record type is declared: its fields, their names in responses, and the roles of some of them.

use super::kinds::Kind;

/// One kind of record, and so one Arrow schema, one Python class and one table of the local service.
#[derive(Debug)]
pub struct RecordType {
    /// The class name, e.g. `TokenTransfer`.
    pub name: &'static str,
    pub doc: &'static str,
    /// Fields that identify a record among its neighbors and do not change, unlike state and price.
    pub identity: &'static [&'static str],
    pub roles: Roles,
    /// In the order of columns everywhere: when, how much of what, and between whom, before heights and hashes.
    pub fields: &'static [Field],
    /// Names of the fields in the order in which the API sends their members.
    pub sent: &'static [&'static str],
}

/// Names of the fields with a meaning for lists of the type, where it has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Roles {
    /// Height by which lists are ordered.
    pub height: Option<&'static str>,
    /// Time of the block of that height.
    pub time: Option<&'static str>,
    /// Hash of that block.
    pub block: Option<&'static str>,
    /// Hash of the transaction that is in that block.
    pub transaction_in_block: Option<&'static str>,
    /// Hash of the transaction on the main chain, by which it can be looked up.
    pub transaction: Option<&'static str>,
}

/// One member of a record. Any of them may be absent from a response, and is then null.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Our name, in snake case.
    pub name: &'static str,
    /// Every spelling seen on the wire.
    pub wire: &'static [&'static str],
    pub kind: Kind,
    /// True if some services send other texts, which are not hex, under a later spelling: such a text is no value of a
    /// record that has the first spelling.
    pub is_hex: bool,
    /// One line of meaning, for people.
    pub doc: &'static str,
}

pub(super) const fn field(name: &'static str, wire: &'static [&'static str], kind: Kind, doc: &'static str) -> Field {
    Field { name, wire, kind, is_hex: false, doc }
}

impl RecordType {
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Columns with their fields, in the order in which the API sends them, and then those that it does not send. What is
    /// stored depends on this order: columns may move in another version.
    pub fn sent(&self) -> impl Iterator<Item = (usize, &'static Field)> {
        let sent = self.sent.iter().filter_map(|name| self.position(name));
        sent.chain(self.sent.len()..self.fields.len()).map(|column| (column, &self.fields[column]))
    }

    /// Column of the height by which lists of the type are ordered.
    pub fn height(&self) -> Option<usize> {
        self.position(self.roles.height?)
    }

    /// Column of the time of the block of that height.
    pub fn time(&self) -> Option<usize> {
        self.position(self.roles.time?)
    }

    /// Column of the hash of the block of that height.
    pub fn block(&self) -> Option<usize> {
        self.position(self.roles.block?)
    }
}
