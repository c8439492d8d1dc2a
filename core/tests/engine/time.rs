//! Delays, times of an attempt, progress (specification 9, 12 and 15).

use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    Beat, CancelReason, Class, CloseReason, FailureClass, Reason, SubmitError, TaskOptions,
    TaskState, Verdict,
};

use crate::bed::{Bed, failed, told};

const POOL: &str = "main/default/work";

fn delayed(delay: Duration) -> TaskOptions {
    let mut options = TaskOptions::default();
    options.rare_mut().delay = Some(delay);
    options
}

// bug: B27
#[test]
fn long_delay_once() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 4);
    // Longer than any timer of a lease.
    let id = bed.submit_with(POOL, delayed(Duration::from_secs(90)));
    assert_eq!((bed.state(id), bed.reason(id)), (TaskState::Scheduled, Reason::NotDue));
    let mut early = 0;
    for _ in 0..89 {
        bed.pass_with(Duration::from_secs(1), &mut [&mut worker]);
        early += usize::from(worker.poll_offer(bed.now).is_some());
    }
    assert_eq!(early, 0);
    bed.pass_with(Duration::from_secs(1), &mut [&mut worker]);
    let offer = bed.accept(&mut worker);
    assert_eq!((offer.task.id(), offer.attempt, offer.deliveries), (id, 1, 0));
    bed.pass_with(Duration::from_secs(20), &mut [&mut worker]);
    assert!(worker.poll_offer(bed.now).is_none());
    assert_eq!(bed.complete(&mut worker, &offer), Verdict::Applied);
}

#[test]
fn clock_steps() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 100);
    let ids: Vec<_> =
        (1..=50).map(|n| bed.submit_with(POOL, delayed(Duration::from_secs(n)))).collect();
    // Back, by which nothing is due; then ahead, by which all before it is.
    let before = bed.now;
    bed.engine.advance(slipswitch_core::Instant::from_micros(before.as_micros() / 2));
    assert!(worker.poll_offer(bed.now).is_none());
    bed.now = before + Duration::from_secs(30);
    bed.engine.advance(bed.now);
    assert_eq!(bed.drain_offers(&mut worker), 30);
    // Back again: nothing is repeated, and nothing is lost.
    bed.engine.advance(before);
    assert!(worker.poll_offer(bed.now).is_none());
    bed.pass(Duration::from_secs(20));
    assert_eq!(bed.drain_offers(&mut worker), 20);
    assert!(ids.iter().all(|id| bed.state(*id) == TaskState::Completed));
}

#[test]
fn promote_latency() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 10_000);
    let start = bed.now;
    let mut seed = 3u64;
    for _ in 0..5_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let delay = Duration::from_micros((seed >> 40) % 20_000_000);
        bed.submit_with(POOL, delayed(delay));
    }
    // Driven by the engine's own word about when to come again.
    let mut served = 0;
    while bed.now < start + Duration::from_secs(21) {
        bed.now = bed.engine.advance(bed.now).max(bed.now + Duration::from_micros(1));
        bed.engine.advance(bed.now);
        while let Some(offer) = worker.poll_offer(bed.now) {
            let late = bed.now.saturating_since(offer.task.due());
            assert!(offer.task.due() <= bed.now && late <= Duration::from_millis(2), "{late:?}");
            worker.accept(offer.lease, bed.now);
            bed.complete(&mut worker, &offer);
            served += 1;
        }
    }
    assert_eq!(served, 5_000);
}

#[test]
fn run_now_does_not_wait() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 4);
    let mut options = delayed(Duration::from_secs(60));
    options.schedule_to_start = Some(Duration::from_secs(5));
    let id = bed.submit_with(POOL, options);
    assert_eq!(bed.engine.run_now(&bed.operator, id, bed.now), Ok(true));
    let offer = bed.accept(&mut worker);
    assert_eq!(bed.engine.run_now(&bed.operator, id, bed.now).ok(), None);
    // The timer of its former time does nothing; nor does run-now skip an attempt.
    bed.fail(&mut worker, &offer, FailureClass::Retryable);
    assert_eq!((bed.state(id), bed.status(id).attempt), (TaskState::Scheduled, 2));
    assert_eq!(bed.engine.run_now(&bed.operator, id, bed.now), Ok(true));
    let offer = bed.accept(&mut worker);
    assert_eq!(offer.attempt, 2);
    for _ in 0..7 {
        bed.pass_with(Duration::from_secs(10), &mut [&mut worker]);
        worker.beat(Beat::All, bed.now);
    }
    assert!(worker.poll_offer(bed.now).is_none());
    assert_eq!(bed.state(id), TaskState::Running);
}

