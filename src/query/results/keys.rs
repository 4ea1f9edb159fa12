//! Record keys: 64-bit hashes of the fields that identify a record. Cursors and export manifests contain them, so they
//! are the same on every platform and in every version.
//!
//! While a list is read, a record is identified together with its block: a reorganization that includes it again in
//! another block makes it another record.

use std::cell::OnceCell;
use std::ops::Range;
use std::slice;
use std::sync::LazyLock;

use super::key_hasher::KeyHasher;
use crate::columns::Columns;
use crate::interface::{RECORDS, RecordType};
use crate::query::snapshot::Rows;

/// Columns that make the keys of records of a type.
struct KeyColumns {
    identity: Vec<usize>,
    all: Vec<usize>,
    /// Columns of the block of a record. They change if the record is included again in another block.
    block: Vec<usize>,
    block_hash: Option<usize>,
    /// Column of the hash of the block, which a record that is a block has for itself.
    hash_of_block: Option<usize>,
    height: Option<usize>,
    transaction: Option<usize>,
}

impl KeyColumns {
    /// The columns of a record type, found by their names at first use.
    fn of(record: &RecordType) -> &'static Self {
        static ALL: LazyLock<[KeyColumns; RECORDS.len()]> = LazyLock::new(|| RECORDS.map(KeyColumns::new));
        let position = RECORDS.iter().position(|declared| declared.name == record.name);
        &ALL[position.expect("every record type is declared")]
    }

    fn new(record: &RecordType) -> Self {
        let identity: Vec<usize> = record.identity.iter().filter_map(|name| record.position(name)).collect();
        // A block is identified by its own hash.
        let block_hash = record.block().filter(|column| !identity.contains(column));
        Self {
            identity,
            all: record.sent().map(|(column, _)| column).collect(),
            block: block_hash.into_iter().chain(record.height()).collect(),
            block_hash,
            hash_of_block: record.block(),
            height: record.height(),
            transaction: record.roles.transaction_in_block.and_then(|name| record.position(name)),
        }
    }

    /// Hashes of some records: of their identifying fields, or of all their fields if they have none of them.
    fn record_hashes(&self, columns: &Columns, rows: Range<usize>) -> Vec<KeyHasher> {
        let mut hashers = hashes_of(columns, &self.identity, rows.clone());
        for (row, hasher) in rows.zip(&mut hashers) {
            if !self.is_identified(columns, row) {
                write_columns(slice::from_mut(hasher), columns, &self.all, row);
            }
        }
        hashers
    }

    fn is_identified(&self, columns: &Columns, row: usize) -> bool {
        self.identity.iter().any(|column| columns.text(*column, row).is_some_and(|text| !text.is_empty()))
    }

    /// Keys of some records in their blocks.
    fn keys_in_blocks(&self, columns: &Columns, rows: Range<usize>) -> Vec<u64> {
        let mut hashers = self.record_hashes(columns, rows.clone());
        write_columns(&mut hashers, columns, &self.block, rows.start);
        finished(hashers)
    }

    /// Hash of the block of a record.
    fn block(&self, columns: &Columns, row: usize) -> Option<u64> {
        hash_key(columns, self.hash_of_block?, row)
    }

    /// Hashes of the blocks of all records. Those of one block mostly follow each other.
    fn blocks(&self, columns: &Columns) -> Vec<Option<u64>> {
        let Some(column) = self.hash_of_block else { return vec![None; columns.rows()] };
        let texts = columns.texts(column);
        let mut blocks = Vec::with_capacity(columns.rows());
        for row in 0..columns.rows() {
            let is_of_same = row > 0 && texts.get(row) == texts.get(row - 1);
            blocks.push(if is_of_same { blocks[row - 1] } else { hash_key(columns, column, row) });
        }
        blocks
    }
}

/// One key of several records in their blocks and in their order.
pub fn key_of_all(columns: &Columns) -> u64 {
    let mut hasher = KeyHasher::new();
    KeyedRows::new(columns).keys.iter().for_each(|key| hasher.write_key(*key));
    hasher.finish()
}

/// Hash of the hash of a block or a transaction in a column.
fn hash_key(columns: &Columns, column: usize, row: usize) -> Option<u64> {
    let hash = columns.text(column, row)?;
    // Some services have zeros in place of a hash that they do not know.
    if hash.bytes().all(|byte| matches!(byte, b'0' | b'x' | b'X')) {
        return None;
    }
    let mut hasher = KeyHasher::new();
    hasher.write_text(hash);
    Some(hasher.finish())
}

