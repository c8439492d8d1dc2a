//! What users ask of the IO thread, and what they get back.

use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{Node, PoolKey, RetryKind, RetryPolicy, TaskId};
use slipswitch_net::proto::messages as m;
use tokio::sync::oneshot;

use crate::error::{QueryError, SubmitErrorKind};
use crate::io::IoWake;
use crate::link::Queue;
use crate::options::SubmitOptions;
use crate::outcome::Outcome;
use crate::sync::Arc;
use crate::task::{Known, OutcomeReceiver, OutcomeSender};

/// A task as it goes out, without its payload.
pub(super) type Spec = m::TaskSpec;

/// A task that the server took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    pub(super) id: TaskId,
    pub(super) durable: bool,
    pub(super) deduplicated: bool,
}

impl From<Accepted> for Known {
    fn from(accepted: Accepted) -> Self {
        let Accepted { id, durable, deduplicated } = accepted;
        Self { id, durable, deduplicated }
    }
}

/// A call came to nothing.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The work was not accepted.
    Submit(SubmitErrorKind),
    /// It was accepted; its outcome cannot be learned.
    Await(TaskId, QueryError),
}

impl From<SubmitErrorKind> for Trouble {
    fn from(kind: SubmitErrorKind) -> Self {
        Self::Submit(kind)
    }
}

/// Who gets the outcome.
pub(super) enum Sink {
    /// A handle: it was told before that the task was accepted.
    Handle(OutcomeSender),
    /// A call: it hears of nothing else.
    Call(oneshot::Sender<Result<Outcome, Trouble>>),
}

impl Sink {
    pub(super) fn outcome(self, outcome: Outcome) {
        // Whoever waited may have given up.
        match self {
            Self::Handle(handle) => drop(handle.send(Ok(outcome))),
            Self::Call(call) => drop(call.send(Ok(outcome))),
        }
    }

    /// The task was accepted, and its outcome cannot be learned.
    pub(super) fn unknown(self, id: TaskId, error: QueryError) {
        match self {
            Self::Handle(handle) => drop(handle.send(Err(error))),
            Self::Call(call) => drop(call.send(Err(Trouble::Await(id, error)))),
        }
    }

    /// The task was not accepted. A handle does not exist then.
    pub(super) fn refused(self, kind: SubmitErrorKind) {
        if let Self::Call(call) = self {
            drop(call.send(Err(Trouble::Submit(kind))));
        }
    }
}

pub(super) type AckSender<T> = oneshot::Sender<Result<T, SubmitErrorKind>>;

pub(super) struct Submission {
    pub(super) spec: Spec,
    pub(super) payload: Bytes,
    pub(super) ack: Option<AckSender<Accepted>>,
    pub(super) outcome: Option<Sink>,
}

pub(super) struct Batch {
    /// What all tasks are that say nothing of their own.
    pub(super) common: Box<Spec>,
    pub(super) tasks: Vec<(Option<Box<Spec>>, Bytes)>,
    pub(super) ack: AckSender<Vec<Accepted>>,
    /// One for each task, or none at all.
    pub(super) outcomes: Vec<OutcomeSender>,
}

/// A question or a command.
#[derive(Clone, Debug)]
pub(super) enum Question {
    Query(m::Query),
    Admin(m::Admin),
    Cancel(m::CancelTask),
}

impl Question {
    /// Says whether asking twice is as good as asking once.
    pub(super) fn may_repeat(&self) -> bool {
        const ONCE: [u32; 3] =
            [m::AdminOp::Signal as u32, m::AdminOp::Requeue as u32, m::AdminOp::Discard as u32];
        !matches!(self, Self::Admin(admin) if ONCE.contains(&admin.op))
    }
}

/// An answer to a [`Question`].
#[derive(Debug)]
pub(super) enum Answer {
    Reply(m::Reply),
    /// A command was carried out on so many things.
    Done(u64),
    Cancelled(m::CancelTaskAck),
}

pub(super) type AnswerSender = oneshot::Sender<Result<Answer, QueryError>>;

pub(super) enum Command {
    Submit(Box<Submission>),
    Batch(Batch),
    Watch(TaskId, OutcomeSender),
    Ask(Box<Question>, AnswerSender),
    /// Ends the client; told when it has ended.
    Close(oneshot::Sender<()>),
}

/// The way to the IO thread. When the last clone of it goes, the client says goodbye.
pub(crate) struct Requests {
    pub(super) queue: Arc<Queue<Command, Arc<IoWake>>>,
    pub(super) timeout: Duration,
}

impl Requests {
    pub(super) fn send(&self, command: Command) -> Result<(), Command> {
        self.queue.push(command)
    }

    /// Asks for the outcome of a task.
    pub(crate) fn watch(&self, id: TaskId) -> OutcomeReceiver {
        let (outcome, waiting) = oneshot::channel();
        if let Err(Command::Watch(_, outcome)) = self.send(Command::Watch(id, outcome)) {
            drop(outcome.send(Err(QueryError::Closed)));
        }
        waiting
    }

    pub(super) async fn ask(&self, question: Question) -> Result<Answer, QueryError> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Ask(Box::new(question), answer)).map_err(|_| QueryError::Closed)?;
        answered.await.unwrap_or(Err(QueryError::Closed))
    }

    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.send(Command::Close(done)).is_ok() {
            // It ends by itself if the server does not answer.
            drop(closed.await);
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Puts names and options into a frame's terms.
pub(super) fn spec(pool: &PoolKey, require: Option<&Node>, options: &SubmitOptions) -> Spec {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let pair =
        |(name, value): &(String, String)| m::Pair { name: name.clone(), value: value.clone() };
    Spec {
        namespace: bytes(pool.namespace.as_str()),
        r#type: bytes(pool.activity_type.as_str()),
        task_queue: bytes(pool.task_queue.as_str()),
        headers: options.headers.iter().map(pair).collect(),
        priority: options.priority.map(u32::from),
        owner_key: options.owner_key.clone(),
        ordinal: options.ordinal,
        generation: options.generation,
        prefer: options.prefer.clone(),
        affinity_key: Some(options.affinity.clone()).filter(|key| !key.is_empty()),
        require: require.map(|node| node.as_str().to_owned()),
        retry: options.retry.as_ref().map(|policy| Box::new(retry(policy))),
        schedule_to_start: options.schedule_to_start.map(millis),
        deadline: options.deadline.map(millis),
        delay: options.delay.map(millis),
        start_to_close: options.start_to_close.map(millis),
        heartbeat_timeout: options.heartbeat_timeout.map(millis),
        retention: options.retention.map(millis),
        resume_grace: options.resume_grace.map(millis),
        idempotency_key: Some(options.key.clone()).filter(|key| !key.is_empty()),
        max_lost_deliveries: options.max_lost_deliveries,
        ..Spec::default()
    }
}

fn retry(policy: &RetryPolicy) -> m::Retry {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    m::Retry {
        kind: match policy.kind {
            RetryKind::Fixed => 1,
            RetryKind::Linear => 2,
            _ => 3,
        },
        initial: millis(policy.initial),
        factor: policy.factor,
        cap: millis(policy.cap),
        jitter: policy.jitter,
        max_attempts: policy.max_attempts,
        non_retryable: policy.non_retryable.clone(),
    }
}
