//! Draining, cordoning and evicting by scope (specification 7).

use std::time::Duration;

use slipswitch_core::{
    AdminError, CancelReason, CloseReason, DrainMode, DrainScope, Drained, Grant, Namespace, Node,
    Principal, Reason, Register, RegisterError, Role, SessionId, TaskState, Verdict, WorkerSession,
};

use crate::bed::{Bed, Bell, key, register, told};

const POOL: &str = "main/default/work";
const OTHER: &str = "main/default/rest";
const FOREIGN: &str = "other/default/work";

fn node(name: &str) -> DrainScope {
    DrainScope::Node(Node::new(name).expect("a node"))
}

fn namespace(name: &str) -> DrainScope {
    DrainScope::Namespace(Namespace::new(name).expect("a name"))
}

/// Every scope that covers a worker on `box-7` of build `test` that serves `POOL`.
fn scopes(worker: &WorkerSession) -> Vec<DrainScope> {
    vec![
        DrainScope::Worker(worker.worker_id()),
        node("box-7"),
        DrainScope::Build("test".to_owned()),
        DrainScope::Pool(key(POOL)),
        namespace("main"),
    ]
}

/// Has sessions hear what was ordered, and says that the drain is in force.
fn heard(bed: &Bed, drained: &Drained, sessions: &mut [&mut WorkerSession]) {
    for session in sessions {
        session.hear(bed.now);
    }
    assert!(drained.is_done());
}

#[test]
fn no_offer_after_drain_of_any_scope() {
    for at in 0..5 {
        let mut bed = Bed::new();
        let mut worker = bed.worker_on(&[POOL], 4, "box-7");
        let scope = scopes(&worker).swap_remove(at);
        let first = bed.submit(POOL);
        let running = bed.accept(&mut worker);
        let placed = bed.submit(POOL);
        let drained = bed.drain(scope.clone());
        heard(&bed, &drained, &mut [&mut worker]);
        bed.submit(POOL);
        assert!(worker.poll_offer(bed.now).is_none(), "{scope}");
        // What had been placed and not sent is back, at no cost.
        assert_eq!(bed.state(placed), TaskState::Pending, "{scope}");
        assert_eq!(bed.status(placed).deliveries, 0);
        assert_eq!(bed.reason(placed), Reason::AllDraining, "{scope}");
        // What runs may finish.
        assert_eq!(bed.complete(&mut worker, &running), Verdict::Applied);
        assert!(bed.state(first).is_terminal());
        assert!(worker.poll_offer(bed.now).is_none(), "{scope}");
        assert_eq!(worker.load(), (4, 0));
    }
}

#[test]
fn a_narrower_drain_leaves_the_rest_alone() {
    let mut bed = Bed::new();
    let mut worker = bed.worker_on(&[POOL, OTHER, FOREIGN], 8, "box-7");
    let mut elsewhere = bed.worker_on(&[POOL], 8, "box-8");
    let pools = bed.drain(DrainScope::Pool(key(POOL)));
    heard(&bed, &pools, &mut [&mut worker, &mut elsewhere]);
    assert!(!worker.drain_requested());
    bed.submit(POOL);
    bed.submit(OTHER);
    bed.submit(FOREIGN);
    assert_eq!(bed.drain_offers(&mut worker), 2);
    assert_eq!(bed.drain_offers(&mut elsewhere), 0);
    bed.drain(node("box-7"));
    bed.uncordon(&DrainScope::Pool(key(POOL)));
    assert!(worker.drain_requested());
    assert!(!elsewhere.drain_requested());
    assert_eq!(bed.drain_offers(&mut elsewhere), 1);
}

