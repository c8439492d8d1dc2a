//! The waiting line of a worker: pools that found no credit, first in, first out.
//!
//! Many pools queue up, any releaser may pop. loom cannot look into the real queue, so the models
//! run over a locked stand-in.

#[cfg(not(slipswitch_loom))]
use crossbeam_queue::SegQueue;

#[cfg(slipswitch_loom)]
use crate::sync::{AtomicU64, Mutex, Ordering};

/// A first in, first out queue with many producers and many consumers.
#[cfg(not(slipswitch_loom))]
#[derive(Debug)]
pub(crate) struct Line<T>(SegQueue<T>);

#[cfg(not(slipswitch_loom))]
impl<T> Line<T> {
    pub(crate) fn new() -> Self {
        Self(SegQueue::new())
    }

    pub(crate) fn push(&self, value: T) {
        self.0.push(value);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.0.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The stand-in for the models.
///
/// Looking orders nothing after it: whoever finds the line empty is not ordered before a later
/// push, as with the real queue. A lock alone would promise that.
#[cfg(slipswitch_loom)]
#[derive(Debug)]
pub(crate) struct Line<T> {
    len: AtomicU64,
    values: Mutex<std::collections::VecDeque<T>>,
}

#[cfg(slipswitch_loom)]
impl<T> Line<T> {
    pub(crate) fn new() -> Self {
        Self { len: AtomicU64::new(0), values: Mutex::new(std::collections::VecDeque::new()) }
    }

    pub(crate) fn push(&self, value: T) {
        let mut values = self.values.lock();
        values.push_back(value);
        // Release: a stand-in for the queue's own.
        self.len.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        let mut values = self.values.lock();
        let value = values.pop_front()?;
        // Relaxed: under the lock, so whoever finds the line empty afterwards sees it.
        self.len.fetch_sub(1, Ordering::Relaxed);
        Some(value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        // Acquire: a stand-in for the queue's own.
        self.len.load(Ordering::Acquire) == 0
    }
}
