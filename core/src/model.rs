//! Doors for the models in `loom-tests`.
//!
//! Each hands a call on to one private part and decides nothing. No other crate may use them.

use std::fmt;

use bytes::Bytes;

use crate::admission::{Principal, Register};
use crate::cell::CellFamily;
use crate::credit::{Reserve, State, Word};
use crate::engine::Engine;
use crate::id::{InstanceId, SessionId, TaskId, WorkerId};
use crate::name::PoolKey;
use crate::outcome::Notify;
use crate::session::WorkerSession;
use crate::sync::StdArc;
use crate::task::{Again, NewTask, Task, TaskOptions, TaskState};
use crate::time::Instant;
use crate::worker::{Member, RunList, Worker, release};

/// A connected worker's units, apart from its session.
pub struct Units<F: CellFamily> {
    engine: StdArc<Engine<F>>,
    worker: StdArc<Worker>,
}

impl<F: CellFamily> Clone for Units<F> {
    fn clone(&self) -> Self {
        Self { engine: StdArc::clone(&self.engine), worker: StdArc::clone(&self.worker) }
    }
}

impl<F: CellFamily> fmt::Debug for Units<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Units").field("worker", &self.worker).finish_non_exhaustive()
    }
}

impl<F: CellFamily> Units<F> {
    /// The units of the session's worker.
    #[must_use]
    pub fn of(session: &WorkerSession<F>) -> Self {
        let (engine, worker) = session.parts();
        Self { engine: StdArc::clone(engine), worker: StdArc::clone(worker) }
    }

    /// Gives units back, as a session does, and runs the pools that were found idle.
    pub fn release(&self, units: u32) {
        let mut run = RunList::new();
        self.engine.release(&self.worker, units, &mut run);
        self.engine.run(&mut run);
    }

    /// Sets the limit and clears the draining flag, as `Word::open_up` does for a session.
    pub fn open_up(&self, limit: u32) {
        let member = self.worker.member;
        let word = self.engine.registry.slab.word(member.slot);
        let units = word.and_then(|word| word.open_up(member.generation, Some(limit), true));
        self.release(units.unwrap_or(0));
    }

    /// Sets the draining flag and leaves the inbox open.
    pub fn cordon(&self) {
        let member = self.worker.member;
        if let Some(word) = self.engine.registry.slab.word(member.slot) {
            word.drain(member.generation);
        }
    }

    fn state(&self) -> Option<State> {
        self.engine.registry.slab.word(self.worker.member.slot).map(|word| word.peek())
    }

    /// The units in flight of the slot, whoever has it now.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.state().map_or(0, State::in_flight)
    }

    /// Invariant I1 of the state word: a credit for which a pool waits is never visible.
    #[must_use]
    pub fn hides_wanted_credit(&self) -> bool {
        self.state().is_none_or(|state| {
            let open = state.is_wanted() && !state.is_closed() && !state.is_draining();
            !open || state.in_flight() >= state.limit()
        })
    }

    /// Says whether a pool that is waited for is announced on the word.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.state().is_some_and(State::is_wanted)
    }

    /// Says whether something lies in the worker's open inbox.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        !self.worker.inbox.is_empty()
    }
}

/// A worker's place: its state word, and the way in which units come back to it.
#[derive(Debug)]
pub struct Post {
    word: Word,
    worker: Worker,
}

struct Nobody;

impl Notify for Nobody {
    fn notify(&self) {}
}

