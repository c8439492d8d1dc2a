//! What workers and the server say to each other.

use bytes::Bytes;
use prost::Message;

use super::{Err, Lease, Pair};

/// A handler that a worker has.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TypeEntry {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// For people.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub schema_hash: Option<Bytes>,
    /// A limit of its own, for a later version.
    #[prost(uint32, optional, tag = "3")]
    pub max_concurrent: Option<u32>,
}

/// Pools that a worker serves.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PoolEntry {
    /// Each with every type.
    #[prost(string, repeated, tag = "1")]
    pub namespaces: Vec<String>,
    /// Empty means `default`.
    #[prost(string, tag = "2")]
    pub task_queue: String,
    /// The handlers.
    #[prost(message, repeated, tag = "3")]
    pub types: Vec<TypeEntry>,
}

/// A worker registers, or changes what it serves.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Register {
    /// Comes back in the answer.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// What it serves.
    #[prost(message, repeated, tag = "2")]
    pub pools: Vec<PoolEntry>,
    /// Where it runs.
    #[prost(string, optional, tag = "3")]
    pub node: Option<String>,
    /// For a later version.
    #[prost(string, optional, tag = "4")]
    pub zone: Option<String>,
    /// For people.
    #[prost(message, repeated, tag = "5")]
    pub labels: Vec<Pair>,
    /// Its name for people.
    #[prost(string, tag = "6")]
    pub identity: String,
    /// Random for each start of the process.
    #[prost(bytes = "bytes", tag = "7")]
    pub instance_id: Bytes,
    /// For people.
    #[prost(string, tag = "8")]
    pub build_id: String,
    /// The ceiling of its credit.
    #[prost(uint32, tag = "9")]
    pub capacity: u32,
    /// For a later version.
    #[prost(string, repeated, tag = "10")]
    pub capabilities: Vec<String>,
    /// Its share under a policy that weighs workers, 1 to 100; 0 means 1.
    #[prost(uint32, tag = "11")]
    pub weight: u32,
}

/// A pool as it was registered, or why not.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RegisteredPool {
    /// How offers name it.
    #[prost(uint32, tag = "1")]
    pub pool_ref: u32,
    /// How offers name its type: the same number in this version.
    #[prost(uint32, tag = "2")]
    pub type_ref: u32,
    /// The namespace.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// The task queue.
    #[prost(string, tag = "4")]
    pub task_queue: String,
    /// The activity type.
    #[prost(string, tag = "5")]
    pub r#type: String,
    /// Why it was refused.
    #[prost(message, optional, tag = "6")]
    pub err: Option<Err>,
}

/// The answer to [`Register`] and to an update.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RegisterAck {
    /// The request.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// The worker's id.
    #[prost(uint64, tag = "2")]
    pub worker_id: u64,
    /// The snapshot that holds it.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
    /// One for each pool.
    #[prost(message, repeated, tag = "4")]
    pub pools: Vec<RegisteredPool>,
    /// Why all was refused.
    #[prost(message, optional, tag = "5")]
    pub err: Option<Err>,
}

/// For what a credit is.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct CreditScope {
    /// For all.
    #[prost(bool, tag = "1")]
    pub all: bool,
    /// For one pool, in a later version.
    #[prost(uint32, optional, tag = "2")]
    pub pool_ref: Option<u32>,
    /// For one type, in a later version.
    #[prost(uint32, optional, tag = "3")]
    pub type_ref: Option<u32>,
}

/// How many tasks a worker takes at once.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Credit {
    /// For what.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<CreditScope>,
    /// An absolute number.
    #[prost(uint32, tag = "2")]
    pub limit: u32,
    /// Rises; an older one is ignored.
    #[prost(uint64, tag = "3")]
    pub seq: u64,
}

/// How many tasks wait in a pool that the worker serves while it has no free credit.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Demand {
    /// The pool.
    #[prost(uint32, tag = "1")]
    pub pool_ref: u32,
    /// How many wait.
    #[prost(uint64, tag = "2")]
    pub waiting: u64,
}

/// A trace that a task belongs to.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Trace {
    /// The parent.
    #[prost(string, tag = "1")]
    pub parent: String,
    /// The state.
    #[prost(string, tag = "2")]
    pub state: String,
    /// The baggage.
    #[prost(string, tag = "3")]
    pub baggage: String,
}

