//! Waiting for a change: subscribe, look again, then wait.
//!
//! A [`Ticket`] remembers the gate's epoch. Waiting on it ends at once if the gate opened since, so
//! a change between the look and the wait is never lost. The type offers no other order.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::mutant::mutant;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// An epoch that rises with every change, and those who wait for it to rise.
#[derive(Debug)]
pub struct Gate {
    epoch: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

/// A place in time: what happens after it was drawn ends the wait on it.
#[derive(Clone, Copy, Debug)]
#[must_use = "look at the condition after drawing the ticket, then wait on it"]
pub struct Ticket(u64);

impl Gate {
    /// Creates a gate.
    #[must_use]
    pub fn new() -> Self {
        Self { epoch: AtomicU64::new(0), waiting: Mutex::new(Vec::new()) }
    }

    /// Draws a ticket. Look at the condition after this, not before.
    pub fn subscribe(&self) -> Ticket {
        // Acquire [E5]: pairs with the AcqRel in `Gate::open`; what changed before that.
        Ticket(self.epoch.load(Ordering::Acquire))
    }

    /// Ends every wait on a ticket drawn before this call. Wakes all: a waiter that was dropped
    /// holds up nobody.
    pub fn open(&self) {
        // AcqRel [E5]: pairs with the Acquire in `Gate::subscribe` and in the wait.
        self.epoch.fetch_add(1, Ordering::AcqRel);
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for waker in waiting {
            waker.wake();
        }
    }

    /// Waits until the gate was opened after the ticket was drawn.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next wait on the same ticket ends at once if the gate
    /// was opened.
    pub fn wait(&self, ticket: Ticket) -> impl Future<Output = ()> + Send + '_ {
        Wait { gate: self, ticket }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

struct Wait<'a> {
    gate: &'a Gate,
    ticket: Ticket,
}

impl Future for Wait<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if mutant("L4a") {
            // A planted fault: the look comes before the place in the line.
            let open = self.gate.epoch.load(Ordering::Acquire) != self.ticket.0;
            if !open {
                self.gate.waiting.lock().push(context.waker().clone());
            }
            return if open { Poll::Ready(()) } else { Poll::Pending };
        }
        let mut waiting = self.gate.waiting.lock();
        // Acquire [E5]: under the lock: `open` raises the epoch before it takes the wakers.
        if self.gate.epoch.load(Ordering::Acquire) != self.ticket.0 {
            return Poll::Ready(());
        }
        if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        Poll::Pending
    }
}
