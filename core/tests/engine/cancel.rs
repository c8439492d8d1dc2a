//! Cancelling, superseding, holding, signals (specification 16).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    AdminError, Beat, Cancel, CancelReason, Class, CloseReason, FailureClass, Grant, Hold, Instant,
    Namespace, Principal, Reason, RejectCode, Role, SignalVerdict, SubmitError, TaskId,
    TaskOptions, TaskState, Verdict, Verdicts, WorkerSession,
};

use crate::bed::{Bed, Bell, completed, key, mailbox, take, told};

const POOL: &str = "main/default/work";
const OTHER: &str = "main/default/rest";

fn because(reason: &'static str) -> Cancel {
    Cancel { reason: reason.into(), grace: None }
}

fn owned(owner: &'static str, generation: u64) -> TaskOptions {
    let mut options = TaskOptions::default();
    options.owner_key = Bytes::from_static(owner.as_bytes());
    options.generation = generation;
    options
}

fn main_namespace() -> Namespace {
    Namespace::new("main").expect("a name")
}

fn owner_hold(owner: &'static str) -> Hold {
    Hold::Owner(main_namespace(), Bytes::from_static(owner.as_bytes()))
}

impl Bed {
    fn cancel(&self, id: TaskId) -> bool {
        let answer = self.engine.cancel(&self.operator, id, &because("enough"), self.now);
        answer.expect("known").changed
    }

    fn hold(&self, hold: &Hold, sessions: &mut [&mut WorkerSession]) {
        let bell = Arc::new(Bell::default());
        let held = self.engine.hold(&self.operator, hold, bell, self.now).expect("held");
        for session in sessions {
            session.hear(self.now);
        }
        assert!(held.is_done());
    }

    fn release(&self, hold: &Hold) {
        self.engine.release_hold(&self.operator, hold, self.now).expect("released");
    }
}

// bug: B28
#[test]
fn cancel_in_every_state() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 0);
    let (mailbox, _) = mailbox();
    let watcher = |tag| Some(slipswitch_core::Watcher { mailbox: mailbox.clone(), tag });
    let mut later = TaskOptions::default();
    later.rare_mut().delay = Some(Duration::from_secs(60));
    let scheduled = bed.try_submit(POOL, later, watcher(1)).expect("taken").id;
    let pending = bed.try_submit(POOL, TaskOptions::default(), watcher(2)).expect("taken").id;
    for id in [scheduled, pending] {
        assert!(bed.cancel(id));
        // Once: saying it again changes nothing.
        assert!(!bed.cancel(id));
        assert_eq!(bed.state(id), TaskState::Cancelled);
    }
    worker.credit(2, 2, bed.now);
    let offered = bed.try_submit(POOL, TaskOptions::default(), watcher(3)).expect("taken").id;
    let offer = worker.poll_offer(bed.now).expect("an offer");
    assert!(bed.cancel(offered));
    assert_eq!(bed.state(offered), TaskState::Cancelled);
    // The worker has it: it is told, and its slot stays out until it answers.
    assert_eq!(told(&mut worker), Some((offer.lease, CancelReason::Asked)));
    assert_eq!(worker.load(), (2, 1));
    worker.accept(offer.lease, bed.now);
    assert_eq!(told(&mut worker), Some((offer.lease, CancelReason::Stale)));
    assert_eq!(bed.complete(&mut worker, &offer), Verdict::Stale);
    assert_eq!(worker.load(), (2, 0));
    let running = bed.try_submit(POOL, TaskOptions::default(), watcher(4)).expect("taken").id;
    let offer = bed.accept(&mut worker);
    assert!(bed.cancel(running));
    assert!(!bed.cancel(running));
    assert_eq!(bed.state(running), TaskState::Cancelling);
    assert_eq!(bed.reason(running), Reason::Cancelling(worker.worker_id()));
    let stop = worker.poll_cancel().expect("told");
    assert_eq!((stop.lease, stop.reason), (offer.lease, CancelReason::Asked));
    assert_eq!((stop.grace, stop.message.as_str()), (Duration::from_secs(10), "enough"));
    assert!(worker.poll_cancel().is_none());
    // Told again with every answer to a beat, with what is left of the grace.
    bed.pass(Duration::from_secs(4));
    let again: Vec<_> = worker.stopping(bed.now).collect();
    assert_eq!((again[0].lease, again[0].grace), (offer.lease, Duration::from_secs(6)));
    assert_eq!(bed.fail(&mut worker, &offer, FailureClass::Retryable), Verdict::Applied);
    assert_eq!(bed.state(running), TaskState::Cancelled);
    assert_eq!(worker.stopping(bed.now).count(), 0);
    let told: Vec<_> = take(&mailbox)
        .into_iter()
        .map(|delivered| {
            (delivered.tag, delivered.outcome.class, delivered.outcome.message.clone())
        })
        .collect();
    let outcome = |tag| (tag, Class::Cancelled, "enough".to_owned());
    assert_eq!(told, [outcome(1), outcome(2), outcome(3), outcome(4)]);
    // What has ended stays as it is.
    let done = bed.submit(POOL);
    let offer = bed.accept(&mut worker);
    bed.complete(&mut worker, &offer);
    assert!(!bed.cancel(done));
    assert_eq!(bed.state(done), TaskState::Completed);
    let unknown = TaskId::from_bytes([9; 16]);
    let answer = bed.engine.cancel(&bed.operator, unknown, &because(""), bed.now);
    assert_eq!(answer, Err(AdminError::NotFound));
}

