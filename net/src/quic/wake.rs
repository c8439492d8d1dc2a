//! Wakes a connection's writer from any thread.
//!
//! States: *running* (nothing noted), *noted* (look again before parking), *parked*. A notifier
//! swaps in *noted* and pays for a wake-up only if it replaced *parked*, so that a burst costs one
//! swap each and one wake-up in all. The writer parks by exchanging *running* for *parked*; a note
//! that came first makes the exchange fail, one that comes later finds *parked*: none is lost.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify as Bell;

const RUNNING: u8 = 0;
const NOTED: u8 = 1;
const PARKED: u8 = 2;

/// Wakes the owner of an inbox: here the writer of one connection.
#[derive(Debug)]
pub struct Wake {
    state: AtomicU8,
    /// Keeps one ring for a writer that parked but does not listen yet.
    bell: Bell,
}

impl Default for Wake {
    fn default() -> Self {
        Self::new()
    }
}

impl Wake {
    /// Makes a wake whose first wait returns at once.
    #[must_use]
    pub fn new() -> Self {
        Self { state: AtomicU8::new(NOTED), bell: Bell::new() }
    }

    /// Notes that the session may have something to send.
    pub fn wake(&self) {
        // AcqRel: what the caller did before is seen by the writer that takes the note; the
        // Acquire half pairs with the exchange in `noted`, so that the bell rung is the one waited
        // for.
        if self.state.swap(NOTED, Ordering::AcqRel) == PARKED {
            self.bell.notify_one();
        }
    }

    /// Takes the note if there is one.
    pub(super) fn take(&self) -> bool {
        // Acquire: pairs with the swap in `wake`; the writer then sees what was noted.
        self.state.swap(RUNNING, Ordering::AcqRel) == NOTED
    }

    /// Waits until something was noted, and takes the note.
    ///
    /// # Cancel safety
    /// A note that arrives while the future is dropped is found by the next wait.
    pub(super) async fn noted(&self) {
        loop {
            // AcqRel on success: a notifier that sees *parked* also sees all before it. Acquire on
            // failure: the note's author is seen.
            let parked =
                self.state.compare_exchange(RUNNING, PARKED, Ordering::AcqRel, Ordering::Acquire);
            // A wait dropped before left *parked* behind: listening again is all there is to do.
            if parked != Err(NOTED) {
                self.bell.notified().await;
            }
            // A ring may be left over from a wait that was dropped: then nothing was noted.
            if self.take() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
