//! The tables, derived from the declared records: a field that is declared has its column, its place in every query and
//! its member in the response. This module declares only which records are views of the same rows, and the indexes.

use std::sync::LazyLock;

use crate::interface::{ENDPOINTS, Endpoint, Field, Kind, Number, RecordType, Shape, record};

/// Rows of which one or several record types are views.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    records: &'static [&'static str],
    /// Columns that are the transaction's own: read from its row, so that they cannot disagree with it.
    inherited: &'static [&'static str],
    /// Decimal columns that are compared by value.
    by_value: &'static [&'static str],
    indexed: &'static [&'static str],
    /// Holds records of the user as they were given, not those of the synthetic chain.
    pub user_data: bool,
}

const INHERITED: &[&str] = &["tx_id", "block_hash", "height", "transaction_time", "method_id", "state"];

pub static TOKEN: Table = Table {
    name: "token",
    records: &["Token"],
    inherited: &[],
    by_value: &["total_market_cap", "transaction_amount_24h"],
    indexed: &["token_contract_address"],
    user_data: false,
};

pub static CHAIN_TRANSACTION: Table = Table {
    name: "chain_transaction",
    records: &["AddressTransaction", "LargeTransaction", "ChainTransaction", "Transaction"],
    inherited: &[],
    by_value: &["amount"],
    indexed: &["tx_id", "height", "block_hash", "from_address", "to_address", "amount_rank"],
    user_data: false,
};

pub static TOKEN_TRANSFER: Table = Table {
    name: "token_transfer",
    records: &["TokenTransfer"],
    inherited: INHERITED,
    by_value: &["amount"],
    indexed: &["token_contract_address"],
    user_data: false,
};

pub static EVENT_LOG: Table = Table {
    name: "event_log",
    records: &["EventLog"],
    inherited: INHERITED,
    by_value: &[],
    indexed: &["transaction_seq"],
    user_data: false,
};

pub static CROSS_CHAIN_TRANSACTION: Table = Table {
    name: "cross_chain_transaction",
    records: &["CrossChainTransaction"],
    inherited: &[],
    by_value: &[],
    indexed: &["zone_block_height"],
    user_data: false,
};

pub static BLOCK: Table =
    Table { name: "block", records: &["Block"], inherited: &[], by_value: &[], indexed: &["height"], user_data: false };

pub static TABLES: [&Table; 6] =
    [&TOKEN, &CHAIN_TRANSACTION, &TOKEN_TRANSFER, &EVENT_LOG, &CROSS_CHAIN_TRANSACTION, &BLOCK];

/// For each endpoint the table of loaded records.
static USER_DATA: LazyLock<Vec<(&str, Table)>> =
    LazyLock::new(|| ENDPOINTS.iter().map(|endpoint| (endpoint.name, Table::of_user(endpoint))).collect());

/// Addresses that share one comma-separated member, each by itself, so that a transaction is found by any of them.
pub const PARTY: &str = "CREATE TABLE party (address TEXT, side TEXT, seq INTEGER, PRIMARY KEY (address, side, seq)) \
                         WITHOUT ROWID";

/// Holdings of each token from which its transfers come while the chain grows.
pub const RESERVE: &str = "CREATE TABLE reserve (token TEXT PRIMARY KEY, holder TEXT, other TEXT, units TEXT, id TEXT, \
                           grown INTEGER)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

impl Table {
    fn of_user(endpoint: &'static Endpoint) -> Self {
        let record = endpoint.record();
        let by_value = Self::of(record).by_value;
        Self {
            // Once for each endpoint, for as long as the process lives.
            name: Box::leak(format!("own_{}", endpoint.name).into_boxed_str()),
            records: Box::leak(Box::new([record.name])),
            inherited: &[],
            by_value: if by_value.iter().all(|name| record.position(name).is_some()) { by_value } else { &[] },
            indexed: if matches!(endpoint.shape, Shape::Direct) { &["tx_id"] } else { &[] },
            user_data: true,
        }
    }

