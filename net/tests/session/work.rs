//! Tasks across both sessions.

use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{Grant, Namespace, Principal, Role};
use slipswitch_net::client::{Event, Unsettled};
use slipswitch_net::proto::messages as m;
use slipswitch_net::proto::{WireCode, limits};

use crate::bed::{Bed, events, offers, outcomes, result, spec, submit, verdicts, work};

#[test]
fn a_task_crosses_and_comes_back() {
    for chunk in [1, 2, 3, 7, 64, usize::MAX] {
        let mut bed = Bed::new();
        let mut producer = bed.pair().in_chunks_of(chunk);
        let mut worker = bed.worker(&["echo"], 4).in_chunks_of(chunk);
        let payload = Bytes::from_static(b"hello");
        producer.client.submit(submit(5, "echo", true), payload.clone());
        producer.run().expect("in order");
        let acked = events(&mut producer).into_iter().any(|event| {
            matches!(event, Event::SubmitAck(ack) if ack.req == 5 && ack.err.is_none() && !ack.durable)
        });
        assert!(acked);
        assert_eq!(work(&mut worker), 1);
        producer.run().expect("in order");
        let (outcome, output) = outcomes(&mut producer).pop().expect("an outcome");
        assert_eq!((outcome.req, outcome.state), (5, m::State::Completed as u32));
        assert_eq!((output, outcome.content_type), (payload, Bytes::from_static(b"text/plain")));
        assert_eq!((outcome.attempt, outcome.deliveries), (1, 1));
    }
}

#[test]
fn large_payloads_travel_beside_their_frames() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], 4);
    let large: Bytes = (0..limits::PAYLOAD_MAX).map(|at| (at % 251) as u8).collect();
    for size in [limits::INLINE_PAYLOAD_MAX, limits::INLINE_PAYLOAD_MAX + 1, limits::PAYLOAD_MAX] {
        producer.client.submit(submit(1, "echo", true), large.slice(..size));
        producer.run().expect("in order");
        assert_eq!(work(&mut worker), 1);
        producer.run().expect("in order");
        let (outcome, output) = outcomes(&mut producer).pop().expect("an outcome");
        assert_eq!(outcome.state, m::State::Completed as u32);
        assert!(output == large.slice(..size));
    }
}

#[test]
fn what_the_producer_says_reaches_the_worker() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], 4);
    let mut task = submit(1, "echo", false);
    task.task.owner_key = Bytes::from_static(b"order-7");
    (task.task.ordinal, task.task.generation) = (3, 9);
    task.task.headers = vec![m::Pair { name: "a".to_owned(), value: "b".to_owned() }];
    task.task.content_type = "image/png".into();
    task.task.encoding = "br".into();
    task.task.priority = Some(8);
    task.task.deadline = Some(60_000);
    producer.client.submit(task, Bytes::from_static(&[0, 255, 1]));
    producer.run().expect("in order");
    worker.run().expect("in order");
    let (offer, payload) = offers(&mut worker).pop().expect("an offer");
    assert_eq!(payload, [0, 255, 1].as_slice());
    assert_eq!(offer.owner_key, "order-7");
    assert_eq!((offer.ordinal, offer.generation, offer.priority), (3, 9, 8));
    assert_eq!((offer.content_type, offer.encoding), ("image/png".into(), "br".into()));
    assert_eq!((offer.headers.len(), offer.attempt, offer.deliveries), (1, 1, 0));
    assert_eq!(offer.deadline, 60_000);
}

