//! A reader-writer lock around good data: selections read, registrations write.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crossbeam_utils::CachePadded;
use rustc_hash::FxHashMap;
use slipswitch_core::PoolKey;

use super::Dispatcher;
use super::fair::Unit;

#[derive(Debug, Default)]
struct Table {
    last: u64,
    workers: Vec<Worker>,
    free: Vec<u32>,
    pools: Vec<Pool>,
    by_key: FxHashMap<PoolKey, u32>,
}

#[derive(Debug)]
struct Worker {
    id: u64,
    limit: u32,
    in_flight: CachePadded<AtomicU32>,
    pools: Vec<u32>,
}

#[derive(Debug, Default)]
struct Pool {
    members: Vec<u32>,
    cursor: CachePadded<AtomicUsize>,
}

impl Table {
    fn pool(&mut self, key: &PoolKey) -> u32 {
        if let Some(&pool) = self.by_key.get(key) {
            return pool;
        }
        let pool = self.pools.len() as u32;
        self.pools.push(Pool::default());
        self.by_key.insert(key.clone(), pool);
        pool
    }
}

/// Good data under the standard library's reader-writer lock.
#[derive(Debug)]
pub struct SharedLock {
    table: RwLock<Table>,
}

impl SharedLock {
    #[inline]
    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dispatcher for SharedLock {
    const NAME: &'static str = "reader-writer lock";

    type Registration = Unit;
    type Key = u32;
    type Reservation<'a> = Unit;

    fn create() -> Self {
        Self { table: RwLock::default() }
    }

    fn register(&self, keys: &[PoolKey], limit: u32) -> Unit {
        let mut table = self.write();
        table.last += 1;
        let id = table.last;
        let pools: Vec<u32> = keys.iter().map(|key| table.pool(key)).collect();
        let slot = table.free.pop().unwrap_or(table.workers.len() as u32);
        for &pool in &pools {
            table.pools[pool as usize].members.push(slot);
        }
        let worker = Worker { id, limit, in_flight: CachePadded::default(), pools };
        match table.workers.get_mut(slot as usize) {
            Some(place) => *place = worker,
            None => table.workers.push(worker),
        }
        Unit { slot, id }
    }

    fn number(&self, registration: &Unit) -> u64 {
        registration.id
    }

    fn deregister(&self, registration: Unit) {
        let mut table = self.write();
        let worker = &mut table.workers[registration.slot as usize];
        worker.id = 0;
        for pool in std::mem::take(&mut worker.pools) {
            let members = &mut table.pools[pool as usize].members;
            if let Some(at) = members.iter().position(|&slot| slot == registration.slot) {
                members.remove(at);
            }
        }
        table.free.push(registration.slot);
    }

    fn key(&self, pool: &PoolKey) -> u32 {
        self.write().pool(pool)
    }

    #[inline]
    fn select(&self, key: &u32) -> Option<Unit> {
        let table = self.read();
        let pool = &table.pools[*key as usize];
        let len = pool.members.len();
        if len == 0 {
            return None;
        }
        // Relaxed, here and below: the lock orders what is shared, the counters only count.
        let ticket = pool.cursor.fetch_add(1, Ordering::Relaxed);
        (0..len).find_map(|step| {
            let slot = pool.members[ticket.wrapping_add(step) % len];
            let worker = &table.workers[slot as usize];
            let reserve = |held: u32| (held < worker.limit).then_some(held + 1);
            let taken =
                worker.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
            taken.is_ok().then_some(Unit { slot, id: worker.id })
        })
    }

    #[inline]
    fn worker(&self, reservation: &Unit) -> u64 {
        reservation.id
    }

    #[inline]
    fn release(&self, reservation: Unit) {
        let table = self.read();
        let worker = &table.workers[reservation.slot as usize];
        if worker.id == reservation.id {
            worker.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
