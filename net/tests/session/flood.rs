//! More large payloads at once than may be under way.

use bytes::Bytes;
use slipswitch_net::client::Event;
use slipswitch_net::proto::messages as m;
use slipswitch_net::proto::{Channel, Driver, Frame, WireCode, limits};

use crate::bed::{Bed, events, outcomes, submit, work};

/// More than either side may have under way towards the other.
const TASKS: u64 = 2 * limits::PAYLOADS_UNDER_WAY_MAX as u64;

#[test]
fn a_flood_of_large_payloads_is_carried_in_both_directions() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], u32::MAX >> 16);
    let large: Bytes = vec![7; limits::INLINE_PAYLOAD_MAX + 1].into();
    for req in 1..=TASKS {
        producer.client.submit(submit(req, "echo", true), large.clone());
    }
    // Submits one way, then offers, results and outcomes, each with its payload beside it.
    producer.run().expect("in order");
    let mut done = 0;
    while done < TASKS {
        let before = done;
        // A turn of the engine places so many, then it posts the rest.
        bed.engine.advance(bed.now);
        done += work(&mut worker) as u64;
        assert!(done > before, "{done} of {TASKS}");
    }
    producer.run().expect("in order");
    let outcomes = outcomes(&mut producer);
    let mut reqs: Vec<u64> = outcomes.iter().map(|(outcome, _)| outcome.req).collect();
    reqs.sort_unstable();
    assert_eq!(reqs, (1..=TASKS).collect::<Vec<_>>());
    for (outcome, output) in outcomes {
        assert_eq!(outcome.state, m::State::Completed as u32);
        assert_eq!(output, large);
    }
}

#[test]
fn questions_whose_replies_wait_are_refused_beyond_a_number() {
    let mut bed = Bed::new();
    let mut pair = bed.pair();
    let ask = |req| m::Query { req, kind: m::QueryKind::Pools as u32, filter: None, page: None };
    for round in 0..2 {
        let asked = limits::REPLIES_AHEAD_MAX as u64 + 10;
        for req in 0..asked {
            pair.client.query(ask(req));
        }
        pair.run().expect("in order");
        let replies = events(&mut pair).into_iter().filter_map(|event| match event {
            Event::Reply(reply) => Some(reply.err.map(|err| err.code)),
            _ => None,
        });
        let replies: Vec<_> = replies.collect();
        assert_eq!(replies.len() as u64, asked, "round {round}");
        let (taken, refused) = replies.split_at(limits::REPLIES_AHEAD_MAX);
        assert!(taken.iter().all(Option::is_none));
        assert!(refused.iter().all(|code| *code == Some(WireCode::QuotaExceeded.number())));
    }
}

#[test]
fn a_peer_that_asks_and_does_not_read_loses_its_session() {
    let mut bed = Bed::new();
    let mut pair = bed.pair();
    pair.run().expect("in order");
    let ping = |nonce| Frame::Ping(m::Ping { nonce, deadline: 0 });
    let now = pair.now();
    let mut asked = 0;
    let error = loop {
        match pair.server.handle_frame(Channel::Control, ping(asked), now) {
            Ok(()) => asked += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), WireCode::LimitExceeded);
    assert_eq!(asked, limits::ANSWERS_AHEAD_MAX as u64 + 1);
    // What is left to be said is why, and the memory is free again.
    assert!(pair.server.is_closed());
    assert_eq!(std::iter::from_fn(|| pair.server.poll_transmit(now)).count(), 2);
}

#[test]
fn awaits_that_took_too_long_leave_one_watcher_at_a_task() {
    let mut bed = Bed::new();
    let mut pair = bed.pair();
    pair.client.submit(submit(1, "echo", false), Bytes::new());
    pair.run().expect("in order");
    let id = events(&mut pair).into_iter().find_map(|event| match event {
        Event::SubmitAck(ack) => Some(ack.task_id),
        _ => None,
    });
    let id = id.expect("taken");
    let wait = |req, timeout| Frame::Await(m::Await { req, task_id: id.clone(), timeout });
    // More often than a session may wait for outcomes.
    let mut now = pair.now();
    for req in 0..limits::REQUESTS_MAX as u64 + 10 {
        pair.server.handle_frame(Channel::Lane(0), wait(req, 1), now).expect("in order");
        now += std::time::Duration::from_millis(1);
        pair.server.handle_timeout(now);
        let late = std::iter::from_fn(|| pair.server.poll_transmit(now)).collect::<Vec<_>>();
        let [(_, Frame::Outcome(late, _))] = late.as_slice() else { panic!("{late:?}") };
        let code = late.err.as_ref().map(|err| err.code);
        assert_eq!((late.req, code), (req, Some(WireCode::DeadlineExceeded.number())));
        assert_eq!(late.task_id, id);
    }
    // The last one is in time, and it is told once.
    pair.server.handle_frame(Channel::Lane(0), wait(7, 60_000), now).expect("in order");
    let mut worker = bed.worker(&["echo"], 1);
    assert_eq!(work(&mut worker), 1);
    let told = std::iter::from_fn(|| pair.server.poll_transmit(now)).collect::<Vec<_>>();
    let [(_, Frame::Outcome(told, _))] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((told.req, told.state), (7, m::State::Completed as u32));
}
