//! What a worker's frames do.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    Beat, CellFamily, End, Failure, FailureClass, Instant, Lease, RejectCode, Report,
    SignalVerdict, TaskId, Text, WorkerSession, cut,
};

use super::answer::{self, core_lease, err};
use super::intake;
use super::session::ServerSession;
use crate::proto::messages as m;
use crate::proto::{Channel, Frame, ProtocolError, WireCode, limits};

impl<F: CellFamily> ServerSession<F> {
    pub(super) fn register(
        &mut self,
        frame: m::Register,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        if self.worker.is_some() {
            return Err(ProtocolError::violation("a second Register on one session"));
        }
        let req = frame.req;
        let admitted = intake::register(frame).and_then(|register| {
            let link = Arc::clone(&self.link);
            let worker = self.engine.register(&self.principal, self.id, register, link, now);
            worker.map_err(|error| answer::register_error(&error))
        });
        let ack = match admitted {
            Ok(worker) => {
                let ack = registered(req, &worker);
                self.worker = Some(worker);
                ack
            }
            Err(error) => m::RegisterAck { req, err: Some(error), ..m::RegisterAck::default() },
        };
        self.control.push_back(Frame::RegisterAck(ack));
        Ok(())
    }

    /// Frames that only a registered worker sends.
    pub(super) fn of_worker(&mut self, frame: Frame, now: Instant) -> Result<(), ProtocolError> {
        let Some(worker) = &mut self.worker else {
            let what = format!("{} without a registration", frame.name());
            return Err(ProtocolError::violation(what));
        };
        match frame {
            Frame::Update(update) => {
                let changed = intake::pools(&update.pools).and_then(|pools| {
                    let changed = worker.update(pools, update.capacity, now);
                    changed.map_err(|error| answer::register_error(&error))
                });
                let ack = match changed {
                    Ok(_) => registered(update.req, worker),
                    Err(error) => m::RegisterAck {
                        req: update.req,
                        err: Some(error),
                        ..m::RegisterAck::default()
                    },
                };
                // Ahead of the offers from its new pools, which come there.
                self.answers.push_back((Channel::Lane(0), Frame::RegisterAck(ack)));
            }
            Frame::Credit(credit) => {
                if !credit.scope.is_none_or(|scope| scope.all) {
                    let what = "this server does not do credit for one pool yet";
                    let err = Some(err(WireCode::Unsupported, what));
                    self.control.push_back(Frame::Error(m::Error { req: 0, err }));
                } else {
                    worker.credit(credit.limit, credit.seq, now);
                }
            }
            Frame::Accept(accept) => {
                for lease in accept.leases {
                    worker.accept(core_lease(lease), now);
                }
            }
            Frame::Reject(reject) => {
                let code = match reject.code {
                    1 => RejectCode::NoCapacity,
                    2 => RejectCode::UnknownType,
                    4 => RejectCode::Draining,
                    _ => RejectCode::Malformed,
                };
                worker.reject(core_lease(reject.lease), code, now);
            }
            Frame::Heartbeat(beat) => {
                let leases: Vec<Lease> = beat.leases.iter().copied().map(core_lease).collect();
                let lost = if beat.all {
                    worker.beat(Beat::All, now)
                } else {
                    worker.beat(Beat::Leases(&leases), now)
                };
                for m::Progress { lease, bytes } in beat.progress {
                    if bytes.len() > limits::PROGRESS_MAX {
                        let (size, max) = (bytes.len(), limits::PROGRESS_MAX);
                        let what = format!("progress of {size} bytes, at most {max}");
                        let err = Some(err(WireCode::LimitExceeded, what));
                        self.control.push_back(Frame::Error(m::Error { req: 0, err }));
                        continue;
                    }
                    // A copy, so that what is kept does not keep the whole frame.
                    worker.progress(core_lease(lease), Bytes::copy_from_slice(&bytes), now);
                }
                // Those of before once more, until they are reported; what is new goes first.
                let mut cancel: Vec<m::Cancel> = Vec::new();
                while let Some(stop) = worker.poll_cancel() {
                    cancel.push(answer::cancel(&stop));
                }
                let known: Vec<m::Lease> = cancel.iter().map(|cancel| cancel.lease).collect();
                for stop in worker.stopping(now).take(limits::REPEATED_CANCELS_MAX) {
                    if !known.contains(&answer::lease(stop.lease)) {
                        cancel.push(answer::cancel(&stop));
                    }
                }
                let lost = lost.into_iter().map(answer::lease).collect();
                let ack = m::HeartbeatAck { seq: beat.seq, cancel, lost };
                self.control.push_back(Frame::HeartbeatAck(ack));
            }
            Frame::SignalAck(ack) => {
                let verdict = match ack.verdict {
                    1 => SignalVerdict::Applied,
                    2 => SignalVerdict::Unsupported,
                    _ => SignalVerdict::Stale,
                };
                worker.signal_ack(core_lease(ack.lease), ack.seq, verdict);
            }
            Frame::Drain(_) => {
                // The worker leaves by its own will: nothing more is offered, what it has it may
                // finish.
                let running = u32::try_from(worker.running()).unwrap_or(u32::MAX);
                worker.drain(now);
                self.told_drain = true;
                self.control.push_back(Frame::DrainAck(m::DrainAck { running }));
            }
            other => {
                let what = format!("{} is not for a server", other.name());
                return Err(ProtocolError::violation(what));
            }
        }
        Ok(())
    }

