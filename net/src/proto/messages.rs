//! The fields of the frames. Numbers follow the frames' tables from 1 and are never used again.
//!
//! Names in the frames that every task crosses are bytes: they are compared, not owned, and are
//! checked where they become names. On the wire they are what a protobuf string is.

use bytes::Bytes;
use prost::Message;

/// A typed error.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Err {
    /// As [`WireCode`](super::WireCode) numbers them.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    /// The same request may succeed later.
    #[prost(bool, tag = "2")]
    pub retryable: bool,
    /// When to try again, in milliseconds; 0 if not known.
    #[prost(uint64, tag = "3")]
    pub retry_after: u64,
    /// One sentence for people.
    #[prost(string, tag = "4")]
    pub message: String,
    /// More, by code.
    #[prost(bytes = "bytes", tag = "5")]
    pub details: Bytes,
}

/// One delivery.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Lease {
    /// Where the session keeps it.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The fencing number.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
}

/// A name and a value.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Pair {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// The client's first frame.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Hello {
    /// The lowest version it speaks.
    #[prost(uint32, tag = "1")]
    pub proto_min: u32,
    /// The highest version it speaks.
    #[prost(uint32, tag = "2")]
    pub proto_max: u32,
    /// Bits of what it can do.
    #[prost(uint64, tag = "3")]
    pub features: u64,
    /// The library it is built with.
    #[prost(string, tag = "4")]
    pub sdk_name: String,
    /// That library's version.
    #[prost(string, tag = "5")]
    pub sdk_version: String,
    /// What it wants to be: 1 worker, 2 producer, 3 operator, 4 observer.
    #[prost(uint32, repeated, tag = "6")]
    pub roles: Vec<u32>,
    /// A token, for a later version.
    #[prost(bytes = "bytes", optional, tag = "7")]
    pub token: Option<Bytes>,
    /// For a later version.
    #[prost(bytes = "bytes", optional, tag = "8")]
    pub resume_token: Option<Bytes>,
    /// The largest header it takes, 0 for the protocol's own limit.
    #[prost(uint64, tag = "9")]
    pub max_frame: u64,
    /// Its wall clock, in milliseconds since 1970, for people.
    #[prost(uint64, tag = "10")]
    pub clock: u64,
}

/// Limits of the server, where they are lower than the protocol's.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Limits {
    /// Bytes of a payload.
    #[prost(uint64, tag = "1")]
    pub payload: u64,
    /// Tasks of a batch.
    #[prost(uint64, tag = "2")]
    pub batch_tasks: u64,
    /// Payload bytes of a batch.
    #[prost(uint64, tag = "3")]
    pub batch_bytes: u64,
}

/// The server's answer to [`Hello`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct HelloAck {
    /// Random for each server.
    #[prost(bytes = "bytes", tag = "1")]
    pub server_id: Bytes,
    /// Rises with each start.
    #[prost(uint32, tag = "2")]
    pub incarnation: u32,
    /// The version that both speak.
    #[prost(uint32, tag = "3")]
    pub proto: u32,
    /// The features that both know.
    #[prost(uint64, tag = "4")]
    pub features: u64,
    /// Random for each connection.
    #[prost(bytes = "bytes", tag = "5")]
    pub session_id: Bytes,
    /// The present snapshot.
    #[prost(uint64, tag = "6")]
    pub generation: u64,
    /// How long a lease lives without a beat, in milliseconds.
    #[prost(uint64, tag = "7")]
    pub lease_ttl: u64,
    /// How often to beat, in milliseconds.
    #[prost(uint64, tag = "8")]
    pub beat: u64,
    /// How long an offer may stay unanswered, in milliseconds.
    #[prost(uint64, tag = "9")]
    pub accept_timeout: u64,
    /// After which silence a side is asked whether it lives, in milliseconds.
    #[prost(uint64, tag = "10")]
    pub ping: u64,
    /// The server's limits.
    #[prost(message, optional, tag = "11")]
    pub limits: Option<Limits>,
    /// Other servers.
    #[prost(string, repeated, tag = "12")]
    pub alternates: Vec<String>,
    /// For a later version.
    #[prost(uint64, tag = "13")]
    pub auth_expires: u64,
    /// For a later version.
    #[prost(bytes = "bytes", optional, tag = "14")]
    pub resume_token: Option<Bytes>,
    /// The server's wall clock, in milliseconds since 1970, for people.
    #[prost(uint64, tag = "15")]
    pub clock: u64,
}

