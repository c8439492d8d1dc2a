//! How many tasks a worker takes at once (specification 8).

use std::time::Duration;

use slipswitch_core::{Beat, Config, FailureClass, RejectCode, Verdict};

use crate::bed::{Bed, entry, key, register};

const POOL: &str = "main/default/work";

#[test]
fn no_credit_before_the_first_grant() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 0);
    let id = bed.submit(POOL);
    assert!(worker.poll_offer(bed.now).is_none());
    assert_eq!(bed.reason(id).as_str(), "AllFull");
    worker.credit(1, 2, bed.now);
    assert_eq!(bed.accept(&mut worker).task.id(), id);
}

#[test]
fn older_grants_are_ignored_and_capacity_is_the_ceiling() {
    let mut bed = Bed::new();
    let mut worker = bed.join(slipswitch_core::Register { capacity: 8, ..register(&[POOL], 1) }, 4);
    worker.credit(2, 1, bed.now);
    assert_eq!(worker.load().0, 4);
    worker.credit(100, 2, bed.now);
    assert_eq!(worker.load().0, 8);
}

#[test]
fn a_limit_below_in_flight_stops_offers_and_cancels_nothing() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 3);
    bed.submit_many(POOL, 4);
    let offers: Vec<_> = (0..3).map(|_| bed.accept(&mut worker)).collect();
    worker.credit(1, 2, bed.now);
    assert!(worker.poll_cancel().is_none());
    for offer in &offers[..2] {
        assert_eq!(bed.complete(&mut worker, offer), Verdict::Applied);
        assert!(worker.poll_offer(bed.now).is_none());
    }
    assert_eq!(bed.complete(&mut worker, &offers[2]), Verdict::Applied);
    assert!(worker.poll_offer(bed.now).is_some());
}

// bug: B21
#[test]
fn claim_needs_held_credit() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 2);
    let ids: Vec<_> = (0..5).map(|_| bed.submit(POOL)).collect();
    let offered = ids.iter().filter(|id| bed.state(**id).as_str() == "offered").count();
    assert_eq!((offered, worker.load()), (2, (2, 2)));
    let first = bed.accept(&mut worker);
    let second = bed.accept(&mut worker);
    assert!(worker.poll_offer(bed.now).is_none());
    bed.complete(&mut worker, &first);
    let third = bed.accept(&mut worker);
    assert!(worker.poll_offer(bed.now).is_none());
    assert_eq!(worker.load(), (2, 2));
    bed.complete(&mut worker, &second);
    bed.complete(&mut worker, &third);
    assert_eq!(bed.drain_offers(&mut worker), 2);
    assert_eq!(worker.load(), (2, 0));
}

#[test]
fn fourteen_tasks_four_slots() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 4);
    let ids: Vec<_> = (0..14).map(|_| bed.submit(POOL)).collect();
    let mut running = std::collections::VecDeque::new();
    let mut order = Vec::new();
    while order.len() < ids.len() {
        while let Some(offer) = worker.poll_offer(bed.now) {
            worker.accept(offer.lease, bed.now);
            assert_eq!(offer.deliveries, 0);
            order.push(offer.task.id());
            running.push_back(offer);
        }
        assert!(running.len() <= 4);
        let oldest = running.pop_front().expect("something runs");
        // Far longer than a lease: only beats keep it alive.
        for _ in 0..8 {
            bed.pass_with(Duration::from_secs(7), &mut [&mut worker]);
            assert!(worker.beat(Beat::All, bed.now).is_empty());
        }
        assert_eq!(bed.complete(&mut worker, &oldest), Verdict::Applied);
    }
    assert_eq!(order, ids);
}

#[test]
fn capacity_one_never_overlaps() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let first = bed.submit(POOL);
    let second = bed.submit(POOL);
    let offer = bed.accept(&mut worker);
    // No beat: the lease is lost, but the worker's only slot is still busy.
    bed.pass_with(Duration::from_secs(31), &mut [&mut worker]);
    assert_eq!(worker.poll_cancel().map(|stop| stop.lease), Some(offer.lease));
    assert_eq!(bed.state(first).as_str(), "pending");
    assert!(worker.poll_offer(bed.now).is_none());
    assert_eq!(worker.load(), (1, 1));
    assert_eq!(bed.complete(&mut worker, &offer), Verdict::Stale);
    let next = bed.accept(&mut worker);
    assert!([first, second].contains(&next.task.id()));
    assert!(worker.poll_offer(bed.now).is_none());
}

