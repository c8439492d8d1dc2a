//! Silence, and what follows from it.

use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::TaskState;
use slipswitch_net::client::Ended;
use slipswitch_net::proto::Driver;

use crate::bed::{Bed, ended, offers, outcomes, submit, work};

#[test]
fn pings_keep_an_idle_session_alive() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&["echo"], 1);
    bed.pass(Duration::from_secs(60), &mut [&mut worker]);
    assert!(ended(&mut worker).is_none());
    assert_eq!(bed.engine.workers(&bed.operator).1.len(), 1);
    // A ping and its answer every three seconds at most, from either side.
    assert!(worker.crossed() < 100, "{} frames", worker.crossed());
}

#[test]
fn half_open_detected() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&["echo"], 1);
    let start = worker.now();
    // Neither side hears the other any more, and nobody is told.
    let mut dead_client = None;
    let mut dead_server = None;
    for tick in 1..=100 {
        let now = start + Duration::from_millis(100 * tick);
        for side in [true, false] {
            let driver: &mut dyn Driver =
                if side { &mut worker.client } else { &mut worker.server };
            if driver.poll_timeout().is_some_and(|due| due <= now) {
                driver.handle_timeout(now);
            }
            while driver.poll_transmit(now).is_some() {}
            let dead = if side { &mut dead_client } else { &mut dead_server };
            if driver.is_closed() {
                dead.get_or_insert(now.saturating_since(start));
            }
        }
    }
    for dead in [dead_client, dead_server] {
        let after = dead.expect("noticed");
        assert!((5_900..=6_200).contains(&after.as_millis()), "{after:?}");
    }
    assert_eq!(ended(&mut worker), Some(Ended::Silent));
    assert!(bed.engine.workers(&bed.operator).1.is_empty());
}

#[test]
fn a_peer_that_never_says_hello_is_cut_off() {
    let mut bed = Bed::new();
    let mut pair = bed.pair();
    let late = pair.now() + Duration::from_secs(6);
    assert!(pair.server.poll_timeout().is_some_and(|due| due < late));
    pair.server.handle_timeout(late);
    assert!(pair.server.is_closed());
    pair.client.handle_timeout(late);
    assert_eq!(ended(&mut pair), Some(Ended::NoWelcome));
}

#[test]
fn long_tasks_live_by_beats_alone() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], 1);
    producer.client.submit(submit(1, "echo", true), Bytes::from_static(b"x"));
    producer.run().expect("in order");
    worker.run().expect("in order");
    let (offer, payload) = offers(&mut worker).pop().expect("an offer");
    worker.client.accept(offer.lease, bed.now);
    bed.pass(Duration::from_secs(300), &mut [&mut worker, &mut producer]);
    let tasks = bed.engine.tasks(&bed.operator, &Default::default(), None, 1);
    assert_eq!((tasks[0].state, tasks[0].lost), (TaskState::Running, 0));
    worker.client.report(crate::bed::result(&offer), payload);
    worker.run().expect("in order");
    producer.run().expect("in order");
    assert_eq!(outcomes(&mut producer).len(), 1);
}

// bug: B17
#[test]
fn registered_iff_alive_audit() {
    let mut bed = Bed::new();
    let mut alive: Vec<crate::bed::Pair> = Vec::new();
    let mut dice = 0x2545_f491_4f6c_dd1d_u64;
    for step in 0..400 {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        match dice % 5 {
            0 | 1 => alive.push(bed.worker(&["echo"], 1)),
            2 if !alive.is_empty() => {
                let at = dice as usize / 8 % alive.len();
                let mut pair = alive.swap_remove(at);
                pair.lose();
            }
            3 if !alive.is_empty() => {
                let at = dice as usize / 8 % alive.len();
                let mut pair = alive.swap_remove(at);
                let now = pair.now();
                let reason = slipswitch_net::proto::messages::GoodbyeReason::ClientGoodbye;
                pair.client.say_goodbye(reason, now);
                pair.run().expect("in order");
            }
            4 if !alive.is_empty() => {
                // Dropped without a word, as when its task panics.
                let at = dice as usize / 8 % alive.len();
                drop(alive.swap_remove(at));
            }
            _ => {}
        }
        let mut registered: Vec<_> =
            bed.engine.workers(&bed.operator).1.iter().map(|worker| worker.id).collect();
        let mut living: Vec<_> = alive.iter().filter_map(|pair| pair.server.worker_id()).collect();
        registered.sort_unstable();
        living.sort_unstable();
        assert_eq!(registered, living, "step {step}");
    }
}

