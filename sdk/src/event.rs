//! What a worker tells about itself while it runs.

use std::time::Duration;

use slipswitch_core::{Lease, TaskId, WorkerId};

use crate::error::{ConnectError, Refusal};
use crate::sync::Arc;

/// How long a worker may be unable to take work before it says so.
pub const NO_CREDIT_AFTER: Duration = Duration::from_secs(10);

/// An event of a worker.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// The server knows the worker. Said again after each reconnect.
    Registered {
        /// The worker's id, new for each session.
        worker_id: WorkerId,
        /// The server's address.
        address: String,
    },
    /// The server took the registration but not this part of it.
    PoolRefused {
        /// The pool, as `namespace/queue/type`.
        pool: String,
        /// Why.
        refusal: Refusal,
    },
    /// The session is over; handlers go on.
    Disconnected {
        /// Why.
        reason: String,
    },
    /// A dial failed.
    DialFailed {
        /// Why.
        error: Arc<ConnectError>,
        /// When the next one follows; none if this was the last.
        retry_in: Option<Duration>,
    },
    /// For [`NO_CREDIT_AFTER`] the worker could not grant credit, so that no work arrives.
    NoCredit {
        /// For how long by now.
        since: Duration,
    },
    /// The server asked the worker to finish and leave.
    Draining,
    /// A result was too late: another delivery of the task, or its end, came first. What the
    /// handler did outside may have happened twice.
    ResultRefused {
        /// The task.
        task_id: TaskId,
        /// The delivery.
        lease: Lease,
        /// The server's word for it.
        verdict: String,
    },
}

/// How a worker left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Left {
    /// Why it left.
    pub reason: LeftReason,
    /// Deliveries whose outcome has the server's verdict.
    pub finished: u64,
    /// Deliveries that were handed back: the handler was still at work, or its outcome had no
    /// verdict yet. The server delivers them again.
    pub abandoned: u64,
}

/// Why a worker left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeftReason {
    /// The future given to `run_until` was ready.
    Shutdown,
    /// The server drained this worker.
    Drained,
}
