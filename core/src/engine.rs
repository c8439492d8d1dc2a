//! The engine: registry, tasks and time together.
//!
//! All methods take `&self` and the present time. What a call causes elsewhere goes to inboxes, and
//! the owner of an inbox is woken through its [`Notify`]. One thread drives the engine: it calls
//! [`Engine::advance`] when woken and when the returned time has come.

use std::time::Duration;

use crate::admission::{self, NamespaceMode, Principal, Register, RegisterError, Role};
use crate::cell::{CellFamily, EpochCells};
use crate::dead::DeadLetters;
use crate::gate::Gate;
use crate::id::{Generation, SessionId, TaskId};
use crate::idempotency::Keys;
use crate::inbox::{Inbox, Pushed};
use crate::index::Index;
use crate::limits::{DRAIN_LOOK, SWEEP};
use crate::name::{Node, PoolKey};
use crate::outcome::Notify;
use crate::owner::Owners;
use crate::pool::Policy;
use crate::registry::{Joining, KeyHasher, Registry};
use crate::retention::Retention;
use crate::select::{Route, Selection};
use crate::session::WorkerSession;
use crate::settle::Timer;
use crate::submit::SubmitError;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, StdArc};
use crate::task::{Task, TaskOptions, TaskState};
use crate::time::Instant;
use crate::timer::Wheel;
use crate::worker::{RunList, Worker, release};

/// What an engine is told once.
#[derive(Clone, Debug)]
pub struct Config {
    /// The high half of every epoch; must rise with each start of the server.
    pub incarnation: u32,
    /// Seeds the hashing of names, so that nobody outside can choose colliding ones.
    pub seed: u64,
    /// How the workers of new pools are chosen.
    pub policy: Policy,
    /// Which namespaces exist.
    pub namespaces: NamespaceMode,
    /// How long an offer may stay unanswered.
    pub accept_timeout: Duration,
    /// How long an accepted lease lives without a beat.
    pub lease_ttl: Duration,
    /// How long accepted leases of a session that was lost abruptly are left to its worker.
    pub resume_grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            incarnation: 1,
            seed: 0,
            policy: Policy::RoundRobin,
            namespaces: NamespaceMode::Open,
            accept_timeout: Duration::from_secs(2),
            lease_ttl: Duration::from_secs(30),
            resume_grace: Duration::from_secs(2),
        }
    }
}

/// Why a question or command about something that exists was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// There is no such thing, or it is not the principal's to see.
    #[error("not found")]
    NotFound,
    /// The principal may see it and not do this.
    #[error("not permitted")]
    PermissionDenied,
    /// The task's state does not allow it.
    #[error("not possible while the task is {0}")]
    InvalidState(TaskState),
    /// There are too many already; try later.
    #[error("over the limit of {max} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// What is allowed.
        max: u64,
    },
}

/// What the driver alone touches.
#[derive(Debug)]
struct Clockwork {
    wheel: Wheel<Timer>,
    next_sweep: Instant,
}

/// A dispatch engine in memory.
pub struct Engine<F: CellFamily = EpochCells> {
    pub(crate) registry: Registry<F>,
    pub(crate) config: Config,
    pub(crate) tasks: Index<TaskId, StdArc<Task>, KeyHasher>,
    pub(crate) retention: Mutex<Retention>,
    pub(crate) orphans: Mutex<crate::settle::Orphans>,
    pub(crate) owners: Mutex<Owners>,
    pub(crate) dead: Mutex<DeadLetters>,
    pub(crate) keys: Mutex<Keys>,
    /// Payload bytes of waiting and of scheduled tasks.
    pub(crate) backlog_bytes: AtomicU64,
    /// Scheduled tasks.
    pub(crate) scheduled: AtomicU64,
    epoch: AtomicU64,
    draining: AtomicU32,
    posts: Inbox<(Instant, Timer)>,
    clockwork: Mutex<Clockwork>,
    idle: Gate,
}

