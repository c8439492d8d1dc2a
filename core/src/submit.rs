//! Handing a task in: straight to a worker, or into its pool's line.

use thiserror::Error;

use crate::admission::{Principal, Role};
use crate::cell::CellFamily;
use crate::engine::{AdminError, Engine};
use crate::id::TaskId;
use crate::limits::{BACKLOG_BYTES_MAX, BACKLOG_PER_NAMESPACE_MAX};
use crate::outcome::{Delivered, Watcher};
use crate::pool::Pool;
use crate::pump::Placed;
use crate::select::{Chosen, Route};
use crate::settle::Timer;
use crate::sync::{Ordering, StdArc};
use crate::task::{NewTask, Task, TaskState};
use crate::time::Instant;
use crate::worker::RunList;

/// Why a task was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The server is leaving.
    #[error("the server is draining")]
    Draining,
    /// The principal is no producer in the namespace.
    #[error("not permitted to submit to namespace {0}")]
    PermissionDenied(crate::name::Namespace),
    /// The namespace does not exist.
    #[error("the namespace does not exist")]
    NotFound,
    /// A number is over its limit.
    #[error("over the limit of {max} {limit}")]
    LimitExceeded {
        /// Which limit.
        limit: &'static str,
        /// What is allowed.
        max: u64,
    },
    /// Too much waits already.
    #[error("over the quota of {max} {quota}")]
    QuotaExceeded {
        /// Which quota.
        quota: &'static str,
        /// What is allowed.
        max: u64,
    },
    /// A task with that id is known.
    #[error("a task with this id exists already")]
    Conflict,
    /// It was to start at once, and nobody serves the pool, or nobody on the node.
    #[error("no worker serves the pool")]
    NoWorker,
    /// It was to start at once, and those who serve the pool have no free credit.
    #[error("no worker of the pool has a free credit")]
    NoCapacity,
    /// An option has no meaning.
    #[error("{0}")]
    Invalid(&'static str),
}

/// A task that was not taken, handed back whole.
#[derive(Debug, Error)]
#[error("{error}")]
pub struct Refused {
    /// Why.
    #[source]
    pub error: SubmitError,
    /// The task as it was handed in.
    pub task: Box<NewTask>,
}

/// A task that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Submitted {
    /// Its id.
    pub id: TaskId,
    /// Whether it survives a crash of the server. Not in this engine, which is memory alone.
    pub durable: bool,
}

impl<F: CellFamily> Engine<F> {
    /// Takes a task. It goes straight to a worker with a free credit unless others wait before it.
    ///
    /// A `watcher` gets the outcome. The route is resolved anew if its pool was retired meanwhile.
    ///
    /// # Errors
    ///
    /// The task is handed back with the reason; nothing of it is left behind.
    pub fn submit(
        &self,
        principal: &Principal,
        route: &mut Route,
        task: NewTask,
        watcher: Option<Watcher>,
        now: Instant,
    ) -> Result<Submitted, Refused> {
        if let Err(error) = self.may_submit(principal, route, &task) {
            return Err(Refused { error, task: Box::new(task) });
        }
        let id = task.id;
        let at_once = task.options.schedule_to_start.is_some_and(|limit| limit.is_zero());
        let task = StdArc::new(Task::new(task, StdArc::clone(&route.pool.key), now));
        if let Some(watcher) = watcher {
            // The task is new: its gate is open.
            drop(task.watchers.push(watcher));
        }
        if !self.tasks.insert(id, StdArc::clone(&task)) {
            return Err(Refused { error: SubmitError::Conflict, task: Box::new(task.to_new()) });
        }
        let mut run = RunList::new();
        let placed = self.place_directly(&route.pool, &task, now, &mut run);
        if let Err(refusal) = placed
            && let Err(error) = self.wait_in_line(route, &task, at_once, refusal, &mut run)
        {
            self.tasks.remove(&id);
            self.run(&mut run);
            return Err(Refused { error, task: Box::new(task.to_new()) });
        }
        self.run(&mut run);
        self.post_deadlines(&task);
        Ok(Submitted { id, durable: false })
    }

    fn may_submit(
        &self,
        principal: &Principal,
        route: &Route,
        task: &NewTask,
    ) -> Result<(), SubmitError> {
        let namespace = &route.pool.key.namespace;
        if !principal.may(Role::Producer, namespace) {
            return Err(SubmitError::PermissionDenied(namespace.clone()));
        }
        if self.is_draining() {
            return Err(SubmitError::Draining);
        }
        let options = &task.options;
        if options.priority > 9 {
            return Err(SubmitError::Invalid("the priority is over 9"));
        }
        if options.retry.max_attempts == 0 {
            return Err(SubmitError::Invalid("max_attempts is 0"));
        }
        if options.max_lost_deliveries == 0 {
            return Err(SubmitError::Invalid("max_lost_deliveries is 0"));
        }
        if !options.retry.factor.is_finite() || !(0.0..=1.0).contains(&options.retry.jitter) {
            return Err(SubmitError::Invalid(
                "the retry policy's factor or jitter is out of range",
            ));
        }
        Ok(())
    }