#[test]
fn cancel_frees_slot() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let cancelled = bed.submit(POOL);
    let offer = bed.accept(&mut worker);
    let waits = bed.submit(POOL);
    bed.cancel(cancelled);
    // The handler ignores it: after the grace the task has ended, and the slot is still taken.
    bed.pass_with(Duration::from_millis(10_100), &mut [&mut worker]);
    assert_eq!(bed.state(cancelled), TaskState::Cancelled);
    assert!(worker.poll_offer(bed.now).is_none());
    assert_eq!(bed.reason(waits), Reason::AllFull);
    // It reports in the end: the slot is free, the result stale.
    assert_eq!(bed.complete(&mut worker, &offer), Verdict::Stale);
    assert_eq!(bed.accept(&mut worker).task.id(), waits);
}

#[test]
fn finishing_within_the_grace_completes() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let id = bed.submit(POOL);
    let offer = bed.accept(&mut worker);
    bed.cancel(id);
    bed.pass_with(Duration::from_millis(9_900), &mut [&mut worker]);
    assert_eq!(bed.complete(&mut worker, &offer), Verdict::Applied);
    assert_eq!(bed.state(id), TaskState::Completed);
    bed.pass(Duration::from_secs(1));
    assert_eq!(bed.state(id), TaskState::Completed);
}

#[test]
fn a_worker_that_is_lost_while_it_stops_cancels() {
    for reason in [CloseReason::StreamClosed, CloseReason::ClientGoodbye] {
        let mut bed = Bed::new();
        let mut worker = bed.worker(&[POOL], 1);
        let id = bed.submit(POOL);
        bed.accept(&mut worker);
        bed.cancel(id);
        assert!(worker.poll_cancel().is_some());
        worker.close(reason, bed.now);
        // At once, whether or not the worker might have come back for it.
        assert_eq!(bed.state(id), TaskState::Cancelled, "{reason:?}");
    }
}

#[test]
fn an_orphan_is_cancelled_when_its_grace_is_over() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let id = bed.submit(POOL);
    bed.accept(&mut worker);
    worker.close(CloseReason::StreamClosed, bed.now);
    assert!(bed.cancel(id));
    bed.pass(Duration::from_millis(2_100));
    assert_eq!(bed.state(id), TaskState::Cancelled);
}

