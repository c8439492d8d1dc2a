//! The waiting line of a worker: pools that found no credit, first in, first out.
//!
//! Many pools queue up, any releaser may pop. loom cannot look into the real queue, so the models
//! run over a locked stand-in.

#[cfg(not(slipswitch_loom))]
use crossbeam_queue::SegQueue;

#[cfg(slipswitch_loom)]
use crate::sync::Mutex;

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
#[cfg(slipswitch_loom)]
#[derive(Debug)]
pub(crate) struct Line<T>(Mutex<std::collections::VecDeque<T>>);

#[cfg(slipswitch_loom)]
impl<T> Line<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(std::collections::VecDeque::new()))
    }

    pub(crate) fn push(&self, value: T) {
        self.0.lock().push_back(value);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.0.lock().pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}