impl<F: CellFamily> Engine<F> {
    /// Creates an engine; `driver` wakes the thread that calls [`Engine::advance`].
    #[must_use]
    pub fn new(config: Config, driver: StdArc<dyn Notify>, now: Instant) -> StdArc<Self> {
        StdArc::new(Self {
            registry: Registry::new(config.seed, config.policy, driver),
            tasks: Index::new(KeyHasher::with_seed(config.seed)),
            retention: Mutex::new(Retention::default()),
            orphans: Mutex::new(crate::settle::Orphans::default()),
            owners: Mutex::new(Owners::default()),
            dead: Mutex::new(DeadLetters::default()),
            keys: Mutex::new(Keys::default()),
            backlog_bytes: AtomicU64::new(0),
            scheduled: AtomicU64::new(0),
            epoch: AtomicU64::new(u64::from(config.incarnation) << 32),
            draining: AtomicU32::new(0),
            posts: Inbox::new(),
            clockwork: Mutex::new(Clockwork { wheel: Wheel::new(now), next_sweep: now + SWEEP }),
            idle: Gate::new(),
            config,
        })
    }

    /// The epoch of the next offer. When the low half is full the next incarnation begins.
    pub(crate) fn next_epoch(&self) -> u64 {
        // Relaxed: only that each is drawn once matters; the lease word orders the rest.
        self.epoch.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Does what is due: turns that pumps handed on, timers, and once a second the sweep.
    ///
    /// Returns when to call again if nothing wakes the driver before.
    pub fn advance(&self, now: Instant) -> Instant {
        let mut run = RunList::new();
        for pool in self.registry.driver.turns.take() {
            run.push(pool);
        }
        self.run(&mut run);
        let mut fired = Vec::new();
        let (mut next, sweeps) = {
            let mut clockwork = self.clockwork.lock();
            for (due, timer) in self.posts.take() {
                clockwork.wheel.insert(due, timer);
            }
            clockwork.wheel.advance(now, |timer| fired.push(timer));
            let sweeps = now >= clockwork.next_sweep;
            if sweeps {
                clockwork.next_sweep = now + SWEEP;
            }
            let next = clockwork.next_sweep;
            (clockwork.wheel.next_due().map_or(next, |due| due.min(next)), sweeps)
        };
        for timer in fired {
            self.fire(timer, now, &mut run);
        }
        self.run(&mut run);
        if sweeps {
            self.registry.sweep();
            let mut gone = Vec::new();
            self.retention.lock().sweep(now, |id| gone.push(id));
            gone.into_iter().for_each(|id| self.forget(id));
            self.sweep_dead(now);
        }
        if self.is_draining() {
            if self.in_flight() == 0 {
                self.idle.open();
            }
            next = next.min(now + DRAIN_LOOK);
        }
        // Timers that the fired ones posted, or turns that were handed on, wake the driver again.
        next
    }

    /// Has a timer fire at `due`. Late by at most a tick and the driver's own delay.
    pub(crate) fn post(&self, due: Instant, timer: Timer) {
        if self.posts.push((due, timer)).is_ok_and(|pushed| pushed == Pushed::First) {
            self.registry.driver.wake.notify();
        }
    }

    /// Publishes a worker for a session; it can be selected when this returns, once it grants
    /// credit. `link` wakes the session's driver.
    ///
    /// # Errors
    ///
    /// All entries are admitted or none; a refusal leaves no trace.
    pub fn register(
        self: &StdArc<Self>,
        principal: &Principal,
        session: SessionId,
        register: Register,
        link: StdArc<dyn Notify>,
        now: Instant,
    ) -> Result<WorkerSession<F>, RegisterError> {
        let admitted = admission::admit(principal, &self.config.namespaces, register)?;
        let template = admitted.register.clone();
        let mut run = RunList::new();
        let joining = Joining { admitted, session, link, now };
        let joined = self.registry.register(joining, &mut run)?;
        self.run(&mut run);
        Ok(WorkerSession::new(StdArc::clone(self), joined, template))
    }

    /// Resolves a pool once for many submits and selections.
    ///
    /// # Errors
    ///
    /// The namespace does not exist, or has too many pools.
    pub fn route(&self, key: &PoolKey) -> Result<Route, SubmitError> {
        if let NamespaceMode::Closed(existing) = &self.config.namespaces
            && !existing.contains(&key.namespace)
        {
            return Err(SubmitError::NotFound);
        }
        let pool = self.registry.resolve(key, false).ok_or(SubmitError::LimitExceeded {
            limit: "pools in a namespace",
            max: crate::limits::POOLS_PER_NAMESPACE_MAX,
        })?;
        Ok(Route { pool })
    }

    /// Selects a worker of the route's pool, on `node` if given, and reserves one of its credits.
    ///
    /// Takes no lock and allocates nothing.
    #[inline]
    pub fn select(&self, route: &Route, node: Option<&Node>) -> Selection<'_, F> {
        self.registry.select(&route.pool, node)
    }

