//! What may be said when.

use std::sync::Arc;

use bytes::Bytes;
use slipswitch_core::{DrainScope, SessionId};
use slipswitch_net::client::{Ended, Event};
use slipswitch_net::proto::messages as m;
use slipswitch_net::proto::{Channel, Driver, Frame, WireCode};

use crate::bed::{Bed, Bell, ended, events, offers, register, submit, work};

/// Hands frames straight to a fresh session; says what the session answered last.
fn violates(bed: &mut Bed, frames: Vec<Frame>) -> bool {
    let mut pair = bed.pair();
    let now = pair.now();
    let mut failed = false;
    for frame in frames {
        failed = pair.server.handle_frame(Channel::Control, frame, now).is_err();
    }
    if failed {
        let mut last = Vec::new();
        while let Some((_, frame)) = pair.server.poll_transmit(now) {
            last.push(frame);
        }
        let told = matches!(
            last.last(),
            Some(Frame::Goodbye(goodbye))
                if goodbye.reason == m::GoodbyeReason::ProtocolViolation.number()
        );
        assert!(told && pair.server.is_closed(), "{last:?}");
    }
    failed
}

fn hello() -> Frame {
    Frame::Hello(Box::new(m::Hello { proto_min: 1, proto_max: 1, ..m::Hello::default() }))
}

#[test]
fn illegal_order() {
    let mut bed = Bed::new();
    let registration = || Frame::Register(Box::new(register(&["echo"], 1)));
    let task = || Frame::Submit(submit(1, "echo", false), Bytes::new());
    let cases = [
        vec![task()],
        vec![registration()],
        vec![Frame::Goodbye(m::Goodbye::default())],
        vec![hello(), hello()],
        vec![hello(), registration(), registration()],
        vec![hello(), Frame::Credit(m::Credit::default())],
        vec![hello(), Frame::Accept(m::Accept::default())],
        vec![hello(), Frame::Heartbeat(m::Heartbeat::default())],
        vec![hello(), Frame::Update(Box::new(register(&["echo"], 1)))],
        vec![hello(), Frame::Result(m::TaskResult::default(), Bytes::new())],
        vec![hello(), Frame::HelloAck(Box::default())],
        vec![hello(), Frame::Offer(Box::default(), Bytes::new())],
    ];
    for frames in cases {
        let names: Vec<&str> = frames.iter().map(Frame::name).collect();
        assert!(violates(&mut bed, frames), "{names:?}");
    }
    // Nothing of all that reached the registry.
    assert!(bed.engine.workers(&bed.operator).1.is_empty());
    assert!(bed.engine.tasks(&bed.operator, &Default::default(), None, 9).is_empty());
    assert!(!violates(&mut bed, vec![hello(), registration(), task()]));
}

#[test]
fn no_common_version_is_said_so() {
    let mut bed = Bed::new();
    let mut pair = bed.pair();
    let hello = m::Hello { proto_min: 2, proto_max: 9, ..m::Hello::default() };
    let now = pair.now();
    let refused = pair.server.handle_frame(Channel::Control, Frame::Hello(Box::new(hello)), now);
    assert_eq!(refused.map_err(|error| error.code()), Err(WireCode::VersionUnsupported));
    let Some((_, Frame::Error(error))) = pair.server.poll_transmit(now) else {
        panic!("an error comes first");
    };
    assert_eq!(error.err.map(|err| err.code), Some(WireCode::VersionUnsupported.number()));
}

#[test]
fn a_client_refuses_what_is_not_for_it() {
    let mut bed = Bed::new();
    for frame in [Frame::Offer(Box::default(), Bytes::new()), Frame::Reply(m::Reply::default())] {
        let mut pair = bed.pair();
        let now = pair.now();
        assert!(pair.client.handle_frame(Channel::Control, frame, now).is_err());
        assert!(matches!(ended(&mut pair), Some(Ended::Violation(_))));
    }
    let mut pair = bed.pair();
    pair.run().expect("in order");
    let now = pair.now();
    let wrong = Frame::Submit(submit(1, "echo", false), Bytes::new());
    assert!(pair.client.handle_frame(Channel::Lane(0), wrong, now).is_err());
}

#[test]
fn ack_before_offer() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    for req in 0..20 {
        producer.client.submit(submit(req, "echo", false), Bytes::new());
    }
    producer.run().expect("in order");
    let mut pair = bed.pair();
    pair.client.register(register(&["echo"], 1));
    pair.client.grant(20);
    pair.run().expect("in order");
    let events = events(&mut pair);
    let place = |wanted: fn(&Event) -> bool| events.iter().position(wanted);
    let acked = place(|event| matches!(event, Event::Registered(_)));
    let offered = place(|event| matches!(event, Event::Offer(..)));
    assert!(acked.expect("registered") < offered.expect("offered"));
}

#[test]
fn busy_hears_drain() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], 2);
    for req in 0..4 {
        producer.client.submit(submit(req, "echo", false), Bytes::new());
    }
    producer.run().expect("in order");
    worker.run().expect("in order");
    let held = offers(&mut worker);
    assert_eq!(held.len(), 2);
    for (offer, _) in &held {
        worker.client.accept(offer.lease, bed.now);
    }
    let id = worker.server.worker_id().expect("registered");
    let scope = DrainScope::Worker(id);
    let bell = Arc::new(Bell::default());
    bed.engine.drain_scope(&bed.operator, scope, None, bell, bed.now).expect("drained");
    worker.run().expect("in order");
    let heard = events(&mut worker);
    assert!(matches!(heard.as_slice(), [Event::Drain(_)]), "{heard:?}");
    for (offer, payload) in held {
        worker.client.report(crate::bed::result(&offer), payload);
    }
    assert_eq!(work(&mut worker), 0);
    worker.client.say_goodbye(m::GoodbyeReason::Drained, bed.now);
    worker.run().expect("in order");
    assert_eq!(ended(&mut worker), Some(Ended::Done));
    assert!(bed.engine.workers(&bed.operator).1.is_empty());
    let mut next = bed.worker(&["echo"], 2);
    assert_eq!(work(&mut next), 2);
}