    /// Table of the records that were loaded for an endpoint.
    pub fn loaded(endpoint: &Endpoint) -> &'static Table {
        let mut tables = USER_DATA.iter();
        tables.find(|(name, _)| *name == endpoint.name).map(|(_, loaded)| loaded).expect("every endpoint has one")
    }

    pub fn of(record: &RecordType) -> &'static Table {
        let table = TABLES.into_iter().find(|table| table.records.contains(&record.name));
        table.unwrap_or_else(|| panic!("{} is in no table of src/service/schema.rs", record.name))
    }

    fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.records.iter().filter_map(|name| record(name)).flat_map(|record| record.sent()).map(|(_, field)| field)
    }

    /// Column of a field. Two fields with a spelling in common are one member under two names; only `input` and
    /// `output` share no spelling with the sender and receiver that they are.
    fn column_of(&self, field: &Field) -> &'static str {
        match field.name {
            "input" => "from_address",
            "output" => "to_address",
            name => self
                .fields()
                .find(|other| other.wire.iter().any(|spelling| field.wire.contains(spelling)))
                .map_or(name, |other| other.name),
        }
    }

    /// Columns of a row, in order.
    pub fn columns(&self) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for field in self.fields() {
            let name = self.column_of(field);
            if !self.inherited.contains(&name) && columns.iter().all(|column| column.name != name) {
                columns.push(Column { name, kind: field.kind });
            }
        }
        columns
    }

    pub fn has(&self, column: &str) -> bool {
        self.columns().iter().any(|own| own.name == column)
    }

    /// Column of the height of its rows, if it is not that of their transactions.
    pub fn height(&self) -> Option<&'static str> {
        self.records.iter().find_map(|name| record(name)?.roles.height).filter(|column| self.has(column))
    }

    pub fn by_value(&self) -> &'static [&'static str] {
        self.by_value
    }

    /// True if its rows belong to rows of transactions.
    pub fn belongs(&self) -> bool {
        !self.inherited.is_empty()
    }

    pub fn create(&self) -> String {
        let mut parts = vec!["seq INTEGER PRIMARY KEY".to_owned()];
        if self.belongs() {
            parts.push("transaction_seq INTEGER NOT NULL".into());
        }
        // Addresses and hashes are requested in any letter case; only those of the synthetic chain are all in lower case.
        let collation = if self.user_data { " COLLATE NOCASE" } else { "" };
        parts.extend(self.columns().iter().map(|column| match storage(column.kind) {
            "TEXT" => format!("\"{}\" TEXT{collation}", column.name),
            other => format!("\"{}\" {other}", column.name),
        }));
        parts.extend(self.by_value.iter().map(|name| format!("\"{name}_rank\" BLOB")));
        format!("CREATE TABLE {} ({})", self.name, parts.join(", "))
    }

    /// Made after the rows are in, which is faster than keeping them up to date meanwhile.
    pub fn create_indexes(&self) -> Vec<String> {
        let name = self.name;
        self.indexed.iter().map(|column| format!("CREATE INDEX {name}_{column} ON {name} (\"{column}\")")).collect()
    }

    /// Name of the table of rows that are not listed yet. It lives as long as the connection.
    pub fn late_name(&self) -> String {
        format!("late_{}", self.name)
    }

    /// Columns that a row has beside its own number, quoted and separated by commas.
    pub fn row_columns(&self) -> String {
        let transaction = self.belongs().then(|| "transaction_seq".to_owned());
        let own = self.columns().into_iter().map(|column| format!("\"{}\"", column.name));
        let ranks = self.by_value.iter().map(|name| format!("\"{name}_rank\""));
        transaction.into_iter().chain(own).chain(ranks).collect::<Vec<_>>().join(", ")
    }

    pub fn insert(&self) -> String {
        self.insert_into(self.name)
    }

    pub fn insert_into(&self, name: &str) -> String {
        let count = 1 + usize::from(self.belongs()) + self.columns().len() + self.by_value.len();
        format!("INSERT INTO {name} VALUES ({})", vec!["?"; count].join(", "))
    }

    /// The members of a record, in the order in which they are sent; the condition is the caller's.
    pub fn select(&self, record: &RecordType) -> String {
        let columns = record.sent().map(|(_, field)| {
            let name = self.column_of(field);
            let source = if self.inherited.contains(&name) { "parent" } else { "own" };
            format!("{source}.\"{name}\"")
        });
        let columns: Vec<String> = columns.collect();
        let parent =
            if self.belongs() { " JOIN chain_transaction AS parent ON parent.seq = own.transaction_seq" } else { "" };
        format!("SELECT {} FROM {} AS own{parent}", columns.join(", "), self.name)
    }
}

