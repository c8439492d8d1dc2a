//! One session: what may be said when, and what is due.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    CellFamily, CloseReason, Engine, EpochCells, Instant, Mailbox, Notify, Principal, SessionId,
    TaskId, WorkerId, WorkerSession,
};

use super::answer::{self, err};
use super::command::Commands;
use super::intake::{self, Routes};
use super::query;
use super::timed::TimedAwaits;
use crate::proto::messages as m;
use crate::proto::{
    Assembly, Channel, Departures, Driver, Frame, Loaded, Lost, PROTO_VERSION, ProtocolError,
    WireCode, agree_features, agree_version, limits,
};
use std::sync::Arc;

/// Makes the ids of tasks whose producers make none: rising, and hard to guess.
pub trait TaskIds {
    /// The next id, at the time `now`.
    fn next(&mut self, now: Instant) -> TaskId;
}

/// What a server tells every session.
#[derive(Clone, Copy, Debug)]
pub struct Greeting {
    /// Random for each server.
    pub server_id: [u8; 16],
    /// Rises with each start.
    pub incarnation: u32,
    /// How long a lease lives without a beat.
    pub lease_ttl: Duration,
    /// How long an offer may stay unanswered.
    pub accept_timeout: Duration,
    /// Bytes of a payload.
    pub payload_max: usize,
    /// The wall clock in milliseconds since 1970, for people.
    pub wall_clock: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was said yet; the peer has until then.
    Fresh(Instant),
    Open,
    /// A goodbye was said; the answer has until then.
    Leaving(Instant),
    /// Everything is said.
    Closed,
}

/// The server's side of one session. Sans-IO: see [`Driver`].
///
/// Nothing reaches the engine before the peer has said hello, and nothing without the principal
/// that the transport found.
pub struct ServerSession<F: CellFamily = EpochCells> {
    pub(super) engine: Arc<Engine<F>>,
    pub(super) principal: Principal,
    pub(super) id: SessionId,
    pub(super) link: Arc<dyn Notify>,
    pub(super) ids: Box<dyn TaskIds>,
    pub(super) greeting: Greeting,
    stage: Stage,
    pub(super) worker: Option<WorkerSession<F>>,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) routes: Routes,
    pub(super) control: VecDeque<Frame>,
    pub(super) answers: VecDeque<(Channel, Frame)>,
    /// Those of them that are replies, which are large.
    replies: usize,
    pub(super) verdicts: Vec<m::Verdict>,
    pub(super) departures: Departures,
    pub(super) assembly: Assembly<Frame>,
    /// Outcomes that the peer waits for, with a limit of time or not.
    pub(super) waits: usize,
    pub(super) timed: TimedAwaits,
    pub(super) outcomes: VecDeque<slipswitch_core::Delivered>,
    /// Commands that are answered later.
    pub(super) commands: Commands,
    opened: Instant,
    pub(super) heard: Instant,
    pub(super) pinged: bool,
    pub(super) nonce: u64,
    pub(super) told_drain: bool,
    /// The goodbye, until everything else is said.
    pub(super) last_word: Option<m::Goodbye>,
}

impl<F: CellFamily> ServerSession<F> {
    /// Creates the session of a connection whose peer was found to be `principal`. `link` wakes the
    /// shell that drives it.
    #[must_use]
    pub fn new(
        engine: Arc<Engine<F>>,
        principal: Principal,
        id: SessionId,
        link: Arc<dyn Notify>,
        ids: Box<dyn TaskIds>,
        greeting: Greeting,
        now: Instant,
    ) -> Self {
        let mailbox = Arc::new(Mailbox::new(Arc::clone(&link)));
        Self {
            engine,
            principal,
            id,
            ids,
            stage: Stage::Fresh(now + limits::HELLO_DEADLINE),
            worker: None,
            mailbox,
            routes: Routes::default(),
            control: VecDeque::new(),
            answers: VecDeque::new(),
            replies: 0,
            verdicts: Vec::new(),
            departures: Departures::default(),
            assembly: Assembly::new(greeting.payload_max.max(limits::INLINE_PAYLOAD_MAX)),
            waits: 0,
            timed: TimedAwaits::default(),
            outcomes: VecDeque::new(),
            commands: Commands::new(&link),
            opened: now,
            heard: now,
            pinged: false,
            nonce: 0,
            told_drain: false,
            last_word: None,
            greeting,
            link,
        }
    }

