//! Record keys: 64-bit hashes of the fields that identify a record. Cursors and export manifests contain them, so they
//! are the same on every platform and in every version.
//!
//! While a list is read, a record is identified together with its block: a reorganization that includes it again in
//! another block makes it another record.

use crate::columns::{Column, Columns, Value};
use crate::interface::{Number, RecordType};
use crate::query::snapshot::Rows;

/// Hash of a sequence of byte strings. Each string is read in words of eight bytes, little-endian, the last one padded
/// with zeros; each word is mixed with its number of bytes, then multiplied and folded. 0xff ends a string.
struct KeyHasher(u64);

impl KeyHasher {
    fn new() -> Self {
        Self(0x5851_f42d_4c95_7f2d)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0 ^ u64::from_le_bytes(word) ^ chunk.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 ^= self.0 >> 29;
        }
    }

    fn end_string(&mut self) {
        self.write(&[0xff]);
    }

    /// Hashes and addresses mean the same in either letter case, and services send both.
    fn write_text(&mut self, text: &str) {
        let is_hex = text.starts_with("0x") || text.starts_with("0X");
        match is_hex && text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => self.write(text.to_ascii_lowercase().as_bytes()),
            false => self.write(text.as_bytes()),
        }
    }

    /// A number by its value.
    fn write_number(&mut self, text: &str) {
        match Number::parse(text) {
            Some(number) if !is_shortest(text) => self.write(number.shortest().as_bytes()),
            Some(_) | None => self.write(text.as_bytes()),
        }
    }

    fn write_value(&mut self, value: &Value<'_>) {
        match value {
            Value::Null => {}
            Value::Integer(number) | Value::Time(number) => self.write(&number.to_le_bytes()),
            Value::Boolean(value) => self.write(&[u8::from(*value)]),
            Value::Number(string) | Value::Uint256(string) => self.write_number(string),
            Value::Utf8(string) => self.write_text(string),
            Value::Utf8List(strings) => {
                for string in strings {
                    self.write_text(string);
                    self.end_string();
                }
            }
        }
    }

    fn write_record(&mut self, columns: &Columns, row: usize) {
        for (column, _) in columns.record().sent() {
            self.write_value(&columns.value(column, row));
            self.end_string();
        }
    }
}

/// True for a number that has no other, shorter notation.
fn is_shortest(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let whole = digits.split('.').next().unwrap_or_default();
    let has_zeros = whole.len() > 1 && whole.starts_with('0') || digits.contains('.') && digits.ends_with(['0', '.']);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_plain && !whole.is_empty() && !has_zeros && text != "-0"
}

/// Columns of the block of a record. They change if the record is included again in another block.
fn block_columns(record: &RecordType) -> impl Iterator<Item = usize> {
    [record.position("block_hash"), record.height()].into_iter().flatten()
}

/// Key of one record: of its identifying fields, or of all its fields if it has none of them.
fn record_key(columns: &Columns, row: usize) -> u64 {
    let mut hasher = KeyHasher::new();
    let record = columns.record();
    let mut is_identified = false;
    for column in record.identity.iter().filter_map(|name| record.position(name)) {
        if let Some(string) = columns.text(column, row) {
            is_identified |= !string.is_empty();
            hasher.write_value(&columns.value(column, row));
        } else if let Column::Integer(_) = columns.column(column) {
            hasher.write_value(&columns.value(column, row));
        }
        hasher.end_string();
    }
    if !is_identified {
        hasher.write_record(columns, row);
    }
    hasher.0
}

/// Keys of all records of a page.
pub fn record_keys(columns: &Columns) -> Vec<u64> {
    (0..columns.rows()).map(|row| record_key(columns, row)).collect()
}

/// Hashes of all fields of the records of a page.
pub fn content_keys(columns: &Columns) -> Vec<u64> {
    let keys = (0..columns.rows()).map(|row| {
        let mut hasher = KeyHasher::new();
        hasher.write_record(columns, row);
        hasher.0
    });
    keys.collect()
}

/// Hashes of the hashes of the blocks of a page's records; 0 where there is none.
pub fn block_keys(columns: &Columns) -> Vec<u64> {
    let column = columns.record().position("block_hash");
    (0..columns.rows()).map(|row| column.and_then(|column| block_key(columns, column, row)).unwrap_or(0)).collect()
}

fn block_key(columns: &Columns, column: usize, row: usize) -> Option<u64> {
    // Some services have zeros in place of a hash that they do not know.
    let hash = columns.text(column, row).filter(|hash| hash.bytes().any(|byte| !matches!(byte, b'0' | b'x' | b'X')))?;
    let mut hasher = KeyHasher::new();
    hasher.write_text(hash);
    Some(hasher.0)
}

impl Rows for Columns {
    fn len(&self) -> usize {
        self.rows()
    }

    fn key(&self, row: usize) -> u64 {
        let mut hasher = KeyHasher(record_key(self, row));
        for column in block_columns(self.record()) {
            hasher.write_value(&self.value(column, row));
            hasher.end_string();
        }
        hasher.0
    }

    fn height(&self, row: usize) -> Option<i64> {
        match self.value(self.record().height()?, row) {
            Value::Integer(height) => Some(height),
            _ => None,
        }
    }

    fn block(&self, row: usize) -> Option<u64> {
        block_key(self, self.record().position("block_hash")?, row)
    }
}

/// Records of a page with their keys, which several steps compare.
pub struct KeyedRows<'a> {
    columns: &'a Columns,
    keys: Vec<u64>,
}

impl<'a> KeyedRows<'a> {
    pub fn new(columns: &'a Columns) -> Self {
        Self { columns, keys: (0..columns.rows()).map(|row| Rows::key(columns, row)).collect() }
    }
}

impl Rows for KeyedRows<'_> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, row: usize) -> u64 {
        self.keys[row]
    }

    fn height(&self, row: usize) -> Option<i64> {
        self.columns.height(row)
    }

    fn block(&self, row: usize) -> Option<u64> {
        self.columns.block(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{ColumnsBuilder, Projection};
    use crate::interface::{RECORDS, record};

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
        assert_eq!(record_keys(&columns.finish()), keys);
    }

    /// The key of a record that is identified, and that of one without a value: a hash of all fields.
    #[test]
    fn keys_of_every_record_type_stay_the_same() {
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
        let found = RECORDS.map(|record| {
            let mut columns = ColumnsBuilder::new(record, 2);
            columns.append_str(record.position(record.identity[0]).unwrap(), "0x01").unwrap();
            columns.finish_row();
            columns.finish_row();
            (record.name, record_keys(&columns.finish()).try_into().unwrap())
        });
        assert_eq!(found, pinned);
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
                assert_ne!(columns.key(0), columns.key(1), "{name}.{field}");
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
        assert_eq!(columns.finish().key(0), 10_128_869_636_956_991_747);
        let needed = Projection::with_keys(kind, &[]);
        assert!(block_columns(kind).all(|column| needed.contains(column)));
    }
}
