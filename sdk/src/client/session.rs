//! A client's life over many sessions.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use slipswitch_core::{Instant, TaskId};
use slipswitch_net::client::{ClientHello, ClientSession, Ended, Event, Unsettled};
use slipswitch_net::proto::{Channel, Driver, Frame, Lost, ProtocolError, messages as m};
use slipswitch_net::quic::LinkError;
use tokio::sync::oneshot;

use super::ask::class_word;
use super::open::{BAD_ID, Open, fail_sent, fail_unsent, refuse_sent};
use super::request::{Accepted, Answer, Batch, Command, Question, Requests, Sink, Submission};
use crate::backoff::SessionRecord;
use crate::connect::ConnectOptions;
use crate::error::{ConnectError, QueryError, Refusal, SubmitErrorKind};
use crate::io::{IoWake, Life, spawn};
use crate::link::Queue;
use crate::outcome::{Ending, Outcome};
use crate::payload::Payload;
use crate::sync::Arc;

/// Frames that wait to be written, above which commands stay in their queue.
const BACKLOG_MAX: usize = 4_096;

type Commands = Queue<Command, Arc<IoWake>>;

/// Starts a client's IO thread and waits for its first session.
pub(super) async fn start(options: ConnectOptions) -> Result<Arc<Requests>, ConnectError> {
    let wake = Arc::new(IoWake::default());
    let queue: Arc<Commands> = Queue::new(Arc::clone(&wake));
    let requests =
        Arc::new(Requests { queue: Arc::clone(&queue), timeout: options.request_timeout });
    let (started, first) = oneshot::channel();
    let timeout = requests.timeout;
    let make = {
        let options = options.clone();
        move || ClientLife::new(&options, queue, started, timeout)
    };
    spawn(options, wake, make).map_err(|error| ConnectError::Local { source: error.into() })?;
    let lost = || ConnectError::Local { source: "the IO thread ended unexpectedly".into() };
    first.await.unwrap_or_else(|_| Err(lost()))?;
    Ok(requests)
}

struct ClientLife {
    commands: Arc<Commands>,
    batch: Vec<Command>,
    /// Taken from the queue and not sent yet.
    unsent: VecDeque<(Instant, Command)>,
    session: Option<ClientSession>,
    hello: ClientHello,
    lanes: u8,
    timeout: Duration,
    open: BTreeMap<u64, Open>,
    /// When requests are overdue, oldest first. Those that were answered are met and left out.
    overdue: VecDeque<(Instant, u64)>,
    next_req: u64,
    started: Option<oneshot::Sender<Result<(), ConnectError>>>,
    address: String,
    welcomed: Option<Instant>,
    ended: Option<Ended>,
    refused: Option<Refusal>,
    /// The queue is closed, or a close was asked for.
    closing: bool,
    closed: Vec<oneshot::Sender<()>>,
    over: bool,
}

impl ClientLife {
    fn new(
        options: &ConnectOptions,
        commands: Arc<Commands>,
        started: oneshot::Sender<Result<(), ConnectError>>,
        timeout: Duration,
    ) -> Self {
        let hello = ClientHello {
            sdk_name: options.sdk_name.clone(),
            sdk_version: env!("CARGO_PKG_VERSION").to_owned(),
            wall_clock: 0,
        };
        Self {
            commands,
            batch: Vec::new(),
            unsent: VecDeque::new(),
            session: None,
            hello,
            lanes: options.lanes,
            timeout,
            open: BTreeMap::new(),
            overdue: VecDeque::new(),
            next_req: 0,
            started: Some(started),
            address: String::new(),
            welcomed: None,
            ended: None,
            refused: None,
            closing: false,
            closed: Vec::new(),
            over: false,
        }
    }

    fn take_commands(&mut self, now: Instant) {
        if !self.commands.take(&mut self.batch) {
            self.closing = true;
        }
        for command in self.batch.drain(..) {
            match command {
                Command::Close(done) => {
                    self.closing = true;
                    self.closed.push(done);
                }
                command => self.unsent.push_back((now + self.timeout, command)),
            }
        }
    }