#[test]
fn start_to_close_is_a_retryable_failure() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let mut options = TaskOptions::default();
    options.rare_mut().start_to_close = Some(Duration::from_secs(3));
    options.retry.max_attempts = 2;
    let id = bed.submit_with(POOL, options);
    let offer = bed.accept(&mut worker);
    // Beats keep the lease, not the attempt.
    for _ in 0..2 {
        bed.pass_with(Duration::from_secs(1), &mut [&mut worker]);
        worker.beat(Beat::Leases(&[offer.lease]), bed.now);
    }
    bed.pass_with(Duration::from_millis(950), &mut [&mut worker]);
    assert_eq!(bed.state(id), TaskState::Running);
    bed.pass_with(Duration::from_millis(100), &mut [&mut worker]);
    let status = bed.status(id);
    assert_eq!((status.state, status.attempt, status.lost), (TaskState::Scheduled, 2, 0));
    assert_eq!(told(&mut worker), Some((offer.lease, CancelReason::Expired)));
    // Its slot is taken until it says that it has stopped.
    bed.pass_with(Duration::from_secs(2), &mut [&mut worker]);
    assert!(worker.poll_offer(bed.now).is_none());
    assert_eq!(bed.complete(&mut worker, &offer), Verdict::Stale);
    bed.accept(&mut worker);
    bed.pass_with(Duration::from_millis(3_050), &mut [&mut worker]);
    let outcome = bed.status(id).outcome.expect("ended");
    assert_eq!(
        (outcome.class, outcome.code.as_str()),
        (Class::AttemptsExhausted, "start_to_close")
    );
}

#[test]
fn heartbeat_timeout_counts_the_handlers_own_beats() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 2);
    let mut options = TaskOptions::default();
    options.rare_mut().heartbeat_timeout = Some(Duration::from_secs(2));
    let (silent, alive) = (bed.submit_with(POOL, options.clone()), bed.submit_with(POOL, options));
    let mute = bed.accept(&mut worker);
    let beats = bed.accept(&mut worker);
    for n in 0..4u8 {
        bed.pass_with(Duration::from_secs(1), &mut [&mut worker]);
        // The thread that beats for all leases does not speak for a handler.
        worker.beat(Beat::All, bed.now);
        worker.progress(beats.lease, Bytes::from(vec![n]), bed.now);
    }
    assert_eq!([bed.status(silent).attempt, bed.status(alive).attempt], [2, 1]);
    assert_eq!(bed.state(alive), TaskState::Running);
    assert_eq!(told(&mut worker), Some((mute.lease, CancelReason::Expired)));
}

#[test]
fn progress_goes_to_the_next_delivery() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let id = bed.submit(POOL);
    let offer = bed.accept(&mut worker);
    assert_eq!(offer.last_progress, None);
    worker.progress(offer.lease, Bytes::from_static(b"40%"), bed.now);
    worker.progress(offer.lease, Bytes::from_static(b"60%"), bed.now);
    worker.beat(Beat::All, bed.now);
    worker.close(CloseReason::ClientGoodbye, bed.now);
    let mut next = bed.worker(&[POOL], 1);
    let again = bed.accept(&mut next);
    assert_eq!((again.task.id(), again.deliveries), (id, 1));
    assert_eq!(again.last_progress, Some(Bytes::from_static(b"60%")));
    // What a lost delivery says afterwards is not heard.
    assert_eq!(
        worker.result(failed(&offer, FailureClass::Retryable, "x"), bed.now),
        Verdict::Stale
    );
    assert_eq!(again.task.progress(), Some(Bytes::from_static(b"60%")));
}

