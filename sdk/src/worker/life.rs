//! A worker's life over many sessions.

use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{Instant, Lease, PoolKey, TaskId, WorkerId};
use slipswitch_net::client::{ClientHello, ClientSession, Ended, Event, Unsettled};
use slipswitch_net::proto::{
    Channel, Driver, Frame, Lost, ProtocolError, WireCode, limits, messages as m,
};
use slipswitch_net::quic::LinkError;

use super::run::News;
use super::{Config, WorkerError};
use crate::backoff::SessionRecord;
use crate::client::never_welcomed;
use crate::context::{CancelReason, Delivery, Facts, Report, Signal};
use crate::error::{ConnectError, Refusal};
use crate::event::{Left, LeftReason, NO_CREDIT_AFTER, WorkerEvent};
use crate::failure::{Failure, FailureClass};
use crate::handler::Answer;
use crate::io::{IoWake, Life};
use crate::link::{Outbox, Queue};
use crate::sync::Arc;

type Commands = Queue<Command, Arc<IoWake>>;
type Running = std::collections::BTreeMap<(u64, u64), Arc<Delivery>>;

/// What other threads ask of a worker's IO thread.
pub(super) enum Command {
    /// A handler has an answer.
    Answer(Arc<Delivery>, Answer),
    /// A handler says how far it is.
    Progress(Lease, Bytes),
    /// Finish and leave.
    Leave,
}

/// Carries the answers of handlers to the IO thread.
struct Reports(Arc<Commands>);

impl Report for Reports {
    fn answer(&self, delivery: Arc<Delivery>, answer: Answer) {
        // A worker that has ended hands nothing in any more: the server delivers it again.
        drop(self.0.push(Command::Answer(delivery, answer)));
    }

    fn progress(&self, lease: Lease, progress: Bytes) {
        // As above.
        drop(self.0.push(Command::Progress(lease, progress)));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// Until then handlers may finish.
    Until(Instant, LeftReason),
    /// The goodbye is said.
    Said(LeftReason),
}

pub(super) struct WorkerLife {
    config: Config,
    commands: Arc<Commands>,
    batch: Vec<Command>,
    news: Arc<Outbox<News>>,
    /// News of this turn, handed over together.
    fresh: Vec<News>,
    reports: Arc<Reports>,
    instance: [u8; 16],
    session: Option<ClientSession>,
    unsettled: Unsettled,
    /// Deliveries whose handler is at work, of this session or an earlier one.
    running: Running,
    /// The pools of the session, and the handler of each.
    pools: Vec<(PoolKey, usize)>,
    granted: u32,
    /// What the server takes as one result, in bytes.
    payload_max: usize,
    address: String,
    welcomed: Option<Instant>,
    registered: bool,
    settled: u64,
    settled_here: bool,
    refused: Option<Refusal>,
    ended: Option<Ended>,
    /// The server that leaves asked to finish; another session may follow.
    server_drains: bool,
    leaving: Leaving,
    /// Since when no work can come.
    idle_since: Instant,
    warned: Option<Instant>,
    over: bool,
}

impl WorkerLife {
    pub(super) fn new(config: Config, commands: Arc<Commands>, news: Arc<Outbox<News>>) -> Self {
        let reports = Arc::new(Reports(Arc::clone(&commands)));
        Self {
            config,
            commands,
            batch: Vec::new(),
            news,
            fresh: Vec::new(),
            reports,
            instance: rand::random(),
            session: None,
            unsettled: Unsettled::default(),
            running: Running::new(),
            pools: Vec::new(),
            granted: 0,
            payload_max: limits::PAYLOAD_MAX,
            address: String::new(),
            welcomed: None,
            registered: false,
            settled: 0,
            settled_here: false,
            refused: None,
            ended: None,
            server_drains: false,
            leaving: Leaving::No,
            idle_since: Instant::ZERO,
            warned: None,
            over: false,
        }
    }

    fn tell(&mut self, event: WorkerEvent) {
        self.fresh.push(News::Event(event));
    }

    fn hand_over(&mut self) {
        self.news.push_all(&mut self.fresh);
    }

    fn take_commands(&mut self, now: Instant) {
        let mut batch = std::mem::take(&mut self.batch);
        let open = self.commands.take(&mut batch);
        for command in batch.drain(..) {
            match command {
                Command::Answer(delivery, answer) => self.answer(&delivery, answer),
                Command::Progress(lease, progress) => {
                    if let Some(session) = &mut self.session {
                        let lease = m::Lease { id: lease.id, epoch: lease.epoch };
                        session.progress(lease, progress, now);
                    }
                }
                Command::Leave => self.leave(LeftReason::Shutdown, now),
            }
        }
        self.batch = batch;
        if !open {
            // The future that ran the worker was dropped.
            self.over = true;
        }
    }

