//! A task's life between threads: cancelling, holding, running before its time.

use std::sync::Arc;

use bytes::Bytes;
use slipswitch_core::model::{Lease, Units};
use slipswitch_core::{Cancel, Hold, Namespace, Notify, TaskId, TaskState};
use slipswitch_loom_tests::sync::Arc as Shared;
use slipswitch_loom_tests::{Bed, POOL, Spec, key, model, task, thread};

struct Nobody;

impl Notify for Nobody {
    fn notify(&self) {}
}

fn hold() -> Hold {
    let namespace = Namespace::new("main").expect("a name");
    Hold::Owner(namespace, Bytes::from_static(b"owner"))
}

fn submit_owned(bed: &Bed, number: u8) {
    let mut route = bed.engine.route(&key(POOL)).expect("a route");
    let mut task = task(number);
    task.options.owner_key = Bytes::from_static(b"owner");
    bed.engine.submit(&bed.operator, &mut route, task, None, Bed::NOW).expect("taken");
}

/// L14-owner: after a hold has returned nothing of the owner stands in a line, however it came to
/// wait.
///
/// Kills L14a.
#[test]
fn a_hold_finds_every_task_that_waits() {
    const SPEC: Spec =
        Spec::new("L14-owner").preemption(3).must_reach(&["came back held", "came back free"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let mut worker = bed.worker(&[POOL], 1, 1);
        submit_owned(&bed, 1);
        assert!(worker.poll_offer(Bed::NOW).is_some());
        let session = {
            let bed = bed.clone();
            // What it was sent comes back.
            thread::spawn(move || {
                worker.close(slipswitch_core::CloseReason::ClientGoodbye, Bed::NOW);
                bed.engine.holds(&bed.operator).len()
            })
        };
        let operator = {
            let bed = bed.clone();
            thread::spawn(move || {
                let held = bed.engine.hold(&bed.operator, &hold(), Arc::new(Nobody), Bed::NOW);
                assert!(held.is_ok_and(|held| held.is_done()));
            })
        };
        let held = thread::join(session);
        thread::join(operator);
        run.reached(if held > 0 { "came back held" } else { "came back free" });
        assert_eq!(bed.state(1), TaskState::Pending);
        let mut next = bed.worker(&[POOL], 2, 1);
        assert!(next.poll_offer(Bed::NOW).is_none(), "a held task was offered");
        bed.engine.release_hold(&bed.operator, &hold(), Bed::NOW).expect("held");
        assert_eq!(bed.settle(&mut next), 1, "a released task was lost");
        assert_eq!(bed.engine.pools(&bed.operator).1[0].waiting, 0, "the count is off");
    });
}

/// L14-submit: the same for a task that is being handed in.
///
/// Kills L14e.
#[test]
fn a_hold_finds_a_task_that_is_handed_in() {
    const SPEC: Spec = Spec::new("L14-submit").preemption(3).must_reach(&["placed before", "held"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let mut worker = bed.worker(&[POOL], 1, 1);
        let producer = {
            let bed = bed.clone();
            thread::spawn(move || submit_owned(&bed, 1))
        };
        let operator = {
            let bed = bed.clone();
            thread::spawn(move || {
                let held = bed.engine.hold(&bed.operator, &hold(), Arc::new(Nobody), Bed::NOW);
                assert!(held.is_ok_and(|held| held.is_done()));
                bed.state_of(1)
            })
        };
        thread::join(producer);
        let then = thread::join(operator);
        let offer = worker.poll_offer(Bed::NOW);
        if offer.is_some() {
            assert_eq!(then, Some(TaskState::Offered), "a held task was offered");
            run.reached("placed before");
            return;
        }
        run.reached("held");
        assert_eq!(bed.engine.pools(&bed.operator).1[0].waiting, 0, "the count is off");
        bed.engine.release_hold(&bed.operator, &hold(), Bed::NOW).expect("held");
        assert_eq!(bed.settle(&mut worker), 1, "a released task was lost");
        assert_eq!(bed.engine.pools(&bed.operator).1[0].waiting, 0, "the count is off");
    });
}

