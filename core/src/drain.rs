//! Leaving in order: which workers and pools nothing is placed on, and how that is lifted.
//!
//! The publisher keeps the scopes, so that a registration which races a drain either is in the
//! snapshot that the drain goes through, or comes after it and sees it. Two means serve all scopes:
//!
//! - *A worker* (alone, by its node or its build): its word refuses reservations and its inbox
//!   closes. When the call returns, nothing is on its way to it.
//! - *A pool* (alone or by its namespace): the next snapshot says that nothing of it is placed.
//!   Somebody may still place from an older one, so each session that serves the pool is asked to
//!   look: from its answer on it hands back what comes. [`Drained::is_done`] says when all have.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::admission::{Principal, Role};
use crate::cell::CellFamily;
use crate::engine::{AdminError, Engine};
use crate::id::WorkerId;
use crate::mutant::mutant;
use crate::name::{Namespace, Node, PoolKey};
use crate::outcome::Notify;
use crate::registry::Registry;
use crate::settle::Timer;
use crate::sync::{AtomicU32, Ordering, StdArc};
use crate::task::{Task, TaskState};
use crate::time::Instant;
use crate::worker::{ASKED_EVICTED, Delivery, RunList, Worker};

/// What is drained or cordoned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrainScope {
    /// One worker.
    Worker(WorkerId),
    /// All workers on a node, those to come included.
    Node(Node),
    /// All workers of a build, those to come included.
    Build(String),
    /// The tasks of a pool, wherever they would go.
    Pool(PoolKey),
    /// The tasks of a namespace.
    Namespace(Namespace),
}

impl DrainScope {
    /// Says whether the scope is that worker, or one of its kind.
    pub(crate) fn is_of(&self, worker: &Worker) -> bool {
        match self {
            Self::Worker(id) => worker.member.worker == *id,
            Self::Node(node) => worker.node.as_ref() == Some(node),
            Self::Build(build) => worker.build == *build,
            Self::Pool(_) | Self::Namespace(_) => false,
        }
    }

    /// Says whether tasks of that pool are in the scope, on whatever worker.
    pub(crate) fn is_over(&self, pool: &PoolKey) -> bool {
        match self {
            Self::Pool(key) => key == pool,
            Self::Namespace(namespace) => *namespace == pool.namespace,
            Self::Worker(_) | Self::Node(_) | Self::Build(_) => false,
        }
    }
}

impl fmt::Display for DrainScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker(id) => write!(f, "worker:{id}"),
            Self::Node(node) => write!(f, "node:{node}"),
            Self::Build(build) => write!(f, "build:{build}"),
            Self::Pool(key) => write!(f, "pool:{key}"),
            Self::Namespace(namespace) => write!(f, "namespace:{namespace}"),
        }
    }
}

/// Whether those in a scope are to leave, or only get nothing for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrainMode {
    /// Finish and leave.
    Drain,
    /// Stay, and take nothing more.
    Cordon,
    /// As cordoned, for tasks that are held: with an entry of its own, so that lifting the one
    /// leaves the other.
    Hold,
}

/// A scope that nothing is placed on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainStatus {
    /// What.
    pub scope: DrainScope,
    /// How.
    pub mode: DrainMode,
    /// Since when.
    pub since: Instant,
    /// When what still runs is taken away.
    pub deadline: Option<Instant>,
}

impl DrainStatus {
    fn is_for(&self, scope: &DrainScope, mode: DrainMode) -> bool {
        (self.mode == DrainMode::Hold) == (mode == DrainMode::Hold) && self.scope == *scope
    }
}

/// The scopes of an engine. Only the publisher touches it.
#[derive(Debug, Default)]
pub(crate) struct Drains {
    entries: Vec<(u64, DrainStatus)>,
    last: u64,
}

impl Drains {
    fn set(&mut self, status: DrainStatus) -> u64 {
        self.entries.retain(|(_, other)| !other.is_for(&status.scope, status.mode));
        self.last += 1;
        self.entries.push((self.last, status));
        self.last
    }

