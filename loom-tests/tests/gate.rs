//! Waiting for a change: subscribe, look, wait.

use slipswitch_core::Gate;
use slipswitch_loom_tests::sync::Arc;
use slipswitch_loom_tests::sync::atomic::{AtomicUsize, Ordering};
use slipswitch_loom_tests::sync::beside;
use slipswitch_loom_tests::{Spec, model, thread};

/// L4 (`no_lost_wakeup`): a change between the look and the wait ends the wait.
///
/// Kills L4a.
#[test]
fn no_lost_wakeup() {
    const SPEC: Spec = Spec::new("L4").must_reach(&["waited", "saw it at once"]);
    model(&SPEC, |run| {
        let gate = Arc::new(Gate::new());
        let changes = Arc::new(AtomicUsize::new(0));
        let opener = {
            let (gate, changes) = (Arc::clone(&gate), Arc::clone(&changes));
            thread::spawn(move || {
                for _ in 0..2 {
                    // Relaxed: the gate orders it.
                    changes.fetch_add(1, Ordering::Relaxed);
                    gate.open();
                }
            })
        };
        let mut waits = 0;
        loop {
            let ticket = gate.subscribe();
            if changes.load(Ordering::Relaxed) == 2 {
                break;
            }
            waits += 1;
            thread::block_on(gate.wait(ticket));
        }
        run.reached(if waits == 0 { "saw it at once" } else { "waited" });
        thread::join(opener);
    });
}

/// L5 (`cancelled_waiter_hands_over`): a waiter that gives up holds up nobody.
#[test]
fn cancelled_waiter_hands_over() {
    const SPEC: Spec = Spec::new("L5").must_reach(&["gave up", "was woken"]);
    model(&SPEC, |run| {
        let gate = Arc::new(Gate::new());
        let ticket = gate.subscribe();
        let woken = beside::Shared::new(beside::Count::new(0));
        let stays = {
            let (gate, woken) = (Arc::clone(&gate), beside::Shared::clone(&woken));
            thread::spawn(move || {
                thread::block_on(gate.wait(ticket));
                woken.fetch_add(1, Ordering::Relaxed);
            })
        };
        let opener = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || gate.open())
        };
        {
            // Polled once, then dropped.
            let mut gives_up = Box::pin(gate.wait(ticket));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            if gives_up.as_mut().poll(&mut context).is_pending() {
                run.reached("gave up");
            }
        }
        thread::join(opener);
        thread::join(stays);
        if woken.load(Ordering::Relaxed) == 1 {
            run.reached("was woken");
        }
    });
}