    /// As [`Engine::select`], for a task with these options: the node that it requires, the nodes
    /// that it prefers, its affinity key.
    #[inline]
    pub fn select_for(&self, route: &Route, options: &TaskOptions) -> Selection<'_, F> {
        self.registry.select_for(&route.pool, options)
    }

    /// Sets how workers of a pool are chosen; the engine's default if none is given. The pool need
    /// not exist, and what is set outlasts it.
    ///
    /// # Consistency
    ///
    /// Selections that begin after this returned on the same thread go by it; others soon.
    ///
    /// # Errors
    ///
    /// The principal may not see the namespace, or is no operator of it; more than 100,000 are set.
    pub fn set_policy(
        &self,
        principal: &Principal,
        pool: &PoolKey,
        policy: Option<Policy>,
    ) -> Result<(), AdminError> {
        if !principal.may_see(&pool.namespace) {
            return Err(AdminError::NotFound);
        }
        if !principal.may(Role::Operator, &pool.namespace) {
            return Err(AdminError::PermissionDenied);
        }
        if self.registry.set_policy(pool, policy) {
            return Ok(());
        }
        Err(AdminError::TooMany { what: "policies", max: crate::limits::POLICIES_MAX as u64 })
    }

    /// Closes the way to every worker, and refuses submits and registrations from here on.
    ///
    /// Tasks that run may finish; tasks that wait are left as they are.
    pub fn drain(&self, now: Instant) {
        // Release [E11]: pairs with the Acquire in `Engine::is_draining`.
        self.draining.store(1, Ordering::Release);
        let mut run = RunList::new();
        for (worker, delivery) in self.registry.drain_all(&mut run).unsent {
            self.hand_back(&delivery.task, delivery.epoch, now, &mut run);
            self.release(&worker, 1, &mut run);
        }
        self.run(&mut run);
        self.registry.driver.wake.notify();
    }

    /// Says whether the engine is leaving.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        // Acquire [E11]: pairs with the Release in `Engine::drain`.
        self.draining.load(Ordering::Acquire) != 0
    }

    /// How many units of credit are held: tasks offered or running, and leases that were fenced and
    /// whose worker has not reported yet. A report, not exact while things move.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let snapshot = self.registry.load();
        let mut units = 0;
        snapshot.workers.for_each(|entry| {
            let word = self.registry.slab.word(entry.worker.member.slot);
            units += word.map_or(0, |word| u64::from(word.peek().in_flight()));
        });
        units
    }

    /// Payload bytes of tasks that wait for a worker or for their time. A report, as above.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        // Relaxed: a report.
        self.backlog_bytes.load(Ordering::Relaxed)
    }

    /// The present snapshot's generation, and how many workers it has.
    #[must_use]
    pub fn generation(&self) -> (Generation, usize) {
        let snapshot = self.registry.load();
        (snapshot.generation, snapshot.worker_count)
    }

    /// Opens whenever the engine is draining and nothing is in flight.
    ///
    /// Subscribe, look at [`Engine::in_flight`], then wait.
    pub fn idle(&self) -> &Gate {
        &self.idle
    }

    /// Gives units of a worker back.
    pub(crate) fn release(&self, worker: &Worker, units: u32, run: &mut RunList) {
        if let Some(word) = self.registry.slab.word(worker.member.slot) {
            release(word, worker, units, run);
        }
    }
}

impl<F: CellFamily> std::fmt::Debug for Engine<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("registry", &self.registry)
            .field("draining", &self.is_draining())
            .finish_non_exhaustive()
    }
}