#[test]
fn progress_may_come_ahead_of_its_acceptance() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let id = bed.submit(POOL);
    let offer = worker.poll_offer(bed.now).expect("an offer");
    // Beats and acceptances are on streams of their own.
    worker.beat(Beat::All, bed.now);
    worker.progress(offer.lease, Bytes::from_static(b"40%"), bed.now);
    worker.accept(offer.lease, bed.now);
    worker.close(CloseReason::ClientGoodbye, bed.now);
    let mut next = bed.worker(&[POOL], 1);
    let again = bed.accept(&mut next);
    assert_eq!((again.task.id(), again.deliveries), (id, 1));
    assert_eq!(again.last_progress, Some(Bytes::from_static(b"40%")));
}

#[test]
fn resume_grace_may_be_the_tasks_own() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let mut options = TaskOptions::default();
    options.rare_mut().resume_grace = Some(Duration::from_secs(20));
    bed.submit_with(POOL, options);
    bed.accept(&mut worker);
    worker.close(CloseReason::StreamClosed, bed.now);
    let mut next = bed.worker(&[POOL], 1);
    bed.pass(Duration::from_millis(19_900));
    assert!(next.poll_offer(bed.now).is_none());
    bed.pass(Duration::from_millis(200));
    assert!(next.poll_offer(bed.now).is_some());
}

#[test]
fn an_outcome_is_kept_as_long_as_the_task_says() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let mut options = TaskOptions::default();
    options.rare_mut().retention = Some(Duration::from_secs(600));
    let long = bed.submit_with(POOL, options.clone());
    bed.drain_offers(&mut worker);
    options.rare_mut().retention = Some(Duration::from_secs(1));
    let short = bed.submit_with(POOL, options);
    bed.drain_offers(&mut worker);
    bed.pass(Duration::from_secs(2));
    assert!(bed.engine.task(&bed.operator, short).is_none());
    bed.pass(Duration::from_secs(590));
    assert_eq!(bed.state(long), TaskState::Completed);
    bed.pass(Duration::from_secs(10));
    assert!(bed.engine.task(&bed.operator, long).is_none());
}

#[test]
fn times_out_of_range_are_refused() {
    let mut bed = Bed::new();
    let mut refused = |change: fn(&mut slipswitch_core::Rare)| {
        let mut options = TaskOptions::default();
        change(options.rare_mut());
        bed.try_submit(POOL, options, None).expect_err("out of range").error
    };
    let days = Duration::from_secs(24 * 3_600);
    assert_eq!(days * 366, slipswitch_core::limits::DELAY_MAX);
    let delay = refused(|rare| rare.delay = Some(Duration::from_secs(366 * 24 * 3_600 + 1)));
    assert_eq!(delay, SubmitError::LimitExceeded { limit: "days of delay", max: 366 });
    let retention = refused(|rare| rare.retention = Some(Duration::from_secs(24 * 3_600 + 1)));
    assert_eq!(retention, SubmitError::LimitExceeded { limit: "hours of retention", max: 24 });
    let zero = refused(|rare| rare.start_to_close = Some(Duration::ZERO));
    assert!(matches!(zero, SubmitError::Invalid(_)));
    let key = refused(|rare| rare.idempotency_key = Bytes::from(vec![1; 257]));
    assert!(matches!(key, SubmitError::LimitExceeded { max: 256, .. }));
}

#[test]
fn a_cancelled_task_does_not_stay_until_it_would_be_due() {
    let mut bed = Bed::new();
    let id = bed.submit_with(POOL, delayed(Duration::from_secs(300 * 24 * 3_600)));
    let weak = std::sync::Arc::downgrade(&bed.status(id).task);
    let cancel = slipswitch_core::Cancel::default();
    bed.engine.cancel(&bed.operator, id, &cancel, bed.now).expect("known");
    bed.pass(Duration::from_secs(62));
    assert!(bed.engine.task(&bed.operator, id).is_none());
    // The index frees what was taken out some operations later.
    for _ in 0..1_000 {
        let id = bed.submit(POOL);
        bed.engine.cancel(&bed.operator, id, &cancel, bed.now).expect("known");
    }
    bed.pass(Duration::from_secs(62));
    assert!(weak.upgrade().is_none());
    assert_eq!(bed.engine.backlog_bytes(), 0);
}
