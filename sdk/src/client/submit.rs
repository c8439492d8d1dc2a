//! Submissions in the making.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{ActivityType, PoolKey, RetryPolicy};
use tokio::sync::oneshot;

use super::request::{Batch, Command, Sink, Spec, Submission, Trouble, spec};
use super::{BATCH_BYTES_MAX, BATCH_TASKS_MAX, Client};
use crate::activity::Activity;
use crate::error::{CallError, SubmitError, SubmitErrorKind};
use crate::options::SubmitOptions;
use crate::outcome::Outcome;
use crate::payload::Payload;
use crate::sync::Arc;
use crate::task::{OutcomeReceiver, OutcomeSender, TaskHandle};
use slipswitch_net::proto::limits::PAYLOAD_CAP;

type Boxed<'c, T> = Pin<Box<dyn Future<Output = T> + Send + 'c>>;

macro_rules! option {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*);)*) => {
        $($(#[$doc])*
        pub fn $name(mut self, $($arg: $type),*) -> Self {
            self.options = self.options.$name($($arg),*);
            self
        })*
    };
}

macro_rules! options {
    () => {
        option! {
            /// As [`SubmitOptions::namespace`].
            namespace(namespace: impl Into<String>);
            /// As [`SubmitOptions::task_queue`].
            task_queue(task_queue: impl Into<String>);
            /// As [`SubmitOptions::require`].
            require(node: impl Into<String>);
            /// As [`SubmitOptions::prefer`].
            prefer(node: impl Into<String>);
            /// As [`SubmitOptions::affinity`].
            affinity(key: impl Into<Bytes>);
            /// As [`SubmitOptions::content_type`].
            content_type(content_type: impl Into<String>);
            /// As [`SubmitOptions::header`].
            header(name: impl Into<String>, value: impl Into<String>);
            /// As [`SubmitOptions::priority`].
            priority(priority: u8);
            /// As [`SubmitOptions::schedule_to_start`].
            schedule_to_start(limit: Duration);
            /// As [`SubmitOptions::deadline`].
            deadline(limit: Duration);
            /// As [`SubmitOptions::retry`].
            retry(policy: RetryPolicy);
            /// As [`SubmitOptions::key`].
            key(key: impl Into<Bytes>);
            /// As [`SubmitOptions::delay`].
            delay(delay: Duration);
            /// As [`SubmitOptions::start_to_close`].
            start_to_close(limit: Duration);
            /// As [`SubmitOptions::heartbeat_timeout`].
            heartbeat_timeout(limit: Duration);
            /// As [`SubmitOptions::resume_grace`].
            resume_grace(grace: Duration);
            /// As [`SubmitOptions::owner_key`].
            owner_key(key: impl Into<Bytes>);
            /// As [`SubmitOptions::generation`].
            generation(generation: u64);
        }

        /// Replaces all options.
        pub fn options(mut self, options: SubmitOptions) -> Self {
            self.options = options;
            self
        }
    };
}

/// A submission in the making; awaiting it submits the task and gives its handle.
///
/// Dropping the future while it is awaited does not take back what was sent.
#[must_use = "nothing is submitted until this is awaited"]
pub struct Submit<'c, A> {
    client: &'c Client,
    input: A,
    options: SubmitOptions,
}

impl<'c, A: Activity> Submit<'c, A> {
    pub(super) fn new(client: &'c Client, input: A) -> Self {
        Self { client, input, options: SubmitOptions::default() }
    }

    options!();

    /// As [`SubmitOptions::detached`].
    pub fn detached(mut self) -> Self {
        self.options = self.options.detached();
        self
    }
}

impl<'c, A: Activity> IntoFuture for Submit<'c, A> {
    type Output = Result<TaskHandle<A::Output>, SubmitError<A>>;
    type IntoFuture = Boxed<'c, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { client, input, options } = self;
            let sent = match Payload::json(&input) {
                Ok(payload) => one(client, A::TYPE, payload, &options).await,
                Err(error) => Err(error.into()),
            };
            sent.map_err(|kind| SubmitError::new(kind, input))
        })
    }
}

impl<A> fmt::Debug for Submit<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submit").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A call in the making; awaiting it submits the task and gives its output.
///
/// Dropping the future while it is awaited does not take back what was sent: the task runs.
#[must_use = "nothing is submitted until this is awaited"]
pub struct Call<'c, A> {
    client: &'c Client,
    input: A,
    options: SubmitOptions,
}

impl<'c, A: Activity> Call<'c, A> {
    pub(super) fn new(client: &'c Client, input: A) -> Self {
        Self { client, input, options: SubmitOptions::default() }
    }

    options!();
}

impl<'c, A: Activity> IntoFuture for Call<'c, A> {
    type Output = Result<A::Output, CallError<A>>;
    type IntoFuture = Boxed<'c, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { client, input, options } = self;
            let sent = match Payload::json(&input) {
                Ok(payload) => call(client, A::TYPE, payload, &options).await,
                Err(error) => Err(SubmitErrorKind::from(error).into()),
            };
            match sent {
                Ok(outcome) => Ok(outcome.into_output()?),
                Err(Trouble::Submit(kind)) => Err(SubmitError::new(kind, input).into()),
                Err(Trouble::Await(task_id, source)) => Err(CallError::Await { task_id, source }),
            }
        })
    }
}