    /// Sends what waits, as long as the session takes it.
    fn send(&mut self, now: Instant) {
        let Some(session) = self.session.as_mut().filter(|session| session.is_open()) else {
            return;
        };
        while session.backlog() < BACKLOG_MAX
            && let Some((due, command)) = self.unsent.pop_front()
        {
            self.next_req += 1;
            let req = self.next_req;
            let open = match command {
                Command::Submit(submission) => {
                    let Submission { spec, payload, ack, outcome } = *submission;
                    let wait = outcome.is_some();
                    let submit = m::Submit { req, task: spec, stream_ref: None, wait };
                    session.submit(Box::new(submit), payload);
                    Open::Submit { ack, outcome }
                }
                Command::Batch(Batch { common, tasks, ack, outcomes }) => {
                    let size = tasks.iter().map(|(_, payload)| payload.len()).sum();
                    let mut payloads = BytesMut::with_capacity(size);
                    let mut items = Vec::with_capacity(tasks.len());
                    for (task, payload) in tasks {
                        payloads.extend_from_slice(&payload);
                        items.push(m::BatchTask { task, payload_len: payload.len() as u64 });
                    }
                    let wait = !outcomes.is_empty();
                    let common = Some(common);
                    let batch = m::SubmitBatch { req, tasks: items, wait, common };
                    session.submit_batch(batch, payloads.freeze());
                    Open::Batch { ack: Some(ack), outcomes }
                }
                Command::Watch(id, outcome) => {
                    let task_id = Bytes::copy_from_slice(id.as_bytes());
                    session.wait(m::Await { req, task_id, timeout: 0 });
                    Open::Outcome { id, sink: Sink::Handle(outcome) }
                }
                Command::Ask(question, answer) => {
                    match (*question).clone() {
                        Question::Query(query) => session.query(m::Query { req, ..query }),
                        Question::Admin(admin) => session.admin(m::Admin { req, ..admin }),
                        Question::Cancel(cancel) => {
                            session.cancel_task(m::CancelTask { req, ..cancel });
                        }
                    }
                    Open::Ask { question, answer }
                }
                Command::Close(done) => {
                    self.closed.push(done);
                    continue;
                }
            };
            self.overdue.push_back((due.max(now), req));
            self.open.insert(req, open);
        }
    }

    /// Says goodbye once everything was said that somebody waits to have said.
    fn leave(&mut self, now: Instant) {
        if !self.closing || self.over {
            return;
        }
        let asked = !self.closed.is_empty();
        let unanswered = self.open.values().any(|open| {
            matches!(open, Open::Submit { .. } | Open::Batch { .. } | Open::Ask { .. })
        });
        if !asked && (unanswered || !self.unsent.is_empty()) && self.session.is_some() {
            return;
        }
        match &mut self.session {
            Some(session) => session.say_goodbye(m::GoodbyeReason::ClientGoodbye, now),
            None => self.over = true,
        }
        if asked || self.session.is_none() {
            self.fail_all();
        }
    }

    /// The client is closed: nobody gets an answer any more.
    fn fail_all(&mut self) {
        for (_, command) in self.unsent.drain(..) {
            fail_unsent(command, || SubmitErrorKind::Closed, || QueryError::Closed);
        }
        for open in std::mem::take(&mut self.open).into_values() {
            fail_sent(open, &QueryError::Closed);
        }
        self.overdue.clear();
    }