/// Something was refused that has no answer of its own.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Error {
    /// The request, 0 if none.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// Why.
    #[prost(message, optional, tag = "2")]
    pub err: Option<Err>,
}

/// Asks whether the peer lives, or says so.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Ping {
    /// Comes back in the answer.
    #[prost(uint64, tag = "1")]
    pub nonce: u64,
    /// How long the asking side waits, in milliseconds.
    #[prost(uint64, tag = "2")]
    pub deadline: u64,
}

/// A side ends the session in order.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Goodbye {
    /// As [`GoodbyeReason`] numbers them.
    #[prost(uint32, tag = "1")]
    pub reason: u32,
    /// For people.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum GoodbyeReason {
    /// The client is done.
    ClientGoodbye = 1,
    /// Nothing was heard from the client for too long.
    LivenessExpired = 2,
    /// The worker was drained and has finished.
    Drained = 3,
    /// An operator put it out.
    Evicted = 4,
    /// Its credentials are over.
    AuthExpired = 5,
    /// The same instance came back on another session.
    Superseded = 6,
    /// It broke the protocol.
    ProtocolViolation = 7,
    /// The server is leaving.
    ServerShutdown = 8,
}

impl GoodbyeReason {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The reason of a number; one of a later version is none.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::ClientGoodbye,
            2 => Self::LivenessExpired,
            3 => Self::Drained,
            4 => Self::Evicted,
            5 => Self::AuthExpired,
            6 => Self::Superseded,
            7 => Self::ProtocolViolation,
            8 => Self::ServerShutdown,
            _ => return None,
        })
    }
}

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
    /// For a later version.
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

/// How many tasks wait in a pool, for a later version.
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
    /// For a later version.
    #[prost(uint64, tag = "16")]
    pub due: u64,
    /// For a later version.
    #[prost(uint64, tag = "17")]
    pub start_to_close: u64,
    /// For a later version.
    #[prost(uint64, tag = "18")]
    pub heartbeat: u64,
    /// In how many milliseconds it must have ended; 0 if it has no deadline.
    #[prost(uint64, tag = "19")]
    pub deadline: u64,
    /// For a later version.
    #[prost(message, optional, boxed, tag = "20")]
    pub trace: Option<Box<Trace>>,
    /// For a later version.
    #[prost(bytes = "bytes", optional, tag = "21")]
    pub last_progress: Option<Bytes>,
    /// For a later version.
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

/// Progress of one delivery, for a later version.
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
    /// For a later version.
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
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Cancel {
    /// The delivery.
    #[prost(message, required, tag = "1")]
    pub lease: Lease,
    /// As [`CancelKind`] numbers them.
    #[prost(uint32, tag = "2")]
    pub reason: u32,
    /// How long it may take, in milliseconds.
    #[prost(uint64, tag = "3")]
    pub grace: u64,
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
    /// For a later version.
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
    /// For a later version.
    #[prost(uint64, optional, tag = "11")]
    pub delay: Option<u64>,
    /// For a later version.
    #[prost(uint64, optional, tag = "12")]
    pub visible_after: Option<u64>,
    /// 0 to 9; 5 if not said.
    #[prost(uint32, optional, tag = "13")]
    pub priority: Option<u32>,
    /// The only node on which it may run.
    #[prost(string, optional, tag = "14")]
    pub require: Option<String>,
    /// For a later version.
    #[prost(string, repeated, tag = "15")]
    pub prefer: Vec<String>,
    /// For a later version.
    #[prost(bytes = "bytes", optional, tag = "16")]
    pub fairness_key: Option<Bytes>,
    /// For a later version.
    #[prost(bytes = "bytes", optional, tag = "17")]
    pub concurrency_key: Option<Bytes>,
    /// For a later version.
    #[prost(bytes = "bytes", optional, tag = "18")]
    pub affinity_key: Option<Bytes>,
    /// What happens after a retryable failure.
    #[prost(message, optional, boxed, tag = "19")]
    pub retry: Option<Box<Retry>>,
    /// Lost deliveries after which it is given up.
    #[prost(uint32, optional, tag = "20")]
    pub max_lost_deliveries: Option<u32>,
    /// For a later version.
    #[prost(uint64, optional, tag = "21")]
    pub retention: Option<u64>,
    /// Milliseconds; 0 means now or not at all.
    #[prost(uint64, optional, tag = "22")]
    pub schedule_to_start: Option<u64>,
    /// For a later version.
    #[prost(uint64, optional, tag = "23")]
    pub start_to_close: Option<u64>,
    /// For a later version.
    #[prost(uint64, optional, tag = "24")]
    pub heartbeat_timeout: Option<u64>,
    /// Milliseconds.
    #[prost(uint64, optional, tag = "25")]
    pub deadline: Option<u64>,
    /// 0 what the server has, 1 durable, 2 volatile.
    #[prost(uint32, tag = "26")]
    pub durability: u32,
    /// For a later version.
    #[prost(uint64, optional, tag = "27")]
    pub resume_grace: Option<u64>,
    /// For a later version.
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
    /// For a later version.
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
    /// For a later version.
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
}

