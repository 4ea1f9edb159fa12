//! Record keys: 64-bit hashes of the fields that identify a record. Cursors and export manifests contain them, so they
//! are the same on every platform and in every version.
//!
//! While a list is read, a record is identified together with its block: a reorganization that includes it again in
//! another block makes it another record.

use crate::columns::{Columns, Value};
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
        self.write_words(bytes, |word| word);
    }

    fn end_string(&mut self) {
        self.mix(0xff, 1);
    }

    /// Hashes and addresses mean the same in either letter case, and services send both.
    fn write_text(&mut self, text: &str) {
        let is_hex = text.starts_with("0x") || text.starts_with("0X");
        match is_hex {
            true => self.write_words(text.as_bytes(), ascii_lowercase),
            false => self.write(text.as_bytes()),
        }
    }

    fn write_words(&mut self, bytes: &[u8], mapped: impl Fn(u64) -> u64) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.mix(mapped(u64::from_le_bytes(*word)), 8);
        }
        if !rest.is_empty() {
            let word = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.mix(mapped(word), rest.len());
        }
    }

    fn mix(&mut self, word: u64, bytes: usize) {
        self.0 = (self.0 ^ word ^ bytes as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }

    /// A number by its value.
    fn write_number(&mut self, text: &str) {
        match is_shortest(text) {
            true => self.write(text.as_bytes()),
            false => self.write(Number::parse(text).map_or_else(|| text.into(), |number| number.shortest()).as_bytes()),
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

    fn write_values(&mut self, columns: &Columns, of: &[usize], row: usize) {
        for column in of {
            self.write_value(&columns.value(*column, row));
            self.end_string();
        }
    }
}

/// Eight bytes of text, with the capital letters of ASCII in lower case: every record has some 300 bytes of hex.
fn ascii_lowercase(word: u64) -> u64 {
    const EACH_BYTE: u64 = u64::from_le_bytes([1; 8]);
    let ascii = word & (0x7f * EACH_BYTE);
    // The highest bit of each byte shows whether an addition has passed 0x7f.
    let is_from_a = ascii + u64::from(0x80 - b'A') * EACH_BYTE;
    let is_after_z = ascii + u64::from(0x7f - b'Z') * EACH_BYTE;
    let is_capital = is_from_a & !is_after_z & !word & (0x80 * EACH_BYTE);
    word | is_capital >> 2
}

/// True for a number that has no other, shorter notation.
fn is_shortest(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let point = digits.iter().position(|byte| *byte == b'.');
    let whole = &digits[..point.unwrap_or(digits.len())];
    let fraction = point.map(|point| &digits[point + 1..]);
    let is_whole_shortest = matches!(whole, [b'0'] | [b'1'..=b'9', ..]) && whole.iter().all(u8::is_ascii_digit);
    let is_fraction_shortest = fraction
        .is_none_or(|fraction| matches!(fraction, [.., b'1'..=b'9']) && fraction.iter().all(u8::is_ascii_digit));
    is_whole_shortest && is_fraction_shortest && text != "-0"
}

/// Columns that make the keys of records of a type: found by their names once for all rows of a page.
struct KeyColumns {
    identity: Vec<usize>,
    all: Vec<usize>,
    /// Columns of the block of a record. They change if the record is included again in another block.
    block: Vec<usize>,
    block_hash: Option<usize>,
    height: Option<usize>,
}

impl KeyColumns {
    fn of(record: &RecordType) -> Self {
        let block_hash = record.position("block_hash");
        Self {
            identity: record.identity.iter().filter_map(|name| record.position(name)).collect(),
            all: record.sent().map(|(column, _)| column).collect(),
            block: block_hash.into_iter().chain(record.height()).collect(),
            block_hash,
            height: record.height(),
        }
    }

    /// Key of one record: of its identifying fields, or of all its fields if it has none of them.
    fn record_key(&self, columns: &Columns, row: usize) -> u64 {
        let mut hasher = KeyHasher::new();
        let mut is_identified = false;
        for column in &self.identity {
            let value = columns.value(*column, row);
            is_identified |=
                matches!(value, Value::Utf8(text) | Value::Number(text) | Value::Uint256(text) if !text.is_empty());
            hasher.write_value(&value);
            hasher.end_string();
        }
        if !is_identified {
            hasher.write_values(columns, &self.all, row);
        }
        hasher.0
    }

    /// Hash of all fields of one record.
    fn content_key(&self, columns: &Columns, row: usize) -> u64 {
        let mut hasher = KeyHasher::new();
        hasher.write_values(columns, &self.all, row);
        hasher.0
    }

    /// Key of a record in its block.
    fn key_in_block(&self, columns: &Columns, row: usize) -> u64 {
        let mut hasher = KeyHasher(self.record_key(columns, row));
        hasher.write_values(columns, &self.block, row);
        hasher.0
    }

    fn block_key(&self, columns: &Columns, row: usize) -> Option<u64> {
        let hash = columns.text(self.block_hash?, row)?;
        // Some services have zeros in place of a hash that they do not know.
        if hash.bytes().all(|byte| matches!(byte, b'0' | b'x' | b'X')) {
            return None;
        }
        let mut hasher = KeyHasher::new();
        hasher.write_text(hash);
        Some(hasher.0)
    }
}

fn height(columns: &Columns, column: Option<usize>, row: usize) -> Option<i64> {
    match columns.value(column?, row) {
        Value::Integer(height) => Some(height),
        _ => None,
    }
}

/// Keys of all records of a page.
pub fn record_keys(columns: &Columns) -> Vec<u64> {
    let of = KeyColumns::of(columns.record());
    (0..columns.rows()).map(|row| of.record_key(columns, row)).collect()
}

/// Hashes of all fields of the records of a page.
pub fn content_keys(columns: &Columns) -> Vec<u64> {
    let of = KeyColumns::of(columns.record());
    (0..columns.rows()).map(|row| of.content_key(columns, row)).collect()
}

/// Hashes of the hashes of the blocks of a page's records; 0 where there is none.
pub fn block_keys(columns: &Columns) -> Vec<u64> {
    let of = KeyColumns::of(columns.record());
    (0..columns.rows()).map(|row| of.block_key(columns, row).unwrap_or(0)).collect()
}

impl Rows for Columns {
    fn len(&self) -> usize {
        self.rows()
    }

    fn key(&self, row: usize) -> u64 {
        KeyColumns::of(self.record()).key_in_block(self, row)
    }

    fn height(&self, row: usize) -> Option<i64> {
        height(self, self.record().height(), row)
    }

    fn block(&self, row: usize) -> Option<u64> {
        KeyColumns::of(self.record()).block_key(self, row)
    }
}

/// Records of a page with their keys, which several steps compare.
pub struct KeyedRows<'a> {
    columns: &'a Columns,
    of: KeyColumns,
    keys: Vec<u64>,
}

impl<'a> KeyedRows<'a> {
    pub fn new(columns: &'a Columns) -> Self {
        let of = KeyColumns::of(columns.record());
        let keys = (0..columns.rows()).map(|row| of.key_in_block(columns, row)).collect();
        Self { columns, of, keys }
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
        height(self.columns, self.of.height, row)
    }

    fn block(&self, row: usize) -> Option<u64> {
        self.of.block_key(self.columns, row)
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
    fn capital_letters_of_ascii_and_no_other_bytes_become_lower_case() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                let mut word = [b'0'; 8];
                word[place] = byte;
                let expected = u64::from_le_bytes(word.map(|byte| byte.to_ascii_lowercase()));
                assert_eq!(ascii_lowercase(u64::from_le_bytes(word)), expected, "{byte:#x} at {place}");
            }
        }
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
        let block = KeyColumns::of(kind).block;
        assert!(block.len() == 2 && block.into_iter().all(|column| needed.contains(column)));
    }
}