fn storage(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer | Kind::Time | Kind::Boolean => "INTEGER",
        // Digits are kept as written: SQLite has no decimals, and its doubles would round them.
        Kind::Amount | Kind::ApproxDecimal | Kind::Uint256 | Kind::Utf8 | Kind::Direction | Kind::Utf8List => "TEXT",
    }
}

/// Bytes that sort as the numbers do, exactly and at any size: the leading digit's place, then the digits. Nothing for
/// what is no number or below zero.
pub fn rank(text: &str) -> Option<Vec<u8>> {
    let (negative, digits, power) = Number::parse(text)?.canonical();
    if negative {
        return None;
    }
    if digits.is_empty() {
        return Some(Vec::new());
    }
    let place = i64::from(power) + digits.len() as i64 + (1 << 31);
    let mut bytes = u32::try_from(place).ok()?.to_be_bytes().to_vec();
    bytes.extend_from_slice(&digits);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::RECORDS;
    use proptest::prelude::*;

    #[test]
    fn every_declared_record_is_a_view_of_one_table() {
        let mut fields = 0;
        for record in RECORDS {
            assert_eq!(
                TABLES.iter().filter(|table| table.records.contains(&record.name)).count(),
                1,
                "{}",
                record.name
            );
            let table = Table::of(record);
            for field in record.fields {
                let column = table.column_of(field);
                assert!(table.has(column) || table.inherited.contains(&column), "{}.{}", record.name, field.name);
                fields += 1;
            }
        }
        assert!(fields > 100, "{fields} fields found");
    }

    #[test]
    fn views_of_a_transaction_share_its_columns() {
        let names: Vec<_> = CHAIN_TRANSACTION.columns().iter().map(|column| column.name).collect();
        let address = record("AddressTransaction").unwrap();
        assert!(names.starts_with(address.sent), "columns that only one view has come last: {names:?}");
        for other_name in ["input", "output"] {
            assert!(!names.contains(&other_name), "{other_name} has a column of its own");
        }
        for inherited in TOKEN_TRANSFER.inherited {
            assert!(names.contains(inherited), "{inherited}");
        }
    }

    #[test]
    fn every_endpoint_has_a_table_with_the_members_of_its_record() {
        for endpoint in &ENDPOINTS {
            let table = Table::loaded(endpoint);
            let kinds: Vec<_> = endpoint.record().sent().map(|(_, field)| field.kind).collect();
            let columns: Vec<_> = table.columns().iter().map(|column| column.kind).collect();
            assert_eq!(columns, kinds, "{}", endpoint.name);
            let synthetic = Table::of(endpoint.record());
            assert!(synthetic.by_value.iter().all(|name| table.by_value.contains(name)), "{}", endpoint.name);
        }
    }

    #[test]
    fn compared_and_indexed_columns_exist() {
        for table in TABLES {
            for name in table.by_value {
                assert!(table.has(name), "{}.{name}", table.name);
            }
            for name in table.indexed {
                let by_value = name.strip_suffix("_rank").is_some_and(|name| table.by_value.contains(&name));
                assert!(table.has(name) || by_value || *name == "transaction_seq", "{}.{name}", table.name);
            }
        }
    }

    #[test]
    fn ranks_sort_as_the_numbers_do() {
        let sorted = ["0", "1e-30", "2.625E-6", "0.99", "1", "1.000000000000000001", "9", "10", "99.9", "100", "1e60"];
        for pair in sorted.windows(2) {
            assert!(rank(pair[0]) < rank(pair[1]), "{pair:?}");
        }
        assert_eq!(rank("100"), rank("100.000"));
        assert_eq!(rank("1.5e2"), rank("150"));
        assert_eq!(rank("-1"), None);
        assert_eq!(rank(""), None);
    }

    proptest! {
        #[test]
        fn ranks_agree_with_exact_decimals(left in 0..10_i128.pow(24), right in 0..10_i128.pow(24)) {
            let text = |value: i128| format!("{}.{:018}", value / 10_i128.pow(18), value % 10_i128.pow(18));
            prop_assert_eq!(left.cmp(&right), rank(&text(left)).cmp(&rank(&text(right))));
        }
    }
}
