//! Tasks as they are handed in, and how they end.

use bytes::Bytes;
use prost::Message;

use super::{Err, Pair, Trace};

/// What happens after a retryable failure.
#[derive(Clone, PartialEq, Message)]
pub struct Retry {
    /// 1 fixed, 2 linear, 3 exponential.
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    /// Milliseconds.
    #[prost(uint64, tag = "2")]
    pub initial: u64,
    /// For exponential.
    #[prost(double, tag = "3")]
    pub factor: f64,
    /// Milliseconds.
    #[prost(uint64, tag = "4")]
    pub cap: u64,
    /// 0 to 1.
    #[prost(double, tag = "5")]
    pub jitter: f64,
    /// 1 or more.
    #[prost(uint32, tag = "6")]
    pub max_attempts: u32,
    /// Failure codes.
    #[prost(string, repeated, tag = "7")]
    pub non_retryable: Vec<String>,
}

/// A task as it is handed in; its payload travels beside it.
#[derive(Clone, PartialEq, Message)]
pub struct TaskSpec {
    /// The namespace.
    #[prost(bytes = "bytes", tag = "1")]
    pub namespace: Bytes,
    /// The activity type.
    #[prost(bytes = "bytes", tag = "2")]
    pub r#type: Bytes,
    /// Empty means `default`.
    #[prost(bytes = "bytes", tag = "3")]
    pub task_queue: Bytes,
    /// A media type.
    #[prost(bytes = "bytes", tag = "4")]
    pub content_type: Bytes,
    /// How it is encoded.
    #[prost(bytes = "bytes", tag = "5")]
    pub encoding: Bytes,
    /// Names and values.
    #[prost(message, repeated, tag = "6")]
    pub headers: Vec<Pair>,
    /// The same key with the same content is the same task.
    #[prost(bytes = "bytes", optional, tag = "7")]
    pub idempotency_key: Option<Bytes>,
    /// The producer's own.
    #[prost(bytes = "bytes", tag = "8")]
    pub owner_key: Bytes,
    /// The producer's own.
    #[prost(uint64, tag = "9")]
    pub ordinal: u64,
    /// The producer's own.
    #[prost(uint64, tag = "10")]
    pub generation: u64,
    /// When it is due, in milliseconds from now.
    #[prost(uint64, optional, tag = "11")]
    pub delay: Option<u64>,
    /// When it is due, in milliseconds since 1970 by the clock of the server.
    #[prost(uint64, optional, tag = "12")]
    pub visible_after: Option<u64>,
    /// 0 to 9; 5 if not said.
    #[prost(uint32, optional, tag = "13")]
    pub priority: Option<u32>,
    /// The only node on which it may run.
    #[prost(string, optional, tag = "14")]
    pub require: Option<String>,
    /// Nodes on which it runs rather than elsewhere.
    #[prost(string, repeated, tag = "15")]
    pub prefer: Vec<String>,
    /// Among the tasks of a pool, each key has its turn.
    #[prost(bytes = "bytes", optional, tag = "16")]
    pub fairness_key: Option<Bytes>,
    /// How many tasks of one key run at once is limited.
    #[prost(bytes = "bytes", optional, tag = "17")]
    pub concurrency_key: Option<Bytes>,
    /// Under the policy `sticky`: tasks of one key go to one worker.
    #[prost(bytes = "bytes", optional, tag = "18")]
    pub affinity_key: Option<Bytes>,
    /// What happens after a retryable failure.
    #[prost(message, optional, boxed, tag = "19")]
    pub retry: Option<Box<Retry>>,
    /// Lost deliveries after which it is given up.
    #[prost(uint32, optional, tag = "20")]
    pub max_lost_deliveries: Option<u32>,
    /// How long the outcome is kept, in milliseconds.
    #[prost(uint64, optional, tag = "21")]
    pub retention: Option<u64>,
    /// Milliseconds; 0 means now or not at all.
    #[prost(uint64, optional, tag = "22")]
    pub schedule_to_start: Option<u64>,
    /// How long an attempt may take from its acceptance, in milliseconds.
    #[prost(uint64, optional, tag = "23")]
    pub start_to_close: Option<u64>,
    /// How long an attempt may go without a beat of its own, in milliseconds.
    #[prost(uint64, optional, tag = "24")]
    pub heartbeat_timeout: Option<u64>,
    /// Milliseconds.
    #[prost(uint64, optional, tag = "25")]
    pub deadline: Option<u64>,
    /// 0 what the server has, 1 durable, 2 volatile.
    #[prost(uint32, tag = "26")]
    pub durability: u32,
    /// How long a lost session's worker may come back for it, in milliseconds.
    #[prost(uint64, optional, tag = "27")]
    pub resume_grace: Option<u64>,
    /// The trace that it belongs to.
    #[prost(message, optional, boxed, tag = "28")]
    pub trace: Option<Box<Trace>>,
    /// The id, made by the producer; the server makes one if it is empty.
    #[prost(bytes = "bytes", tag = "29")]
    pub task_id: Bytes,
}

