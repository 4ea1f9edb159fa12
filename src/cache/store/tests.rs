use super::*;
use crate::cache::Extent;
use crate::columns::ColumnsBuilder;
use crate::interface::record;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("chainframe-cache-{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn block() -> &'static RecordType {
    record("Block").unwrap()
}

fn key(service: &str, query: i64) -> Key {
    Key::new(format!("https://{service}"), "main", "blocks", &serde_json::json!({ "height": query }), "Block")
}

fn entry(rows: usize, read_at: i64) -> Entry {
    let mut columns = ColumnsBuilder::new(block(), rows);
    (0..rows).for_each(|_| columns.finish_row());
    let rows: Arc<[Columns]> = vec![columns.finish()].into();
    Entry { facts: Facts { extent: Extent::Settled, read_at }, rows }
}

fn count(cache: &Cache, key: &Key, now: i64) -> Option<usize> {
    cache.get(key, block(), now).unwrap().1.map(|entry| entry.rows.iter().map(Columns::rows).sum())
}

#[test]
fn entries_are_kept_apart_by_query_and_service_and_discarded_by_service() {
    let directory = Directory::new("keys");
    let cache = Cache::new(directory.0.clone(), 12, 60.0, 1 << 20).unwrap();
    for (service, query, rows) in [("a", 1, 3), ("a", 2, 4), ("b", 1, 5)] {
        cache.put(&key(service, query), block(), &entry(rows, 0), 0).unwrap();
    }
    assert_eq!(count(&cache, &key("a", 1), 0), Some(3));
    assert_eq!(count(&cache, &key("a", 2), 0), Some(4));
    assert_eq!(count(&cache, &key("b", 1), 0), Some(5));
    assert_eq!(count(&cache, &key("b", 2), 0), None);
    cache.discard_service(&key("a", 9)).unwrap();
    assert_eq!(count(&cache, &key("a", 2), 0), None);
    assert_eq!(count(&cache, &key("b", 1), 0), Some(5));
    assert_eq!(cache.clear().unwrap(), 1);
    assert_eq!(count(&cache, &key("b", 1), 0), None);
}

#[test]
fn nothing_is_kept_that_was_read_before_its_service_was_discarded() {
    let directory = Directory::new("removals");
    let cache = Cache::new(directory.0.clone(), 12, 60.0, 1 << 20).unwrap();
    let anchor = Anchor { height: 7, block_hash: "0x7".to_owned() };
    let mut reading = key("a", 1);
    cache.raise_anchor(&reading, "MAIN", &anchor).unwrap();
    cache.discard_service(&key("a", 2)).unwrap();
    for is_begun_again in [false, true] {
        if is_begun_again {
            reading.removals = cache.removals(&reading).unwrap();
        }
        cache.raise_anchor(&reading, "MAIN", &anchor).unwrap();
        cache.saw_head(&reading, "MAIN", 9, 0).unwrap();
        assert_eq!(cache.put(&reading, block(), &entry(3, 0), 0).unwrap(), is_begun_again);
        assert_eq!(count(&cache, &reading, 0), is_begun_again.then_some(3));
        assert_eq!(cache.anchor(&reading, "MAIN").unwrap(), is_begun_again.then(|| anchor.clone()));
        assert_eq!(cache.head(&reading, "MAIN").unwrap(), is_begun_again.then_some((9, 0)));
    }
    // A result that was looked up before is not compared with the anchor of the new chain.
    assert_eq!(cache.anchor(&key("a", 2), "MAIN").unwrap(), None);
}

#[test]
fn old_entries_and_those_of_the_future_are_not_returned() {
    let directory = Directory::new("age");
    let cache = Cache::new(directory.0.clone(), 12, 60.0, 1 << 20).unwrap();
    cache.put(&key("a", 1), block(), &entry(1, 1_000), 1_000).unwrap();
    assert_eq!(count(&cache, &key("a", 1), 61_000), Some(1));
    assert_eq!(count(&cache, &key("a", 1), 61_001), None);
    assert_eq!(count(&cache, &key("a", 1), 999), None);
    cache.put(&key("a", 2), block(), &entry(1, 61_001), 61_001).unwrap();
    assert_eq!(cache.list().unwrap().len(), 1);
}

