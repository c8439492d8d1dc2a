//! Dead letters (specification 13).

use bytes::Bytes;
use slipswitch_core::{
    AdminError, Class, DeadFilter, FailureClass, Fingerprint, Grant, Namespace, Principal, Role,
    TaskId, TaskOptions, TaskState, Verdict, Watcher, WorkerSession,
};

use crate::bed::{Bed, failed, key, mailbox, take};

const POOL: &str = "main/default/work";
const OTHER: &str = "main/default/rest";

/// Submits a task and has it fail for good.
fn die(bed: &mut Bed, worker: &mut WorkerSession, pool: &str, code: &str) -> TaskId {
    let id = bed.submit(pool);
    let offer = bed.accept(worker);
    assert_eq!(offer.task.id(), id);
    let report = failed(&offer, FailureClass::Terminal, code);
    assert_eq!(worker.result(report, bed.now), Verdict::Applied);
    id
}

fn ids(bed: &Bed, filter: &DeadFilter) -> Vec<TaskId> {
    let letters = bed.engine.dead(&bed.operator, filter, 0, 100);
    letters.iter().map(|letter| letter.task.id()).collect()
}

#[test]
fn dead_letter_reaches_waiter() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let (mailbox, bell) = mailbox();
    let watcher = Some(Watcher { mailbox: mailbox.clone(), tag: 5 });
    let id = bed.try_submit(POOL, TaskOptions::default(), watcher).expect("taken").id;
    let offer = bed.accept(&mut worker);
    worker.result(failed(&offer, FailureClass::Terminal, "broken"), bed.now);
    let told = take(&mailbox);
    assert_eq!((told[0].tag, told[0].outcome.class), (5, Class::TerminalFailure));
    assert_eq!((told[0].outcome.code.as_str(), bell.rings()), ("broken", 1));
    // It is kept with all that it came with, far longer than an outcome.
    let letter = bed.engine.dead_letter(&bed.operator, id).expect("kept");
    assert_eq!(letter.task.payload(), offer.task.payload());
    assert_eq!(letter.task.payload().len(), 8);
    assert_eq!((letter.outcome.code.as_str(), letter.task.deliveries()), ("broken", 1));
    bed.pass(std::time::Duration::from_secs(120));
    assert_eq!(ids(&bed, &DeadFilter::default()), [id]);
    assert_eq!(bed.state(id), TaskState::Dead);
}

#[test]
fn bulk_requeue_once() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL, OTHER], 1);
    let a = die(&mut bed, &mut worker, POOL, "timeout 17");
    let b = die(&mut bed, &mut worker, POOL, "timeout 4");
    let c = die(&mut bed, &mut worker, POOL, "refused");
    let d = die(&mut bed, &mut worker, OTHER, "timeout 17");
    let of = |id| bed.engine.dead_letter(&bed.operator, id).expect("kept").fingerprint;
    // Digits are left out: what looks alike is found together.
    assert_eq!([of(a), of(b)], [of(a); 2]);
    assert_ne!(of(a), of(c));
    assert_eq!(Fingerprint::parse(&of(a).to_string()), Some(of(a)));
    let alike = DeadFilter { fingerprint: Some(of(a)), ..DeadFilter::default() };
    assert_eq!(ids(&bed, &alike), [a, b, d]);
    let here = DeadFilter { activity_type: Some(key(POOL).activity_type), ..alike };
    assert_eq!(ids(&bed, &here), [a, b]);
    let expired = DeadFilter { class: Some(Class::Expired), ..DeadFilter::default() };
    assert!(ids(&bed, &expired).is_empty());
    worker.credit(0, 2, bed.now);
    assert_eq!(bed.engine.requeue_all(&bed.operator, &here, bed.now), 2);
    assert_eq!(bed.engine.requeue_all(&bed.operator, &here, bed.now), 0);
    assert_eq!(bed.engine.requeue(&bed.operator, a, bed.now), Err(AdminError::NotFound));
    assert_eq!(ids(&bed, &DeadFilter::default()), [c, d]);
    for id in [a, b] {
        let status = bed.status(id);
        assert_eq!((status.state, status.attempt, status.lost), (TaskState::Pending, 1, 0));
    }
    assert_eq!(bed.engine.discard_all(&bed.operator, &DeadFilter::default()), 2);
    assert!(bed.engine.task(&bed.operator, c).is_none());
    worker.credit(2, 3, bed.now);
    assert_eq!(bed.drain_offers(&mut worker), 2);
    assert_eq!([bed.state(a), bed.state(b)], [TaskState::Completed; 2]);
}

