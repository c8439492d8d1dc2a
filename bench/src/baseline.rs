//! The designs to beat, and ours, behind one trait.
//!
//! | name | what it is |
//! |---|---|
//! | [`OldMutex`] | hash maps under one process-wide mutex, strings built a lookup, handles cloned |
//! | [`FairMutex`] | the data that ours has (ids, vectors, a cursor, counters) under one mutex |
//! | [`SharedLock`] | the same data under a reader-writer lock, its counters atomic |
//! | [`Actor`] | the same data owned by one thread, asked through a channel |
//! | [`Ours`] | the registry of `slipswitch-core` over one of its cells |
//!
//! All keep the same contract (`tests/dispatchers.rs` holds them to it): a selection reserves one
//! credit of a worker that serves the pool, or says that there is none; nobody gets above the
//! credit; a worker that left is never selected again; every release counts.

mod actor;
mod fair;
mod old;
mod ours;
mod shared;

use slipswitch_core::PoolKey;

pub use actor::Actor;
pub use fair::{FairMutex, Lock, ParkingLot, StdLock, Unit};
pub use old::{Handle, OldMutex};
pub use ours::{Following, Manner, Named, OnNode, Ours, Strict};
pub use shared::SharedLock;

/// Selects workers for tasks and keeps count of their credit.
pub trait Dispatcher: Send + Sync + Sized + 'static {
    /// What rows of a table call it.
    const NAME: &'static str;
    /// Whether selections rotate over the workers of a pool.
    const ROTATES: bool = true;

    /// The presence of a worker. Given back by [`Dispatcher::deregister`].
    type Registration: Send + Sync;
    /// What a caller keeps to name a pool.
    type Key: Send + Sync;
    /// One credit of one worker. Given back by [`Dispatcher::release`].
    type Reservation<'a>: Send
    where
        Self: 'a;

    /// Creates an empty one.
    fn create() -> Self;

    /// Adds a worker to the pools named by `keys`. Workers are numbered from 1 in the order of
    /// their registration.
    fn register(&self, keys: &[PoolKey], credit: u32) -> Self::Registration;

    /// Returns a worker's number.
    fn number(&self, registration: &Self::Registration) -> u64;

    /// Removes a worker. Selections that start after it returned never yield that worker.
    fn deregister(&self, registration: Self::Registration);

    /// Makes what [`Dispatcher::select`] wants as the name of a pool.
    fn key(&self, pool: &PoolKey) -> Self::Key;

    /// Chooses a worker of the pool and reserves one of its credits.
    fn select(&self, key: &Self::Key) -> Option<Self::Reservation<'_>>;

    /// Returns the number of the worker whose credit it is.
    fn worker(&self, reservation: &Self::Reservation<'_>) -> u64;

    /// Gives the credit back.
    fn release(&self, reservation: Self::Reservation<'_>);
}
