//! The dispatch engine of slipswitch: who is connected, who gets the next task, and how it ends.
//!
//! No IO, no clock, no randomness: every step takes the present time as an argument, and wakes the
//! owners of other inboxes through [`Notify`]. The concurrency is lock-free where tasks flow, goes
//! through one facade (`sync`), and is model-checked over this very source in `loom-tests`.
//! `ARCHITECTURE.md` has the design and the table of memory edges, to which the comments `[E…]`
//! at atomic operations refer.

mod admission;
mod backlog;
mod batch;
mod cancel;
mod cell;
mod credit;
mod cursor;
mod dead;
mod drain;
mod engine;
mod gate;
mod hold;
mod id;
mod idempotency;
mod inbox;
mod index;
mod lane;
mod lease;
mod life;
pub mod limits;
mod line;
mod mix;
#[cfg(any(feature = "models", slipswitch_loom))]
#[doc(hidden)]
pub mod model;
mod mutant;
mod name;
mod outcome;
mod owner;
mod pool;
mod pump;
mod registry;
mod report;
mod retention;
mod retry;
mod select;
mod session;
mod settle;
mod signal;
mod slab;
mod snapshot;
mod status;
mod submit;
mod sync;
mod table;
mod task;
mod text;
mod time;
mod timer;
mod waiting;
mod worker;

pub use admission::{
    EntryError, Grant, NamespaceMode, PoolEntry, Principal, Register, RegisterError, Role,
};
pub use batch::{BatchItem, BatchRefused};
pub use cancel::{Cancel, Cancelled};
pub use cell::{
    ArcSwapCell, ArcSwapCells, ArcSwapGuard, CellFamily, EpochCell, EpochCells, EpochGuard,
    ModelCell, ModelCells, ModelGuard, SnapshotCell,
};
pub use credit::CREDIT_MAX;
pub use dead::{DeadFilter, DeadLetter, Fingerprint};
pub use drain::{DrainMode, DrainScope, DrainStatus, Drained};
pub use engine::{AdminError, Config, Engine};
pub use gate::{Gate, Ticket};
pub use hold::{Hold, HoldStatus};
pub use id::{Generation, InstanceId, InvalidTaskId, Lease, SessionId, TaskId, WorkerId};
pub use inbox::{Batch, Inbox, Pushed};
pub use life::{LIFE, LifeCell, LifeEvent, LifeNext, life_table};
pub use name::{
    ActivityType, Address, DEFAULT_TASK_QUEUE, InvalidName, NAME_BYTES_MAX, Namespace, Node,
    PoolKey, TaskQueue,
};
pub use outcome::{Class, Delivered, Mailbox, Notify, Outcome, Watcher};
pub use pool::Policy;
pub use report::{
    Beat, CancelReason, CloseReason, End, Failure, FailureClass, RejectCode, Report, Verdict,
};
pub use retry::{RetryKind, RetryPolicy};
pub use select::{Decision, Reservation, Route, Selection};
pub use session::{Offer, Signalled, Stop, WorkerSession};
pub use signal::{SignalVerdict, Verdicts};
pub use status::{PoolStatus, Reason, TaskFilter, TaskStatus, WorkerStatus};
pub use submit::{Refused, SubmitError, Submitted};
pub use task::{NewTask, Rare, Task, TaskOptions, TaskState, Trace};
pub use text::{Text, cut};
pub use time::Instant;
pub use timer::TIMER_TICK;
