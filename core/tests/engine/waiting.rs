//! Tasks that wait, and what wakes them (specification 5).

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use slipswitch_core::{Class, Gate, SubmitError, TaskOptions};

use crate::bed::{Bed, mailbox, take, told};

const POOL: &str = "main/default/work";

#[test]
fn backlog_before_new() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let ids: Vec<_> = (0..20).map(|_| bed.submit(POOL)).collect();
    let mut order = Vec::new();
    let mut extra = Vec::new();
    while order.len() < ids.len() + extra.len() {
        let offer = bed.accept(&mut worker);
        order.push(offer.task.id());
        if extra.len() < 5 {
            extra.push(bed.submit(POOL));
        }
        bed.complete(&mut worker, &offer);
    }
    assert_eq!(order, [ids, extra].concat());
}

#[test]
fn a_task_that_was_taken_back_keeps_its_place() {
    let mut bed = Bed::new();
    let blocked = bed.worker(&[POOL], 0);
    let ids: Vec<_> = (0..4).map(|_| bed.submit(POOL)).collect();
    let mut first = bed.worker(&[POOL], 2);
    assert_eq!(bed.accept(&mut first).task.id(), ids[0]);
    // The second was placed and never sent: it comes before the third again.
    drop(first);
    bed.pass(Duration::from_secs(3));
    let mut next = bed.worker(&[POOL], 4);
    let order: Vec<_> = (0..4).map(|_| bed.accept(&mut next).task.id()).collect();
    assert_eq!(order, ids);
    drop(blocked);
}

// bug: S1
#[test]
fn register_after_check_wakes() {
    for _ in 0..200 {
        let mut bed = Bed::new();
        let id = bed.submit(POOL);
        let engine = Arc::clone(&bed.engine);
        let (operator, now) = (bed.operator.clone(), bed.now);
        // The registration races the submit of another task: neither may be left lying.
        let racer = std::thread::spawn(move || {
            let mut route = engine.route(&crate::bed::key(POOL)).expect("a route");
            let task = slipswitch_core::NewTask {
                id: slipswitch_core::TaskId::from_bytes([0xee; 16]),
                payload: bytes::Bytes::new(),
                options: TaskOptions::default(),
            };
            engine.submit(&operator, &mut route, task, None, now).expect("taken");
        });
        let mut worker = bed.worker(&[POOL], 4);
        racer.join().expect("no panic");
        assert_eq!(bed.drain_offers(&mut worker), 2);
        assert!(bed.state(id).is_terminal());
    }
}

// bug: B15
#[test]
fn register_between_check_and_park() {
    let gate = Gate::new();
    let ticket = gate.subscribe();
    // The look at the condition is here; the change comes between it and the wait.
    gate.open();
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(gate.wait(ticket)).poll(&mut context).is_ready());
}

