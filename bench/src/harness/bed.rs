//! A dispatcher with workers registered, and the loops that drive it.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use slipswitch_core::PoolKey;

use super::{CREDIT, Keys, Scenario, histogram};
use crate::baseline::Dispatcher;
use crate::clock;

/// Every how many operations one is timed in a sampling run.
const SAMPLE_EVERY: usize = 8;

/// A dispatcher set up for one scenario.
#[derive(Debug)]
pub struct Bed<D: Dispatcher> {
    dispatcher: D,
    scenario: Scenario,
    registrations: Vec<D::Registration>,
    /// One a thread.
    keys: Vec<D::Key>,
    pools: Vec<PoolKey>,
}

/// What one run came to.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Selections with their releases, all threads together.
    pub operations: u64,
    /// Nanoseconds one of them took a thread.
    pub ns: f64,
    /// By how many selections the most and the least used worker of a pool differ.
    pub unevenness: u64,
}

struct Thread {
    counts: Vec<u64>,
    operations: u64,
    nanos: u64,
}

impl<D: Dispatcher> Bed<D> {
    /// Registers the scenario's workers in a fresh dispatcher.
    ///
    /// # Panics
    ///
    /// If a pool's name is refused, which would be a fault of this function.
    #[must_use]
    pub fn lay(scenario: Scenario) -> Self {
        let dispatcher = D::create();
        let count = if scenario.keys == Keys::Own { scenario.threads } else { 1 };
        let pools: Vec<PoolKey> = (0..count)
            .map(|at| PoolKey::new("bench", "default", &format!("task-{at}")))
            .collect::<Result<_, _>>()
            .expect("the names are valid");
        let registrations = pools
            .iter()
            .flat_map(|pool| std::iter::repeat_n(pool, scenario.workers))
            .map(|pool| dispatcher.register(std::slice::from_ref(pool), CREDIT))
            .collect();
        let keys =
            (0..scenario.threads).map(|thread| dispatcher.key(&pools[thread % count])).collect();
        Self { dispatcher, scenario, registrations, keys, pools }
    }

    /// Returns the dispatcher.
    #[must_use]
    pub fn dispatcher(&self) -> &D {
        &self.dispatcher
    }

    /// Returns the pools, one a thread or one for all.
    #[must_use]
    pub fn pools(&self) -> &[PoolKey] {
        &self.pools
    }

    /// Returns what each thread selects by.
    #[must_use]
    pub fn keys(&self) -> &[D::Key] {
        &self.keys
    }

    /// Lets all threads select and release for `duration`.
    #[must_use]
    pub fn run(&self, duration: Duration) -> Run {
        let threads = self.all_threads(duration, |bed, key, stop, counts| {
            bed.drive(key, counts, |_| stop.load(Ordering::Relaxed))
        });
        self.judge(threads)
    }

    /// Lets one thread do exactly `turns` rounds of its reservations; for counting instructions.
    #[must_use]
    pub fn run_turns(&self, turns: u64) -> Run {
        let mut counts = self.counts();
        let (operations, nanos) = self.drive(&self.keys[0], &mut counts, |turn| turn >= turns);
        self.judge(vec![Thread { counts, operations, nanos }])
    }