#[test]
fn batches_are_taken_whole_or_not_at_all() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], 100);
    let item = |activity_type: &str, payload_len| m::BatchTask {
        task: Some(Box::new(spec(activity_type))),
        payload_len,
    };
    let batch = |req, tasks| m::SubmitBatch { req, tasks, wait: true, common: None };
    producer.client.submit_batch(
        batch(1, vec![item("echo", 2), item("echo", 0), item("echo", 3)]),
        Bytes::from_static(b"abcde"),
    );
    producer.run().expect("in order");
    let acked = events(&mut producer).into_iter().find_map(|event| match event {
        Event::SubmitBatchAck(ack) => Some(ack.items.len()),
        _ => None,
    });
    assert_eq!(acked, Some(3));
    assert_eq!(work(&mut worker), 3);
    producer.run().expect("in order");
    let outputs: Vec<Bytes> = outcomes(&mut producer).into_iter().map(|(_, p)| p).collect();
    assert_eq!(outputs, ["ab", "", "cde"]);
    // One wrong name, one byte too few, one too many: nothing of them is taken.
    for (tasks, payload) in [
        (vec![item("echo", 1), item("not a name", 1)], "ab"),
        (vec![item("echo", 1), item("echo", 2)], "ab"),
        (vec![item("echo", 1)], "ab"),
    ] {
        producer.client.submit_batch(batch(2, tasks), Bytes::from_static(payload.as_bytes()));
        producer.run().expect("in order");
        let refused = events(&mut producer)
            .into_iter()
            .any(|event| matches!(event, Event::SubmitBatchAck(ack) if ack.err.is_some()));
        assert!(refused);
        assert_eq!(work(&mut worker), 0);
    }
}

#[test]
fn forged_results_refused() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut honest = bed.worker(&["echo"], 1);
    let mut forger = bed.worker(&["echo"], 1);
    producer.client.submit(submit(1, "echo", true), Bytes::new());
    producer.client.submit(submit(2, "echo", true), Bytes::new());
    producer.run().expect("in order");
    honest.run().expect("in order");
    forger.run().expect("in order");
    let (mine, _) = offers(&mut honest).pop().expect("an offer");
    let (theirs, _) = offers(&mut forger).pop().expect("an offer");
    let now = bed.now;
    honest.client.accept(mine.lease, now);
    forger.client.accept(theirs.lease, now);
    let mut forged = vec![result(&mine)];
    forged.push(m::TaskResult { task_id: mine.task_id.clone(), ..result(&theirs) });
    let lease = m::Lease { epoch: mine.lease.epoch + 50, ..mine.lease };
    forged.push(m::TaskResult { lease, ..result(&mine) });
    for forged in forged {
        forger.client.report(forged, Bytes::from_static(b"forged"));
        forger.run().expect("a forgery is judged, the session lives");
        let judged = verdicts(&mut forger);
        assert!(judged.iter().all(|verdict| *verdict >= 3), "{judged:?}");
    }
    honest.client.report(result(&mine), Bytes::from_static(b"honest"));
    honest.run().expect("in order");
    assert_eq!(verdicts(&mut honest), [m::VerdictKind::Applied as u32]);
    producer.run().expect("in order");
    let told = outcomes(&mut producer);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1, "honest");
}

#[test]
fn a_result_that_cannot_be_taken_ends_its_delivery() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], 1);
    let fail = |class, code: &str, message: &str| {
        let (code, message) = (code.to_owned(), message.to_owned());
        Some(Box::new(m::Fail { class, code, message, ..m::Fail::default() }))
    };
    let large = Bytes::from(vec![0; limits::PAYLOAD_MAX + 1]);
    let (long, longer) =
        ("x".repeat(limits::FAILURE_CODE_MAX + 1), "ä".repeat(limits::MESSAGE_MAX));
    type Wrong<'a> = Box<dyn Fn(&m::Offer) -> m::TaskResult + 'a>;
    let wrong: [(Wrong<'_>, Bytes, &str); 6] = [
        (Box::new(result), large, "result_refused"),
        (
            Box::new(|offer| m::TaskResult { fail: fail(77, "", ""), ..result(offer) }),
            Bytes::new(),
            "result_refused",
        ),
        (
            Box::new(|offer| m::TaskResult {
                content_type: vec![b'x'; 257].into(),
                ..result(offer)
            }),
            Bytes::new(),
            "result_refused",
        ),
        (
            Box::new(|offer| m::TaskResult { encoding: vec![0xff].into(), ..result(offer) }),
            Bytes::new(),
            "result_refused",
        ),
        // A failure stays what it is, and what is too long of it is cut.
        (
            Box::new(|offer| m::TaskResult { fail: fail(2, &long, ""), ..result(offer) }),
            Bytes::new(),
            &long[..limits::FAILURE_CODE_MAX],
        ),
        (
            Box::new(|offer| m::TaskResult { fail: fail(2, "long", &longer), ..result(offer) }),
            Bytes::new(),
            "long",
        ),
    ];
    for (report, payload, code) in wrong {
        producer.client.submit(submit(1, "echo", true), Bytes::new());
        producer.run().expect("in order");
        worker.run().expect("in order");
        // One credit: the one before was given back.
        let (offer, _) = offers(&mut worker).pop().expect("an offer");
        worker.client.accept(offer.lease, worker.now());
        worker.client.report(report(&offer), payload);
        worker.run().expect("the session lives");
        assert_eq!(verdicts(&mut worker), [m::VerdictKind::Applied as u32]);
        assert!(worker.client.unsettled().is_empty());
        producer.run().expect("in order");
        let (outcome, _) = outcomes(&mut producer).pop().expect("an outcome");
        assert_eq!(
            (outcome.class, &*outcome.code),
            (m::OutcomeClass::TerminalFailure as u32, code)
        );
        assert!(outcome.message.len() <= limits::MESSAGE_MAX);
    }
}

