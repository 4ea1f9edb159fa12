//! `SharedHeights`: what the lists of a set need alike to know their heights. The first of them requests it, and the others
//! wait for it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::height_search::TimedBlock;
use crate::client::Error;
use crate::process::PerProcess;
use crate::query::follow::ChainHead;
use crate::query::results::{Cursor, SearchState, SharedShown, TimePosition};

/// Time for which lists begin with what an earlier run has found: a reorganization may move positions near the head.
const MAX_AGE_OF_SEARCH: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct SharedHeights {
    /// Positions of times in Unix milliseconds.
    pub positions: Shared<i64, Found<TimePosition>>,
    /// Blocks by height.
    pub blocks: Shared<i64, Found<Option<TimedBlock>>>,
    /// The head of the chain as followers know it.
    pub heads: Shared<(), Option<ChainHead>>,
    /// Records that responses beside those of the lists showed, where a cache is used.
    pub shown: SharedShown,
    /// State of the searches of an earlier run of the set, and the time at which it was taken over.
    search: Option<(Arc<SearchState>, Instant)>,
}

impl SharedHeights {
    /// Heights of a set that a run begins, or continues.
    pub fn continuing(start: Option<&Cursor>) -> Self {
        let search = start.and_then(|start| start.search.clone()).map(|search| (search, Instant::now()));
        Self { search, ..Self::default() }
    }

    /// State of the searches of an earlier run, for the lists that begin with this one.
    pub fn search(&self) -> Option<Arc<SearchState>> {
        self.search.as_ref().filter(|(_, since)| since.elapsed() < MAX_AGE_OF_SEARCH).map(|(search, _)| search.clone())
    }
}

/// A value, and whether empty responses may have made it wrong: each list that uses it has that reason.
#[derive(Clone)]
pub(super) struct Found<V> {
    pub value: V,
    pub is_doubtful: bool,
}

/// Values by key, for as long as they may be used.
pub(super) struct Shared<K, V>(PerProcess<Values<K, V>>);

type Values<K, V> = Arc<Mutex<HashMap<K, Value<V>>>>;

struct Value<V> {
    value: V,
    arrived: Instant,
    max_age: Duration,
}

impl<K, V> Default for Shared<K, V> {
    fn default() -> Self {
        Self(PerProcess::new())
    }
}

impl<K: Eq + Hash, V: Clone> Shared<K, V> {
    /// Forgets all values.
    pub async fn clear(&self) {
        self.0.get_with(Arc::default).lock().await.clear();
    }

    /// Returns the value of a key. `request` is called unless another list has requested it; it returns the value with the
    /// age up to which others may use it. One that arrives during the call is used whatever its age.
    pub async fn get(&self, key: K, request: impl AsyncFnOnce() -> Result<(V, Duration), Error>) -> Result<V, Error> {
        let values = self.0.get_with(Arc::default);
        let called = Instant::now();
        // Held during the request, for which the other lists wait.
        let mut values = values.lock().await;
        if let Some(known) = values.get(&key)
            && (known.arrived >= called || known.arrived.elapsed() < known.max_age)
        {
            return Ok(known.value.clone());
        }
        let (value, max_age) = request().await?;
        values.insert(key, Value { value: value.clone(), arrived: Instant::now(), max_age });
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn value_that_is_old_when_it_arrives_serves_those_who_waited_for_it() {
        let shared = Shared::<(), u64>::default();
        let requests = AtomicU64::new(0);
        let get = || {
            shared.get((), async || {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Ok((requests.fetch_add(1, Ordering::Relaxed), Duration::from_secs(1)))
            })
        };
        for round in 0..3 {
            let values: Vec<_> = join_all((0..8).map(|_| get())).await.into_iter().map(Result::unwrap).collect();
            assert_eq!(values, [round; 8]);
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }
}
