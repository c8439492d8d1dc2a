//! A task, its states, and the one word that decides them.
//!
//! The *lease word* lies in the task's own record:
//!
//! ```text
//! tag 32 (low half of the last offer's epoch) | spare 22, PARKED, FRESH | state 8
//! ```
//!
//! `FRESH` and `PARKED` go with *pending*: the task is in no line, because it is being handed in,
//! or because it is held.
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
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, StdArc};
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
    /// Its worker was told to stop and has not reported yet.
    Cancelling = 8,
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
            Self::Cancelling => "cancelling",
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
            8 => Self::Cancelling,
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
    /// What few tasks ask for; kept apart so that the others stay small.
    pub rare: Option<Box<Rare>>,
}

/// What few tasks ask for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Rare {
    /// How long after its submission it is due, at most 366 days.
    pub delay: Option<Duration>,
    /// How long an attempt may take from its acceptance; over that it has failed.
    pub start_to_close: Option<Duration>,
    /// How long an attempt may go without a beat of its own; over that it has failed.
    pub heartbeat_timeout: Option<Duration>,
    /// How long the outcome is kept after it was settled, at most 24 hours.
    pub retention: Option<Duration>,
    /// How long the worker of a lost session may come back for it.
    pub resume_grace: Option<Duration>,
    /// In a namespace, the same key with the same content is the same task. Empty for none.
    pub idempotency_key: Bytes,
    /// Nodes whose workers get it while one of them has room; at most 8.
    pub prefer: Vec<Node>,
    /// Under the policy `sticky` the same key goes to the same worker. Empty for none.
    pub affinity_key: Bytes,
    /// The trace that it belongs to.
    pub trace: Option<Trace>,
}

/// A trace that travels with a task, as its producer gave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The parent.
    pub parent: String,
    /// The state.
    pub state: String,
    /// The baggage.
    pub baggage: String,
}

static NOTHING_RARE: Rare = Rare {
    delay: None,
    start_to_close: None,
    heartbeat_timeout: None,
    retention: None,
    resume_grace: None,
    idempotency_key: Bytes::new(),
    prefer: Vec::new(),
    affinity_key: Bytes::new(),
    trace: None,
};

impl TaskOptions {
    /// What few tasks ask for, nothing by default.
    #[must_use]
    pub fn rare(&self) -> &Rare {
        self.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }

    /// The same, to be changed.
    pub fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
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
            rare: None,
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
/// Pending, being handed in: in no line yet.
const FRESH: u64 = 1 << 8;
/// Pending and held: in no line.
const PARKED: u64 = 1 << 9;

impl LeaseWord {
    const fn new(tag: u32, state: TaskState) -> Self {
        Self((tag as u64) << TAG_SHIFT | state as u64)
    }

    const fn with(self, flags: u64) -> Self {
        Self(self.0 | flags)
    }

    /// Says whether the task is pending and in its pool's line, so counted there.
    pub(crate) fn is_in_line(self) -> bool {
        let aside = if mutant("L14b") { PARKED } else { FRESH | PARKED };
        self.state() == TaskState::Pending && self.0 & aside == 0
    }