#[test]
fn a_registration_that_comes_later_sees_the_drain() {
    let try_register = |bed: &mut Bed, build: &str, on: &str| {
        let number = bed.number();
        let session = SessionId::from_bytes(u128::from(number).to_be_bytes());
        let node = Some(Node::new(on).expect("a node"));
        let register = Register { node, build: build.to_owned(), ..register(&[POOL], number) };
        let link = std::sync::Arc::new(Bell::default());
        bed.engine.register(&bed.operator, session, register, link, bed.now)
    };
    let mut bed = Bed::new();
    bed.drain(node("box-7"));
    bed.drain(DrainScope::Build("old".to_owned()));
    assert_eq!(try_register(&mut bed, "new", "box-7").err(), Some(RegisterError::Draining));
    assert_eq!(try_register(&mut bed, "old", "box-8").err(), Some(RegisterError::Draining));
    let mut other = try_register(&mut bed, "new", "box-8").expect("admitted");
    other.credit(1, 1, bed.now);
    bed.drain(namespace("main"));
    let mut late = try_register(&mut bed, "new", "box-9").expect("admitted");
    late.credit(1, 1, bed.now);
    let task = bed.submit(POOL);
    assert!(late.poll_offer(bed.now).is_none() && other.poll_offer(bed.now).is_none());
    assert_eq!(bed.reason(task), Reason::AllDraining);
    bed.uncordon(&namespace("main"));
    let served = bed.drain_offers(&mut late) + bed.drain_offers(&mut other);
    assert_eq!(served, 1);
    bed.uncordon(&node("box-7"));
    assert!(try_register(&mut bed, "new", "box-7").is_ok());
}

#[test]
fn a_cordoned_worker_serves_again() {
    for at in 0..5 {
        let mut bed = Bed::new();
        let mut worker = bed.worker_on(&[POOL], 2, "box-7");
        let scope = scopes(&worker).swap_remove(at);
        let cordoned = bed.cordon(scope.clone());
        heard(&bed, &cordoned, &mut [&mut worker]);
        assert!(!worker.drain_requested(), "a cordon asks nobody to leave");
        let tasks = bed.submit_many(POOL, 3);
        assert!(worker.poll_offer(bed.now).is_none(), "{scope}");
        assert_eq!(bed.engine.drains(&bed.operator).len(), 1);
        assert_eq!(bed.engine.drains(&bed.operator)[0].mode, DrainMode::Cordon);
        bed.uncordon(&scope);
        assert_eq!(bed.drain_offers(&mut worker), 3, "{scope}");
        assert!(tasks.iter().all(|id| bed.state(*id).is_terminal()));
        assert!(bed.engine.drains(&bed.operator).is_empty());
        let again = bed.engine.uncordon(&bed.operator, &scope, bed.now);
        assert_eq!(again, Err(AdminError::NotFound), "{scope}");
    }
}

#[test]
fn a_cordon_holds_for_workers_to_come_and_scopes_overlap() {
    let mut bed = Bed::new();
    bed.cordon(node("box-7"));
    let mut worker = bed.worker_on(&[POOL], 2, "box-7");
    bed.cordon(DrainScope::Worker(worker.worker_id()));
    bed.submit(POOL);
    bed.uncordon(&node("box-7"));
    assert!(worker.poll_offer(bed.now).is_none(), "the worker's own cordon holds");
    bed.uncordon(&DrainScope::Worker(worker.worker_id()));
    assert_eq!(bed.drain_offers(&mut worker), 1);
}

#[test]
fn an_uncordon_does_not_call_back_who_leaves() {
    let mut bed = Bed::new();
    let mut worker = bed.worker_on(&[POOL], 2, "box-7");
    bed.cordon(node("box-7"));
    worker.drain(bed.now);
    assert_eq!(bed.uncordon(&node("box-7")), 0);
    bed.submit(POOL);
    assert!(worker.poll_offer(bed.now).is_none());
}

