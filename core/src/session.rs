//! A worker's session: the one owner of a registration and of the leases given to its worker.
//!
//! It belongs to the driver of the worker's connection and steps by that driver's calls, so what it
//! holds needs no lock. Each lease that was offered has an entry here, and the entry owns the unit
//! of credit on which the task travelled: the unit is released exactly when the entry goes. A lease
//! that was ended by somebody else keeps its entry, and so its unit, until the worker reports it
//! finished: no slot of a worker runs two tasks.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::admission::{self, PoolEntry, Register, RegisterError};
use crate::cell::{CellFamily, EpochCells};
use crate::credit::Word;
use crate::drain::{DrainScope, Order, Step};
use crate::engine::Engine;
use crate::id::{Generation, Lease, TaskId, WorkerId};
use crate::inbox::Batch;
use crate::lease::{Held, Over, Stage, stop_of};
use crate::limits::EXPIRY_LOOK;
use crate::name::PoolKey;
use crate::pool::Pool;
use crate::registry::Joined;
use crate::report::{Beat, CancelReason, CloseReason, RejectCode, Report, Verdict};
use crate::settle::{Orphan, Timer};
use crate::signal::{Signal, SignalVerdict, Signaller};
use crate::sync::StdArc;
use crate::task::{Task, TaskState};
use crate::text::Text;
use crate::time::Instant;
use crate::worker::{ASKED_DRAIN, ASKED_EVICTED, ASKED_LEAVE, Delivery, Note, RunList, Worker};

/// A task for the worker, under a lease.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Offer {
    /// The delivery.
    pub lease: Lease,
    /// The place of the task's pool in [`WorkerSession::pools`].
    pub pool_ref: u32,
    /// The task.
    pub task: StdArc<Task>,
    /// The attempt, from 1.
    pub attempt: u32,
    /// How many deliveries were accepted before.
    pub deliveries: u32,
    /// The newest progress of earlier deliveries.
    pub last_progress: Option<Bytes>,
}

/// A lease on which the worker must stop working.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stop {
    /// The delivery.
    pub lease: Lease,
    /// Why.
    pub reason: CancelReason,
    /// How long the worker may take; zero if the lease is over already.
    pub grace: Duration,
    /// For the handler and for people, empty if nothing was said.
    pub message: Text,
}

/// Bytes for the handler that is at work on a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signalled {
    /// The delivery.
    pub lease: Lease,
    /// Its number on this session, for the answer.
    pub seq: u64,
    /// What kind of signal, in the application's words.
    pub kind: Text,
    /// Opaque bytes.
    pub payload: Bytes,
}

/// The registration of one worker and the leases given to it.
///
/// Dropping it removes the worker, as [`WorkerSession::close`] with `StreamClosed` does.
pub struct WorkerSession<F: CellFamily = EpochCells> {
    engine: StdArc<Engine<F>>,
    worker: StdArc<Worker>,
    template: Register,
    /// The worker of the same instance that this one took the place of. Its session may not know of
    /// its end yet.
    supersedes: Option<WorkerId>,
    generation: Generation,
    pools: Vec<PoolKey>,
    refs: FxHashMap<u64, u32>,
    /// What is served at present, and of that, by serial, what was drained at the last look.
    serves: StdArc<[StdArc<Pool>]>,
    drained: FxHashSet<u64>,
    /// Which of `pools` are served at present.
    served: Vec<bool>,
    credit_seq: Option<u64>,
    limit: u32,
    /// The last grant, of which the capacity is the ceiling.
    granted: u32,
    held: Vec<Option<Held>>,
    free: Vec<u32>,
    count: usize,
    ready: Option<Batch<Delivery>>,
    stops: VecDeque<Stop>,
    signals: VecDeque<Signalled>,
    /// Signals that were polled or wait for it, and not answered, by their numbers.
    unanswered: FxHashMap<u64, (Lease, Signaller)>,
    signal_seq: u64,
    /// The last beat for all leases.
    beat_all: Instant,
    next_look: Option<Instant>,
    run: RunList,
    closed: bool,
    last_now: Instant,
}