    /// Fails what nobody answered in time.
    fn expire(&mut self, now: Instant) {
        let after = self.timeout;
        while self.unsent.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, command)) = self.unsent.pop_front() {
                match command {
                    // The outcome of a task may take as long as it takes.
                    Command::Watch(id, outcome) => {
                        let later = now + after;
                        self.unsent.push_back((later, Command::Watch(id, outcome)));
                        break;
                    }
                    command => fail_unsent(
                        command,
                        || SubmitErrorKind::NotConnected { after },
                        || QueryError::TimedOut { after },
                    ),
                }
            }
        }
        while self.overdue.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, req)) = self.overdue.pop_front() else { break };
            let has_answer = matches!(
                self.open.get(&req),
                None | Some(Open::Outcome { .. } | Open::Outcomes(_))
            );
            if !has_answer && let Some(open) = self.open.remove(&req) {
                fail_sent(open, &QueryError::TimedOut { after });
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let unsent = self.unsent.front().map(|(due, _)| *due);
        let sent = self.overdue.front().map(|(due, _)| *due);
        [unsent, sent].into_iter().flatten().min()
    }

    fn hear(&mut self, now: Instant) {
        while let Some(event) = self.session.as_mut().and_then(ClientSession::poll_event) {
            self.on(event, now);
        }
    }

    fn on(&mut self, event: Event, now: Instant) {
        match event {
            Event::Welcome(_) => {
                self.welcomed = Some(now);
                if let Some(started) = self.started.take() {
                    // Whoever waited may have given up; the queue is closed then.
                    drop(started.send(Ok(())));
                }
            }
            Event::SubmitAck(ack) => self.submitted(ack),
            Event::SubmitBatchAck(ack) => self.batch_submitted(ack),
            Event::Outcome(head, payload) => self.outcome(*head, payload),
            Event::Reply(mut reply) => {
                let answer = match reply.err.take() {
                    Some(err) => Err(QueryError::Refused(Refusal::of(*err))),
                    None => Ok(Answer::Reply(reply.clone())),
                };
                self.answered(reply.req, answer);
            }
            Event::AdminAck(ack) => {
                let answer = match ack.err {
                    Some(err) => Err(QueryError::Refused(Refusal::of(*err))),
                    None => Ok(Answer::Done(ack.affected)),
                };
                self.answered(ack.req, answer);
            }
            Event::CancelTaskAck(mut ack) => {
                let answer = match ack.err.take() {
                    Some(err) => Err(QueryError::Refused(Refusal::of(*err))),
                    None => Ok(Answer::Cancelled(ack.clone())),
                };
                self.answered(ack.req, answer);
            }
            Event::Refused { req, err } => {
                let refusal = Refusal::of(err);
                if self.welcomed.is_none() {
                    self.refused = Some(refusal);
                } else if let Some(open) = self.open.remove(&req) {
                    refuse_sent(open, refusal);
                } else {
                    tracing::warn!(%refusal, "the server refused something");
                }
            }
            Event::Ended(ended) => self.ended = Some(ended),
            _ => {}
        }
    }

    fn submitted(&mut self, ack: m::SubmitAck) {
        let Some(open) = self.open.remove(&ack.req) else { return };
        let Open::Submit { ack: told, outcome } = open else {
            self.open.insert(ack.req, open);
            return;
        };
        if let Some(err) = ack.err {
            let kind = || SubmitErrorKind::Refused(Refusal::of((*err).clone()));
            if let Some(told) = told {
                drop(told.send(Err(kind())));
            }
            if let Some(sink) = outcome {
                sink.refused(kind());
            }
            return;
        }
        let Some(id) = TaskId::from_slice(&ack.task_id) else {
            fail_sent(Open::Submit { ack: told, outcome }, &BAD_ID);
            return;
        };
        let accepted = Accepted { id, durable: ack.durable, deduplicated: ack.deduplicated };
        if let Some(told) = told {
            drop(told.send(Ok(accepted)));
        }
        if let Some(sink) = outcome {
            self.open.insert(ack.req, Open::Outcome { id, sink });
        }
    }

    fn batch_submitted(&mut self, ack: m::SubmitBatchAck) {
        let Some(open) = self.open.remove(&ack.req) else { return };
        let Open::Batch { ack: told, outcomes } = open else {
            self.open.insert(ack.req, open);
            return;
        };
        let refused = ack.err.or_else(|| ack.items.iter().find_map(|item| item.err.clone()));
        let accepted: Option<Vec<Accepted>> = ack
            .items
            .iter()
            .map(|item| {
                let id = TaskId::from_slice(&item.task_id)?;
                let (durable, deduplicated) = (item.durable, item.deduplicated);
                Some(Accepted { id, durable, deduplicated })
            })
            .collect();
        let answer = match (refused, accepted) {
            (Some(err), _) => Err(SubmitErrorKind::Refused(Refusal::of(*err))),
            (None, None) => Err(SubmitErrorKind::AnswerLost),
            (None, Some(accepted)) => {
                if !outcomes.is_empty() {
                    let ids = accepted.iter().map(|accepted| accepted.id);
                    let waiting = ids.zip(outcomes).collect();
                    self.open.insert(ack.req, Open::Outcomes(waiting));
                }
                Ok(accepted)
            }
        };
        if let Some(told) = told {
            drop(told.send(answer));
        }
    }

    fn outcome(&mut self, head: m::Outcome, payload: Bytes) {
        let req = head.req;
        let Some(id) = TaskId::from_slice(&head.task_id) else { return };
        let sink = match self.open.get_mut(&req) {
            Some(Open::Outcomes(waiting)) => {
                let sink = waiting.remove(&id).map(Sink::Handle);
                if waiting.is_empty() {
                    self.open.remove(&req);
                }
                sink
            }
            Some(Open::Outcome { .. }) => match self.open.remove(&req) {
                Some(Open::Outcome { sink, .. }) => Some(sink),
                _ => None,
            },
            _ => None,
        };
        let Some(sink) = sink else { return };
        match head.err.clone() {
            Some(err) => sink.unknown(id, QueryError::Refused(Refusal::of(*err))),
            None => sink.outcome(outcome(id, head, payload)),
        }
    }

    fn answered(&mut self, req: u64, answer: Result<Answer, QueryError>) {
        if let Some(Open::Ask { answer: told, .. }) = self.open.remove(&req) {
            drop(told.send(answer));
        }
    }

    /// A session is gone: what may be asked again is, what may have been done is said to be lost.
    fn ask_again(&mut self, now: Instant) {
        let due = now + self.timeout;
        self.overdue.clear();
        for open in std::mem::take(&mut self.open).into_values() {
            match open {
                Open::Outcome { id, sink: Sink::Handle(outcome) } => {
                    self.unsent.push_back((due, Command::Watch(id, outcome)));
                }
                Open::Outcome { id, sink: Sink::Call(call) } => {
                    // A call waits as a handle does; only the error has another form.
                    let (outcome, waiting) = oneshot::channel();
                    self.unsent.push_back((due, Command::Watch(id, outcome)));
                    tokio::task::spawn_local(async move {
                        let told = waiting.await.unwrap_or(Err(QueryError::Closed));
                        let sink = Sink::Call(call);
                        match told {
                            Ok(outcome) => sink.outcome(outcome),
                            Err(error) => sink.unknown(id, error),
                        }
                    });
                }
                Open::Outcomes(waiting) => {
                    for (id, outcome) in waiting {
                        self.unsent.push_back((due, Command::Watch(id, outcome)));
                    }
                }
                Open::Ask { question, answer } if question.may_repeat() => {
                    self.unsent.push_back((due, Command::Ask(question, answer)));
                }
                Open::Ask { answer, .. } => drop(answer.send(Err(QueryError::AnswerLost))),
                open => fail_sent(open, &QueryError::TimedOut { after: self.timeout }),
            }
        }
    }

    fn finish(&mut self) {
        self.over = true;
        self.commands.close();
        self.take_commands(Instant::ZERO);
        self.fail_all();
        for done in self.closed.drain(..) {
            // Whoever waited may have given up.
            done.send(()).ok();
        }
    }
}

