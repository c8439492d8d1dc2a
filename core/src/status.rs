//! What the engine says about itself: reports from the snapshot that the selector uses.

use crate::admission::Principal;
use crate::cell::CellFamily;
use crate::engine::Engine;
use crate::id::{Generation, SessionId, TaskId, WorkerId};
use crate::name::{ActivityType, Namespace, Node, PoolKey, TaskQueue};
use crate::outcome::Outcome;
use crate::pool::Policy;
use crate::snapshot::PoolView;
use crate::sync::StdArc;
use crate::task::{Task, TaskState};
use crate::time::Instant;
use crate::worker::Member;

/// Why a task is not running, or where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Nobody serves its pool.
    NoWorker,
    /// Nobody serves its pool on the node that it requires.
    NoWorkerOnNode,
    /// All who could take it have no free credit.
    AllFull,
    /// All who could take it are leaving.
    AllDraining,
    /// Tasks before it are placed first.
    BehindOthers,
    /// It waits for its next attempt, or delivery.
    RetryBackoff,
    /// It was submitted for later.
    NotDue,
    /// Somebody holds it, or its owner, pool or namespace.
    Held,
    /// The server is leaving.
    ServerDraining,
    /// A worker has it and has not accepted it yet.
    Offered(WorkerId),
    /// A worker is at work on it.
    Running(WorkerId),
    /// A worker was told to stop working on it.
    Cancelling(WorkerId),
    /// It has ended.
    Terminal,
}

impl Reason {
    /// The word for the reason on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoWorker => "NoWorker",
            Self::NoWorkerOnNode => "NoWorkerOnNode",
            Self::AllFull => "AllFull",
            Self::AllDraining => "AllDraining",
            Self::BehindOthers => "BehindOthers",
            Self::RetryBackoff => "RetryBackoff",
            Self::NotDue => "NotDue",
            Self::Held => "Held",
            Self::ServerDraining => "ServerDraining",
            Self::Offered(_) => "Offered",
            Self::Running(_) => "Running",
            Self::Cancelling(_) => "Cancelling",
            Self::Terminal => "Terminal",
        }
    }
}

/// A task as it is now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskStatus {
    /// The task.
    pub task: StdArc<Task>,
    /// Its state.
    pub state: TaskState,
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
    /// Why it is where it is.
    pub reason: Reason,
    /// How it ended, if it did.
    pub outcome: Option<StdArc<Outcome>>,
}

/// Which tasks to list. What is not given does not restrict.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// In this namespace.
    pub namespace: Option<Namespace>,
    /// On this task queue.
    pub task_queue: Option<TaskQueue>,
    /// Of this activity type.
    pub activity_type: Option<ActivityType>,
    /// In this state.
    pub state: Option<TaskState>,
}

impl TaskFilter {
    fn admits(&self, task: &Task) -> bool {
        let key = task.pool();
        self.namespace.as_ref().is_none_or(|name| *name == key.namespace)
            && self.task_queue.as_ref().is_none_or(|name| *name == key.task_queue)
            && self.activity_type.as_ref().is_none_or(|name| *name == key.activity_type)
            && self.state.is_none_or(|state| task.word().state() == state)
    }
}

/// A connected worker as the selector sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// Its id.
    pub id: WorkerId,
    /// Its session.
    pub session: SessionId,
    /// Whose it is.
    pub principal: String,
    /// Where it runs.
    pub node: Option<Node>,
    /// Its name for people.
    pub identity: String,
    /// Which build it runs.
    pub build: String,
    /// Names and values for people.
    pub labels: Vec<(String, String)>,
    /// What it serves, of what the asking principal may see.
    pub pools: Vec<PoolKey>,
    /// How many tasks it takes at once.
    pub credit: u32,
    /// How many it has.
    pub in_flight: u32,
    /// Whether it is leaving.
    pub draining: bool,
    /// When it registered.
    pub connected: Instant,
}

/// A pool as the selector sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolStatus {
    /// Its key.
    pub key: PoolKey,
    /// How many workers serve it.
    pub workers: u32,
    /// How many tasks wait.
    pub waiting: u64,
    /// The credit of its workers. They may share it with other pools.
    pub credit: u64,
    /// How many tasks its workers have, those of other pools included.
    pub in_flight: u64,
    /// How its tickets are drawn.
    pub policy: Policy,
}

impl<F: CellFamily> Engine<F> {
    /// A task as it is now, unless there is none or it is not the principal's to see.
    #[must_use]
    pub fn task(&self, principal: &Principal, id: TaskId) -> Option<TaskStatus> {
        let task = self.tasks.get(&id)?;
        principal.may_see(&task.pool().namespace).then(|| self.status_of(task))
    }

    /// The tasks after `after` in the order of their ids, at most `limit` of them.
    ///
    /// Linear in the number of known tasks. What changes meanwhile may be seen or not.
    #[must_use]
    pub fn tasks(
        &self,
        principal: &Principal,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: usize,
    ) -> Vec<TaskStatus> {
        let mut first = std::collections::BTreeMap::new();
        self.tasks.for_each(|id, task| {
            let wanted = after.is_none_or(|after| *id > after)
                && filter.admits(task)
                && principal.may_see(&task.pool().namespace);
            if !wanted || limit == 0 {
                return;
            }
            let is_full = first.len() >= limit;
            if is_full && first.last_key_value().is_some_and(|(last, _)| last < id) {
                return;
            }
            first.insert(*id, StdArc::clone(task));
            if first.len() > limit {
                first.pop_last();
            }
        });
        first.into_values().map(|task| self.status_of(task)).collect()
    }