fn write_columns(hashers: &mut [KeyHasher], columns: &Columns, of: &[usize], first: usize) {
    of.iter().for_each(|column| KeyHasher::write_column(hashers, columns, *column, first));
}

fn hashes_of(columns: &Columns, of: &[usize], rows: Range<usize>) -> Vec<KeyHasher> {
    let mut hashers = vec![KeyHasher::new(); rows.len()];
    write_columns(&mut hashers, columns, of, rows.start);
    hashers
}

fn finished(hashers: Vec<KeyHasher>) -> Vec<u64> {
    hashers.into_iter().map(KeyHasher::finish).collect()
}

/// Keys of all records of a page.
pub fn record_keys(columns: &Columns) -> Vec<u64> {
    finished(KeyColumns::of(columns.record()).record_hashes(columns, 0..columns.rows()))
}

/// Hashes of all fields of the records of a page.
pub fn content_keys(columns: &Columns) -> Vec<u64> {
    finished(hashes_of(columns, &KeyColumns::of(columns.record()).all, 0..columns.rows()))
}

/// Hashes of the hashes of the blocks of a page's records; 0 where there is none. Blocks have 0: their keys identify them, and
/// cursors contain these numbers.
pub fn block_keys(columns: &Columns) -> Vec<u64> {
    let column = KeyColumns::of(columns.record()).block_hash;
    (0..columns.rows()).map(|row| column.and_then(|column| hash_key(columns, column, row)).unwrap_or(0)).collect()
}

/// Hashes of the hashes of the transactions of a page's records.
pub fn transaction_keys(columns: &Columns) -> Vec<Option<u64>> {
    (0..columns.rows()).map(|row| columns.transaction(row)).collect()
}

impl Rows for Columns {
    fn len(&self) -> usize {
        self.rows()
    }

    fn key(&self, row: usize) -> u64 {
        KeyColumns::of(self.record()).keys_in_blocks(self, row..row + 1)[0]
    }

    fn height(&self, row: usize) -> Option<i64> {
        self.integer(self.record().height()?, row)
    }

    fn block(&self, row: usize) -> Option<u64> {
        KeyColumns::of(self.record()).block(self, row)
    }

    fn transaction(&self, row: usize) -> Option<u64> {
        hash_key(self, KeyColumns::of(self.record()).transaction?, row)
    }
}

/// Records of a page with their keys, which several steps compare.
pub struct KeyedRows<'a> {
    columns: &'a Columns,
    of: &'static KeyColumns,
    keys: Vec<u64>,
    /// Hashes of the blocks, once one of them was asked for.
    blocks: OnceCell<Vec<Option<u64>>>,
}

impl<'a> KeyedRows<'a> {
    pub fn new(columns: &'a Columns) -> Self {
        let of = KeyColumns::of(columns.record());
        let keys = of.keys_in_blocks(columns, 0..columns.rows());
        Self { columns, of, keys, blocks: OnceCell::new() }
    }
}