fn outcome(id: TaskId, head: m::Outcome, payload: Bytes) -> Outcome {
    let ending = match head.state {
        state if state == m::State::Completed as u32 => Ending::Completed,
        state if state == m::State::Cancelled as u32 => Ending::Cancelled,
        _ => Ending::Dead,
    };
    let content_type = String::from_utf8_lossy(&head.content_type).into_owned();
    Outcome {
        task_id: id,
        ending,
        class: class_word(head.class).to_owned(),
        code: head.code,
        message: head.message,
        details: head.details,
        attempt: head.attempt,
        payload: Payload::new(payload, content_type),
    }
}

impl Driver for ClientLife {
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
        self.take_commands(now);
        self.send(now);
        self.leave(now);
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
        self.expire(now);
        self.hear(now);
    }

    fn handle_lost(&mut self, reason: Lost, now: Instant) {
        if let Some(session) = &mut self.session {
            session.handle_lost(reason, now);
        }
        self.hear(now);
    }

    fn is_closed(&self) -> bool {
        self.session.as_ref().is_none_or(Driver::is_closed)
    }
}

impl Life for ClientLife {
    fn begin(&mut self, address: &str, now: Instant) {
        address.clone_into(&mut self.address);
        (self.welcomed, self.ended, self.refused) = (None, None, None);
        let hello = self.hello.clone();
        let session = ClientSession::new(hello, Unsettled::default(), self.lanes, now);
        self.session = Some(session);
    }

    fn ended(
        &mut self,
        link: Result<(), LinkError>,
        now: Instant,
    ) -> Result<SessionRecord, ConnectError> {
        self.hear(now);
        self.session = None;
        if self.closing {
            self.finish();
        }
        self.ask_again(now);
        let ended = self.ended.take();
        match self.welcomed {
            Some(since) => Ok(SessionRecord {
                lived: now.saturating_since(since),
                settled: false,
                drained: matches!(ended, Some(Ended::Goodbye { .. })),
            }),
            None => Err(never_welcomed(self.address.clone(), self.refused.take(), ended, link)),
        }
    }

    fn tend(&mut self, now: Instant) {
        self.take_commands(now);
        self.expire(now);
        if self.closing {
            self.finish();
        }
    }

    fn tend_at(&self) -> Option<Instant> {
        self.next_due()
    }

    fn dial_failed(&mut self, error: ConnectError, retry_in: Option<Duration>, _now: Instant) {
        if let Some(started) = self.started.take() {
            // Whoever waited may have given up.
            drop(started.send(Err(error)));
            self.finish();
            return;
        }
        tracing::warn!(%error, ?retry_in, "no session with the server");
        if retry_in.is_none() {
            self.finish();
        }
    }

    fn fail_fast(&self) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// Why a session that was begun never came to be.
pub(crate) fn never_welcomed(
    address: String,
    refused: Option<Refusal>,
    ended: Option<Ended>,
    link: Result<(), LinkError>,
) -> ConnectError {
    if let Some(source) = refused {
        return ConnectError::Refused { address, source };
    }
    match (ended, link) {
        (Some(Ended::NoWelcome | Ended::Silent), _) => {
            let after = slipswitch_net::proto::limits::HELLO_DEADLINE;
            ConnectError::TimedOut { address, after }
        }
        (_, Err(error)) => ConnectError::Handshake { address, source: error.into() },
        (Some(Ended::Goodbye { message, .. }), Ok(())) => {
            ConnectError::Handshake { address, source: message.into() }
        }
        (_, Ok(())) => {
            ConnectError::Handshake { address, source: "the session ended at once".into() }
        }
    }
}
