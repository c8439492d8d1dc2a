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
    /// Why one task, or the tasks of a pool, are where they are.
    Explain = 3,
    /// How much there is of everything, a pool at a time.
    Stats = 4,
    /// Tasks that were given up.
    Dead = 5,
    /// Connected workers.
    Workers = 6,
    /// Pools.
    Pools = 7,
    /// What is held.
    Holds = 8,
    /// What happened to one task.
    Events = 9,
    /// Namespaces and their settings.
    Namespaces = 10,
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
    /// Given up for this reason.
    #[prost(string, optional, tag = "6")]
    pub reason: Option<String>,
    /// Given up with a failure that looks like this.
    #[prost(string, optional, tag = "7")]
    pub fingerprint: Option<String>,
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
    /// What a task that was given up is found by.
    #[prost(string, tag = "19")]
    pub fingerprint: String,
    /// The producer's own.
    #[prost(bytes = "bytes", tag = "20")]
    pub owner_key: Bytes,
    /// It is held.
    #[prost(bool, tag = "21")]
    pub held: bool,
}

/// Something that keeps a task from running, or says where it is.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Blocker {
    /// The word for it.
    #[prost(string, tag = "1")]
    pub reason: String,
    /// One sentence with its figures.
    #[prost(string, tag = "2")]
    pub text: String,
    /// The figures by name.
    #[prost(message, repeated, tag = "3")]
    pub figures: Vec<Pair>,
    /// The command to type next, empty if there is none.
    #[prost(string, tag = "4")]
    pub next: String,
}

/// Why a task was placed on the worker that has it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Placing {
    /// The worker.
    #[prost(uint64, tag = "1")]
    pub worker_id: u64,
    /// The policy.
    #[prost(string, tag = "2")]
    pub policy: String,
    /// The ticket that was drawn.
    #[prost(uint64, tag = "3")]
    pub ticket: u64,
    /// The snapshot that was read.
    #[prost(uint64, tag = "4")]
    pub generation: u64,
    /// How many workers were candidates.
    #[prost(uint32, tag = "5")]
    pub candidates: u32,
    /// How many of them refused before one took it.
    #[prost(uint32, tag = "6")]
    pub refused: u32,
    /// Choosing again from what is recorded comes to the same worker.
    #[prost(bool, tag = "7")]
    pub replayed: bool,
    /// In one sentence.
    #[prost(string, tag = "8")]
    pub text: String,
}

/// Why a task, or the tasks of a pool, are where they are.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Explanation {
    /// The reason that comes first.
    #[prost(message, optional, tag = "1")]
    pub primary: Option<Blocker>,
    /// All of them, the first one included.
    #[prost(message, repeated, tag = "2")]
    pub blockers: Vec<Blocker>,
    /// Why this worker has it.
    #[prost(message, optional, tag = "3")]
    pub placed: Option<Placing>,
}

/// What is held.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct HoldInfo {
    /// `owner`, `pool` or `namespace`.
    #[prost(string, tag = "1")]
    pub scope: String,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// How many tasks of the owner wait because of it; not counted for pools and namespaces.
    #[prost(uint64, optional, tag = "3")]
    pub waiting: Option<u64>,
    /// How long it has been held, in milliseconds.
    #[prost(uint64, tag = "4")]
    pub age: u64,
}

/// A namespace.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct NamespaceInfo {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// How many pools it has.
    #[prost(uint64, tag = "2")]
    pub pools: u64,
    /// How many tasks wait.
    #[prost(uint64, tag = "3")]
    pub waiting: u64,
    /// How many are offered or running, where that is counted.
    #[prost(uint64, tag = "4")]
    pub in_flight: u64,
    /// What was set for it.
    #[prost(message, repeated, tag = "5")]
    pub settings: Vec<Pair>,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Happening {
    /// Rises by one with each.
    #[prost(uint64, tag = "1")]
    pub seq: u64,
    /// How long ago, in milliseconds.
    #[prost(uint64, tag = "2")]
    pub age: u64,
    /// The word for it.
    #[prost(string, tag = "3")]
    pub kind: String,
    /// Where.
    #[prost(string, tag = "4")]
    pub namespace: String,
    /// In which pool, as `namespace/queue/type`.
    #[prost(string, tag = "5")]
    pub pool: String,
    /// To which task.
    #[prost(bytes = "bytes", tag = "6")]
    pub task_id: Bytes,
    /// To or by which worker.
    #[prost(uint64, tag = "7")]
    pub worker_id: u64,
    /// More, by kind.
    #[prost(message, repeated, tag = "8")]
    pub details: Vec<Pair>,
}

/// A client is told what happens from here on, or no more.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Watch {
    /// Comes back with each event.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// What about.
    #[prost(message, optional, tag = "2")]
    pub filter: Option<Filter>,
    /// From this one on, as far as it is still known; 0 for what is new.
    #[prost(uint64, tag = "3")]
    pub from_seq: u64,
    /// Ends the watch of that `req`.
    #[prost(bool, tag = "4")]
    pub stop: bool,
}

/// Something that a watch is about.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Event {
    /// The watch.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// Where the watch is; give it plus one to go on later.
    #[prost(uint64, tag = "2")]
    pub seq: u64,
    /// The word for what happened.
    #[prost(string, tag = "3")]
    pub kind: String,
    /// What happened.
    #[prost(message, optional, tag = "4")]
    pub body: Option<Happening>,
    /// So many events before this one are not known any more.
    #[prost(uint64, tag = "5")]
    pub missed: u64,
    /// Why the watch is over.
    #[prost(message, optional, boxed, tag = "6")]
    pub err: Option<Box<Err>>,
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
    /// How a worker is chosen.
    #[prost(string, tag = "8")]
    pub policy: String,
    /// What else was set for it.
    #[prost(message, repeated, tag = "9")]
    pub settings: Vec<Pair>,
    /// Why its tasks wait, if any do.
    #[prost(string, tag = "10")]
    pub reason: String,
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
    /// The reasons that were asked for.
    #[prost(message, optional, boxed, tag = "8")]
    pub explanation: Option<Box<Explanation>>,
    /// What is held.
    #[prost(message, repeated, tag = "9")]
    pub holds: Vec<HoldInfo>,
    /// What happened.
    #[prost(message, repeated, tag = "10")]
    pub events: Vec<Happening>,
    /// Namespaces.
    #[prost(message, repeated, tag = "11")]
    pub namespaces: Vec<NamespaceInfo>,
}

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum AdminOp {
    /// Tasks that were given up are to be tried again.
    Requeue = 1,
    /// Tasks that were given up are to be forgotten.
    Discard = 2,
    /// Tasks of an owner, pool or namespace are not to be placed.
    Hold = 3,
    /// They are again.
    Release = 4,
    /// Workers are to finish and leave.
    Drain = 5,
    /// Workers are to take nothing more for now.
    Cordon = 6,
    /// They are again.
    Uncordon = 7,
    /// A worker is put out.
    Evict = 8,
    /// The holder of a task is told something.
    Signal = 9,
    /// Older tasks of an owner are to stop, and none may follow.
    Supersede = 10,
    /// A task is not to wait for its time.
    RunNow = 11,
    /// A pool or namespace is set up.
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
    /// What it is done to: a task's or worker's id, or `kind:name` where there are several kinds.
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
