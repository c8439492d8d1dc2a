//! Tasks that wait, and who places them.

use slipswitch_loom_tests::{Bed, POOL, Spec, model, thread};

/// Two producers and the worker's first credit race; nothing is left lying.
fn credit_meets_producers(here: bool) {
    let bed = Bed::new();
    let mut worker = bed.worker(&[POOL], 1, 0);
    let producer = thread::spawn({
        let bed = bed.clone();
        move || bed.submit(POOL, 1)
    });
    let mut worker = if here {
        bed.submit(POOL, 2);
        worker.credit(2, 2, Bed::NOW);
        worker
    } else {
        let grants = thread::spawn(move || {
            worker.credit(2, 2, Bed::NOW);
            worker
        });
        bed.submit(POOL, 2);
        thread::join(grants)
    };
    thread::join(producer);
    // No pass is due any more but those that were left to the driver: both were placed.
    bed.engine.advance(Bed::NOW);
    assert_eq!(bed.placed(&[1, 2]), 2, "a backlog was left beside a free credit");
    assert_eq!(bed.settle(&mut worker), 2);
    assert_eq!(bed.engine.in_flight(), 0);
}

/// L4b (`pump_race`): the second producer is followed by the credit.
///
/// Kills L4b-a, L4b-b.
#[test]
fn pump_race() {
    const SPEC: Spec = Spec::new("L4b").preemption(3);
    model(&SPEC, |_run| credit_meets_producers(true));
}

/// L4b (`pump_race`): all three at once.
#[test]
fn pump_race_of_three() {
    const SPEC: Spec = Spec::new("L4b-three").preemption(2);
    model(&SPEC, |_run| credit_meets_producers(false));
}

/// L4 (engine): a task that waits in an empty pool goes to the worker that registers meanwhile.
///
/// Kills L4c.
#[test]
fn register_between_check_and_wait() {
    const SPEC: Spec = Spec::new("L4-register").preemption(4).must_reach(&["waited first"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let producer = {
            let bed = bed.clone();
            thread::spawn(move || bed.submit(POOL, 1))
        };
        let mut worker = bed.register(&[POOL], 1).expect("admitted");
        if bed.waits(1) {
            run.reached("waited first");
        }
        worker.credit(1, 1, Bed::NOW);
        thread::join(producer);
        bed.engine.advance(Bed::NOW);
        assert_eq!(bed.placed(&[1]), 1, "a task sleeps in a pool with a free worker");
        assert_eq!(bed.settle(&mut worker), 1);
    });
}

/// L13: a pool that the sweep drops while a task is handed in loses no task.
#[test]
fn a_retired_pool_takes_no_task() {
    const SPEC: Spec = Spec::new("L13").must_reach(&["retired", "kept"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        // The pool exists, without worker or task.
        let route = bed.engine.route(&slipswitch_loom_tests::key(POOL)).expect("a route");
        let sweeper = {
            let bed = bed.clone();
            thread::spawn(move || {
                bed.engine.advance(Bed::NOW + std::time::Duration::from_secs(2));
            })
        };
        let mut used = route.clone();
        let task = slipswitch_loom_tests::task(1);
        bed.engine.submit(&bed.operator, &mut used, task, None, Bed::NOW).expect("taken");
        thread::join(sweeper);
        let same = format!("{used:?}") == format!("{route:?}");
        run.reached(if same { "kept" } else { "retired" });
        let mut worker = bed.worker(&[POOL], 1, 1);
        assert_eq!(bed.settle(&mut worker), 1);
    });
}