/// What a query is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum QueryKind {
    /// One task.
    Get = 1,
    /// Tasks.
    List = 2,
    /// One task, with the reason why it is not running.
    Explain = 3,
    /// For a later version.
    Stats = 4,
    /// Tasks that were given up.
    Dead = 5,
    /// Connected workers.
    Workers = 6,
    /// Pools.
    Pools = 7,
}

/// Which things a query is about; what is not given does not restrict.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Filter {
    /// In this namespace.
    #[prost(string, optional, tag = "1")]
    pub namespace: Option<String>,
    /// On this task queue.
    #[prost(string, optional, tag = "2")]
    pub task_queue: Option<String>,
    /// Of this type.
    #[prost(string, optional, tag = "3")]
    pub r#type: Option<String>,
    /// In this state.
    #[prost(uint32, optional, tag = "4")]
    pub state: Option<u32>,
    /// This task.
    #[prost(bytes = "bytes", tag = "5")]
    pub task_id: Bytes,
}

/// Which part of a long answer is wanted.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Page {
    /// How many items at most; 0 for the server's choice.
    #[prost(uint32, tag = "1")]
    pub size: u32,
    /// `next_page` of the answer before, empty for the first.
    #[prost(bytes = "bytes", tag = "2")]
    pub token: Bytes,
}

/// A question about what is there.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Query {
    /// Comes back in the answer.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// As [`QueryKind`] numbers them.
    #[prost(uint32, tag = "2")]
    pub kind: u32,
    /// Which.
    #[prost(message, optional, tag = "3")]
    pub filter: Option<Filter>,
    /// Which part.
    #[prost(message, optional, tag = "4")]
    pub page: Option<Page>,
}

/// A task as it is now.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TaskInfo {
    /// The task.
    #[prost(bytes = "bytes", tag = "1")]
    pub task_id: Bytes,
    /// Its namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// Its task queue.
    #[prost(string, tag = "3")]
    pub task_queue: String,
    /// Its activity type.
    #[prost(string, tag = "4")]
    pub r#type: String,
    /// As [`State`] numbers them.
    #[prost(uint32, tag = "5")]
    pub state: u32,
    /// The attempt, from 1.
    #[prost(uint32, tag = "6")]
    pub attempt: u32,
    /// Deliveries accepted.
    #[prost(uint32, tag = "7")]
    pub deliveries: u32,
    /// Accepted deliveries lost.
    #[prost(uint32, tag = "8")]
    pub lost: u32,
    /// Who has it, 0 if nobody.
    #[prost(uint64, tag = "9")]
    pub worker_id: u64,
    /// The epoch of the last offer, 0 if there was none.
    #[prost(uint64, tag = "10")]
    pub epoch: u64,
    /// Why it is where it is.
    #[prost(string, tag = "11")]
    pub reason: String,
    /// How long ago it was submitted, in milliseconds.
    #[prost(uint64, tag = "12")]
    pub age: u64,
    /// The only node on which it may run.
    #[prost(string, tag = "13")]
    pub require: String,
    /// 0 to 9.
    #[prost(uint32, tag = "14")]
    pub priority: u32,
    /// As [`OutcomeClass`] numbers them, 0 if it has not ended.
    #[prost(uint32, tag = "15")]
    pub class: u32,
    /// The application's failure code.
    #[prost(string, tag = "16")]
    pub code: String,
    /// How it failed, for people.
    #[prost(string, tag = "17")]
    pub message: String,
    /// The length of the payload as it was handed in.
    #[prost(uint64, tag = "18")]
    pub size: u64,
}

