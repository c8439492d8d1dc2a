//! One session of a client: worker, producer, or both.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::Instant;

use super::event::{ClientHello, Ended, Event, Welcome};
use super::unsettled::Unsettled;
use crate::proto::messages as m;
use crate::proto::{
    Assembly, Channel, Departures, Driver, Feature, Frame, Loaded, Lost, PROTO_VERSION,
    ProtocolError, WireCode, limits,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Hello was queued; the answer has until then.
    Greeting(Instant),
    Open,
    /// Goodbye was said; the answer has until then.
    Leaving(Instant),
    Closed,
}

/// A client's side of one session. Sans-IO: see [`Driver`].
///
/// Commands queue frames; whoever gives one from outside the driver wakes the shell afterwards.
#[derive(Debug)]
pub struct ClientSession {
    stage: Stage,
    control: VecDeque<Frame>,
    lane: VecDeque<Frame>,
    accepts: Vec<m::Lease>,
    departures: Departures,
    assembly: Assembly<Frame>,
    events: VecDeque<Event>,
    unsettled: Unsettled,
    /// Reports of an earlier session that have no verdict on this one yet.
    resending: BTreeSet<(u64, u64)>,
    /// The credit to be granted once those are judged.
    credit: Option<u32>,
    credit_seq: u64,
    registered: bool,
    /// Deliveries that this side is at work on.
    running: BTreeSet<(u64, u64)>,
    /// Cancels of deliveries that were not at work here: perhaps their offers are still to come.
    early: VecDeque<(u64, u64)>,
    /// The server's goodbye, until the payloads are here whose frames came before it.
    parting: Option<Ended>,
    /// The newest of each that was not sent yet.
    progress: BTreeMap<(u64, u64), Bytes>,
    beat: Duration,
    beat_due: Option<Instant>,
    beat_seq: u64,
    beaten: Option<Instant>,
    heard: Instant,
    pinged: bool,
    nonce: u64,
    /// Lanes to send on, and the next one.
    lanes: u8,
    next_lane: u8,
}

impl ClientSession {
    /// Creates a session and queues its hello. `unsettled` comes from the session before.
    #[must_use]
    pub fn new(hello: ClientHello, unsettled: Unsettled, lanes: u8, now: Instant) -> Self {
        let frame = m::Hello {
            proto_min: PROTO_VERSION,
            proto_max: PROTO_VERSION,
            features: Feature::ALL,
            sdk_name: hello.sdk_name,
            sdk_version: hello.sdk_version,
            roles: Vec::new(),
            token: None,
            resume_token: None,
            max_frame: 0,
            clock: hello.wall_clock,
        };
        Self {
            stage: Stage::Greeting(now + limits::HELLO_DEADLINE),
            control: VecDeque::from([Frame::Hello(Box::new(frame))]),
            lane: VecDeque::new(),
            accepts: Vec::new(),
            departures: Departures::default(),
            assembly: Assembly::new(limits::PAYLOAD_CAP),
            events: VecDeque::new(),
            unsettled,
            resending: BTreeSet::new(),
            credit: None,
            credit_seq: 0,
            registered: false,
            running: BTreeSet::new(),
            early: VecDeque::new(),
            parting: None,
            progress: BTreeMap::new(),
            beat: Duration::from_secs(7),
            beat_due: None,
            beat_seq: 0,
            beaten: None,
            heard: now,
            pinged: false,
            nonce: 0,
            lanes: lanes.max(1),
            next_lane: 0,
        }
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes the outcomes without verdict, for the next session.
    #[must_use]
    pub fn take_unsettled(&mut self) -> Unsettled {
        std::mem::take(&mut self.unsettled)
    }

    /// Outcomes without verdict.
    #[must_use]
    pub const fn unsettled(&self) -> &Unsettled {
        &self.unsettled
    }

    /// Says whether the server said hello and nobody said goodbye.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// How many deliveries of this session are accepted and not reported.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// How many frames wait to be sent.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.control.len().saturating_add(self.lane.len())
    }

    /// Registers a worker.
    pub fn register(&mut self, register: m::Register) {
        self.control.push_back(Frame::Register(Box::new(register)));
    }

    /// Changes what the worker serves.
    pub fn update(&mut self, update: m::Register) {
        self.control.push_back(Frame::Update(Box::new(update)));
    }

    /// Grants credit: how many deliveries the worker has at most. Sent once the worker is registered
    /// and the outcomes of earlier sessions are judged.
    pub fn grant(&mut self, limit: u32) {
        self.credit = Some(limit);
        self.send_credit();
    }

