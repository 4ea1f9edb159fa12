//! `SharedHeights`: what the lists of a set need alike to know their heights. The first of them requests it, and the others
//! wait for it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::height_search::{Block, TimePosition};
use crate::client::Error;
use crate::process::PerProcess;
use crate::query::follow::ChainHead;

#[derive(Default)]
pub(super) struct SharedHeights {
    /// Positions of times in Unix milliseconds.
    pub positions: Shared<i64, TimePosition>,
    /// Blocks by height.
    pub blocks: Shared<i64, Option<Block>>,
    /// The head of the chain as followers know it.
    pub heads: Shared<(), Option<ChainHead>>,
}

/// Values by key, for as long as they may be used.
pub(super) struct Shared<K, V>(PerProcess<Values<K, V>>);

type Values<K, V> = Arc<Mutex<HashMap<K, Value<V>>>>;

struct Value<V> {
    value: V,
    requested: Instant,
    max_age: Duration,
}

impl<K, V> Default for Shared<K, V> {
    fn default() -> Self {
        Self(PerProcess::new())
    }
}

impl<K: Eq + Hash, V: Clone> Shared<K, V> {
    /// Returns the value of a key. `request` is called unless another list has requested it; it returns the value with the
    /// age up to which others may use it.
    pub async fn get(&self, key: K, request: impl AsyncFnOnce() -> Result<(V, Duration), Error>) -> Result<V, Error> {
        let Ok(values) = self.0.get(|| Ok::<_, Infallible>(Arc::default()));
        // Held during the request, for which the other lists wait.
        let mut values = values.lock().await;
        if let Some(known) = values.get(&key)
            && known.requested.elapsed() < known.max_age
        {
            return Ok(known.value.clone());
        }
        let requested = Instant::now();
        let (value, max_age) = request().await?;
        values.insert(key, Value { value: value.clone(), requested, max_age });
        Ok(value)
    }
}