/// A connected worker.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct WorkerInfo {
    /// Its id.
    #[prost(uint64, tag = "1")]
    pub worker_id: u64,
    /// Its name for people.
    #[prost(string, tag = "2")]
    pub identity: String,
    /// Where it runs.
    #[prost(string, tag = "3")]
    pub node: String,
    /// Which build it runs.
    #[prost(string, tag = "4")]
    pub build: String,
    /// What it serves, as `namespace/queue/type`.
    #[prost(string, repeated, tag = "5")]
    pub pools: Vec<String>,
    /// How many tasks it takes at once.
    #[prost(uint32, tag = "6")]
    pub credit: u32,
    /// How many it has.
    #[prost(uint32, tag = "7")]
    pub in_flight: u32,
    /// It is leaving.
    #[prost(bool, tag = "8")]
    pub draining: bool,
    /// How long it has been connected, in milliseconds.
    #[prost(uint64, tag = "9")]
    pub age: u64,
    /// For people.
    #[prost(message, repeated, tag = "10")]
    pub labels: Vec<Pair>,
    /// Whose it is.
    #[prost(string, tag = "11")]
    pub principal: String,
}

/// A pool.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PoolInfo {
    /// Its namespace.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// Its task queue.
    #[prost(string, tag = "2")]
    pub task_queue: String,
    /// Its activity type.
    #[prost(string, tag = "3")]
    pub r#type: String,
    /// How many workers serve it.
    #[prost(uint32, tag = "4")]
    pub workers: u32,
    /// How many tasks wait.
    #[prost(uint64, tag = "5")]
    pub waiting: u64,
    /// The credit of its workers.
    #[prost(uint64, tag = "6")]
    pub credit: u64,
    /// How many tasks its workers have.
    #[prost(uint64, tag = "7")]
    pub in_flight: u64,
    /// How its tickets are drawn.
    #[prost(string, tag = "8")]
    pub policy: String,
}

/// The answer to [`Query`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Reply {
    /// The request.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// Tasks.
    #[prost(message, repeated, tag = "2")]
    pub tasks: Vec<TaskInfo>,
    /// Workers.
    #[prost(message, repeated, tag = "3")]
    pub workers: Vec<WorkerInfo>,
    /// Pools.
    #[prost(message, repeated, tag = "4")]
    pub pools: Vec<PoolInfo>,
    /// Where the next page begins, empty after the last.
    #[prost(bytes = "bytes", tag = "5")]
    pub next_page: Bytes,
    /// The snapshot that was read.
    #[prost(uint64, tag = "6")]
    pub generation: u64,
    /// Why there is no answer.
    #[prost(message, optional, boxed, tag = "7")]
    pub err: Option<Box<Err>>,
}

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum AdminOp {
    /// A dead task is to be tried again, in a later version.
    Requeue = 1,
    /// A dead task is to be forgotten, in a later version.
    Discard = 2,
    /// In a later version.
    Hold = 3,
    /// In a later version.
    Release = 4,
    /// A worker is to finish and leave.
    Drain = 5,
    /// In a later version.
    Cordon = 6,
    /// In a later version.
    Uncordon = 7,
    /// In a later version.
    Evict = 8,
    /// In a later version.
    Signal = 9,
    /// In a later version.
    Supersede = 10,
    /// In a later version.
    RunNow = 11,
    /// In a later version.
    Policy = 12,
}

/// An operator does something.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Admin {
    /// Comes back in the answer.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// As [`AdminOp`] numbers them.
    #[prost(uint32, tag = "2")]
    pub op: u32,
    /// What it is done to: for a drain the worker's id in decimal digits.
    #[prost(string, tag = "3")]
    pub target: String,
    /// More, by op.
    #[prost(message, repeated, tag = "4")]
    pub args: Vec<Pair>,
}

/// The answer to [`Admin`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct AdminAck {
    /// The request.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// How many things it was done to.
    #[prost(uint64, tag = "2")]
    pub affected: u64,
    /// Why it was refused.
    #[prost(message, optional, boxed, tag = "3")]
    pub err: Option<Box<Err>>,
}

/// A piece of a large payload; its bytes travel beside it.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Piece {
    /// Which payload.
    #[prost(uint64, tag = "1")]
    pub stream_ref: u64,
    /// Where the piece belongs: how many bytes came before.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// Nothing follows.
    #[prost(bool, tag = "3")]
    pub last: bool,
}