    /// The worker that registered on this session.
    #[must_use]
    pub fn worker_id(&self) -> Option<WorkerId> {
        self.worker.as_ref().map(WorkerSession::worker_id)
    }

    /// Ends the session in order, because the server leaves.
    pub fn shut_down(&mut self, now: Instant) {
        self.leave(CloseReason::ServerShutdown, "the server is leaving", now);
    }

    /// Says goodbye and waits for the answer.
    fn leave(&mut self, reason: CloseReason, message: &str, now: Instant) {
        if matches!(self.stage, Stage::Leaving(_) | Stage::Closed) {
            return;
        }
        if let Some(mut worker) = self.worker.take() {
            worker.close(reason, now);
        }
        // Outcomes that have come are still told: the goodbye follows them on their lane.
        self.last_word = Some(goodbye(reason, message));
        self.stage = match self.stage {
            Stage::Open => Stage::Leaving(now + limits::GOODBYE_DEADLINE),
            _ => Stage::Closed,
        };
    }

    /// Takes everything of this session out of the engine.
    fn let_go(&mut self, reason: CloseReason, now: Instant) {
        if let Some(mut worker) = self.worker.take() {
            worker.close(reason, now);
        }
        self.mailbox.close();
        self.commands.clear();
        self.outcomes.clear();
        self.timed.clear();
        self.waits = 0;
    }

    /// The last words to a peer that broke the protocol.
    fn violated(&mut self, error: &ProtocolError, now: Instant) {
        self.let_go(CloseReason::ProtocolViolation, now);
        self.answers.clear();
        self.replies = 0;
        self.departures.clear();
        let told = m::Error { req: 0, err: Some(err(error.code(), error.message())) };
        self.control.push_back(Frame::Error(told));
        let last = goodbye(CloseReason::ProtocolViolation, error.message());
        self.control.push_back(Frame::Goodbye(last));
        self.stage = Stage::Closed;
    }

    fn take(&mut self, channel: Channel, frame: Frame, now: Instant) -> Result<(), ProtocolError> {
        match (self.stage, &frame) {
            (Stage::Fresh(_), Frame::Hello(_)) | (Stage::Open, _) => {}
            (Stage::Fresh(_), other) => {
                let what = format!("{} before Hello", other.name());
                return Err(ProtocolError::violation(what));
            }
            // What was under way when a goodbye was said concerns nobody any more.
            (Stage::Leaving(_), Frame::GoodbyeAck(_)) => {
                self.let_go(CloseReason::ServerShutdown, now);
                self.stage = Stage::Closed;
                return Ok(());
            }
            (Stage::Leaving(_), Frame::Goodbye(_)) => {}
            (Stage::Leaving(_) | Stage::Closed, _) => return Ok(()),
        }
        match frame {
            Frame::Hello(hello) => self.hello(&hello),
            Frame::Ping(ping) => {
                self.control.push_back(Frame::Pong(ping));
                Ok(())
            }
            Frame::Pong(_) | Frame::GoodbyeAck(_) | Frame::DrainAck(_) => Ok(()),
            Frame::Goodbye(_) => {
                self.let_go(CloseReason::ClientGoodbye, now);
                self.control.push_back(Frame::GoodbyeAck(m::Goodbye::default()));
                self.stage = Stage::Closed;
                Ok(())
            }
            Frame::Error(_) => Ok(()),
            Frame::Register(register) => self.register(*register, now),
            Frame::Payload { stream_ref, offset, last, bytes } => {
                let whole = self.assembly.piece(stream_ref, offset, last, &bytes)?;
                match whole {
                    Some((frame, loaded)) => self.take_loaded(frame, loaded, now),
                    None => Ok(()),
                }
            }
            Frame::Submit(submit, payload) => match submit.stream_ref {
                Some(at) => self.await_payload(at, Frame::Submit(submit, payload), now),
                None => {
                    self.submit(*submit, payload, now);
                    Ok(())
                }
            },
            Frame::Result(result, payload) => match result.stream_ref {
                Some(at) => self.await_payload(at, Frame::Result(result, payload), now),
                None => self.result(result, payload, now),
            },
            Frame::SubmitBatch(batch, payload) => {
                self.submit_batch(batch, payload, now);
                Ok(())
            }
            Frame::Await(wait) => {
                self.wait_for(channel, &wait, now);
                Ok(())
            }
            Frame::CancelTask(cancel) => {
                self.cancel_task(channel, &cancel, now);
                Ok(())
            }
            Frame::Watch(watch) => {
                self.watch_events(channel, &watch);
                Ok(())
            }
            Frame::Query(asked) => {
                let reply = if self.replies >= limits::REPLIES_AHEAD_MAX {
                    query::refused(&asked, "too many replies wait to be read on this session")
                } else {
                    query::answer(&self.engine, &self.principal, &asked, now)
                };
                self.replies = self.replies.saturating_add(1);
                self.answers.push_back((channel, Frame::Reply(reply)));
                Ok(())
            }
            Frame::Admin(admin) => {
                self.admin(channel, &admin, now);
                Ok(())
            }
            other => self.of_worker(other, now),
        }
    }