#[test]
fn requeue_fences_old_lease() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let mut options = TaskOptions::default();
    options.deadline = Some(std::time::Duration::from_secs(5));
    let id = bed.submit_with(POOL, options);
    let old = bed.accept(&mut worker);
    bed.pass_with(std::time::Duration::from_secs(6), &mut [&mut worker]);
    assert_eq!(bed.status(id).outcome.expect("ended").class, Class::Expired);
    assert!(worker.poll_cancel().is_some());
    let (mailbox, _) = mailbox();
    bed.engine.requeue(&bed.operator, id, bed.now).expect("dead");
    // A new life has its own time, and its own waiters.
    let watcher = Watcher { mailbox: mailbox.clone(), tag: 9 };
    bed.engine.watch(&bed.operator, id, watcher).expect("known");
    assert!(take(&mailbox).is_empty());
    bed.pass_with(std::time::Duration::from_secs(4), &mut [&mut worker]);
    assert_eq!(bed.state(id), TaskState::Pending);
    let mut other = bed.worker(&[POOL], 1);
    let new = bed.accept(&mut other);
    assert!(new.lease.epoch > old.lease.epoch);
    assert_eq!(new.task.payload().len(), 8);
    assert_eq!(bed.complete(&mut worker, &old), Verdict::Stale);
    assert_eq!(bed.state(id), TaskState::Running);
    assert_eq!(bed.complete(&mut other, &new), Verdict::Applied);
    assert_eq!(take(&mailbox)[0].outcome.payload, Bytes::from_static(b"done"));
}

#[test]
fn dead_letters_are_listed_in_order_and_by_pages() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let all: Vec<_> = (0..5).map(|_| die(&mut bed, &mut worker, POOL, "no")).collect();
    let mut seen = Vec::new();
    let mut after = 0;
    loop {
        let page = bed.engine.dead(&bed.operator, &DeadFilter::default(), after, 2);
        let Some(last) = page.last() else { break };
        after = last.place;
        seen.extend(page.iter().map(|letter| letter.task.id()));
    }
    assert_eq!(seen, all);
}

#[test]
fn dead_letters_of_others_are_not_seen() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let id = die(&mut bed, &mut worker, POOL, "no");
    let grant = |role, namespace: &str| {
        let namespace = Namespace::new(namespace).expect("a name");
        Principal::new("someone", [(role, Grant::Namespace(namespace))])
    };
    let stranger = grant(Role::Operator, "other");
    assert!(bed.engine.dead(&stranger, &DeadFilter::default(), 0, 9).is_empty());
    assert!(bed.engine.dead_letter(&stranger, id).is_none());
    assert_eq!(bed.engine.requeue(&stranger, id, bed.now), Err(AdminError::NotFound));
    assert_eq!(bed.engine.discard_all(&stranger, &DeadFilter::default()), 0);
    let producer = grant(Role::Producer, "main");
    assert_eq!(bed.engine.discard(&producer, id), Err(AdminError::PermissionDenied));
    assert_eq!(bed.engine.requeue_all(&producer, &DeadFilter::default(), bed.now), 0);
    assert_eq!(bed.engine.discard(&bed.operator, id), Ok(()));
    assert!(bed.engine.task(&bed.operator, id).is_none());
}

#[test]
fn the_oldest_dead_letter_goes_when_there_are_too_many() {
    let mut bed = Bed::new();
    let mut options = TaskOptions::default();
    options.schedule_to_start = Some(std::time::Duration::from_millis(1));
    let most = slipswitch_core::limits::DEAD_MAX;
    let mut first = None;
    for at in 0..=most {
        let id = bed.submit_with(POOL, options.clone());
        first.get_or_insert(id);
        if at % 10_000 == 0 {
            bed.pass(std::time::Duration::from_millis(10));
        }
    }
    bed.pass(std::time::Duration::from_millis(10));
    let letters = bed.engine.dead(&bed.operator, &DeadFilter::default(), 0, usize::MAX);
    assert_eq!(letters.len(), most);
    assert!(bed.engine.task(&bed.operator, first.expect("one")).is_none());
}
