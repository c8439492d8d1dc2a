//! A session's entry for a lease, and when it is over.

use std::time::Duration;

use bytes::Bytes;

use crate::engine::Config;
use crate::id::Lease;
use crate::report::{CancelReason, Failure, FailureClass};
use crate::session::Stop;
use crate::sync::StdArc;
use crate::task::{Stopping, Task};
use crate::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Offered,
    Accepted,
    /// Somebody else ended the lease; the worker may still be at work on it.
    Fenced,
}

#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) epoch: u64,
    pub(crate) task: StdArc<Task>,
    pub(crate) stage: Stage,
    /// When the offer went out, or the last beat for this lease alone.
    pub(crate) since: Instant,
    /// When it was accepted.
    pub(crate) accepted: Instant,
    /// The worker was told to stop and may still finish.
    pub(crate) stopping: bool,
}

/// Which time of a lease is over.
pub(crate) enum Over {
    /// To accept it.
    Offer,
    /// Without a beat.
    Lease,
    /// That of the attempt.
    Attempt(Failure),
}

impl Held {
    /// When the first of its times is over. `beat_all` is the last beat for all leases.
    pub(crate) fn due(&self, beat_all: Instant, config: &Config) -> Instant {
        if self.stage == Stage::Offered {
            return self.since + config.accept_timeout;
        }
        self.due_accepted(beat_all, config.lease_ttl)
    }

    pub(crate) fn due_accepted(&self, beat_all: Instant, lease_ttl: Duration) -> Instant {
        let lease = self.since.max(beat_all) + lease_ttl;
        let Some(rare) = self.task.options().rare.as_deref() else { return lease };
        let close = rare.start_to_close.map(|limit| self.accepted + limit);
        let beat = rare.heartbeat_timeout.map(|limit| self.since + limit);
        [close, beat].into_iter().flatten().fold(lease, Instant::min)
    }

    /// Which of its times is over, the first that says most.
    pub(crate) fn over(&self, beat_all: Instant, config: &Config, now: Instant) -> Over {
        if self.stage == Stage::Offered {
            return Over::Offer;
        }
        if self.since.max(beat_all) + config.lease_ttl <= now {
            return Over::Lease;
        }
        let rare = self.task.options().rare();
        let closes = rare.start_to_close.is_some_and(|limit| self.accepted + limit <= now);
        let (code, message) = match closes {
            true => ("start_to_close", "the attempt took longer than start_to_close"),
            false => ("heartbeat_timeout", "the handler was not heard of for heartbeat_timeout"),
        };
        Over::Attempt(Failure {
            class: FailureClass::Retryable,
            code: code.to_owned(),
            message: message.to_owned(),
            details: Bytes::new(),
            retry_after: None,
        })
    }
}

/// What the worker is told about a lease that is to stop.
pub(crate) fn stop_of(lease: Lease, now: Instant, held: &Held) -> Option<Stop> {
    let Stopping { reason: message, due } = held.task.stopping()?;
    let grace = due.saturating_since(now);
    Some(Stop { lease, reason: CancelReason::Asked, grace, message })
}