/// A producer hands a task in.
#[derive(Clone, PartialEq, Message)]
pub struct Submit {
    /// Comes back in the answers.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// The task.
    #[prost(message, required, tag = "2")]
    pub task: TaskSpec,
    /// The payload comes on a stream of its own.
    #[prost(uint64, optional, tag = "3")]
    pub stream_ref: Option<u64>,
    /// An [`Outcome`] with the same `req` follows when it has ended.
    #[prost(bool, tag = "4")]
    pub wait: bool,
}

/// The answer to [`Submit`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SubmitAck {
    /// The request.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// The task.
    #[prost(bytes = "bytes", tag = "2")]
    pub task_id: Bytes,
    /// It was handed in before, under the same key.
    #[prost(bool, tag = "3")]
    pub deduplicated: bool,
    /// It survives a crash of the server.
    #[prost(bool, tag = "4")]
    pub durable: bool,
    /// Why it was refused.
    #[prost(message, optional, boxed, tag = "5")]
    pub err: Option<Box<Err>>,
}

/// A task of a batch.
#[derive(Clone, PartialEq, Message)]
pub struct BatchTask {
    /// The task; none if it is as [`SubmitBatch::common`] says.
    #[prost(message, optional, boxed, tag = "1")]
    pub task: Option<Box<TaskSpec>>,
    /// Its share of the frame's payload, in bytes.
    #[prost(uint64, tag = "2")]
    pub payload_len: u64,
}

/// A producer hands tasks in, their payloads one behind the other.
#[derive(Clone, PartialEq, Message)]
pub struct SubmitBatch {
    /// Comes back in the answers.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// The tasks.
    #[prost(message, repeated, tag = "2")]
    pub tasks: Vec<BatchTask>,
    /// An [`Outcome`] with the same `req` follows for each when it has ended.
    #[prost(bool, tag = "3")]
    pub wait: bool,
    /// What all tasks are that say nothing of their own.
    #[prost(message, optional, boxed, tag = "4")]
    pub common: Option<Box<TaskSpec>>,
}

/// What became of a task of a batch.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BatchItem {
    /// The task.
    #[prost(bytes = "bytes", tag = "1")]
    pub task_id: Bytes,
    /// It was handed in before, under the same key.
    #[prost(bool, tag = "2")]
    pub deduplicated: bool,
    /// It survives a crash of the server.
    #[prost(bool, tag = "3")]
    pub durable: bool,
    /// Why it was refused.
    #[prost(message, optional, boxed, tag = "4")]
    pub err: Option<Box<Err>>,
}

/// The answer to [`SubmitBatch`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SubmitBatchAck {
    /// The request.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// One for each, in order; none if all were refused.
    #[prost(message, repeated, tag = "2")]
    pub items: Vec<BatchItem>,
    /// Why all were refused.
    #[prost(message, optional, boxed, tag = "3")]
    pub err: Option<Box<Err>>,
}

