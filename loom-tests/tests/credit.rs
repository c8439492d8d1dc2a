//! Units of credit are conserved.

mod exclusive;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use slipswitch_core::Selection;
use slipswitch_core::model::{Post, Units};
use slipswitch_loom_tests::sync::Arc;
use slipswitch_loom_tests::{Bed, POOL, Spec, model, thread};

use exclusive::Exclusive;

/// L7 (`credits_conserved`): three threads and one unit. Whoever has it has it alone, after all
/// that its last owner did, and it comes back once.
///
/// Kills L7a, L7b.
#[test]
fn credits_conserved() {
    const SPEC: Spec = Spec::new("L7").preemption(3).must_reach(&["passed on", "refused"]);
    model(&SPEC, |run| {
        let post = Arc::new(Post::new(1));
        let held = Arc::new(Exclusive::new());
        let work = || {
            let (post, held) = (Arc::clone(&post), Arc::clone(&held));
            move || {
                let taken = post.reserve(post.generation());
                if taken {
                    held.touch();
                    post.release();
                }
                taken
            }
        };
        let threads = [thread::spawn(work()), thread::spawn(work())];
        let mut taken = usize::from(work()());
        taken += threads.map(thread::join).into_iter().filter(|taken| *taken).count();
        run.reached(if taken == 3 { "passed on" } else { "refused" });
        assert_eq!(post.in_flight(), 0, "units in flight");
        // What was conserved can be taken again.
        assert!(post.reserve(post.generation()));
        held.look();
    });
}

/// L7 (engine): a reservation that a panic drops gives its unit back; a task that waits for it gets
/// it.
#[test]
fn a_panic_gives_its_credit_back() {
    const SPEC: Spec = Spec::new("L7-panic").must_reach(&["it waited", "it went straight"]);
    model(&SPEC, |run| {
        let bed = Bed::new();
        let mut session = bed.worker(&[POOL], 1, 1);
        let units = Units::of(&session);
        let holder = thread::spawn({
            let bed = bed.clone();
            move || {
                let route = bed.route(POOL);
                let held = catch_unwind(AssertUnwindSafe(|| {
                    let selection = bed.engine.select(&route, None);
                    // Not `panic!`: nobody reads about a panic in each execution.
                    if matches!(selection, Selection::Reserved(_)) {
                        resume_unwind(Box::new(()));
                    }
                }));
                held.is_err()
            }
        });
        bed.submit(POOL, 1);
        let waited = bed.waits(1);
        let held = thread::join(holder);
        bed.engine.advance(Bed::NOW);
        if held {
            run.reached(if waited { "it waited" } else { "it went straight" });
        }
        assert_eq!(units.in_flight(), 1, "units in flight");
        assert_eq!(bed.settle(&mut session), 1);
        assert_eq!(units.in_flight(), 0, "units in flight");
    });
}
