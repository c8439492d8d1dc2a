//! Models of the hand-offs between threads.
//!
//! A model is a closure that plays a few threads and asserts what must hold. Under
//! `cfg(slipswitch_loom)` [`model`] runs it through every interleaving that loom can tell apart,
//! over the shipped source of core, and fails if the search was cut short, was smaller than the
//! floor in `floors.toml`, or never met the race that the model is about. Without the cfg the same
//! files are stress tests: each closure runs many times on real threads.
#![forbid(unsafe_code)]

mod bed;
mod floor;
mod judge;
mod run;
pub mod sync;
pub mod thread;

pub use bed::{Bed, POOL, key, task};
pub use judge::{Fault, Finish};
pub use run::{Run, model};

/// What a model is, and what it must have met to count.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name in what is printed, and its key in `floors.toml`.
    pub id: &'static str,
    /// How often a running thread may be stopped for another; `None` searches without a bound.
    pub preemption: Option<usize>,
    /// States that some execution must reach with [`Run::reached`].
    pub must_reach: &'static [&'static str],
    /// The most executions. A search that is cut short by it has failed.
    pub cap: usize,
}

impl Spec {
    /// A model that is searched without a bound.
    #[must_use]
    pub const fn new(id: &'static str) -> Self {
        Self { id, preemption: None, must_reach: &[], cap: 5_000_000 }
    }

    /// Bounds the preemptions of an execution. The bound is printed with the result.
    #[must_use]
    pub const fn preemption(self, bound: usize) -> Self {
        Self { preemption: Some(bound), ..self }
    }

    /// Names the states that some execution must reach.
    #[must_use]
    pub const fn must_reach(self, states: &'static [&'static str]) -> Self {
        Self { must_reach: states, ..self }
    }
}

/// The planted fault that was chosen for this process, if any.
#[must_use]
pub fn mutant() -> Option<String> {
    std::env::var("SLIPSWITCH_MUTANT").ok().filter(|name| !name.is_empty())
}
