//! What lists and questions show.

use serde::Serialize;
use slipswitch::{Outcome, PoolInfo, TaskId, TaskInfo, WorkerInfo};
use slipswitch_server::clock::rfc3339;

use crate::output::{Embedded, Row};

/// A task.
#[derive(Debug, Serialize)]
pub(super) struct TaskView {
    task_id: String,
    state: String,
    /// Why it is where it is.
    reason: String,
    pool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    require: Option<String>,
    attempt: u32,
    deliveries: u32,
    lost: u32,
    /// The worker that has it.
    worker: Option<u64>,
    /// Of its last offer, 0 if there was none.
    epoch: u64,
    submitted: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    code: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    priority: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    owner: String,
    held: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    fingerprint: String,
}

impl TaskView {
    pub(super) fn of(task: &TaskInfo) -> Self {
        Self {
            task_id: task.task_id.to_string(),
            state: task.state.clone(),
            reason: task.reason.clone(),
            pool: task.pool.to_string(),
            require: task.require.as_ref().map(ToString::to_string),
            attempt: task.attempt,
            deliveries: task.deliveries,
            lost: task.lost,
            worker: task.worker.map(|worker| worker.as_u64()),
            epoch: task.lease_epoch,
            submitted: submitted(task.task_id),
            class: Some(task.class.clone()).filter(|class| !class.is_empty()),
            code: task.code.clone(),
            message: task.message.clone(),
            priority: task.priority,
            owner: String::from_utf8_lossy(&task.owner_key).into_owned(),
            held: task.held,
            fingerprint: task.fingerprint.clone(),
        }
    }

    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let shown = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
        vec![
            ("task", self.task_id.clone()),
            ("state", self.state.clone()),
            ("reason", explain(&self.reason)),
            ("class", self.class.clone().unwrap_or_default()),
            ("code", self.code.clone()),
            ("message", self.message.clone()),
            ("fingerprint", self.fingerprint.clone()),
            ("pool", self.pool.clone()),
            ("owner", self.owner.clone()),
            ("require", self.require.clone().unwrap_or_default()),
            ("worker", shown(self.worker)),
            ("attempt", self.attempt.to_string()),
            ("deliveries", self.deliveries.to_string()),
            ("lost", self.lost.to_string()),
            ("epoch", self.epoch.to_string()),
            ("submitted", self.submitted.clone()),
        ]
    }
}

impl Row for TaskView {
    const COLUMNS: &'static [&'static str] =
        &["TASK", "STATE", "REASON", "POOL", "ATTEMPT", "SUBMITTED"];

    fn cells(&self) -> Vec<String> {
        let attempt = self.attempt.to_string();
        let [id, state, reason, pool, submitted] =
            [&self.task_id, &self.state, &self.reason, &self.pool, &self.submitted];
        [id, state, reason, pool, &attempt, submitted].into_iter().cloned().collect()
    }
}

/// When a task was submitted: its id begins with the time in milliseconds.
fn submitted(id: TaskId) -> String {
    let millis = id.as_bytes().iter().take(6).fold(0, |time, byte| time << 8 | u64::from(*byte));
    rfc3339(millis)
}

/// Adds what a reason means.
fn explain(reason: &str) -> String {
    let meaning = match reason {
        "NoWorker" => "nobody serves its pool",
        "NoWorkerOnNode" => "nobody serves its pool on the node that it requires",
        "AllFull" => "all who could take it have no free slot",
        "AllDraining" => "all who could take it are leaving",
        "BehindOthers" => "tasks before it are placed first",
        "RetryBackoff" => "it waits for its next attempt",
        "NotDue" => "it was submitted for later",
        "Held" => "it, its owner, pool or namespace is held; slip release shows what is",
        "Cancelling" => "its handler was told to stop",
        "ServerDraining" => "the server is leaving",
        "Offered" => "sent to a worker that has not accepted it yet",
        "Running" => "a worker is at work on it",
        _ => return reason.to_owned(),
    };
    format!("{reason}: {meaning}")
}

