//! The design that this project replaces, written from its description.
//!
//! Hash maps under one mutex for the whole process. A lookup builds three owned strings. `select`
//! takes the smallest id of the pool and clones the handle, which carries two sets of strings.
//! `workers_for` clones every handle of the pool, sorts them and rotates the list.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use slipswitch_core::PoolKey;

use super::Dispatcher;

/// What the old design hands out for a worker: an owned copy.
#[derive(Clone, Debug)]
pub struct Handle {
    /// The worker's number.
    pub id: u64,
    /// Where it runs.
    pub node: Option<String>,
    /// The namespaces it serves.
    pub namespaces: HashSet<String>,
    /// The activity types it serves.
    pub activity_types: HashSet<String>,
}

type Key = (String, String, String);

#[derive(Debug)]
struct Worker {
    handle: Handle,
    keys: Vec<Key>,
    credit: u32,
    in_flight: u32,
}

#[derive(Debug, Default)]
struct Maps {
    last: u64,
    workers: HashMap<u64, Worker>,
    pools: HashMap<Key, HashSet<u64>>,
    turns: HashMap<Key, usize>,
}

/// The old design. `CREDITS` adds what it never had, a count of reservations under the same lock;
/// without it a selection is exactly its own.
#[derive(Debug)]
pub struct OldMutex<const CREDITS: bool> {
    maps: Mutex<Maps>,
}

impl<const CREDITS: bool> OldMutex<CREDITS> {
    fn lock(&self) -> MutexGuard<'_, Maps> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clones the handles of a pool in the order in which they are to be tried.
    #[must_use]
    pub fn workers_for(&self, pool: &PoolKey) -> Vec<Handle> {
        let key = owned(pool);
        let mut maps = self.lock();
        let maps = &mut *maps;
        let Some(members) = maps.pools.get(&key) else { return Vec::new() };
        let mut handles: Vec<Handle> = members
            .iter()
            .filter_map(|id| maps.workers.get(id))
            .map(|worker| worker.handle.clone())
            .collect();
        handles.sort_by_key(|handle| handle.id);
        let turn = maps.turns.entry(key).or_default();
        let first = *turn % handles.len().max(1);
        *turn = turn.wrapping_add(1);
        handles.rotate_left(first);
        handles
    }
}

fn owned(pool: &PoolKey) -> Key {
    (
        pool.namespace.as_str().to_owned(),
        pool.task_queue.as_str().to_owned(),
        pool.activity_type.as_str().to_owned(),
    )
}

impl<const CREDITS: bool> Dispatcher for OldMutex<CREDITS> {
    const NAME: &'static str = if CREDITS { "old mutex + credits" } else { "old mutex" };
    const ROTATES: bool = false;

    type Registration = u64;
    type Key = PoolKey;
    type Reservation<'a> = Handle;

    fn create() -> Self {
        Self { maps: Mutex::default() }
    }

    fn register(&self, keys: &[PoolKey], credit: u32) -> u64 {
        let mut maps = self.lock();
        maps.last += 1;
        let id = maps.last;
        let keys: Vec<Key> = keys.iter().map(owned).collect();
        let handle = Handle {
            id,
            node: None,
            namespaces: keys.iter().map(|key| key.0.clone()).collect(),
            activity_types: keys.iter().map(|key| key.2.clone()).collect(),
        };
        for key in &keys {
            maps.pools.entry(key.clone()).or_default().insert(id);
        }
        maps.workers.insert(id, Worker { handle, keys, credit, in_flight: 0 });
        id
    }

    fn number(&self, registration: &u64) -> u64 {
        *registration
    }

    fn deregister(&self, registration: u64) {
        let mut maps = self.lock();
        let Some(worker) = maps.workers.remove(&registration) else { return };
        for key in &worker.keys {
            if let Some(members) = maps.pools.get_mut(key) {
                members.remove(&registration);
                if members.is_empty() {
                    maps.pools.remove(key);
                    maps.turns.remove(key);
                }
            }
        }
    }

    fn key(&self, pool: &PoolKey) -> PoolKey {
        pool.clone()
    }

    fn select(&self, key: &PoolKey) -> Option<Handle> {
        let key = owned(key);
        let mut maps = self.lock();
        let maps = &mut *maps;
        let members = maps.pools.get(&key)?;
        let smallest = *members.iter().min()?;
        if !CREDITS {
            return maps.workers.get(&smallest).map(|worker| worker.handle.clone());
        }
        let has_credit =
            |id: &u64| maps.workers.get(id).is_some_and(|worker| worker.in_flight < worker.credit);
        let id = if has_credit(&smallest) {
            smallest
        } else {
            *members.iter().filter(|id| has_credit(id)).min()?
        };
        let worker = maps.workers.get_mut(&id)?;
        worker.in_flight += 1;
        Some(worker.handle.clone())
    }

    fn worker(&self, reservation: &Handle) -> u64 {
        reservation.id
    }

    fn release(&self, reservation: Handle) {
        if CREDITS && let Some(worker) = self.lock().workers.get_mut(&reservation.id) {
            worker.in_flight -= 1;
        }
    }
}
