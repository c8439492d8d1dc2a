//! Leaving in order (specification 7).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use slipswitch_core::{
    CloseReason, DrainScope, NewTask, SubmitError, TaskId, TaskOptions, Verdict,
};

use crate::bed::{Bed, Bell};

const POOL: &str = "main/default/work";

#[test]
fn no_offer_after_drain() {
    let mut bed = Bed::new();
    let mut leaving = bed.worker(&[POOL], 4);
    let first = bed.submit(POOL);
    let running = bed.accept(&mut leaving);
    let placed = bed.submit(POOL);
    bed.drain(DrainScope::Worker(leaving.worker_id()));
    // What had been placed and not sent is back, at no cost.
    assert!(leaving.drain_requested());
    assert!(leaving.poll_offer(bed.now).is_none());
    assert_eq!(bed.reason(placed).as_str(), "AllDraining");
    assert_eq!(bed.status(placed).deliveries, 0);
    bed.submit(POOL);
    assert!(leaving.poll_offer(bed.now).is_none());
    assert_eq!(bed.complete(&mut leaving, &running), Verdict::Applied);
    assert!(leaving.poll_offer(bed.now).is_none());
    leaving.close(CloseReason::Drained, bed.now);
    let mut next = bed.worker(&[POOL], 4);
    assert_eq!(bed.drain_offers(&mut next), 2);
    assert!(bed.state(first).is_terminal());
}

#[test]
fn no_offer_after_drain_under_load() {
    for _ in 0..20 {
        let mut bed = Bed::new();
        let mut worker = bed.worker(&[POOL], 1_000);
        let engine = Arc::clone(&bed.engine);
        let (operator, now) = (bed.operator.clone(), bed.now);
        let stop = Arc::new(AtomicBool::new(false));
        let submitted = Arc::new(AtomicUsize::new(0));
        let producer = {
            let (stop, submitted, mut route) =
                (Arc::clone(&stop), Arc::clone(&submitted), bed.route(POOL));
            std::thread::spawn(move || {
                for n in 0u128.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let task = NewTask {
                        id: TaskId::from_bytes((n + 1_000_000).to_be_bytes()),
                        payload: bytes::Bytes::new(),
                        options: TaskOptions::default(),
                    };
                    engine.submit(&operator, &mut route, task, None, now).expect("taken");
                    submitted.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let mut sent = 0;
        while sent < 500 {
            sent += bed.drain_offers(&mut worker);
        }
        bed.drain(DrainScope::Worker(worker.worker_id()));
        // From here on nothing is offered, however long the producer goes on.
        for _ in 0..1_000 {
            assert!(worker.poll_offer(bed.now).is_none());
        }
        stop.store(true, Ordering::Relaxed);
        producer.join().expect("no panic");
        assert!(worker.poll_offer(bed.now).is_none());
        assert_eq!(worker.load().1, 0);
        let mut next = bed.worker(&[POOL], 1_000);
        sent += loop_offers(&bed, &mut next);
        assert_eq!(sent, submitted.load(Ordering::Relaxed));
    }
}

fn loop_offers(bed: &Bed, worker: &mut slipswitch_core::WorkerSession) -> usize {
    let mut done = 0;
    loop {
        bed.engine.advance(bed.now);
        let now = bed.drain_offers(worker);
        if now == 0 {
            return done;
        }
        done += now;
    }
}

#[test]
fn server_drain_refuses_and_waits_for_what_runs() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let running = bed.submit(POOL);
    let waiting = bed.submit(POOL);
    let offer = bed.accept(&mut worker);
    let ticket = bed.engine.idle().subscribe();
    bed.engine.drain(bed.now);
    assert!(bed.engine.is_draining() && worker.drain_requested());
    let refused = bed.try_submit(POOL, TaskOptions::default(), None).expect_err("draining");
    assert_eq!(refused.error, SubmitError::Draining);
    assert_eq!(refused.task.payload.len(), 8);
    assert_eq!(bed.reason(waiting).as_str(), "ServerDraining");
    bed.engine.advance(bed.now);
    assert_eq!(bed.engine.in_flight(), 1);
    assert_eq!(bed.complete(&mut worker, &offer), Verdict::Applied);
    assert!(bed.state(running).is_terminal());
    assert!(worker.poll_offer(bed.now).is_none());
    bed.engine.advance(bed.now);
    assert_eq!(bed.engine.in_flight(), 0);
    // The gate opened: the wait is over at the first look.
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    let wait = std::pin::pin!(bed.engine.idle().wait(ticket));
    assert!(wait.poll(&mut context).is_ready());
}

#[test]
fn only_operators_of_all_it_serves_drain_a_worker() {
    use slipswitch_core::{AdminError, Grant, Namespace, Principal, Role};
    let mut bed = Bed::new();
    let worker = bed.worker(&[POOL, "other/default/work"], 1);
    let main = || Grant::Namespace(Namespace::new("main").expect("a name"));
    let stranger = Principal::new("s", []);
    let half = Principal::new("h", [(Role::Operator, main())]);
    let drain_that = |who: &Principal, id| {
        let bell = Arc::new(Bell::default());
        let scope = DrainScope::Worker(id);
        bed.engine.drain_scope(who, scope, None, bell, bed.now).map(|drained| drained.workers)
    };
    let drain = |who: &Principal| drain_that(who, worker.worker_id());
    assert_eq!(drain(&stranger), Err(AdminError::NotFound));
    assert_eq!(drain(&half), Err(AdminError::PermissionDenied));
    assert!(!worker.drain_requested());
    assert_eq!(drain(&bed.operator), Ok(1));
    let nobody = slipswitch_core::WorkerId::new(99);
    assert_eq!(drain_that(&bed.operator, nobody), Err(AdminError::NotFound));
}

#[test]
fn sigterm_while_waiting() {
    // Tasks wait and nobody runs any: a drain has nothing to wait for.
    let mut bed = Bed::new();
    let waiting = bed.submit(POOL);
    let ticket = bed.engine.idle().subscribe();
    bed.engine.drain(bed.now);
    let due = bed.engine.advance(bed.now);
    assert!(due > bed.now);
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    let wait = std::pin::pin!(bed.engine.idle().wait(ticket));
    assert!(wait.poll(&mut context).is_ready());
    assert_eq!(bed.reason(waiting).as_str(), "ServerDraining");
}