    fn lift(&mut self, scope: &DrainScope, mode: DrainMode) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(_, status)| !status.is_for(scope, mode));
        self.entries.len() < before
    }

    /// How a connected worker is covered, the sterner mode first.
    fn of(&self, worker: &Worker) -> Option<DrainMode> {
        self.sternest(|scope| scope.is_of(worker))
    }

    /// How a worker that wants to register is covered.
    pub(crate) fn of_new(&self, node: Option<&Node>, build: &str) -> Option<DrainMode> {
        self.sternest(|scope| match scope {
            DrainScope::Node(drained) => node == Some(drained),
            DrainScope::Build(drained) => build == drained,
            _ => false,
        })
    }

    fn sternest(&self, covers: impl Fn(&DrainScope) -> bool) -> Option<DrainMode> {
        let covering = self.entries.iter().filter(|(_, status)| covers(&status.scope));
        let mut modes = covering.map(|(_, status)| status.mode);
        let first = modes.next()?;
        let drains = first == DrainMode::Drain || modes.any(|mode| mode == DrainMode::Drain);
        Some(if drains { DrainMode::Drain } else { DrainMode::Cordon })
    }

    /// Says whether nothing of that pool is to be placed.
    pub(crate) fn are_over(&self, pool: &PoolKey) -> bool {
        self.entries.iter().any(|(_, status)| status.scope.is_over(pool))
    }

    /// Says whether tasks of that pool are held.
    pub(crate) fn hold(&self, pool: &PoolKey) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|(_, status)| status.mode == DrainMode::Hold && status.scope.is_over(pool))
    }

    pub(crate) fn list(&self) -> Vec<DrainStatus> {
        self.entries.iter().map(|(_, status)| status.clone()).collect()
    }

    pub(crate) fn get(&self, serial: u64) -> Option<DrainStatus> {
        let found = self.entries.iter().find(|(other, _)| *other == serial);
        found.map(|(_, status)| status.clone())
    }

    /// A worker that left is drained for good.
    pub(crate) fn forget(&mut self, worker: WorkerId) {
        self.entries.retain(|(_, status)| status.scope != DrainScope::Worker(worker));
    }
}

/// A change of the scopes, for the publisher.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Set(DrainStatus, StdArc<Looks>),
    /// Either the hold of the scope or what else there is.
    Lift(DrainScope, DrainMode),
    /// The worker leaves by its own will.
    Leave(WorkerId),
}

/// What a session is asked to do by a drain.
#[derive(Debug)]
pub(crate) enum Order {
    /// Look which pools nothing is placed of.
    Look(Answer),
    /// Give up what is in the scope.
    Abandon(DrainScope),
}

/// How many sessions have not looked yet.
pub(crate) struct Looks {
    left: AtomicU32,
    waiter: StdArc<dyn Notify>,
}

impl fmt::Debug for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Looks").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Looks {
    pub(crate) fn ask(self: &StdArc<Self>) -> Answer {
        // Relaxed: the publisher holds one count itself until it has asked all.
        self.left.fetch_add(1, Ordering::Relaxed);
        Answer(StdArc::clone(self))
    }
}

/// One session's answer. Given by dropping it: a session that is gone has answered.
#[derive(Debug)]
pub(crate) struct Answer(StdArc<Looks>);

impl Drop for Answer {
    fn drop(&mut self) {
        // Release [E12]: AcqRel; pairs with the Acquire in `Drained::is_done`; that the session has
        // looked.
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.waiter.notify();
        }
    }
}

/// What a drain began.
#[derive(Clone, Debug)]
pub struct Drained {
    /// How many workers it concerns at present.
    pub workers: u64,
    looks: StdArc<Looks>,
}

impl Drained {
    /// Nobody needs to look.
    pub(crate) fn of_nothing(waiter: StdArc<dyn Notify>) -> Self {
        Self { workers: 0, looks: StdArc::new(Looks { left: AtomicU32::new(0), waiter }) }
    }

    /// Says whether from here on no offer of the scope goes to anybody. The waiter that was given
    /// with the drain is notified when it becomes so.
    #[must_use]
    pub fn is_done(&self) -> bool {
        // Acquire [E12]: pairs with the drop of `Answer`.
        self.looks.left.load(Ordering::Acquire) == 0
    }
}

impl<F: CellFamily> Engine<F> {
    /// Places nothing more on what is in the scope, and has its workers finish and leave.
    ///
    /// At the deadline what still runs is taken away: workers are told to abandon it, and it waits
    /// again at no charge. A worker that registers later in a scope of nodes or builds is refused.
    /// The drain of a worker ends with it, the others last until [`Engine::uncordon`].
    ///
    /// # Consistency
    ///
    /// For workers, nothing is on its way to them when this returns. For tasks (a pool, a
    /// namespace) wait for [`Drained::is_done`]; `waiter` is notified when it is.
    ///
    /// # Errors
    ///
    /// There is no such worker, or the principal is no operator of all that it concerns.
    pub fn drain_scope(
        &self,
        principal: &Principal,
        scope: DrainScope,
        deadline: Option<Duration>,
        waiter: StdArc<dyn Notify>,
        now: Instant,
    ) -> Result<Drained, AdminError> {
        self.set_drain(principal, scope, DrainMode::Drain, deadline, waiter, now)
    }

