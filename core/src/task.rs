//! A task, its states, and the one word that decides them.
//!
//! The *lease word* lies in the task's own record:
//!
//! ```text
//! tag 32 (low half of the last offer's epoch) | resumes 24 | state 8
//! ```
//!
//! Placement, acceptance, result, expiry, loss and deadline all try one compare-exchange on it.
//! One wins; the others find another tag or state and change nothing. The record is counted by
//! reference, so no slot is reused and no late party can meet a stranger's lease. Counters below
//! the word are written by the winner of a step alone.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::id::TaskId;
use crate::inbox::Inbox;
use crate::mutant::mutant;
use crate::name::{Node, PoolKey};
use crate::outcome::{Outcome, Watcher};
use crate::retry::RetryPolicy;
use crate::sync::{AtomicU32, AtomicU64, Mutex, OnceLock, Ordering, StdArc};
use crate::text::Text;
use crate::time::Instant;

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum TaskState {
    /// Waits for a time.
    Scheduled = 1,
    /// Waits for a worker.
    Pending = 2,
    /// Was sent to a worker that has not accepted it yet.
    Offered = 3,
    /// A worker accepted it.
    Running = 4,
    /// Has a result.
    Completed = 5,
    /// Was given up, with a cause.
    Dead = 6,
    /// Was cancelled.
    Cancelled = 7,
}

impl TaskState {
    /// Says whether no event changes the state any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Dead | Self::Cancelled)
    }

    /// The word for the state on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Pending => "pending",
            Self::Offered => "offered",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    const fn from_bits(bits: u64) -> Self {
        match bits & 0xff {
            1 => Self::Scheduled,
            2 => Self::Pending,
            3 => Self::Offered,
            4 => Self::Running,
            5 => Self::Completed,
            6 => Self::Dead,
            _ => Self::Cancelled,
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a producer may say about a task beside its address and payload.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskOptions {
    /// What the payload is, as a media type; empty if not said.
    pub content_type: Text,
    /// How the payload is encoded; empty if not said.
    pub encoding: Text,
    /// Names and values that travel with the task.
    pub headers: Vec<(String, String)>,
    /// The only node on which the task may run.
    pub require: Option<Node>,
    /// 0 to 9, larger first. Carried with the task.
    pub priority: u8,
    /// How long an attempt may wait until a worker accepts it; zero means now or not at all.
    pub schedule_to_start: Option<Duration>,
    /// How long the task may live as a whole, from submission.
    pub deadline: Option<Duration>,
    /// What happens after a retryable failure.
    pub retry: RetryPolicy,
    /// How many accepted deliveries may be lost before the task is given up as poison, 1 or more.
    pub max_lost_deliveries: u32,
    /// The producer's own key, handed to the worker.
    pub owner_key: Bytes,
    /// The producer's own number, handed to the worker.
    pub ordinal: u64,
    /// The producer's own generation, handed to the worker.
    pub generation: u64,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            content_type: Text::EMPTY,
            encoding: Text::EMPTY,
            headers: Vec::new(),
            require: None,
            priority: 5,
            schedule_to_start: None,
            deadline: None,
            retry: RetryPolicy::default(),
            max_lost_deliveries: 5,
            owner_key: Bytes::new(),
            ordinal: 0,
            generation: 0,
        }
    }
}

/// A task as it is handed in.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Its id, made by whoever hands it in.
    pub id: TaskId,
    /// Opaque bytes for the handler.
    pub payload: Bytes,
    /// The rest.
    pub options: TaskOptions,
}

/// A value of the lease word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseWord(u64);

const TAG_SHIFT: u32 = 32;

impl LeaseWord {
    const fn new(tag: u32, state: TaskState) -> Self {
        Self((tag as u64) << TAG_SHIFT | state as u64)
    }

    pub(crate) const fn state(self) -> TaskState {
        TaskState::from_bits(self.0)
    }

    pub(crate) const fn tag(self) -> u32 {
        (self.0 >> TAG_SHIFT) as u32
    }

    pub(crate) fn is_offered(self, epoch: u64) -> bool {
        self.is(epoch as u32, TaskState::Offered)
    }

    fn is(self, tag: u32, state: TaskState) -> bool {
        (self.tag() == tag || mutant("L6a")) && self.state() == state
    }
}