    fn send_credit(&mut self) {
        if !self.registered || !self.resending.is_empty() || self.stage != Stage::Open {
            return;
        }
        if let Some(limit) = self.credit.take() {
            self.credit_seq = self.credit_seq.saturating_add(1);
            let scope = Some(m::CreditScope { all: true, pool_ref: None, type_ref: None });
            let credit = m::Credit { scope, limit, seq: self.credit_seq };
            self.control.push_back(Frame::Credit(credit));
        }
    }

    /// Accepts a delivery. Goes out before any result that is reported later.
    pub fn accept(&mut self, lease: m::Lease, now: Instant) {
        self.accepts.push(lease);
        self.running.insert((lease.epoch, lease.id));
        if self.beat_due.is_none() {
            self.beat_due = Some(now + self.beat);
        }
    }

    /// Says what a delivery has come to. Goes out with a beat soon; the newest replaces the one
    /// before. Nothing for a delivery that this side is not at work on.
    pub fn progress(&mut self, lease: m::Lease, bytes: Bytes, now: Instant) {
        let key = (lease.epoch, lease.id);
        if self.running.contains(&key) && bytes.len() <= limits::PROGRESS_MAX {
            self.progress.insert(key, bytes);
            let soon = self.beaten.map_or(now, |last| (last + limits::PROGRESS_PAUSE).max(now));
            self.beat_due = Some(self.beat_due.map_or(soon, |due| due.min(soon)));
        }
    }

    fn send_beat(&mut self, now: Instant) {
        self.beat_seq = self.beat_seq.wrapping_add(1);
        self.beaten = Some(now);
        let mut progress = Vec::new();
        let mut size = 0usize;
        while size < limits::HEADER_MAX / 2
            && let Some(((epoch, id), bytes)) = self.progress.pop_first()
        {
            size = size.saturating_add(bytes.len()).saturating_add(32);
            progress.push(m::Progress { lease: m::Lease { id, epoch }, bytes });
        }
        let pause = if self.progress.is_empty() { self.beat } else { limits::PROGRESS_PAUSE };
        self.beat_due = Some(now + pause);
        let seq = self.beat_seq;
        let beat = m::Heartbeat { seq, all: true, progress, ..m::Heartbeat::default() };
        self.control.push_back(Frame::Heartbeat(beat));
    }

    /// Answers a signal.
    pub fn answer_signal(&mut self, lease: m::Lease, seq: u64, verdict: m::SignalKind) {
        let verdict = verdict as u32;
        self.control.push_back(Frame::SignalAck(m::SignalAck { lease, seq, verdict }));
    }

    /// Hands a delivery back that was not accepted, or that is cancelled and not known.
    pub fn reject(&mut self, lease: m::Lease, reason: m::RejectReason) {
        self.lane.push_back(Frame::Reject(m::Reject { lease, code: reason as u32 }));
    }

    /// Reports the end of a delivery, and keeps the report until its verdict.
    pub fn report(&mut self, result: m::TaskResult, payload: Bytes) {
        self.unsettled.keep(&result, &payload);
        let key = (result.lease.epoch, result.lease.id);
        self.running.remove(&key);
        self.progress.remove(&key);
        if self.running.is_empty() {
            self.beat_due = None;
        }
        if self.stage == Stage::Open {
            self.send_report(result, payload);
        }
    }

    fn send_report(&mut self, result: m::TaskResult, payload: Bytes) {
        self.lane.push_back(Frame::Result(result, payload));
    }

    /// The next frame of the lanes. What has a large payload waits while too many of those are on
    /// their way, and all behind it.
    fn next_of_lane(&mut self) -> Option<Frame> {
        let may_go = match self.lane.front()? {
            Frame::Goodbye(_) => self.departures.is_empty(),
            Frame::SubmitBatch(..) => true,
            frame => {
                frame.payload().len() <= limits::INLINE_PAYLOAD_MAX || !self.departures.is_full()
            }
        };
        if !may_go {
            return None;
        }
        let mut frame = self.lane.pop_front()?;
        match &mut frame {
            Frame::Submit(submit, payload) => {
                *payload = self.departures.load(std::mem::take(payload), &mut submit.stream_ref);
            }
            Frame::Result(result, payload) => {
                *payload = self.departures.load(std::mem::take(payload), &mut result.stream_ref);
            }
            _ => {}
        }
        Some(frame)
    }

    /// Hands a task in.
    pub fn submit(&mut self, submit: Box<m::Submit>, payload: Bytes) {
        self.lane.push_back(Frame::Submit(submit, payload));
    }

