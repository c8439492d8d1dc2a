//! How a task ended.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use slipswitch_core::TaskId;
use thiserror::Error;

use crate::payload::Payload;

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// It has an output.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It was given up, with a cause.
    Dead,
}

/// The outcome of a task: settled once, the same for everyone who asks.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub(crate) task_id: TaskId,
    pub(crate) ending: Ending,
    pub(crate) class: String,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) details: Bytes,
    pub(crate) attempt: u32,
    pub(crate) payload: Payload,
}

impl Outcome {
    /// Returns the task.
    #[must_use]
    pub const fn task_id(&self) -> TaskId {
        self.task_id
    }

    /// Returns how it ended.
    #[must_use]
    pub const fn ending(&self) -> Ending {
        self.ending
    }

    /// True if there is an output.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.ending == Ending::Completed
    }

    /// Returns the word for why it ended: `completed`, `attempts_exhausted`, `terminal_failure`,
    /// `lost_deliveries`, `expired` and others that later servers may add.
    #[must_use]
    pub fn class(&self) -> &str {
        &self.class
    }

    /// Returns the handler's failure code, empty if there is none.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the failure's text for people, empty if there is none.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the handler's details, empty if there are none.
    #[must_use]
    pub const fn details(&self) -> &Bytes {
        &self.details
    }

    /// Returns how many attempts there were.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempt
    }

    /// Returns the output's bytes and content type; empty unless the task completed.
    #[must_use]
    pub const fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Returns the output as bytes.
    ///
    /// # Errors
    ///
    /// When the task did not complete; the error is the outcome.
    pub fn into_payload(self) -> Result<Payload, TaskError> {
        if self.is_completed() { Ok(self.payload) } else { Err(TaskError::Failed(Box::new(self))) }
    }

    /// Decodes the output.
    ///
    /// # Errors
    ///
    /// When the task did not complete, or its output is not a `T`.
    pub fn into_output<T: DeserializeOwned>(self) -> Result<T, TaskError> {
        let task_id = self.task_id;
        let payload = self.into_payload()?;
        payload.decode().map_err(|source| TaskError::Decode { task_id, payload, source })
    }
}

/// A task ended without an output that can be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TaskError {
    /// It did not complete.
    #[error("{}", Summary(.0))]
    Failed(Box<Outcome>),
    /// It completed, but the output is not of the type that was asked for.
    #[error("the output of {task_id} is not of the type asked for")]
    Decode {
        /// The task.
        task_id: TaskId,
        /// The output.
        payload: Payload,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// One sentence on a task that did not complete.
struct Summary<'a>(&'a Outcome);

impl std::fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outcome = self.0;
        write!(f, "{} ended as {}", outcome.task_id, outcome.class)?;
        let attempts = outcome.attempt;
        write!(f, " after {attempts} {}", if attempts == 1 { "attempt" } else { "attempts" })?;
        if !outcome.code.is_empty() {
            write!(f, ", code {}", outcome.code)?;
        }
        if !outcome.message.is_empty() {
            write!(f, ": {}", outcome.message)?;
        }
        Ok(())
    }
}
