//! Deliveries: accepted, lost, given up (specification 9 and 12).

use std::time::Duration;

use slipswitch_core::{
    Beat, CancelReason, Class, CloseReason, FailureClass, RejectCode, RetryKind, TaskOptions,
    TaskState, Verdict,
};

use crate::bed::{Bed, completed, mailbox, register, take, told};

const POOL: &str = "main/default/work";

#[test]
fn worker_dies_without_heartbeat() {
    let mut bed = Bed::new();
    let mut dies = bed.worker(&[POOL], 1);
    let id = bed.submit(POOL);
    bed.accept(&mut dies);
    dies.close(CloseReason::LivenessExpired, bed.now);
    let mut next = bed.worker(&[POOL], 1);
    // The worker might come back for it, until the grace is over.
    bed.pass(Duration::from_millis(1_900));
    assert!(next.poll_offer(bed.now).is_none());
    bed.pass(Duration::from_millis(200));
    assert_eq!(bed.accept(&mut next).task.id(), id);
    assert_eq!((bed.status(id).lost, bed.status(id).attempt), (1, 1));
}

// bug: B24
#[test]
fn disconnect_frees_leases_1s() {
    let mut bed = Bed::new();
    let mut leaves = bed.worker(&[POOL], 3);
    let ids: Vec<_> = (0..3).map(|_| bed.submit(POOL)).collect();
    bed.accept(&mut leaves);
    leaves.poll_offer(bed.now).expect("an offer that is never accepted");
    leaves.close(CloseReason::ClientGoodbye, bed.now);
    let mut next = bed.worker(&[POOL], 3);
    // At once, without any clock: accepted, offered and not yet sent.
    let mut got: Vec<_> = (0..3).map(|_| bed.accept(&mut next).task.id()).collect();
    got.sort_unstable();
    assert_eq!(got, ids);
    assert_eq!(leaves.load(), (0, 0));
    let lost: Vec<_> = ids.iter().map(|id| bed.status(*id).lost).collect();
    assert_eq!(lost, [1, 0, 0]);
}

#[test]
fn lapsed_task_on_live_worker() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 2);
    let (lapses, lives) = (bed.submit(POOL), bed.submit(POOL));
    let lapsed = bed.accept(&mut worker);
    let kept = bed.accept(&mut worker);
    for _ in 0..5 {
        bed.pass_with(Duration::from_secs(7), &mut [&mut worker]);
        worker.beat(Beat::Leases(&[kept.lease]), bed.now);
    }
    // One lapsed; the worker is not condemned for it, and is told.
    assert_eq!(told(&mut worker), Some((lapsed.lease, CancelReason::Stale)));
    assert_eq!(bed.engine.workers(&bed.operator).1.len(), 1);
    assert_eq!(bed.state(lives), TaskState::Running);
    let mut other = bed.worker(&[POOL], 1);
    let again = bed.accept(&mut other);
    assert_eq!(again.task.id(), lapses);
    assert!(again.lease.epoch > lapsed.lease.epoch);
    assert_eq!(bed.complete(&mut other, &again), Verdict::Applied);
    assert_eq!(bed.complete(&mut worker, &lapsed), Verdict::Stale);
    assert_eq!(worker.load().1, 1);
}

#[test]
fn a_beat_for_all_keeps_all_alive() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 8);
    bed.submit_many(POOL, 8);
    let offers: Vec<_> = (0..8).map(|_| bed.accept(&mut worker)).collect();
    for _ in 0..40 {
        bed.pass_with(Duration::from_secs(7), &mut [&mut worker]);
        assert!(worker.beat(Beat::All, bed.now).is_empty());
    }
    assert!(worker.poll_cancel().is_none());
    for offer in &offers {
        assert_eq!(bed.complete(&mut worker, offer), Verdict::Applied);
    }
}

