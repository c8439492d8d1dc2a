//! What the server knows: tasks, workers, pools.

use bytes::Bytes;
use slipswitch_core::{InvalidName, Node, PoolKey, TaskId, WorkerId};
use slipswitch_net::proto::messages as m;

use super::Client;
use super::request::{Answer, Question};
use crate::error::QueryError;

/// A task as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskInfo {
    /// The task.
    pub task_id: TaskId,
    /// Its pool.
    pub pool: PoolKey,
    /// The word for its state: `pending`, `running`, `completed` and so on.
    pub state: String,
    /// The word for why it is where it is: `NoWorker`, `AllFull`, `Running` and so on.
    pub reason: String,
    /// The only node on which it may run.
    pub require: Option<Node>,
    /// The attempt that is under way or next, from 1.
    pub attempt: u32,
    /// How many deliveries were accepted.
    pub deliveries: u32,
    /// How many accepted deliveries were lost.
    pub lost: u32,
    /// The worker that has it.
    pub worker: Option<WorkerId>,
    /// The epoch of its last offer, 0 if there was none.
    pub lease_epoch: u64,
    /// The word for why it ended, empty if it has not.
    pub class: String,
    /// The handler's failure code, empty if there is none.
    pub code: String,
    /// How it failed, for people; empty if it did not.
    pub message: String,
    /// The producer's own key, empty if there is none.
    pub owner_key: Bytes,
    /// 0 to 9.
    pub priority: u32,
    /// Whether it is held.
    pub held: bool,
    /// What a dead letter can be found by; empty for other tasks.
    pub fingerprint: String,
}

/// A connected worker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerInfo {
    /// Its id.
    pub worker_id: WorkerId,
    /// Its name for people.
    pub identity: String,
    /// Where it runs.
    pub node: Option<Node>,
    /// What it serves; the first 256 if it serves more.
    pub pools: Vec<PoolKey>,
    /// How many tasks it takes at once.
    pub credit: u32,
    /// How many it has.
    pub in_flight: u32,
    /// Whether it is leaving.
    pub draining: bool,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolInfo {
    /// Its key.
    pub pool: PoolKey,
    /// How many workers serve it.
    pub workers: u32,
    /// How many tasks wait.
    pub waiting: u64,
    /// The credit of its workers.
    pub credit: u64,
    /// How many tasks its workers have.
    pub in_flight: u64,
    /// How work is shared out among its workers.
    pub policy: String,
}

/// Which tasks to list. What is not given does not restrict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskQuery {
    filter: m::Filter,
    state: Option<String>,
    limit: usize,
}

impl Default for TaskQuery {
    fn default() -> Self {
        Self { filter: m::Filter::default(), state: None, limit: 100 }
    }
}

impl TaskQuery {
    /// Lists at most so many tasks, 100 by default.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Lists those of a namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.filter.namespace = Some(namespace.into());
        self
    }

    /// Lists those of a task queue.
    #[must_use]
    pub fn task_queue(mut self, task_queue: impl Into<String>) -> Self {
        self.filter.task_queue = Some(task_queue.into());
        self
    }

    /// Lists those of an activity type.
    #[must_use]
    pub fn activity_type(mut self, activity_type: impl Into<String>) -> Self {
        self.filter.r#type = Some(activity_type.into());
        self
    }

    /// Lists those in a state, by its word.
    #[must_use]
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }
}

const STATES: [&str; 8] =
    ["scheduled", "pending", "offered", "running", "completed", "dead", "cancelled", "cancelling"];

const CLASSES: [&str; 7] = [
    "completed",
    "attempts_exhausted",
    "terminal_failure",
    "lost_deliveries",
    "lost_offers",
    "expired",
    "cancelled",
];

pub(super) fn state_word(number: u32) -> &'static str {
    word(&STATES, number)
}