    fn answer(&mut self, delivery: &Delivery, answer: Answer) {
        let facts = &delivery.facts;
        self.running.remove(&(facts.lease.epoch, facts.lease.id));
        let (result, payload) = result(facts, within_limits(answer, self.payload_max));
        match &mut self.session {
            Some(session) => session.report(result, payload),
            None => self.unsettled.keep(&result, &payload),
        }
        self.grant();
    }

    /// Grants as much credit as there are free slots for: handlers of an earlier session still
    /// have theirs.
    fn grant(&mut self) {
        if !self.registered || self.leaving != Leaving::No || self.server_drains {
            return;
        }
        let Some(session) = &mut self.session else { return };
        let old = self.running.len().saturating_sub(session.running());
        let old = u32::try_from(old).unwrap_or(u32::MAX);
        let limit = self.config.credit.saturating_sub(old);
        if limit != self.granted {
            self.granted = limit;
            session.grant(limit);
        }
    }

    fn leave(&mut self, reason: LeftReason, now: Instant) {
        if self.leaving != Leaving::No {
            return;
        }
        self.leaving = Leaving::Until(now + self.config.drain_timeout, reason);
        if let Some(session) = &mut self.session {
            session.drain();
        }
    }

    fn unsettled(&self) -> usize {
        self.session.as_ref().map_or(self.unsettled.len(), |session| session.unsettled().len())
    }

    /// Says goodbye once everything is finished and judged, or the time for it is over.
    fn go_on_leaving(&mut self, now: Instant) {
        let is_done = self.running.is_empty() && self.unsettled() == 0;
        match self.leaving {
            Leaving::Until(due, reason) if is_done || now >= due => {
                for delivery in self.running.values() {
                    delivery.cancel(CancelReason::Leaving);
                }
                self.leaving = Leaving::Said(reason);
                match &mut self.session {
                    Some(session) => {
                        let word = match reason {
                            LeftReason::Drained => m::GoodbyeReason::Drained,
                            LeftReason::Shutdown => m::GoodbyeReason::ClientGoodbye,
                        };
                        session.say_goodbye(word, now);
                    }
                    None => self.left(reason),
                }
            }
            Leaving::No if self.server_drains && is_done => {
                if let Some(session) = &mut self.session {
                    session.say_goodbye(m::GoodbyeReason::Drained, now);
                }
            }
            _ => {}
        }
    }

    fn left(&mut self, reason: LeftReason) {
        let abandoned = self.running.len().saturating_add(self.unsettled()) as u64;
        self.end(Ok(Left { reason, finished: self.settled, abandoned }));
    }

    fn end(&mut self, ended: Result<Left, WorkerError>) {
        if !self.over {
            self.over = true;
            self.fresh.push(News::Ended(ended));
            self.hand_over();
        }
    }

    fn hear(&mut self, now: Instant) {
        while let Some(event) = self.session.as_mut().and_then(ClientSession::poll_event) {
            self.on(event, now);
        }
    }

    fn on(&mut self, event: Event, now: Instant) {
        match event {
            Event::Welcome(welcome) => {
                self.welcomed = Some(now);
                self.payload_max = usize::try_from(welcome.limits.payload).unwrap_or(usize::MAX);
                let register = self.register();
                if let Some(session) = &mut self.session {
                    session.register(register);
                }
            }
            Event::Registered(ack) => self.on_registered(ack, now),
            Event::Offer(offer, payload) => self.on_offer(*offer, payload, now),
            Event::Verdict { task_id, lease, verdict } => {
                self.on_verdict(&task_id, lease, verdict);
            }
            Event::Cancel { lease, reason, .. } => self.on_cancel(lease, reason),
            Event::Signal(signal, payload) => self.on_signal(signal, payload),
            Event::Drain(drain) => {
                self.tell(WorkerEvent::Draining);
                if drain.scope == "server" {
                    self.server_drains = true;
                } else {
                    self.leave(LeftReason::Drained, now);
                }
            }
            Event::Refused { err, .. } => {
                let refusal = Refusal::of(err);
                if self.registered {
                    tracing::warn!(%refusal, "the server refused something");
                } else {
                    self.refused = Some(refusal);
                }
            }
            Event::Ended(ended) => self.ended = Some(ended),
            _ => {}
        }
    }

