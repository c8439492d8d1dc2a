//! What the engine says, in the words of the wire.

use bytes::Bytes;
use slipswitch_core::{
    AdminError, CancelReason, Class, EntryError, Lease, Offer, Outcome, RegisterError, Signalled,
    Stop, SubmitError, Task, Trace, Verdict,
};

use crate::proto::messages as m;
use crate::proto::{Frame, WireCode};

/// A typed error with a sentence for people.
pub(super) fn err(code: WireCode, message: impl Into<String>) -> m::Err {
    m::Err {
        code: code.number(),
        retryable: code.is_retryable(),
        retry_after: 0,
        message: message.into(),
        details: Bytes::new(),
    }
}

pub(super) fn submit_error(error: &SubmitError) -> m::Err {
    let code = match error {
        SubmitError::Draining => WireCode::Draining,
        SubmitError::PermissionDenied(_) => WireCode::PermissionDenied,
        SubmitError::NotFound => WireCode::NotFound,
        SubmitError::LimitExceeded { .. } => WireCode::LimitExceeded,
        SubmitError::QuotaExceeded { .. } => WireCode::QuotaExceeded,
        SubmitError::Conflict | SubmitError::KeyConflict => WireCode::Conflict,
        SubmitError::StaleGeneration { .. } => WireCode::StaleGeneration,
        SubmitError::NoWorker => WireCode::NoWorker,
        SubmitError::NoCapacity => WireCode::NoCapacity,
        SubmitError::Invalid(_) => WireCode::Malformed,
        _ => WireCode::Internal,
    };
    err(code, error.to_string())
}

pub(super) fn admin_error(error: AdminError) -> m::Err {
    let code = match error {
        AdminError::PermissionDenied => WireCode::PermissionDenied,
        AdminError::InvalidState(_) => WireCode::InvalidState,
        AdminError::TooMany { .. } => WireCode::QuotaExceeded,
        _ => WireCode::NotFound,
    };
    err(code, error.to_string())
}

pub(super) fn register_error(error: &RegisterError) -> m::Err {
    let code = match error {
        RegisterError::Empty(_) => WireCode::EmptyRegistration,
        RegisterError::Limit { .. } | RegisterError::Full => WireCode::LimitExceeded,
        RegisterError::Entries(entries) => {
            entries.first().map_or(WireCode::Internal, |(_, error)| entry_code(error))
        }
        RegisterError::Draining => WireCode::Draining,
        _ => WireCode::Internal,
    };
    err(code, error.to_string())
}

pub(super) fn entry_code(error: &EntryError) -> WireCode {
    match error {
        EntryError::Name(_) => WireCode::InvalidName,
        EntryError::PermissionDenied(_) => WireCode::PermissionDenied,
        EntryError::NotFound(_) => WireCode::NotFound,
        _ => WireCode::Internal,
    }
}

pub(super) const fn lease(lease: Lease) -> m::Lease {
    m::Lease { id: lease.id, epoch: lease.epoch }
}

pub(super) const fn core_lease(lease: m::Lease) -> Lease {
    Lease { id: lease.id, epoch: lease.epoch }
}

pub(super) const fn verdict(verdict: Verdict) -> m::VerdictKind {
    match verdict {
        Verdict::Applied => m::VerdictKind::Applied,
        Verdict::Duplicate => m::VerdictKind::Duplicate,
        Verdict::Stale => m::VerdictKind::Stale,
        Verdict::UnknownLease => m::VerdictKind::UnknownLease,
    }
}

pub(super) fn cancel(stop: &Stop) -> m::Cancel {
    let kind = match stop.reason {
        CancelReason::Expired => m::CancelKind::Expired,
        CancelReason::Asked => m::CancelKind::Asked,
        _ => m::CancelKind::Stale,
    };
    let grace = u64::try_from(stop.grace.as_millis()).unwrap_or(u64::MAX);
    let message = stop.message.as_str().to_owned();
    m::Cancel { lease: lease(stop.lease), reason: kind as u32, grace, message }
}

pub(super) fn signal(signal: Signalled) -> Frame {
    let Signalled { lease: at, seq, kind, payload, .. } = signal;
    let head = m::Signal { lease: lease(at), seq, kind: kind.as_str().to_owned() };
    Frame::Signal(head, payload)
}

/// The numbers of [`OutcomeClass`](m::OutcomeClass).
pub(super) const fn class(class: Class) -> u32 {
    (match class {
        Class::Completed => m::OutcomeClass::Completed,
        Class::AttemptsExhausted => m::OutcomeClass::AttemptsExhausted,
        Class::LostDeliveries => m::OutcomeClass::LostDeliveries,
        Class::LostOffers => m::OutcomeClass::LostOffers,
        Class::Expired => m::OutcomeClass::Expired,
        Class::Cancelled => m::OutcomeClass::Cancelled,
        _ => m::OutcomeClass::TerminalFailure,
    }) as u32
}

pub(super) fn task_id(task: &Task) -> Bytes {
    Bytes::copy_from_slice(task.id().as_bytes())
}

/// The header of an offer; the payload travels beside it.
pub(super) fn offer(offer: &Offer, now: slipswitch_core::Instant) -> Box<m::Offer> {
    let task = &*offer.task;
    let options = task.options();
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    // At least one millisecond: 0 says that there is none.
    let deadline = task.deadline().map_or(0, |due| millis(due.saturating_since(now)).max(1));
    let rare = options.rare();
    let limit = |limit: Option<std::time::Duration>| limit.map_or(0, |limit| millis(limit).max(1));
    let trace = rare.trace.as_ref().map(|trace| {
        let Trace { parent, state, baggage } = trace.clone();
        Box::new(m::Trace { parent, state, baggage })
    });
    let key = Some(&rare.idempotency_key).filter(|key| !key.is_empty());
    Box::new(m::Offer {
        task_id: task_id(task),
        lease: lease(offer.lease),
        pool_ref: offer.pool_ref,
        type_ref: offer.pool_ref,
        attempt: offer.attempt,
        deliveries: offer.deliveries,
        owner_key: options.owner_key.clone(),
        ordinal: options.ordinal,
        generation: options.generation,
        content_type: options.content_type.as_bytes().clone(),
        encoding: options.encoding.as_bytes().clone(),
        stream_ref: None,
        headers: pairs(&options.headers),
        priority: u32::from(options.priority),
        submitted: millis(now.saturating_since(task.submitted())),
        due: millis(now.saturating_since(task.due())),
        start_to_close: limit(rare.start_to_close),
        heartbeat: limit(rare.heartbeat_timeout),
        deadline,
        trace,
        last_progress: offer.last_progress.clone(),
        idempotency_key: key.cloned(),
    })
}

/// The header of an outcome; the result travels beside it.
pub(super) fn outcome(req: u64, task: &Task, outcome: &Outcome) -> Box<m::Outcome> {
    Box::new(m::Outcome {
        req,
        task_id: task_id(task),
        state: outcome.state as u32,
        class: class(outcome.class),
        code: outcome.code.clone(),
        message: outcome.message.clone(),
        details: outcome.details.clone(),
        attempt: outcome.attempt,
        content_type: outcome.content_type.as_bytes().clone(),
        err: None,
        encoding: outcome.encoding.as_bytes().clone(),
        deliveries: outcome.deliveries,
        stream_ref: None,
    })
}

pub(super) fn pairs(pairs: &[(String, String)]) -> Vec<m::Pair> {
    let pair =
        |(name, value): &(String, String)| m::Pair { name: name.clone(), value: value.clone() };
    pairs.iter().map(pair).collect()
}
