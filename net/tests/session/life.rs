//! Cancelling, signalling, holding and draining across both sessions.

use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::TaskId;
use slipswitch_net::client::Event;
use slipswitch_net::proto::messages as m;
use slipswitch_net::proto::{WireCode, limits};

use crate::bed::{Bed, Pair, events, offers, outcomes, result, spec, submit, verdicts, work};

fn submitted(pair: &mut Pair, task: Box<m::Submit>) -> Bytes {
    pair.client.submit(task, Bytes::from_static(b"x"));
    pair.run().expect("in order");
    let acked = events(pair).into_iter().find_map(|event| match event {
        Event::SubmitAck(ack) => Some(ack),
        _ => None,
    });
    let acked = acked.expect("an answer");
    assert_eq!(acked.err, None);
    acked.task_id
}

fn text(id: &Bytes) -> String {
    TaskId::from_slice(id).expect("an id").to_string()
}

fn admin(pair: &mut Pair, op: m::AdminOp, target: &str, args: &[(&str, &str)]) {
    let arg = |(name, value): &(&str, &str)| m::Pair {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    pair.client.admin(m::Admin {
        req: 77,
        op: op as u32,
        target: target.to_owned(),
        args: args.iter().map(arg).collect(),
    });
    pair.run().expect("in order");
}

/// The answer to a command, if it has come.
fn acked(pair: &mut Pair) -> Option<Result<u64, u32>> {
    events(pair).into_iter().find_map(|event| match event {
        Event::AdminAck(ack) => {
            assert_eq!(ack.req, 77);
            Some(ack.err.map_or(Ok(ack.affected), |err| Err(err.code)))
        }
        _ => None,
    })
}

fn done(pair: &mut Pair, op: m::AdminOp, target: &str, args: &[(&str, &str)]) -> Result<u64, u32> {
    admin(pair, op, target, args);
    acked(pair).expect("an answer")
}

fn cancel(pair: &mut Pair, cancel: m::CancelTask) -> m::CancelTaskAck {
    pair.client.cancel_task(m::CancelTask { req: 8, ..cancel });
    pair.run().expect("in order");
    let acked = events(pair).into_iter().find_map(|event| match event {
        Event::CancelTaskAck(ack) => Some(ack),
        _ => None,
    });
    acked.expect("an answer")
}

fn one(id: &Bytes) -> m::CancelTask {
    let reason = "enough".to_owned();
    m::CancelTask { task_id: id.clone(), reason, grace: Some(5_000), ..m::CancelTask::default() }
}

fn cancels(pair: &mut Pair) -> Vec<(m::Lease, u32, Duration, String)> {
    events(pair)
        .into_iter()
        .filter_map(|event| match event {
            Event::Cancel { lease, reason, grace, message } => {
                Some((lease, reason, grace, message))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn a_cancel_reaches_the_handler_and_is_repeated() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], 1);
    let id = submitted(&mut producer, submit(1, "echo", true));
    worker.run().expect("in order");
    let (offer, _) = offers(&mut worker).pop().expect("an offer");
    worker.client.accept(offer.lease, bed.now);
    worker.run().expect("in order");
    let ack = cancel(&mut producer, one(&id));
    assert_eq!((ack.affected, ack.state), (1, m::State::Cancelling as u32));
    worker.run().expect("in order");
    let told = cancels(&mut worker);
    let asked = m::CancelKind::Asked as u32;
    let grace = Duration::from_secs(5);
    assert_eq!(told, [(offer.lease, asked, grace, "enough".to_owned())]);
    let ack = cancel(&mut producer, one(&id));
    assert_eq!((ack.affected, ack.state), (0, m::State::Cancelling as u32));
    // With the next beat it is said again.
    worker.client.progress(offer.lease, Bytes::from_static(b"half"), worker.now());
    bed.pass(Duration::from_secs(1), &mut [&mut producer, &mut worker]);
    let again = cancels(&mut worker);
    assert_eq!((again[0].0, again[0].1), (offer.lease, asked));
    assert!(again[0].2 < grace);
    let failed = m::Fail { class: 1, code: "stopped".to_owned(), ..m::Fail::default() };
    let report = m::TaskResult { fail: Some(Box::new(failed)), ..result(&offer) };
    worker.client.report(report, Bytes::new());
    worker.run().expect("in order");
    assert_eq!(verdicts(&mut worker), [m::VerdictKind::Applied as u32]);
    producer.run().expect("in order");
    let (outcome, _) = outcomes(&mut producer).pop().expect("an outcome");
    assert_eq!(outcome.state, m::State::Cancelled as u32);
    assert_eq!(outcome.class, m::OutcomeClass::Cancelled as u32);
    assert_eq!(outcome.message, "enough");
}

#[test]
fn owners_are_cancelled_held_and_superseded_over_the_wire() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut owned = |generation| {
        let mut task = submit(1, "echo", false);
        task.task.owner_key = Bytes::from_static(b"run-7");
        task.task.generation = generation;
        submitted(&mut producer, task)
    };
    for generation in [1, 2, 3] {
        owned(generation);
    }
    let owner = m::CancelTask {
        owner_key: Bytes::from_static(b"run-7"),
        namespace: "main".to_owned(),
        below_generation: Some(2),
        ..m::CancelTask::default()
    };
    assert_eq!(cancel(&mut producer, owner).affected, 1);
    let args = [("namespace", "main"), ("generation", "3")];
    assert_eq!(done(&mut producer, m::AdminOp::Supersede, "owner:run-7", &args), Ok(1));
    let mut late = submit(1, "echo", false);
    late.task.owner_key = Bytes::from_static(b"run-7");
    producer.client.submit(late, Bytes::new());
    producer.run().expect("in order");
    let refused = events(&mut producer).into_iter().find_map(|event| match event {
        Event::SubmitAck(ack) => ack.err.map(|err| err.code),
        _ => None,
    });
    assert_eq!(refused, Some(WireCode::StaleGeneration.number()));
    let namespace = [("namespace", "main")];
    assert_eq!(done(&mut producer, m::AdminOp::Hold, "owner:run-7", &namespace), Ok(0));
    let mut worker = bed.worker(&["echo"], 5);
    assert_eq!(work(&mut worker), 0);
    let holds = {
        let kind = m::QueryKind::Holds as u32;
        producer.client.query(m::Query { req: 1, kind, filter: None, page: None });
        producer.run().expect("in order");
        events(&mut producer).into_iter().find_map(|event| match event {
            Event::Reply(reply) => Some(reply.holds),
            _ => None,
        })
    };
    let holds = holds.expect("an answer");
    assert_eq!((holds[0].name.as_str(), holds[0].waiting), ("main/run-7", Some(1)));
    assert_eq!(done(&mut producer, m::AdminOp::Release, "owner:run-7", &namespace), Ok(1));
    assert_eq!(work(&mut worker), 1);
    let unheld = done(&mut producer, m::AdminOp::Release, "owner:run-7", &namespace);
    assert_eq!(unheld, Err(WireCode::NotFound.number()));
}

#[test]
fn a_drain_is_answered_when_every_session_has_looked() {
    let mut bed = Bed::new();
    let mut operator = bed.pair();
    let mut worker = bed.worker(&["echo"], 5);
    worker.run().expect("in order");
    for (on, off, target) in [
        (m::AdminOp::Hold, m::AdminOp::Release, "pool:main/default/echo"),
        (m::AdminOp::Hold, m::AdminOp::Release, "namespace:main"),
        (m::AdminOp::Cordon, m::AdminOp::Uncordon, "pool:main/default/echo"),
        (m::AdminOp::Drain, m::AdminOp::Uncordon, "namespace:main"),
    ] {
        admin(&mut operator, on, target, &[]);
        assert_eq!(acked(&mut operator), None, "before the worker's session has looked");
        worker.run().expect("in order");
        operator.run().expect("in order");
        assert!(acked(&mut operator).is_some_and(|ack| ack.is_ok()), "{target}");
        submitted(&mut operator, submit(1, "echo", false));
        assert_eq!(work(&mut worker), 0, "{target}");
        assert!(done(&mut operator, off, target, &[]).is_ok(), "{target}");
        assert_eq!(work(&mut worker), 1, "{target}");
    }
    for target in ["worker:1", "node:box", "build:b1"] {
        let known = target == "worker:1";
        let cordoned = done(&mut operator, m::AdminOp::Cordon, target, &[]);
        assert_eq!(cordoned, Ok(u64::from(known)), "{target}");
        let opened = done(&mut operator, m::AdminOp::Uncordon, target, &[]);
        assert_eq!(opened, Ok(u64::from(known)), "{target}");
    }
    assert_eq!(done(&mut operator, m::AdminOp::Evict, "1", &[]), Ok(1));
    worker.run().ok();
    assert!(bed.engine.workers(&bed.operator).1.is_empty());
}

#[test]
fn a_signal_crosses_and_its_verdict_comes_back() {
    let mut bed = Bed::new();
    let mut operator = bed.pair();
    let mut worker = bed.worker(&["echo"], 1);
    let id = submitted(&mut operator, submit(1, "echo", false));
    let target = text(&id);
    let args = [("kind", "nudge"), ("payload", "now")];
    let nobody = done(&mut operator, m::AdminOp::Signal, &target, &args);
    assert_eq!(nobody, Err(WireCode::Stale.number()));
    worker.run().expect("in order");
    let (offer, _) = offers(&mut worker).pop().expect("an offer");
    worker.client.accept(offer.lease, bed.now);
    worker.run().expect("in order");
    for (verdict, answer) in [
        (m::SignalKind::Applied, Ok(1)),
        (m::SignalKind::Unsupported, Err(WireCode::Unsupported.number())),
        (m::SignalKind::Stale, Err(WireCode::Stale.number())),
    ] {
        admin(&mut operator, m::AdminOp::Signal, &target, &args);
        assert_eq!(acked(&mut operator), None);
        worker.run().expect("in order");
        let signal = events(&mut worker).into_iter().find_map(|event| match event {
            Event::Signal(signal, payload) => Some((signal, payload)),
            _ => None,
        });
        let (signal, payload) = signal.expect("a signal");
        assert_eq!((signal.lease, signal.kind.as_str()), (offer.lease, "nudge"));
        assert_eq!(payload, "now");
        worker.client.answer_signal(signal.lease, signal.seq, verdict);
        worker.run().expect("in order");
        operator.run().expect("in order");
        assert_eq!(acked(&mut operator), Some(answer));
    }
    let long = "x".repeat(limits::SIGNAL_MAX + 1);
    let args = [("kind", "k"), ("payload", long.as_str())];
    let refused = done(&mut operator, m::AdminOp::Signal, &target, &args);
    assert_eq!(refused, Err(WireCode::LimitExceeded.number()));
}

#[test]
fn dead_letters_are_found_requeued_and_discarded() {
    let mut bed = Bed::new();
    let mut operator = bed.pair();
    let mut worker = bed.worker(&["echo"], 3);
    let ids: Vec<Bytes> =
        (0..3).map(|req| submitted(&mut operator, submit(req, "echo", false))).collect();
    worker.run().expect("in order");
    for (at, (offer, _)) in offers(&mut worker).into_iter().enumerate() {
        let message = format!("line {at} is wrong");
        let fail = m::Fail { class: 2, code: "bad".to_owned(), message, ..m::Fail::default() };
        let report = m::TaskResult { fail: Some(Box::new(fail)), ..result(&offer) };
        worker.client.report(report, Bytes::new());
    }
    worker.run().expect("in order");
    let dead = |pair: &mut Pair, filter, size, token: Bytes| {
        let page = Some(m::Page { size, token });
        let kind = m::QueryKind::Dead as u32;
        pair.client.query(m::Query { req: 1, kind, filter: Some(filter), page });
        pair.run().expect("in order");
        let reply = events(pair).into_iter().find_map(|event| match event {
            Event::Reply(reply) => Some(reply),
            _ => None,
        });
        reply.expect("an answer")
    };
    let all = m::Filter::default();
    let first = dead(&mut operator, all.clone(), 2, Bytes::new());
    assert_eq!((first.tasks.len(), first.next_page.is_empty()), (2, false));
    let rest = dead(&mut operator, all.clone(), 2, first.next_page.clone());
    assert_eq!((rest.tasks.len(), rest.next_page.is_empty()), (1, true));
    let letter = &first.tasks[0];
    assert_eq!((letter.code.as_str(), letter.fingerprint.len()), ("bad", 16));
    assert_eq!(letter.fingerprint, rest.tasks[0].fingerprint);
    let get = m::Filter { task_id: ids[0].clone(), ..m::Filter::default() };
    assert_eq!(dead(&mut operator, get, 0, Bytes::new()).tasks[0].task_id, ids[0]);
    let wrong = m::Filter { reason: Some("bored".to_owned()), ..m::Filter::default() };
    let wrong = dead(&mut operator, wrong, 0, Bytes::new());
    assert_eq!(wrong.err.map(|err| err.code), Some(WireCode::Malformed.number()));
    assert_eq!(done(&mut operator, m::AdminOp::Requeue, &text(&ids[0]), &[]), Ok(1));
    let again = done(&mut operator, m::AdminOp::Requeue, &text(&ids[0]), &[]);
    assert_eq!(again, Err(WireCode::NotFound.number()));
    let args = [("fingerprint", letter.fingerprint.as_str()), ("reason", "terminal_failure")];
    assert_eq!(done(&mut operator, m::AdminOp::Requeue, "", &args), Ok(2));
    assert_eq!(work(&mut worker), 3);
    assert_eq!(done(&mut operator, m::AdminOp::Discard, "", &[]), Ok(0));
}

#[test]
fn times_and_keys_of_a_task_cross() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], 2);
    let mut task = submit(1, "echo", false);
    task.task.delay = Some(2_000);
    task.task.start_to_close = Some(30_000);
    task.task.heartbeat_timeout = Some(9_000);
    task.task.idempotency_key = Some(Bytes::from_static(b"order-42"));
    let parent = "00-1-2-01".to_owned();
    task.task.trace = Some(Box::new(m::Trace { parent, ..m::Trace::default() }));
    let id = submitted(&mut producer, task.clone());
    let status = bed.engine.task(&bed.operator, TaskId::from_slice(&id).expect("an id"));
    assert_eq!(status.expect("known").state.as_str(), "scheduled");
    // The same key again, whether or not it is due at the same time.
    producer.client.submit(task, Bytes::from_static(b"x"));
    producer.run().expect("in order");
    let again = events(&mut producer).into_iter().find_map(|event| match event {
        Event::SubmitAck(ack) => Some((ack.task_id, ack.deduplicated)),
        _ => None,
    });
    assert_eq!(again, Some((id.clone(), true)));
    bed.pass(Duration::from_millis(1_900), &mut [&mut producer, &mut worker]);
    assert!(offers(&mut worker).is_empty());
    bed.pass(Duration::from_millis(200), &mut [&mut producer, &mut worker]);
    let (offer, _) = offers(&mut worker).pop().expect("an offer");
    assert_eq!((offer.start_to_close, offer.heartbeat), (30_000, 9_000));
    assert_eq!(offer.idempotency_key, Some(Bytes::from_static(b"order-42")));
    let parent = offer.trace.as_ref().map(|trace| trace.parent.as_str());
    assert_eq!(parent, Some("00-1-2-01"));
    assert!(offer.due < 200);
    worker.client.accept(offer.lease, worker.now());
    worker.client.progress(offer.lease, Bytes::from_static(b"40%"), worker.now());
    bed.pass(Duration::from_secs(1), &mut [&mut producer, &mut worker]);
    let fail = m::Fail { class: 3, ..m::Fail::default() };
    let report = m::TaskResult { fail: Some(Box::new(fail)), ..result(&offer) };
    worker.client.report(report, Bytes::new());
    worker.run().expect("in order");
    let (offer, _) = offers(&mut worker).pop().expect("the next delivery");
    assert_eq!(offer.last_progress, Some(Bytes::from_static(b"40%")));
}