    fn register(&self) -> m::Register {
        let config = &self.config;
        let types = config.types.iter().map(|name| m::TypeEntry {
            name: name.as_str().to_owned(),
            schema_hash: None,
            max_concurrent: None,
        });
        m::Register {
            req: 1,
            pools: vec![m::PoolEntry {
                namespaces: config.namespaces.iter().map(|n| n.as_str().to_owned()).collect(),
                task_queue: config.task_queue.as_str().to_owned(),
                types: types.collect(),
            }],
            node: config.node.as_ref().map(|node| node.as_str().to_owned()),
            zone: None,
            labels: Vec::new(),
            identity: config.identity.chars().take(IDENTITY_CHARS).collect(),
            instance_id: Bytes::copy_from_slice(&self.instance),
            build_id: String::new(),
            capacity: config.credit,
            capabilities: Vec::new(),
            weight: config.weight,
        }
    }

    fn on_registered(&mut self, ack: m::RegisterAck, now: Instant) {
        if let Some(err) = ack.err {
            self.refused = Some(Refusal::of(err));
            if let Some(session) = &mut self.session {
                session.say_goodbye(m::GoodbyeReason::ClientGoodbye, now);
            }
            return;
        }
        self.registered = true;
        self.granted = 0;
        let mut pools = Vec::with_capacity(ack.pools.len());
        for pool in ack.pools {
            let Ok(key) = PoolKey::new(&pool.namespace, &pool.task_queue, &pool.r#type) else {
                continue;
            };
            if let Some(err) = pool.err {
                let refusal = Refusal::of(err);
                self.tell(WorkerEvent::PoolRefused { pool: key.to_string(), refusal });
            }
            let types = &self.config.types;
            let handler = types.iter().position(|name| *name == key.activity_type);
            pools.push((key, handler.unwrap_or(usize::MAX)));
        }
        self.pools = pools;
        let worker_id = WorkerId::new(ack.worker_id);
        self.tell(WorkerEvent::Registered { worker_id, address: self.address.clone() });
        if self.leaving == Leaving::No {
            self.grant();
        }
    }

    fn on_offer(&mut self, offer: m::Offer, payload: Bytes, now: Instant) {
        let Some(session) = &mut self.session else { return };
        if self.leaving != Leaving::No || !session.is_open() {
            // It was on its way when this side said that it takes nothing more. Behind a goodbye
            // nobody reads the answer: with it the server has the offer back. What a server that
            // leaves itself had sent before is still done.
            session.reject(offer.lease, m::RejectReason::Draining);
            return;
        }
        let pool = usize::try_from(offer.pool_ref).ok().and_then(|at| self.pools.get(at));
        let found = pool.filter(|(_, handler)| *handler < self.config.types.len());
        let Some((pool, handler)) = found else {
            session.reject(offer.lease, m::RejectReason::UnknownType);
            return;
        };
        let Some(task_id) = TaskId::from_slice(&offer.task_id) else {
            session.reject(offer.lease, m::RejectReason::Malformed);
            return;
        };
        // Accepted before the handler sees it, so that a payload which kills the process counts.
        session.accept(offer.lease, now);
        let lease = Lease { id: offer.lease.id, epoch: offer.lease.epoch };
        let facts = Facts {
            task_id,
            lease,
            pool: pool.clone(),
            attempt: offer.attempt,
            deliveries: offer.deliveries,
            owner_key: offer.owner_key,
            ordinal: offer.ordinal,
            generation: offer.generation,
            content_type: String::from_utf8_lossy(&offer.content_type).into_owned(),
            headers: offer.headers.into_iter().map(|pair| (pair.name, pair.value)).collect(),
            idempotency_key: offer.idempotency_key.unwrap_or_default(),
            last_progress: offer.last_progress,
            start_to_close: (offer.start_to_close > 0)
                .then(|| Duration::from_millis(offer.start_to_close)),
        };
        let report = Arc::clone(&self.reports);
        let delivery = Delivery::new(facts, report);
        self.running.insert((lease.epoch, lease.id), Arc::clone(&delivery));
        self.fresh.push(News::Start { handler: *handler, input: payload, delivery });
    }

