//! One suite over all snapshot cells: what readers may see, and when values are freed.
#![expect(clippy::disallowed_types, reason = "tests stand outside the engine")]

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use slipswitch_core::{ArcSwapCell, EpochCell, ModelCell, SnapshotCell};

const MAGIC: u64 = 0x736c_6970_7377_6974;

/// A value that knows whether it lives, which cell it belongs to, and how old it is.
struct Canary {
    magic: u64,
    cell: u64,
    generation: u64,
    alive: Arc<AtomicUsize>,
}

impl Canary {
    fn new(cell: u64, generation: u64, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self { magic: MAGIC, cell, generation, alive: Arc::clone(alive) }
    }

    fn check(&self, cell: u64) -> u64 {
        assert_eq!((self.magic, self.cell), (MAGIC, cell));
        self.generation
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        assert_eq!(self.magic, MAGIC, "freed twice");
        self.magic = 0;
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Generations that every thread sees never go back, and a load after a publish returned sees it.
fn loads_are_linearizable<C: SnapshotCell<Canary>>() {
    let alive = Arc::new(AtomicUsize::new(0));
    let cells: Vec<C> = (0..2).map(|cell| C::new(Canary::new(cell, 0, &alive))).collect();
    let published = [AtomicU64::new(0), AtomicU64::new(0)];
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = [0; 2];
                while !stop.load(Ordering::Relaxed) {
                    for (number, cell) in cells.iter().enumerate() {
                        let floor = published[number].load(Ordering::SeqCst);
                        let generation = cell.load().check(number as u64);
                        assert!(generation >= floor && generation >= last[number]);
                        last[number] = generation;
                    }
                }
            });
        }
        for generation in 1..=5_000 {
            for (number, cell) in cells.iter().enumerate() {
                cell.publish(Canary::new(number as u64, generation, &alive));
                published[number].store(generation, Ordering::SeqCst);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(cells);
    drained(&alive, 0, || {});
}

/// Waits until at most `left` values live. Reclamation may need other threads to move on.
fn drained(alive: &AtomicUsize, left: usize, tidy: impl Fn()) {
    let mut turns = 0;
    while alive.load(Ordering::SeqCst) > left {
        turns += 1;
        assert!(turns < 10_000_000, "values are never freed");
        // Other tests of this process may hold pins: give them a turn, and the reclaimer one.
        let spare = EpochCell::new(0u64);
        spare.publish(1);
        spare.tidy();
        tidy();
        thread::yield_now();
    }
}

/// A guard keeps its value alive over any number of publishes, from any depth of nesting.
fn guards_keep_their_value<C: SnapshotCell<Canary>>() {
    let alive = Arc::new(AtomicUsize::new(0));
    let cell = C::new(Canary::new(7, 0, &alive));
    let mut guards = Vec::new();
    for generation in 1..=16 {
        guards.push(cell.load());
        cell.publish(Canary::new(7, generation, &alive));
    }
    for (generation, guard) in guards.iter().enumerate() {
        assert_eq!(guard.check(7), generation as u64);
    }
    assert_eq!(alive.load(Ordering::SeqCst), 17);
    drop(guards);
    cell.publish(Canary::new(7, 99, &alive));
    drained(&alive, 1, || cell.tidy());
    assert_eq!(cell.load().check(7), 99);
}

/// A cell that nobody reads any more frees what it replaced, all the same.
fn an_idle_cell_frees_old_values<C: SnapshotCell<Canary>>() {
    let alive = Arc::new(AtomicUsize::new(0));
    let cell = C::new(Canary::new(1, 0, &alive));
    for generation in 1..=1_000 {
        cell.publish(Canary::new(1, generation, &alive));
    }
    // While it publishes, it keeps no more than what is retired together.
    assert!(alive.load(Ordering::SeqCst) <= 200, "old values pile up");
    drained(&alive, 1, || cell.tidy());
    drop(cell);
    drained(&alive, 0, || {});
}

/// A reader that stands still delays reclamation and nothing else.
fn a_parked_reader_stops_nobody<C: SnapshotCell<Canary>>() {
    let alive = Arc::new(AtomicUsize::new(0));
    let cell = C::new(Canary::new(1, 0, &alive));
    let (held, done) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = cell.load();
            held.wait();
            done.wait();
            assert_eq!(guard.check(1), 0);
        });
        held.wait();
        for generation in 1..=100 {
            cell.publish(Canary::new(1, generation, &alive));
            assert_eq!(cell.load().check(1), generation);
        }
        done.wait();
    });
    cell.publish(Canary::new(1, 101, &alive));
    drained(&alive, 1, || cell.tidy());
}

macro_rules! suite {
    ($name:ident, $cell:ident) => {
        mod $name {
            use super::{Canary, $cell};

            #[test]
            fn loads_are_linearizable() {
                super::loads_are_linearizable::<$cell<Canary>>();
            }

            #[test]
            fn guards_keep_their_value() {
                super::guards_keep_their_value::<$cell<Canary>>();
            }

            #[test]
            fn an_idle_cell_frees_old_values() {
                super::an_idle_cell_frees_old_values::<$cell<Canary>>();
            }

            #[test]
            fn a_parked_reader_stops_nobody() {
                super::a_parked_reader_stops_nobody::<$cell<Canary>>();
            }
        }
    };
}

suite!(epoch, EpochCell);
suite!(arc_swap, ArcSwapCell);
suite!(model, ModelCell);
