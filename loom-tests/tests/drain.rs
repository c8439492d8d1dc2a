//! After a drain returned nothing is on its way to anybody.

use slipswitch_core::model::Units;
use slipswitch_core::{SubmitError, TaskState};
use slipswitch_loom_tests::{Bed, POOL, Spec, key, model, task, thread};

/// L8 (`no_offer_after_drain`): drain, submit and registration race.
///
/// Kills L8a, L8b.
#[test]
fn no_offer_after_drain() {
    const SPEC: Spec = Spec::new("L8").preemption(4).must_reach(&[
        "submit before",
        "submit refused",
        "registered before",
        "registration refused",
    ]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let mut worker = bed.worker(&[POOL], 1, 1);
        let producer = {
            let bed = bed.clone();
            thread::spawn(move || {
                let mut route = bed.engine.route(&key(POOL)).expect("a route");
                let task = task(1);
                match bed.engine.submit(&bed.operator, &mut route, task, None, Bed::NOW) {
                    Ok(_) => true,
                    Err(refused) => {
                        assert_eq!(refused.error, SubmitError::Draining);
                        false
                    }
                }
            })
        };
        let joiner = {
            let bed = bed.clone();
            thread::spawn(move || bed.register(&[POOL], 2).ok())
        };
        bed.engine.drain(Bed::NOW);
        let submitted = thread::join(producer);
        let mut joined = thread::join(joiner);
        run.reached(if submitted { "submit before" } else { "submit refused" });
        run.reached(if joined.is_some() { "registered before" } else { "registration refused" });
        // Nothing lies in anybody's inbox, whether or not its owner has looked since.
        assert!(!Units::of(&worker).has_unsent(), "a push after the drain returned");
        assert!(worker.poll_offer(Bed::NOW).is_none());
        if let Some(joined) = &mut joined {
            assert!(joined.drain_requested(), "a registration that was let in sees the drain");
            assert!(!Units::of(joined).has_unsent(), "a push after the drain returned");
            assert!(joined.poll_offer(Bed::NOW).is_none());
        }
        if submitted {
            assert_eq!(bed.state(1), TaskState::Pending, "what was not sent waits again");
        }
        assert_eq!(bed.engine.in_flight(), 0);
    });
}
