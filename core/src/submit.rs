//! Handing a task in: straight to a worker, or into its pool's line.

use std::time::Duration;

use thiserror::Error;

use crate::admission::{Principal, Role};
use crate::cell::CellFamily;
use crate::engine::{AdminError, Engine};
use crate::id::TaskId;
use crate::limits::{
    BACKLOG_BYTES_MAX, BACKLOG_PER_NAMESPACE_MAX, DELAY_MAX, KEY_BYTES_MAX, RETENTION_MAX,
    SCHEDULED_MAX,
};
use crate::mutant::mutant;
use crate::outcome::{Class, Delivered, Outcome, Watcher};
use crate::pool::Pool;
use crate::pump::Placed;
use crate::select::{Chosen, Route};
use crate::settle::Timer;
use crate::sync::{Ordering, StdArc};
use crate::task::{NewTask, Rare, Task, TaskOptions, TaskState};
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
    /// Another task of the namespace has the idempotency key, and other content.
    #[error("another task has this idempotency key, and other content")]
    KeyConflict,
    /// Its owner was superseded by a newer generation.
    #[error("the owner is at generation {needed} by now")]
    StaleGeneration {
        /// The oldest generation that is still taken.
        needed: u64,
    },
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
    /// Its id: that of the known task, if the idempotency key was one.
    pub id: TaskId,
    /// Whether the task was known already, by its idempotency key.
    pub deduplicated: bool,
    /// Whether it survives a crash of the server. Not in this engine, which is memory alone.
    pub durable: bool,
}