    /// Hands tasks in. Their payloads lie one behind the other.
    pub fn submit_batch(&mut self, batch: m::SubmitBatch, payloads: Bytes) {
        self.lane.push_back(Frame::SubmitBatch(batch, payloads));
    }

    /// Waits for the outcome of a task.
    pub fn wait(&mut self, wait: m::Await) {
        self.lane.push_back(Frame::Await(wait));
    }

    /// Asks a question.
    pub fn query(&mut self, query: m::Query) {
        self.lane.push_back(Frame::Query(query));
    }

    /// Has tasks stop.
    pub fn cancel_task(&mut self, cancel: m::CancelTask) {
        self.lane.push_back(Frame::CancelTask(cancel));
    }

    /// Asks to be told what happens, or no more.
    pub fn watch(&mut self, watch: m::Watch) {
        self.lane.push_back(Frame::Watch(watch));
    }

    /// Does what an operator does.
    pub fn admin(&mut self, admin: m::Admin) {
        self.lane.push_back(Frame::Admin(admin));
    }

    /// Tells the server that this worker finishes what it has and takes nothing more.
    pub fn drain(&mut self) {
        if self.registered {
            self.control.push_back(Frame::Drain(m::Drain::default()));
        }
    }

    /// Ends the session in order.
    pub fn say_goodbye(&mut self, reason: m::GoodbyeReason, now: Instant) {
        match self.stage {
            Stage::Open => {
                let goodbye = m::Goodbye { reason: reason.number(), message: String::new() };
                // On the first lane, behind all that was said there before.
                self.lane.push_back(Frame::Goodbye(goodbye));
                self.stage = Stage::Leaving(now + limits::GOODBYE_DEADLINE);
            }
            Stage::Greeting(_) => self.end(Ended::Done),
            Stage::Leaving(_) | Stage::Closed => {}
        }
    }

    /// Answers the server's goodbye once nothing is awaited that was said before it.
    fn part(&mut self) {
        if !self.assembly.is_waiting()
            && let Some(ended) = self.parting.take()
        {
            self.control.push_back(Frame::GoodbyeAck(m::Goodbye::default()));
            self.end(ended);
        }
    }

    fn end(&mut self, ended: Ended) {
        if self.stage != Stage::Closed {
            self.stage = Stage::Closed;
            self.beat_due = None;
            self.lane.clear();
            self.accepts.clear();
            self.departures.clear();
            self.events.push_back(Event::Ended(ended));
        }
    }

    fn take(&mut self, frame: Frame, now: Instant) -> Result<(), ProtocolError> {
        match (self.stage, &frame) {
            (Stage::Closed, _) => return Ok(()),
            (
                Stage::Greeting(_),
                Frame::HelloAck(_) | Frame::Error(_) | Frame::Goodbye(_) | Frame::Ping(_),
            )
            | (Stage::Open | Stage::Leaving(_), _) => {}
            (Stage::Greeting(_), other) => {
                return Err(ProtocolError::violation(format!("{} before HelloAck", other.name())));
            }
        }
        match frame {
            Frame::HelloAck(ack) => self.welcome(*ack, now)?,
            Frame::Ping(ping) => self.control.push_back(Frame::Pong(ping)),
            Frame::Pong(_) | Frame::DrainAck(_) => {}
            Frame::Demand(demand) => self.events.push_back(Event::Demand(demand)),
            Frame::Goodbye(goodbye) => {
                let reason = m::GoodbyeReason::from_number(goodbye.reason);
                self.parting = Some(Ended::Goodbye { reason, message: goodbye.message });
                // Payloads on their way have streams of their own, which it may have overtaken.
                self.stage = Stage::Leaving(now + limits::GOODBYE_DEADLINE);
                self.part();
            }
            Frame::GoodbyeAck(_) => self.end(Ended::Done),
            Frame::Error(error) => {
                let err = error.err.unwrap_or_default();
                self.events.push_back(Event::Refused { req: error.req, err });
            }
            Frame::RegisterAck(ack) => self.registered(ack),
            Frame::Offer(offer, payload) => match offer.stream_ref {
                Some(at) => self.await_payload(at, Frame::Offer(offer, payload))?,
                None => self.offered(offer, payload),
            },
            Frame::Outcome(outcome, payload) => match outcome.stream_ref {
                Some(at) => self.await_payload(at, Frame::Outcome(outcome, payload))?,
                None => self.events.push_back(Event::Outcome(outcome, payload)),
            },
            Frame::Payload { stream_ref, offset, last, bytes } => {
                if let Some((frame, loaded)) =
                    self.assembly.piece(stream_ref, offset, last, &bytes)?
                {
                    self.take_loaded(frame, loaded);
                }
                self.part();
            }
            Frame::ResultAck(ack) => {
                for verdict in ack.verdicts {
                    self.judged(verdict);
                }
            }
            Frame::Cancel(cancel) => self.cancelled(cancel),
            Frame::HeartbeatAck(ack) => {
                for cancel in ack.cancel {
                    self.cancelled(cancel);
                }
                for lease in ack.lost {
                    let reason = m::CancelKind::Stale as u32;
                    self.cancelled(m::Cancel { lease, reason, ..m::Cancel::default() });
                }
            }
            Frame::Signal(signal, payload) => {
                self.events.push_back(Event::Signal(signal, payload));
            }
            Frame::Event(event) => self.events.push_back(Event::Watched(event)),
            Frame::CancelTaskAck(ack) => self.events.push_back(Event::CancelTaskAck(ack)),
            Frame::Drain(drain) => {
                let running = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
                self.control.push_back(Frame::DrainAck(m::DrainAck { running }));
                self.events.push_back(Event::Drain(drain));
            }
            Frame::SubmitAck(ack) => self.events.push_back(Event::SubmitAck(ack)),
            Frame::SubmitBatchAck(ack) => self.events.push_back(Event::SubmitBatchAck(ack)),
            Frame::Reply(reply) => self.events.push_back(Event::Reply(reply)),
            Frame::AdminAck(ack) => self.events.push_back(Event::AdminAck(ack)),
            other => {
                let what = format!("{} is not for a client", other.name());
                return Err(ProtocolError::violation(what));
            }
        }
        Ok(())
    }