    fn on_verdict(&mut self, task_id: &Bytes, lease: m::Lease, verdict: u32) {
        const APPLIED: u32 = m::VerdictKind::Applied as u32;
        const DUPLICATE: u32 = m::VerdictKind::Duplicate as u32;
        const STALE: u32 = m::VerdictKind::Stale as u32;
        self.settled = self.settled.saturating_add(1);
        self.settled_here = true;
        let verdict = match verdict {
            APPLIED | DUPLICATE => return,
            STALE => "stale",
            _ => "unknown_lease",
        };
        let Some(task_id) = TaskId::from_slice(task_id) else { return };
        let lease = Lease { id: lease.id, epoch: lease.epoch };
        self.tell(WorkerEvent::ResultRefused { task_id, lease, verdict: verdict.to_owned() });
    }

    fn on_cancel(&mut self, lease: m::Lease, reason: u32) {
        match self.running.get(&(lease.epoch, lease.id)) {
            Some(delivery) => delivery.cancel(match reason {
                r if r == m::CancelKind::Expired as u32 => CancelReason::TimedOut,
                r if r == m::CancelKind::Asked as u32 => CancelReason::Requested,
                _ => CancelReason::LeaseLost,
            }),
            None => {
                // Nobody here is at work on it: the server may have its unit back.
                if let Some(session) = &mut self.session {
                    session.reject(lease, m::RejectReason::Malformed);
                }
            }
        }
    }

    fn on_signal(&mut self, signal: m::Signal, payload: Bytes) {
        let m::Signal { lease, seq, kind } = signal;
        let verdict = match self.running.get(&(lease.epoch, lease.id)) {
            Some(delivery) if delivery.signal(Signal { kind, payload }) => m::SignalKind::Applied,
            Some(_) => m::SignalKind::Unsupported,
            None => m::SignalKind::Stale,
        };
        if let Some(session) = &mut self.session {
            session.answer_signal(lease, seq, verdict);
        }
    }

    /// Says so when no work could come for long.
    fn warn_of_idleness(&mut self, now: Instant) {
        if self.granted > 0 && self.registered {
            self.idle_since = now;
            self.warned = None;
            return;
        }
        let since = self.warned.unwrap_or(self.idle_since);
        if now.saturating_since(since) >= NO_CREDIT_AFTER {
            self.warned = Some(now);
            let since = now.saturating_since(self.idle_since);
            self.tell(WorkerEvent::NoCredit { since });
        }
    }

    fn next_warning(&self) -> Option<Instant> {
        let is_idle = self.granted == 0 || !self.registered;
        is_idle.then(|| self.warned.unwrap_or(self.idle_since) + NO_CREDIT_AFTER)
    }

