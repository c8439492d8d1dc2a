//! Drives a dispatcher from several threads, as tasks would.
//!
//! Each thread holds a fixed number of reservations in flight: an operation gives the oldest back
//! and reserves a new one. So workers are busy while they are selected, which is what decides how
//! a design behaves on two cores. Counts a worker are taken inside the timed loop (one addition to
//! a vector of the thread's own, the same for all) and checked after it.

mod bed;
mod series;

use hdrhistogram::Histogram;

pub use bed::{Bed, Run};
pub use series::{Line, Series, Spread, interleave};

/// Which pool each thread selects from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// All threads from one pool.
    One,
    /// Each thread from a pool, and so from workers, of its own.
    Own,
}

/// One situation to measure.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// How many workers each pool has.
    pub workers: usize,
    /// How many threads select.
    pub threads: usize,
    /// Which pools they select from.
    pub keys: Keys,
    /// How many reservations each thread holds.
    pub held: usize,
}

/// The credit of each worker: so large that no scenario uses it up.
pub const CREDIT: u32 = 1_024;

impl Scenario {
    /// The situation with 64 reservations a thread in flight.
    #[must_use]
    pub const fn new(workers: usize, threads: usize, keys: Keys) -> Self {
        Self { workers, threads, keys, held: 64 }
    }

    /// The situation as part of an id: `t2-one`.
    #[must_use]
    pub fn name(&self) -> String {
        match (self.threads, self.keys) {
            (1, _) => "t1".to_owned(),
            (threads, Keys::One) => format!("t{threads}-one"),
            (threads, Keys::Own) => format!("t{threads}-own"),
        }
    }
}

/// The longest time that a histogram tells from longer ones.
const LONGEST: u64 = 60_000_000_000;

/// Makes an empty histogram of times up to a minute in nanoseconds, with three digits.
#[must_use]
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("three digits and these bounds are allowed")
}

/// The percentiles that a table shows, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tail {
    /// Half are at most this.
    pub p50: u64,
    /// 99 in 100.
    pub p99: u64,
    /// 999 in 1,000.
    pub p999: u64,
    /// All.
    pub max: u64,
}

impl Tail {
    /// Reads the percentiles off a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        }
    }
}