    /// Times single selections while all threads select and release for `duration`.
    #[must_use]
    pub fn sample(&self, duration: Duration) -> Histogram<u64> {
        let stop = AtomicBool::new(false);
        let start = Barrier::new(self.keys.len() + 1);
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .keys
                .iter()
                .map(|key| {
                    scope.spawn(|| {
                        start.wait();
                        self.sample_until(key, &stop)
                    })
                })
                .collect();
            start.wait();
            std::thread::sleep(duration);
            stop.store(true, Ordering::Relaxed);
            let mut all = histogram();
            for thread in threads {
                all += thread.join().expect("no selection panics");
            }
            all
        })
    }

    /// Times single selections of the calling thread until told to stop.
    #[must_use]
    pub fn sample_until(&self, key: &D::Key, stop: &AtomicBool) -> Histogram<u64> {
        let mut times = histogram();
        let dispatcher = &self.dispatcher;
        let mut ring = self.fill(key);
        while !stop.load(Ordering::Relaxed) {
            for (at, held) in ring.iter_mut().enumerate() {
                if let Some(oldest) = held.take() {
                    dispatcher.release(oldest);
                }
                if at % SAMPLE_EVERY == 0 {
                    let start = clock::now();
                    *held = dispatcher.select(key);
                    times.saturating_record(clock::nanos_since(start));
                } else {
                    *held = dispatcher.select(key);
                }
                assert!(held.is_some(), "{}: no credit where there is plenty", D::NAME);
            }
        }
        ring.into_iter().flatten().for_each(|held| dispatcher.release(held));
        times
    }

    fn fill(&self, key: &D::Key) -> Vec<Option<D::Reservation<'_>>> {
        (0..self.scenario.held).map(|_| self.dispatcher.select(key)).collect()
    }

    fn counts(&self) -> Vec<u64> {
        vec![0; self.registrations.len() + 1]
    }

    fn all_threads(
        &self,
        duration: Duration,
        drive: impl Fn(&Self, &D::Key, &AtomicBool, &mut [u64]) -> (u64, u64) + Sync,
    ) -> Vec<Thread> {
        let stop = AtomicBool::new(false);
        let start = Barrier::new(self.keys.len() + 1);
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .keys
                .iter()
                .map(|key| {
                    scope.spawn(|| {
                        let mut counts = self.counts();
                        start.wait();
                        let (operations, nanos) = drive(self, key, &stop, &mut counts);
                        Thread { counts, operations, nanos }
                    })
                })
                .collect();
            start.wait();
            std::thread::sleep(duration);
            stop.store(true, Ordering::Relaxed);
            threads.into_iter().map(|thread| thread.join().expect("no selection panics")).collect()
        })
    }

    /// Selects and releases until `ends` says so of a turn; returns operations and nanoseconds.
    #[inline(never)]
    fn drive(&self, key: &D::Key, counts: &mut [u64], ends: impl Fn(u64) -> bool) -> (u64, u64) {
        let dispatcher = &self.dispatcher;
        let mut ring = self.fill(key);
        let start = clock::now();
        let mut turn = 0;
        while !ends(turn) {
            for held in &mut ring {
                if let Some(oldest) = held.take() {
                    dispatcher.release(oldest);
                }
                *held = dispatcher.select(key);
                if let Some(new) = held {
                    counts[dispatcher.worker(new) as usize] += 1;
                }
            }
            turn += 1;
        }
        let nanos = clock::nanos_since(start);
        ring.into_iter().flatten().for_each(|held| dispatcher.release(held));
        (turn * self.scenario.held as u64, nanos)
    }

    /// Checks that every operation found a worker, and that rotation was even.
    fn judge(&self, threads: Vec<Thread>) -> Run {
        let operations: u64 = threads.iter().map(|thread| thread.operations).sum();
        let mut counts = self.counts();
        for thread in &threads {
            for (sum, count) in counts.iter_mut().zip(&thread.counts) {
                *sum += count;
            }
        }
        let counted: u64 = counts.iter().sum();
        assert_eq!(counted, operations, "{}: a selection found no credit", D::NAME);
        assert_eq!(counts[0], 0, "{}: a worker has no number", D::NAME);
        let unevenness = counts[1..]
            .chunks(self.scenario.workers)
            .map(|pool| pool.iter().max().zip(pool.iter().min()).map_or(0, |(a, b)| a - b))
            .max()
            .unwrap_or(0);
        if D::ROTATES {
            // Blocks and turns of threads that stop anywhere; what was parked before the run counts
            // once more. A design that does not rotate is off by thousands.
            let bound = 16 + 4 * self.scenario.threads as u64;
            assert!(unevenness <= bound, "{}: uneven by {unevenness}", D::NAME);
        }
        let nanos: u64 = threads.iter().map(|thread| thread.nanos).sum();
        Run { operations, ns: nanos as f64 / operations.max(1) as f64, unevenness }
    }
}
