//! The inbox: order, and nothing lost when it closes.

use slipswitch_core::Inbox;
use slipswitch_loom_tests::sync::beside::Shared;
use slipswitch_loom_tests::{Spec, model, thread};

/// L10: what one thread pushes comes out in its order, whole; a refused push hands its value back.
///
/// Kills L10a.
#[test]
fn close_loses_nothing() {
    const SPEC: Spec =
        Spec::new("L10").preemption(5).must_reach(&["refused", "taken before close"]);
    model(&SPEC, |run| {
        let inbox = Shared::new(Inbox::new());
        let push = |base: u32| {
            let inbox = Shared::clone(&inbox);
            move || (0..2).filter(|n| inbox.push(Box::new(base + n)).is_err()).count()
        };
        let consumer = thread::spawn({
            let inbox = Shared::clone(&inbox);
            move || {
                let early: Vec<u32> = inbox.take().map(|value| *value).collect();
                let late: Vec<u32> = inbox.close().map(|value| *value).collect();
                (early, late)
            }
        });
        let producer = thread::spawn(push(10));
        let mine = push(20)();
        let refused = mine + thread::join(producer);
        let (mut taken, late) = thread::join(consumer);
        if !taken.is_empty() {
            run.reached("taken before close");
        }
        taken.extend(late);
        if refused > 0 {
            run.reached("refused");
        }
        assert_eq!(taken.len() + refused, 4, "{taken:?}");
        for base in [10, 20] {
            let of: Vec<u32> = taken.iter().copied().filter(|n| n / 10 == base / 10).collect();
            // A prefix of what was pushed, in order.
            assert!(of.iter().zip(base..).all(|(value, expected)| *value == expected), "{taken:?}");
        }
        assert!(inbox.push(Box::new(0)).is_err());
    });
}