/// What became of a task on the way in.
pub(crate) enum Admitted {
    New,
    /// The task of that id is the same.
    Same(TaskId),
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
        if let Err(error) = self.may_submit(principal, &route.pool, &task.options) {
            return Err(Refused { error, task: Box::new(task) });
        }
        let id = task.id;
        let at_once = task.options.schedule_to_start.is_some_and(|limit| limit.is_zero());
        let task = StdArc::new(Task::new(task, StdArc::clone(&route.pool.key), now));
        let mut watcher = watcher;
        if task.options().rare.is_none()
            && let Some(watcher) = watcher.take()
        {
            // The task is new: its gate is open.
            drop(task.watchers.push(watcher));
        }
        let refused = |error| Err(Refused { error, task: Box::new(task.to_new()) });
        let deduplicated = match self.admit(&task) {
            Ok(Admitted::New) => None,
            Ok(Admitted::Same(id)) => Some(id),
            Err(error) => return refused(error),
        };
        if deduplicated.is_none() {
            let mut run = RunList::new();
            let taken = self.start(route, &task, at_once, now, &mut run);
            self.run(&mut run);
            if let Err(error) = taken {
                return refused(error);
            }
        }
        let id = deduplicated.unwrap_or(id);
        if let Some(watcher) = watcher {
            self.watch_known(id, watcher);
        }
        Ok(Submitted { id, deduplicated: deduplicated.is_some(), durable: false })
    }

    /// Makes a new task known, by its id, its key and its owner. Nothing can place it yet.
    pub(crate) fn admit(&self, task: &StdArc<Task>) -> Result<Admitted, SubmitError> {
        if !self.tasks.insert(task.id(), StdArc::clone(task)) {
            return match self.known_by_key(task) {
                Some(id) => Ok(Admitted::Same(id)),
                None => Err(SubmitError::Conflict),
            };
        }
        match self.take_key(task) {
            Ok(None) => {}
            Ok(Some(id)) => {
                self.tasks.remove(&task.id());
                return Ok(Admitted::Same(id));
            }
            Err(error) => {
                self.tasks.remove(&task.id());
                return Err(error);
            }
        }
        match self.owner_arrives(task) {
            Ok(held) => {
                if held && !mutant("L14e") {
                    // Unless it ended meanwhile. A scheduled one is held when it is due.
                    task.park(task.word());
                }
                Ok(Admitted::New)
            }
            Err(error) => {
                self.forget(task.id());
                Err(error)
            }
        }
    }

    /// Takes a task back that was admitted and not started. If somebody ended or held it meanwhile
    /// it is the same: nobody was told that it was taken.
    pub(crate) fn retract(&self, task: &StdArc<Task>) {
        task.withdraw();
        self.owner_left(task);
        self.forget(task.id());
        if task.options().rare.is_none() {
            // Its own watcher is told by the refusal.
            return;
        }
        // Others with the same key may have come to wait for it.
        let outcome = StdArc::new(Outcome {
            state: TaskState::Cancelled,
            class: Class::Cancelled,
            message: "the submission that it repeated was refused".to_owned(),
            ..Outcome::of_nothing(task)
        });
        for Watcher { mailbox, tag } in task.watchers.close() {
            let (task, outcome) = (StdArc::clone(task), StdArc::clone(&outcome));
            mailbox.deliver(Delivered { tag, task, outcome });
        }
    }

    /// Starts an admitted task, or takes it back.
    fn start(
        &self,
        route: &mut Route,
        task: &StdArc<Task>,
        at_once: bool,
        now: Instant,
        run: &mut RunList,
    ) -> Result<(), SubmitError> {
        if task.word().state() == TaskState::Scheduled {
            self.schedule(task);
        } else if let Err(refusal) = self.place_directly(&route.pool, task, now, run) {
            let room = match at_once {
                true => Err(refusal),
                false => self.has_room_for(&route.pool, 1, task.size()),
            };
            match room {
                Ok(()) => self.wait_in_line(route, task, run),
                Err(error) if task.withdraw() => {
                    self.retract(task);
                    return Err(error);
                }
                // Somebody ended or held it meanwhile, so it was taken.
                Err(_) => {}
            }
        }
        self.post_deadlines(task);
        Ok(())
    }

    pub(crate) fn place_or_queue(
        &self,
        route: &mut Route,
        task: &StdArc<Task>,
        now: Instant,
        run: &mut RunList,
    ) {
        if task.word().state() == TaskState::Scheduled {
            self.schedule(task);
        } else if self.place_directly(&route.pool, task, now, run).is_err() {
            self.wait_in_line(route, task, run);
        }
    }

    pub(crate) fn may_submit(
        &self,
        principal: &Principal,
        pool: &Pool,
        options: &TaskOptions,
    ) -> Result<(), SubmitError> {
        let namespace = &pool.key.namespace;
        if !principal.may(Role::Producer, namespace) {
            return Err(SubmitError::PermissionDenied(namespace.clone()));
        }
        if self.is_draining() {
            return Err(SubmitError::Draining);
        }
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
        if options.owner_key.len() > KEY_BYTES_MAX {
            return Err(SubmitError::LimitExceeded {
                limit: "bytes of an owner key",
                max: KEY_BYTES_MAX as u64,
            });
        }
        let Some(rare) = options.rare.as_deref() else { return Ok(()) };
        may_be_asked(rare)?;
        // Relaxed: a quota, passed by at most what is on its way at the same time.
        if rare.delay.is_some() && self.scheduled.load(Ordering::Relaxed) >= SCHEDULED_MAX {
            let quota = "scheduled tasks in a server";
            return Err(SubmitError::QuotaExceeded { quota, max: SCHEDULED_MAX });
        }
        Ok(())
    }

    pub(crate) fn has_room_for(
        &self,
        pool: &Pool,
        tasks: u64,
        bytes: u64,
    ) -> Result<(), SubmitError> {
        // Relaxed: quotas, passed by at most what is on its way at the same time.
        if pool.namespace.backlog.load(Ordering::Relaxed) + tasks > BACKLOG_PER_NAMESPACE_MAX {
            let quota = "waiting tasks in a namespace";
            return Err(SubmitError::QuotaExceeded { quota, max: BACKLOG_PER_NAMESPACE_MAX });
        }
        if self.backlog_bytes.load(Ordering::Relaxed) + bytes > BACKLOG_BYTES_MAX {
            let quota = "payload bytes of waiting tasks";
            return Err(SubmitError::QuotaExceeded { quota, max: BACKLOG_BYTES_MAX });
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
        let member = match self.registry.choose_for(&snapshot, pool, task.options()) {
            Chosen::Reserved(member, ..) => member,
            Chosen::NoWorker => return Err(SubmitError::NoWorker),
            Chosen::NoCapacity => return Err(SubmitError::NoCapacity),
            Chosen::Draining => return Err(SubmitError::Draining),
        };
        // The member is of this very snapshot, so its worker is too.
        let Some(entry) = snapshot.entry(member) else { return Err(SubmitError::NoWorker) };
        let placed = self.place(task, pool.serial, &entry.worker, true);
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

    /// Puts a new task into its pool's line.
    fn wait_in_line(&self, route: &mut Route, task: &StdArc<Task>, run: &mut RunList) {
        let pool = self.announce(task, &route.pool);
        route.pool = StdArc::clone(&pool);
        if task.line_up() {
            self.queue(&pool, task, run);
        } else {
            // Somebody ended or held it meanwhile.
            self.left_line(&pool, task);
            pool.notify(run);
        }
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

    /// Puts a pending task into the line in which it was announced, or aside if its owner is held.
    pub(crate) fn queue(&self, pool: &StdArc<Pool>, task: &StdArc<Task>, run: &mut RunList) {
        // After the task became pending: a hold that is not seen here finds it pending.
        if self.is_owner_held(task) && task.park(task.word()) {
            self.left_line(pool, task);
        } else {
            pool.queue(StdArc::clone(task));
        }
        pool.notify(run);
    }

    /// A task has become scheduled: it waits for its time.
    pub(crate) fn schedule(&self, task: &StdArc<Task>) {
        // Relaxed: quotas.
        self.scheduled.fetch_add(1, Ordering::Relaxed);
        self.backlog_bytes.fetch_add(task.size(), Ordering::Relaxed);
        let tag = task.word().tag();
        self.post(task.due(), Timer::Due { id: task.id(), tag });
    }

    /// A task is scheduled no more. Whoever won the step out of it calls this once.
    pub(crate) fn left_schedule(&self, task: &Task) {
        // Relaxed: quotas.
        self.scheduled.fetch_sub(1, Ordering::Relaxed);
        self.backlog_bytes.fetch_sub(task.size(), Ordering::Relaxed);
    }

    /// Takes the announcement of a task back. Whoever won the step out of pending calls this once.
    pub(crate) fn left_line(&self, pool: &Pool, task: &Task) {
        pool.placed();
        // Relaxed: quotas.
        pool.namespace.backlog.fetch_sub(1, Ordering::Relaxed);
        self.backlog_bytes.fetch_sub(task.size(), Ordering::Relaxed);
    }

    pub(crate) fn post_deadlines(&self, task: &StdArc<Task>) {
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
        self.attach(&task, watcher);
        Ok(())
    }

    pub(crate) fn watch_known(&self, id: TaskId, watcher: Watcher) {
        if let Some(task) = self.tasks.get(&id) {
            self.attach(&task, watcher);
        }
    }

    fn attach(&self, task: &StdArc<Task>, mut watcher: Watcher) {
        // The gate closes after the outcome was set, and a requeue opens it after taking that out:
        // found closed and without outcome, it opens at once.
        while let Err(refused) = task.watchers.push(watcher) {
            watcher = refused;
            if let Some(outcome) = task.outcome() {
                let Watcher { mailbox, tag } = watcher;
                mailbox.deliver(Delivered { tag, task: StdArc::clone(task), outcome });
                return;
            }
            crate::sync::spin_loop();
        }
    }
}

/// Says whether what few tasks ask for has a meaning.
fn may_be_asked(rare: &Rare) -> Result<(), SubmitError> {
    if rare.delay.is_some_and(|delay| delay > DELAY_MAX) {
        let max = DELAY_MAX.as_secs() / (24 * 3_600);
        return Err(SubmitError::LimitExceeded { limit: "days of delay", max });
    }
    if rare.retention.is_some_and(|retention| retention > RETENTION_MAX) {
        let max = RETENTION_MAX.as_secs() / 3_600;
        return Err(SubmitError::LimitExceeded { limit: "hours of retention", max });
    }
    if rare.idempotency_key.len() > KEY_BYTES_MAX {
        let max = KEY_BYTES_MAX as u64;
        return Err(SubmitError::LimitExceeded { limit: "bytes of an idempotency key", max });
    }
    let is_zero = |limit: Option<Duration>| limit.is_some_and(|limit| limit.is_zero());
    if is_zero(rare.start_to_close) || is_zero(rare.heartbeat_timeout) {
        return Err(SubmitError::Invalid("start_to_close or heartbeat_timeout is zero"));
    }
    Ok(())
}