    /// Places nothing more on what is in the scope, until [`Engine::uncordon`].
    ///
    /// # Errors
    ///
    /// As [`Engine::drain_scope`].
    pub fn cordon(
        &self,
        principal: &Principal,
        scope: DrainScope,
        waiter: StdArc<dyn Notify>,
        now: Instant,
    ) -> Result<Drained, AdminError> {
        self.set_drain(principal, scope, DrainMode::Cordon, None, waiter, now)
    }

    fn set_drain(
        &self,
        principal: &Principal,
        scope: DrainScope,
        mode: DrainMode,
        deadline: Option<Duration>,
        waiter: StdArc<dyn Notify>,
        now: Instant,
    ) -> Result<Drained, AdminError> {
        self.may_drain(principal, &scope)?;
        Ok(self.shut_scope(scope, mode, deadline, waiter, now))
    }

    /// Has nothing more placed in a scope.
    pub(crate) fn shut_scope(
        &self,
        scope: DrainScope,
        mode: DrainMode,
        deadline: Option<Duration>,
        waiter: StdArc<dyn Notify>,
        now: Instant,
    ) -> Drained {
        let deadline = deadline.map(|limit| now + limit);
        let looks = StdArc::new(Looks { left: AtomicU32::new(0), waiter });
        let status = DrainStatus { scope, mode, since: now, deadline };
        let own = looks.ask();
        let begun = self.step(Step::Set(status, StdArc::clone(&looks)), now);
        drop(own);
        if let Some(due) = deadline {
            self.post(due, Timer::DrainOver(begun.serial));
        }
        Drained { workers: begun.workers, looks }
    }

    /// Lifts a drain or cordon of exactly that scope. Workers that were asked to leave still do.
    ///
    /// # Errors
    ///
    /// There is no such scope, or the principal is no operator of all that it concerns.
    pub fn uncordon(
        &self,
        principal: &Principal,
        scope: &DrainScope,
        now: Instant,
    ) -> Result<u64, AdminError> {
        self.may_drain(principal, scope)?;
        if let DrainScope::Worker(id) = scope
            && mutant("L8d")
            && let Some(worker) = self.registry.worker(*id)
        {
            // A planted fault: opened apart from the publisher.
            worker.inbox.reopen();
        }
        let begun = self.step(Step::Lift(scope.clone(), DrainMode::Cordon), now);
        if begun.serial == 0 { Err(AdminError::NotFound) } else { Ok(begun.workers) }
    }

    /// Puts a worker out: its session ends, what it has is lost and goes to others.
    ///
    /// # Errors
    ///
    /// There is no such worker, or the principal is no operator of all that it serves.
    pub fn evict(
        &self,
        principal: &Principal,
        worker: WorkerId,
        now: Instant,
    ) -> Result<(), AdminError> {
        self.may_drain(principal, &DrainScope::Worker(worker))?;
        let evicted = self.registry.worker(worker).ok_or(AdminError::NotFound)?;
        // First, so that the session does not take it for a drain.
        evicted.ask(ASKED_EVICTED);
        self.step(Step::Leave(worker), now);
        Ok(())
    }

    /// What is drained or cordoned and concerns only what the principal is operator of. Holds are
    /// listed by [`Engine::holds`].
    #[must_use]
    pub fn drains(&self, principal: &Principal) -> Vec<DrainStatus> {
        let mut drains = self.registry.drains();
        drains.retain(|status| {
            status.mode != DrainMode::Hold && self.may_drain(principal, &status.scope).is_ok()
        });
        drains
    }

    fn may_drain(&self, principal: &Principal, scope: &DrainScope) -> Result<(), AdminError> {
        let namespaces: Vec<Namespace> = match scope {
            DrainScope::Pool(key) => vec![key.namespace.clone()],
            DrainScope::Namespace(namespace) => vec![namespace.clone()],
            DrainScope::Worker(id) => {
                let worker = self.registry.worker(*id).ok_or(AdminError::NotFound)?;
                let snapshot = self.registry.load();
                let entry = snapshot.entry(worker.member).ok_or(AdminError::NotFound)?;
                entry.pools.iter().map(|pool| pool.key.namespace.clone()).collect()
            }
            // They concern whoever comes, so they are for operators of everything.
            DrainScope::Node(_) | DrainScope::Build(_) => {
                let may = principal.may_everywhere(Role::Operator);
                return if may { Ok(()) } else { Err(AdminError::PermissionDenied) };
            }
        };
        if !namespaces.iter().any(|namespace| principal.may_see(namespace)) {
            return Err(AdminError::NotFound);
        }
        let may = namespaces.iter().all(|namespace| principal.may(Role::Operator, namespace));
        if may { Ok(()) } else { Err(AdminError::PermissionDenied) }
    }

