//! The connection is lost, anywhere.

use std::time::Duration;

use bytes::Bytes;
use slipswitch_net::client::Unsettled;
use slipswitch_net::proto::messages as m;

use crate::bed::{Bed, offers, outcomes, result, submit, verdicts, work};

#[test]
fn loss_at_every_step_loses_no_task() {
    let mut steps = 0;
    for lost_after in 0.. {
        let mut bed = Bed::new();
        let mut producer = bed.pair();
        producer.client.submit(submit(1, "echo", true), Bytes::from_static(b"x"));
        producer.client.submit(submit(2, "echo", true), Bytes::from_static(b"y"));
        producer.run().expect("in order");
        let mut worker = bed.pair();
        worker.lose_after(lost_after);
        worker.client.register(crate::bed::register(&["echo"], 5));
        worker.client.grant(2);
        // Whatever of this comes through, comes through.
        work(&mut worker);
        worker.run().expect("in order");
        steps = worker.crossed();
        let was_lost = worker.is_lost();
        worker.lose();
        let unsettled = worker.client.take_unsettled();
        drop(worker);
        // The same process comes back, with what nobody judged.
        let mut again = bed.pair_of(bed.operator.clone(), unsettled);
        bed.register(&mut again, &["echo"], 2, 5);
        again.run().expect("in order");
        bed.pass(Duration::from_secs(4), &mut [&mut again, &mut producer]);
        work(&mut again);
        bed.pass(Duration::from_secs(1), &mut [&mut again, &mut producer]);
        let mut told: Vec<(u64, Bytes)> =
            outcomes(&mut producer).into_iter().map(|(o, p)| (o.req, p)).collect();
        told.sort();
        let expected = [(1, Bytes::from_static(b"x")), (2, Bytes::from_static(b"y"))];
        assert_eq!(told, expected, "lost after {lost_after} frames");
        let (credit, in_flight) = {
            let (_, workers) = bed.engine.workers(&bed.operator);
            (workers[0].credit, workers[0].in_flight)
        };
        assert_eq!((credit, in_flight), (2, 0), "lost after {lost_after} frames");
        if !was_lost {
            break;
        }
    }
    assert!(steps > 8, "{steps} frames crossed in all");
}

#[test]
fn kill_transport_mid_completion() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    producer.client.submit(submit(1, "echo", true), Bytes::from_static(b"x"));
    producer.run().expect("in order");
    let mut worker = bed.pair();
    bed.register(&mut worker, &["echo"], 1, 5);
    worker.run().expect("in order");
    let (offer, payload) = offers(&mut worker).pop().expect("an offer");
    worker.client.accept(offer.lease, bed.now);
    worker.run().expect("in order");
    // The result leaves the handler, and the transport is gone.
    worker.client.report(result(&offer), payload);
    worker.lose();
    let unsettled = worker.client.take_unsettled();
    assert_eq!(unsettled.len(), 1);
    drop(worker);
    let mut again = bed.pair_of(bed.operator.clone(), unsettled);
    bed.register(&mut again, &["echo"], 1, 5);
    again.run().expect("in order");
    producer.run().expect("in order");
    let (outcome, output) = outcomes(&mut producer).pop().expect("an outcome");
    // Applied, not run again.
    assert_eq!((output, outcome.deliveries), (Bytes::from_static(b"x"), 1));
    assert!(again.client.unsettled().is_empty());
}

#[test]
fn duplicate_after_lost_ack() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    producer.client.submit(submit(1, "echo", true), Bytes::from_static(b"x"));
    producer.run().expect("in order");
    let mut worker = bed.pair();
    bed.register(&mut worker, &["echo"], 1, 5);
    worker.run().expect("in order");
    let (offer, payload) = offers(&mut worker).pop().expect("an offer");
    worker.client.accept(offer.lease, bed.now);
    worker.client.report(result(&offer), payload);
    // Accept and result cross; the verdict does not.
    worker.lose_after(2);
    worker.run().expect("in order");
    assert!(worker.is_lost());
    let unsettled = worker.client.take_unsettled();
    drop(worker);
    let mut again = bed.pair_of(bed.operator.clone(), unsettled);
    again.client.register(crate::bed::register(&["echo"], 5));
    again.client.grant(1);
    again.run().expect("in order");
    assert_eq!(verdicts(&mut again), [m::VerdictKind::Duplicate as u32]);
    producer.run().expect("in order");
    assert_eq!(outcomes(&mut producer).len(), 1);
}

#[test]
fn credit_waits_for_the_verdicts_of_earlier_sessions() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    for req in 0..3 {
        producer.client.submit(submit(req, "echo", true), Bytes::new());
    }
    producer.run().expect("in order");
    let mut worker = bed.pair();
    bed.register(&mut worker, &["echo"], 1, 5);
    worker.run().expect("in order");
    let (offer, payload) = offers(&mut worker).pop().expect("an offer");
    worker.client.accept(offer.lease, bed.now);
    worker.run().expect("in order");
    worker.client.report(result(&offer), payload);
    worker.lose();
    let unsettled = worker.client.take_unsettled();
    let mut again = bed.pair_of(bed.operator.clone(), unsettled);
    again.client.register(crate::bed::register(&["echo"], 5));
    again.client.grant(1);
    let mut order = Vec::new();
    loop {
        let before = again.crossed();
        again.lose_after(u64::MAX);
        again.run().expect("in order");
        order.extend(crate::bed::events(&mut again));
        if again.crossed() == before {
            break;
        }
    }
    use slipswitch_net::client::Event;
    let verdict = order.iter().position(|event| matches!(event, Event::Verdict { .. }));
    let offer = order.iter().position(|event| matches!(event, Event::Offer(..)));
    assert!(verdict.expect("judged") < offer.expect("offered"));
}

#[test]
fn a_lost_producer_costs_no_task() {
    let mut bed = Bed::new();
    let mut producer = bed.pair();
    producer.client.submit(submit(1, "echo", true), Bytes::from_static(b"x"));
    producer.run().expect("in order");
    let id = crate::bed::events(&mut producer).into_iter().find_map(|event| match event {
        slipswitch_net::client::Event::SubmitAck(ack) => Some(ack.task_id),
        _ => None,
    });
    producer.lose();
    drop(producer);
    let mut worker = bed.worker(&["echo"], 1);
    assert_eq!(work(&mut worker), 1);
    let mut again = bed.pair_of(bed.operator.clone(), Unsettled::default());
    again.client.wait(m::Await { req: 3, task_id: id.expect("taken"), timeout: 0 });
    again.run().expect("in order");
    assert_eq!(outcomes(&mut again)[0].1, "x");
}

// bug: B53
#[test]
fn cancelled_reads_keep_sync() {
    // A reader that is cut off between any two bytes, and goes on later, misses nothing: what was
    // read stays in the decoder, and the session is handed whole frames.
    for chunk in 1..=23 {
        let mut bed = Bed::new();
        let mut producer = bed.pair().in_chunks_of(chunk);
        let mut worker = bed.worker(&["echo"], 64).in_chunks_of(24 - chunk);
        for req in 0..50 {
            let payload = Bytes::from(vec![req as u8; req as usize * 3]);
            producer.client.submit(submit(req, "echo", true), payload);
        }
        producer.run().expect("in order");
        assert_eq!(work(&mut worker), 50);
        producer.run().expect("in order");
        let told = outcomes(&mut producer);
        assert_eq!(told.len(), 50);
        for (outcome, output) in told {
            assert_eq!(output, vec![outcome.req as u8; outcome.req as usize * 3]);
        }
    }
}