    /// Places a new task on a worker with room, unless others of its pool wait.
    fn place_directly(
        &self,
        pool: &Pool,
        task: &StdArc<Task>,
        now: Instant,
        run: &mut RunList,
    ) -> Result<(), SubmitError> {
        if !pool.has_no_backlog() {
            return Err(SubmitError::NoCapacity);
        }
        let snapshot = self.registry.load();
        let node = task.options().require.as_ref();
        let member = match self.registry.choose(&snapshot, pool, node) {
            Chosen::Reserved(member, ..) => member,
            Chosen::NoWorker => return Err(SubmitError::NoWorker),
            Chosen::NoCapacity => return Err(SubmitError::NoCapacity),
            Chosen::Draining => return Err(SubmitError::Draining),
        };
        // The member is of this very snapshot, so its worker is too.
        let Some(entry) = snapshot.entry(member) else { return Err(SubmitError::NoWorker) };
        let placed = self.place(task, pool.serial, &entry.worker);
        if placed == Placed::Sent {
            return Ok(());
        }
        let worker = StdArc::clone(&entry.worker);
        drop(snapshot);
        if let Placed::Refused(epoch) = placed {
            self.hand_back(task, epoch, now, run);
        }
        self.release(&worker, 1, run);
        Ok(())
    }

    /// Puts a new task into its pool's line, unless it was to start at once or too many wait.
    fn wait_in_line(
        &self,
        route: &mut Route,
        task: &StdArc<Task>,
        at_once: bool,
        refusal: SubmitError,
        run: &mut RunList,
    ) -> Result<(), SubmitError> {
        if at_once {
            return Err(refusal);
        }
        // Relaxed: quotas, passed by at most what is on its way at the same time.
        if route.pool.namespace.backlog.load(Ordering::Relaxed) >= BACKLOG_PER_NAMESPACE_MAX {
            let quota = "waiting tasks in a namespace";
            return Err(SubmitError::QuotaExceeded { quota, max: BACKLOG_PER_NAMESPACE_MAX });
        }
        if self.backlog_bytes.load(Ordering::Relaxed) + task.size() > BACKLOG_BYTES_MAX {
            let quota = "payload bytes of waiting tasks";
            return Err(SubmitError::QuotaExceeded { quota, max: BACKLOG_BYTES_MAX });
        }
        let pool = self.announce(task, &route.pool);
        route.pool = StdArc::clone(&pool);
        self.queue(&pool, task, run);
        Ok(())
    }

    /// Makes room for a task in its pool's line, before it is pending. `likely` is tried first.
    pub(crate) fn announce(&self, task: &Task, likely: &StdArc<Pool>) -> StdArc<Pool> {
        if likely.announce() {
            return self.count_waiting(task, likely);
        }
        self.announce_anew(task)
    }

    /// As [`Engine::announce`], with the pool looked up.
    pub(crate) fn announce_anew(&self, task: &Task) -> StdArc<Pool> {
        loop {
            // A pool that is retired between the look and the announcement is made again.
            if let Some(pool) = self.registry.resolve(task.pool(), true)
                && pool.announce()
            {
                return self.count_waiting(task, &pool);
            }
            crate::sync::spin_loop();
        }
    }

    fn count_waiting(&self, task: &Task, pool: &StdArc<Pool>) -> StdArc<Pool> {
        // Relaxed: quotas.
        pool.namespace.backlog.fetch_add(1, Ordering::Relaxed);
        self.backlog_bytes.fetch_add(task.size(), Ordering::Relaxed);
        StdArc::clone(pool)
    }

    /// Puts a pending task into the line in which it was announced.
    pub(crate) fn queue(&self, pool: &StdArc<Pool>, task: &StdArc<Task>, run: &mut RunList) {
        pool.queue(StdArc::clone(task));
        pool.notify(run);
    }

    /// Takes the announcement of a task back. Whoever won the step out of pending calls this once.
    pub(crate) fn left_line(&self, pool: &Pool, task: &Task) {
        pool.placed();
        // Relaxed: quotas.
        pool.namespace.backlog.fetch_sub(1, Ordering::Relaxed);
        self.backlog_bytes.fetch_sub(task.size(), Ordering::Relaxed);
    }

    fn post_deadlines(&self, task: &StdArc<Task>) {
        self.post_start(task);
        if let Some(due) = task.deadline() {
            self.post(due, Timer::Deadline(task.id()));
        }
    }

    /// Has the present attempt expire if nobody accepted it in time.
    pub(crate) fn post_start(&self, task: &StdArc<Task>) {
        let due = task.start_due();
        if due != Instant::MAX && task.word().state() == TaskState::Pending {
            self.post(due, Timer::Start(task.id()));
        }
    }

    /// Has the outcome of a task delivered, at once if it has ended.
    ///
    /// # Errors
    ///
    /// There is no such task, or it is not the principal's to see.
    pub fn watch(
        &self,
        principal: &Principal,
        id: TaskId,
        watcher: Watcher,
    ) -> Result<(), AdminError> {
        let task = self.tasks.get(&id).ok_or(AdminError::NotFound)?;
        if !principal.may_see(&task.pool().namespace) {
            return Err(AdminError::NotFound);
        }
        // The gate of the watchers closes after the outcome was set.
        if let Err(watcher) = task.watchers.push(watcher)
            && let Some(outcome) = task.outcome().cloned()
        {
            let Watcher { mailbox, tag } = watcher;
            mailbox.deliver(Delivered { tag, task, outcome });
        }
        Ok(())
    }
}