#[test]
fn dead_owner_not_served() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let running = bed.submit_with(POOL, owned("run-7", 1));
    let offer = bed.accept(&mut worker);
    let old = bed.submit_with(POOL, owned("run-7", 1));
    let new = bed.submit_with(POOL, owned("run-7", 2));
    let foreign = bed.submit_with(POOL, owned("run-8", 1));
    let owner = Bytes::from_static(b"run-7");
    let supersede = |bed: &Bed, generation| {
        let namespace = main_namespace();
        bed.engine.supersede(&bed.operator, &namespace, &owner, generation, bed.now)
    };
    assert_eq!(supersede(&bed, 2), Ok(2));
    assert_eq!(bed.state(running), TaskState::Cancelling);
    assert_eq!(bed.state(old), TaskState::Cancelled);
    assert_eq!([bed.state(new), bed.state(foreign)], [TaskState::Pending; 2]);
    assert!(told(&mut worker).is_some());
    bed.complete(&mut worker, &offer);
    // What comes late of the old generation is refused, also when nothing of the owner is left.
    let refused = bed.try_submit(POOL, owned("run-7", 1), None).expect_err("stale");
    assert_eq!(refused.error, SubmitError::StaleGeneration { needed: 2 });
    assert_eq!(bed.drain_offers(&mut worker), 2);
    let refused = bed.try_submit(POOL, owned("run-7", 0), None).expect_err("stale");
    assert_eq!(refused.error, SubmitError::StaleGeneration { needed: 2 });
    assert_eq!(supersede(&bed, 1), Ok(0));
    bed.submit_with(POOL, owned("run-7", 3));
}

#[test]
fn an_owner_is_cancelled_as_one() {
    let mut bed = Bed::new();
    let ids: Vec<_> = (0..4).map(|n| bed.submit_with(POOL, owned("mine", n))).collect();
    let other = bed.submit_with(POOL, owned("other", 0));
    let cancel = |bed: &Bed, below| {
        let owner = Bytes::from_static(b"mine");
        let (namespace, cancel) = (main_namespace(), because("enough"));
        bed.engine.cancel_owner(&bed.operator, &namespace, &owner, below, &cancel, bed.now)
    };
    assert_eq!(cancel(&bed, Some(2)), Ok(2));
    assert_eq!(bed.state(ids[1]), TaskState::Cancelled);
    assert_eq!(bed.state(ids[2]), TaskState::Pending);
    assert_eq!(cancel(&bed, None), Ok(2));
    assert_eq!(cancel(&bed, None), Ok(0));
    assert_eq!(bed.state(other), TaskState::Pending);
    // Cancelling does not keep new ones out.
    bed.submit_with(POOL, owned("mine", 0));
}

/// The ways in which a task comes to wait for a worker while something is held.
#[test]
fn hold_all_paths() {
    let scopes = [owner_hold("mine"), Hold::Pool(key(POOL)), Hold::Namespace(main_namespace())];
    for hold in scopes {
        let mut bed = Bed::new();
        let mut worker = bed.worker(&[POOL], 8);
        let fails = bed.submit_with(POOL, owned("mine", 0));
        let failing = bed.accept(&mut worker);
        let lost = bed.submit_with(POOL, owned("mine", 0));
        let losing = bed.accept(&mut worker);
        let rejected = bed.submit_with(POOL, owned("mine", 0));
        let rejecting = worker.poll_offer(bed.now).expect("an offer");
        let runs = bed.submit_with(POOL, owned("mine", 0));
        let running = bed.accept(&mut worker);
        let mut later = owned("mine", 0);
        later.rare_mut().delay = Some(Duration::from_secs(1));
        let delayed = bed.submit_with(POOL, later);
        worker.credit(4, 2, bed.now);
        let waits = bed.submit_with(POOL, owned("mine", 0));
        bed.hold(&hold, &mut [&mut worker]);
        worker.credit(100, 3, bed.now);
        assert!(worker.poll_offer(bed.now).is_none(), "{hold:?}: from the line");
        let fresh = bed.submit_with(POOL, owned("mine", 0));
        assert!(worker.poll_offer(bed.now).is_none(), "{hold:?}: a new one");
        bed.fail(&mut worker, &failing, FailureClass::Retryable);
        bed.fail(&mut worker, &losing, FailureClass::Infrastructure);
        worker.reject(rejecting.lease, RejectCode::NoCapacity, bed.now);
        worker.credit(100, 4, bed.now);
        bed.pass_with(Duration::from_secs(2), &mut [&mut worker]);
        assert!(worker.poll_offer(bed.now).is_none(), "{hold:?}: in time");
        let mut late = bed.worker(&[POOL], 100);
        assert!(late.poll_offer(bed.now).is_none(), "{hold:?}: a new worker");
        let held = [fails, lost, rejected, delayed, waits, fresh];
        for id in held {
            assert_eq!((bed.state(id), bed.reason(id)), (TaskState::Pending, Reason::Held));
        }
        // What ran goes on.
        assert_eq!(bed.state(runs), TaskState::Running);
        assert_eq!(bed.complete(&mut worker, &running), Verdict::Applied);
        // A held one may be cancelled, and expires.
        assert!(bed.cancel(fresh));
        assert_eq!(bed.engine.holds(&bed.operator).len(), 1);
        bed.release(&hold);
        assert!(bed.engine.holds(&bed.operator).is_empty());
        let served = bed.drain_offers(&mut worker) + bed.drain_offers(&mut late);
        assert_eq!(served, 5, "{hold:?}");
        let again = bed.engine.release_hold(&bed.operator, &hold, bed.now);
        assert_eq!(again, Err(AdminError::NotFound));
    }
}

