//! Accepted tasks, and waiting for their outcomes.

use std::fmt;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use slipswitch_core::TaskId;
use tokio::sync::oneshot;

use crate::client::{Cancelled, Requests};
use crate::error::QueryError;
use crate::outcome::{Outcome, TaskError};
use crate::payload::Payload;
use crate::sync::Arc;

/// How a waiter learns of an outcome.
pub(crate) type OutcomeSender = oneshot::Sender<Result<Outcome, QueryError>>;
pub(crate) type OutcomeReceiver = oneshot::Receiver<Result<Outcome, QueryError>>;

/// A task that the server accepted. `T` is its output; a task of bytes has [`Payload`].
///
/// Dropping the handle changes nothing about the task.
pub struct TaskHandle<T = Payload> {
    known: Known,
    wait: Wait,
    requests: Arc<Requests>,
    output: PhantomData<fn() -> T>,
}

/// What the server said when it took a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) id: TaskId,
    pub(crate) durable: bool,
    pub(crate) deduplicated: bool,
}

enum Wait {
    /// Nobody asked yet.
    Unasked,
    /// The server will tell.
    Asked(OutcomeReceiver),
    /// It is known.
    Known(Outcome),
}

/// The output of an awaited task cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AwaitError {
    /// The outcome cannot be learned.
    #[error("the outcome of {task_id} cannot be learned")]
    Unknown {
        /// The task.
        task_id: TaskId,
        /// Why.
        source: QueryError,
    },
    /// The task ended without an output.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl<T> TaskHandle<T> {
    pub(crate) fn new(
        known: Known,
        waiting: Option<OutcomeReceiver>,
        requests: Arc<Requests>,
    ) -> Self {
        let wait = waiting.map_or(Wait::Unasked, Wait::Asked);
        Self { known, wait, requests, output: PhantomData }
    }

    /// Returns the task's id.
    #[must_use]
    pub const fn id(&self) -> TaskId {
        self.known.id
    }

    /// True if the task was on disk or committed before the server accepted it.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        self.known.durable
    }

    /// True if the server knew the task already, by its idempotency key.
    #[must_use]
    pub const fn is_deduplicated(&self) -> bool {
        self.known.deduplicated
    }

    /// Cancels the task; see [`Client::cancel`](crate::Client::cancel).
    ///
    /// # Errors
    ///
    /// When the server no longer knows the task, or does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the cancellation back.
    pub async fn cancel(&self, reason: &str) -> Result<Cancelled, QueryError> {
        self.requests.cancel(self.known.id, reason, None).await
    }

    /// Waits until the task has ended, however long that takes, and returns its outcome.
    ///
    /// A session that is lost meanwhile is replaced, and the server asked again.
    ///
    /// # Errors
    ///
    /// When the server refuses to tell, no longer knows the task, or the client is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next call goes on waiting.
    pub async fn outcome(&mut self) -> Result<Outcome, QueryError> {
        loop {
            match &mut self.wait {
                Wait::Known(outcome) => return Ok(outcome.clone()),
                Wait::Unasked => self.wait = Wait::Asked(self.requests.watch(self.known.id)),
                Wait::Asked(waiting) => {
                    let told = waiting.await.unwrap_or(Err(QueryError::Closed));
                    match told {
                        Ok(outcome) => self.wait = Wait::Known(outcome),
                        Err(error) => {
                            self.wait = Wait::Unasked;
                            return Err(error);
                        }
                    }
                }
            }
        }
    }
}

impl<T: DeserializeOwned> TaskHandle<T> {
    /// Waits until the task has ended and returns its output.
    ///
    /// # Errors
    ///
    /// As [`TaskHandle::outcome`], and when the task did not complete or its output is not a `T`.
    ///
    /// # Cancel safety
    ///
    /// As [`TaskHandle::outcome`].
    pub async fn output(&mut self) -> Result<T, AwaitError> {
        let task_id = self.known.id;
        let outcome =
            self.outcome().await.map_err(|source| AwaitError::Unknown { task_id, source })?;
        Ok(outcome.into_output()?)
    }
}

impl<T> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle").field("id", &self.known.id).finish_non_exhaustive()
    }
}
