//! Clients: submit tasks, learn their outcomes, ask what the server knows.

use std::fmt;

use slipswitch_core::{InvalidName, Namespace, TaskId};

use crate::activity::Activity;
use crate::connect::ConnectOptions;
use crate::error::{ConnectError, QueryError, SubmitError, SubmitErrorKind};
use crate::options::SubmitOptions;
use crate::outcome::Outcome;
use crate::payload::Payload;
use crate::sync::Arc;
use crate::task::{Known, TaskHandle};
use crate::worker::DEFAULT_NAMESPACE;

mod ask;
mod open;
mod operate;
mod request;
mod session;
mod submit;

pub use ask::{PoolInfo, TaskInfo, TaskQuery, WorkerInfo};
pub use operate::{Cancelled, DeadQuery, HoldInfo};
pub(crate) use request::Requests;
pub use submit::{Call, Submit};

pub(crate) use session::never_welcomed;

/// The most tasks of one batch.
pub const BATCH_TASKS_MAX: usize = 1_000;
/// The most bytes that the payloads of one batch may have in all.
pub const BATCH_BYTES_MAX: usize = 15 << 20;

/// A connection to a server, for producers and operators. A clone is the same connection.
///
/// The connection lives on a thread of its own and is made anew after a loss. When the last clone
/// is dropped it says goodbye; [`Client::close`] also waits for that.
///
/// # Examples
///
/// ```no_run
/// use serde::{Deserialize, Serialize};
/// use slipswitch::{Activity, Client};
///
/// #[derive(Debug, Serialize, Deserialize)]
/// struct Greet {
///     name: String,
/// }
///
/// impl Activity for Greet {
///     const TYPE: &'static str = "greet";
///     type Output = String;
/// }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::from_env().await?;
/// let greeting = client.call(Greet { name: "Ada".to_owned() }).await?;
/// assert_eq!(greeting, "hello Ada");
///
/// let mut task = client.submit(Greet { name: "Grace".to_owned() }).task_queue("slow").await?;
/// assert!(task.outcome().await?.is_completed());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    requests: Arc<Requests>,
    namespace: Namespace,
}

impl Client {
    /// Connects to a server.
    ///
    /// Must be called within a tokio runtime; outcomes are delivered on it.
    ///
    /// # Errors
    ///
    /// When the first dial fails. Later losses are mended without a word.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the attempt up.
    pub async fn connect(options: ConnectOptions) -> Result<Self, ConnectError> {
        let requests = session::start(options).await?;
        let namespace = Namespace::new(DEFAULT_NAMESPACE)
            .map_err(|error| ConnectError::Local { source: error.into() })?;
        Ok(Self { requests, namespace })
    }

    /// Connects to the server that the environment names; see [`ConnectOptions::from_env`].
    ///
    /// # Errors
    ///
    /// When the environment is wrong, or as [`Client::connect`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// As [`Client::connect`].
    pub async fn from_env() -> Result<Self, ConnectError> {
        Self::connect(ConnectOptions::from_env()?).await
    }

    /// Returns a client on the same connection that submits to another namespace unless told
    /// otherwise.
    ///
    /// # Errors
    ///
    /// When the name is wrong.
    pub fn in_namespace(&self, namespace: &str) -> Result<Self, InvalidName> {
        let namespace = Namespace::new(namespace)?;
        Ok(Self { requests: Arc::clone(&self.requests), namespace })
    }

    /// Submits a task: `client.submit(input).task_queue("gpu").await` gives its handle.
    pub fn submit<A: Activity>(&self, input: A) -> Submit<'_, A> {
        Submit::new(self, input)
    }

    /// Submits a task and waits for its output: `client.call(input).await`.
    pub fn call<A: Activity>(&self, input: A) -> Call<'_, A> {
        Call::new(self, input)
    }

    /// Submits bytes for the activity type `activity_type`.
    ///
    /// # Errors
    ///
    /// Hands the payload back with the reason.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take back what was sent: the task may have been accepted.
    pub async fn submit_raw(
        &self,
        activity_type: &str,
        payload: impl Into<Payload>,
        options: SubmitOptions,
    ) -> Result<TaskHandle, SubmitError<Payload>> {
        let payload = payload.into();
        match submit::one(self, activity_type, payload.clone(), &options).await {
            Ok(handle) => Ok(handle),
            Err(kind) => Err(SubmitError::new(kind, payload)),
        }
    }

    /// Submits up to [`BATCH_TASKS_MAX`] tasks with the same options in one frame; the server
    /// takes all or none.
    ///
    /// # Errors
    ///
    /// Hands the inputs back with the reason.
    ///
    /// # Cancel safety
    ///
    /// As [`Client::submit_raw`].
    pub async fn submit_batch<A: Activity>(
        &self,
        inputs: Vec<A>,
        options: SubmitOptions,
    ) -> Result<Vec<TaskHandle<A::Output>>, SubmitError<Vec<A>>> {
        let payloads: Result<Vec<_>, _> = inputs.iter().map(Payload::json).collect();
        let sent = match payloads {
            Ok(payloads) => submit::batch(self, A::TYPE, payloads, &options).await,
            Err(error) => Err(SubmitErrorKind::Encode(error)),
        };
        sent.map_err(|kind| SubmitError::new(kind, inputs))
    }

    /// Submits up to [`BATCH_TASKS_MAX`] payloads with the same options in one frame; the server
    /// takes all or none.
    ///
    /// # Errors
    ///
    /// Hands the payloads back with the reason.
    ///
    /// # Cancel safety
    ///
    /// As [`Client::submit_raw`].
    pub async fn submit_batch_raw(
        &self,
        activity_type: &str,
        payloads: Vec<Payload>,
        options: SubmitOptions,
    ) -> Result<Vec<TaskHandle>, SubmitError<Vec<Payload>>> {
        let sent = submit::batch(self, activity_type, payloads.clone(), &options).await;
        sent.map_err(|kind| SubmitError::new(kind, payloads))
    }

    /// Returns a handle of a task that was submitted elsewhere; whether the server knows it is
    /// found out by waiting.
    #[must_use]
    pub fn handle(&self, id: TaskId) -> TaskHandle {
        let known = Known { id, durable: false, deduplicated: false };
        TaskHandle::new(known, None, Arc::clone(&self.requests))
    }

    /// Waits until a task has ended, however long that takes, and returns its outcome.
    ///
    /// # Errors
    ///
    /// `NotFound` when the server does not know the task, or no longer; others when it refuses to
    /// tell.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing: it may be asked again.
    pub async fn await_task(&self, id: TaskId) -> Result<Outcome, QueryError> {
        self.handle(id).outcome().await
    }

    /// Says goodbye and waits until the server heard it, at most for the request timeout.
    ///
    /// Requests that are still open on any clone fail.
    ///
    /// # Cancel safety
    ///
    /// The client is closed even when the future is dropped.
    pub async fn close(self) {
        self.requests.close().await;
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