/// A task in the engine.
pub struct Task {
    id: TaskId,
    pool: StdArc<PoolKey>,
    submitted: Instant,
    size: u64,
    /// When the attempt must have been accepted, in microseconds.
    start_due: AtomicU64,
    options: TaskOptions,
    payload: Mutex<Bytes>,
    word: AtomicU64,
    /// The epoch of the last offer; its low half is the word's tag.
    epoch: AtomicU64,
    /// The worker of the last offer, for reports.
    worker: AtomicU64,
    /// When the task waits: its place among its pool's tasks.
    pub(crate) order: AtomicU64,
    /// From 1; rises with application failures alone.
    attempt: AtomicU32,
    deliveries: AtomicU32,
    lost: AtomicU32,
    lost_offers: AtomicU32,
    /// The last epoch that a report settled.
    settled: AtomicU64,
    pub(crate) outcome: OnceLock<StdArc<Outcome>>,
    pub(crate) watchers: Inbox<Watcher>,
}

impl Task {
    pub(crate) fn new(task: NewTask, pool: StdArc<PoolKey>, now: Instant) -> Self {
        let start_due = task.options.schedule_to_start.map_or(Instant::MAX, |limit| now + limit);
        Self {
            id: task.id,
            pool,
            submitted: now,
            size: task.payload.len() as u64,
            start_due: AtomicU64::new(start_due.as_micros()),
            options: task.options,
            payload: Mutex::new(task.payload),
            word: AtomicU64::new(LeaseWord::new(0, TaskState::Pending).0),
            epoch: AtomicU64::new(0),
            worker: AtomicU64::new(0),
            order: AtomicU64::new(0),
            attempt: AtomicU32::new(1),
            deliveries: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            lost_offers: AtomicU32::new(0),
            settled: AtomicU64::new(0),
            outcome: OnceLock::new(),
            watchers: Inbox::new(),
        }
    }

    /// The task's id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The pool it was submitted to.
    #[must_use]
    pub fn pool(&self) -> &PoolKey {
        &self.pool
    }

    /// The length of the payload as it was handed in, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// When the present attempt must have been accepted.
    pub(crate) fn start_due(&self) -> Instant {
        // Relaxed: written by the winner of the word before the attempt began.
        Instant::from_micros(self.start_due.load(Ordering::Relaxed))
    }