/// A task for a worker; its payload travels beside it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Offer {
    /// The task.
    #[prost(bytes = "bytes", tag = "1")]
    pub task_id: Bytes,
    /// The delivery.
    #[prost(message, required, tag = "2")]
    pub lease: Lease,
    /// The pool, as registered.
    #[prost(uint32, tag = "3")]
    pub pool_ref: u32,
    /// The type, as registered.
    #[prost(uint32, tag = "4")]
    pub type_ref: u32,
    /// From 1; 0 is malformed.
    #[prost(uint32, tag = "5")]
    pub attempt: u32,
    /// Deliveries accepted before.
    #[prost(uint32, tag = "6")]
    pub deliveries: u32,
    /// The producer's own.
    #[prost(bytes = "bytes", tag = "7")]
    pub owner_key: Bytes,
    /// The producer's own.
    #[prost(uint64, tag = "8")]
    pub ordinal: u64,
    /// The producer's own.
    #[prost(uint64, tag = "9")]
    pub generation: u64,
    /// A media type.
    #[prost(bytes = "bytes", tag = "10")]
    pub content_type: Bytes,
    /// How it is encoded.
    #[prost(bytes = "bytes", tag = "11")]
    pub encoding: Bytes,
    /// The payload comes on a stream of its own.
    #[prost(uint64, optional, tag = "12")]
    pub stream_ref: Option<u64>,
    /// Names and values.
    #[prost(message, repeated, tag = "13")]
    pub headers: Vec<Pair>,
    /// 0 to 9.
    #[prost(uint32, tag = "14")]
    pub priority: u32,
    /// How long ago it was submitted, in milliseconds.
    #[prost(uint64, tag = "15")]
    pub submitted: u64,
    /// How long ago this attempt was due, in milliseconds.
    #[prost(uint64, tag = "16")]
    pub due: u64,
    /// How long the attempt may take from its acceptance, in milliseconds; 0 without limit.
    #[prost(uint64, tag = "17")]
    pub start_to_close: u64,
    /// How long it may go without a beat of its own, in milliseconds; 0 without limit.
    #[prost(uint64, tag = "18")]
    pub heartbeat: u64,
    /// In how many milliseconds it must have ended; 0 if it has no deadline.
    #[prost(uint64, tag = "19")]
    pub deadline: u64,
    /// The trace that the task belongs to.
    #[prost(message, optional, boxed, tag = "20")]
    pub trace: Option<Box<Trace>>,
    /// The newest progress of an earlier delivery.
    #[prost(bytes = "bytes", optional, tag = "21")]
    pub last_progress: Option<Bytes>,
    /// The producer's key.
    #[prost(bytes = "bytes", optional, tag = "22")]
    pub idempotency_key: Option<Bytes>,
}

/// The worker begins.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Accept {
    /// With these.
    #[prost(message, repeated, tag = "1")]
    pub leases: Vec<Lease>,
}

/// Why an offer is handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum RejectReason {
    /// No room.
    NoCapacity = 1,
    /// No such handler.
    UnknownType = 2,
    /// It cannot be read.
    Malformed = 3,
    /// The worker is leaving.
    Draining = 4,
}

/// The worker hands an offer back.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Reject {
    /// The delivery.
    #[prost(message, required, tag = "1")]
    pub lease: Lease,
    /// As [`RejectReason`] numbers them.
    #[prost(uint32, tag = "2")]
    pub code: u32,
}

/// Progress of one delivery: a beat of its own. The newest replaces the one before.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Progress {
    /// The delivery.
    #[prost(message, required, tag = "1")]
    pub lease: Lease,
    /// The worker's own.
    #[prost(bytes = "bytes", tag = "2")]
    pub bytes: Bytes,
}

/// The worker is alive and at work.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Heartbeat {
    /// Rises.
    #[prost(uint64, tag = "1")]
    pub seq: u64,
    /// On all that it has.
    #[prost(bool, tag = "2")]
    pub all: bool,
    /// On these.
    #[prost(message, repeated, tag = "3")]
    pub leases: Vec<Lease>,
    /// What some of them have come to.
    #[prost(message, repeated, tag = "4")]
    pub progress: Vec<Progress>,
}

/// The answer to [`Heartbeat`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct HeartbeatAck {
    /// The beat.
    #[prost(uint64, tag = "1")]
    pub seq: u64,
    /// Deliveries on which to stop working.
    #[prost(message, repeated, tag = "2")]
    pub cancel: Vec<Cancel>,
    /// Deliveries that are not the worker's any more.
    #[prost(message, repeated, tag = "3")]
    pub lost: Vec<Lease>,
}

