//! The production cell, down into the reclaimer.

mod exclusive;

use slipswitch_core::{EpochCell, SnapshotCell};
use slipswitch_loom_tests::sync::beside::{Count, Ordering, Shared};
use slipswitch_loom_tests::{Run, Spec, model, thread};

use exclusive::Exclusive;

/// A value that loom tracks: it is written when made and when freed, and looked at by readers.
struct Canary {
    generation: usize,
    alive: Exclusive,
    freed: Shared<Count>,
}

impl Canary {
    fn new(generation: usize, freed: &Shared<Count>) -> Self {
        let alive = Exclusive::new();
        alive.touch();
        Self { generation, alive, freed: Shared::clone(freed) }
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.alive.touch();
        self.freed.fetch_add(1, Ordering::Relaxed);
    }
}

fn publish_and_read(run: Run) {
    let freed = Shared::new(Count::new(0));
    let cell = Shared::new(EpochCell::new(Canary::new(0, &freed)));
    let reader = thread::spawn({
        let cell = Shared::clone(&cell);
        move || {
            let guard = cell.load();
            guard.alive.look();
            guard.generation
        }
    });
    for generation in 1..=2 {
        cell.publish(Canary::new(generation, &freed));
    }
    if freed.load(Ordering::Relaxed) > 0 {
        run.reached("freed during the run");
    }
    if thread::join(reader) == 0 {
        run.reached("read an old one");
    } else {
        run.reached("read a new one");
    }
    assert_eq!(cell.load().generation, 2);
    drop(cell);
}

/// L1: a loaded value is valid until its guard is dropped, and freed once.
///
/// Kills L1a.
#[test]
fn a_loaded_value_lives() {
    const SPEC: Spec = Spec::new("L1").preemption(1).must_reach(&[
        "freed during the run",
        "read an old one",
        "read a new one",
    ]);
    model(&SPEC, publish_and_read);
}

/// As above, with one preemption more.
#[test]
#[ignore = "takes a minute: `cargo xtask loom at_length` runs it"]
fn a_loaded_value_lives_at_length() {
    const SPEC: Spec = Spec::new("L1-long").preemption(2).must_reach(&[
        "freed during the run",
        "read an old one",
        "read a new one",
    ]);
    model(&SPEC, publish_and_read);
}

fn publish_under_a_guard(run: Run) {
    let freed = Shared::new(Count::new(0));
    let cell = Shared::new(EpochCell::new(Canary::new(0, &freed)));
    let guard = cell.load();
    let publisher = thread::spawn({
        let (cell, freed) = (Shared::clone(&cell), Shared::clone(&freed));
        move || {
            cell.publish(Canary::new(1, &freed));
            cell.tidy();
        }
    });
    guard.alive.look();
    assert_eq!(guard.generation, 0);
    drop(guard);
    thread::join(publisher);
    cell.tidy();
    if freed.load(Ordering::Relaxed) == 1 {
        run.reached("freed once it was let go");
    }
    assert_eq!(cell.load().generation, 1);
    drop(cell);
    assert_eq!(freed.load(Ordering::Relaxed), 2);
}

/// L1-guard: what a publish replaced is not freed while a guard from before is held.
///
/// Kills L1b.
#[test]
fn a_held_guard_keeps_its_value() {
    const SPEC: Spec =
        Spec::new("L1-guard").preemption(2).must_reach(&["freed once it was let go"]);
    model(&SPEC, publish_under_a_guard);
}