    /// Says whether the task is held aside.
    pub(crate) const fn is_parked(self) -> bool {
        self.0 & PARKED != 0
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

/// How a task left a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) from: TaskState,
    /// What was asked for, or cancelled if the task was on the way to that.
    pub(crate) to: TaskState,
}

/// What a task waits for a time with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Again {
    /// The next attempt: the present one failed.
    Attempt(Instant),
    /// The next delivery of the present attempt: the last was lost.
    Delivery(Instant),
}

/// Why a task is to stop, and until when its worker may take.
#[derive(Clone, Debug)]
pub(crate) struct Stopping {
    pub(crate) reason: Text,
    pub(crate) due: Instant,
}

/// What lies in a task and changes, under its lock.
#[derive(Debug, Default)]
struct Content {
    payload: Bytes,
    outcome: Option<StdArc<Outcome>>,
    stopping: Option<Box<Stopping>>,
    progress: Option<Bytes>,
}

/// A task in the engine.
pub struct Task {
    id: TaskId,
    pool: StdArc<PoolKey>,
    submitted: Instant,
    /// When its life began, in microseconds: with the submission, or when it was requeued.
    began: AtomicU64,
    size: u64,
    /// When the attempt or delivery may begin, in microseconds.
    due: AtomicU64,
    /// When the attempt must have been accepted, in microseconds.
    start_due: AtomicU64,
    options: TaskOptions,
    content: Mutex<Content>,
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
    pub(crate) watchers: Inbox<Watcher>,
}

impl Task {
    /// A task in no line: pending and fresh, or scheduled if it is due later.
    pub(crate) fn new(task: NewTask, pool: StdArc<PoolKey>, now: Instant) -> Self {
        let delay = task.options.rare().delay;
        let due = now + delay.unwrap_or_default();
        let start_due = task.options.schedule_to_start.map_or(Instant::MAX, |limit| due + limit);
        let word = match delay {
            None => LeaseWord::new(0, TaskState::Pending).with(FRESH),
            Some(_) => LeaseWord::new(0, TaskState::Scheduled),
        };
        Self {
            id: task.id,
            pool,
            submitted: now,
            began: AtomicU64::new(now.as_micros()),
            size: task.payload.len() as u64,
            due: AtomicU64::new(due.as_micros()),
            start_due: AtomicU64::new(start_due.as_micros()),
            options: task.options,
            content: Mutex::new(Content { payload: task.payload, ..Content::default() }),
            word: AtomicU64::new(word.0),
            epoch: AtomicU64::new(0),
            worker: AtomicU64::new(0),
            order: AtomicU64::new(0),
            attempt: AtomicU32::new(1),
            deliveries: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            lost_offers: AtomicU32::new(0),
            settled: AtomicU64::new(0),
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

    /// When the task must have ended, if that is limited.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        // Relaxed: written while the task is dead, before the word says otherwise.
        let began = Instant::from_micros(self.began.load(Ordering::Relaxed));
        self.options.deadline.map(|limit| began + limit)
    }

    /// When the present attempt is due, or was.
    #[must_use]
    pub fn due(&self) -> Instant {
        // Relaxed: as `start_due`.
        Instant::from_micros(self.due.load(Ordering::Relaxed))
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

    /// The payload; empty once the task is completed or cancelled.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        self.content.lock().payload.clone()
    }

    /// The newest progress of its deliveries.
    #[must_use]
    pub fn progress(&self) -> Option<Bytes> {
        self.content.lock().progress.clone()
    }

    pub(crate) fn set_progress(&self, progress: Bytes) {
        self.content.lock().progress = Some(progress);
    }

    /// Why it is to stop, and until when, if it is.
    pub(crate) fn stopping(&self) -> Option<Stopping> {
        self.content.lock().stopping.as_deref().cloned()
    }

    pub(crate) fn set_stopping(&self, stopping: Stopping) {
        self.content.lock().stopping = Some(Box::new(stopping));
    }

    /// Puts the outcome in, and lets go of the payload unless it is kept.
    pub(crate) fn set_outcome(&self, outcome: StdArc<Outcome>, keeps_payload: bool) {
        let gone = {
            let mut content = self.content.lock();
            content.outcome = Some(outcome);
            if keeps_payload { Bytes::new() } else { std::mem::take(&mut content.payload) }
        };
        drop(gone);
    }

    /// Begins the life of a dead task anew: the caller is the one who may do that.
    pub(crate) fn begin_again(&self, now: Instant) {
        {
            let mut content = self.content.lock();
            content.outcome = None;
            content.stopping = None;
        }
        // Relaxed: the step out of dead follows, and orders it.
        self.began.store(now.as_micros(), Ordering::Relaxed);
        self.set_due(now);
        self.attempt.store(1, Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        self.lost_offers.store(0, Ordering::Relaxed);
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
    pub fn outcome(&self) -> Option<StdArc<Outcome>> {
        self.content.lock().outcome.clone()
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

    /// Pending to offered, under a new epoch: from being handed in, or from the line. False if the
    /// task ended, or was held, meanwhile.
    #[inline]
    pub(crate) fn offer(&self, epoch: u64, worker: u64, is_fresh: bool) -> bool {
        let word = self.word();
        let expected = LeaseWord::new(word.tag(), TaskState::Pending);
        if word != if is_fresh { expected.with(FRESH) } else { expected } {
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

    /// Leaves the lease `epoch` for `to`, from offered, running or cancelling. A task that is being
    /// cancelled may still complete; whatever else was to become of it, it is cancelled.
    ///
    /// A result counts as an acceptance, which `accepts` says.
    #[inline]
    pub(crate) fn leave(&self, epoch: u64, to: TaskState, accepts: bool) -> Option<Left> {
        loop {
            let word = self.word();
            let from = word.state();
            let to = match from {
                _ if !word.is(epoch as u32, from) => return None,
                TaskState::Offered | TaskState::Running => to,
                TaskState::Cancelling if to == TaskState::Completed || mutant("L14d") => to,
                TaskState::Cancelling => TaskState::Cancelled,
                _ => return None,
            };
            // The session's own accept may win in between: look again.
            if self.step(word, LeaseWord::new(word.tag(), to)) {
                if accepts && from == TaskState::Offered {
                    self.count_delivery();
                }
                return Some(Left { from, to });
            }
        }
    }

    /// Running to cancelling.
    pub(crate) fn begin_to_stop(&self, word: LeaseWord) -> bool {
        self.step(word, LeaseWord::new(word.tag(), TaskState::Cancelling))
    }

    /// Offered to cancelled.
    pub(crate) fn cancel_offer(&self, word: LeaseWord) -> bool {
        self.step(word, LeaseWord::new(word.tag(), TaskState::Cancelled))
    }

    /// Being handed in to standing in line. False if it ended, or was held, meanwhile.
    pub(crate) fn line_up(&self) -> bool {
        let in_line = LeaseWord::new(0, TaskState::Pending);
        self.step(in_line.with(FRESH), in_line)
    }

    /// Takes a task back that is being handed in. False if it ended, or was held, meanwhile.
    pub(crate) fn withdraw(&self) -> bool {
        let in_line = LeaseWord::new(0, TaskState::Pending);
        self.step(in_line.with(FRESH), LeaseWord::new(0, TaskState::Cancelled))
    }

    /// Puts a pending task aside that is not yet. It was in line if `word` says so.
    pub(crate) fn park(&self, word: LeaseWord) -> bool {
        let parked = LeaseWord::new(word.tag(), TaskState::Pending).with(PARKED);
        let is_pending = word.state() == TaskState::Pending && !word.is_parked();
        is_pending && self.step(word, parked)
    }

    /// Put aside to standing in line.
    pub(crate) fn unpark(&self, word: LeaseWord) -> bool {
        word.is_parked() && self.step(word, LeaseWord::new(word.tag(), TaskState::Pending))
    }

    /// Dead to standing in line, for who may.
    pub(crate) fn revive(&self, word: LeaseWord) -> bool {
        word.state() == TaskState::Dead
            && self.step(word, LeaseWord::new(word.tag(), TaskState::Pending))
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

    /// From a waiting word to `to`.
    pub(crate) fn leave_waiting(&self, word: LeaseWord, to: TaskState) -> bool {
        self.step(word, LeaseWord::new(word.tag(), to))
    }

    /// Scheduled with that tag to pending, `early` if before its time.
    pub(crate) fn become_due(&self, tag: u32, early: Option<Instant>) -> bool {
        // Under the lock: whoever made it scheduled has moved the counters.
        let _content = self.content.lock();
        let is_due = self.step(
            LeaseWord::new(tag, TaskState::Scheduled),
            LeaseWord::new(tag, TaskState::Pending),
        );
        if is_due && let Some(now) = early {
            self.set_due(now);
        }
        is_due
    }

    /// As [`Task::leave`], to scheduled, with the counters moved.
    pub(crate) fn leave_until(&self, epoch: u64, again: Again) -> Option<Left> {
        // Under the lock: whoever has it run now finds the counters moved.
        let content = self.content.lock();
        let left = self.leave(epoch, TaskState::Scheduled, true)?;
        let _content = if mutant("L14c") {
            drop(content);
            None
        } else {
            Some(content)
        };
        match again {
            // Relaxed: this thread won the word.
            Again::Attempt(due) if left.to == TaskState::Scheduled => {
                self.attempt.fetch_add(1, Ordering::Relaxed);
                self.set_due(due);
            }
            Again::Delivery(due) => {
                self.count_loss();
                // The attempt is the same one, and so is the time for its acceptance.
                // Relaxed: as above.
                self.due.store(due.as_micros(), Ordering::Relaxed);
            }
            Again::Attempt(_) => {}
        }
        Some(left)
    }

    /// Says when the present attempt is due, and so by when it must have been accepted. The caller
    /// won the word.
    fn set_due(&self, due: Instant) {
        let start_due = self.options.schedule_to_start.map_or(Instant::MAX, |limit| due + limit);
        // Relaxed: the caller won the word.
        self.due.store(due.as_micros(), Ordering::Relaxed);
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

    fn take_payload(&self) -> Bytes {
        std::mem::take(&mut self.content.lock().payload)
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