/// The word for a number of the wire, from 1; one of a later version is `other`.
fn word(words: &[&'static str], number: u32) -> &'static str {
    let at = number.checked_sub(1).and_then(|at| usize::try_from(at).ok());
    at.and_then(|at| words.get(at)).copied().unwrap_or("other")
}

pub(super) fn class_word(number: u32) -> &'static str {
    word(&CLASSES, number)
}

impl Client {
    /// Returns a task as it is now.
    ///
    /// # Errors
    ///
    /// `NotFound` when the server does not know the task, or no longer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn task(&self, id: TaskId) -> Result<TaskInfo, QueryError> {
        let task_id = Bytes::copy_from_slice(id.as_bytes());
        let filter = m::Filter { task_id, ..m::Filter::default() };
        let reply = self.query(m::QueryKind::Explain, filter, m::Page::default()).await?;
        let found = reply.tasks.into_iter().next();
        task_info(found.ok_or(QueryError::Malformed { what: "no task in the answer" })?)
    }

    /// Lists tasks in the order of their ids, which is that of their submission.
    ///
    /// # Errors
    ///
    /// When the server refuses, or does not answer in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskInfo>, QueryError> {
        let TaskQuery { mut filter, state, limit } = query;
        if let Some(state) = state {
            let at = STATES.iter().position(|word| *word == state);
            // A word of no state lists nothing, as the server would say of its number.
            filter.state =
                Some(at.map_or(u32::MAX, |at| u32::try_from(at + 1).unwrap_or(u32::MAX)));
        }
        let mut tasks = Vec::new();
        let mut token = Bytes::new();
        while tasks.len() < limit {
            let size = u32::try_from(limit - tasks.len()).unwrap_or(u32::MAX);
            let page = m::Page { size, token };
            let reply = self.query(m::QueryKind::List, filter.clone(), page).await?;
            for task in reply.tasks {
                tasks.push(task_info(task)?);
            }
            token = reply.next_page;
            if token.is_empty() {
                break;
            }
        }
        Ok(tasks)
    }

    /// Lists the connected workers, by id.
    ///
    /// # Errors
    ///
    /// As [`Client::tasks`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn workers(&self) -> Result<Vec<WorkerInfo>, QueryError> {
        let mut workers = Vec::new();
        let mut token = Bytes::new();
        loop {
            let page = m::Page { size: 0, token };
            let reply = self.query(m::QueryKind::Workers, m::Filter::default(), page).await?;
            for worker in reply.workers {
                workers.push(worker_info(worker)?);
            }
            token = reply.next_page;
            if token.is_empty() {
                return Ok(workers);
            }
        }
    }

    /// Lists the pools, by name.
    ///
    /// # Errors
    ///
    /// As [`Client::tasks`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn pools(&self) -> Result<Vec<PoolInfo>, QueryError> {
        let mut pools = Vec::new();
        let mut token = Bytes::new();
        loop {
            let page = m::Page { size: 0, token };
            let reply = self.query(m::QueryKind::Pools, m::Filter::default(), page).await?;
            for pool in reply.pools {
                pools.push(PoolInfo {
                    pool: key(&pool.namespace, &pool.task_queue, &pool.r#type)?,
                    workers: pool.workers,
                    waiting: pool.waiting,
                    credit: pool.credit,
                    in_flight: pool.in_flight,
                    policy: pool.policy,
                });
            }
            token = reply.next_page;
            if token.is_empty() {
                return Ok(pools);
            }
        }
    }

    pub(super) async fn query(
        &self,
        kind: m::QueryKind,
        filter: m::Filter,
        page: m::Page,
    ) -> Result<m::Reply, QueryError> {
        let query = m::Query { req: 0, kind: kind as u32, filter: Some(filter), page: Some(page) };
        match self.requests.ask(Question::Query(query)).await? {
            Answer::Reply(reply) => Ok(reply),
            Answer::Done(_) | Answer::Cancelled(_) => {
                Err(QueryError::Malformed { what: "another kind of answer" })
            }
        }
    }
}

fn malformed(_: InvalidName) -> QueryError {
    QueryError::Malformed { what: "a name in the answer" }
}

fn key(namespace: &str, queue: &str, activity_type: &str) -> Result<PoolKey, QueryError> {
    PoolKey::new(namespace, queue, activity_type).map_err(malformed)
}

pub(super) fn task_info(task: m::TaskInfo) -> Result<TaskInfo, QueryError> {
    let id = TaskId::from_slice(&task.task_id);
    Ok(TaskInfo {
        task_id: id.ok_or(QueryError::Malformed { what: "a task id in the answer" })?,
        pool: key(&task.namespace, &task.task_queue, &task.r#type)?,
        state: state_word(task.state).to_owned(),
        reason: task.reason,
        require: Node::optional(&task.require).map_err(malformed)?,
        attempt: task.attempt,
        deliveries: task.deliveries,
        lost: task.lost,
        worker: (task.worker_id != 0).then(|| WorkerId::new(task.worker_id)),
        lease_epoch: task.epoch,
        class: if task.class == 0 { String::new() } else { class_word(task.class).to_owned() },
        code: task.code,
        message: task.message,
        owner_key: task.owner_key,
        priority: task.priority,
        held: task.held,
        fingerprint: task.fingerprint,
    })
}

fn worker_info(worker: m::WorkerInfo) -> Result<WorkerInfo, QueryError> {
    let pools: Result<_, _> = worker.pools.iter().map(|pool| pool.parse()).collect();
    Ok(WorkerInfo {
        worker_id: WorkerId::new(worker.worker_id),
        identity: worker.identity,
        node: Node::optional(&worker.node).map_err(malformed)?,
        pools: pools.map_err(malformed)?,
        credit: worker.credit,
        in_flight: worker.in_flight,
        draining: worker.draining,
    })
}
