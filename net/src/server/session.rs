//! One session: what may be said when, and what is due.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    Beat, CellFamily, CloseReason, End, Engine, EpochCells, Failure, FailureClass, Instant, Lease,
    Mailbox, NewTask, Notify, Principal, RejectCode, Report, SessionId, TaskId, Text, Watcher,
    WorkerId, WorkerSession,
};

use super::answer::{self, core_lease, err};
use super::intake::{self, Routes};
use super::query;
use crate::proto::messages as m;
use crate::proto::{
    Assembly, Channel, Driver, Frame, Lost, PROTO_VERSION, Pieces, ProtocolError, WireCode,
    agree_features, agree_version, limits,
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
    engine: Arc<Engine<F>>,
    principal: Principal,
    id: SessionId,
    link: Arc<dyn Notify>,
    ids: Box<dyn TaskIds>,
    greeting: Greeting,
    stage: Stage,
    worker: Option<WorkerSession<F>>,
    mailbox: Arc<Mailbox>,
    routes: Routes,
    control: VecDeque<Frame>,
    answers: VecDeque<(Channel, Frame)>,
    verdicts: Vec<m::Verdict>,
    pieces: VecDeque<Pieces>,
    next_ref: u64,
    assembly: Assembly<(Channel, Frame)>,
    /// Outcomes that the peer waits for, with a limit of time or not.
    waits: usize,
    /// Awaits that end at a time, and those that still wait of them.
    timed: BTreeMap<(Instant, u64), ()>,
    timed_due: BTreeMap<u64, Instant>,
    outcomes: VecDeque<slipswitch_core::Delivered>,
    heard: Instant,
    pinged: bool,
    nonce: u64,
    told_drain: bool,
    /// The goodbye, until everything else is said.
    last_word: Option<m::Goodbye>,
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
            link,
            ids,
            stage: Stage::Fresh(now + limits::HELLO_DEADLINE),
            worker: None,
            mailbox,
            routes: Routes::default(),
            control: VecDeque::new(),
            answers: VecDeque::new(),
            verdicts: Vec::new(),
            pieces: VecDeque::new(),
            next_ref: 0,
            assembly: Assembly::new(greeting.payload_max.max(limits::INLINE_PAYLOAD_MAX)),
            waits: 0,
            timed: BTreeMap::new(),
            timed_due: BTreeMap::new(),
            outcomes: VecDeque::new(),
            heard: now,
            pinged: false,
            nonce: 0,
            told_drain: false,
            last_word: None,
            greeting,
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
        self.outcomes.clear();
        self.timed.clear();
        self.timed_due.clear();
        self.waits = 0;
    }

    /// The last words to a peer that broke the protocol.
    fn violated(&mut self, error: &ProtocolError, now: Instant) {
        self.let_go(CloseReason::ProtocolViolation, now);
        self.answers.clear();
        self.pieces.clear();
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
                    Some(((channel, frame), payload)) => {
                        self.take_loaded(channel, frame, payload, now)
                    }
                    None => Ok(()),
                }
            }
            Frame::Submit(submit, payload) => match submit.stream_ref {
                Some(at) => self.await_payload(at, channel, Frame::Submit(submit, payload), now),
                None => {
                    self.submit(channel, *submit, payload, now);
                    Ok(())
                }
            },
            Frame::Result(result, payload) => match result.stream_ref {
                Some(at) => self.await_payload(at, channel, Frame::Result(result, payload), now),
                None => self.result(result, payload, now),
            },
            Frame::SubmitBatch(batch, payload) => {
                self.submit_batch(channel, batch, payload, now);
                Ok(())
            }
            Frame::Await(wait) => {
                self.wait_for(channel, &wait, now);
                Ok(())
            }
            Frame::Query(asked) => {
                let reply = query::answer(&self.engine, &self.principal, &asked, now);
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

    fn register(&mut self, frame: m::Register, now: Instant) -> Result<(), ProtocolError> {
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
    fn of_worker(&mut self, frame: Frame, now: Instant) -> Result<(), ProtocolError> {
        let Some(worker) = &mut self.worker else {
            let what = format!("{} without a registration", frame.name());
            return Err(ProtocolError::violation(what));
        };
        match frame {
            Frame::Update(update) => {
                let changed = intake::pools(&update.pools).and_then(|pools| {
                    let changed = worker.update(pools, now);
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
                self.control.push_back(Frame::RegisterAck(ack));
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
                let mut cancel = Vec::new();
                while let Some((lease, reason)) = worker.poll_cancel() {
                    cancel.push(answer::cancel(lease, reason));
                }
                let lost = lost.into_iter().map(answer::lease).collect();
                let ack = m::HeartbeatAck { seq: beat.seq, cancel, lost };
                self.control.push_back(Frame::HeartbeatAck(ack));
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

    fn await_payload(
        &mut self,
        at: u64,
        channel: Channel,
        frame: Frame,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        match self.assembly.expect(at, (channel, frame))? {
            Some(((channel, frame), payload)) => self.take_loaded(channel, frame, payload, now),
            None => Ok(()),
        }
    }

    fn take_loaded(
        &mut self,
        channel: Channel,
        frame: Frame,
        payload: Bytes,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        match frame {
            Frame::Submit(submit, _) => {
                self.submit(channel, *submit, payload, now);
                Ok(())
            }
            Frame::Result(result, _) => self.result(result, payload, now),
            other => Err(ProtocolError::violation(format!("{} has no payload", other.name()))),
        }
    }

    fn result(
        &mut self,
        result: m::TaskResult,
        payload: Bytes,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        let Some(worker) = &mut self.worker else {
            return Err(ProtocolError::violation("Result without a registration"));
        };
        let lease = result.lease;
        match report(result, payload, self.greeting.payload_max) {
            Ok(report) => {
                let verdict = answer::verdict(worker.result(report, now)) as u32;
                self.verdicts.push(m::Verdict { lease, verdict });
            }
            Err(error) => {
                // The session lives; the delivery is the worker's as before.
                self.control.push_back(Frame::Error(m::Error { req: 0, err: Some(error) }));
            }
        }
        Ok(())
    }

    fn watcher(&mut self, req: u64) -> Result<Watcher, m::Err> {
        if self.waits >= limits::REQUESTS_MAX {
            let what = "too many outcomes are waited for on this session";
            return Err(err(WireCode::LimitExceeded, what));
        }
        Ok(Watcher { mailbox: Arc::clone(&self.mailbox), tag: req })
    }

    fn submit(&mut self, channel: Channel, submit: m::Submit, payload: Bytes, now: Instant) {
        let m::Submit { req, task, wait, .. } = submit;
        let taken = self.submit_one(req, task, payload, wait, now);
        let ack = match taken {
            Ok(submitted) => m::SubmitAck {
                req,
                task_id: Bytes::copy_from_slice(submitted.id.as_bytes()),
                deduplicated: false,
                durable: submitted.durable,
                err: None,
            },
            Err(error) => {
                m::SubmitAck { req, err: Some(Box::new(error)), ..m::SubmitAck::default() }
            }
        };
        self.answers.push_back((channel, Frame::SubmitAck(ack)));
    }

    fn submit_one(
        &mut self,
        req: u64,
        spec: m::TaskSpec,
        payload: Bytes,
        wait: bool,
        now: Instant,
    ) -> Result<slipswitch_core::Submitted, m::Err> {
        let watcher = if wait { Some(self.watcher(req)?) } else { None };
        let route = self.routes.of(&self.engine, &spec)?;
        let ids = &mut self.ids;
        let task = intake::task(spec, payload, self.greeting.payload_max, || ids.next(now))?;
        match self.engine.submit(&self.principal, route, task, watcher, now) {
            Ok(submitted) => {
                self.waits = self.waits.saturating_add(usize::from(wait));
                Ok(submitted)
            }
            Err(refused) => Err(answer::submit_error(&refused.error)),
        }
    }

    fn submit_batch(
        &mut self,
        channel: Channel,
        batch: m::SubmitBatch,
        payload: Bytes,
        now: Instant,
    ) {
        let req = batch.req;
        let ack = match self.batch_items(batch, payload, now) {
            Ok(items) => m::SubmitBatchAck { req, items, err: None },
            Err(error) => m::SubmitBatchAck { req, items: Vec::new(), err: Some(Box::new(error)) },
        };
        self.answers.push_back((channel, Frame::SubmitBatchAck(ack)));
    }

    /// Judges all tasks of a batch before it hands in the first. What the engine itself refuses
    /// after that (it drains, a quota is used up) is refused by item.
    fn batch_items(
        &mut self,
        batch: m::SubmitBatch,
        mut payload: Bytes,
        now: Instant,
    ) -> Result<Vec<m::BatchItem>, m::Err> {
        let m::SubmitBatch { req, tasks, wait, common } = batch;
        if tasks.len() > limits::BATCH_TASKS_MAX {
            let (count, max) = (tasks.len(), limits::BATCH_TASKS_MAX);
            let what = format!("a batch of {count} tasks, at most {max}");
            return Err(err(WireCode::LimitExceeded, what));
        }
        if wait && self.waits.saturating_add(tasks.len()) > limits::REQUESTS_MAX {
            let what = "too many outcomes are waited for on this session";
            return Err(err(WireCode::LimitExceeded, what));
        }
        let mut shared = match common {
            None => None,
            Some(spec) => {
                let route = self.routes.of(&self.engine, &spec)?.clone();
                Some((route, intake::options(*spec)?))
            }
        };
        // Tasks that say something of their own have a route of their own.
        let mut judged = Vec::with_capacity(tasks.len());
        for m::BatchTask { task, payload_len } in tasks {
            let share = usize::try_from(payload_len).ok().filter(|len| *len <= payload.len());
            let Some(share) = share else {
                let what = "the payloads of the batch are longer than its frame's";
                return Err(err(WireCode::Malformed, what));
            };
            let bytes = payload.split_to(share);
            let max = self.greeting.payload_max;
            let ids = &mut self.ids;
            judged.push(match (task, &shared) {
                (Some(spec), _) => {
                    let route = self.routes.of(&self.engine, &spec)?.clone();
                    (Some(route), intake::task(*spec, bytes, max, || ids.next(now))?)
                }
                (None, Some((_, options))) => {
                    let payload = intake::payload(bytes, max)?;
                    (None, NewTask { id: ids.next(now), payload, options: options.clone() })
                }
                (None, None) => {
                    return Err(err(WireCode::Malformed, "a task of the batch says nothing"));
                }
            });
        }
        if !payload.is_empty() {
            let what = "the frame's payload is longer than those of the batch";
            return Err(err(WireCode::Malformed, what));
        }
        let mut items = Vec::with_capacity(judged.len());
        for (mut own, task) in judged {
            let watcher = if wait { Some(self.watcher(req)?) } else { None };
            let id = Bytes::copy_from_slice(task.id.as_bytes());
            let route = own.as_mut().or_else(|| shared.as_mut().map(|(route, _)| route));
            let Some(route) = route else { continue };
            items.push(match self.engine.submit(&self.principal, route, task, watcher, now) {
                Ok(submitted) => {
                    self.waits = self.waits.saturating_add(usize::from(wait));
                    let durable = submitted.durable;
                    m::BatchItem { task_id: id, deduplicated: false, durable, err: None }
                }
                Err(refused) => m::BatchItem {
                    task_id: id,
                    err: Some(Box::new(answer::submit_error(&refused.error))),
                    ..m::BatchItem::default()
                },
            });
        }
        Ok(items)
    }

    fn wait_for(&mut self, channel: Channel, wait: &m::Await, now: Instant) {
        if let Err(error) = self.watch(wait, now) {
            let refused = m::Outcome {
                req: wait.req,
                task_id: wait.task_id.clone(),
                err: Some(Box::new(error)),
                ..m::Outcome::default()
            };
            self.answers.push_back((channel, Frame::Outcome(Box::new(refused), Bytes::new())));
        }
    }

    fn watch(&mut self, wait: &m::Await, now: Instant) -> Result<(), m::Err> {
        let id = TaskId::from_slice(&wait.task_id)
            .ok_or_else(|| err(WireCode::Malformed, "a task id has 16 bytes"))?;
        let watcher = self.watcher(wait.req)?;
        self.engine.watch(&self.principal, id, watcher).map_err(answer::admin_error)?;
        self.waits = self.waits.saturating_add(1);
        if wait.timeout > 0 {
            let due = now + Duration::from_millis(wait.timeout);
            self.timed.insert((due, wait.req), ());
            self.timed_due.insert(wait.req, due);
        }
        Ok(())
    }

    fn admin(&mut self, channel: Channel, admin: &m::Admin, now: Instant) {
        let done = if admin.op == m::AdminOp::Drain as u32 {
            match admin.target.parse().map(WorkerId::new) {
                Ok(id) => {
                    self.engine.drain_worker(&self.principal, id, now).map_err(answer::admin_error)
                }
                Err(_) => Err(err(WireCode::Malformed, "a worker's id is a number")),
            }
        } else {
            Err(err(WireCode::Unsupported, "this server does not do that yet"))
        };
        let ack = match done {
            Ok(()) => m::AdminAck { req: admin.req, affected: 1, err: None },
            Err(error) => m::AdminAck { req: admin.req, affected: 0, err: Some(Box::new(error)) },
        };
        self.answers.push_back((channel, Frame::AdminAck(ack)));
    }

    /// What the engine asked of the session, put into frames.
    fn hear_engine(&mut self, now: Instant) {
        if self.stage != Stage::Open {
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
            while let Some((lease, reason)) = worker.poll_cancel() {
                self.control.push_back(Frame::Cancel(answer::cancel(lease, reason)));
            }
        }
    }

    fn next_offer(&mut self, now: Instant) -> Option<Frame> {
        let offer = self.worker.as_mut()?.poll_offer(now)?;
        let payload = offer.task.payload();
        let mut head = answer::offer(&offer, now);
        let payload = self.on_stream(payload, &mut head.stream_ref);
        Some(Frame::Offer(head, payload))
    }

    fn next_outcome(&mut self) -> Option<Frame> {
        loop {
            if self.outcomes.is_empty() {
                self.outcomes.extend(self.mailbox.take());
            }
            let delivered = self.outcomes.pop_front()?;
            self.waits = self.waits.saturating_sub(1);
            let req = delivered.tag;
            if let Some(due) = self.timed_due.remove(&req) {
                // The time may have been over first, and the peer been told.
                if self.timed.remove(&(due, req)).is_none() {
                    continue;
                }
            }
            let mut head = answer::outcome(req, &delivered.task, &delivered.outcome);
            let payload = delivered.outcome.payload.clone();
            let payload = self.on_stream(payload, &mut head.stream_ref);
            return Some(Frame::Outcome(head, payload));
        }
    }

    /// Keeps a payload in its frame, or sends it on a stream of its own.
    fn on_stream(&mut self, payload: Bytes, stream_ref: &mut Option<u64>) -> Bytes {
        if payload.len() <= limits::INLINE_PAYLOAD_MAX {
            return payload;
        }
        self.next_ref = self.next_ref.wrapping_add(1);
        *stream_ref = Some(self.next_ref);
        self.pieces.push_back(Pieces::new(self.next_ref, payload));
        Bytes::new()
    }

    fn next_piece(&mut self) -> Option<Frame> {
        loop {
            let pieces = self.pieces.front_mut()?;
            if let Some(frame) = pieces.next() {
                return Some(frame);
            }
            self.pieces.pop_front();
        }
    }

    fn end_timed_awaits(&mut self, now: Instant) {
        while let Some((&(due, req), ())) = self.timed.first_key_value() {
            if due > now {
                return;
            }
            self.timed.remove(&(due, req));
            let late = m::Outcome {
                req,
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

/// A report as the engine takes it.
fn report(result: m::TaskResult, payload: Bytes, payload_max: usize) -> Result<Report, m::Err> {
    let malformed = |what: &str| err(WireCode::Malformed, what);
    let task =
        TaskId::from_slice(&result.task_id).ok_or_else(|| malformed("a task id has 16 bytes"))?;
    let limit = |what: &str, size: usize, max: usize| {
        if size <= max {
            return Ok(());
        }
        Err(err(WireCode::LimitExceeded, format!("{what}: {size} bytes, at most {max}")))
    };
    let text = |what: &str, bytes: Bytes| {
        limit(what, bytes.len(), limits::CONTENT_TYPE_MAX)?;
        Text::from_bytes(bytes).ok_or_else(|| malformed("a content type is not UTF-8"))
    };
    let end = match result.fail {
        None => {
            limit("the result", payload.len(), payload_max)?;
            End::Completed {
                payload,
                content_type: text("the content type", result.content_type)?,
                encoding: text("the encoding", result.encoding)?,
            }
        }
        Some(fail) => {
            let m::Fail { class, code, message, details, retry_after } = *fail;
            limit("the failure code", code.len(), limits::FAILURE_CODE_MAX)?;
            limit("the message", message.len(), limits::MESSAGE_MAX)?;
            limit("the details", details.len(), limits::DETAILS_MAX)?;
            let class = match class {
                1 => FailureClass::Retryable,
                2 => FailureClass::Terminal,
                3 => FailureClass::Infrastructure,
                _ => return Err(malformed("the failure's class is not known")),
            };
            let retry_after = retry_after.map(Duration::from_millis);
            End::Failed(Failure { class, code, message, details, retry_after })
        }
    };
    Ok(Report { task, lease: core_lease(result.lease), end })
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
        self.take(channel, frame, now).inspect_err(|error| self.violated(error, now))
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(Channel, Frame)> {
        self.hear_engine(now);
        if let Some(frame) = self.control.pop_front() {
            return Some((Channel::Control, frame));
        }
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        if !self.verdicts.is_empty() {
            let verdicts = std::mem::take(&mut self.verdicts);
            return Some((Channel::Lane(0), Frame::ResultAck(m::ResultAck { verdicts })));
        }
        if !matches!(self.stage, Stage::Open | Stage::Leaving(_)) {
            return None;
        }
        let next = self.next_outcome().or_else(|| self.next_offer(now));
        let next = next.or_else(|| self.next_piece());
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
                let timed = self.timed.first_key_value().map(|(&(due, _), ())| due);
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
                    // Nobody is there to answer.
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