    fn cancelled(&mut self, cancel: m::Cancel) {
        let m::Cancel { lease, reason, grace, message } = cancel;
        let key = (lease.epoch, lease.id);
        if !self.running.contains(&key) && !self.early.contains(&key) {
            if self.early.len() >= limits::EARLY_CANCELS_MAX {
                self.early.pop_front();
            }
            self.early.push_back(key);
        }
        let grace = Duration::from_millis(grace);
        self.events.push_back(Event::Cancel { lease, reason, grace, message });
    }

    fn welcome(&mut self, ack: m::HelloAck, now: Instant) -> Result<(), ProtocolError> {
        if !matches!(self.stage, Stage::Greeting(_)) {
            return Err(ProtocolError::violation("a second HelloAck"));
        }
        if ack.proto != PROTO_VERSION {
            let what = format!("the server chose version {}", ack.proto);
            return Err(ProtocolError::new(WireCode::VersionUnsupported, what));
        }
        self.stage = Stage::Open;
        self.heard = now;
        self.beat = Duration::from_millis(ack.beat.max(10));
        self.events.push_back(Event::Welcome(Welcome {
            server_id: ack.server_id,
            session_id: ack.session_id,
            lease_ttl: Duration::from_millis(ack.lease_ttl),
            accept_timeout: Duration::from_millis(ack.accept_timeout),
            limits: ack.limits.unwrap_or_default(),
        }));
        Ok(())
    }

    /// The worker is registered: first the outcomes that nobody judged, then the credit.
    fn registered(&mut self, ack: m::RegisterAck) {
        if ack.err.is_none() && !self.registered {
            self.registered = true;
            let reports = self.unsettled.all();
            let keys = reports.iter().map(|(result, _)| (result.lease.epoch, result.lease.id));
            self.resending = keys.collect();
            for (result, payload) in reports {
                self.send_report(result, payload);
            }
            self.send_credit();
        }
        self.events.push_back(Event::Registered(ack));
    }

    fn judged(&mut self, verdict: m::Verdict) {
        let m::Verdict { lease, verdict } = verdict;
        if let Some(task_id) = self.unsettled.settled(lease) {
            self.resending.remove(&(lease.epoch, lease.id));
            self.events.push_back(Event::Verdict { task_id, lease, verdict });
            self.send_credit();
        }
    }

    fn await_payload(&mut self, at: u64, frame: Frame) -> Result<(), ProtocolError> {
        if let Some((frame, loaded)) = self.assembly.expect(at, frame)? {
            self.take_loaded(frame, loaded);
        }
        Ok(())
    }

