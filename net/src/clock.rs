//! The one place in this crate that reads a clock.

use std::time::Duration;

use slipswitch_core::Instant;

/// A monotonic clock and its origin. Copies share the origin, and with it the meaning of every
/// [`Instant`] that they hand out: one clock serves a whole process.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// Starts a clock: its origin is now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the door: everything else is handed the time")]
    pub fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// Reads the clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the door: everything else is handed the time")]
    pub fn now(&self) -> Instant {
        self.instant(std::time::Instant::now())
    }

    /// Translates an instant of the standard library; one before the origin becomes the origin.
    #[must_use]
    pub fn instant(&self, at: std::time::Instant) -> Instant {
        let since = at.saturating_duration_since(self.origin);
        Instant::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    /// Translates an instant of ours for a timer of the operating system.
    ///
    /// An instant too far ahead to be represented becomes one day from the origin's reach, which
    /// no timer of this project lives to see.
    #[must_use]
    pub fn deadline(&self, at: Instant) -> std::time::Instant {
        let far = Duration::from_secs(365 * 24 * 3600);
        let since = Duration::from_micros(at.as_micros());
        self.origin.checked_add(since.min(far)).unwrap_or(self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_and_instant_are_inverse() {
        let clock = Clock::start();
        let at = clock.now() + Duration::from_millis(1_500);
        assert_eq!(clock.instant(clock.deadline(at)), at);
    }

    #[test]
    fn far_deadline_does_not_overflow() {
        let clock = Clock::start();
        assert!(clock.deadline(Instant::MAX) > clock.deadline(clock.now()));
    }

    #[test]
    fn copies_share_the_origin() {
        let clock = Clock::start();
        let copy = clock;
        let before = clock.now();
        assert!(copy.now() >= before);
    }
}