// bug: B14
#[test]
fn cancelled_waiter_hands_on() {
    let gate = Gate::new();
    let (gone, stays) = (Arc::new(Alarm::default()), Arc::new(Alarm::default()));
    let (first, second) = (gate.subscribe(), gate.subscribe());
    let mut waits = pin!(gate.wait(second));
    {
        let mut dropped = pin!(gate.wait(first));
        let waker = Waker::from(Arc::clone(&gone));
        assert!(dropped.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let waker = Waker::from(Arc::clone(&stays));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        gate.open();
    }
    assert!(stays.rang(), "the wake went to the waiter that was dropped");
    let waker = Waker::from(stays);
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

#[derive(Default)]
struct Alarm(std::sync::atomic::AtomicBool);

impl Alarm {
    fn rang(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl std::task::Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

fn deadline(after: Duration) -> TaskOptions {
    let mut options = TaskOptions::default();
    options.deadline = Some(after);
    options
}

fn start_within(limit: Duration) -> TaskOptions {
    let mut options = TaskOptions::default();
    options.schedule_to_start = Some(limit);
    options
}

#[test]
fn deadline_without_workers() {
    let mut bed = Bed::new();
    let (mailbox, bell) = mailbox();
    let watcher = slipswitch_core::Watcher { mailbox: mailbox.clone(), tag: 7 };
    let options = deadline(Duration::from_secs(5));
    let id = bed.try_submit(POOL, options, Some(watcher)).expect("taken").id;
    let starts = bed.submit_with(POOL, start_within(Duration::from_secs(3)));
    bed.pass(Duration::from_millis(2_990));
    assert_eq!(bed.reason(starts).as_str(), "NoWorker");
    bed.pass(Duration::from_millis(20));
    assert_eq!(bed.status(starts).outcome.expect("ended").class, Class::Expired);
    bed.pass(Duration::from_millis(1_980));
    assert!(take(&mailbox).is_empty());
    bed.pass(Duration::from_millis(20));
    let delivered = take(&mailbox);
    assert_eq!((delivered[0].tag, delivered[0].task_id()), (7, id));
    assert_eq!(delivered[0].outcome.class, Class::Expired);
    assert_eq!(bell.rings(), 1);
    let (_, pools) = bed.engine.pools(&bed.operator);
    assert!(pools.iter().all(|pool| pool.waiting == 0));
    // Nothing of it is offered to whoever comes later.
    let mut late = bed.worker(&[POOL], 4);
    assert!(late.poll_offer(bed.now).is_none());
}

#[test]
fn deadline_of_a_running_task_tells_the_worker() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let id = bed.submit_with(POOL, deadline(Duration::from_secs(5)));
    let offer = bed.accept(&mut worker);
    bed.pass_with(Duration::from_secs(6), &mut [&mut worker]);
    assert_eq!(bed.status(id).outcome.expect("ended").class, Class::Expired);
    let cancel = told(&mut worker);
    assert_eq!(cancel, Some((offer.lease, slipswitch_core::CancelReason::Expired)));
    assert_eq!(worker.load(), (1, 1));
    let verdict = bed.complete(&mut worker, &offer);
    assert_eq!(verdict, slipswitch_core::Verdict::Stale);
    assert_eq!(worker.load(), (1, 0));
}

#[test]
fn start_now_or_not_at_all() {
    let mut bed = Bed::new();
    let now_or_never = || start_within(Duration::ZERO);
    let refused = bed.try_submit(POOL, now_or_never(), None).expect_err("nobody there");
    assert_eq!(refused.error, SubmitError::NoWorker);
    assert_eq!(refused.task.payload.len(), 8);
    let mut worker = bed.worker(&[POOL], 1);
    let id = bed.submit_with(POOL, now_or_never());
    let refused = bed.try_submit(POOL, now_or_never(), None).expect_err("full");
    assert_eq!(refused.error, SubmitError::NoCapacity);
    assert!(bed.engine.task(&bed.operator, refused.task.id).is_none());
    assert_eq!(bed.accept(&mut worker).task.id(), id);
}

#[test]
fn a_refused_task_can_be_handed_in_again() {
    let mut bed = Bed::new();
    let mut options = start_within(Duration::ZERO);
    options.content_type = "text/plain".into();
    let refused = bed.try_submit(POOL, options, None).expect_err("nobody there");
    let mut worker = bed.worker(&[POOL], 1);
    let mut route = bed.route(POOL);
    let id = refused.task.id;
    let again = bed.engine.submit(&bed.operator, &mut route, *refused.task, None, bed.now);
    assert_eq!(again.expect("taken").id, id);
    let offer = bed.accept(&mut worker);
    assert_eq!(offer.task.payload().len(), 8);
    assert_eq!(offer.task.options().content_type, "text/plain");
}

#[test]
fn a_waiting_task_moves_no_counter_and_keeps_no_timer() {
    let mut bed = Bed::new();
    let id = bed.submit(POOL);
    bed.pass(Duration::from_secs(120));
    let status = bed.status(id);
    assert_eq!((status.attempt, status.deliveries, status.lost), (1, 0, 0));
    assert_eq!(status.reason.as_str(), "NoWorker");
}

#[test]
fn a_freed_credit_wakes_only_pools_of_that_worker() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&["main/default/a", "main/default/b"], 1);
    let a = bed.submit("main/default/a");
    let b = bed.submit("main/default/b");
    let c = bed.submit("main/default/c");
    let offer = bed.accept(&mut worker);
    assert_eq!(offer.task.id(), a);
    bed.complete(&mut worker, &offer);
    let offer = bed.accept(&mut worker);
    assert_eq!(offer.task.id(), b);
    bed.complete(&mut worker, &offer);
    assert!(worker.poll_offer(bed.now).is_none());
    assert_eq!(worker.load(), (1, 0));
    assert_eq!(bed.reason(c).as_str(), "NoWorker");
}

#[test]
fn pools_of_one_worker_take_turns() {
    let mut bed = Bed::new();
    let keys: Vec<String> = (0..8).map(|n| format!("n{n}/default/work")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut worker = bed.worker(&keys, 1);
    for key in &keys {
        bed.submit_many(key, 20);
    }
    let mut turn = Vec::new();
    for _ in 0..160 {
        let offer = bed.accept(&mut worker);
        turn.push(offer.task.pool().to_string());
        bed.complete(&mut worker, &offer);
    }
    // First in, first out among pools: each is served once a round.
    for round in turn[8..152].chunks(8) {
        let mut distinct = round.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 8, "{turn:?}");
    }
}
