//! What happens on a client's session.

use std::time::Duration;

use bytes::Bytes;

use crate::proto::messages as m;
use crate::proto::{Lost, ProtocolError};

/// What a client says first.
#[derive(Clone, Debug, Default)]
pub struct ClientHello {
    /// The library it is built with.
    pub sdk_name: String,
    /// That library's version.
    pub sdk_version: String,
    /// Its wall clock in milliseconds since 1970, for people.
    pub wall_clock: u64,
}

/// What the server said first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Welcome {
    /// Random for each server.
    pub server_id: Bytes,
    /// Random for each session.
    pub session_id: Bytes,
    /// How long a lease lives without a beat.
    pub lease_ttl: Duration,
    /// How long an offer may stay unanswered.
    pub accept_timeout: Duration,
    /// The server's limits.
    pub limits: m::Limits,
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// This side said goodbye and was heard, or the time to hear it was over.
    Done,
    /// The server said goodbye.
    Goodbye {
        /// Its reason; none if it is one of a later version.
        reason: Option<m::GoodbyeReason>,
        /// Its words.
        message: String,
    },
    /// The server did not say hello in time.
    NoWelcome,
    /// The server was silent for too long.
    Silent,
    /// The server broke the protocol.
    Violation(ProtocolError),
    /// The transport is gone.
    Lost(Lost),
}

/// What happened on a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The server said hello.
    Welcome(Welcome),
    /// The answer to a registration or update.
    Registered(m::RegisterAck),
    /// A task. Accept it before the handler sees it, or reject it.
    Offer(Box<m::Offer>, Bytes),
    /// A report was judged.
    Verdict {
        /// The task.
        task_id: Bytes,
        /// The delivery.
        lease: m::Lease,
        /// As [`VerdictKind`](m::VerdictKind) numbers them.
        verdict: u32,
    },
    /// Stop working on a delivery, then report or reject it.
    Cancel {
        /// The delivery.
        lease: m::Lease,
        /// As [`CancelKind`](m::CancelKind) numbers them.
        reason: u32,
        /// How long it may take; zero if the lease is not this worker's any more.
        grace: Duration,
        /// What whoever asked for it said.
        message: String,
    },
    /// Bytes for the handler of a delivery; answer with
    /// [`ClientSession::answer_signal`](super::ClientSession::answer_signal).
    Signal(m::Signal, Bytes),
    /// How many tasks wait in a pool for which this worker has no free credit.
    Demand(m::Demand),
    /// Something happened that is watched, or the watch is over.
    Watched(Box<m::Event>),
    /// What became of a cancellation.
    CancelTaskAck(m::CancelTaskAck),
    /// The server asks to finish and leave.
    Drain(m::Drain),
    /// What became of a submission.
    SubmitAck(m::SubmitAck),
    /// What became of a batch.
    SubmitBatchAck(m::SubmitBatchAck),
    /// How a task ended.
    Outcome(Box<m::Outcome>, Bytes),
    /// The answer to a question.
    Reply(m::Reply),
    /// The answer to a command of an operator.
    AdminAck(m::AdminAck),
    /// Something was refused that has no answer of its own; `req` is 0 if it was no request.
    Refused {
        /// The request.
        req: u64,
        /// Why.
        err: m::Err,
    },
    /// The session is over. Nothing follows.
    Ended(Ended),
}
