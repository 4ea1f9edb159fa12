//! Chains in memory, kept as they were filled for the services that come next: to copy one takes a tenth of the time to fill it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::database;
use super::settings::ServiceError;
use super::synthesis::World;

/// Most transactions of all chains that are kept.
const MAX_KEPT: u64 = 20_000;

/// The newest last.
static CHAINS: Mutex<VecDeque<Arc<Chain>>> = Mutex::new(VecDeque::new());

struct Chain {
    world: Arc<World>,
    filled: Mutex<Connection>,
}

/// A chain of one's own in memory.
pub fn open(seed: u64, transactions: u64) -> Result<(Arc<World>, Connection), ServiceError> {
    if let Some(chain) = kept(seed, transactions)
        && let Ok(filled) = chain.filled.try_lock()
    {
        return Ok((chain.world.clone(), copy_of(&filled)?));
    }
    let world = Arc::new(World::new(seed, transactions));
    let filled = database::filled(&world)?;
    if transactions > MAX_KEPT {
        return Ok((world, filled));
    }
    let copy = copy_of(&filled)?;
    keep(Chain { world: world.clone(), filled: Mutex::new(filled) });
    Ok((world, copy))
}

// Locks are not waited for: a forked child may have a copy of one that nothing releases.

fn kept(seed: u64, transactions: u64) -> Option<Arc<Chain>> {
    let chains = CHAINS.try_lock().ok()?;
    chains.iter().find(|chain| chain.world.seed == seed && chain.world.transactions == transactions).cloned()
}

fn keep(chain: Chain) {
    let Ok(mut chains) = CHAINS.try_lock() else { return };
    chains.push_back(Arc::new(chain));
    while chains.iter().map(|chain| chain.world.transactions).sum::<u64>() > MAX_KEPT {
        chains.pop_front();
    }
}

fn copy_of(filled: &Connection) -> rusqlite::Result<Connection> {
    const ALL_PAGES: i32 = -1;
    let mut copy = database::empty()?;
    Backup::new(filled, &mut copy)?.step(ALL_PAGES)?;
    Ok(copy)
}