impl Rows for KeyedRows<'_> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, row: usize) -> u64 {
        self.keys[row]
    }

    fn keys(&self) -> Vec<u64> {
        self.keys.clone()
    }

    fn height(&self, row: usize) -> Option<i64> {
        self.columns.integer(self.of.height?, row)
    }

    fn block(&self, row: usize) -> Option<u64> {
        self.blocks.get_or_init(|| self.of.blocks(self.columns))[row]
    }

    fn transaction(&self, row: usize) -> Option<u64> {
        hash_key(self.columns, self.of.transaction?, row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{ColumnsBuilder, Projection};
    use crate::interface::record;
    use crate::query::FollowCursor;
    use crate::query::results::{Cursor, Sealed as _};

    const NEW_KEYS: &str = "see \"Adding a field\" in docs/architecture.md";

    #[test]
    fn keys_stay_the_same() {
        let kind = record("Block").unwrap();
        let mut columns = ColumnsBuilder::new(kind, 3);
        for (hash, height) in [("0x0123456789abcdef", "7"), ("0x0123456789abcdef", "8"), ("", "7")] {
            columns.append_str(kind.position("hash").unwrap(), hash).unwrap();
            columns.append_str(kind.position("height").unwrap(), height).unwrap();
            columns.finish_row();
        }
        let keys = [17_370_259_592_902_517_419, 16_770_820_450_220_743_290, 3_286_330_942_594_712_901];
        assert_eq!(record_keys(&columns.finish()), keys, "stored keys of Block are others: {NEW_KEYS}");
    }

    /// Versions of what keeps keys: cursors of queries, cursors of followers and manifests of exports.
    fn versions() -> [u32; 3] {
        let manifest = include_str!("../../../python/chainframe/exports/manifest.py");
        let version = manifest.lines().find_map(|line| line.strip_prefix("VERSION = ")?.parse().ok());
        [Cursor::VERSION, FollowCursor::VERSION, version.expect("manifest.py has a version")]
    }

    /// The key of a record that is identified, and that of one without a value: a hash of all fields.
    #[test]
    fn keys_of_every_record_type_stay_the_same() {
        let pinned_versions = [13, 4, 1];
        let pinned = [
            ("Token", [4_224_064_728_005_810_483, 8_566_542_421_560_987_411]),
            ("TokenTransfer", [8_600_796_336_551_912_421, 10_444_360_983_531_573_136]),
            ("CrossChainTransaction", [8_600_796_336_551_912_421, 3_468_564_254_850_592_336]),
            ("Block", [17_603_555_151_426_701_512, 6_821_099_116_421_608_425]),
            ("AddressTransaction", [8_783_669_796_844_084_236, 17_397_432_301_068_486_718]),
            ("LargeTransaction", [8_783_669_796_844_084_236, 8_784_661_451_377_016_883]),
            ("ChainTransaction", [8_783_669_796_844_084_236, 8_784_661_451_377_016_883]),
            ("Transaction", [4_224_064_728_005_810_483, 1_419_175_277_919_027_198]),
            ("EventLog", [17_603_555_151_426_701_512, 12_051_189_892_264_650_667]),
        ];
        let mut problems = Vec::new();
        for record in RECORDS {
            let name = record.name;
            let mut columns = ColumnsBuilder::new(record, 2);
            columns.append_str(record.position(record.identity[0]).unwrap(), "0x01").unwrap();
            columns.finish_row();
            columns.finish_row();
            let keys = record_keys(&columns.finish());
            match pinned.iter().find(|(of, _)| *of == name) {
                None => problems.push(format!("src/query/results/keys.rs has no row for {name}: add {keys:?}")),
                Some((_, stored)) if *stored == *keys => {}
                Some(_) => problems.push(format!("stored keys of {name} are others, {keys:?}: {NEW_KEYS}")),
            }
        }
        if versions() != pinned_versions {
            problems
                .push(format!("versions are {:?}, and the rows here of {pinned_versions:?}: change both", versions()));
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn records_of_other_blocks_are_others_while_a_list_is_read() {
        for (name, fields) in [
            ("ChainTransaction", [("block_hash", ["0xa", "0xb"]), ("height", ["7", "8"])]),
            ("CrossChainTransaction", [("zone_block_height", ["7", "8"]), ("zone_block_height", ["7", "9"])]),
        ] {
            let kind = record(name).unwrap();
            for (field, values) in fields {
                let mut columns = ColumnsBuilder::new(kind, 2);
                for value in values {
                    columns.append_str(kind.position(kind.identity[0]).unwrap(), "0x01").unwrap();
                    columns.append_str(kind.position(field).unwrap(), value).unwrap();
                    columns.finish_row();
                }
                let columns = columns.finish();
                let keys = record_keys(&columns);
                assert_eq!(keys[0], keys[1], "{name}.{field}");
                let rows = KeyedRows::new(&columns);
                assert_ne!(rows.key(0), rows.key(1), "{name}.{field}");
            }
        }
    }

    #[test]
    fn keys_of_a_list_stay_the_same_and_do_not_depend_on_the_projection() {
        let kind = record("ChainTransaction").unwrap();
        let mut columns = ColumnsBuilder::new(kind, 1);
        for (field, value) in [("tx_id", "0x01"), ("block_hash", "0xa"), ("height", "7"), ("state", "pending")] {
            columns.append_str(kind.position(field).unwrap(), value).unwrap();
        }
        columns.finish_row();
        assert_eq!(KeyedRows::new(&columns.finish()).key(0), 10_128_869_636_956_991_747);
        let needed = Projection::with_keys(kind, &[]);
        let block = &KeyColumns::of(kind).block;
        assert!(block.len() == 2 && block.iter().all(|column| needed.contains(*column)));
    }
}