impl<A> fmt::Debug for Call<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Submits one payload and waits until it is accepted.
pub(super) async fn one<T>(
    client: &Client,
    activity_type: &str,
    payload: Payload,
    options: &SubmitOptions,
) -> Result<TaskHandle<T>, SubmitErrorKind> {
    let spec = checked(client, activity_type, options)?;
    let (payload, spec) = with_content_type(payload, spec, options)?;
    let (ack, acked) = oneshot::channel();
    let (outcome, waiting) = waiter(options);
    let outcome = outcome.map(Sink::Handle);
    let submission = Submission { spec, payload, ack: Some(ack), outcome };
    client
        .requests
        .send(Command::Submit(Box::new(submission)))
        .map_err(|_| SubmitErrorKind::Closed)?;
    let accepted = acked.await.unwrap_or(Err(SubmitErrorKind::AnswerLost))?;
    let requests = Arc::clone(&client.requests);
    Ok(TaskHandle::new(accepted.into(), waiting, requests))
}

/// Submits one payload and waits for its outcome; nobody is told that it was accepted.
async fn call(
    client: &Client,
    activity_type: &str,
    payload: Payload,
    options: &SubmitOptions,
) -> Result<Outcome, Trouble> {
    let spec = checked(client, activity_type, options)?;
    let (payload, spec) = with_content_type(payload, spec, options)?;
    let (outcome, waiting) = oneshot::channel();
    let outcome = Some(Sink::Call(outcome));
    let submission = Submission { spec, payload, ack: None, outcome };
    client
        .requests
        .send(Command::Submit(Box::new(submission)))
        .map_err(|_| SubmitErrorKind::Closed)?;
    waiting.await.unwrap_or(Err(SubmitErrorKind::AnswerLost.into()))
}

/// Submits payloads in one frame and waits until all are accepted, or none.
pub(super) async fn batch<T>(
    client: &Client,
    activity_type: &str,
    payloads: Vec<Payload>,
    options: &SubmitOptions,
) -> Result<Vec<TaskHandle<T>>, SubmitErrorKind> {
    let spec = checked(client, activity_type, options)?;
    check_batch(&payloads)?;
    if !options.key.is_empty() && payloads.len() > 1 {
        return Err(SubmitErrorKind::KeyedBatch);
    }
    if payloads.is_empty() {
        return Ok(Vec::new());
    }
    let (mut outcomes, mut waiting) = (Vec::new(), Vec::new());
    let mut tasks = Vec::with_capacity(payloads.len());
    let mut common = None;
    for payload in payloads {
        let content_type =
            options.content_type.as_deref().unwrap_or_else(|| payload.content_type());
        // The first says what is common; whoever differs says so.
        let common = common.get_or_insert_with(|| {
            let content_type = Bytes::copy_from_slice(content_type.as_bytes());
            Box::new(Spec { content_type, ..spec.clone() })
        });
        let own = (common.content_type != content_type.as_bytes()).then(|| {
            let content_type = Bytes::copy_from_slice(content_type.as_bytes());
            Box::new(Spec { content_type, ..spec.clone() })
        });
        tasks.push((own, payload.into_bytes()));
        if let (Some(outcome), Some(waiter)) = waiter(options) {
            outcomes.push(outcome);
            waiting.push(waiter);
        }
    }
    let (ack, acked) = oneshot::channel();
    let common = common.unwrap_or_default();
    let batch = Batch { common, tasks, ack, outcomes };
    client.requests.send(Command::Batch(batch)).map_err(|_| SubmitErrorKind::Closed)?;
    let accepted = acked.await.unwrap_or(Err(SubmitErrorKind::AnswerLost))?;
    let mut waiting = waiting.into_iter();
    let handles = accepted.into_iter().map(|accepted| {
        let requests = Arc::clone(&client.requests);
        TaskHandle::new(accepted.into(), waiting.next(), requests)
    });
    Ok(handles.collect())
}

fn checked(
    client: &Client,
    activity_type: &str,
    options: &SubmitOptions,
) -> Result<Spec, SubmitErrorKind> {
    let (namespace, task_queue, require) = options.names(&client.namespace)?;
    let activity_type = ActivityType::new(activity_type)?;
    let pool = PoolKey { namespace, task_queue, activity_type };
    Ok(spec(&pool, require.as_ref(), options))
}

fn with_content_type(
    payload: Payload,
    mut spec: Spec,
    options: &SubmitOptions,
) -> Result<(Bytes, Spec), SubmitErrorKind> {
    let (bytes, content_type) = payload.into_parts();
    if bytes.len() > PAYLOAD_CAP {
        // No server takes it, and to send it would end the session.
        let (what, limit) = ("the payload", PAYLOAD_CAP);
        return Err(SubmitErrorKind::TooLarge { what, size: bytes.len(), limit });
    }
    spec.content_type = options.content_type.clone().unwrap_or(content_type).into();
    Ok((bytes, spec))
}

fn waiter(options: &SubmitOptions) -> (Option<OutcomeSender>, Option<OutcomeReceiver>) {
    if options.detached {
        return (None, None);
    }
    let (outcome, waiting) = oneshot::channel();
    (Some(outcome), Some(waiting))
}

fn check_batch(payloads: &[Payload]) -> Result<(), SubmitErrorKind> {
    let count = payloads.len();
    if count > BATCH_TASKS_MAX {
        let (what, limit) = ("the number of tasks in the batch", BATCH_TASKS_MAX);
        return Err(SubmitErrorKind::TooLarge { what, size: count, limit });
    }
    let size = payloads.iter().map(|payload| payload.bytes().len()).sum();
    if size > BATCH_BYTES_MAX {
        let (what, limit) = ("the bytes of the batch", BATCH_BYTES_MAX);
        return Err(SubmitErrorKind::TooLarge { what, size, limit });
    }
    Ok(())
}
