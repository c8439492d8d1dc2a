//! Drains of less than the server: pools through their snapshot, workers through their gate.

use std::sync::Arc;

use slipswitch_core::model::Units;
use slipswitch_core::{CloseReason, DrainScope, Notify, TaskState};
use slipswitch_loom_tests::{Bed, POOL, Spec, key, model, task, thread};

struct Nobody;

impl Notify for Nobody {
    fn notify(&self) {}
}

fn submit(bed: &Bed, number: u8) {
    let mut route = bed.engine.route(&key(POOL)).expect("a route");
    let taken = bed.engine.submit(&bed.operator, &mut route, task(number), None, Bed::NOW);
    assert!(taken.is_ok(), "a drained pool takes tasks");
}

/// L8-pool: once every session has looked, nothing of a drained pool is offered, whoever placed
/// it from which snapshot.
///
/// Kills L8c.
#[test]
fn no_offer_of_a_drained_pool() {
    const SPEC: Spec =
        Spec::new("L8-pool").preemption(3).must_reach(&["offered before", "waits", "bounced"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let mut worker = bed.worker(&[POOL], 1, 1);
        let producer = {
            let bed = bed.clone();
            thread::spawn(move || submit(&bed, 1))
        };
        let operator = {
            let bed = bed.clone();
            thread::spawn(move || {
                let scope = DrainScope::Pool(key(POOL));
                let waiter = Arc::new(Nobody);
                bed.engine.drain_scope(&bed.operator, scope, None, waiter, Bed::NOW)
            })
        };
        // The session's own thread: it may be offered the task before it hears of the drain.
        let early = worker.poll_offer(Bed::NOW);
        let drained = thread::join(operator).expect("drained");
        worker.hear(Bed::NOW);
        assert!(drained.is_done(), "the one session has looked");
        let late = worker.poll_offer(Bed::NOW);
        assert!(late.is_none(), "an offer after the drain was in force");
        thread::join(producer);
        if Units::of(&worker).has_unsent() {
            run.reached("bounced");
        }
        assert!(worker.poll_offer(Bed::NOW).is_none(), "an offer after the drain was in force");
        assert!(!Units::of(&worker).has_unsent());
        if early.is_some() {
            run.reached("offered before");
        } else {
            run.reached("waits");
            assert_eq!(bed.state(1), TaskState::Pending);
        }
    });
}

/// L8-cordon: a worker that is shut and opened again while its session ends keeps no task, not
/// even one for which a credit was reserved before.
///
/// Kills L8d.
#[test]
fn an_uncordon_races_a_close() {
    const SPEC: Spec =
        Spec::new("L8-cordon").preemption(4).must_reach(&["opened", "was gone", "waits"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let mut worker = bed.worker(&[POOL], 1, 1);
        let scope = DrainScope::Worker(worker.worker_id());
        let units = Units::of(&worker);
        let producer = {
            let bed = bed.clone();
            thread::spawn(move || submit(&bed, 1))
        };
        let operator = {
            let bed = bed.clone();
            thread::spawn(move || {
                // Fails if the worker is gone already.
                let waiter = Arc::new(Nobody);
                bed.engine.cordon(&bed.operator, scope.clone(), waiter, Bed::NOW).ok();
                bed.engine.uncordon(&bed.operator, &scope, Bed::NOW)
            })
        };
        worker.close(CloseReason::ClientGoodbye, Bed::NOW);
        let opened = thread::join(operator);
        thread::join(producer);
        run.reached(if opened == Ok(1) { "opened" } else { "was gone" });
        assert!(!units.has_unsent(), "a task lies in the inbox of a worker that is gone");
        assert_eq!(bed.state(1), TaskState::Pending);
        run.reached("waits");
    });
}