/// A producer waits for the outcome of a task.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Await {
    /// Comes back in the answer.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// The task.
    #[prost(bytes = "bytes", tag = "2")]
    pub task_id: Bytes,
    /// How long to wait, in milliseconds; 0 without limit.
    #[prost(uint64, tag = "3")]
    pub timeout: u64,
}

/// How a task ended; the result travels beside it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Outcome {
    /// The request.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// The task.
    #[prost(bytes = "bytes", tag = "2")]
    pub task_id: Bytes,
    /// As [`State`] numbers them.
    #[prost(uint32, tag = "3")]
    pub state: u32,
    /// As [`OutcomeClass`] numbers them.
    #[prost(uint32, tag = "4")]
    pub class: u32,
    /// The application's own.
    #[prost(string, tag = "5")]
    pub code: String,
    /// For people.
    #[prost(string, tag = "6")]
    pub message: String,
    /// The application's own.
    #[prost(bytes = "bytes", tag = "7")]
    pub details: Bytes,
    /// The last attempt.
    #[prost(uint32, tag = "8")]
    pub attempt: u32,
    /// A media type.
    #[prost(bytes = "bytes", tag = "9")]
    pub content_type: Bytes,
    /// Why there is none.
    #[prost(message, optional, boxed, tag = "10")]
    pub err: Option<Box<Err>>,
    /// How the result is encoded.
    #[prost(bytes = "bytes", tag = "11")]
    pub encoding: Bytes,
    /// How many deliveries were accepted.
    #[prost(uint32, tag = "12")]
    pub deliveries: u32,
    /// The payload comes on a stream of its own.
    #[prost(uint64, optional, tag = "13")]
    pub stream_ref: Option<u64>,
}

/// The states of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum State {
    /// Waits for a time.
    Scheduled = 1,
    /// Waits for a worker.
    Pending = 2,
    /// Sent, not accepted.
    Offered = 3,
    /// Accepted.
    Running = 4,
    /// Has a result.
    Completed = 5,
    /// Given up.
    Dead = 6,
    /// Cancelled.
    Cancelled = 7,
    /// Its worker was told to stop.
    Cancelling = 8,
}

/// Why a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum OutcomeClass {
    /// It completed.
    Completed = 1,
    /// No attempt was left.
    AttemptsExhausted = 2,
    /// The application said so.
    TerminalFailure = 3,
    /// Too many accepted deliveries were lost.
    LostDeliveries = 4,
    /// Too many offers were never answered.
    LostOffers = 5,
    /// A time was over.
    Expired = 6,
    /// Somebody asked for it.
    Cancelled = 7,
}

/// A task, or the tasks of an owner, are to stop.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CancelTask {
    /// Comes back in the answer.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// One task; empty if the owner's are meant.
    #[prost(bytes = "bytes", tag = "2")]
    pub task_id: Bytes,
    /// All tasks of this owner in the namespace.
    #[prost(bytes = "bytes", tag = "3")]
    pub owner_key: Bytes,
    /// Of those, the ones of an older generation.
    #[prost(uint64, optional, tag = "4")]
    pub below_generation: Option<u64>,
    /// For the handler and for people.
    #[prost(string, tag = "5")]
    pub reason: String,
    /// How long a running handler may take, in milliseconds; the server's default if not said.
    #[prost(uint64, optional, tag = "6")]
    pub grace: Option<u64>,
    /// The owner's namespace.
    #[prost(string, tag = "7")]
    pub namespace: String,
}

/// The answer to [`CancelTask`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CancelTaskAck {
    /// The request.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// How many tasks were cancelled or are about to be.
    #[prost(uint64, tag = "2")]
    pub affected: u64,
    /// As [`State`] numbers them: that of the one task.
    #[prost(uint32, tag = "3")]
    pub state: u32,
    /// Why it was refused.
    #[prost(message, optional, boxed, tag = "4")]
    pub err: Option<Box<Err>>,
}
