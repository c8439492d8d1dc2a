//! The one module that reads the clock.

use std::time::Instant;

/// The time, to say afterwards how long something took.
#[expect(clippy::disallowed_methods, reason = "the door to the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