#[test]
fn holds_and_cordons_of_a_pool_are_apart() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL, OTHER], 8);
    let hold = Hold::Pool(key(POOL));
    bed.hold(&hold, &mut [&mut worker]);
    let scope = slipswitch_core::DrainScope::Pool(key(POOL));
    let cordoned = bed.cordon(scope.clone());
    worker.hear(bed.now);
    assert!(cordoned.is_done());
    bed.submit(POOL);
    let other = bed.submit(OTHER);
    assert_eq!(bed.accept(&mut worker).task.id(), other);
    bed.release(&hold);
    assert!(worker.poll_offer(bed.now).is_none());
    bed.uncordon(&scope);
    assert!(worker.poll_offer(bed.now).is_some());
}

#[test]
fn held_owner_tasks_do_not_block_others() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 0);
    bed.hold(&owner_hold("mine"), &mut []);
    bed.submit_with(POOL, owned("mine", 0));
    let free = bed.submit(POOL);
    worker.credit(1, 2, bed.now);
    assert_eq!(bed.accept(&mut worker).task.id(), free);
    // The pool looks empty again, so the next one goes straight.
    let (_, pools) = bed.engine.pools(&bed.operator);
    assert_eq!(pools[0].waiting, 0);
}

struct Signals {
    verdicts: Arc<Verdicts>,
    bell: Arc<Bell>,
}

impl Signals {
    fn new() -> Self {
        let bell = Arc::new(Bell::default());
        Self { verdicts: Arc::new(Verdicts::new(bell.clone())), bell }
    }

    fn send(&self, bed: &Bed, id: TaskId, tag: u64) -> Result<(), AdminError> {
        let payload = Bytes::from_static(b"\x00now");
        let (kind, verdicts) = ("nudge".into(), self.verdicts.clone());
        bed.engine.signal(&bed.operator, id, kind, payload, verdicts, tag)
    }

    fn told(&self) -> Vec<(u64, SignalVerdict)> {
        self.verdicts.take().collect()
    }
}

#[test]
fn a_signal_reaches_the_lease_holder() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 4);
    let signals = Signals::new();
    let id = bed.submit(POOL);
    // Nobody is at work on it.
    signals.send(&bed, id, 1).expect("known");
    assert_eq!(signals.told(), [(1, SignalVerdict::Stale)]);
    let offer = bed.accept(&mut worker);
    for tag in 2..5 {
        signals.send(&bed, id, tag).expect("known");
    }
    let first = worker.poll_signal().expect("a signal");
    assert_eq!((first.lease, first.kind.as_str()), (offer.lease, "nudge"));
    assert_eq!(first.payload, Bytes::from_static(b"\x00now"));
    let second = worker.poll_signal().expect("a signal");
    worker.signal_ack(first.lease, first.seq, SignalVerdict::Applied);
    worker.signal_ack(first.lease, first.seq, SignalVerdict::Unsupported);
    worker.signal_ack(second.lease, second.seq, SignalVerdict::Unsupported);
    worker.signal_ack(second.lease, 77, SignalVerdict::Applied);
    let told = signals.told();
    assert_eq!(told, [(2, SignalVerdict::Applied), (3, SignalVerdict::Unsupported)]);
    // The delivery ends before the last is answered.
    bed.complete(&mut worker, &offer);
    assert_eq!(signals.told(), [(4, SignalVerdict::Stale)]);
    assert!(worker.poll_signal().is_none());
    assert!(signals.bell.rings() >= 3);
}

