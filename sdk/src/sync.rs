//! The one door to locks and atomics of this crate.

use std::sync::{MutexGuard, PoisonError};

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::Condvar;

/// A mutex that a panic does not poison: every critical section here leaves whole data behind.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits on `condvar` for at most `limit`; true if the time ran out.
pub(crate) fn wait_for<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: std::time::Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, result) =
        condvar.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner);
    (guard, result.timed_out())
}