#[test]
fn at_the_deadline_work_is_taken_away_at_no_charge() {
    for at in 0..5 {
        let mut bed = Bed::new();
        let mut worker = bed.worker_on(&[POOL, OTHER], 4, "box-7");
        let scope = scopes(&worker).swap_remove(at);
        let task = bed.submit(POOL);
        let running = bed.accept(&mut worker);
        let drained = bed.drain_until(scope.clone(), Some(Duration::from_secs(5)));
        heard(&bed, &drained, &mut [&mut worker]);
        bed.pass(Duration::from_millis(4_900));
        worker.hear(bed.now);
        assert_eq!(bed.state(task), TaskState::Running, "{scope}");
        bed.pass(Duration::from_millis(200));
        worker.hear(bed.now);
        assert_eq!(bed.state(task), TaskState::Pending, "{scope}");
        assert_eq!(told(&mut worker), Some((running.lease, CancelReason::Stale)));
        let status = bed.status(task);
        assert_eq!((status.attempt, status.deliveries, status.lost), (1, 1, 0), "{scope}");
        // The slot is the worker's until it says that it is not at work on it any more.
        assert_eq!(worker.load(), (4, 1));
        assert_eq!(bed.complete(&mut worker, &running), Verdict::Stale);
        assert_eq!(worker.load(), (4, 0));
        assert!(worker.poll_offer(bed.now).is_none(), "{scope}");
    }
}

#[test]
fn a_lifted_drain_has_no_deadline() {
    let mut bed = Bed::new();
    let mut worker = bed.worker_on(&[POOL], 4, "box-7");
    let task = bed.submit(POOL);
    let running = bed.accept(&mut worker);
    bed.drain_until(DrainScope::Pool(key(POOL)), Some(Duration::from_secs(5)));
    bed.uncordon(&DrainScope::Pool(key(POOL)));
    bed.pass(Duration::from_secs(6));
    worker.hear(bed.now);
    assert_eq!(bed.state(task), TaskState::Running);
    assert_eq!(bed.complete(&mut worker, &running), Verdict::Applied);
}

#[test]
fn an_evicted_worker_leaves_what_it_has() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 2);
    let running = bed.submit(POOL);
    bed.accept(&mut worker);
    let placed = bed.submit(POOL);
    bed.engine.evict(&bed.operator, worker.worker_id(), bed.now).expect("evicted");
    assert!(worker.evicted());
    assert!(worker.poll_offer(bed.now).is_none());
    worker.close(CloseReason::Evicted, bed.now);
    let mut next = bed.worker(&[POOL], 2);
    assert_eq!(bed.drain_offers(&mut next), 2);
    assert_eq!((bed.status(running).lost, bed.status(placed).lost), (1, 0));
    let gone = bed.engine.evict(&bed.operator, worker.worker_id(), bed.now);
    assert_eq!(gone, Err(AdminError::NotFound));
}

#[test]
fn drains_are_for_operators_of_all_they_concern() {
    let mut bed = Bed::new();
    let worker = bed.worker_on(&[POOL, FOREIGN], 1, "box-7");
    let main = || Grant::Namespace(Namespace::new("main").expect("a name"));
    let half = Principal::new("h", [(Role::Operator, main())]);
    let stranger = Principal::new("s", []);
    let drain = |who: &Principal, scope: &DrainScope| {
        let bell = std::sync::Arc::new(Bell::default());
        bed.engine.cordon(who, scope.clone(), bell, bed.now).map(|drained| drained.workers)
    };
    let denied = Err(AdminError::PermissionDenied);
    for scope in [node("box-7"), DrainScope::Build("test".to_owned())] {
        assert_eq!(drain(&half, &scope), denied);
    }
    assert_eq!(drain(&half, &DrainScope::Worker(worker.worker_id())), denied);
    assert_eq!(drain(&half, &namespace("other")), Err(AdminError::NotFound));
    assert_eq!(drain(&stranger, &namespace("main")), Err(AdminError::NotFound));
    assert_eq!(drain(&half, &namespace("main")), Ok(0));
    assert_eq!(bed.engine.drains(&half).len(), 1);
    assert!(bed.engine.drains(&stranger).is_empty());
}

#[test]
fn a_session_that_is_gone_holds_up_no_drain() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let drained = bed.drain(DrainScope::Pool(key(POOL)));
    assert!(!drained.is_done(), "nobody has looked yet");
    worker.close(CloseReason::StreamClosed, bed.now);
    assert!(drained.is_done());
}
