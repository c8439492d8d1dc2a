//! One winner for each epoch, and no stranger's slot.

use slipswitch_core::TaskState;
use slipswitch_core::model::{Lease, Post};
use slipswitch_loom_tests::sync::Arc;
use slipswitch_loom_tests::{Spec, model, thread};

/// L6 (`one_winner_per_epoch`): result, loss and deadline of a lease race; one of them wins, and a
/// result of an older epoch never settles a newer one.
///
/// Kills L6a, L6c.
#[test]
fn one_winner_per_epoch() {
    const SPEC: Spec = Spec::new("L6").preemption(5).must_reach(&[
        "the first result",
        "the second result",
        "the deadline",
        "a late result",
    ]);
    model(&SPEC, |run| {
        let lease = Arc::new(Lease::new());
        assert!(lease.offer(1));
        let worker = {
            let lease = Arc::clone(&lease);
            thread::spawn(move || {
                let accepted = lease.accept(1);
                (accepted, lease.complete(1))
            })
        };
        let expiry = {
            let lease = Arc::clone(&lease);
            thread::spawn(move || {
                let lost = lease.take_back(1) || lease.lose(1);
                // Somebody else gets it, under a new epoch, and is quick.
                (lost, lost && lease.offer(2) && lease.complete(2))
            })
        };
        let expired = lease.expire(1);
        let (accepted, first) = thread::join(worker);
        let (lost, second) = thread::join(expiry);
        // Of epoch 1 one step won; epoch 2 exists only if that was the loss.
        let winners = u32::from(first) + u32::from(lost) + u32::from(expired);
        assert_eq!(winners, 1, "winners of epoch 1");
        assert!(!second || lost);
        if lost {
            assert!(second, "more winners of epoch 1: the second epoch was settled by the first");
            run.reached("the second result");
        }
        if accepted && lost {
            run.reached("a late result");
        }
        if first {
            run.reached("the first result");
        }
        if expired {
            run.reached("the deadline");
            assert_eq!(lease.state(), TaskState::Dead);
        } else {
            assert_eq!(lease.state(), TaskState::Completed);
        }
        let counted = u32::from(accepted || first) + u32::from(second);
        assert_eq!(lease.deliveries(), counted);
    });
}

/// L6 (slots): a reservation through an old snapshot takes no credit of the slot's next worker.
///
/// Kills L6b, slot-gen.
#[test]
fn a_reused_slot_never_matches() {
    const SPEC: Spec =
        Spec::new("L6-slot").must_reach(&["reused", "reserved before", "refused after"]);
    model(&SPEC, |run| {
        let post = Arc::new(Post::new(1));
        let old = post.generation();
        let selector = {
            let post = Arc::clone(&post);
            thread::spawn(move || post.reserve(old))
        };
        assert!(post.close(old));
        let new = post.reopen(1);
        let reserved = thread::join(selector);
        match new {
            // Nobody's unit was out, so the old reservation came to nothing.
            Some(new) => {
                run.reached("reused");
                assert!(!reserved, "a credit of the next worker was taken");
                run.reached("refused after");
                assert!(post.reserve(new));
            }
            None => {
                run.reached("reserved before");
                assert!(reserved);
                post.release();
                assert!(post.reopen(1).is_some());
            }
        }
    });
}