/// L14-fresh: a task that is cancelled while it is handed in is counted out of its pool's line just
/// if it was counted in, and holds no unit.
///
/// Kills L14b.
#[test]
fn a_cancel_races_a_submit() {
    const SPEC: Spec = Spec::new("L14-fresh").preemption(3).must_reach(&[
        "cancelled",
        "unknown yet",
        "in line",
        "placed",
    ]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let worker = bed.worker(&[POOL], 1, 1);
        let units = Units::of(&worker);
        let first = {
            let bed = bed.clone();
            thread::spawn(move || bed.submit(POOL, 1))
        };
        let other = {
            let bed = bed.clone();
            thread::spawn(move || bed.submit(POOL, 2))
        };
        let id = TaskId::from_bytes([1; 16]);
        let cancelled = bed.engine.cancel(&bed.operator, id, &Cancel::default(), Bed::NOW);
        thread::join(first);
        thread::join(other);
        let mut worker = worker;
        match cancelled {
            Err(_) => run.reached("unknown yet"),
            Ok(_) => run.reached("cancelled"),
        }
        if bed.state(2) == TaskState::Pending {
            run.reached("in line");
        } else {
            run.reached("placed");
        }
        let expected = 1 + usize::from(cancelled.is_err());
        assert_eq!(bed.settle(&mut worker), expected, "tasks that completed");
        assert_eq!(bed.engine.pools(&bed.operator).1[0].waiting, 0, "the count is off");
        assert_eq!(bed.engine.backlog_bytes(), 0);
        assert_eq!(units.in_flight(), 0);
    });
}

/// L14-again: whoever runs a failed task before its time finds the next attempt counted.
///
/// Kills L14c.
#[test]
fn run_now_finds_the_attempt_counted() {
    const SPEC: Spec = Spec::new("L14-again").must_reach(&["early", "late"]);
    model(&SPEC, |run| {
        let lease = Shared::new(Lease::new());
        assert!(lease.offer(1) && lease.accept(1));
        let worker = {
            let lease = Shared::clone(&lease);
            thread::spawn(move || assert!(lease.fail(1)))
        };
        let operator = {
            let lease = Shared::clone(&lease);
            thread::spawn(move || {
                let early = lease.run_now();
                if early {
                    assert!(lease.offer(2));
                    assert_eq!(lease.attempt(), 2, "the attempt of an offer");
                }
                early
            })
        };
        thread::join(worker);
        run.reached(if thread::join(operator) { "early" } else { "late" });
        assert_eq!(lease.attempt(), 2);
    });
}

/// L14-cancel: of result, cancel and loss each wins what is its own, and one ends the task.
///
/// Kills L14d.
#[test]
fn cancel_races_result_and_loss() {
    const SPEC: Spec =
        Spec::new("L14-cancel").preemption(5).must_reach(&["completed", "cancelled", "again"]);
    model(&SPEC, |run| {
        let lease = Shared::new(Lease::new());
        assert!(lease.offer(1) && lease.accept(1));
        let worker = {
            let lease = Shared::clone(&lease);
            thread::spawn(move || lease.complete(1))
        };
        let expiry = {
            let lease = Shared::clone(&lease);
            thread::spawn(move || lease.lose(1))
        };
        let asked = lease.cancel();
        let (completed, lost) = (thread::join(worker), thread::join(expiry));
        assert!(completed != lost, "one ends the lease");
        match lease.state() {
            TaskState::Completed => {
                assert!(completed);
                run.reached("completed");
            }
            TaskState::Cancelled => {
                assert!(asked && lost);
                run.reached("cancelled");
            }
            TaskState::Pending => {
                assert!(lost && !asked, "a cancelled task waits again");
                run.reached("again");
            }
            other => panic!("left {other}"),
        }
    });
}