    /// Has the publisher take a step, and sees to what comes back by it.
    pub(crate) fn step(&self, step: Step, now: Instant) -> Begun {
        let mut run = RunList::new();
        let mut begun = self.registry.drain_step(step, &mut run);
        for (worker, delivery) in std::mem::take(&mut begun.unsent) {
            self.hand_back(&delivery.task, delivery.epoch, now, &mut run);
            self.release(&worker, 1, &mut run);
        }
        for (worker, units) in std::mem::take(&mut begun.opened) {
            self.release(&worker, units, &mut run);
        }
        self.run(&mut run);
        begun
    }

    /// The deadline of a drain is over: what is still at work in it is taken away.
    pub(crate) fn drain_over(&self, serial: u64) {
        let Some(status) = self.registry.drain(serial) else { return };
        let snapshot = self.registry.load();
        snapshot.workers.for_each(|entry| {
            let concerns = status.scope.is_of(&entry.worker)
                || entry.pools.iter().any(|pool| status.scope.is_over(&pool.key));
            if concerns {
                entry.worker.order(Order::Abandon(status.scope.clone()));
            }
        });
    }
}

impl<F: CellFamily> Engine<F> {
    /// Takes a delivery away at no charge; the task waits again. False if it had ended.
    pub(crate) fn give_up(&self, task: &StdArc<Task>, epoch: u64, run: &mut RunList) -> bool {
        let pool = self.announce_anew(task);
        if task.leave(epoch, TaskState::Pending, false).is_none() {
            self.left_line(&pool, task);
            pool.notify(run);
            return false;
        }
        self.queue(&pool, task, run);
        self.post_start(task);
        true
    }
}

/// What a step of the publisher came to.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    /// The number of the scope's entry, 0 if there was none to lift.
    pub(crate) serial: u64,
    pub(crate) workers: u64,
    /// What had been placed on closed workers and not sent.
    pub(crate) unsent: Vec<(StdArc<Worker>, Delivery)>,
    /// Units of workers that opened, for the pools that wait.
    pub(crate) opened: Vec<(StdArc<Worker>, u32)>,
}

impl<F: CellFamily> Registry<F> {
    /// Takes a step over the connected workers. Called by the publisher.
    pub(crate) fn take_step(
        &self,
        drains: &mut Drains,
        step: Step,
        workers: &BTreeMap<WorkerId, StdArc<Worker>>,
    ) -> Begun {
        let mut begun = Begun::default();
        match step {
            Step::Set(status, _) => {
                let (scope, mode) = (status.scope.clone(), status.mode);
                begun.serial = drains.set(status);
                for worker in workers.values().filter(|worker| scope.is_of(worker)) {
                    begun.workers += 1;
                    self.shut(worker, mode, &mut begun);
                }
            }
            Step::Leave(id) => {
                if let Some(worker) = workers.get(&id) {
                    begun.workers = 1;
                    self.shut(worker, DrainMode::Drain, &mut begun);
                }
            }
            Step::Lift(scope, mode) => {
                begun.serial = u64::from(drains.lift(&scope, mode));
                let lifted = begun.serial > 0;
                for worker in workers.values().filter(|worker| lifted && scope.is_of(worker)) {
                    if drains.of(worker).is_none() && !worker.is_leaving() {
                        begun.workers += 1;
                        self.open(worker, &mut begun);
                    }
                }
            }
        }
        begun
    }

    fn shut(&self, worker: &StdArc<Worker>, mode: DrainMode, begun: &mut Begun) {
        let unsent = self.close_gate(worker, mode);
        begun.unsent.extend(unsent.map(|delivery| (StdArc::clone(worker), delivery)));
    }

    /// Only connected workers are opened: the publisher takes a worker out before its inbox closes
    /// for good.
    fn open(&self, worker: &StdArc<Worker>, begun: &mut Begun) {
        worker.inbox.reopen();
        let member = worker.member;
        let word = self.slab.word(member.slot);
        let units = word.and_then(|word| word.open_up(member.generation, None, true));
        if let Some(units) = units.filter(|units| *units > 0) {
            begun.opened.push((StdArc::clone(worker), units));
        }
    }
}
