//! Registering and leaving: what a call returned, everybody sees.

use slipswitch_core::{CellFamily, CloseReason, EpochCells, ModelCells, Selection};
use slipswitch_loom_tests::{Bed, POOL, Run, Spec, model, thread};

/// Registers a worker and looks: the acknowledgement comes after the publish.
fn register<F: CellFamily>(bed: &Bed<F>, number: u8) -> slipswitch_core::WorkerSession<F> {
    let worker = bed.register(&[POOL], number).expect("admitted");
    let (generation, _) = bed.engine.generation();
    assert!(generation >= worker.generation(), "acknowledged before it was published");
    worker
}

/// L2 (`concurrent_registers`, `ack_before_offer`): both workers survive, each is visible when its
/// call returns, one publish covers all changes that wait, and generations rise.
///
/// Kills L2b.
#[test]
fn concurrent_registers() {
    const SPEC: Spec =
        Spec::new("L2").preemption(4).must_reach(&["one publish each", "one publish for both"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let other = thread::spawn({
            let bed = bed.clone();
            move || register(&bed, 2)
        });
        let reader = thread::spawn({
            let bed = bed.clone();
            move || {
                let (first, few) = bed.engine.generation();
                let (second, more) = bed.engine.generation();
                assert!(first <= second && few <= more, "the registry went back");
            }
        });
        let mine = register(&bed, 1);
        let theirs = thread::join(other);
        thread::join(reader);
        let (generation, count) = bed.engine.generation();
        assert_eq!(count, 2, "a registration was lost");
        assert_eq!(generation, mine.generation().max(theirs.generation()));
        let apart = mine.generation() != theirs.generation();
        run.reached(if apart { "one publish each" } else { "one publish for both" });
    });
}

fn register_over_epochs(run: Run) {
    let bed = Bed::<EpochCells>::over();
    let other = thread::spawn({
        let bed = bed.clone();
        move || register(&bed, 2)
    });
    let mine = register(&bed, 1);
    let theirs = thread::join(other);
    assert_eq!(bed.engine.generation().1, 2, "a registration was lost");
    if mine.generation() != theirs.generation() {
        run.reached("one publish each");
    }
}

/// As L2, over the production cell: down into the reclaimer.
///
/// Kills L2b.
#[test]
fn concurrent_registers_over_epochs() {
    const SPEC: Spec = Spec::new("L2-epoch").preemption(1).must_reach(&["one publish each"]);
    model(&SPEC, register_over_epochs);
}

/// As above, with one preemption more.
#[test]
#[ignore = "takes a minute: `cargo xtask loom at_length` runs it"]
fn concurrent_registers_over_epochs_at_length() {
    const SPEC: Spec = Spec::new("L2-epoch-long").preemption(2).must_reach(&["one publish each"]);
    model(&SPEC, register_over_epochs);
}

fn leave_while_selecting<F: CellFamily>(run: Run) {
    let bed = Bed::<F>::over();
    let leaves = bed.worker(&[POOL], 1, 1);
    let route = bed.route(POOL);
    let selector = thread::spawn({
        let (bed, route) = (bed.clone(), route.clone());
        move || {
            (0..2)
                .filter(|_| matches!(bed.engine.select(&route, None), Selection::Reserved(_)))
                .count()
        }
    });
    let id = leaves.worker_id();
    drop(leaves);
    let late = bed.engine.select(&route, None);
    assert!(!matches!(late, Selection::Reserved(_)), "{id} was selected after it left: {late:?}");
    drop(late);
    run.reached(if thread::join(selector) > 0 { "reserved" } else { "refused" });
    assert_eq!(bed.engine.generation().1, 0);
}

/// L3b (`deregister_races_reserve`): after a worker left no selection that starts yields it, and a
/// reservation that won the race gives its credit back to nobody.
///
/// Kills L3b-a.
#[test]
fn deregister_races_reserve() {
    const SPEC: Spec = Spec::new("L3b").must_reach(&["reserved", "refused"]);
    model(&SPEC, leave_while_selecting::<ModelCells>);
}

/// As L3b, over the production cell.
///
/// Kills L3b-a.
#[test]
fn deregister_races_reserve_over_epochs() {
    const SPEC: Spec = Spec::new("L3b-epoch").preemption(2).must_reach(&["reserved", "refused"]);
    model(&SPEC, leave_while_selecting::<EpochCells>);
}

/// L3 (`late_close_spares_successor`): the late close of an old session removes nobody else, also
/// when the successor has the same slot.
///
/// Kills L3a.
#[test]
fn late_close_spares_successor() {
    const SPEC: Spec = Spec::new("L3").must_reach(&["closed first", "closed late"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let mut old = bed.worker(&[POOL], 7, 1);
        let closer = thread::spawn(move || {
            let late = old.leave_requested();
            old.close(CloseReason::StreamClosed, Bed::NOW);
            // A repeat is a no-op.
            drop(old);
            late
        });
        let new = bed.worker(&[POOL], 7, 1);
        run.reached(if thread::join(closer) { "closed late" } else { "closed first" });
        assert_eq!(bed.engine.generation().1, 1, "a late close removed the successor");
        assert!(!new.leave_requested());
        // Still the one of its instance: the next supersedes it.
        let next = bed.worker(&[POOL], 7, 1);
        assert!(new.leave_requested(), "a late close forgot the successor");
        assert_eq!(bed.engine.generation().1, 1);
        drop(next);
    });
}