    fn next_due(&self) -> Option<Instant> {
        let leaving = match self.leaving {
            Leaving::Until(due, _) => Some(due),
            _ => None,
        };
        [leaving, self.next_warning()].into_iter().flatten().min()
    }
}

/// Characters of an identity; the server takes no more than 256 bytes.
const IDENTITY_CHARS: usize = 64;

/// The answer of a handler in the words of the wire.
/// What the server would not take is a failure already here: it is not sent in vain.
fn within_limits(answer: Answer, payload_max: usize) -> Answer {
    let output = answer?;
    let (size, type_size) = (output.bytes().len(), output.content_type().len());
    if size > payload_max {
        let what = format!("the result has {size} bytes, the server takes {payload_max}");
        return Err(Failure::terminal(what).code("result_refused"));
    }
    if type_size > limits::CONTENT_TYPE_MAX {
        let max = limits::CONTENT_TYPE_MAX;
        let what = format!("the result's content type has {type_size} bytes, at most {max}");
        return Err(Failure::terminal(what).code("result_refused"));
    }
    Ok(output)
}

fn result(facts: &Facts, answer: Answer) -> (m::TaskResult, Bytes) {
    let mut result = m::TaskResult {
        task_id: Bytes::copy_from_slice(facts.task_id.as_bytes()),
        lease: m::Lease { id: facts.lease.id, epoch: facts.lease.epoch },
        ..m::TaskResult::default()
    };
    match answer {
        Ok(output) => {
            let (payload, content_type) = output.into_parts();
            result.content_type = content_type.into();
            (result, payload)
        }
        Err(failure) => {
            let class = match failure.class() {
                FailureClass::Terminal => m::FailClass::Terminal,
                FailureClass::Infrastructure => m::FailClass::Infrastructure,
                // The lease of a cancelled delivery is over: whatever is said settles nothing.
                FailureClass::Retryable | FailureClass::Cancelled => m::FailClass::Retryable,
            };
            let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            result.fail = Some(Box::new(m::Fail {
                class: class as u32,
                code: failure.code_text().to_owned(),
                message: failure.message().to_owned(),
                details: failure.details_bytes().clone(),
                retry_after: failure.retry_after().map(millis),
            }));
            (result, Bytes::new())
        }
    }
}

impl Driver for WorkerLife {
    fn handle_frame(
        &mut self,
        channel: Channel,
        frame: Frame,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let taken = session.handle_frame(channel, frame, now);
        self.hear(now);
        taken
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(Channel, Frame)> {
        self.hand_over();
        self.take_commands(now);
        self.go_on_leaving(now);
        self.session.as_mut()?.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.as_ref().and_then(Driver::poll_timeout);
        [session, self.next_due()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(session) = &mut self.session {
            session.handle_timeout(now);
        }
        self.hear(now);
        self.warn_of_idleness(now);
        self.go_on_leaving(now);
        self.hand_over();
    }

    fn handle_lost(&mut self, reason: Lost, now: Instant) {
        if let Some(session) = &mut self.session {
            session.handle_lost(reason, now);
        }
        self.hear(now);
        self.hand_over();
    }

    fn is_closed(&self) -> bool {
        self.over || self.session.as_ref().is_none_or(Driver::is_closed)
    }
}

impl Life for WorkerLife {
    fn begin(&mut self, address: &str, now: Instant) {
        address.clone_into(&mut self.address);
        (self.welcomed, self.ended, self.refused) = (None, None, None);
        (self.registered, self.settled_here, self.server_drains) = (false, false, false);
        self.granted = 0;
        let hello = ClientHello {
            sdk_name: self.config.connect.sdk_name.clone(),
            sdk_version: env!("CARGO_PKG_VERSION").to_owned(),
            wall_clock: 0,
        };
        let unsettled = std::mem::take(&mut self.unsettled);
        let lanes = self.config.connect.lanes;
        self.session = Some(ClientSession::new(hello, unsettled, lanes, now));
    }

    fn ended(
        &mut self,
        link: Result<(), LinkError>,
        now: Instant,
    ) -> Result<SessionRecord, ConnectError> {
        self.hear(now);
        if let Some(mut session) = self.session.take() {
            self.unsettled = session.take_unsettled();
        }
        let was_registered = std::mem::take(&mut self.registered);
        self.granted = 0;
        let ended = self.ended.take();
        if let Leaving::Said(reason) = self.leaving {
            self.left(reason);
        }
        if was_registered && !self.over {
            self.idle_since = now;
            let reason = disconnected(ended.as_ref(), &link);
            self.tell(WorkerEvent::Disconnected { reason });
        }
        self.hand_over();
        match self.welcomed {
            Some(since) if was_registered => Ok(SessionRecord {
                lived: now.saturating_since(since),
                settled: self.settled_here,
                drained: self.server_drains
                    || matches!(
                        ended,
                        Some(Ended::Goodbye { reason: Some(m::GoodbyeReason::ServerShutdown), .. })
                    ),
            }),
            _ => {
                let (address, refused) = (self.address.clone(), self.refused.take());
                Err(never_welcomed(address, refused, ended, link))
            }
        }
    }

    fn tend(&mut self, now: Instant) {
        if self.idle_since == Instant::ZERO {
            self.idle_since = now;
        }
        self.take_commands(now);
        self.go_on_leaving(now);
        self.warn_of_idleness(now);
        self.hand_over();
    }

    fn tend_at(&self) -> Option<Instant> {
        self.next_due()
    }

    fn dial_failed(&mut self, error: ConnectError, retry_in: Option<Duration>, _now: Instant) {
        if retry_in.is_none() {
            self.end(Err(WorkerError::Connect(error)));
            return;
        }
        let error = Arc::new(error);
        self.tell(WorkerEvent::DialFailed { error, retry_in });
        self.hand_over();
    }

    fn fail_fast(&self) -> bool {
        self.config.fail_fast
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// Why a session of a registered worker is over, for people.
fn disconnected(ended: Option<&Ended>, link: &Result<(), LinkError>) -> String {
    match (ended, link) {
        (Some(Ended::Goodbye { message, .. }), _) => format!("the server said: {message}"),
        (Some(Ended::Silent), _) => "the server was silent for too long".to_owned(),
        (Some(Ended::Violation(error)), _) if error.code() == WireCode::ProtocolViolation => {
            format!("the server broke the protocol: {}", error.message())
        }
        (_, Err(error)) => crate::failure::Chain(error).to_string(),
        (Some(Ended::Done), Ok(())) => "goodbye was said".to_owned(),
        _ => "the connection is gone".to_owned(),
    }
}
