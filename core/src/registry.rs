//! Who is connected: one published snapshot, replaced as a whole.
//!
//! Changes queue up; whoever holds the writer's lock applies all that wait as one snapshot. A call
//! returns when a snapshot with its change is visible, and after the pools that it touched were
//! notified: the publisher does that, never a future that may be dropped. Readers take no lock.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::admission::{Admitted, RegisterError};
use crate::cell::{CellFamily, SnapshotCell};
use crate::cursor::Cursor;
use crate::drain::{Begun, DrainMode, DrainScope, DrainStatus, Drains, Looks, Order, Step};
use crate::id::{Generation, InstanceId, SessionId, WorkerId};
use crate::inbox::{Inbox, Pushed};
use crate::index::Index;
use crate::limits;
use crate::mutant::mutant;
use crate::name::{Namespace, Node, PoolKey};
use crate::outcome::Notify;
use crate::pool::{NamespaceState, Policy, Pool};
use crate::slab::Slab;
use crate::snapshot::{Entry, NodeSlice, PoolView, Snapshot};
use crate::sync::{Mutex, Ordering, StdArc};
use crate::table::Roster;
use crate::time::Instant;
use crate::worker::{ASKED_DRAIN, ASKED_LEAVE, Delivery, Member, RunList, Worker};

pub(crate) type KeyHasher = foldhash::fast::FixedState;

/// What the driver thread is asked to do.
pub(crate) struct Driver {
    /// Pools whose pass was handed on.
    pub(crate) turns: Inbox<StdArc<Pool>>,
    pub(crate) wake: StdArc<dyn Notify>,
}

impl Driver {
    /// Leaves the pool's pass to the driver.
    pub(crate) fn take_over(&self, pool: StdArc<Pool>) {
        if let Ok(Pushed::First) = self.turns.push(pool) {
            self.wake.notify();
        }
    }
}

/// A worker to be published.
pub(crate) struct Joining {
    pub(crate) admitted: Admitted,
    pub(crate) session: SessionId,
    pub(crate) link: StdArc<dyn Notify>,
    pub(crate) now: Instant,
}

/// A worker that was published.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    pub(crate) worker: StdArc<Worker>,
    pub(crate) pools: StdArc<[StdArc<Pool>]>,
    pub(crate) generation: Generation,
    /// The worker of the same instance that it took the place of.
    pub(crate) supersedes: Option<WorkerId>,
}

enum Change {
    Register(Box<Joining>),
    Update(StdArc<Worker>, Vec<PoolKey>),
    Remove(StdArc<Worker>),
    /// The server leaves.
    Drain,
    Step(Step),
}

#[derive(Default)]
enum Answer {
    #[default]
    None,
    Joined(Result<Joined, RegisterError>),
    Drained(Begun),
    Done,
}

struct Request {
    change: Mutex<Option<Change>>,
    answer: Mutex<Answer>,
}

/// What changes in one pool by one publish.
struct Touched {
    pool: StdArc<Pool>,
    added: Vec<(Member, StdArc<Worker>)>,
    removed: Vec<(Member, Option<Node>)>,
}

/// All that only the publisher touches.
struct Writer {
    snapshot: Snapshot,
    next_worker: u64,
    next_serial: u64,
    next_slot: u32,
    /// Slots of workers that left; the front one is used again once its units are back.
    left: VecDeque<u32>,
    next_index: u32,
    free_indexes: Vec<u32>,
    namespaces: FxHashMap<Namespace, StdArc<NamespaceState>>,
    workers: BTreeMap<WorkerId, StdArc<Worker>>,
    /// By principal and instance: a stranger's instance id supersedes nobody.
    instances: FxHashMap<(StdArc<str>, InstanceId), WorkerId>,
    /// What operators set; it outlasts the pools.
    policies: FxHashMap<PoolKey, Policy>,
    draining: bool,
    drains: Drains,
}

/// The connected workers by pool, and the pools.
pub(crate) struct Registry<F: CellFamily> {
    cell: F::Cell<Snapshot>,
    pub(crate) slab: Slab,
    pub(crate) pools: Index<PoolKey, StdArc<Pool>, KeyHasher>,
    policy: Policy,
    pub(crate) seed: u64,
    requests: Mutex<Vec<StdArc<Request>>>,
    writer: Mutex<Writer>,
    /// Pools that may be retired: the sweep looks at them.
    pub(crate) idle_pools: Inbox<StdArc<Pool>>,
    pub(crate) driver: Driver,
}