// bug: B22
#[test]
fn lost_delivery_resent_2s() {
    let mut bed = Bed::new();
    let mut deaf = bed.worker(&[POOL], 1);
    let mut other = bed.worker(&[POOL], 0);
    let id = bed.submit(POOL);
    let lost = deaf.poll_offer(bed.now).expect("an offer");
    other.credit(1, 2, bed.now);
    bed.pass_with(Duration::from_millis(1_900), &mut [&mut deaf, &mut other]);
    assert_eq!(bed.state(id), TaskState::Offered);
    bed.pass_with(Duration::from_millis(200), &mut [&mut deaf, &mut other]);
    let again = bed.accept(&mut other);
    assert_eq!(again.task.id(), id);
    assert!(again.lease.epoch > lost.lease.epoch);
    let status = bed.status(id);
    assert_eq!((status.attempt, status.deliveries, status.lost), (1, 1, 0));
    // The accept that comes late is answered, and what it reports is stale.
    assert_eq!(told(&mut deaf), Some((lost.lease, CancelReason::Stale)));
    deaf.accept(lost.lease, bed.now);
    assert_eq!(told(&mut deaf), Some((lost.lease, CancelReason::Stale)));
    assert_eq!(deaf.result(completed(&lost, b"late"), bed.now), Verdict::Stale);
    assert_eq!(bed.complete(&mut other, &again), Verdict::Applied);
    assert_eq!(bed.status(id).outcome.expect("ended").payload, "done");
}

#[test]
fn twenty_lost_offers_give_a_task_up() {
    let mut bed = Bed::new();
    let (mailbox, _) = mailbox();
    let watcher = slipswitch_core::Watcher { mailbox: mailbox.clone(), tag: 1 };
    let id = bed.try_submit(POOL, TaskOptions::default(), Some(watcher)).expect("taken").id;
    for round in 0..20 {
        assert_eq!(bed.status(id).deliveries, 0, "round {round}");
        let mut worker = bed.worker(&[POOL], 1);
        worker.poll_offer(bed.now).expect("an offer");
        worker.close(CloseReason::StreamClosed, bed.now);
    }
    let outcome = take(&mailbox).pop().expect("an outcome").outcome;
    assert_eq!((outcome.state, outcome.class), (TaskState::Dead, Class::LostOffers));
    assert_eq!((outcome.attempt, outcome.deliveries), (1, 0));
}

#[test]
fn an_accepted_offer_starts_the_count_anew() {
    let mut bed = Bed::new();
    let id = bed.submit(POOL);
    for _ in 0..3 {
        for _ in 0..19 {
            let mut worker = bed.worker(&[POOL], 1);
            worker.poll_offer(bed.now).expect("an offer");
            worker.close(CloseReason::StreamClosed, bed.now);
        }
        let mut worker = bed.worker(&[POOL], 1);
        bed.accept(&mut worker);
        worker.close(CloseReason::ClientGoodbye, bed.now);
        bed.pass(Duration::from_secs(5));
    }
    assert_eq!(bed.state(id), TaskState::Pending);
}

#[test]
fn poison_dead_letters_at_five() {
    let mut bed = Bed::new();
    let id = bed.submit(POOL);
    let mut delays = Vec::new();
    for loss in 1..=5 {
        let mut worker = bed.worker(&[POOL], 1);
        let mut waited = Duration::ZERO;
        let offer = loop {
            if let Some(offer) = worker.poll_offer(bed.now) {
                break offer;
            }
            bed.pass_with(Duration::from_millis(100), &mut [&mut worker]);
            waited += Duration::from_millis(100);
            assert!(waited < Duration::from_secs(60), "loss {loss}");
        };
        delays.push(waited.as_secs());
        worker.accept(offer.lease, bed.now);
        worker.close(CloseReason::ClientGoodbye, bed.now);
        assert_eq!(bed.status(id).lost, loss);
    }
    // At once, then a second, then doubling.
    assert_eq!(delays, [0, 0, 1, 2, 4]);
    let status = bed.status(id);
    assert_eq!(status.outcome.expect("ended").class, Class::LostDeliveries);
    assert_eq!((status.attempt, status.deliveries), (1, 5));
}

