//! What a handler knows about the task in its hands.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{Lease, PoolKey, TaskId};
use tokio::sync::{Notify, mpsc};

use crate::sync::{Arc, Mutex};

/// The largest progress of a delivery, in bytes.
pub const PROGRESS_BYTES_MAX: usize = 16 << 10;

/// Signals that a handler has not taken yet.
const SIGNALS_MAX: usize = 1_024;

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
    pub(crate) idempotency_key: Bytes,
    pub(crate) last_progress: Option<Bytes>,
    /// How long the attempt may take.
    pub(crate) start_to_close: Option<Duration>,
}

/// Where the answers of deliveries go.
pub(crate) trait Report: Send + Sync {
    fn answer(&self, delivery: Arc<Delivery>, answer: crate::handler::Answer);

    /// Tells the server how far the handler is.
    fn progress(&self, lease: Lease, progress: Bytes);
}

/// Bytes that somebody sent to the handler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signal {
    /// What kind of signal, in the application's words.
    pub kind: String,
    /// Opaque bytes.
    pub payload: Bytes,
}

/// Where the signals of a delivery arrive. Whoever sends one is told that it was taken in.
#[derive(Debug)]
pub struct Signals {
    inbox: mpsc::Receiver<Signal>,
}

impl Signals {
    /// Waits for the next signal; none once the delivery is over.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no signal.
    pub async fn recv(&mut self) -> Option<Signal> {
        self.inbox.recv().await
    }
}

/// One accepted delivery: its facts, and the word that tells its handler to stop.
pub(crate) struct Delivery {
    pub(crate) facts: Facts,
    cancel: Mutex<Option<CancelReason>>,
    cancelled: Notify,
    signals: Mutex<Option<mpsc::Sender<Signal>>>,
    pub(crate) report: Arc<dyn Report>,
}

impl Delivery {
    pub(crate) fn new(facts: Facts, report: Arc<dyn Report>) -> Arc<Self> {
        let (cancel, cancelled) = (Mutex::new(None), Notify::new());
        Arc::new(Self { facts, cancel, cancelled, signals: Mutex::new(None), report })
    }

    /// Tells the handler to stop. The first reason stays.
    pub(crate) fn cancel(&self, reason: CancelReason) {
        self.cancel.lock().get_or_insert(reason);
        self.cancelled.notify_waiters();
    }

    /// Hands a signal in. False if the handler does not listen, or is far behind.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        self.signals.lock().as_ref().is_some_and(|inbox| inbox.try_send(signal).is_ok())
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

    /// Returns the idempotency key of the task, empty if it has none.
    #[must_use]
    pub fn idempotency_key(&self) -> &Bytes {
        &self.delivery.facts.idempotency_key
    }

    /// Returns what an earlier delivery of the task said about how far it was.
    #[must_use]
    pub fn last_progress(&self) -> Option<&Bytes> {
        self.delivery.facts.last_progress.as_ref()
    }

    /// Returns how long the attempt may take from its acceptance, if that is limited.
    #[must_use]
    pub fn start_to_close(&self) -> Option<Duration> {
        self.delivery.facts.start_to_close
    }

    /// Says how far the handler is, in its own bytes, at most 16 KiB. Never waits; the newest
    /// replaces what was not sent yet, and more is left out. It proves the handler alive where the
    /// task has a `heartbeat_timeout`, and goes to the next delivery if this one is lost.
    pub fn beat(&self, progress: impl Into<Bytes>) {
        let progress = progress.into();
        if progress.len() > PROGRESS_BYTES_MAX {
            tracing::warn!(bytes = progress.len(), "the progress of a task is over the limit");
            return;
        }
        self.delivery.report.progress(self.delivery.facts.lease, progress);
    }

    /// Takes signals from here on; before the first call whoever sends one is told that the
    /// handler takes none, as are those who send more while 1,024 wait. A second call takes over
    /// from the first.
    #[must_use]
    pub fn signals(&self) -> Signals {
        let (sender, inbox) = mpsc::channel(SIGNALS_MAX);
        *self.delivery.signals.lock() = Some(sender);
        Signals { inbox }
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
