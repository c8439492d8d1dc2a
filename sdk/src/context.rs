//! What a handler knows about the task in its hands.

use std::fmt;

use bytes::Bytes;
use slipswitch_core::{Lease, PoolKey, TaskId};
use tokio::sync::Notify;

use crate::sync::{Arc, Mutex};

/// Why a handler should stop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// Someone cancelled the task.
    Requested,
    /// The lease is no longer this worker's: it ran out, or another worker has the task.
    LeaseLost,
    /// The attempt took longer than it was given.
    TimedOut,
    /// The worker leaves and does not wait any longer.
    Leaving,
    /// A reason that this version does not know.
    Other(String),
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "the task was cancelled",
            Self::LeaseLost => "the lease is no longer this worker's",
            Self::TimedOut => "the attempt took too long",
            Self::Leaving => "the worker leaves",
            Self::Other(reason) => reason,
        })
    }
}

/// Facts of one delivery, as the offer stated them.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) task_id: TaskId,
    pub(crate) lease: Lease,
    pub(crate) pool: PoolKey,
    pub(crate) attempt: u32,
    pub(crate) deliveries: u32,
    pub(crate) owner_key: Bytes,
    pub(crate) ordinal: u64,
    pub(crate) generation: u64,
    pub(crate) content_type: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// Where the answers of deliveries go.
pub(crate) trait Report: Send + Sync {
    fn answer(&self, delivery: Arc<Delivery>, answer: crate::handler::Answer);
}

/// One accepted delivery: its facts, and the word that tells its handler to stop.
pub(crate) struct Delivery {
    pub(crate) facts: Facts,
    cancel: Mutex<Option<CancelReason>>,
    cancelled: Notify,
    pub(crate) report: Arc<dyn Report>,
}

impl Delivery {
    pub(crate) fn new(facts: Facts, report: Arc<dyn Report>) -> Arc<Self> {
        let (cancel, cancelled) = (Mutex::new(None), Notify::new());
        Arc::new(Self { facts, cancel, cancelled, report })
    }

    /// Tells the handler to stop. The first reason stays.
    pub(crate) fn cancel(&self, reason: CancelReason) {
        self.cancel.lock().get_or_insert(reason);
        self.cancelled.notify_waiters();
    }

    pub(crate) fn cancel_reason(&self) -> Option<CancelReason> {
        self.cancel.lock().clone()
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.facts, f)
    }
}

/// The task in a handler's hands, and the worker's state. A clone is the same task.
pub struct Context<S = ()> {
    delivery: Arc<Delivery>,
    state: Arc<S>,
}

impl<S> Context<S> {
    pub(crate) const fn new(delivery: Arc<Delivery>, state: Arc<S>) -> Self {
        Self { delivery, state }
    }

    pub(crate) fn with_state<T>(self, state: Arc<T>) -> Context<T> {
        Context { delivery: self.delivery, state }
    }

    /// Returns the state that the worker was built with.
    #[must_use]
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Returns the task.
    #[must_use]
    pub fn task_id(&self) -> TaskId {
        self.delivery.facts.task_id
    }

    /// Returns the lease. Its epoch rises with every delivery: hand it to whatever the handler
    /// writes to, which then can refuse an older delivery that is still at work.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.delivery.facts.lease
    }

    /// Returns the pool that the task came from.
    #[must_use]
    pub fn pool(&self) -> &PoolKey {
        &self.delivery.facts.pool
    }

    /// Returns which attempt this is, from 1. Only failures of the handler spend one.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.delivery.facts.attempt
    }

    /// Returns how often the task was accepted by a worker before.
    #[must_use]
    pub fn deliveries(&self) -> u32 {
        self.delivery.facts.deliveries
    }

    /// Returns the producer's own key of the task, empty if it has none.
    #[must_use]
    pub fn owner_key(&self) -> &Bytes {
        &self.delivery.facts.owner_key
    }

    /// Returns the producer's own number of the task.
    #[must_use]
    pub fn ordinal(&self) -> u64 {
        self.delivery.facts.ordinal
    }

    /// Returns the generation of the producer's work that the task belongs to.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.delivery.facts.generation
    }

    /// Returns the content type of the input, empty if none was given.
    #[must_use]
    pub fn content_type(&self) -> &str {
        &self.delivery.facts.content_type
    }

    /// Returns the headers that the producer added.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.delivery.facts.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find_map(|(key, value)| (key == name).then_some(value))
    }

    /// Returns why the handler should stop, if it should.
    #[must_use]
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.delivery.cancel_reason()
    }

    /// Waits until the handler should stop.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future forgets nothing: the next call returns the same reason.
    pub async fn cancelled(&self) -> CancelReason {
        loop {
            // Subscribe, look, wait: a reason set in between wakes this very wait.
            let notified = self.delivery.cancelled.notified();
            let mut notified = std::pin::pin!(notified);
            notified.as_mut().enable();
            if let Some(reason) = self.cancel_reason() {
                return reason;
            }
            notified.await;
        }
    }
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self { delivery: Arc::clone(&self.delivery), state: Arc::clone(&self.state) }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.delivery).finish()
    }
}
