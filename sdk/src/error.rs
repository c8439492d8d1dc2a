//! Errors of this crate, and whose fault they are.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use slipswitch_core::{InvalidName, TaskId};
use slipswitch_net::proto::{WireCode, messages as m};
use slipswitch_net::quic::Fingerprint;
use thiserror::Error;

use crate::connect::ConfigError;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The caller's: the same call fails again.
    Caller,
    /// The server's.
    Server,
    /// The machine's or the network's.
    Environment,
    /// This crate's: a bug.
    Ours,
}

/// A typed refusal by the server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{code}: {message}")]
#[non_exhaustive]
pub struct Refusal {
    /// What kind of refusal.
    pub code: WireCode,
    /// For people.
    pub message: String,
    /// The same may succeed later.
    pub retryable: bool,
    /// Not before this much time has passed.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// As the server said it. A code of a later version counts as the server's own fault.
    pub(crate) fn of(err: m::Err) -> Self {
        let code = WireCode::from_number(err.code).unwrap_or(WireCode::Internal);
        let retry_after = Some(Duration::from_millis(err.retry_after)).filter(|d| !d.is_zero());
        Self { code, message: err.message, retryable: err.retryable, retry_after }
    }

    /// Says whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self.code {
            WireCode::Draining
            | WireCode::NoWorker
            | WireCode::NoCapacity
            | WireCode::RateLimited
            | WireCode::QuotaExceeded
            | WireCode::NotOwner => Fault::Environment,
            WireCode::StoreUnavailable | WireCode::Internal => Fault::Server,
            WireCode::ProtocolViolation => Fault::Ours,
            _ => Fault::Caller,
        }
    }

    /// Says that no redial can help: the server knows us and says no.
    pub(crate) const fn ends_the_loop(&self) -> bool {
        matches!(self.code, WireCode::Unauthenticated | WireCode::PermissionDenied)
    }
}

/// A cause that is not ours to name.
pub type Cause = Box<dyn Error + Send + Sync>;

/// There is no session with a server.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The configuration does not say where to go.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address has no meaning here.
    #[error("the address {address} cannot be resolved")]
    Resolve {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Nothing listens at the address.
    #[error("no server at {address}")]
    Unreachable {
        /// The address.
        address: String,
        /// What the network said.
        source: Cause,
    },
    /// Nobody answered in time.
    #[error("no answer from {address} within {after:?}")]
    TimedOut {
        /// The address.
        address: String,
        /// The limit.
        after: Duration,
    },
    /// The server is not the one whose certificate was pinned.
    #[error("{address} has certificate {got}, but {expected} was pinned")]
    WrongCertificate {
        /// The address.
        address: String,
        /// The pinned fingerprint.
        expected: Fingerprint,
        /// The server's.
        got: Fingerprint,
    },
    /// What listens there speaks another protocol, or another version of it.
    #[error("{address} does not speak slipswitch/1")]
    VersionMismatch {
        /// The address.
        address: String,
    },
    /// The handshake failed, or the connection broke before the server's greeting.
    #[error("the handshake with {address} failed")]
    Handshake {
        /// The address.
        address: String,
        /// Why.
        source: Cause,
    },
    /// The server refused the session or the registration.
    #[error("{address} refused the session")]
    Refused {
        /// The address.
        address: String,
        /// What it said.
        source: Refusal,
    },
    /// This machine has no socket or thread to give.
    #[error("this machine cannot open a connection")]
    Local {
        /// Why.
        source: Cause,
    },
}

impl ConnectError {
    /// Says whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Config(_)
            | Self::Resolve { .. }
            | Self::WrongCertificate { .. }
            | Self::VersionMismatch { .. } => Fault::Caller,
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Handshake { .. }
            | Self::Local { .. } => Fault::Environment,
            Self::Refused { source, .. } => source.fault(),
        }
    }

    /// Says that no redial can help (SDK-7).
    pub(crate) const fn ends_the_loop(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.ends_the_loop())
    }
}

/// Why work was not accepted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SubmitErrorKind {
    /// A name is wrong.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The input cannot be encoded.
    #[error("the input cannot be encoded")]
    Encode(#[from] serde_json::Error),
    /// The work is larger than the server takes. Nothing was sent.
    #[error("{what} has {size}, at most {limit} are allowed")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The server refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There was no session within the request's time. Nothing was sent.
    #[error("no session with the server within {after:?}")]
    NotConnected {
        /// The request's time.
        after: Duration,
    },
    /// The work was sent, the answer did not come: it may or may not have been accepted.
    #[error("the answer was lost: the work may or may not have been accepted")]
    AnswerLost,
    /// A batch has one set of options, so its tasks would all have one idempotency key. Nothing was
    /// sent.
    #[error("the tasks of a batch cannot have one idempotency key")]
    KeyedBatch,
    /// The client is closed. Nothing was sent.
    #[error("the client is closed")]
    Closed,
}

impl SubmitErrorKind {
    /// Says whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Name(_)
            | Self::Encode(_)
            | Self::TooLarge { .. }
            | Self::KeyedBatch
            | Self::Closed => Fault::Caller,
            Self::Refused(refusal) => refusal.fault(),
            Self::NotConnected { .. } | Self::AnswerLost => Fault::Environment,
        }
    }

    /// True if the same work may be accepted later, and cannot have been accepted already.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.retryable,
            Self::NotConnected { .. } => true,
            _ => false,
        }
    }
}

/// Work that was not accepted, handed back with the reason.
#[derive(Error)]
#[error("{kind}")]
#[non_exhaustive]
pub struct SubmitError<T> {
    /// Why.
    #[source]
    pub kind: SubmitErrorKind,
    /// The work, as it was handed in.
    pub task: T,
}

impl<T> SubmitError<T> {
    pub(crate) fn new(kind: impl Into<SubmitErrorKind>, task: T) -> Self {
        Self { kind: kind.into(), task }
    }

    /// Takes the work back.
    #[must_use]
    pub fn into_task(self) -> T {
        self.task
    }
}

impl<T> fmt::Debug for SubmitError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A question to the server has no answer. Asking again does no harm.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The server refused; `NotFound` for a task that it does not know.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There was no session or no answer within the request's time.
    #[error("no answer from the server within {after:?}")]
    TimedOut {
        /// The request's time.
        after: Duration,
    },
    /// The command was sent and the session lost before its answer: it may or may not have been
    /// carried out.
    #[error("the answer was lost: the command may or may not have been carried out")]
    AnswerLost,
    /// The server's answer does not make sense.
    #[error("the server's answer is malformed: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
    },
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
}

impl QueryError {
    /// Says whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Refused(refusal) => refusal.fault(),
            Self::TimedOut { .. } | Self::AnswerLost => Fault::Environment,
            Self::Malformed { .. } => Fault::Server,
            Self::Closed => Fault::Caller,
        }
    }
}

/// A call has no output.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CallError<T> {
    /// The work was not accepted; it is handed back.
    #[error("the task was not accepted")]
    Submit(#[from] SubmitError<T>),
    /// The work was accepted, its outcome cannot be learned.
    #[error("the outcome of {task_id} cannot be learned")]
    Await {
        /// The task.
        task_id: TaskId,
        /// Why.
        source: QueryError,
    },
    /// The task ended without an output.
    #[error(transparent)]
    Task(#[from] crate::outcome::TaskError),
}