    pub(super) fn result(
        &mut self,
        result: m::TaskResult,
        payload: Bytes,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        let Some(worker) = &mut self.worker else {
            return Err(ProtocolError::violation("Result without a registration"));
        };
        let (lease, task) = (result.lease, TaskId::from_slice(&result.task_id));
        let verdict = match task {
            // Of no task that there is, so of no delivery of one.
            None => m::VerdictKind::UnknownLease,
            Some(task) => {
                let end = end(result, payload, self.greeting.payload_max);
                let report = Report { task, lease: core_lease(lease), end };
                answer::verdict(worker.result(report, now))
            }
        };
        self.verdicts.push(m::Verdict { lease, verdict: verdict as u32 });
        Ok(())
    }

    /// Ends a delivery whose result was too long to be kept.
    pub(super) fn result_too_long(
        &mut self,
        mut result: m::TaskResult,
        size: usize,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        let max = self.greeting.payload_max;
        let message = format!("the server does not take this result: {size} bytes, at most {max}");
        let class = m::FailClass::Terminal as u32;
        let code = RESULT_REFUSED.to_owned();
        result.fail = Some(Box::new(m::Fail { class, code, message, ..m::Fail::default() }));
        self.result(result, Bytes::new(), now)
    }
}

/// The failure code of a delivery whose result the server does not take.
const RESULT_REFUSED: &str = "result_refused";

fn registered<F: CellFamily>(req: u64, worker: &WorkerSession<F>) -> m::RegisterAck {
    let pool = |(at, key): (usize, &slipswitch_core::PoolKey)| {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        m::RegisteredPool {
            pool_ref: at,
            type_ref: at,
            namespace: key.namespace.as_str().to_owned(),
            task_queue: key.task_queue.as_str().to_owned(),
            r#type: key.activity_type.as_str().to_owned(),
            err: None,
        }
    };
    m::RegisterAck {
        req,
        worker_id: worker.worker_id().as_u64(),
        generation: worker.generation().as_u64(),
        pools: worker.pools().iter().enumerate().map(pool).collect(),
        err: None,
    }
}

/// How a delivery ended, as the engine takes it. What is over a limit ends it too: the handler has
/// run, and whoever waits for the task is told.
fn end(result: m::TaskResult, payload: Bytes, payload_max: usize) -> End {
    match result.fail {
        Some(fail) => failed(*fail),
        None => completed(payload, result.content_type, result.encoding, payload_max)
            .unwrap_or_else(|why| refused(&why)),
    }
}

fn completed(
    payload: Bytes,
    content_type: Bytes,
    encoding: Bytes,
    payload_max: usize,
) -> Result<End, String> {
    let limit = |what: &str, size: usize, max: usize| {
        if size <= max { Ok(()) } else { Err(format!("{what}: {size} bytes, at most {max}")) }
    };
    let text = |what: &str, bytes: Bytes| {
        limit(what, bytes.len(), limits::CONTENT_TYPE_MAX)?;
        Text::from_bytes(bytes).ok_or_else(|| format!("{what} is not UTF-8"))
    };
    limit("the result", payload.len(), payload_max)?;
    Ok(End::Completed {
        payload,
        content_type: text("the content type", content_type)?,
        encoding: text("the encoding", encoding)?,
    })
}

/// A failure within the limits: its class is what counts.
fn failed(fail: m::Fail) -> End {
    let m::Fail { class, mut code, mut message, details, retry_after } = fail;
    let class = match class {
        1 => FailureClass::Retryable,
        2 => FailureClass::Terminal,
        3 => FailureClass::Infrastructure,
        _ => return refused("the failure's class is not known"),
    };
    cut(&mut code, limits::FAILURE_CODE_MAX);
    cut(&mut message, limits::MESSAGE_MAX);
    let details = if details.len() > limits::DETAILS_MAX { Bytes::new() } else { details };
    let retry_after = retry_after.map(Duration::from_millis);
    End::Failed(Failure { class, code, message, details, retry_after })
}

fn refused(why: &str) -> End {
    End::Failed(Failure {
        class: FailureClass::Terminal,
        code: RESULT_REFUSED.to_owned(),
        message: format!("the server does not take this result: {why}"),
        details: Bytes::new(),
        retry_after: None,
    })
}
