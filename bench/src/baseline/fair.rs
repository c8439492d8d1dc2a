//! A mutex around good data: the rival that has all of ours except that it locks.

use std::fmt;
use std::sync::PoisonError;

use rustc_hash::FxHashMap;
use slipswitch_core::PoolKey;

use super::Dispatcher;

/// A lock around a value.
pub trait Lock: Send + Sync + 'static {
    /// What rows of a table call a dispatcher under this lock.
    const NAME: &'static str;
    /// The lock around a value of type `T`.
    type Of<T: Send + 'static>: Send + Sync + 'static;

    /// Puts a value under the lock.
    fn around<T: Send + 'static>(value: T) -> Self::Of<T>;

    /// Runs `work` on the value while the lock is held.
    fn with<T: Send + 'static, R>(lock: &Self::Of<T>, work: impl FnOnce(&mut T) -> R) -> R;
}

/// The standard library's mutex.
#[derive(Debug)]
pub struct StdLock;

impl Lock for StdLock {
    const NAME: &'static str = "fair mutex, std";
    type Of<T: Send + 'static> = std::sync::Mutex<T>;

    fn around<T: Send + 'static>(value: T) -> Self::Of<T> {
        std::sync::Mutex::new(value)
    }

    #[inline]
    fn with<T: Send + 'static, R>(lock: &Self::Of<T>, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut lock.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The mutex of `parking_lot`.
#[derive(Debug)]
pub struct ParkingLot;

impl Lock for ParkingLot {
    const NAME: &'static str = "fair mutex, parking_lot";
    type Of<T: Send + 'static> = parking_lot::Mutex<T>;

    fn around<T: Send + 'static>(value: T) -> Self::Of<T> {
        parking_lot::Mutex::new(value)
    }

    #[inline]
    fn with<T: Send + 'static, R>(lock: &Self::Of<T>, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut lock.lock())
    }
}

/// Good data without any synchronization of its own: numbers instead of strings, vectors, a
/// rotating cursor a pool, a counter a worker.
#[derive(Debug, Default)]
pub(super) struct Plain {
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
    in_flight: u32,
    pools: Vec<u32>,
}

#[derive(Debug, Default)]
struct Pool {
    members: Vec<u32>,
    cursor: usize,
}

/// One unit of one worker: its place, and the number that says whether it is still there.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    pub(super) slot: u32,
    pub(super) id: u64,
}

impl Plain {
    /// Returns the number of a pool, which is made if it is new.
    pub(super) fn pool(&mut self, key: &PoolKey) -> u32 {
        if let Some(&pool) = self.by_key.get(key) {
            return pool;
        }
        let pool = self.pools.len() as u32;
        self.pools.push(Pool::default());
        self.by_key.insert(key.clone(), pool);
        pool
    }

    pub(super) fn register(&mut self, keys: &[PoolKey], limit: u32) -> Unit {
        self.last += 1;
        let id = self.last;
        let pools: Vec<u32> = keys.iter().map(|key| self.pool(key)).collect();
        let worker = Worker { id, limit, in_flight: 0, pools };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.workers.len() as u32,
        };
        for &pool in &worker.pools {
            self.pools[pool as usize].members.push(slot);
        }
        match self.workers.get_mut(slot as usize) {
            Some(place) => *place = worker,
            None => self.workers.push(worker),
        }
        Unit { slot, id }
    }

    pub(super) fn deregister(&mut self, registration: Unit) {
        let worker = &mut self.workers[registration.slot as usize];
        worker.id = 0;
        for pool in std::mem::take(&mut worker.pools) {
            let members = &mut self.pools[pool as usize].members;
            if let Some(at) = members.iter().position(|&slot| slot == registration.slot) {
                members.remove(at);
            }
        }
        self.free.push(registration.slot);
    }

    #[inline]
    pub(super) fn select(&mut self, pool: u32) -> Option<Unit> {
        let pool = &mut self.pools[pool as usize];
        let len = pool.members.len();
        for _ in 0..len {
            if pool.cursor >= len {
                pool.cursor = 0;
            }
            let slot = pool.members[pool.cursor];
            pool.cursor += 1;
            let worker = &mut self.workers[slot as usize];
            if worker.in_flight < worker.limit {
                worker.in_flight += 1;
                return Some(Unit { slot, id: worker.id });
            }
        }
        None
    }

    #[inline]
    pub(super) fn release(&mut self, unit: Unit) {
        let worker = &mut self.workers[unit.slot as usize];
        if worker.id == unit.id {
            worker.in_flight -= 1;
        }
    }
}

/// Good data under one mutex.
pub struct FairMutex<L: Lock> {
    plain: L::Of<Plain>,
}

impl<L: Lock> fmt::Debug for FairMutex<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairMutex").finish_non_exhaustive()
    }
}

impl<L: Lock> Dispatcher for FairMutex<L> {
    const NAME: &'static str = L::NAME;

    type Registration = Unit;
    type Key = u32;
    type Reservation<'a> = Unit;

    fn create() -> Self {
        Self { plain: L::around(Plain::default()) }
    }

    fn register(&self, keys: &[PoolKey], credit: u32) -> Unit {
        L::with(&self.plain, |plain| plain.register(keys, credit))
    }

    fn number(&self, registration: &Unit) -> u64 {
        registration.id
    }

    fn deregister(&self, registration: Unit) {
        L::with(&self.plain, |plain| plain.deregister(registration));
    }

    fn key(&self, pool: &PoolKey) -> u32 {
        L::with(&self.plain, |plain| plain.pool(pool))
    }

    #[inline]
    fn select(&self, key: &u32) -> Option<Unit> {
        L::with(&self.plain, |plain| plain.select(*key))
    }

    #[inline]
    fn worker(&self, reservation: &Unit) -> u64 {
        reservation.id
    }

    #[inline]
    fn release(&self, reservation: Unit) {
        L::with(&self.plain, |plain| plain.release(reservation));
    }
}
