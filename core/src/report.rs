//! What workers report, and what they are told in return.

use std::time::Duration;

use bytes::Bytes;

use crate::id::{Lease, TaskId};
use crate::text::Text;

/// What became of a delivery, as its worker reports it.
#[derive(Clone, Debug)]
pub struct Report {
    /// The task, as the offer named it.
    pub task: TaskId,
    /// The delivery.
    pub lease: Lease,
    /// How it ended.
    pub end: End,
}

/// How a delivery ended.
#[derive(Clone, Debug)]
pub enum End {
    /// With a result.
    Completed {
        /// Opaque bytes.
        payload: Bytes,
        /// What they are, as a media type.
        content_type: Text,
        /// How they are encoded.
        encoding: Text,
    },
    /// With a failure.
    Failed(Failure),
}

/// A failure as the worker describes it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kind.
    pub class: FailureClass,
    /// The application's own code, empty if none.
    pub code: String,
    /// A text for people.
    pub message: String,
    /// The application's details.
    pub details: Bytes,
    /// When to try again, instead of the retry policy's delay.
    pub retry_after: Option<Duration>,
}

/// What kind of failure a worker reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// Another attempt may help.
    Retryable,
    /// No attempt will help.
    Terminal,
    /// Not the application's doing: counts as a lost delivery.
    Infrastructure,
}

/// What a report came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It settled its lease.
    Applied,
    /// The very same lease was settled before.
    Duplicate,
    /// The lease was ended by something else.
    Stale,
    /// No such lease was given to this worker.
    UnknownLease,
}

impl Verdict {
    /// The word for the verdict on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Duplicate => "duplicate",
            Self::Stale => "stale",
            Self::UnknownLease => "unknown_lease",
        }
    }
}

/// Why a worker hands an offer back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectCode {
    /// It has no room; nothing more is offered until its next credit.
    NoCapacity,
    /// It has no such handler; it leaves that pool until its next update.
    UnknownType,
    /// It cannot read the offer.
    Malformed,
    /// It is leaving.
    Draining,
}

/// Which leases a beat keeps alive.
#[derive(Clone, Copy, Debug)]
pub enum Beat<'a> {
    /// All that the worker has.
    All,
    /// These.
    Leases(&'a [Lease]),
}

/// Why a worker is told to stop working on a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The lease is not the worker's any more.
    Stale,
    /// A time of the task's is over.
    Expired,
    /// Somebody asked for it: the worker has until the end of the grace.
    Asked,
}

/// Why a session ends. The caller has seen it, none is a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// The worker said goodbye.
    ClientGoodbye,
    /// The transport is gone.
    StreamClosed,
    /// Nothing was heard for too long.
    LivenessExpired,
    /// It was drained and has finished.
    Drained,
    /// An operator put it out.
    Evicted,
    /// Its credentials are over.
    AuthExpired,
    /// The same instance came back on another session.
    Superseded,
    /// It broke the protocol.
    ProtocolViolation,
    /// The server is leaving.
    ServerShutdown,
}

impl CloseReason {
    /// Says whether the worker may come back for what it has accepted.
    pub(crate) const fn leaves_grace(self) -> bool {
        matches!(self, Self::StreamClosed | Self::LivenessExpired | Self::Superseded)
    }

    /// The word for the reason on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClientGoodbye => "client_goodbye",
            Self::StreamClosed => "stream_closed",
            Self::LivenessExpired => "liveness_expired",
            Self::Drained => "drained",
            Self::Evicted => "evicted",
            Self::AuthExpired => "auth_expired",
            Self::Superseded => "superseded",
            Self::ProtocolViolation => "protocol_violation",
            Self::ServerShutdown => "server_shutdown",
        }
    }
}