    fn hello(&mut self, hello: &m::Hello) -> Result<(), ProtocolError> {
        if self.stage == Stage::Open {
            return Err(ProtocolError::violation("a second Hello"));
        }
        agree_version(hello.proto_min, hello.proto_max)?;
        let greeting = self.greeting;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (generation, _) = self.engine.generation();
        let ack = m::HelloAck {
            server_id: Bytes::copy_from_slice(&greeting.server_id),
            incarnation: greeting.incarnation,
            proto: PROTO_VERSION,
            features: agree_features(hello.features),
            session_id: Bytes::copy_from_slice(self.id.as_bytes()),
            generation: generation.as_u64(),
            lease_ttl: millis(greeting.lease_ttl),
            beat: millis(greeting.lease_ttl / 4),
            accept_timeout: millis(greeting.accept_timeout),
            ping: millis(limits::PING_AFTER),
            limits: Some(m::Limits {
                payload: greeting.payload_max as u64,
                batch_tasks: limits::BATCH_TASKS_MAX as u64,
                batch_bytes: limits::BATCH_BYTES_MAX as u64,
            }),
            alternates: Vec::new(),
            auth_expires: 0,
            resume_token: None,
            clock: greeting.wall_clock,
        };
        self.control.push_back(Frame::HelloAck(Box::new(ack)));
        self.stage = Stage::Open;
        Ok(())
    }

    fn await_payload(&mut self, at: u64, frame: Frame, now: Instant) -> Result<(), ProtocolError> {
        match self.assembly.expect(at, frame)? {
            Some((frame, loaded)) => self.take_loaded(frame, loaded, now),
            None => Ok(()),
        }
    }

    fn take_loaded(
        &mut self,
        frame: Frame,
        loaded: Loaded,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        match (frame, loaded) {
            (Frame::Submit(submit, _), Loaded::Whole(payload)) => {
                self.submit(*submit, payload, now);
                Ok(())
            }
            (Frame::Submit(submit, _), Loaded::TooLong(size)) => {
                let error = intake::too_long(size, self.greeting.payload_max);
                self.answer_submit(submit.req, Err(error));
                Ok(())
            }
            (Frame::Result(result, _), Loaded::Whole(payload)) => self.result(result, payload, now),
            (Frame::Result(result, _), Loaded::TooLong(size)) => {
                self.result_too_long(result, size, now)
            }
            (other, _) => Err(ProtocolError::violation(format!("{} has no payload", other.name()))),
        }
    }