#[test]
fn entries_that_were_used_longest_ago_are_removed_beyond_the_bound() {
    let directory = Directory::new("size");
    let size = to_json(block(), &entry(1, 0).rows).unwrap().len() as i64;
    let cache = Cache::new(directory.0.clone(), 12, 60.0, 2 * size).unwrap();
    for query in 1..3 {
        cache.put(&key("a", query), block(), &entry(1, query), query).unwrap();
    }
    assert_eq!(count(&cache, &key("a", 1), 3), Some(1));
    cache.put(&key("a", 3), block(), &entry(1, 4), 4).unwrap();
    let left: Vec<_> = (1..4).map(|query| count(&cache, &key("a", query), 5)).collect();
    assert_eq!(left, [Some(1), None, Some(1)]);
    cache.put(&key("a", 4), block(), &entry(100_000, 6), 6).unwrap();
    assert_eq!(count(&cache, &key("a", 4), 6), None);
}

#[test]
fn damaged_rows_are_discarded() {
    let directory = Directory::new("damage");
    let cache = Cache::new(directory.0.clone(), 12, 60.0, 1 << 20).unwrap();
    cache.put(&key("a", 1), block(), &entry(2, 0), 0).unwrap();
    let changed = "update entries set facts = replace(facts, 'Settled', 'settled')";
    cache.with(|connection| connection.execute(changed, [])).unwrap();
    assert_eq!(count(&cache, &key("a", 1), 0), None);
    assert!(cache.list().unwrap().is_empty());
}

#[test]
fn rows_of_another_query_are_discarded() {
    let directory = Directory::new("moved");
    let cache = Cache::new(directory.0.clone(), 12, 60.0, 1 << 20).unwrap();
    cache.put(&key("a", 1), block(), &entry(2, 0), 0).unwrap();
    let digest = key("a", 2).digest;
    cache.with(|connection| connection.execute("update entries set digest = ?1", [&digest])).unwrap();
    assert_eq!(count(&cache, &key("a", 2), 0), None);
}

#[test]
fn heads_and_anchors_rise_only() {
    let directory = Directory::new("heads");
    let cache = Cache::new(directory.0.clone(), 12, 60.0, 1 << 20).unwrap();
    let block = |height| Anchor { height, block_hash: format!("0x{height}") };
    assert_eq!(cache.head(&key("a", 1), "MAIN").unwrap(), None);
    for height in [7, 9, 8] {
        cache.saw_head(&key("a", 1), "MAIN", height, height).unwrap();
        cache.raise_anchor(&key("a", 1), "MAIN", &block(height)).unwrap();
    }
    assert_eq!(cache.head(&key("a", 2), "MAIN").unwrap(), Some((9, 9)));
    assert_eq!(cache.anchor(&key("a", 2), "MAIN").unwrap(), Some(block(9)));
    assert_eq!(cache.anchor(&key("a", 2), "ZONE").unwrap(), None);
}

#[test]
fn a_file_that_is_no_database_is_a_failure_and_not_a_result() {
    let directory = Directory::new("foreign");
    let cache = Cache::new(directory.0.clone(), 12, 60.0, 1 << 20).unwrap();
    std::fs::write(cache.path(), "something else, longer than the header of a database").unwrap();
    assert!(cache.get(&key("a", 1), block(), 0).unwrap_err().text.ends_with(", and was removed"));
    cache.put(&key("a", 1), block(), &entry(1, 0), 0).unwrap();
    assert_eq!(count(&cache, &key("a", 1), 0), Some(1));
}

#[test]
fn database_that_another_process_has_locked_is_not_waited_for_again() {
    let cache = Cache::new(std::env::temp_dir(), 12, 60.0, 1 << 20).unwrap();
    let failure = |code| cache.failed(&rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None));
    let mut turn = Turn::default();
    for (code, is_tried_again) in [(rusqlite::ffi::SQLITE_FULL, true), (rusqlite::ffi::SQLITE_BUSY, false)] {
        assert!(turn.take(|| Err::<(), _>(failure(code))).is_err());
        let mut is_tried = false;
        let outcome = turn.take(|| {
            is_tried = true;
            Ok(())
        });
        assert_eq!((outcome.is_ok(), is_tried), (is_tried_again, is_tried_again));
    }
}