impl<F: CellFamily> WorkerSession<F> {
    pub(crate) fn new(engine: StdArc<Engine<F>>, joined: Joined, template: Register) -> Self {
        let connected = joined.worker.connected;
        let mut session = Self {
            engine,
            worker: StdArc::clone(&joined.worker),
            template,
            supersedes: joined.supersedes,
            generation: joined.generation,
            pools: Vec::new(),
            refs: FxHashMap::default(),
            serves: StdArc::new([]),
            drained: FxHashSet::default(),
            served: Vec::new(),
            credit_seq: None,
            limit: 0,
            granted: 0,
            held: Vec::new(),
            free: Vec::new(),
            count: 0,
            ready: None,
            stops: VecDeque::new(),
            signals: VecDeque::new(),
            unanswered: FxHashMap::default(),
            signal_seq: 0,
            beat_all: Instant::ZERO,
            next_look: None,
            run: RunList::new(),
            closed: false,
            last_now: connected,
        };
        session.take_pools(&joined);
        session
    }

    /// The worker's id.
    #[must_use]
    pub fn worker_id(&self) -> WorkerId {
        self.worker.member.worker
    }

    /// The generation of the snapshot that holds the last change of this registration.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The pools that were ever registered on this session; an offer names them by their place.
    #[must_use]
    pub fn pools(&self) -> &[PoolKey] {
        &self.pools
    }

    /// How many leases the worker may be at work on.
    #[must_use]
    pub fn running(&self) -> usize {
        self.count
    }

    /// Says whether the worker was asked to finish and leave.
    #[must_use]
    pub fn drain_requested(&self) -> bool {
        self.worker.asked() & ASKED_DRAIN != 0
    }

    /// Says whether the same instance registered anew elsewhere: this session is over.
    #[must_use]
    pub fn leave_requested(&self) -> bool {
        self.worker.asked() & ASKED_LEAVE != 0
    }

    /// Sets how many tasks the worker takes at once, up to its capacity.
    ///
    /// A number that is not newer than the last is ignored. A limit below what is in flight stops
    /// offers and cancels nothing.
    pub fn credit(&mut self, limit: u32, seq: u64, now: Instant) {
        self.last_now = now;
        if self.closed || self.credit_seq.is_some_and(|last| seq <= last) {
            return;
        }
        self.credit_seq = Some(seq);
        self.granted = limit;
        self.set_limit(limit.min(self.template.capacity));
        self.flush();
    }

    fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
        let member = self.worker.member;
        let Some(word) = self.engine.registry.slab.word(member.slot) else { return };
        if let Some(units) = word.open_up(member.generation, Some(limit), false) {
            self.engine.release(&self.worker, units, &mut self.run);
        }
    }

    /// Replaces what the worker serves, in one publish, and the ceiling of its credit.
    ///
    /// # Errors
    ///
    /// As for a registration; what was served before stays.
    pub fn update(
        &mut self,
        pools: Vec<PoolEntry>,
        capacity: u32,
        now: Instant,
    ) -> Result<Generation, RegisterError> {
        self.last_now = now;
        let register = Register { pools: pools.clone(), capacity, ..self.template.clone() };
        let mode = &self.engine.config.namespaces;
        let admitted = admission::admit(&self.worker.principal, mode, register)?;
        self.publish(admitted.keys)?;
        let before = std::mem::replace(&mut self.template.capacity, capacity);
        self.template.pools = pools;
        // A limit that the worker's own word has lowered since its grant stays where it is.
        let is_capped = self.limit == self.granted.min(before);
        if capacity < self.limit || is_capped {
            self.set_limit(self.granted.min(capacity));
        }
        self.flush();
        Ok(self.generation)
    }

    fn publish(&mut self, keys: Vec<PoolKey>) -> Result<(), RegisterError> {
        let joined = self.engine.registry.update(&self.worker, keys, &mut self.run)?;
        self.take_pools(&joined);
        Ok(())
    }

    fn take_pools(&mut self, joined: &Joined) {
        self.generation = joined.generation;
        self.served.fill(false);
        self.refs.clear();
        for pool in joined.pools.iter() {
            let at = self.pools.iter().position(|key| *key == *pool.key);
            let at = at.unwrap_or_else(|| {
                self.pools.push(PoolKey::clone(&pool.key));
                self.served.push(false);
                self.pools.len() - 1
            });
            self.served[at] = true;
            self.refs.insert(pool.serial, at as u32);
        }
        self.serves = StdArc::clone(&joined.pools);
        self.look();
    }

    /// Looks which of its pools are drained.
    fn look(&mut self) {
        let snapshot = self.engine.registry.load();
        let drained = |pool: &&StdArc<Pool>| snapshot.view(pool).is_some_and(|v| v.is_drained);
        self.drained = self.serves.iter().filter(drained).map(|pool| pool.serial).collect();
    }

    /// Does what drains have ordered since. Call it whenever the link was notified.
    pub fn hear(&mut self, now: Instant) {
        if !self.worker.has_orders() {
            return;
        }
        self.last_now = now;
        for order in self.worker.take_orders() {
            match order {
                Order::Look(answer) => {
                    self.look();
                    // Given after the look: from here on nothing of those pools is offered.
                    drop(answer);
                }
                Order::Abandon(scope) => self.abandon(&scope, now),
            }
        }
        self.flush();
    }

    /// Gives up what is in the scope, at no charge to the tasks.
    fn abandon(&mut self, scope: &DrainScope, now: Instant) {
        self.last_now = now;
        let all = scope.is_of(&self.worker);
        for at in 0..self.held.len() {
            let Some(held) = self.held[at].as_mut() else { continue };
            let concerned = all || scope.is_over(held.task.pool());
            // What is being cancelled stays where it is: its worker was told, and its grace ends.
            let is_over = held.stage == Stage::Fenced;
            if !concerned || is_over || held.task.word().state() == TaskState::Cancelling {
                continue;
            }
            // The worker may be at work on it: the unit stays out until it says that it is not.
            held.stage = Stage::Fenced;
            let (task, epoch) = (StdArc::clone(&held.task), held.epoch);
            self.engine.give_up(&task, epoch, &mut self.run);
            self.stop_at_once(Lease { id: at as u64, epoch }, CancelReason::Stale);
        }
    }

    fn stop_at_once(&mut self, lease: Lease, reason: CancelReason) {
        let (grace, message) = (Duration::ZERO, Text::EMPTY);
        self.stops.push_back(Stop { lease, reason, grace, message });
    }

    /// Says whether an operator put the worker out: this session is over.
    #[must_use]
    pub fn evicted(&self) -> bool {
        self.worker.asked() & ASKED_EVICTED != 0
    }

    /// The next task for the worker. Its accept clock starts now: hand it to the transport.
    pub fn poll_offer(&mut self, now: Instant) -> Option<Offer> {
        self.last_now = now;
        if self.closed {
            return None;
        }
        self.hear(now);
        loop {
            let Some(delivery) = self.ready.as_mut().and_then(Iterator::next) else {
                let batch = self.worker.inbox.take();
                if batch.is_empty() {
                    self.ready = None;
                    return None;
                }
                self.ready = Some(batch);
                continue;
            };
            let Delivery { task, epoch, pool } = delivery;
            if !self.drained.is_empty() && self.drained.contains(&pool) {
                // It may have been opened again: then it was placed by a snapshot that says so.
                self.look();
            }
            let pool_ref = self.refs.get(&pool).copied();
            // A drained worker gets nothing more, nor one that has left the pool meanwhile.
            let goes = |_: &u32| !self.drain_requested() && !self.drained.contains(&pool);
            let Some(pool_ref) = pool_ref.filter(goes) else {
                self.engine.hand_back(&task, epoch, now, &mut self.run);
                self.release_one();
                self.flush();
                continue;
            };
            if !task.word().is_offered(epoch) {
                self.release_one();
                self.flush();
                continue;
            }
            let (attempt, deliveries) = (task.attempt(), task.deliveries());
            let last_progress = if deliveries > 0 { task.progress() } else { None };
            let held = Held {
                epoch,
                task: StdArc::clone(&task),
                stage: Stage::Offered,
                since: now,
                accepted: now,
                stopping: false,
            };
            let lease = Lease { id: self.hold(held), epoch };
            self.look_at(now + self.engine.config.accept_timeout, now);
            return Some(Offer { lease, pool_ref, task, attempt, deliveries, last_progress });
        }
    }

    fn hold(&mut self, held: Held) -> u64 {
        self.count += 1;
        if let Some(at) = self.free.pop() {
            self.held[at as usize] = Some(held);
            return u64::from(at);
        }
        self.held.push(Some(held));
        self.held.len() as u64 - 1
    }

    fn find(&mut self, lease: Lease) -> Option<&mut Held> {
        let at = usize::try_from(lease.id).ok()?;
        self.held.get_mut(at)?.as_mut().filter(|held| held.epoch == lease.epoch)
    }

    /// Removes an entry; its unit goes back.
    fn let_go(&mut self, lease: Lease) {
        let at = lease.id as usize;
        if self.held.get_mut(at).and_then(Option::take).is_some() {
            self.free.push(lease.id as u32);
            self.count -= 1;
            self.release_one();
            if !self.unanswered.is_empty() {
                // Nobody will answer them: dropping them does.
                self.unanswered.retain(|_, (other, _)| *other != lease);
                self.signals.retain(|signal| signal.lease != lease);
            }
        }
    }

    fn release_one(&mut self) {
        self.engine.release(&self.worker, 1, &mut self.run);
    }

    fn flush(&mut self) {
        if !self.run.is_empty() {
            self.engine.run(&mut self.run);
        }
    }

    /// The worker begins. Repeating it does no harm; a lease that has ended meanwhile is answered
    /// by a cancel.
    pub fn accept(&mut self, lease: Lease, now: Instant) {
        self.last_now = now;
        let ttl = self.engine.config.lease_ttl;
        let Some(held) = self.find(lease) else {
            self.stop_at_once(lease, CancelReason::Stale);
            return;
        };
        match held.stage {
            Stage::Offered if held.task.accept(lease.epoch) => {
                held.stage = Stage::Accepted;
                held.since = now;
                held.accepted = now;
                let due = held.due_accepted(now, ttl);
                self.look_at(due, now);
            }
            Stage::Offered => {
                held.stage = Stage::Fenced;
                self.stop_at_once(lease, CancelReason::Stale);
            }
            Stage::Accepted => {}
            Stage::Fenced => self.stop_at_once(lease, CancelReason::Stale),
        }
    }

    /// The worker hands an offer back. It costs the task nothing, except that an offer which could
    /// not be read counts as never answered. For a lease that was ended by somebody else it says
    /// that the worker is not at work on it, so its credit is free again.
    pub fn reject(&mut self, lease: Lease, code: RejectCode, now: Instant) {
        self.last_now = now;
        let Some(held) = self.find(lease) else { return };
        let (task, stage) = (StdArc::clone(&held.task), held.stage);
        if stage == Stage::Fenced {
            // It is not at work on it: that is all there was to wait for.
            self.let_go(lease);
            self.flush();
            return;
        }
        if stage == Stage::Accepted {
            // It said before that it had begun: a rejection now is the loss of that delivery.
            self.engine.lose(&task, lease.epoch, now, &mut self.run);
            self.let_go(lease);
            self.flush();
            return;
        }
        match code {
            RejectCode::NoCapacity => {
                // It knows better than its last credit did; the next one says anew.
                let limit = self.limit.min(self.count as u32 - 1);
                self.set_limit(limit);
            }
            RejectCode::UnknownType => self.leave_pool_of(&task),
            RejectCode::Malformed => {}
            RejectCode::Draining => self.leave(now),
        }
        if code == RejectCode::Malformed {
            self.engine.lose_offer(&task, lease.epoch, now, &mut self.run);
        } else {
            self.engine.hand_back(&task, lease.epoch, now, &mut self.run);
        }
        self.let_go(lease);
        self.flush();
    }

    /// The worker says that it will finish and leave: nothing more is placed on it.
    pub fn drain(&mut self, now: Instant) {
        self.last_now = now;
        self.leave(now);
        self.flush();
    }

    fn leave(&self, now: Instant) {
        self.engine.step(Step::Leave(self.worker.member.worker), now);
    }

    fn leave_pool_of(&mut self, task: &Task) {
        let served = self.pools.iter().zip(&self.served).filter(|(_, served)| **served);
        let keys: Vec<PoolKey> =
            served.map(|(key, _)| key.clone()).filter(|key| key != task.pool()).collect();
        // Pools that exist are published anew: nothing here can be refused but a worker that left.
        self.publish(keys).ok();
    }

    /// The worker reports the end of a delivery.
    ///
    /// A report for a lease that is not this session's is judged by the task: it may repeat one that
    /// was settled, or come from the worker of a lost session that came back in time.
    pub fn result(&mut self, report: Report, now: Instant) -> Verdict {
        self.last_now = now;
        let Report { task: id, lease, end } = report;
        let Some(held) = self.find(lease).filter(|held| held.task.id() == id) else {
            return self.judge(id, lease.epoch, end, now);
        };
        let (task, stage) = (StdArc::clone(&held.task), held.stage);
        let applied = stage != Stage::Fenced
            && self.engine.settle(&task, lease.epoch, end, now, &mut self.run);
        if applied {
            task.note_settled(lease.epoch);
        }
        self.let_go(lease);
        self.flush();
        if applied { Verdict::Applied } else { Verdict::Stale }
    }

    fn judge(&mut self, id: TaskId, epoch: u64, end: crate::report::End, now: Instant) -> Verdict {
        let Some(task) = self.engine.tasks.get(&id) else { return Verdict::UnknownLease };
        let namespace = &task.pool().namespace;
        if !self.worker.principal.may(admission::Role::Worker, namespace) {
            return Verdict::UnknownLease;
        }
        let returned = {
            let mut orphans = self.engine.orphans.lock();
            let is_mine = orphans.get(&id).is_some_and(|orphan| {
                orphan.epoch == epoch
                    && orphan.instance == self.worker.instance
                    && *orphan.principal == *self.worker.principal.name()
            });
            is_mine && orphans.remove(&id).is_some()
        };
        let (last, of) = task.last_offer();
        // Its old session has not been closed yet, so it is no orphan yet. Whoever is first to end
        // the lease has ended it.
        let is_taken_over =
            epoch == last && self.supersedes.is_some_and(|older| older.as_u64() == of);
        if returned || is_taken_over {
            let applied = self.engine.settle(&task, epoch, end, now, &mut self.run);
            if applied {
                task.note_settled(epoch);
            }
            self.flush();
            if applied {
                return Verdict::Applied;
            }
        }
        if task.was_settled(epoch) {
            Verdict::Duplicate
        } else if epoch <= last && epoch != 0 {
            Verdict::Stale
        } else {
            Verdict::UnknownLease
        }
    }

    /// Keeps leases alive; returns those that are not the worker's any more.
    pub fn beat(&mut self, leases: Beat<'_>, now: Instant) -> Vec<Lease> {
        self.last_now = now;
        match leases {
            Beat::All => {
                self.beat_all = now;
                let fenced = self.held.iter().enumerate().filter_map(|(at, held)| {
                    let held = held.as_ref().filter(|held| held.stage == Stage::Fenced)?;
                    Some(Lease { id: at as u64, epoch: held.epoch })
                });
                fenced.collect()
            }
            Beat::Leases(leases) => {
                let mut lost = Vec::new();
                for lease in leases {
                    match self.find(*lease) {
                        Some(held) if held.stage == Stage::Accepted => held.since = now,
                        Some(held) if held.stage == Stage::Offered => {}
                        _ => lost.push(*lease),
                    }
                }
                lost
            }
        }
    }

    /// Takes what a handler says about how far it is. It counts as a beat for that lease alone, and
    /// goes to the next delivery of the task if this one is lost. It may come ahead of the
    /// acceptance, which goes another way.
    pub fn progress(&mut self, lease: Lease, progress: Bytes, now: Instant) {
        self.last_now = now;
        let Some(held) = self.find(lease) else { return };
        match held.stage {
            Stage::Accepted => held.since = now,
            Stage::Offered => {}
            Stage::Fenced => return,
        }
        held.task.set_progress(progress);
    }

    /// Takes note of what others did about leases of this session.
    fn take_notes(&mut self) {
        let notes: Vec<Note> = self.worker.notes.take().collect();
        if notes.is_empty() {
            return;
        }
        let places: FxHashMap<u64, usize> = {
            let held = self.held.iter().enumerate();
            held.filter_map(|(at, held)| Some((held.as_ref()?.epoch, at))).collect()
        };
        let now = self.last_now;
        for note in notes {
            let epoch = match &note {
                Note::Ended(epoch, _) | Note::Stop(epoch) | Note::Signal(epoch, _) => *epoch,
            };
            // A lease that is not here has ended: whoever signalled is answered by the drop.
            let Some(at) = places.get(&epoch).copied() else { continue };
            let lease = Lease { id: at as u64, epoch };
            match note {
                Note::Ended(_, reason) => {
                    if let Some(held) = self.find(lease) {
                        held.stage = Stage::Fenced;
                    }
                    self.stop_at_once(lease, reason);
                }
                Note::Stop(_) => {
                    let held = self.find(lease).filter(|held| !held.stopping);
                    let stop = held.and_then(|held| {
                        held.stopping = true;
                        stop_of(lease, now, held)
                    });
                    self.stops.extend(stop);
                }
                Note::Signal(_, Signal { kind, payload, from }) => {
                    self.signal_seq += 1;
                    let seq = self.signal_seq;
                    self.unanswered.insert(seq, (lease, from));
                    self.signals.push_back(Signalled { lease, seq, kind, payload });
                }
            }
        }
    }

    /// The next lease on which the worker must stop working.
    pub fn poll_cancel(&mut self) -> Option<Stop> {
        self.take_notes();
        self.stops.pop_front()
    }

    /// The leases whose worker was told to stop and has not reported yet, to be told again.
    pub fn stopping(&self, now: Instant) -> impl Iterator<Item = Stop> + '_ {
        let held = self.held.iter().enumerate();
        let stopping = held.filter_map(|(at, held)| {
            let held = held.as_ref().filter(|held| held.stopping)?;
            Some((Lease { id: at as u64, epoch: held.epoch }, held))
        });
        stopping.filter_map(move |(lease, held)| {
            if held.stage == Stage::Accepted { stop_of(lease, now, held) } else { None }
        })
    }

    /// The next signal for one of the worker's handlers.
    pub fn poll_signal(&mut self) -> Option<Signalled> {
        self.take_notes();
        self.signals.pop_front()
    }

    /// The worker says what became of a signal. Ignored for one that was answered, or never given.
    pub fn signal_ack(&mut self, lease: Lease, seq: u64, verdict: SignalVerdict) {
        if self.unanswered.get(&seq).is_some_and(|(other, _)| *other == lease)
            && let Some((_, from)) = self.unanswered.remove(&seq)
        {
            from.answer(verdict);
        }
    }

    /// When [`WorkerSession::handle_timeout`] should be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next_look
    }

    fn look_at(&mut self, due: Instant, now: Instant) {
        // Looks are bundled: each goes through all leases.
        let due = due.max(now + EXPIRY_LOOK);
        self.next_look = Some(self.next_look.map_or(due, |next| next.min(due)));
    }

    /// Takes back offers that were not answered in time, and loses leases that no beat kept alive.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.last_now = now;
        if self.closed || self.next_look.is_none_or(|next| now < next) {
            return;
        }
        self.next_look = None;
        for at in 0..self.held.len() {
            let Some(held) = self.held[at].as_mut().filter(|held| held.stage != Stage::Fenced)
            else {
                continue;
            };
            let due = held.due(self.beat_all, &self.engine.config);
            if due > now {
                self.look_at(due, now);
                continue;
            }
            let over = held.over(self.beat_all, &self.engine.config, now);
            // The worker may be at work on it: the unit stays out until it says that it is not.
            held.stage = Stage::Fenced;
            let (task, epoch) = (StdArc::clone(&held.task), held.epoch);
            let reason = match over {
                Over::Offer => {
                    self.engine.lose_offer(&task, epoch, now, &mut self.run);
                    CancelReason::Stale
                }
                Over::Lease => {
                    self.engine.lose(&task, epoch, now, &mut self.run);
                    CancelReason::Stale
                }
                Over::Attempt(failure) => {
                    self.engine.fail(&task, epoch, failure, now);
                    CancelReason::Expired
                }
            };
            self.stop_at_once(Lease { id: at as u64, epoch }, reason);
        }
        self.flush();
    }

    /// Removes the worker and sees to its tasks. Closing again does nothing.
    ///
    /// What was not sent, or sent and not accepted, waits again at once. What was accepted is lost
    /// at once, or after the resume grace if the session was lost abruptly.
    pub fn close(&mut self, reason: CloseReason, now: Instant) {
        if self.closed {
            return;
        }
        self.closed = true;
        self.last_now = now;
        let (engine, worker) = (StdArc::clone(&self.engine), StdArc::clone(&self.worker));
        // First the word, so that nobody reserves any more; then the snapshot; then the gate.
        engine.registry.deregister(&worker, &mut self.run);
        worker.end_orders();
        let unsent = self.ready.take().into_iter().flatten().chain(worker.inbox.close());
        for delivery in unsent {
            engine.hand_back(&delivery.task, delivery.epoch, now, &mut self.run);
            engine.release(&worker, 1, &mut self.run);
        }
        for held in std::mem::take(&mut self.held).into_iter().flatten() {
            match held.stage {
                Stage::Offered => {
                    engine.lose_offer(&held.task, held.epoch, now, &mut self.run);
                }
                Stage::Accepted if reason.leaves_grace() && !held.stopping => {
                    self.leave_orphan(held, now);
                }
                Stage::Accepted => {
                    engine.lose(&held.task, held.epoch, now, &mut self.run);
                }
                Stage::Fenced => {}
            }
            engine.release(&worker, 1, &mut self.run);
        }
        self.free.clear();
        self.count = 0;
        self.next_look = None;
        self.signals.clear();
        self.unanswered.clear();
        drop(worker.notes.close());
        self.flush();
    }

    fn leave_orphan(&self, held: Held, now: Instant) {
        let Held { task, epoch, .. } = held;
        let orphan = Orphan {
            epoch,
            principal: self.worker.principal.shared_name(),
            instance: self.worker.instance,
        };
        self.engine.orphans.lock().insert(task.id(), orphan);
        let asked = task.options().rare().resume_grace;
        let due = now + asked.unwrap_or(self.engine.config.resume_grace);
        self.engine.post(due, Timer::Grace { task, epoch });
    }

    /// The engine and the worker, for the models.
    #[cfg(any(feature = "models", slipswitch_loom))]
    pub(crate) fn parts(&self) -> (&StdArc<Engine<F>>, &StdArc<Worker>) {
        (&self.engine, &self.worker)
    }

    /// The worker's credit and how much of it is in use; nothing once another has its slot.
    #[must_use]
    pub fn load(&self) -> (u32, u32) {
        let member = self.worker.member;
        let state = self.engine.registry.slab.word(member.slot).map(Word::peek);
        let state = state.filter(|state| state.generation() == member.generation);
        state.map_or((0, 0), |state| (state.limit(), state.in_flight()))
    }
}

impl<F: CellFamily> Drop for WorkerSession<F> {
    fn drop(&mut self) {
        let now = self.last_now;
        self.close(CloseReason::StreamClosed, now);
    }
}

impl<F: CellFamily> fmt::Debug for WorkerSession<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSession")
            .field("worker", &self.worker)
            .field("running", &self.count)
            .finish_non_exhaustive()
    }
}