#[test]
fn a_result_without_a_task_settles_nothing() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], 1);
    producer.client.submit(submit(1, "echo", true), Bytes::new());
    producer.run().expect("in order");
    worker.run().expect("in order");
    let (offer, _) = offers(&mut worker).pop().expect("an offer");
    let wrong = m::TaskResult { task_id: Bytes::from_static(b"short"), ..result(&offer) };
    worker.client.report(wrong, Bytes::new());
    worker.run().expect("the session lives");
    assert_eq!(verdicts(&mut worker), [m::VerdictKind::UnknownLease as u32]);
    worker.client.report(result(&offer), Bytes::new());
    worker.run().expect("in order");
    assert_eq!(verdicts(&mut worker), [m::VerdictKind::Applied as u32]);
}

#[test]
fn await_after_settlement_and_with_a_limit_of_time() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    producer.client.submit(submit(1, "echo", false), Bytes::new());
    producer.run().expect("in order");
    let id = events(&mut producer).into_iter().find_map(|event| match event {
        Event::SubmitAck(ack) => Some(ack.task_id),
        _ => None,
    });
    let id = id.expect("taken");
    let wait = |req, timeout| m::Await { req, task_id: id.clone(), timeout };
    producer.client.wait(wait(2, 500));
    bed.pass(Duration::from_millis(600), &mut [&mut producer]);
    let (late, _) = outcomes(&mut producer).pop().expect("an answer");
    let err = late.err.expect("it has not ended");
    assert_eq!((late.req, err.code), (2, WireCode::DeadlineExceeded.number()));
    let mut worker = bed.worker(&["echo"], 1);
    assert_eq!(work(&mut worker), 1);
    producer.run().expect("in order");
    assert!(outcomes(&mut producer).is_empty(), "the one whose time was over hears no more");
    producer.client.wait(wait(3, 0));
    producer.run().expect("in order");
    let (told, _) = outcomes(&mut producer).pop().expect("an outcome");
    assert_eq!((told.req, told.state), (3, m::State::Completed as u32));
    producer.client.wait(m::Await { req: 4, task_id: vec![9; 16].into(), timeout: 0 });
    producer.run().expect("in order");
    let (unknown, _) = outcomes(&mut producer).pop().expect("an answer");
    assert_eq!(unknown.err.map(|err| err.code), Some(WireCode::NotFound.number()));
}

fn ask(pair: &mut crate::bed::Pair, kind: m::QueryKind, filter: m::Filter) -> m::Reply {
    let page = m::Page { size: 2, token: Bytes::new() };
    let query = m::Query { req: 7, kind: kind as u32, filter: Some(filter), page: Some(page) };
    pair.client.query(query);
    pair.run().expect("in order");
    let reply = events(pair).into_iter().find_map(|event| match event {
        Event::Reply(reply) => Some(reply),
        _ => None,
    });
    reply.expect("an answer")
}