impl Post {
    /// An open place with that limit.
    ///
    /// # Panics
    ///
    /// If a new word does not open.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        let register = Register {
            pools: Vec::new(),
            node: None,
            identity: String::new(),
            instance: InstanceId::from_bytes([1; 16]),
            build: String::new(),
            labels: Vec::new(),
            capacity: limit,
            weight: 1,
        };
        let member = Member { worker: WorkerId::new(1), slot: 0, generation: 1 };
        let session = SessionId::from_bytes([1; 16]);
        let link: StdArc<dyn Notify> = StdArc::new(Nobody);
        let principal = Principal::operator("model");
        let worker = Worker::new(member, session, principal, register, link, Instant::ZERO);
        let post = Self { word: Word::new(State::UNUSED), worker };
        assert!(post.reopen(limit).is_some(), "a new word opens");
        post
    }

    /// The present generation.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.word.peek().generation()
    }

    /// Takes a unit.
    #[must_use]
    pub fn reserve(&self, generation: u32) -> bool {
        matches!(self.word.reserve(generation), Reserve::Taken { .. })
    }

    /// Gives a unit back.
    pub fn release(&self) {
        release(&self.word, &self.worker, 1, &mut RunList::new());
    }

    /// Refuses reservations for ever.
    #[must_use]
    pub fn close(&self, generation: u32) -> bool {
        self.word.close(generation)
    }

    /// Gives the place to a new worker with that limit; returns its generation.
    #[must_use]
    pub fn reopen(&self, limit: u32) -> Option<u32> {
        let generation = self.word.reopen()?;
        self.word.open_up(generation, Some(limit), false)?;
        Some(generation)
    }

    /// The units that are out.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.word.peek().in_flight()
    }
}

/// A task's lease word, without an engine around it.
#[derive(Debug)]
pub struct Lease(Task);

impl Lease {
    /// That of a pending task.
    ///
    /// # Panics
    ///
    /// If the pool's name is none.
    #[must_use]
    pub fn new() -> Self {
        let options = TaskOptions::default();
        let task = NewTask { id: TaskId::from_bytes([1; 16]), payload: Bytes::new(), options };
        let pool = PoolKey::new("n", "q", "a").expect("a key");
        let task = Task::new(task, StdArc::new(pool), Instant::ZERO);
        assert!(task.line_up(), "a new task stands in line");
        Self(task)
    }

    /// Pending to offered.
    #[must_use]
    pub fn offer(&self, epoch: u64) -> bool {
        self.0.offer(epoch, 1, false)
    }

    /// Offered to running.
    #[must_use]
    pub fn accept(&self, epoch: u64) -> bool {
        self.0.accept(epoch)
    }

    /// A result: offered or running to completed.
    #[must_use]
    pub fn complete(&self, epoch: u64) -> bool {
        self.0.leave(epoch, TaskState::Completed, true).is_some()
    }

    /// A loss: offered or running to pending.
    #[must_use]
    pub fn lose(&self, epoch: u64) -> bool {
        self.0.leave(epoch, TaskState::Pending, true).is_some()
    }

    /// The deadline: offered or running to dead.
    #[must_use]
    pub fn expire(&self, epoch: u64) -> bool {
        self.0.leave(epoch, TaskState::Dead, false).is_some()
    }

    /// A failed attempt: offered or running to scheduled, with the counters moved.
    #[must_use]
    pub fn fail(&self, epoch: u64) -> bool {
        self.0.leave_until(epoch, Again::Attempt(Instant::ZERO)).is_some()
    }

    /// Scheduled to pending before its time.
    #[must_use]
    pub fn run_now(&self) -> bool {
        let word = self.0.word();
        word.state() == TaskState::Scheduled && self.0.become_due(word.tag(), Some(Instant::ZERO))
    }

    /// Running to cancelling, as somebody does who cancels.
    #[must_use]
    pub fn cancel(&self) -> bool {
        let word = self.0.word();
        word.state() == TaskState::Running && self.0.begin_to_stop(word)
    }

    /// The attempt that is under way or next.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt()
    }

    /// Offered back to pending.
    #[must_use]
    pub fn take_back(&self, epoch: u64) -> bool {
        self.0.take_back(epoch)
    }

    /// The present state.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.0.word().state()
    }

    /// How many deliveries were accepted.
    #[must_use]
    pub fn deliveries(&self) -> u32 {
        self.0.deliveries()
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self::new()
    }
}
