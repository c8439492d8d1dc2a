//! The one place in this crate that reads a clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Reads the monotonic clock.
#[inline]
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the door: a benchmark measures time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the nanoseconds since `start`.
#[inline]
#[must_use]
pub fn nanos_since(start: Instant) -> u64 {
    now().duration_since(start).as_nanos() as u64
}

/// Returns the time since 1970.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the door: a table carries its date")]
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Measures what two readings in a row report: the least that a timed operation can show.
#[must_use]
pub fn timer_cost_ns() -> u64 {
    let mut costs: Vec<u64> = (0..10_001).map(|_| nanos_since(now())).collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}
