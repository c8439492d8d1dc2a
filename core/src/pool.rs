//! A pool: the tasks of one key that wait, and the word that says who may place them.
//!
//! The pump is one atomic word, Idle, Running or Dirty. Whoever turns it from Idle to Dirty runs
//! the pool's pass; whoever finds it running leaves Dirty behind, and the pass goes round again
//! before it may stop. So there is one pass at a time, no lock, and no work left behind at Idle.
#![expect(unsafe_code, reason = "the pump word gives exclusive access to the line")]

use std::fmt;

use crate::cursor::Cursor;
use crate::inbox::Inbox;
use crate::mutant::mutant;
use crate::name::{Namespace, PoolKey};
use crate::sync::{AtomicU32, AtomicU64, Ordering, StdArc, UnsafeCell};
use crate::task::Task;
use crate::waiting::Waiting;
use crate::worker::{Member, RunList};

/// Set in `count` when the pool is dropped from the registry; nothing may be submitted to it.
const RETIRED: u64 = 1 << 63;

const IDLE: u32 = 0;
const RUNNING: u32 = 1;
const DIRTY: u32 = 2;

/// What all pools of a namespace share.
#[derive(Debug)]
pub(crate) struct NamespaceState {
    pub(crate) name: Namespace,
    /// Pools that exist.
    pub(crate) pools: AtomicU64,
    /// Tasks that wait.
    pub(crate) backlog: AtomicU64,
}

impl NamespaceState {
    pub(crate) fn new(name: Namespace) -> Self {
        Self { name, pools: AtomicU64::new(0), backlog: AtomicU64::new(0) }
    }
}

/// How a pool's worker is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Policy {
    /// In turn, in blocks of consecutive tickets under load.
    #[default]
    RoundRobin = 0,
    /// In turn, one by one across all threads.
    Strict = 1,
    /// The less loaded of two that are drawn. Load is in flight ÷ (credit × weight), exactly.
    LeastLoaded = 2,
    /// By the task's affinity key, so that the same key goes to the same worker while that has
    /// room. Tasks without a key go in turn.
    Sticky = 3,
}

impl Policy {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::RoundRobin, Self::Strict, Self::LeastLoaded, Self::Sticky];

    /// The word for the policy on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::Strict => "strict",
            Self::LeastLoaded => "least_loaded",
            Self::Sticky => "sticky",
        }
    }

    /// The policy of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == word)
    }

    /// The policy of a number, the default if there is none.
    const fn of(number: u32) -> Self {
        match number {
            1 => Self::Strict,
            2 => Self::LeastLoaded,
            3 => Self::Sticky,
            _ => Self::RoundRobin,
        }
    }
}

/// The tasks of one key, and where they may go.
pub(crate) struct Pool {
    pub(crate) key: StdArc<PoolKey>,
    /// Never reused.
    pub(crate) serial: u64,
    /// The place in the snapshot's table; reused after the pool is retired.
    pub(crate) index: u32,
    pub(crate) namespace: StdArc<NamespaceState>,
    pub(crate) cursor: Cursor,
    /// Draws the tickets of tasks that prefer nodes, so that they disturb nobody's turn.
    aside: AtomicU64,
    policy: AtomicU32,
    /// Whether the sweep will look at it. Changed under the publisher's lock alone.
    swept: AtomicU32,
    /// Placeable tasks that wait, or [`RETIRED`].
    count: AtomicU64,
    inbox: Inbox<StdArc<Task>>,
    tokens: Inbox<Member>,
    pump: AtomicU32,
    waiting: UnsafeCell<Waiting>,
}

// SAFETY: `waiting` is reached only through `Pass`, of which the pump word allows one at a time; all
// else is `Sync` by itself. The models L4b and L10b track the cell.
unsafe impl Sync for Pool {}
// SAFETY: as above: nothing in a pool belongs to a thread.
unsafe impl Send for Pool {}

