//! What a producer may say about a task beside its activity and input.

use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{Namespace, Node, RetryPolicy, TaskQueue};

/// Options of a submission. Each may be left out.
///
/// # Examples
///
/// ```
/// use slipswitch::SubmitOptions;
///
/// let options = SubmitOptions::default().task_queue("gpu").require("box-7").priority(9);
/// assert_ne!(options, SubmitOptions::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubmitOptions {
    pub(crate) namespace: Option<String>,
    pub(crate) task_queue: String,
    pub(crate) require: String,
    pub(crate) prefer: Vec<String>,
    pub(crate) affinity: Bytes,
    pub(crate) content_type: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) priority: Option<u8>,
    pub(crate) schedule_to_start: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) owner_key: Bytes,
    pub(crate) ordinal: u64,
    pub(crate) generation: u64,
    pub(crate) key: Bytes,
    pub(crate) delay: Option<Duration>,
    pub(crate) start_to_close: Option<Duration>,
    pub(crate) heartbeat_timeout: Option<Duration>,
    pub(crate) retention: Option<Duration>,
    pub(crate) resume_grace: Option<Duration>,
    pub(crate) max_lost_deliveries: Option<u32>,
    pub(crate) detached: bool,
}

impl SubmitOptions {
    /// Sets the namespace; the client's own by default.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the task queue; `default` by default.
    #[must_use]
    pub fn task_queue(mut self, task_queue: impl Into<String>) -> Self {
        self.task_queue = task_queue.into();
        self
    }

    /// Pins the task to a node: it waits for a worker there, and never runs elsewhere.
    #[must_use]
    pub fn require(mut self, node: impl Into<String>) -> Self {
        self.require = node.into();
        self
    }

    /// Names a node whose workers get the task while one of them has room; others get it at once if
    /// none has. Once for each node, at most 8. What [`SubmitOptions::require`] says goes first.
    #[must_use]
    pub fn prefer(mut self, node: impl Into<String>) -> Self {
        self.prefer.push(node.into());
        self
    }

    /// Gives the task an affinity key, at most 256 bytes: in a pool with the policy `sticky` the
    /// same key goes to the same worker while that has room.
    #[must_use]
    pub fn affinity(mut self, key: impl Into<Bytes>) -> Self {
        self.affinity = key.into();
        self
    }

    /// Says what the payload is; the payload's own content type by default.
    #[must_use]
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = Some(content_type.into());
        self
    }

    /// Adds a header that travels with the task.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the priority, 0 to 9, larger first. 5 by default.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Bounds how long an attempt may wait for a worker. Zero means now or not at all: the
    /// submission is then refused with `NoWorker` or `NoCapacity`.
    #[must_use]
    pub fn schedule_to_start(mut self, limit: Duration) -> Self {
        self.schedule_to_start = Some(limit);
        self
    }

    /// Bounds the whole life of the task.
    #[must_use]
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = Some(limit);
        self
    }

    /// Says what happens after a retryable failure.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Names the task in the producer's own terms; the handler sees it. At most 256 bytes.
    #[must_use]
    pub fn owner_key(mut self, key: impl Into<Bytes>) -> Self {
        self.owner_key = key.into();
        self
    }

    /// Numbers the task in the producer's own terms; the handler sees it.
    #[must_use]
    pub fn ordinal(mut self, ordinal: u64) -> Self {
        self.ordinal = ordinal;
        self
    }

    /// Says which generation of the producer's work the task belongs to; the handler sees it.
    #[must_use]
    pub fn generation(mut self, generation: u64) -> Self {
        self.generation = generation;
        self
    }

    /// Gives the task an idempotency key, at most 256 bytes: as long as the server knows a task of
    /// the namespace with the same key and the same content, that task is meant. With other content
    /// the submission is refused with `Conflict`. Not for batches.
    #[must_use]
    pub fn key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = key.into();
        self
    }

    /// Has the task wait so long before it is given to a worker, at most 366 days.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Bounds how long an attempt may take from its acceptance; one that takes longer has failed,
    /// retryably.
    #[must_use]
    pub fn start_to_close(mut self, limit: Duration) -> Self {
        self.start_to_close = Some(limit);
        self
    }

    /// Bounds how long a handler may go without [`Context::beat`](crate::Context::beat); one that
    /// is silent for longer has failed, retryably.
    #[must_use]
    pub fn heartbeat_timeout(mut self, limit: Duration) -> Self {
        self.heartbeat_timeout = Some(limit);
        self
    }

    /// Says how long the outcome is kept, at most 24 hours, whether or not it was told.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Says how long the worker of a lost session may come back for the task; 2 s by default.
    #[must_use]
    pub fn resume_grace(mut self, grace: Duration) -> Self {
        self.resume_grace = Some(grace);
        self
    }

    /// Says how many accepted deliveries may be lost before the task is given up; 5 by default.
    #[must_use]
    pub fn max_lost_deliveries(mut self, most: u32) -> Self {
        self.max_lost_deliveries = Some(most);
        self
    }

    /// Says that most likely nobody waits for the outcome: the server does not send it unasked.
    /// Waiting is still possible and costs one more round trip.
    #[must_use]
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// Checks the names and returns them.
    pub(crate) fn names(
        &self,
        default: &Namespace,
    ) -> Result<(Namespace, TaskQueue, Option<Node>), slipswitch_core::InvalidName> {
        let namespace = match &self.namespace {
            Some(text) => Namespace::new(text)?,
            None => default.clone(),
        };
        Ok((namespace, TaskQueue::or_default(&self.task_queue)?, Node::optional(&self.require)?))
    }
}