#[test]
fn infrastructure_burns_no_attempt() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let id = bed.submit(POOL);
    let offer = bed.accept(&mut worker);
    assert_eq!(bed.fail(&mut worker, &offer, FailureClass::Infrastructure), Verdict::Applied);
    let status = bed.status(id);
    assert_eq!((status.attempt, status.deliveries, status.lost), (1, 1, 1));
    let again = bed.accept(&mut worker);
    assert_eq!((again.attempt, again.deliveries), (1, 1));
    assert_eq!(bed.complete(&mut worker, &again), Verdict::Applied);
}

#[test]
fn no_worker_costs_nothing() {
    let mut bed = Bed::new();
    let id = bed.submit(POOL);
    let mut worker = bed.worker(&[POOL], 1);
    for _ in 0..100 {
        let offer = worker.poll_offer(bed.now).expect("an offer");
        worker.reject(offer.lease, RejectCode::NoCapacity, bed.now);
        worker.credit(1, bed.number() + 10, bed.now);
    }
    let status = bed.status(id);
    assert_eq!((status.attempt, status.deliveries, status.lost), (1, 0, 0));
    bed.drain_offers(&mut worker);
    assert_eq!(bed.state(id), TaskState::Completed);
}

fn retrying(max_attempts: u32) -> TaskOptions {
    let mut options = TaskOptions::default();
    options.retry.kind = RetryKind::Fixed;
    options.retry.initial = Duration::from_secs(2);
    options.retry.jitter = 0.0;
    options.retry.max_attempts = max_attempts;
    options.retry.non_retryable = vec!["bad_input".to_owned()];
    options
}

#[test]
fn retryable_failures_are_tried_again_until_attempts_are_used_up() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let id = bed.submit_with(POOL, retrying(3));
    for attempt in 1..=3 {
        let offer = bed.accept(&mut worker);
        assert_eq!(offer.attempt, attempt);
        assert_eq!(bed.fail(&mut worker, &offer, FailureClass::Retryable), Verdict::Applied);
        if attempt < 3 {
            assert_eq!(bed.reason(id).as_str(), "RetryBackoff");
            bed.pass_with(Duration::from_millis(1_990), &mut [&mut worker]);
            assert!(worker.poll_offer(bed.now).is_none());
            bed.pass_with(Duration::from_millis(20), &mut [&mut worker]);
        }
    }
    let outcome = bed.status(id).outcome.expect("ended");
    assert_eq!((outcome.class, outcome.attempt), (Class::AttemptsExhausted, 3));
    assert_eq!((outcome.code.as_str(), outcome.message.as_str()), ("boom", "it went wrong"));
}

#[test]
fn terminal_failures_and_listed_codes_end_a_task() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let first = bed.submit_with(POOL, retrying(3));
    let offer = bed.accept(&mut worker);
    bed.fail(&mut worker, &offer, FailureClass::Terminal);
    let second = bed.submit_with(POOL, retrying(3));
    let offer = bed.accept(&mut worker);
    let report = crate::bed::failed(&offer, FailureClass::Retryable, "bad_input");
    worker.result(report, bed.now);
    for id in [first, second] {
        assert_eq!(bed.status(id).outcome.expect("ended").class, Class::TerminalFailure);
    }
}

// bug: B18
#[test]
fn expiry_spares_successor() {
    let mut bed = Bed::new();
    let mut old = bed.join(register(&[POOL], 5), 1);
    let id = bed.submit(POOL);
    bed.accept(&mut old);
    old.close(CloseReason::StreamClosed, bed.now);
    let mut new = bed.join(register(&[POOL], 5), 1);
    bed.pass_with(Duration::from_millis(2_100), &mut [&mut new]);
    let offer = bed.accept(&mut new);
    assert_eq!(offer.task.id(), id);
    // The old session's timers come late, and find a lease that is not theirs.
    bed.pass_with(Duration::from_secs(5), &mut [&mut old, &mut new]);
    old.handle_timeout(bed.now + Duration::from_secs(100));
    drop(old);
    bed.pass_with(Duration::from_secs(5), &mut [&mut new]);
    assert_eq!(bed.state(id), TaskState::Running);
    assert_eq!(bed.engine.workers(&bed.operator).1.len(), 1);
    assert_eq!(bed.complete(&mut new, &offer), Verdict::Applied);
    assert_eq!(bed.status(id).lost, 1);
}