impl Pool {
    pub(crate) fn new(
        key: PoolKey,
        serial: u64,
        index: u32,
        namespace: StdArc<NamespaceState>,
        policy: Policy,
    ) -> Self {
        Self {
            key: StdArc::new(key),
            serial,
            index,
            namespace,
            cursor: Cursor::new(),
            aside: AtomicU64::new(0),
            policy: AtomicU32::new(policy as u32),
            swept: AtomicU32::new(0),
            count: AtomicU64::new(0),
            inbox: Inbox::new(),
            tokens: Inbox::new(),
            pump: AtomicU32::new(IDLE),
            waiting: UnsafeCell::new(Waiting::default()),
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        // Relaxed: a setting; each value selects a right worker.
        Policy::of(self.policy.load(Ordering::Relaxed))
    }

    /// Says whether a worker is chosen by the ticket alone.
    #[inline]
    pub(crate) fn goes_in_turn(&self) -> bool {
        // Relaxed: as above.
        self.policy.load(Ordering::Relaxed) <= Policy::Strict as u32
    }

    #[inline]
    pub(crate) fn is_strict(&self) -> bool {
        // Relaxed: as above.
        self.policy.load(Ordering::Relaxed) != Policy::RoundRobin as u32
    }

    pub(crate) fn set_policy(&self, policy: Policy) {
        // Relaxed: as above.
        self.policy.store(policy as u32, Ordering::Relaxed);
    }

    pub(crate) fn draw_aside(&self) -> u64 {
        // Relaxed: any ticket selects a member of the caller's own view.
        self.aside.fetch_add(1, Ordering::Relaxed)
    }

    /// Says whether the sweep was to look at the pool, and whether it is from here on.
    pub(crate) fn set_swept(&self, swept: bool) -> bool {
        // Relaxed: under the publisher's lock.
        self.swept.swap(u32::from(swept), Ordering::Relaxed) != 0
    }

    /// How many tasks wait, for reports.
    pub(crate) fn waiting(&self) -> u64 {
        // Relaxed: a report.
        self.count.load(Ordering::Relaxed) & !RETIRED
    }

    /// Says whether the direct path is open: no placeable task waits.
    #[inline]
    pub(crate) fn has_no_backlog(&self) -> bool {
        // Acquire [E8]: pairs with the Release in `Pool::placed`; what was placed before.
        self.count.load(Ordering::Acquire) == 0
    }

    pub(crate) fn looks_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// Announces a task that will be queued. False if the pool is retired: resolve it again.
    #[inline]
    pub(crate) fn announce(&self) -> bool {
        // AcqRel [E9]: pairs with `Pool::retire`; either it sees the task or this sees RETIRED.
        if self.count.fetch_add(1, Ordering::AcqRel) & RETIRED == 0 {
            return true;
        }
        // Relaxed: undoes the step above; a retired pool's count means nothing.
        self.count.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Takes the announcement of one task back after it was placed or has ended.
    #[inline]
    pub(crate) fn placed(&self) {
        // Release [E8]: pairs with the Acquire in `Pool::has_no_backlog`.
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// Queues an announced task; the caller notifies.
    #[inline]
    pub(crate) fn queue(&self, task: StdArc<Task>) {
        // The gate of a pool's inbox is never closed.
        let pushed = self.inbox.push(task);
        debug_assert!(pushed.is_ok());
    }

    pub(crate) fn is_retired(&self) -> bool {
        // Relaxed: set under the publisher's lock, which the caller holds.
        self.count.load(Ordering::Relaxed) & RETIRED != 0
    }

    /// Retires the pool unless a task waits.
    pub(crate) fn retire(&self) -> bool {
        // AcqRel [E9]: pairs with the AcqRel in `Pool::announce`.
        self.count.compare_exchange(0, RETIRED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Says that there is something to do; puts the pool on the run list if nobody is at it.
    #[inline]
    pub(crate) fn notify(self: &StdArc<Self>, run: &mut RunList) {
        if mutant("L4b-b") && self.pump.load(Ordering::Acquire) == RUNNING {
            return;
        }
        // AcqRel [E10]: pairs with `Pool::begin`, `Pass::restart` and `Pass::end`; what there is to
        // do.
        if self.pump.swap(DIRTY, Ordering::AcqRel) == IDLE {
            run.push(StdArc::clone(self));
        }
    }

    /// Hands a unit of a worker to this pool. The unit is the pool's from here on.
    pub(crate) fn hand(self: &StdArc<Self>, member: Member, run: &mut RunList) {
        // The gate of a pool's tokens is never closed.
        let pushed = self.tokens.push(member);
        debug_assert!(pushed.is_ok());
        self.notify(run);
    }

    /// Begins a pass. The caller took the pool from a run list, so it is alone.
    pub(crate) fn begin(self: &StdArc<Self>) -> Pass<'_> {
        // AcqRel [E10]: pairs with `Pool::notify` and with the end of the last pass.
        self.pump.swap(RUNNING, Ordering::AcqRel);
        Pass { pool: self, handed_on: false }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("key", &self.key)
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

/// The right to place a pool's waiting tasks. There is one at a time.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    pool: &'a StdArc<Pool>,
    handed_on: bool,
}

impl Pass<'_> {
    /// What waits, which belongs to this pass.
    pub(crate) fn waiting<R>(&mut self, f: impl FnOnce(&mut Waiting) -> R) -> R {
        self.pool.waiting.with_mut(|waiting| {
            // SAFETY: the pump word went from Idle to Running for this pass alone, and `&mut self`
            // keeps a second borrow away. Models L4b and L10b.
            f(unsafe { &mut *waiting })
        })
    }

    /// Tokens that have arrived.
    pub(crate) fn tokens(&mut self) -> impl Iterator<Item = Member> + use<> {
        self.pool.tokens.take()
    }

    /// Tasks that have arrived.
    pub(crate) fn arrivals(&mut self) -> impl Iterator<Item = StdArc<Task>> + use<> {
        self.pool.inbox.take()
    }

    /// Starts over: what arrived before is seen by what follows.
    pub(crate) fn restart(&mut self) {
        // AcqRel [E10]: pairs with `Pool::notify`.
        self.pool.pump.swap(RUNNING, Ordering::AcqRel);
    }

    /// Ends the pass. False if something arrived meanwhile: go round again.
    pub(crate) fn end(&mut self) -> bool {
        if mutant("L4b-a") {
            self.pool.pump.store(IDLE, Ordering::Release);
            self.handed_on = true;
            return true;
        }
        // AcqRel [E10]: pairs with `Pool::notify`; what the pass did, for the next one.
        let ended =
            self.pool.pump.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Relaxed);
        self.handed_on = ended.is_ok();
        self.handed_on
    }

    /// Leaves the pass to somebody else without ending it; whoever gets the pool begins again.
    pub(crate) fn hand_on(mut self) {
        self.handed_on = true;
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.handed_on {
            // A panic in a pass: nobody is at the pool any more, the next notification starts over.
            // AcqRel [E10]: as in `Pass::end`.
            self.pool.pump.swap(IDLE, Ordering::AcqRel);
        }
    }
}