#[test]
fn signals_of_a_lost_session_are_stale_and_their_number_is_bounded() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 4);
    let signals = Signals::new();
    let id = bed.submit(POOL);
    bed.accept(&mut worker);
    let most = u64::from(slipswitch_core::limits::SIGNALS_MAX);
    for tag in 0..most {
        signals.send(&bed, id, tag).expect("known");
    }
    let refused = signals.send(&bed, id, most).expect_err("too many");
    assert!(matches!(refused, AdminError::TooMany { .. }), "{refused}");
    let given = worker.poll_signal().expect("a signal");
    worker.signal_ack(given.lease, given.seq, SignalVerdict::Applied);
    signals.send(&bed, id, most).expect("room again");
    worker.close(CloseReason::StreamClosed, bed.now);
    let told = signals.told();
    assert_eq!(told.len() as u64, most + 1);
    let stale = told.iter().filter(|(_, verdict)| *verdict == SignalVerdict::Stale).count();
    assert_eq!(stale as u64, most);
}

#[test]
fn cancelling_needs_a_right_in_the_namespace() {
    let mut bed = Bed::new();
    let id = bed.submit_with(POOL, owned("mine", 0));
    let grant = |role, namespace: &str| {
        let namespace = Namespace::new(namespace).expect("a name");
        Principal::new("someone", [(role, Grant::Namespace(namespace))])
    };
    let (stranger, watcher) = (grant(Role::Operator, "other"), grant(Role::Observer, "main"));
    let producer = grant(Role::Producer, "main");
    let (cancel, now) = (because(""), bed.now);
    let try_all = |principal: &Principal, now: Instant| {
        let engine = &bed.engine;
        let (namespace, owner) = (main_namespace(), Bytes::from_static(b"mine"));
        let signals = Signals::new();
        [
            engine.run_now(principal, id, now).map(drop),
            engine.signal(principal, id, "x".into(), Bytes::new(), signals.verdicts, 1),
            engine.cancel_owner(principal, &namespace, &owner, Some(0), &cancel, now).map(drop),
            engine.supersede(principal, &namespace, &owner, 0, now).map(drop),
            engine.cancel(principal, id, &cancel, now).map(drop),
        ]
    };
    assert_eq!(try_all(&stranger, now), [Err(AdminError::NotFound); 5]);
    assert_eq!(try_all(&watcher, now), [Err(AdminError::PermissionDenied); 5]);
    assert_eq!(try_all(&producer, now), [Ok(()); 5]);
    // Holds are for operators.
    let hold = |principal: &Principal| {
        let bell = Arc::new(Bell::default());
        let held = bed.engine.hold(principal, &owner_hold("mine"), bell, now);
        held.map(drop).expect_err("refused")
    };
    assert_eq!(hold(&stranger), AdminError::NotFound);
    assert_eq!(hold(&producer), AdminError::PermissionDenied);
    assert!(bed.engine.holds(&bed.operator).is_empty());
}

#[test]
fn a_beat_of_a_cancelled_lease_keeps_it_until_the_grace_ends() {
    let mut bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1);
    let id = bed.submit(POOL);
    let offer = bed.accept(&mut worker);
    let cancel = Cancel { grace: Some(Duration::from_secs(60)), ..Cancel::default() };
    bed.engine.cancel(&bed.operator, id, &cancel, bed.now).expect("known");
    for _ in 0..5 {
        bed.pass_with(Duration::from_secs(10), &mut [&mut worker]);
        worker.beat(Beat::All, bed.now);
        assert_eq!(bed.state(id), TaskState::Cancelling);
    }
    assert_eq!(worker.result(completed(&offer, b"in time"), bed.now), Verdict::Applied);
}