    fn take_loaded(&mut self, frame: Frame, loaded: Loaded) {
        // This side takes what the protocol allows; more has ended the session.
        let Loaded::Whole(payload) = loaded else { return };
        match frame {
            Frame::Offer(offer, _) => self.offered(offer, payload),
            Frame::Outcome(outcome, _) => {
                self.events.push_back(Event::Outcome(outcome, payload));
            }
            _ => {}
        }
    }

    fn offered(&mut self, offer: Box<m::Offer>, payload: Bytes) {
        let key = (offer.lease.epoch, offer.lease.id);
        if let Some(at) = self.early.iter().position(|early| *early == key) {
            // Its cancel came first, on another stream. Nobody will be at work on it.
            self.early.remove(at);
            self.reject(offer.lease, m::RejectReason::Malformed);
            return;
        }
        if offer.attempt == 0 || offer.task_id.len() != 16 || offer.lease.epoch == 0 {
            self.reject(offer.lease, m::RejectReason::Malformed);
            return;
        }
        self.events.push_back(Event::Offer(offer, payload));
    }

    fn lane(&mut self) -> Channel {
        if self.lanes == 1 {
            return Channel::Lane(0);
        }
        let lane = self.next_lane;
        self.next_lane = lane.saturating_add(1).checked_rem(self.lanes).unwrap_or(0);
        Channel::Lane(lane)
    }
}

impl Driver for ClientSession {
    fn handle_frame(
        &mut self,
        _channel: Channel,
        frame: Frame,
        now: Instant,
    ) -> Result<(), ProtocolError> {
        self.heard = now;
        self.pinged = false;
        self.take(frame, now).inspect_err(|error| {
            let err = m::Err {
                code: error.code().number(),
                message: error.message().to_owned(),
                ..m::Err::default()
            };
            self.control.push_back(Frame::Error(m::Error { req: 0, err: Some(err) }));
            let reason = m::GoodbyeReason::ProtocolViolation.number();
            let message = error.message().to_owned();
            self.control.push_back(Frame::Goodbye(m::Goodbye { reason, message }));
            self.end(Ended::Violation(error.clone()));
        })
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Channel, Frame)> {
        if matches!(self.stage, Stage::Greeting(_)) {
            // Only the hello goes out before the welcome.
            return match self.control.front()? {
                Frame::Hello(_) | Frame::Pong(_) => {
                    self.control.pop_front().map(|frame| (Channel::Control, frame))
                }
                _ => None,
            };
        }
        if let Some(frame) = self.control.pop_front() {
            return Some((Channel::Control, frame));
        }
        // Ahead of everything else: the accept clock runs, and results come after their accepts.
        if !self.accepts.is_empty() {
            let leases = std::mem::take(&mut self.accepts);
            return Some((Channel::Lane(0), Frame::Accept(m::Accept { leases })));
        }
        if let Some(frame) = self.next_of_lane() {
            // One lease stays on one lane: the worker's frames on the first, where offers come.
            let channel = match &frame {
                Frame::Submit(..) | Frame::SubmitBatch(..) => self.lane(),
                _ => Channel::Lane(0),
            };
            return Some((channel, frame));
        }
        self.departures.next_piece().map(|frame| (Channel::Lane(0), frame))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.stage {
            Stage::Greeting(due) | Stage::Leaving(due) => Some(due),
            Stage::Open => {
                let silence = if self.pinged { limits::DEAD_AFTER } else { limits::PING_AFTER };
                let alive = self.heard + silence;
                Some(self.beat_due.map_or(alive, |beat| beat.min(alive)))
            }
            Stage::Closed => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self.stage {
            Stage::Greeting(due) if now >= due => self.end(Ended::NoWelcome),
            Stage::Leaving(due) if now >= due => {
                let ended = self.parting.take().unwrap_or(Ended::Done);
                self.end(ended);
            }
            Stage::Open => {
                let silence = now.saturating_since(self.heard);
                if silence >= limits::DEAD_AFTER {
                    self.end(Ended::Silent);
                    return;
                }
                if silence >= limits::PING_AFTER && !self.pinged {
                    self.pinged = true;
                    self.nonce = self.nonce.wrapping_add(1);
                    let ping = m::Ping { nonce: self.nonce, deadline: 0 };
                    self.control.push_back(Frame::Ping(ping));
                }
                if self.beat_due.is_some_and(|due| now >= due) {
                    self.send_beat(now);
                }
            }
            Stage::Greeting(_) | Stage::Leaving(_) | Stage::Closed => {}
        }
    }

    fn handle_lost(&mut self, reason: Lost, _now: Instant) {
        self.end(Ended::Lost(reason));
    }

    fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }
}
