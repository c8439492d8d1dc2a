//! Commands: cancelling, holding, draining, dead letters.

use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{DrainScope, Hold, Policy, PoolKey, TaskId, WorkerId};
use slipswitch_net::proto::messages as m;

use super::ask::{state_word, task_info};
use super::request::{Answer, Question, Requests};
use super::{Client, TaskInfo};
use crate::error::QueryError;

/// What a cancellation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cancelled {
    /// Whether it was this call that did it. Cancelling twice changes nothing.
    pub changed: bool,
    /// The word for the state afterwards: `cancelled`, `cancelling` while a handler still has the
    /// task, or how it had ended before.
    pub state: String,
}

/// Something that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldInfo {
    /// `owner`, `pool` or `namespace`.
    pub scope: String,
    /// Its name; an owner's begins with the namespace.
    pub name: String,
    /// How many tasks of the owner wait because of it; not counted for pools and namespaces.
    pub tasks: Option<u64>,
    /// How long it has been held.
    pub age: Duration,
}

/// Which dead letters. What is not given does not restrict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadQuery {
    filter: m::Filter,
    limit: usize,
}

impl Default for DeadQuery {
    fn default() -> Self {
        Self { filter: m::Filter::default(), limit: 100 }
    }
}

impl DeadQuery {
    /// Lists at most so many, 100 by default; commands go over all.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Those of a namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.filter.namespace = Some(namespace.into());
        self
    }

    /// Those of a task queue.
    #[must_use]
    pub fn task_queue(mut self, task_queue: impl Into<String>) -> Self {
        self.filter.task_queue = Some(task_queue.into());
        self
    }

    /// Those of an activity type.
    #[must_use]
    pub fn activity_type(mut self, activity_type: impl Into<String>) -> Self {
        self.filter.r#type = Some(activity_type.into());
        self
    }

    /// Those that were given up for a reason, by the word of their class.
    #[must_use]
    pub fn reason(mut self, class: impl Into<String>) -> Self {
        self.filter.reason = Some(class.into());
        self
    }

    /// Those with a failure that looks alike.
    #[must_use]
    pub fn fingerprint(mut self, fingerprint: impl Into<String>) -> Self {
        self.filter.fingerprint = Some(fingerprint.into());
        self
    }

    fn args(&self) -> Vec<m::Pair> {
        let m::Filter { namespace, task_queue, r#type, reason, fingerprint, .. } = &self.filter;
        let given = [
            ("namespace", namespace),
            ("task_queue", task_queue),
            ("type", r#type),
            ("reason", reason),
            ("fingerprint", fingerprint),
        ];
        given.into_iter().filter_map(|(name, value)| Some(pair(name, value.as_ref()?))).collect()
    }
}

fn pair(name: &str, value: &str) -> m::Pair {
    m::Pair { name: name.to_owned(), value: value.to_owned() }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The target of a hold, and what else the server needs for it.
fn target(hold: &Hold) -> Result<(String, Vec<m::Pair>), QueryError> {
    match hold {
        Hold::Owner(namespace, key) => {
            let key = std::str::from_utf8(key)
                .map_err(|_| QueryError::Malformed { what: "an owner key that is not UTF-8" })?;
            Ok((format!("owner:{key}"), vec![pair("namespace", namespace.as_str())]))
        }
        Hold::Pool(key) => Ok((format!("pool:{key}"), Vec::new())),
        Hold::Namespace(namespace) => Ok((format!("namespace:{namespace}"), Vec::new())),
        _ => Err(QueryError::Malformed { what: "a hold that this version does not know" }),
    }
}

impl Requests {
    /// Cancels one task.
    pub(crate) async fn cancel(
        &self,
        id: TaskId,
        reason: &str,
        grace: Option<Duration>,
    ) -> Result<Cancelled, QueryError> {
        let cancel = m::CancelTask {
            task_id: Bytes::copy_from_slice(id.as_bytes()),
            reason: reason.to_owned(),
            grace: grace.map(millis),
            ..m::CancelTask::default()
        };
        let ack = self.cancelled(cancel).await?;
        Ok(Cancelled { changed: ack.affected > 0, state: state_word(ack.state).to_owned() })
    }

    async fn cancelled(&self, cancel: m::CancelTask) -> Result<m::CancelTaskAck, QueryError> {
        match self.ask(Question::Cancel(cancel)).await? {
            Answer::Cancelled(ack) => Ok(ack),
            _ => Err(QueryError::Malformed { what: "another kind of answer" }),
        }
    }
}

impl Client {
    async fn command(
        &self,
        op: m::AdminOp,
        target: String,
        args: Vec<m::Pair>,
    ) -> Result<u64, QueryError> {
        let admin = m::Admin { req: 0, op: op as u32, target, args };
        match self.requests.ask(Question::Admin(admin)).await? {
            Answer::Done(affected) => Ok(affected),
            _ => Err(QueryError::Malformed { what: "another kind of answer" }),
        }
    }

    /// Cancels a task: at once if no worker has accepted it. Else its handler is told, and may
    /// finish within the grace, ten seconds if not given; whatever it comes to but a result, the
    /// task is cancelled. A task that has ended stays as it is.
    ///
    /// # Errors
    ///
    /// `NotFound` when the server does not know the task; others when it refuses or is not reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the cancellation back.
    pub async fn cancel(
        &self,
        id: TaskId,
        reason: &str,
        grace: Option<Duration>,
    ) -> Result<Cancelled, QueryError> {
        self.requests.cancel(id, reason, grace).await
    }

    /// Cancels the tasks of an owner in this client's namespace, or those of a generation below
    /// one; returns how many that changed.
    ///
    /// # Errors
    ///
    /// When the server refuses or is not reached.
    ///
    /// # Cancel safety
    ///
    /// As [`Client::cancel`].
    pub async fn cancel_owner(
        &self,
        owner_key: impl Into<Bytes>,
        below_generation: Option<u64>,
        reason: &str,
    ) -> Result<u64, QueryError> {
        let cancel = m::CancelTask {
            owner_key: owner_key.into(),
            below_generation,
            reason: reason.to_owned(),
            namespace: self.namespace.as_str().to_owned(),
            ..m::CancelTask::default()
        };
        self.requests.cancelled(cancel).await.map(|ack| ack.affected)
    }

    /// Cancels the tasks of an owner, in this client's namespace, that are of a generation below
    /// `generation`, and has the server refuse those that would still come with `StaleGeneration`.
    /// Returns how many tasks that changed.
    ///
    /// # Errors
    ///
    /// When the server refuses or is not reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back.
    pub async fn supersede(&self, owner_key: &str, generation: u64) -> Result<u64, QueryError> {
        let args = vec![
            pair("namespace", self.namespace.as_str()),
            pair("generation", &generation.to_string()),
        ];
        self.command(m::AdminOp::Supersede, format!("owner:{owner_key}"), args).await
    }

    /// Sends bytes to the handler that is at work on a task, and returns once it has them.
    ///
    /// # Errors
    ///
    /// `Stale` when nobody is at work on the task, `Unsupported` when its handler takes no
    /// signals; others when the server refuses or is not reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the signal back.
    pub async fn signal(&self, id: TaskId, kind: &str, payload: &str) -> Result<(), QueryError> {
        let args = vec![pair("kind", kind), pair("payload", payload)];
        self.command(m::AdminOp::Signal, id.to_string(), args).await.map(drop)
    }

    /// Has a scheduled task wait for a worker at once; returns whether that changed anything.
    ///
    /// # Errors
    ///
    /// `InvalidState` when it has a worker or has ended; others when the server refuses.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back.
    pub async fn run_now(&self, id: TaskId) -> Result<bool, QueryError> {
        let done = self.command(m::AdminOp::RunNow, id.to_string(), Vec::new()).await?;
        Ok(done > 0)
    }

    /// Sets how the workers of a pool are chosen; the server's default if no policy is given. The
    /// pool need not exist yet, and what is set lasts until the server ends.
    ///
    /// # Errors
    ///
    /// When the server refuses or is not reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back.
    pub async fn set_policy(
        &self,
        pool: &PoolKey,
        policy: Option<Policy>,
    ) -> Result<(), QueryError> {
        let args = vec![pair("policy", policy.map_or("default", Policy::as_str))];
        self.command(m::AdminOp::Policy, format!("pool:{pool}"), args).await.map(drop)
    }

    /// Holds the tasks of an owner, pool or namespace: when this returns none is given to a worker
    /// until [`Client::release`]. Those that run go on.
    ///
    /// # Errors
    ///
    /// When the server refuses or is not reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back.
    pub async fn hold(&self, hold: &Hold) -> Result<(), QueryError> {
        let (target, args) = target(hold)?;
        self.command(m::AdminOp::Hold, target, args).await.map(drop)
    }

    /// Lifts a hold.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is none of exactly that.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back.
    pub async fn release(&self, hold: &Hold) -> Result<(), QueryError> {
        let (target, args) = target(hold)?;
        self.command(m::AdminOp::Release, target, args).await.map(drop)
    }

    /// Lists what is held.
    ///
    /// # Errors
    ///
    /// When the server refuses or is not reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn holds(&self) -> Result<Vec<HoldInfo>, QueryError> {
        let (filter, page) = (m::Filter::default(), m::Page::default());
        let reply = self.query(m::QueryKind::Holds, filter, page).await?;
        let hold = |hold: m::HoldInfo| HoldInfo {
            scope: hold.scope,
            name: hold.name,
            tasks: hold.waiting,
            age: Duration::from_millis(hold.age),
        };
        Ok(reply.holds.into_iter().map(hold).collect())
    }

    /// Has the workers in a scope finish and leave, or the tasks of a pool or namespace stay where
    /// they are. When this returns nothing more of it is sent to a worker. At the deadline what
    /// still runs is taken away and waits again. Returns how many workers it concerns.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is no such worker; others when the server refuses.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back.
    pub async fn drain(
        &self,
        scope: &DrainScope,
        deadline: Option<Duration>,
    ) -> Result<u64, QueryError> {
        let deadline = deadline.map(|limit| pair("deadline", &millis(limit).to_string()));
        let args = deadline.into_iter().collect();
        self.command(m::AdminOp::Drain, scope.to_string(), args).await
    }

    /// As [`Client::drain`], and the workers stay.
    ///
    /// # Errors
    ///
    /// As [`Client::drain`].
    ///
    /// # Cancel safety
    ///
    /// As [`Client::drain`].
    pub async fn cordon(&self, scope: &DrainScope) -> Result<u64, QueryError> {
        self.command(m::AdminOp::Cordon, scope.to_string(), Vec::new()).await
    }

    /// Lifts a drain or cordon of exactly that scope; returns how many workers take work again.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is none.
    ///
    /// # Cancel safety
    ///
    /// As [`Client::drain`].
    pub async fn uncordon(&self, scope: &DrainScope) -> Result<u64, QueryError> {
        self.command(m::AdminOp::Uncordon, scope.to_string(), Vec::new()).await
    }

    /// Puts a worker out: its session ends, what it has goes to others.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is no such worker.
    ///
    /// # Cancel safety
    ///
    /// As [`Client::drain`].
    pub async fn evict(&self, worker: WorkerId) -> Result<(), QueryError> {
        self.command(m::AdminOp::Evict, worker.to_string(), Vec::new()).await.map(drop)
    }

    /// Lists tasks that were given up, the oldest first.
    ///
    /// # Errors
    ///
    /// When the server refuses or is not reached.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn dead(&self, query: &DeadQuery) -> Result<Vec<TaskInfo>, QueryError> {
        let mut letters = Vec::new();
        let mut token = Bytes::new();
        while letters.len() < query.limit {
            let size = u32::try_from(query.limit - letters.len()).unwrap_or(u32::MAX);
            let page = m::Page { size, token };
            let reply = self.query(m::QueryKind::Dead, query.filter.clone(), page).await?;
            for letter in reply.tasks {
                letters.push(task_info(letter)?);
            }
            token = reply.next_page;
            if token.is_empty() {
                break;
            }
        }
        Ok(letters)
    }

    /// Returns one task that was given up.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is no such dead letter.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn dead_letter(&self, id: TaskId) -> Result<TaskInfo, QueryError> {
        let task_id = Bytes::copy_from_slice(id.as_bytes());
        let filter = m::Filter { task_id, ..m::Filter::default() };
        let reply = self.query(m::QueryKind::Dead, filter, m::Page::default()).await?;
        let found = reply.tasks.into_iter().next();
        task_info(found.ok_or(QueryError::Malformed { what: "no task in the answer" })?)
    }

    /// Has a task that was given up live again, from its first attempt.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is no such dead letter, or no longer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back.
    pub async fn requeue(&self, id: TaskId) -> Result<(), QueryError> {
        self.command(m::AdminOp::Requeue, id.to_string(), Vec::new()).await.map(drop)
    }

    /// Has all tasks that a query finds live again; returns how many.
    ///
    /// # Errors
    ///
    /// When the server refuses or is not reached.
    ///
    /// # Cancel safety
    ///
    /// As [`Client::requeue`].
    pub async fn requeue_all(&self, query: &DeadQuery) -> Result<u64, QueryError> {
        self.command(m::AdminOp::Requeue, String::new(), query.args()).await
    }

    /// Forgets a task that was given up.
    ///
    /// # Errors
    ///
    /// As [`Client::requeue`].
    ///
    /// # Cancel safety
    ///
    /// As [`Client::requeue`].
    pub async fn discard(&self, id: TaskId) -> Result<(), QueryError> {
        self.command(m::AdminOp::Discard, id.to_string(), Vec::new()).await.map(drop)
    }

    /// Forgets all tasks that a query finds; returns how many.
    ///
    /// # Errors
    ///
    /// As [`Client::requeue_all`].
    ///
    /// # Cancel safety
    ///
    /// As [`Client::requeue`].
    pub async fn discard_all(&self, query: &DeadQuery) -> Result<u64, QueryError> {
        self.command(m::AdminOp::Discard, String::new(), query.args()).await
    }
}
