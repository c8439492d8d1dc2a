//! L10b: units go from their releaser to the pool that waits for them.
//!
//! No task sleeps beside a free credit, no pool starves, invariant I1 holds, and no unit is lost or
//! made, while pools begin to wait, tasks expire, limits rise and a session closes.

use slipswitch_core::model::Units;
use slipswitch_core::{CloseReason, ModelCells, TaskState};
use slipswitch_loom_tests::{Bed, Run, Spec, model, thread};

const A: &str = "n/q/a";
const B: &str = "n/q/b";

/// What must hold when nothing moves: so many units in use, and I1.
#[track_caller]
fn at_rest(bed: &Bed, units: &Units<ModelCells>, held: u32) {
    // Turns that a releaser without a pump of its own handed on.
    bed.engine.advance(Bed::NOW);
    let out = units.in_flight();
    assert!(out >= held, "a task sleeps beside a free credit: {out} of {held} units are out");
    assert!(out <= held, "a unit was lost: {out} are out where {held} should be");
    assert!(units.hides_wanted_credit(), "I1: wanted with a visible free credit");
}

/// Two pools begin to wait while the one credit of the worker comes back; then it comes back again.
/// `here` plays the releaser on the model's own thread, else one of the producers.
fn one_unit_comes_back(run: Run, here: bool) {
    let bed = Bed::new();
    let mut session = bed.worker(&[A, B], 1, 1);
    let units = Units::of(&session);
    bed.occupy(A);
    let to_b = thread::spawn({
        let bed = bed.clone();
        move || bed.submit(B, 2)
    });
    let other = thread::spawn({
        let (bed, units) = (bed.clone(), units.clone());
        move || if here { bed.submit(A, 1) } else { units.release(1) }
    });
    if here {
        units.release(1);
    } else {
        bed.submit(A, 1);
    }
    thread::join(other);
    thread::join(to_b);
    at_rest(&bed, &units, 1);
    assert_eq!(bed.placed(&[1, 2]), 1, "a task sleeps beside a free credit");
    run.reached(if bed.waits(2) { "handed to a" } else { "handed to b" });
    for left in [1, 0] {
        assert!(bed.finish_one(&mut session).is_some(), "a task sleeps beside a free credit");
        at_rest(&bed, &units, left);
    }
}

/// Two pools and one unit, seen from its releaser.
///
/// Kills L10b-c, L10b-e.
#[test]
fn two_pools_wait_for_one_credit() {
    const SPEC: Spec =
        Spec::new("L10b-wait").preemption(2).must_reach(&["handed to a", "handed to b"]);
    model(&SPEC, |run| one_unit_comes_back(run, true));
}

/// Two pools and one unit, seen from a producer: loom searches from where a thread begins.
#[test]
fn two_pools_begin_to_wait() {
    const SPEC: Spec =
        Spec::new("L10b-begin").preemption(2).must_reach(&["handed to a", "handed to b"]);
    model(&SPEC, |run| one_unit_comes_back(run, false));
}

/// The word says that somebody waits though the line is empty; two units come back while two pools
/// begin to wait. One of them comes from a reservation or, with `by_result`, from a result.
fn two_units_come_back(run: Run, by_result: bool) {
    let bed = Bed::new();
    let mut session = bed.worker(&[A, B], 1, 3);
    let units = Units::of(&session);
    for _ in 0..3 {
        bed.occupy(A);
    }
    stale_wanted(&bed, &units);
    let submits = thread::spawn({
        let bed = bed.clone();
        move || {
            bed.submit(A, 1);
            bed.submit(B, 2);
        }
    });
    let releases = thread::spawn({
        let units = units.clone();
        move || units.release(1)
    });
    if by_result {
        assert_eq!(bed.finish_one(&mut session), Some(9));
    } else {
        units.release(1);
    }
    if bed.waits(1) {
        run.reached("one waits");
    }
    thread::join(submits);
    thread::join(releases);
    at_rest(&bed, &units, 3);
    assert_eq!(bed.placed(&[1, 2]), 2, "a task sleeps beside a free credit");
    assert_eq!(bed.settle(&mut session), if by_result { 2 } else { 3 });
    at_rest(&bed, &units, u32::from(by_result));
}

/// Two releasers, two pools.
///
/// Kills L10b-a, L10b-b, L10b-d, L10b-i.
#[test]
fn two_releasers_and_two_pools() {
    const SPEC: Spec = Spec::new("L10b-two").preemption(2).must_reach(&["one waits"]);
    model(&SPEC, |run| two_units_come_back(run, false));
}

/// As above, and one of the releasers is a session that settles a result.
#[test]
fn a_result_and_a_reservation_come_back() {
    const SPEC: Spec = Spec::new("L10b-result").preemption(2).must_reach(&["one waits"]);
    model(&SPEC, |run| two_units_come_back(run, true));
}

/// Leaves `WANTED` on the word and nobody in the line: a pool waited and got its unit.
fn stale_wanted(bed: &Bed, units: &Units<ModelCells>) {
    bed.submit(A, 9);
    units.release(1);
    assert_eq!((bed.placed(&[9]), units.in_flight()), (1, 3));
    assert!(units.is_wanted());
}