#[test]
fn stalled_worker() {
    let mut bed = Bed::new();
    let mut stalled = bed.worker(&[POOL], 1);
    let mut busy = bed.worker(&[POOL], 1);
    let first = bed.submit(POOL);
    bed.submit_many(POOL, 50);
    let stuck = bed.accept(&mut stalled);
    assert_eq!(stuck.task.id(), first);
    assert_eq!(bed.drain_offers(&mut busy), 50);
    for _ in 0..20 {
        bed.pass_with(Duration::from_secs(5), &mut [&mut stalled, &mut busy]);
        stalled.beat(Beat::All, bed.now);
    }
    assert_eq!(bed.engine.workers(&bed.operator).1.len(), 2);
    assert_eq!(bed.complete(&mut stalled, &stuck), Verdict::Applied);
}

// bug: S6
#[test]
fn full_is_not_closed() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let first = bed.submit(POOL);
    let waiting = bed.submit(POOL);
    // Full: the task waits, the worker stays, and nothing was charged.
    assert_eq!(bed.reason(waiting).as_str(), "AllFull");
    assert_eq!(bed.engine.workers(&bed.operator).1.len(), 1);
    assert_eq!(bed.drain_offers(&mut worker), 2);
    bed.engine.drain(bed.now);
    // A registration after the drain sees it.
    let late = bed.engine.register(
        &bed.operator,
        slipswitch_core::SessionId::from_bytes([1; 16]),
        register(&[POOL], 99),
        std::sync::Arc::new(crate::bed::Bell::default()),
        bed.now,
    );
    assert!(matches!(late, Err(slipswitch_core::RegisterError::Draining)));
    assert!(bed.state(first).is_terminal());
}

#[test]
fn every_way_a_lease_ends_returns_one_credit() {
    let mut bed = Bed::with(Config::default());
    let mut worker = bed.worker(&[POOL], 4);
    for round in 0..40 {
        bed.submit(POOL);
        let offer = worker.poll_offer(bed.now).expect("an offer");
        assert_eq!(worker.load().1, 1);
        match round % 5 {
            0 => worker.reject(offer.lease, RejectCode::Malformed, bed.now),
            1 => {
                bed.complete(&mut worker, &offer);
                // Twice: the second settles nothing and returns nothing.
                bed.complete(&mut worker, &offer);
            }
            2 => {
                worker.accept(offer.lease, bed.now);
                bed.fail(&mut worker, &offer, FailureClass::Terminal);
            }
            3 => {
                worker.accept(offer.lease, bed.now);
                bed.fail(&mut worker, &offer, FailureClass::Infrastructure);
            }
            _ => {
                bed.pass_with(Duration::from_millis(2_200), &mut [&mut worker]);
                worker.reject(offer.lease, RejectCode::Malformed, bed.now);
            }
        }
        bed.drain_offers(&mut worker);
        assert_eq!(worker.load(), (4, 0), "round {round}");
    }
    assert_eq!(worker.running(), 0);
}

#[test]
fn a_full_rejection_is_believed_until_the_next_grant() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 4);
    let id = bed.submit(POOL);
    let offer = worker.poll_offer(bed.now).expect("an offer");
    worker.reject(offer.lease, RejectCode::NoCapacity, bed.now);
    assert!(worker.poll_offer(bed.now).is_none());
    assert_eq!(bed.status(id).deliveries, 0);
    worker.credit(4, 2, bed.now);
    assert_eq!(bed.accept(&mut worker).task.id(), id);
}

#[test]
fn an_update_replaces_the_ceiling_of_the_credit() {
    let mut bed = Bed::new();
    let register = slipswitch_core::Register { capacity: 4, ..register(&[POOL], 1) };
    let mut worker = bed.join(register, 6);
    assert_eq!(worker.load().0, 4);
    let pools = || vec![entry(&key(POOL))];
    // What was granted counts again once there is room for it.
    worker.update(pools(), 8, bed.now).expect("admitted");
    assert_eq!(worker.load().0, 6);
    worker.update(pools(), 2, bed.now).expect("admitted");
    assert_eq!(worker.load().0, 2);
    // Refused: all stays as it was.
    assert!(worker.update(pools(), 0, bed.now).is_err());
    assert!(worker.update(pools(), slipswitch_core::CREDIT_MAX + 1, bed.now).is_err());
    assert_eq!(worker.load().0, 2);
    // A worker that said it has no room is not given more by an update.
    worker.update(pools(), 8, bed.now).expect("admitted");
    bed.submit(POOL);
    let offer = worker.poll_offer(bed.now).expect("an offer");
    worker.reject(offer.lease, RejectCode::NoCapacity, bed.now);
    let lowered = worker.load().0;
    assert!(lowered < 6);
    worker.update(pools(), 9, bed.now).expect("admitted");
    assert_eq!(worker.load().0, lowered);
}