    /// The wall clock as this session knows it, in milliseconds since 1970.
    pub(super) fn wall_clock(&self, now: Instant) -> u64 {
        let since = now.saturating_since(self.opened).as_millis();
        self.greeting.wall_clock.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// What the engine asked of the session, put into frames.
    fn hear_engine(&mut self, now: Instant) {
        if self.stage != Stage::Open {
            return;
        }
        if let Some(worker) = &mut self.worker {
            worker.hear(now);
        }
        if self.worker.as_ref().is_some_and(WorkerSession::evicted) {
            self.leave(CloseReason::Evicted, "an operator put this worker out", now);
            return;
        }
        if self.worker.as_ref().is_some_and(WorkerSession::leave_requested) {
            let message = "the same instance registered on another session";
            self.leave(CloseReason::Superseded, message, now);
            return;
        }
        let asked = self.worker.as_ref().is_some_and(WorkerSession::drain_requested);
        if !self.told_drain && (asked || self.engine.is_draining()) {
            self.told_drain = true;
            let scope = if self.engine.is_draining() { "server" } else { "worker" };
            let drain = m::Drain { scope: scope.to_owned(), deadline: 0, alternates: Vec::new() };
            self.control.push_back(Frame::Drain(drain));
        }
        if let Some(worker) = &mut self.worker {
            while let Some(stop) = worker.poll_cancel() {
                self.control.push_back(Frame::Cancel(answer::cancel(&stop)));
            }
            while let Some(signal) = worker.poll_signal() {
                self.control.push_back(answer::signal(signal));
            }
        }
        self.hear_verdicts();
        self.hear_drains();
    }

    fn next_offer(&mut self, now: Instant) -> Option<Frame> {
        let offer = self.worker.as_mut()?.poll_offer(now)?;
        let payload = offer.task.payload();
        let mut head = answer::offer(&offer, now);
        let payload = self.departures.load(payload, &mut head.stream_ref);
        Some(Frame::Offer(head, payload))
    }

    fn next_outcome(&mut self) -> Option<Frame> {
        loop {
            if self.outcomes.is_empty() {
                self.outcomes.extend(self.mailbox.take());
            }
            let delivered = self.outcomes.pop_front()?;
            self.waits = self.waits.saturating_sub(1);
            // The time may have been over first, and the peer been told.
            let Some(req) = self.timed.ended(delivered.tag) else { continue };
            let mut head = answer::outcome(req, &delivered.task, &delivered.outcome);
            let payload = delivered.outcome.payload.clone();
            let payload = self.departures.load(payload, &mut head.stream_ref);
            return Some(Frame::Outcome(head, payload));
        }
    }

    fn end_timed_awaits(&mut self, now: Instant) {
        while let Some((req, task)) = self.timed.lapse(now) {
            let late = m::Outcome {
                req,
                task_id: Bytes::copy_from_slice(task.as_bytes()),
                err: Some(Box::new(err(WireCode::DeadlineExceeded, "it has not ended in time"))),
                ..m::Outcome::default()
            };
            let frame = Frame::Outcome(Box::new(late), Bytes::new());
            self.answers.push_back((Channel::Lane(0), frame));
        }
    }
}

fn goodbye(reason: CloseReason, message: &str) -> m::Goodbye {
    let reason = match reason {
        CloseReason::LivenessExpired => m::GoodbyeReason::LivenessExpired,
        CloseReason::Drained => m::GoodbyeReason::Drained,
        CloseReason::Evicted => m::GoodbyeReason::Evicted,
        CloseReason::AuthExpired => m::GoodbyeReason::AuthExpired,
        CloseReason::Superseded => m::GoodbyeReason::Superseded,
        CloseReason::ProtocolViolation => m::GoodbyeReason::ProtocolViolation,
        CloseReason::ServerShutdown => m::GoodbyeReason::ServerShutdown,
        _ => m::GoodbyeReason::ClientGoodbye,
    };
    m::Goodbye { reason: reason.number(), message: message.to_owned() }
}

impl<F: CellFamily> Driver for ServerSession<F> {
    fn handle_frame(
        &mut self,
        channel: Channel,
        frame: Frame,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        self.heard = now;
        self.pinged = false;
        if self.control.len().saturating_add(self.answers.len()) > limits::ANSWERS_AHEAD_MAX {
            let what = "answers are asked for and not read";
            let error = ProtocolError::new(WireCode::LimitExceeded, what);
            self.control.clear();
            self.violated(&error, now);
            return Err(error);
        }
        self.take(channel, frame, now).inspect_err(|error| self.violated(error, now))
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(Channel, Frame)> {
        self.hear_engine(now);
        if let Some(frame) = self.control.pop_front() {
            return Some((Channel::Control, frame));
        }
        if let Some(answer) = self.answers.pop_front() {
            if matches!(answer.1, Frame::Reply(_)) {
                self.replies = self.replies.saturating_sub(1);
            }
            return Some(answer);
        }
        if !self.verdicts.is_empty() {
            let verdicts = std::mem::take(&mut self.verdicts);
            return Some((Channel::Lane(0), Frame::ResultAck(m::ResultAck { verdicts })));
        }
        if !matches!(self.stage, Stage::Open | Stage::Leaving(_)) {
            return None;
        }
        // Frames do not run ahead of their payloads by more than the peer keeps.
        let full = self.departures.is_full();
        let next = if full { self.departures.next_piece() } else { None };
        let next = next.or_else(|| self.next_outcome()).or_else(|| self.next_offer(now));
        let next = next.or_else(|| self.departures.next_piece());
        let next = next.or_else(|| self.last_word.take().map(Frame::Goodbye));
        next.map(|frame| (Channel::Lane(0), frame))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.stage {
            Stage::Fresh(due) | Stage::Leaving(due) => Some(due),
            Stage::Closed => None,
            Stage::Open => {
                let silence = if self.pinged { limits::DEAD_AFTER } else { limits::PING_AFTER };
                let alive = self.heard + silence;
                let worker = self.worker.as_ref().and_then(WorkerSession::poll_timeout);
                let timed = self.timed.next_due();
                [Some(alive), worker, timed].into_iter().flatten().min()
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self.stage {
            Stage::Fresh(due) if now >= due => {
                let error = ProtocolError::violation("no Hello came in time");
                self.violated(&error, now);
            }
            Stage::Leaving(due) if now >= due => {
                self.let_go(CloseReason::ServerShutdown, now);
                self.stage = Stage::Closed;
            }
            Stage::Open => {
                let silence = now.saturating_since(self.heard);
                if silence >= limits::DEAD_AFTER {
                    let message = "nothing was heard for too long";
                    self.leave(CloseReason::LivenessExpired, message, now);
                    // Nobody is there to answer; one who hears and cannot speak is told.
                    self.control.extend(self.last_word.take().map(Frame::Goodbye));
                    self.let_go(CloseReason::LivenessExpired, now);
                    self.stage = Stage::Closed;
                    return;
                }
                if silence >= limits::PING_AFTER && !self.pinged {
                    self.pinged = true;
                    self.nonce = self.nonce.wrapping_add(1);
                    let deadline = limits::DEAD_AFTER.saturating_sub(limits::PING_AFTER);
                    let deadline = u64::try_from(deadline.as_millis()).unwrap_or(0);
                    let ping = m::Ping { nonce: self.nonce, deadline };
                    self.control.push_back(Frame::Ping(ping));
                }
                if let Some(worker) = &mut self.worker {
                    worker.handle_timeout(now);
                }
                self.end_timed_awaits(now);
            }
            Stage::Fresh(_) | Stage::Leaving(_) | Stage::Closed => {}
        }
    }

    fn handle_lost(&mut self, reason: Lost, now: Instant) {
        let reason = match reason {
            Lost::TimedOut => CloseReason::LivenessExpired,
            Lost::Protocol => CloseReason::ProtocolViolation,
            _ => CloseReason::StreamClosed,
        };
        self.let_go(reason, now);
        self.stage = Stage::Closed;
    }

    fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }
}

impl<F: CellFamily> fmt::Debug for ServerSession<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSession")
            .field("id", &self.id)
            .field("stage", &self.stage)
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}