impl<F: CellFamily> Registry<F> {
    pub(crate) fn new(seed: u64, policy: Policy, wake: StdArc<dyn Notify>) -> Self {
        Self {
            cell: F::Cell::new(Snapshot::default()),
            slab: Slab::new(),
            pools: Index::new(KeyHasher::with_seed(seed)),
            policy,
            seed,
            requests: Mutex::new(Vec::new()),
            writer: Mutex::new(Writer {
                snapshot: Snapshot::default(),
                next_worker: 0,
                next_serial: 0,
                next_slot: 0,
                left: VecDeque::new(),
                next_index: 0,
                free_indexes: Vec::new(),
                namespaces: FxHashMap::default(),
                workers: BTreeMap::new(),
                instances: FxHashMap::default(),
                policies: FxHashMap::default(),
                draining: false,
                drains: Drains::default(),
            }),
            idle_pools: Inbox::new(),
            driver: Driver { turns: Inbox::new(), wake },
        }
    }

    /// Loads the current snapshot. The guard must not cross an await, nor a pool's pass.
    #[inline]
    pub(crate) fn load(&self) -> <F::Cell<Snapshot> as SnapshotCell<Snapshot>>::Guard<'_> {
        self.cell.load()
    }

    /// Publishes a worker; returns when it can be selected.
    pub(crate) fn register(
        &self,
        joining: Joining,
        run: &mut RunList,
    ) -> Result<Joined, RegisterError> {
        match self.submit(Change::Register(Box::new(joining)), run) {
            Answer::Joined(joined) => joined,
            _ => Err(RegisterError::Full),
        }
    }

    /// Replaces the pools of a worker in one publish.
    pub(crate) fn update(
        &self,
        worker: &StdArc<Worker>,
        keys: Vec<PoolKey>,
        run: &mut RunList,
    ) -> Result<Joined, RegisterError> {
        let change = Change::Update(StdArc::clone(worker), keys);
        match self.submit(change, run) {
            Answer::Joined(joined) => joined,
            _ => Err(RegisterError::Full),
        }
    }

    /// Closes the worker's state word, then publishes a snapshot without it. Removing twice, or
    /// after another took the place, changes nothing.
    pub(crate) fn deregister(&self, worker: &StdArc<Worker>, run: &mut RunList) {
        if mutant("L3b-a") {
            return;
        }
        if let Some(word) = self.slab.word(worker.member.slot) {
            word.close(worker.member.generation);
        }
        self.submit(Change::Remove(StdArc::clone(worker)), run);
    }

    /// Closes the offer gate of every worker, and refuses registrations from here on. Returns what
    /// had been placed and not sent.
    pub(crate) fn drain_all(&self, run: &mut RunList) -> Begun {
        self.begun(Change::Drain, run)
    }

    /// Changes what nothing is placed on.
    pub(crate) fn drain_step(&self, step: Step, run: &mut RunList) -> Begun {
        self.begun(Change::Step(step), run)
    }

    fn begun(&self, change: Change, run: &mut RunList) -> Begun {
        match self.submit(change, run) {
            Answer::Drained(begun) => begun,
            _ => Begun::default(),
        }
    }

    /// What nothing is placed on.
    pub(crate) fn drains(&self) -> Vec<DrainStatus> {
        self.writer.lock().drains.list()
    }

    /// Says whether tasks of that pool are held.
    pub(crate) fn is_held(&self, pool: &PoolKey) -> bool {
        self.writer.lock().drains.hold(pool)
    }

    /// One of those, by the number of its entry.
    pub(crate) fn drain(&self, serial: u64) -> Option<DrainStatus> {
        self.writer.lock().drains.get(serial)
    }

    /// Queues a change and sees to it that a snapshot with it is published.
    fn submit(&self, change: Change, run: &mut RunList) -> Answer {
        let request = StdArc::new(Request {
            change: Mutex::new(Some(change)),
            answer: Mutex::new(Answer::None),
        });
        self.requests.lock().push(StdArc::clone(&request));
        let mut writer = self.writer.lock();
        // Whoever held the lock before may have applied this change with its own.
        let waits = request.change.lock().is_some();
        if waits {
            let requests = std::mem::take(&mut *self.requests.lock());
            self.publish(&mut writer, &requests, run);
        }
        drop(writer);

        std::mem::take(&mut *request.answer.lock())
    }

    fn publish(&self, writer: &mut Writer, requests: &[StdArc<Request>], run: &mut RunList) {
        let mut touched: BTreeMap<u64, Touched> = BTreeMap::new();
        let mut asked = Vec::new();
        let generation = Generation::new(writer.snapshot.generation.as_u64() + 1);
        for request in requests {
            let Some(change) = request.change.lock().take() else { continue };
            if let Change::Step(Step::Set(status, looks)) = &change {
                asked.push((status.scope.clone(), StdArc::clone(looks)));
            }
            let answer = self.apply(writer, change, generation, &mut touched);
            *request.answer.lock() = answer;
        }
        writer.snapshot.generation = generation;
        for touch in touched.values() {
            let is_drained = writer.drains.are_over(&touch.pool.key);
            Self::rebuild(&mut writer.snapshot, touch, is_drained, generation);
        }
        if mutant("L8c") {
            Self::ask_to_look(&writer.snapshot, &asked);
        }
        writer.snapshot.worker_count = writer.workers.len();
        if !mutant("L2b") {
            self.cell.publish(Snapshot {
                generation,
                views: writer.snapshot.views.clone(),
                workers: writer.snapshot.workers.clone(),
                worker_count: writer.snapshot.worker_count,
            });
        }
        if !mutant("L8c") {
            Self::ask_to_look(&writer.snapshot, &asked);
        }
        for (_, touch) in touched {
            // The snapshot is visible: a pass that begins from here on sees it.
            if !mutant("L4c") {
                touch.pool.notify(run);
            }
            self.try_retire(writer, &touch.pool);
        }
    }

    fn apply(
        &self,
        writer: &mut Writer,
        change: Change,
        generation: Generation,
        touched: &mut BTreeMap<u64, Touched>,
    ) -> Answer {
        match change {
            Change::Register(joining) => {
                Answer::Joined(self.apply_register(writer, *joining, generation, touched))
            }
            Change::Update(worker, keys) => {
                let joined = self.apply_update(writer, worker, &keys, generation, touched);
                Answer::Joined(joined)
            }
            Change::Remove(worker) => {
                Self::apply_remove(writer, &worker, touched);
                Answer::Done
            }
            Change::Drain => {
                writer.draining = true;
                let mut begun = Begun::default();
                for worker in writer.workers.values() {
                    let unsent = self.close_gate(worker, DrainMode::Drain);
                    let unsent = unsent.map(|delivery| (StdArc::clone(worker), delivery));
                    begun.unsent.extend(unsent);
                }
                Answer::Drained(begun)
            }
            Change::Step(step) => {
                if let Step::Set(DrainStatus { scope, .. }, _) | Step::Lift(scope, _) = &step {
                    self.pools.for_each(|key, pool| {
                        if scope.is_over(key) {
                            touch(touched, pool);
                        }
                    });
                }
                Answer::Drained(self.take_step(&mut writer.drains, step, &writer.workers))
            }
        }
    }

    /// Asks the sessions that serve what is drained to look. After the snapshot is visible.
    fn ask_to_look(snapshot: &Snapshot, asked: &[(DrainScope, StdArc<Looks>)]) {
        for (scope, looks) in asked {
            snapshot.workers.for_each(|entry| {
                if entry.pools.iter().any(|pool| scope.is_over(&pool.key)) {
                    entry.worker.order(Order::Look(looks.ask()));
                }
            });
        }
    }

    /// Closes the way to one worker; what had been placed comes back. The publisher alone does it.
    pub(crate) fn close_gate(
        &self,
        worker: &Worker,
        mode: DrainMode,
    ) -> impl Iterator<Item = Delivery> + use<F> {
        if let Some(word) = self.slab.word(worker.member.slot) {
            word.drain(worker.member.generation);
        }
        let taken = if mutant("L8a") { worker.inbox.take() } else { worker.inbox.close() };
        if mode == DrainMode::Drain {
            worker.ask(ASKED_DRAIN);
        }
        taken
    }

    fn apply_register(
        &self,
        writer: &mut Writer,
        joining: Joining,
        generation: Generation,
        touched: &mut BTreeMap<u64, Touched>,
    ) -> Result<Joined, RegisterError> {
        if writer.draining && !mutant("L8b") {
            return Err(RegisterError::Draining);
        }
        let register = &joining.admitted.register;
        let covered = writer.drains.of_new(register.node.as_ref(), &register.build);
        if covered == Some(DrainMode::Drain) {
            return Err(RegisterError::Draining);
        }
        let pools = self.pools_of(writer, &joining.admitted.keys)?;
        let instance = joining.admitted.register.instance;
        let fence = (joining.admitted.principal.shared_name(), instance);
        let supersedes = writer.instances.get(&fence).copied();
        if let Some(older) = supersedes
            && let Some(older) = writer.workers.get(&older).map(StdArc::clone)
        {
            if let Some(word) = self.slab.word(older.member.slot) {
                word.close(older.member.generation);
            }
            Self::apply_remove(writer, &older, touched);
            older.ask(ASKED_LEAVE);
        }
        let (slot, slot_generation) = self.claim_slot(writer).ok_or(RegisterError::Full)?;
        writer.next_worker += 1;
        let member =
            Member { worker: WorkerId::new(writer.next_worker), slot, generation: slot_generation };
        let register = joining.admitted.register;
        let worker = StdArc::new(Worker::new(
            member,
            joining.session,
            joining.admitted.principal,
            register,
            joining.link,
            joining.now,
        ));
        if covered.is_some() {
            // Nobody has placed anything on it yet.
            drop(self.close_gate(&worker, DrainMode::Cordon));
        }
        writer.workers.insert(member.worker, StdArc::clone(&worker));
        writer.instances.insert(fence, member.worker);
        let entry =
            StdArc::new(Entry { worker: StdArc::clone(&worker), pools: StdArc::clone(&pools) });
        writer.snapshot.workers.set(slot, Some(entry));
        for pool in pools.iter() {
            touch(touched, pool).added.push((member, StdArc::clone(&worker)));
        }
        Ok(Joined { worker, pools, generation, supersedes })
    }

    fn apply_update(
        &self,
        writer: &mut Writer,
        worker: StdArc<Worker>,
        keys: &[PoolKey],
        generation: Generation,
        touched: &mut BTreeMap<u64, Touched>,
    ) -> Result<Joined, RegisterError> {
        if !writer.workers.contains_key(&worker.member.worker) {
            return Err(RegisterError::Draining);
        }
        let pools = self.pools_of(writer, keys)?;
        let member = worker.member;
        let old = writer.snapshot.workers.get(member.slot).map(|entry| StdArc::clone(&entry.pools));
        let old = old.unwrap_or_else(|| StdArc::new([]));
        let (now, before) = (serials(&pools), serials(&old));
        for pool in old.iter().filter(|pool| !now.contains(&pool.serial)) {
            touch(touched, pool).remove(member, worker.node.clone());
        }
        for pool in pools.iter().filter(|pool| !before.contains(&pool.serial)) {
            touch(touched, pool).added.push((member, StdArc::clone(&worker)));
        }
        let entry =
            StdArc::new(Entry { worker: StdArc::clone(&worker), pools: StdArc::clone(&pools) });
        writer.snapshot.workers.set(member.slot, Some(entry));
        Ok(Joined { worker, pools, generation, supersedes: None })
    }

    /// Takes a worker out by its id: a successor of the same instance is never met.
    fn apply_remove(writer: &mut Writer, worker: &Worker, touched: &mut BTreeMap<u64, Touched>) {
        let member = worker.member;
        if writer.workers.remove(&member.worker).is_none() && !mutant("L3a") {
            return;
        }
        writer.drains.forget(member.worker);
        let fence = (worker.principal.shared_name(), worker.instance);
        if mutant("L3a") || writer.instances.get(&fence) == Some(&member.worker) {
            writer.instances.remove(&fence);
        }
        let Some(entry) = writer.snapshot.workers.get(member.slot).cloned() else { return };
        writer.snapshot.workers.set(member.slot, None);
        for pool in entry.pools.iter() {
            touch(touched, pool).remove(member, worker.node.clone());
        }
        writer.left.push_back(member.slot);
    }

    /// Finds a slot whose last worker left and has no unit out, or makes one.
    fn claim_slot(&self, writer: &mut Writer) -> Option<(u32, u32)> {
        for _ in 0..writer.left.len().min(4) {
            let slot = writer.left.pop_front()?;
            let word = self.slab.word(slot)?;
            if let Some(generation) = word.reopen() {
                return Some((slot, generation));
            }
            if !word.is_used_up() {
                writer.left.push_back(slot);
            }
        }
        let slot = writer.next_slot;
        if slot == Slab::capacity() {
            return None;
        }
        self.slab.make(slot);
        writer.next_slot += 1;
        let generation = self.slab.word(slot)?.reopen()?;
        Some((slot, generation))
    }

    fn pools_of(
        &self,
        writer: &mut Writer,
        keys: &[PoolKey],
    ) -> Result<StdArc<[StdArc<Pool>]>, RegisterError> {
        let mut pools = Vec::with_capacity(keys.len());
        for key in keys {
            let pool = self.pool_of(writer, key, false);
            pools.push(pool.ok_or(RegisterError::Limit {
                limit: "pools in a namespace",
                count: limits::POOLS_PER_NAMESPACE_MAX as usize + 1,
                max: limits::POOLS_PER_NAMESPACE_MAX as usize,
            })?);
        }
        Ok(pools.into())
    }

    fn pool_of(&self, writer: &mut Writer, key: &PoolKey, known: bool) -> Option<StdArc<Pool>> {
        if let Some(pool) = self.pools.get(key) {
            return Some(pool);
        }
        let namespace = writer
            .namespaces
            .entry(key.namespace.clone())
            .or_insert_with(|| StdArc::new(NamespaceState::new(key.namespace.clone())));
        // Relaxed: changed under the writer's lock alone.
        if !known && namespace.pools.load(Ordering::Relaxed) >= limits::POOLS_PER_NAMESPACE_MAX {
            return None;
        }
        namespace.pools.fetch_add(1, Ordering::Relaxed);
        writer.next_serial += 1;
        let index = writer.free_indexes.pop().unwrap_or_else(|| {
            writer.next_index += 1;
            writer.next_index - 1
        });
        let pool = StdArc::new(Pool::new(
            key.clone(),
            writer.next_serial,
            index,
            StdArc::clone(namespace),
            writer.policies.get(key).copied().unwrap_or(self.policy),
        ));
        self.pools.insert(key.clone(), StdArc::clone(&pool));
        self.sweep_later(&pool);
        Some(pool)
    }

    /// Sets how the workers of a pool are chosen, whether or not it exists; the default if none is
    /// given. False if too many are set.
    pub(crate) fn set_policy(&self, key: &PoolKey, policy: Option<Policy>) -> bool {
        let mut writer = self.writer.lock();
        match policy {
            None => drop(writer.policies.remove(key)),
            Some(_)
                if writer.policies.len() >= limits::POLICIES_MAX
                    && !writer.policies.contains_key(key) =>
            {
                return false;
            }
            Some(policy) => drop(writer.policies.insert(key.clone(), policy)),
        }
        if let Some(pool) = self.pools.get(key) {
            pool.set_policy(policy.unwrap_or(self.policy));
        }
        true
    }

    /// Returns the pool of a key, made if need be. `None` if the namespace has too many and the
    /// caller is not `known` to have had it before.
    pub(crate) fn resolve(&self, key: &PoolKey, known: bool) -> Option<StdArc<Pool>> {
        if let Some(pool) = self.pools.get(key) {
            return Some(pool);
        }
        self.pool_of(&mut self.writer.lock(), key, known)
    }

    /// Frees old snapshots and drops pools without worker and task that were seen idle before.
    /// Called by the sweep.
    pub(crate) fn sweep(&self) {
        self.cell.tidy();
        let candidates = self.idle_pools.take();
        if candidates.is_empty() {
            return;
        }
        let mut writer = self.writer.lock();
        for pool in candidates {
            pool.set_swept(false);
            self.try_retire(&mut writer, &pool);
        }
    }

    /// Has the next sweep look at a pool.
    fn sweep_later(&self, pool: &StdArc<Pool>) {
        if !pool.set_swept(true) {
            self.idle_pools.push(StdArc::clone(pool)).ok();
        }
    }

    /// Drops a pool that no worker serves and no task waits in.
    fn try_retire(&self, writer: &mut Writer, pool: &StdArc<Pool>) {
        if pool.is_retired() || writer.snapshot.view(pool).is_some() {
            return;
        }
        if !pool.retire() {
            self.sweep_later(pool);
            return;
        }
        self.pools.remove(&pool.key);
        writer.free_indexes.push(pool.index);
        let namespace = &pool.namespace;
        // Relaxed: changed under the writer's lock alone.
        if namespace.pools.fetch_sub(1, Ordering::Relaxed) == 1 {
            writer.namespaces.remove(&namespace.name);
        }
    }

    /// Puts a pool's changed view into the snapshot to come.
    fn rebuild(snapshot: &mut Snapshot, touch: &Touched, is_drained: bool, generation: Generation) {
        let pool = &touch.pool;
        let old = snapshot.view(pool).cloned();
        let mut added: Vec<Member> = touch.added.iter().map(|(member, _)| *member).collect();
        added.sort_unstable();
        let mut removed: Vec<Member> = touch.removed.iter().map(|(member, _)| *member).collect();
        removed.sort_unstable();
        let members = old.as_ref().map(|view| view.members.clone()).unwrap_or_default();
        let members = members.changed(&added, &removed);
        if members.len() == 0 {
            if old.is_some() {
                snapshot.views.set(pool.index, None);
            }
            return;
        }
        let mut slices = old.as_ref().map(|view| view.slices.clone()).unwrap_or_default();
        Self::rebuild_slices(&mut slices, touch);
        let view = PoolView { serial: pool.serial, generation, is_drained, members, slices };
        snapshot.views.set(pool.index, Some(StdArc::new(view)));
    }

    fn rebuild_slices(slices: &mut Vec<NodeSlice>, touch: &Touched) {
        let mut changes: BTreeMap<Node, (Vec<Member>, Vec<Member>)> = BTreeMap::new();
        for (member, worker) in &touch.added {
            if let Some(node) = &worker.node {
                changes.entry(node.clone()).or_default().0.push(*member);
            }
        }
        for (member, node) in &touch.removed {
            if let Some(node) = node {
                changes.entry(node.clone()).or_default().1.push(*member);
            }
        }
        for (node, (mut added, mut removed)) in changes {
            added.sort_unstable();
            removed.sort_unstable();
            match slices.binary_search_by(|slice| slice.node.cmp(&node)) {
                Ok(at) => slices[at].members = slices[at].members.changed(&added, &removed),
                Err(at) => {
                    let members = Roster::default().changed(&added, &removed);
                    let cursor = StdArc::new(Cursor::new());
                    slices.insert(at, NodeSlice { node, members, cursor });
                }
            }
        }
        slices.retain(|slice| slice.members.len() > 0);
    }

    /// Lists the connected workers of the current snapshot.
    pub(crate) fn connected(&self) -> (Generation, Vec<StdArc<Entry>>) {
        let snapshot = self.load();
        let mut entries = Vec::with_capacity(snapshot.worker_count);
        snapshot.workers.for_each(|entry| entries.push(StdArc::clone(entry)));
        entries.sort_by_key(|entry| entry.worker.member.worker);
        (snapshot.generation, entries)
    }

    /// Finds a connected worker by its id.
    pub(crate) fn worker(&self, id: WorkerId) -> Option<StdArc<Worker>> {
        self.writer.lock().workers.get(&id).cloned()
    }
}

impl<F: CellFamily> std::fmt::Debug for Registry<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl Touched {
    fn remove(&mut self, member: Member, node: Option<Node>) {
        // A worker that came and went within one batch never was in the view.
        self.added.retain(|(added, _)| *added != member);
        self.removed.push((member, node));
    }
}

fn touch<'a>(touched: &'a mut BTreeMap<u64, Touched>, pool: &StdArc<Pool>) -> &'a mut Touched {
    touched.entry(pool.serial).or_insert_with(|| Touched {
        pool: StdArc::clone(pool),
        added: Vec::new(),
        removed: Vec::new(),
    })
}

fn serials(pools: &[StdArc<Pool>]) -> FxHashSet<u64> {
    pools.iter().map(|pool| pool.serial).collect()
}