#[test]
fn an_outcome_that_comes_back_within_the_grace_is_applied() {
    let mut bed = Bed::new();
    let mut old = bed.join(register(&[POOL], 5), 1);
    let id = bed.submit(POOL);
    let offer = bed.accept(&mut old);
    old.close(CloseReason::StreamClosed, bed.now);
    let mut stranger = bed.join(register(&[POOL], 6), 0);
    assert_eq!(stranger.result(completed(&offer, b"x"), bed.now), Verdict::Stale);
    let mut new = bed.join(register(&[POOL], 5), 0);
    assert_eq!(new.result(completed(&offer, b"mine"), bed.now), Verdict::Applied);
    assert_eq!(new.result(completed(&offer, b"mine"), bed.now), Verdict::Duplicate);
    bed.pass(Duration::from_secs(5));
    let status = bed.status(id);
    assert_eq!((status.lost, status.deliveries), (0, 1));
    assert_eq!(status.outcome.expect("ended").payload, "mine");
}

#[test]
fn state_table_exhaustive() {
    // Every event in every state that it can meet; what is not in the table changes nothing.
    type Event = fn(&mut Bed, &mut slipswitch_core::WorkerSession, &slipswitch_core::Offer);
    let events: [(&str, Event); 7] = [
        ("accept", |bed, worker, offer| worker.accept(offer.lease, bed.now)),
        ("completed", |bed, worker, offer| {
            bed.complete(worker, offer);
        }),
        ("retryable", |bed, worker, offer| {
            bed.fail(worker, offer, FailureClass::Retryable);
        }),
        ("terminal", |bed, worker, offer| {
            bed.fail(worker, offer, FailureClass::Terminal);
        }),
        ("infrastructure", |bed, worker, offer| {
            bed.fail(worker, offer, FailureClass::Infrastructure);
        }),
        ("reject", |bed, worker, offer| {
            worker.reject(offer.lease, RejectCode::Draining, bed.now);
        }),
        ("lost", |bed, worker, _| worker.close(CloseReason::ClientGoodbye, bed.now)),
    ];
    let expected = [
        ("offered", ["running", "completed", "scheduled", "dead", "pending", "pending", "pending"]),
        ("running", ["running", "completed", "scheduled", "dead", "pending", "pending", "pending"]),
        (
            "completed",
            [
                "completed",
                "completed",
                "completed",
                "completed",
                "completed",
                "completed",
                "completed",
            ],
        ),
        ("dead", ["dead"; 7]),
        ("scheduled", ["scheduled"; 7]),
    ];
    for (from, results) in expected {
        for ((event, act), to) in events.iter().zip(results) {
            let mut bed = Bed::new();
            let mut worker = bed.worker(&[POOL], 1);
            let id = bed.submit(POOL);
            let offer = worker.poll_offer(bed.now).expect("an offer");
            match from {
                "running" => worker.accept(offer.lease, bed.now),
                "completed" => {
                    bed.complete(&mut worker, &offer);
                }
                "dead" => {
                    bed.fail(&mut worker, &offer, FailureClass::Terminal);
                }
                "scheduled" => {
                    bed.fail(&mut worker, &offer, FailureClass::Retryable);
                }
                _ => {}
            }
            // Nobody may take it up again behind the table's back.
            worker.credit(0, 2, bed.now);
            assert_eq!(bed.state(id).as_str(), from);
            act(&mut bed, &mut worker, &offer);
            assert_eq!(bed.state(id).as_str(), to, "{from} and {event}");
        }
    }
}