#[test]
fn server_shutdown_says_goodbye() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&["echo"], 1);
    let now = worker.now();
    bed.engine.drain(now);
    worker.run().expect("in order");
    worker.server.shut_down(now);
    worker.run().expect("in order");
    let Some(Ended::Goodbye { reason, .. }) = ended(&mut worker) else { panic!("it is told") };
    let shutdown = slipswitch_net::proto::messages::GoodbyeReason::ServerShutdown;
    assert_eq!(reason, Some(shutdown));
    assert!(worker.server.is_closed() && worker.client.is_closed());
    assert_eq!(work(&mut worker), 0);
}

#[test]
fn outcomes_that_have_come_are_told_before_the_goodbye() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut worker = bed.worker(&["echo"], 8);
    for req in 0..8 {
        producer.client.submit(submit(req, "echo", true), Bytes::from_static(b"x"));
    }
    producer.run().expect("in order");
    assert_eq!(work(&mut worker), 8);
    let now = producer.now();
    producer.server.shut_down(now);
    producer.run().expect("in order");
    let heard = crate::bed::events(&mut producer);
    let outcomes = heard
        .iter()
        .filter(|event| matches!(event, slipswitch_net::client::Event::Outcome(..)))
        .count();
    assert_eq!(outcomes, 8);
    assert!(matches!(heard.last(), Some(slipswitch_net::client::Event::Ended(_))), "{heard:?}");
}

#[test]
fn removal_reason_is_true() {
    use slipswitch_net::proto::messages::GoodbyeReason;
    let mut bed = Bed::new();
    let told = |pair: &mut crate::bed::Pair| match ended(pair) {
        Some(Ended::Goodbye { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    // Superseded.
    let mut old = bed.pair();
    bed.register(&mut old, &["echo"], 1, 9);
    let mut new = bed.pair();
    bed.register(&mut new, &["echo"], 1, 9);
    old.run().expect("in order");
    assert_eq!(told(&mut old), Some(GoodbyeReason::Superseded));
    // A protocol violation.
    new.client.register(crate::bed::register(&["echo"], 9));
    assert!(new.run().is_err());
    assert_eq!(told(&mut new), Some(GoodbyeReason::ProtocolViolation));
    // Silence.
    let mut silent = bed.worker(&["echo"], 1);
    silent.run().expect("in order");
    let late = silent.now() + Duration::from_secs(7);
    silent.server.handle_timeout(late);
    silent.run().expect("in order");
    assert_eq!(told(&mut silent), Some(GoodbyeReason::LivenessExpired));
    // Shutdown.
    let mut last = bed.worker(&["echo"], 1);
    let now = last.now();
    last.server.shut_down(now);
    last.run().expect("in order");
    assert_eq!(told(&mut last), Some(GoodbyeReason::ServerShutdown));
    assert!(bed.engine.workers(&bed.operator).1.is_empty());
}

#[test]
fn thousand_flaps_served() {
    // A worker that loses its connection a thousand times, each time with work in its hands, is
    // served after each return, and its credit is whole.
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    let mut unsettled = slipswitch_net::client::Unsettled::default();
    let mut done = 0;
    for flap in 0..1_000u64 {
        producer.client.submit(submit(flap, "echo", true), Bytes::from_static(b"x"));
        producer.run().expect("in order");
        let mut worker = bed.pair_of(bed.operator.clone(), unsettled);
        bed.register(&mut worker, &["echo"], 4, 5);
        // On every third session the connection goes between accept and verdict.
        if flap % 3 == 0 {
            worker.lose_after(flap % 7);
        }
        work(&mut worker);
        worker.run().expect("in order");
        worker.lose();
        unsettled = worker.client.take_unsettled();
        drop(worker);
        bed.pass(Duration::from_millis(40), &mut [&mut producer]);
        done += outcomes(&mut producer).len();
    }
    // What was in its hands at the last loss comes back after the grace.
    bed.pass(Duration::from_secs(3), &mut [&mut producer]);
    let mut last = bed.pair_of(bed.operator.clone(), unsettled);
    bed.register(&mut last, &["echo"], 4, 5);
    for _ in 0..40 {
        work(&mut last);
        bed.pass(Duration::from_secs(1), &mut [&mut producer, &mut last]);
        done += outcomes(&mut producer).len();
    }
    assert_eq!(done, 1_000);
    let (_, workers) = bed.engine.workers(&bed.operator);
    assert_eq!((workers.len(), workers[0].credit, workers[0].in_flight), (1, 4, 0));
}
