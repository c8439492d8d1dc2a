//! Tickets and the places that they lead to.

use slipswitch_core::Selection;
use slipswitch_loom_tests::{Bed, POOL, Spec, model, thread};

fn select(bed: &Bed) -> u64 {
    match bed.engine.select(&bed.route(POOL), None) {
        Selection::Reserved(reservation) => {
            let id = reservation.worker_id().as_u64();
            std::mem::forget(reservation);
            id
        }
        other => panic!("no credit: {other:?}"),
    }
}

/// L9 (`kn_selections_give_k_each`): four selections from two threads give two to each of two
/// workers.
#[test]
fn kn_selections_give_k_each() {
    const SPEC: Spec = Spec::new("L9").must_reach(&["in turn", "out of turn"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let sessions = [bed.worker(&[POOL], 1, 4), bed.worker(&[POOL], 2, 4)];
        let other = thread::spawn({
            let bed = bed.clone();
            move || [select(&bed), select(&bed)]
        });
        let mine = [select(&bed), select(&bed)];
        let theirs = thread::join(other);
        run.reached(if mine[0] == mine[1] { "out of turn" } else { "in turn" });
        for session in &sessions {
            let id = session.worker_id().as_u64();
            let count = mine.iter().chain(&theirs).filter(|chosen| **chosen == id).count();
            assert_eq!(count, 2, "{mine:?} {theirs:?}");
        }
    });
}

/// L9 (`index_stays_with_snapshot`): a selection that straddles a publish chooses from the one
/// snapshot that it says it read.
#[test]
fn index_stays_with_snapshot() {
    const SPEC: Spec = Spec::new("L9-publish").must_reach(&["before", "after"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let first = bed.worker(&[POOL], 1, 4);
        let joins = thread::spawn({
            let bed = bed.clone();
            move || bed.worker(&[POOL], 2, 4)
        });
        for _ in 0..2 {
            let route = bed.route(POOL);
            let Selection::Reserved(reservation) = bed.engine.select(&route, None) else {
                panic!("the first worker has room all the time");
            };
            let decision = reservation.decision();
            let is_old = decision.generation == first.generation();
            run.reached(if is_old { "before" } else { "after" });
            assert_eq!(decision.candidates, if is_old { 1 } else { 2 });
            if is_old {
                assert_eq!(reservation.worker_id(), first.worker_id());
            }
        }
        drop(thread::join(joins));
    });
}