    /// When the task must have ended.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.options.deadline.map(|limit| self.submitted + limit)
    }

    /// When it was submitted.
    #[must_use]
    pub fn submitted(&self) -> Instant {
        self.submitted
    }

    /// What the producer said about it.
    #[must_use]
    pub fn options(&self) -> &TaskOptions {
        &self.options
    }

    /// The payload; empty once the task is terminal.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        self.payload.lock().clone()
    }

    /// The attempt that is under way or next, from 1. Application failures alone raise it.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        // Relaxed: written by winners of the word, which orders them; a report otherwise.
        self.attempt.load(Ordering::Relaxed)
    }

    /// How many deliveries were accepted.
    #[must_use]
    pub fn deliveries(&self) -> u32 {
        // Relaxed: as `attempt`.
        self.deliveries.load(Ordering::Relaxed)
    }

    /// How many accepted deliveries were lost.
    #[must_use]
    pub fn lost_deliveries(&self) -> u32 {
        // Relaxed: as `attempt`.
        self.lost.load(Ordering::Relaxed)
    }

    /// The outcome, once there is one.
    #[must_use]
    pub fn outcome(&self) -> Option<&StdArc<Outcome>> {
        self.outcome.get()
    }

    #[inline]
    pub(crate) fn word(&self) -> LeaseWord {
        // Acquire [E6]: pairs with the AcqRel in `Task::step`; what the winner wrote before.
        LeaseWord(self.word.load(Ordering::Acquire))
    }

    pub(crate) fn last_offer(&self) -> (u64, u64) {
        // Relaxed: a report, or ordered by the word.
        (self.epoch.load(Ordering::Relaxed), self.worker.load(Ordering::Relaxed))
    }

    /// Moves the word; the one step by which anything about a lease is decided.
    #[inline]
    fn step(&self, from: LeaseWord, to: LeaseWord) -> bool {
        // AcqRel [E6]: pairs with itself and with `Task::word`; one winner an epoch, and what each
        // winner wrote is seen by the next.
        self.word.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Pending to offered, under a new epoch. False if the task ended meanwhile.
    #[inline]
    pub(crate) fn offer(&self, epoch: u64, worker: u64) -> bool {
        let word = self.word();
        if word.state() != TaskState::Pending {
            return false;
        }
        let tag = if mutant("L6c") { word.tag() } else { epoch as u32 };
        if !self.step(word, LeaseWord::new(tag, TaskState::Offered)) {
            return false;
        }
        // Relaxed: read by the owner of this offer, or for reports.
        self.epoch.store(epoch, Ordering::Relaxed);
        self.worker.store(worker, Ordering::Relaxed);
        true
    }

    /// Offered to running.
    #[inline]
    pub(crate) fn accept(&self, epoch: u64) -> bool {
        let won = self.step(
            LeaseWord::new(epoch as u32, TaskState::Offered),
            LeaseWord::new(epoch as u32, TaskState::Running),
        );
        if won {
            self.count_delivery();
        }
        won
    }

    fn count_delivery(&self) {
        // Relaxed: this thread won the word; nobody else writes here until the next winner.
        self.deliveries.fetch_add(1, Ordering::Relaxed);
        self.lost_offers.store(0, Ordering::Relaxed);
    }

    /// Leaves the lease `epoch` for `to`, from offered or running; says from which.
    ///
    /// A result counts as an acceptance, which `accepts` says.
    #[inline]
    pub(crate) fn leave(&self, epoch: u64, to: TaskState, accepts: bool) -> Option<TaskState> {
        loop {
            let word = self.word();
            let from = word.state();
            let current = word.is(epoch as u32, TaskState::Offered)
                || word.is(epoch as u32, TaskState::Running);
            if !current {
                return None;
            }
            // The session's own accept may win in between: look again.
            if self.step(word, LeaseWord::new(word.tag(), to)) {
                if accepts && from == TaskState::Offered {
                    self.count_delivery();
                }
                return Some(from);
            }
        }
    }

    /// Offered back to pending because the delivery did not get through. False if it lost the race.
    #[inline]
    pub(crate) fn take_back(&self, epoch: u64) -> bool {
        self.step(
            LeaseWord::new(epoch as u32, TaskState::Offered),
            LeaseWord::new(epoch as u32, TaskState::Pending),
        )
    }

    /// How many offers in a row were never answered.
    pub(crate) fn lost_offers(&self) -> u32 {
        // Relaxed: written by the owner of the current offer, which the word orders.
        self.lost_offers.load(Ordering::Relaxed)
    }

    /// Takes note that a report settled the lease of that epoch.
    pub(crate) fn note_settled(&self, epoch: u64) {
        // Relaxed: for the verdict on a repeated report, which may come too early to see it.
        self.settled.store(epoch, Ordering::Relaxed);
    }

    /// Says whether a report settled the lease of that epoch, the last one that was settled.
    pub(crate) fn was_settled(&self, epoch: u64) -> bool {
        // Relaxed: as above.
        self.settled.load(Ordering::Relaxed) == epoch
    }

    /// Counts an offer that was never answered. The caller owns the current offer.
    pub(crate) fn count_lost_offer(&self) {
        // Relaxed: as above.
        self.lost_offers.fetch_add(1, Ordering::Relaxed);
    }

    /// From a waiting state with that tag to `to`.
    pub(crate) fn leave_waiting(&self, tag: u32, from: TaskState, to: TaskState) -> bool {
        self.step(LeaseWord::new(tag, from), LeaseWord::new(tag, to))
    }

    /// Begins the next attempt, which is due at `due`.
    pub(crate) fn count_attempt(&self, due: Instant) {
        let start_due = self.options.schedule_to_start.map_or(Instant::MAX, |limit| due + limit);
        // Relaxed: the caller won the word.
        self.attempt.fetch_add(1, Ordering::Relaxed);
        self.start_due.store(start_due.as_micros(), Ordering::Relaxed);
    }

    pub(crate) fn count_loss(&self) -> u32 {
        // Relaxed: the caller won the word.
        self.lost.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What was handed in. The payload is taken out, so this is for a task that was not taken.
    pub(crate) fn to_new(&self) -> NewTask {
        NewTask { id: self.id, payload: self.take_payload(), options: self.options.clone() }
    }

    pub(crate) fn take_payload(&self) -> Bytes {
        std::mem::take(&mut *self.payload.lock())
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("id", &self.id)
            .field("pool", &self.pool)
            .field("word", &self.word())
            .finish_non_exhaustive()
    }
}