#[test]
fn questions_are_answered_page_by_page() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    for req in 0..5 {
        producer.client.submit(submit(req, "lonely", false), Bytes::new());
    }
    let mut worker = bed.worker(&["a", "b", "c"], 3);
    worker.run().expect("in order");
    producer.run().expect("in order");
    events(&mut producer);
    let mut seen = Vec::new();
    let mut token = Bytes::new();
    loop {
        let page = m::Page { size: 2, token };
        let kind = m::QueryKind::List as u32;
        producer.client.query(m::Query { req: 1, kind, filter: None, page: Some(page) });
        producer.run().expect("in order");
        let reply = events(&mut producer).into_iter().find_map(|event| match event {
            Event::Reply(reply) => Some(reply),
            _ => None,
        });
        let reply = reply.expect("an answer");
        assert!(reply.tasks.len() <= 2);
        seen.extend(reply.tasks);
        token = reply.next_page;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.iter().all(|task| task.reason == "NoWorker" && task.state == 2));
    let none = m::Filter { state: Some(m::State::Dead as u32), ..m::Filter::default() };
    assert!(ask(&mut producer, m::QueryKind::List, none).tasks.is_empty());
    let workers = ask(&mut producer, m::QueryKind::Workers, m::Filter::default());
    assert_eq!((workers.workers.len(), workers.workers[0].credit), (1, 3));
    assert_eq!(workers.workers[0].pools.len(), 3);
    let pools = ask(&mut producer, m::QueryKind::Pools, m::Filter::default());
    assert_eq!((pools.pools.len(), pools.next_page.is_empty()), (2, false));
    let unknown = m::Filter { task_id: vec![1; 16].into(), ..m::Filter::default() };
    let unknown = ask(&mut producer, m::QueryKind::Get, unknown);
    assert_eq!(unknown.err.map(|err| err.code), Some(WireCode::NotFound.number()));
    let stats = ask(&mut producer, m::QueryKind::Stats, m::Filter::default());
    assert_eq!(stats.pools, pools.pools);
}

#[test]
fn what_this_version_does_not_do_is_refused_not_ignored() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    type Set = fn(&mut m::TaskSpec);
    let sets: [Set; 3] = [
        |task| task.durability = 1,
        |task| task.fairness_key = Some(Bytes::new()),
        |task| task.concurrency_key = Some(Bytes::new()),
    ];
    for set in sets {
        let mut task = submit(1, "echo", true);
        set(&mut task.task);
        producer.client.submit(task, Bytes::from_static(b"x"));
        producer.run().expect("in order");
        let code = events(&mut producer).into_iter().find_map(|event| match event {
            Event::SubmitAck(ack) => ack.err.map(|err| err.code),
            _ => None,
        });
        assert_eq!(code, Some(WireCode::Unsupported.number()));
    }
}

#[test]
fn a_principal_without_the_role_is_refused() {
    let mut bed = Bed::new();
    let other = Grant::Namespace(Namespace::new("other").expect("a name"));
    let stranger = Principal::new("s", [(Role::Producer, other.clone()), (Role::Worker, other)]);
    let mut pair = bed.pair_of(stranger, Unsettled::default());
    pair.client.submit(submit(1, "echo", true), Bytes::new());
    pair.client.register(crate::bed::register(&["echo"], 1));
    pair.run().expect("in order");
    let codes: Vec<u32> = events(&mut pair)
        .into_iter()
        .filter_map(|event| match event {
            Event::SubmitAck(ack) => ack.err.map(|err| err.code),
            Event::Registered(ack) => ack.err.map(|err| err.code),
            _ => None,
        })
        .collect();
    assert_eq!(codes, [WireCode::PermissionDenied.number(); 2]);
    assert!(bed.engine.workers(&bed.operator).1.is_empty());
    assert!(bed.engine.tasks(&bed.operator, &Default::default(), None, 9).is_empty());
}
