//! The harness itself: each of its rules fails a model that breaks it.
#![cfg(slipswitch_loom)]

use slipswitch_loom_tests::sync::Arc;
use slipswitch_loom_tests::sync::atomic::{AtomicUsize, Ordering};
use slipswitch_loom_tests::{Run, Spec, model, thread};

/// Two threads that draw tickets.
fn tickets(draws: usize) -> impl Fn(Run) + Send + Sync + 'static {
    move |_run| {
        let next = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&next);
        let thread = thread::spawn(move || {
            for _ in 0..draws {
                other.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..draws {
            next.fetch_add(1, Ordering::Relaxed);
        }
        thread::join(thread);
        assert_eq!(next.load(Ordering::Relaxed), 2 * draws);
    }
}

#[test]
fn a_whole_search_above_its_floor_passes() {
    model(const { &Spec::new("self-counted") }, tickets(1));
}

#[test]
#[should_panic(expected = "model self-truncated: truncated after 999 executions")]
fn a_truncated_search_fails() {
    const SPEC: Spec = Spec { cap: 1_000, ..Spec::new("self-truncated") };
    model(&SPEC, tickets(8));
}

#[test]
#[should_panic(expected = "model self-floor: ")]
fn a_search_below_its_floor_fails() {
    model(const { &Spec::new("self-floor") }, tickets(1));
}

#[test]
#[should_panic(expected = "model self-unlisted has no floor")]
fn a_model_without_floor_fails() {
    model(const { &Spec::new("self-unlisted") }, tickets(1));
}

#[test]
#[should_panic(expected = "vacuous: no execution reached \"never\"")]
fn a_vacuous_search_fails() {
    model(const { &Spec::new("self-vacuous").must_reach(&["never"]) }, tickets(1));
}

#[test]
fn a_state_that_one_execution_reaches_is_enough() {
    model(const { &Spec::new("self-vacuous").must_reach(&["second"]) }, |run| {
        let next = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&next);
        let thread = thread::spawn(move || other.fetch_add(1, Ordering::Relaxed));
        if next.fetch_add(1, Ordering::Relaxed) == 1 {
            run.reached("second");
        }
        thread::join(thread);
    });
}

#[test]
#[should_panic(expected = "does not name the state")]
fn a_state_that_is_not_named_fails() {
    model(const { &Spec::new("self-vacuous") }, |run| run.reached("elsewhere"));
}

#[test]
#[should_panic(expected = "lost update")]
fn a_counterexample_fails() {
    model(const { &Spec::new("self-bound").preemption(1) }, |_run| {
        let next = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&next);
        let thread = thread::spawn(move || {
            let seen = other.load(Ordering::Relaxed);
            other.store(seen + 1, Ordering::Relaxed);
        });
        next.fetch_add(1, Ordering::Relaxed);
        thread::join(thread);
        assert_eq!(next.load(Ordering::Relaxed), 2, "lost update");
    });
}