/// A worker.
#[derive(Debug, Serialize)]
pub(super) struct WorkerView {
    worker: u64,
    identity: String,
    node: Option<String>,
    pools: Vec<String>,
    credit: u32,
    in_flight: u32,
    draining: bool,
}

impl WorkerView {
    pub(super) fn of(worker: &WorkerInfo) -> Self {
        Self {
            worker: worker.worker_id.as_u64(),
            identity: worker.identity.clone(),
            node: worker.node.as_ref().map(ToString::to_string),
            pools: worker.pools.iter().map(ToString::to_string).collect(),
            credit: worker.credit,
            in_flight: worker.in_flight,
            draining: worker.draining,
        }
    }
}

impl WorkerView {
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("worker", self.worker.to_string()),
            ("identity", self.identity.clone()),
            ("node", self.node.clone().unwrap_or_default()),
            ("state", self.state().to_owned()),
            ("credit", self.credit.to_string()),
            ("in flight", self.in_flight.to_string()),
            ("pools", self.pools.join(" ")),
        ]
    }

    const fn state(&self) -> &'static str {
        if self.draining { "draining" } else { "ready" }
    }
}

impl Row for WorkerView {
    const COLUMNS: &'static [&'static str] =
        &["WORKER", "IDENTITY", "NODE", "CREDIT", "IN FLIGHT", "STATE", "POOLS"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.worker.to_string(),
            self.identity.clone(),
            self.node.clone().unwrap_or_else(|| "-".to_owned()),
            self.credit.to_string(),
            self.in_flight.to_string(),
            self.state().to_owned(),
            self.pools.join(" "),
        ]
    }
}

/// A pool.
#[derive(Debug, Serialize)]
pub(super) struct PoolView {
    pool: String,
    workers: u32,
    waiting: u64,
    credit: u64,
    in_flight: u64,
    policy: String,
}

impl PoolView {
    pub(super) fn of(pool: &PoolInfo) -> Self {
        Self {
            pool: pool.pool.to_string(),
            workers: pool.workers,
            waiting: pool.waiting,
            credit: pool.credit,
            in_flight: pool.in_flight,
            policy: pool.policy.clone(),
        }
    }
}

impl Row for PoolView {
    const COLUMNS: &'static [&'static str] =
        &["POOL", "WORKERS", "WAITING", "CREDIT", "IN FLIGHT", "POLICY"];

    fn cells(&self) -> Vec<String> {
        let numbers = [self.workers.into(), self.waiting, self.credit, self.in_flight];
        let numbers = numbers.map(|number: u64| number.to_string());
        let mut cells = vec![self.pool.clone()];
        cells.extend(numbers);
        cells.push(self.policy.clone());
        cells
    }
}

/// How a task ended.
#[derive(Debug, Serialize)]
pub(super) struct Ended {
    /// The line of the input that it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    task_id: String,
    state: &'static str,
    class: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    code: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    attempts: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    content_type: String,
    #[serde(flatten)]
    result: Embedded,
}

impl Ended {
    pub(super) fn of(outcome: &Outcome, line: Option<u64>) -> Self {
        use slipswitch::Ending;
        let payload = outcome.payload();
        let is_completed = outcome.is_completed();
        Self {
            line,
            task_id: outcome.task_id().to_string(),
            state: match outcome.ending() {
                Ending::Completed => "completed",
                Ending::Cancelled => "cancelled",
                _ => "dead",
            },
            class: outcome.class().to_owned(),
            code: outcome.code().to_owned(),
            message: outcome.message().to_owned(),
            attempts: outcome.attempts(),
            content_type: payload.content_type().to_owned(),
            result: if is_completed {
                Embedded::of(payload.bytes(), payload.content_type())
            } else {
                Embedded::none()
            },
        }
    }
}
