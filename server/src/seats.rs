//! A bounded number of places for connections, and the wait until all are free.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Places for connections.
#[derive(Debug)]
pub(crate) struct Seats {
    max: usize,
    taken: AtomicUsize,
    freed: Notify,
}

/// A place taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Seats>);

impl Seats {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, taken: AtomicUsize::new(0), freed: Notify::new() })
    }

    /// Takes a place if one is free.
    pub(crate) fn take(seats: &Arc<Self>) -> Option<Seat> {
        // Relaxed: a count; whoever takes the last place, the bound holds.
        let taken = seats.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            (taken < seats.max).then_some(taken + 1)
        });
        taken.ok().map(|_| Seat(Arc::clone(seats)))
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        // Relaxed: a report.
        self.taken.load(Ordering::Relaxed)
    }

    /// Waits until no place is taken.
    ///
    /// # Cancel safety
    ///
    /// Waits only.
    pub(crate) async fn empty(&self) {
        loop {
            let freed = self.freed.notified();
            // Acquire: pairs with the Release of the last seat: its session is gone.
            if self.taken.load(Ordering::Acquire) == 0 {
                return;
            }
            freed.await;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `empty`.
        if self.0.taken.fetch_sub(1, Ordering::Release) == 1 {
            self.0.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_places_than_there_are() {
        let seats = Seats::new(2);
        let one = Seats::take(&seats).unwrap();
        let _other = Seats::take(&seats).unwrap();
        assert!(Seats::take(&seats).is_none());
        drop(one);
        assert!(Seats::take(&seats).is_some());
    }

    #[tokio::test]
    async fn the_last_one_to_leave_is_waited_for() {
        let seats = Seats::new(2);
        let (one, other) = (Seats::take(&seats).unwrap(), Seats::take(&seats).unwrap());
        let mut empty = std::pin::pin!(seats.empty());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut is_empty = || empty.as_mut().poll(&mut context).is_ready();
        assert!(!is_empty());
        drop(one);
        assert!(!is_empty());
        drop(other);
        assert!(is_empty());
    }
}