/// The classes of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum FailClass {
    /// Another attempt may help.
    Retryable = 1,
    /// No attempt will help.
    Terminal = 2,
    /// Not the application's doing.
    Infrastructure = 3,
}

/// How a delivery failed.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Fail {
    /// As [`FailClass`] numbers them.
    #[prost(uint32, tag = "1")]
    pub class: u32,
    /// The application's own.
    #[prost(string, tag = "2")]
    pub code: String,
    /// For people.
    #[prost(string, tag = "3")]
    pub message: String,
    /// The application's own.
    #[prost(bytes = "bytes", tag = "4")]
    pub details: Bytes,
    /// When to try again, in milliseconds.
    #[prost(uint64, optional, tag = "5")]
    pub retry_after: Option<u64>,
}

/// How a delivery ended; the result's payload travels beside it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TaskResult {
    /// The task, as the offer named it.
    #[prost(bytes = "bytes", tag = "1")]
    pub task_id: Bytes,
    /// The delivery.
    #[prost(message, required, tag = "2")]
    pub lease: Lease,
    /// A media type.
    #[prost(bytes = "bytes", tag = "3")]
    pub content_type: Bytes,
    /// How it is encoded.
    #[prost(bytes = "bytes", tag = "4")]
    pub encoding: Bytes,
    /// The payload comes on a stream of its own.
    #[prost(uint64, optional, tag = "5")]
    pub stream_ref: Option<u64>,
    /// It failed.
    #[prost(message, optional, boxed, tag = "6")]
    pub fail: Option<Box<Fail>>,
}

/// What a report came to.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Verdict {
    /// The delivery.
    #[prost(message, required, tag = "1")]
    pub lease: Lease,
    /// As [`VerdictKind`] numbers them.
    #[prost(uint32, tag = "2")]
    pub verdict: u32,
}

/// The verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum VerdictKind {
    /// It settled its lease.
    Applied = 1,
    /// The lease was settled by the same report before.
    Duplicate = 2,
    /// The lease was ended by something else.
    Stale = 3,
    /// No such lease was given to this worker.
    UnknownLease = 4,
}

/// The answer to results.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ResultAck {
    /// One for each.
    #[prost(message, repeated, tag = "1")]
    pub verdicts: Vec<Verdict>,
}

/// A worker is to stop working on a delivery.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Cancel {
    /// The delivery.
    #[prost(message, required, tag = "1")]
    pub lease: Lease,
    /// As [`CancelKind`] numbers them.
    #[prost(uint32, tag = "2")]
    pub reason: u32,
    /// How long it may take, in milliseconds; 0 if the lease is not the worker's any more.
    #[prost(uint64, tag = "3")]
    pub grace: u64,
    /// What whoever asked for it said.
    #[prost(string, tag = "4")]
    pub message: String,
}

/// Why a worker is to stop working on a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum CancelKind {
    /// It is not the worker's any more.
    Stale = 1,
    /// The task's deadline is over.
    Expired = 2,
    /// Somebody asked for it.
    Asked = 3,
}

/// A side is to finish and leave, or says that it will.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Drain {
    /// What is drained, for people.
    #[prost(string, tag = "1")]
    pub scope: String,
    /// How long it may take, in milliseconds; 0 if there is no limit.
    #[prost(uint64, tag = "2")]
    pub deadline: u64,
    /// Where to go instead.
    #[prost(string, repeated, tag = "3")]
    pub alternates: Vec<String>,
}

/// The answer to [`Drain`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct DrainAck {
    /// How many deliveries are still at work.
    #[prost(uint32, tag = "1")]
    pub running: u32,
}

/// Bytes for whoever holds a lease; they travel beside it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Signal {
    /// The delivery.
    #[prost(message, required, tag = "1")]
    pub lease: Lease,
    /// Comes back in the answer.
    #[prost(uint64, tag = "2")]
    pub seq: u64,
    /// What the signal is, between the application's two sides.
    #[prost(string, tag = "3")]
    pub kind: String,
}

/// The answer to [`Signal`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct SignalAck {
    /// The delivery.
    #[prost(message, required, tag = "1")]
    pub lease: Lease,
    /// The signal.
    #[prost(uint64, tag = "2")]
    pub seq: u64,
    /// As [`SignalKind`] numbers them.
    #[prost(uint32, tag = "3")]
    pub verdict: u32,
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum SignalKind {
    /// The handler has it.
    Applied = 1,
    /// The handler takes no signals.
    Unsupported = 2,
    /// The delivery is over.
    Stale = 3,
}