#[test]
fn wedged_process_is_told() {
    // The same instance comes back on another session: the old one, still connected, is told.
    let mut bed = Bed::new();
    let mut old = bed.pair();
    bed.register(&mut old, &["echo"], 1, 77);
    let mut new = bed.pair();
    bed.register(&mut new, &["echo"], 1, 77);
    old.run().expect("in order");
    let Some(Ended::Goodbye { reason, .. }) = ended(&mut old) else {
        panic!("it must be told");
    };
    assert_eq!(reason, Some(m::GoodbyeReason::Superseded));
    assert!(old.server.is_closed());
    assert_eq!(bed.engine.workers(&bed.operator).1.len(), 1);
}

// bug: B20
#[test]
fn same_name_other_session_rejected() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut holder = bed.worker(&["echo"], 1);
    producer.client.submit(submit(1, "echo", true), Bytes::new());
    producer.run().expect("in order");
    holder.run().expect("in order");
    let (offer, _) = offers(&mut holder).pop().expect("an offer");
    holder.client.accept(offer.lease, bed.now);
    holder.run().expect("in order");
    // Same principal, same identity, another process.
    let mut namesake = bed.worker(&["echo"], 1);
    namesake.client.report(crate::bed::result(&offer), Bytes::from_static(b"not mine"));
    namesake.run().expect("in order");
    let judged = crate::bed::verdicts(&mut namesake);
    assert!(judged.iter().all(|verdict| *verdict >= 3) && judged.len() == 1, "{judged:?}");
    holder.client.report(crate::bed::result(&offer), Bytes::from_static(b"mine"));
    holder.run().expect("in order");
    producer.run().expect("in order");
    assert_eq!(crate::bed::outcomes(&mut producer)[0].1, "mine");
}

#[test]
fn a_second_namespace_of_a_session_id_is_its_own() {
    // Session ids are told to the client as the server drew them.
    let mut bed = Bed::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut pair = bed.pair();
        pair.run().expect("in order");
        ids.extend(events(&mut pair).into_iter().find_map(|event| match event {
            Event::Welcome(welcome) => SessionId::from_slice(&welcome.session_id),
            _ => None,
        }));
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[test]
fn an_updates_answer_is_ahead_of_its_offers() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    producer.client.submit(submit(1, "new", false), Bytes::new());
    producer.run().expect("in order");
    let mut worker = bed.worker(&["old"], 4);
    worker.run().expect("in order");
    let update = m::Register { req: 5, ..register(&["old", "new"], 1) };
    let now = worker.now();
    worker.server.handle_frame(Channel::Control, Frame::Update(Box::new(update)), now).expect("ok");
    let said: Vec<_> = std::iter::from_fn(|| worker.server.poll_transmit(now)).collect();
    // On one lane, so that nothing comes in between.
    let [(a, Frame::RegisterAck(ack)), (b, Frame::Offer(..))] = said.as_slice() else {
        panic!("{said:?}")
    };
    assert_eq!((*a, *b, ack.req, ack.err.is_none()), (Channel::Lane(0), Channel::Lane(0), 5, true));
}

#[test]
fn a_goodbye_does_not_overtake_what_was_said_before_it() {
    let mut bed = Bed::new();
    let mut pair = bed.pair();
    pair.run().expect("in order");
    events(&mut pair);
    let now = pair.now();
    let outcome = |stream_ref| {
        let outcome = m::Outcome { req: 7, stream_ref: Some(stream_ref), ..m::Outcome::default() };
        Frame::Outcome(Box::new(outcome), Bytes::new())
    };
    let piece = |offset, last| Frame::Payload {
        stream_ref: 3,
        offset,
        last,
        bytes: Bytes::from_static(b"half"),
    };
    let goodbye = Frame::Goodbye(m::Goodbye::default());
    for frame in [piece(0, false), outcome(3), goodbye] {
        pair.client.handle_frame(Channel::Lane(0), frame, now).expect("in order");
    }
    assert!(!pair.client.is_closed());
    pair.client.handle_frame(Channel::Control, piece(4, true), now).expect("in order");
    assert!(pair.client.is_closed());
    let heard = events(&mut pair);
    let [Event::Outcome(outcome, payload), Event::Ended(Ended::Goodbye { .. })] = heard.as_slice()
    else {
        panic!("{heard:?}")
    };
    assert_eq!((outcome.req, payload.as_ref()), (7, b"halfhalf".as_slice()));
}

#[test]
fn a_goodbye_does_not_wait_for_ever() {
    let mut bed = Bed::new();
    let mut pair = bed.pair();
    pair.run().expect("in order");
    let now = pair.now();
    let outcome = m::Outcome { req: 7, stream_ref: Some(3), ..m::Outcome::default() };
    let goodbye = Frame::Goodbye(m::Goodbye::default());
    for frame in [Frame::Outcome(Box::new(outcome), Bytes::new()), goodbye] {
        pair.client.handle_frame(Channel::Lane(0), frame, now).expect("in order");
    }
    let due = pair.client.poll_timeout().expect("a limit");
    pair.client.handle_timeout(due);
    assert!(pair.client.is_closed());
    assert!(matches!(ended(&mut pair), Some(Ended::Goodbye { .. })));
}
