//! When to dial again after a loss: full jitter, never at once, unlimited unless told otherwise.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// How long a worker or client waits before it dials again.
///
/// Delay n is drawn evenly between one millisecond and `initial × factor^(n-1)`, at most `cap`
/// (full jitter), so that thousands of peers of one server do not return in step.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use slipswitch::Backoff;
///
/// let patient = Backoff::default();
/// let brief = Backoff::default().budget(5).cap(Duration::from_secs(1));
/// assert_ne!(patient, brief);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    initial: Duration,
    factor: f64,
    cap: Duration,
    budget: Option<u32>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(100),
            factor: 2.0,
            cap: Duration::from_secs(10),
            budget: None,
        }
    }
}

/// No delay is shorter: a redial never spins.
const FLOOR: Duration = Duration::from_millis(1);

impl Backoff {
    /// Sets the bound of the first delay; less than a millisecond counts as one.
    #[must_use]
    pub fn initial(mut self, initial: Duration) -> Self {
        self.initial = initial.max(FLOOR);
        self
    }

    /// Sets the bound of every delay; less than a millisecond counts as one.
    #[must_use]
    pub fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap.max(FLOOR);
        self
    }

    /// Gives up after this many redials in a row without success. A settled task, or a session
    /// longer than the cap, fills the budget again. Without a budget it never gives up.
    #[must_use]
    pub fn budget(mut self, redials: u32) -> Self {
        self.budget = Some(redials);
        self
    }

    fn bound(&self, nth: u32) -> Duration {
        let exponent = i32::try_from(nth).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.factor.powi(exponent);
        if grown.is_finite() && grown < self.cap.as_secs_f64() {
            Duration::from_secs_f64(grown)
        } else {
            self.cap
        }
    }
}

/// How a session that ended had gone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionRecord {
    /// From the server's greeting to the loss.
    pub(crate) lived: Duration,
    /// A task was settled on it.
    pub(crate) settled: bool,
    /// The server asked for the leave: no fault of this side, and no cost to its budget.
    pub(crate) drained: bool,
}

/// The state of one redial loop.
#[derive(Debug)]
pub(crate) struct Redial {
    policy: Backoff,
    /// Draws of the delay in a row.
    streak: u32,
    /// What is spent of the budget.
    spent: u32,
    rng: StdRng,
}

impl Redial {
    pub(crate) fn new(policy: Backoff, seed: u64) -> Self {
        Self { policy, streak: 0, spent: 0, rng: StdRng::seed_from_u64(seed) }
    }

    /// A session existed and is over.
    pub(crate) fn session_over(&mut self, record: SessionRecord) {
        if record.settled || record.lived > self.policy.cap {
            self.streak = 0;
            self.spent = 0;
        } else if record.drained {
            self.spent = self.spent.saturating_sub(1);
        }
    }

    /// Returns how long to wait before the next dial, or None when the budget is spent.
    pub(crate) fn next_delay(&mut self) -> Option<Duration> {
        if self.policy.budget.is_some_and(|budget| self.spent >= budget) {
            return None;
        }
        let bound = self.policy.bound(self.streak).max(FLOOR);
        self.streak = self.streak.saturating_add(1);
        self.spent = self.spent.saturating_add(1);
        Some(self.rng.random_range(FLOOR..=bound))
    }
}

#[cfg(test)]
mod tests;