    fn status_of(&self, task: StdArc<Task>) -> TaskStatus {
        let word = task.word();
        let state = word.state();
        let (lease_epoch, worker) = task.last_offer();
        let worker = WorkerId::new(worker);
        let is_with = [TaskState::Offered, TaskState::Running, TaskState::Cancelling];
        let reason = match state {
            TaskState::Scheduled if word.tag() == 0 => Reason::NotDue,
            TaskState::Scheduled => Reason::RetryBackoff,
            TaskState::Pending if word.is_parked() => Reason::Held,
            TaskState::Pending => self.why_waiting(&task),
            TaskState::Offered => Reason::Offered(worker),
            TaskState::Running => Reason::Running(worker),
            TaskState::Cancelling => Reason::Cancelling(worker),
            TaskState::Completed | TaskState::Dead | TaskState::Cancelled => Reason::Terminal,
        };
        TaskStatus {
            state,
            attempt: task.attempt(),
            deliveries: task.deliveries(),
            lost: task.lost_deliveries(),
            worker: is_with.contains(&state).then_some(worker),
            lease_epoch,
            reason,
            outcome: task.outcome(),
            task,
        }
    }

    fn why_waiting(&self, task: &Task) -> Reason {
        if self.is_draining() {
            return Reason::ServerDraining;
        }
        if self.registry.is_held(task.pool()) {
            return Reason::Held;
        }
        let snapshot = self.registry.load();
        let pool = self.registry.pools.get(task.pool());
        let Some(view) = pool.as_ref().and_then(|pool| snapshot.view(pool)) else {
            return Reason::NoWorker;
        };
        if view.is_drained {
            return Reason::AllDraining;
        }
        let members = match &task.options().require {
            None => &view.members,
            Some(node) => match view.slice(node) {
                Some(slice) => &slice.members,
                None => return Reason::NoWorkerOnNode,
            },
        };
        let (mut full, mut open) = (false, false);
        for member in members.iter() {
            let Some(word) = self.registry.slab.word(member.slot) else { continue };
            let state = word.peek();
            let is_leaving = state.is_closed() || state.is_draining();
            full |= !is_leaving && state.in_flight() >= state.limit();
            open |= !is_leaving && state.in_flight() < state.limit();
        }
        match (open, full) {
            (true, _) => Reason::BehindOthers,
            (false, true) => Reason::AllFull,
            (false, false) => Reason::AllDraining,
        }
    }

    /// The connected workers of the current snapshot that the principal may see, by id.
    #[must_use]
    pub fn workers(&self, principal: &Principal) -> (Generation, Vec<WorkerStatus>) {
        let (generation, entries) = self.registry.connected();
        let mut workers = Vec::with_capacity(entries.len());
        for entry in entries {
            let keys = entry.pools.iter().map(|pool| &*pool.key);
            let pools: Vec<PoolKey> =
                keys.filter(|key| principal.may_see(&key.namespace)).cloned().collect();
            if pools.is_empty() {
                continue;
            }
            let worker = &entry.worker;
            let Some(word) = self.registry.slab.word(worker.member.slot) else { continue };
            let state = word.peek();
            workers.push(WorkerStatus {
                id: worker.member.worker,
                session: worker.session,
                principal: worker.principal.name().to_owned(),
                node: worker.node.clone(),
                identity: worker.identity.clone(),
                build: worker.build.clone(),
                labels: worker.labels.clone(),
                pools,
                credit: state.limit(),
                in_flight: state.in_flight(),
                draining: state.is_draining(),
                connected: worker.connected,
            });
        }
        (generation, workers)
    }

    /// The pools that the principal may see, by key.
    #[must_use]
    pub fn pools(&self, principal: &Principal) -> (Generation, Vec<PoolStatus>) {
        let snapshot = self.registry.load();
        let mut pools = Vec::new();
        self.registry.pools.for_each(|key, pool| {
            if !principal.may_see(&key.namespace) {
                return;
            }
            let view = snapshot.view(pool);
            let (credit, in_flight) = view.map_or((0, 0), |view| self.sum(view));
            pools.push(PoolStatus {
                key: key.clone(),
                workers: view.map_or(0, |view| view.members.len() as u32),
                waiting: pool.waiting(),
                credit,
                in_flight,
                policy: pool.policy(),
            });
        });
        pools.sort_by(|a, b| a.key.cmp(&b.key));
        (snapshot.generation, pools)
    }

    fn sum(&self, view: &PoolView) -> (u64, u64) {
        let states = view
            .members
            .iter()
            .filter_map(|member: Member| Some(self.registry.slab.word(member.slot)?.peek()));
        states.fold((0, 0), |(credit, in_flight), state| {
            (credit + u64::from(state.limit()), in_flight + u64::from(state.in_flight()))
        })
    }
}