#[test]
fn a_time_on_the_clock_is_a_delay() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    bed.pass(Duration::from_secs(2), &mut [&mut producer]);
    // The test's server began at 0 on its clock, so it is 2 s now.
    for (at, state) in [(0, "pending"), (1_999, "pending"), (60_000, "scheduled")] {
        let mut task = submit(1, "echo", false);
        task.task.visible_after = Some(at);
        let id = submitted(&mut producer, task);
        let status = bed.engine.task(&bed.operator, TaskId::from_slice(&id).expect("an id"));
        assert_eq!(status.expect("known").state.as_str(), state, "{at}");
    }
    let mut both = submit(1, "echo", false);
    (both.task.delay, both.task.visible_after) = (Some(1), Some(1));
    producer.client.submit(both, Bytes::new());
    producer.run().expect("in order");
    let refused = events(&mut producer).into_iter().find_map(|event| match event {
        Event::SubmitAck(ack) => ack.err.map(|err| err.code),
        _ => None,
    });
    assert_eq!(refused, Some(WireCode::Malformed.number()));
}

#[test]
fn what_the_engine_refuses_of_a_batch_refuses_it_whole() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut keyed = spec("echo");
    keyed.idempotency_key = Some(Bytes::from_static(b"k"));
    let taken = Box::new(m::Submit { req: 1, task: keyed.clone(), stream_ref: None, wait: false });
    submitted(&mut producer, taken);
    keyed.priority = Some(1);
    let item =
        |task: &m::TaskSpec| m::BatchTask { task: Some(Box::new(task.clone())), payload_len: 0 };
    let tasks = vec![item(&spec("echo")), item(&keyed)];
    let batch = m::SubmitBatch { req: 2, tasks, wait: true, common: None };
    producer.client.submit_batch(batch, Bytes::new());
    producer.run().expect("in order");
    let refused = events(&mut producer).into_iter().find_map(|event| match event {
        Event::SubmitBatchAck(ack) => Some(ack),
        _ => None,
    });
    let refused = refused.expect("an answer");
    let error = refused.err.expect("refused");
    assert_eq!((error.code, refused.items.len()), (WireCode::Conflict.number(), 0));
    assert!(error.message.starts_with("task 1 of the batch"), "{}", error.message);
    assert_eq!(bed.engine.tasks(&bed.operator, &Default::default(), None, 9).len(), 1);
}
