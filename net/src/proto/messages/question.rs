//! What is there, and what operators do.

use bytes::Bytes;
use prost::Message;

use super::{Err, Pair};

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
    /// As [`State`](super::State) numbers them.
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
    /// As [`OutcomeClass`](super::OutcomeClass) numbers them, 0 if it has not ended.
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
