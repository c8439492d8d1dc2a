//! The state word of a worker: who may push to it, and how many tasks it still takes.
//!
//! One word holds everything that changes in place:
//!
//! ```text
//! generation 28 | spare, CLOSED, DRAINING, WANTED | limit 16 | in flight 16
//! ```
//!
//! A *unit* of `in flight` is the right to have one task at the worker. Whoever reserved it owns
//! it, passes it on with the task, and gives it back exactly once through [`release`].
//!
//! Invariant I1: `WANTED`, open and not draining means `in flight >= limit`. So a credit for which
//! a pool waits is never visible, and the direct path need not look at `WANTED`. A unit that comes
//! back while `WANTED` is set does not come back at all: it becomes a *token*, handed to the first
//! pool of the worker's waiting line.
//!
//! All steps are lock-free. Compare-exchanges are AcqRel on success: a unit orders what its last
//! owner did before what its next owner does.

use crate::mutant::mutant;
use crate::sync::{AtomicU64, Ordering};

const IN_FLIGHT_SHIFT: u32 = 0;
const LIMIT_SHIFT: u32 = 16;
const WANTED: u64 = 1 << 32;
const DRAINING: u64 = 1 << 33;
const CLOSED: u64 = 1 << 34;
const GENERATION_SHIFT: u32 = 36;
const HALF: u64 = 0xffff;

/// The last generation of a slot. A slot that reached it is never used again.
pub(crate) const GENERATION_MAX: u32 = (1 << 28) - 1;
/// The largest credit of one worker.
pub const CREDIT_MAX: u32 = HALF as u32;

/// One value of a state word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(u64);

impl State {
    /// The word of a slot that nobody has used yet.
    pub(crate) const UNUSED: Self = Self(CLOSED);

    #[inline]
    pub(crate) const fn in_flight(self) -> u32 {
        (self.0 >> IN_FLIGHT_SHIFT & HALF) as u32
    }

    #[inline]
    pub(crate) const fn limit(self) -> u32 {
        (self.0 >> LIMIT_SHIFT & HALF) as u32
    }

    #[inline]
    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32
    }

    #[inline]
    pub(crate) const fn is_wanted(self) -> bool {
        self.0 & WANTED != 0
    }

    #[inline]
    pub(crate) const fn is_draining(self) -> bool {
        self.0 & DRAINING != 0
    }

    #[inline]
    pub(crate) const fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    #[inline]
    const fn has_room(self) -> bool {
        self.in_flight() < self.limit()
    }

    /// Says whether a reservation for a worker of this generation would succeed.
    pub(crate) const fn takes(self, generation: u32) -> bool {
        self.generation() == generation
            && !self.is_closed()
            && !self.is_draining()
            && self.has_room()
    }

    const fn with_limit(self, limit: u32) -> Self {
        Self(self.0 & !(HALF << LIMIT_SHIFT) | (limit as u64 & HALF) << LIMIT_SHIFT)
    }
}

/// What a reservation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// A unit is the caller's; `was_idle` says that the worker had nothing in flight.
    Taken { was_idle: bool },
    /// The worker is full.
    Full,
    /// The worker is leaving.
    Draining,
    /// The worker is gone; the slot may belong to another.
    Gone,
}

/// What a pump's look at a worker came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeOrArm {
    /// A unit is the pool's.
    Taken,
    /// `WANTED` is set by a real write: a unit that comes back goes to the waiting line.
    Armed,
    /// The worker is gone.
    Gone,
}

/// What became of a unit that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GiveBack {
    /// It is visible again, or the worker is leaving.
    Done,
    /// A pool waits: the caller still holds the unit and must hand it on.
    Wanted,
}

/// The state word of one slot.
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

impl Word {
    pub(crate) fn new(state: State) -> Self {
        Self(AtomicU64::new(state.0))
    }

    /// Reads the word for a report; nothing may be decided by it.
    #[inline]
    pub(crate) fn peek(&self) -> State {
        // Relaxed: a report; whoever decides uses a compare-exchange.
        State(self.0.load(Ordering::Relaxed))
    }