/// A pool takes a credit at the moment in which it queues up: its entry in the line stays, and it
/// is not armed. The task behind must not take the entry for an armed one.
///
/// Kills L10b-f.
#[test]
fn an_entry_in_the_line_is_not_armed() {
    const SPEC: Spec = Spec::new("L10b-queued").preemption(4);
    model(&SPEC, |_run| {
        let bed = Bed::new();
        let session = bed.worker(&[A], 1, 2);
        let units = Units::of(&session);
        bed.occupy(A);
        bed.occupy(A);
        let submits = thread::spawn({
            let bed = bed.clone();
            move || {
                bed.submit(A, 1);
                bed.submit(A, 2);
            }
        });
        units.release(1);
        units.release(1);
        thread::join(submits);
        at_rest(&bed, &units, 2);
        assert_eq!(bed.placed(&[1, 2]), 2, "a task sleeps beside a free credit");
        drop(session);
    });
}

/// A waiting task expires and another comes while the credit returns: a pool that looks empty must
/// get its turn.
///
/// Kills L10b-g.
#[test]
fn a_pool_that_looks_empty_gets_its_token() {
    const SPEC: Spec =
        Spec::new("L10b-expire").preemption(4).must_reach(&["expired", "was placed"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let mut session = bed.worker(&[A, B], 1, 1);
        let units = Units::of(&session);
        bed.occupy(A);
        bed.submit_until(A, 1);
        bed.submit(B, 2);
        let releases = thread::spawn({
            let units = units.clone();
            move || units.release(1)
        });
        bed.engine.advance(Bed::LATER);
        bed.submit(A, 3);
        thread::join(releases);
        at_rest(&bed, &units, 1);
        assert_eq!(bed.placed(&[1, 2, 3]), 1, "one credit, one task");
        let waiting = [1, 2, 3].iter().filter(|task| bed.waits(**task)).count();
        run.reached(if bed.state(1) == TaskState::Dead { "expired" } else { "was placed" });
        for left in (0..=waiting).rev() {
            assert!(bed.finish_one(&mut session).is_some(), "a task sleeps beside a free credit");
            at_rest(&bed, &units, u32::from(left > 0));
        }
    });
}

/// A task waits; two credits come back while another is submitted: the direct path must not place
/// it before the one that waits.
///
/// Kills L10b-h.
#[test]
fn the_direct_path_overtakes_nobody() {
    const SPEC: Spec =
        Spec::new("L10b-direct").preemption(4).must_reach(&["placed at once", "queued"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let mut session = bed.worker(&[A], 1, 2);
        let units = Units::of(&session);
        bed.occupy(A);
        bed.occupy(A);
        bed.submit(A, 1);
        let submits = thread::spawn({
            let bed = bed.clone();
            move || {
                bed.submit(A, 2);
                bed.waits(2)
            }
        });
        units.release(2);
        run.reached(if thread::join(submits) { "queued" } else { "placed at once" });
        at_rest(&bed, &units, 2);
        assert_eq!(bed.offers(&mut session), [1, 2], "the direct path overtook a waiting task");
    });
}

/// A worker that takes nothing is given a limit of two while two pools begin to wait.
#[test]
fn an_uncordoned_worker_takes_what_waits() {
    const SPEC: Spec = Spec::new("L10b-uncordon").preemption(2);
    model(&SPEC, |_run| {
        let bed = Bed::new();
        let mut session = bed.worker(&[A, B], 1, 1);
        let units = Units::of(&session);
        units.cordon();
        let to_a = thread::spawn({
            let bed = bed.clone();
            move || bed.submit(A, 1)
        });
        let to_b = thread::spawn({
            let bed = bed.clone();
            move || bed.submit(B, 2)
        });
        units.open_up(2);
        thread::join(to_a);
        thread::join(to_b);
        at_rest(&bed, &units, 2);
        assert_eq!(bed.placed(&[1, 2]), 2, "a task sleeps beside a free credit");
        assert_eq!(bed.settle(&mut session), 2);
        at_rest(&bed, &units, 0);
    });
}

/// The worker's session ends while a unit is on its way to a waiting pool and a task is placed: no
/// task is lost, and no unit stays out.
///
/// Kills L10b-gate.
#[test]
fn a_close_loses_no_task_on_its_way() {
    const SPEC: Spec = Spec::new("L10b-close").preemption(3).must_reach(&["waits", "took it back"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let mut session = bed.worker(&[A], 1, 1);
        let units = Units::of(&session);
        bed.occupy(A);
        let releases = thread::spawn({
            let units = units.clone();
            move || units.release(1)
        });
        let submits = thread::spawn({
            let bed = bed.clone();
            move || bed.submit(A, 1)
        });
        session.close(CloseReason::ClientGoodbye, Bed::NOW);
        thread::join(releases);
        thread::join(submits);
        bed.engine.advance(Bed::NOW);
        assert_eq!(bed.state(1), TaskState::Pending, "a task was lost with the worker");
        assert_eq!(units.in_flight(), 0, "units in flight");
        run.reached("waits");
        let mut next = bed.worker(&[A], 2, 1);
        let offer = next.poll_offer(Bed::NOW).expect("a waiting task is placed on the next worker");
        if offer.lease.epoch & 0xff > 1 {
            run.reached("took it back");
        }
    });
}