#[test]
fn wedged_then_replaced() {
    let mut bed = Bed::new();
    let mut wedged = bed.join(register(&[POOL], 5), 1);
    let id = bed.submit(POOL);
    let stuck = bed.accept(&mut wedged);
    // The process hangs; its connection lives. Its replacement is the same instance.
    let mut replacement = bed.join(register(&[POOL], 5), 1);
    assert!(wedged.leave_requested());
    wedged.close(CloseReason::Superseded, bed.now);
    bed.pass_with(Duration::from_millis(2_100), &mut [&mut replacement]);
    let again = bed.accept(&mut replacement);
    assert_eq!(again.task.id(), id);
    assert!(again.lease.epoch > stuck.lease.epoch);
    // It wakes up after all: too late.
    assert_eq!(bed.complete(&mut wedged, &stuck), Verdict::Stale);
    assert_eq!(bed.complete(&mut replacement, &again), Verdict::Applied);
    assert_eq!(bed.status(id).lost, 1);
}

#[test]
fn lost_accept_reoffered() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 2);
    let id = bed.submit(POOL);
    // Its accept never comes: offered again, to the same worker if there is no other, under a new
    // epoch and at no cost.
    let lost = worker.poll_offer(bed.now).expect("an offer");
    bed.pass_with(Duration::from_millis(2_100), &mut [&mut worker]);
    let again = worker.poll_offer(bed.now).expect("an offer again");
    assert_eq!((again.task.id(), again.deliveries, again.attempt), (id, 0, 1));
    assert!(again.lease.epoch > lost.lease.epoch);
    // Both units are out until the worker says that it is not at work on the first.
    assert_eq!(worker.load(), (2, 2));
    worker.reject(lost.lease, RejectCode::Malformed, bed.now);
    assert_eq!(worker.load(), (2, 1));
    worker.accept(again.lease, bed.now);
    assert_eq!(bed.complete(&mut worker, &again), Verdict::Applied);
    assert_eq!(worker.load(), (2, 0));
}

/// The worker noticed first that its connection was lost, and the old session lives on.
#[test]
fn an_outcome_that_overtakes_the_end_of_its_session_is_applied() {
    let mut bed = Bed::new();
    let number = bed.number();
    let again = || register(&[POOL], number);
    let mut old = bed.join(again(), 1);
    let id = bed.submit(POOL);
    let offer = bed.accept(&mut old);
    let mut stranger = bed.worker(&[POOL], 0);
    let mut new = bed.join(again(), 1);
    assert!(old.leave_requested());
    assert_eq!(stranger.result(completed(&offer, b"forged"), bed.now), Verdict::Stale);
    assert_eq!(new.result(completed(&offer, b"done"), bed.now), Verdict::Applied);
    assert_eq!(new.result(completed(&offer, b"done"), bed.now), Verdict::Duplicate);
    assert_eq!(bed.status(id).outcome.expect("ended").payload, "done");
    // What the old session has to say about it changes nothing, and the credits are right.
    old.close(CloseReason::StreamClosed, bed.now);
    bed.pass(Duration::from_secs(5));
    assert_eq!(bed.status(id).deliveries, 1);
    assert_eq!(new.load(), (1, 0));
    assert!(new.poll_offer(bed.now).is_none());
    bed.submit(POOL);
    assert_eq!(bed.drain_offers(&mut new), 1);
}

#[test]
fn an_outcome_of_a_lease_that_was_lost_meanwhile_stays_stale() {
    let mut bed = Bed::new();
    let number = bed.number();
    let again = || register(&[POOL], number);
    let mut old = bed.join(again(), 1);
    bed.submit(POOL);
    let offer = bed.accept(&mut old);
    let mut new = bed.join(again(), 1);
    // A goodbye leaves no grace: the task is the next one's.
    old.close(CloseReason::ClientGoodbye, bed.now);
    let next = bed.accept(&mut new);
    assert_eq!(new.result(completed(&offer, b"late"), bed.now), Verdict::Stale);
    assert_eq!(bed.complete(&mut new, &next), Verdict::Applied);
}