    #[inline]
    fn swap(&self, old: State, new: State) -> Result<(), State> {
        // AcqRel [E4]: pairs with itself; the unit's last owner before its next one, and the
        // closer of a slot before whoever finds it closed.
        self.0
            .compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed)
            .map(drop)
            .map_err(State)
    }

    /// Takes a unit for the direct path. Lock-free.
    #[inline]
    pub(crate) fn reserve(&self, generation: u32) -> Reserve {
        let mut state = self.peek();
        loop {
            if (state.generation() != generation && !mutant("slot-gen")) || state.is_closed() {
                return Reserve::Gone;
            }
            if state.is_draining() {
                return Reserve::Draining;
            }
            if !state.has_room() {
                return Reserve::Full;
            }
            if mutant("L7b") {
                // Relaxed: a planted fault: load and store instead of compare-exchange.
                self.0.store(state.0 + 1, Ordering::Relaxed);
                return Reserve::Taken { was_idle: false };
            }
            match self.swap(state, State(state.0 + 1)) {
                Ok(()) => return Reserve::Taken { was_idle: state.in_flight() == 0 },
                Err(now) => state = now,
            }
        }
    }

    /// Takes a unit, or makes sure that the next one to come back goes to the waiting line.
    ///
    /// The caller has queued its pool in the worker's waiting line before.
    pub(crate) fn take_or_arm(&self, generation: u32) -> TakeOrArm {
        let mut state = self.peek();
        loop {
            if state.generation() != generation || state.is_closed() {
                return TakeOrArm::Gone;
            }
            let takes = !state.is_draining() && state.has_room();
            if mutant("L10b-b") && !takes && state.is_wanted() {
                return TakeOrArm::Armed;
            }
            let next = if takes { State(state.0 + 1) } else { State(state.0 | WANTED) };
            match self.swap(state, next) {
                Ok(()) if takes => return TakeOrArm::Taken,
                Ok(()) => return TakeOrArm::Armed,
                Err(now) => state = now,
            }
        }
    }

    /// Gives one unit back unless a pool waits for it.
    #[inline]
    pub(crate) fn give_back(&self) -> GiveBack {
        let mut state = self.peek();
        loop {
            // Above the limit the unit goes back for good; I1 holds with one less as well.
            let hands_on = state.is_wanted() && state.in_flight() <= state.limit();
            if hands_on && !state.is_closed() && !state.is_draining() {
                return GiveBack::Wanted;
            }
            debug_assert!(state.in_flight() > 0, "a unit was given back twice: {state:?}");
            if state.in_flight() == 0 {
                return GiveBack::Done;
            }
            match self.swap(state, State(state.0 - 1)) {
                Ok(()) => return GiveBack::Done,
                Err(now) => state = now,
            }
        }
    }

    /// Clears `WANTED` after the waiting line was found empty. The caller still holds its unit.
    ///
    /// False if the word changed meanwhile: look again.
    pub(crate) fn clear_wanted(&self) -> bool {
        let state = self.peek();
        !state.is_wanted() || self.swap(state, State(state.0 & !WANTED)).is_ok()
    }

    /// Restores I1 after a pool queued up while `WANTED` was being cleared.
    ///
    /// True if that took one more unit, which the caller must hand on, and is to be called again.
    pub(crate) fn rearm(&self) -> bool {
        let mut state = self.peek();
        loop {
            if state.is_wanted() || state.is_closed() {
                return false;
            }
            let takes = !state.is_draining() && state.has_room() && !mutant("L10b-d");
            let next = if takes { State(state.0 + 1) } else { State(state.0 | WANTED) };
            match self.swap(state, next) {
                Ok(()) => return takes,
                Err(now) => state = now,
            }
        }
    }

    /// Sets the limit and clears the draining flag if told; returns how many units the caller now
    /// holds and must [`release`] because pools wait. `None` if the worker is gone.
    pub(crate) fn open_up(
        &self,
        generation: u32,
        limit: Option<u32>,
        clear_drain: bool,
    ) -> Option<u32> {
        let mut state = self.peek();
        loop {
            if state.generation() != generation || state.is_closed() {
                return None;
            }
            let mut next = state.with_limit(limit.unwrap_or_else(|| state.limit()));
            if clear_drain {
                next = State(next.0 & !DRAINING);
            }
            let mut extra = 0;
            if next.is_wanted() && !next.is_draining() {
                extra = next.limit().saturating_sub(next.in_flight());
                next = State(next.0 + u64::from(extra));
            }
            match self.swap(state, next) {
                Ok(()) => return Some(extra),
                Err(now) => state = now,
            }
        }
    }

    /// Refuses every later reservation until [`Word::open_up`]. False if the worker is gone.
    pub(crate) fn drain(&self, generation: u32) -> bool {
        let mut state = self.peek();
        loop {
            if state.generation() != generation || state.is_closed() {
                return false;
            }
            match self.swap(state, State(state.0 | DRAINING)) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
    }

    /// Refuses every later reservation for ever. False if the worker was gone already.
    pub(crate) fn close(&self, generation: u32) -> bool {
        let mut state = self.peek();
        loop {
            if state.generation() != generation || state.is_closed() {
                return false;
            }
            match self.swap(state, State((state.0 | CLOSED) & !WANTED)) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
    }

    /// Gives a closed slot without units in flight to a new worker; returns its generation.
    ///
    /// `None` while a unit of the last worker is out, or when the generations are used up.
    pub(crate) fn reopen(&self) -> Option<u32> {
        let state = self.peek();
        if !state.is_closed() || state.in_flight() != 0 || state.generation() == GENERATION_MAX {
            return None;
        }
        let generation = if mutant("L6b") { state.generation() } else { state.generation() + 1 };
        let open = State(u64::from(generation) << GENERATION_SHIFT);
        self.swap(state, open).ok().map(|()| generation)
    }

    /// Says whether the slot can never be used again.
    pub(crate) fn is_used_up(&self) -> bool {
        self.peek().generation() == GENERATION_MAX
    }
}
