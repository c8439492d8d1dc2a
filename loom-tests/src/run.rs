//! Runs a model: through loom, or as a stress test.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Finish, Spec, floor, mutant};

/// The running model, for the threads that it plays.
///
/// It is not part of what is modelled: loom does not see it.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    spec: &'static Spec,
    executions: &'static AtomicU64,
    reached: &'static [AtomicU64],
}

impl Run {
    fn new(spec: &'static Spec) -> Self {
        let reached: Vec<AtomicU64> = spec.must_reach.iter().map(|_| AtomicU64::new(0)).collect();
        Self {
            spec,
            executions: Box::leak(Box::new(AtomicU64::new(0))),
            reached: Box::leak(reached.into_boxed_slice()),
        }
    }

    /// Takes note that this execution met a state of [`Spec::must_reach`].
    ///
    /// # Panics
    ///
    /// If the specification does not name the state.
    pub fn reached(self, state: &str) {
        let Some(at) = self.spec.must_reach.iter().position(|name| *name == state) else {
            panic!("model {} does not name the state \"{state}\"", self.spec.id);
        };
        // Relaxed: a count, read after every thread has ended.
        self.reached[at].fetch_add(1, Ordering::Relaxed);
    }

    fn begin(self) {
        // Relaxed: as above.
        self.executions.fetch_add(1, Ordering::Relaxed);
    }

    fn finish(self, truncated: bool) -> Finish {
        // Relaxed: as above.
        let executions = self.executions.load(Ordering::Relaxed) as usize;
        let reached = self.reached.iter().map(|times| times.load(Ordering::Relaxed)).collect();
        Finish { executions, truncated, reached }
    }

    fn say(self, how: &str, line: &str) {
        let mut out = std::io::stdout().lock();
        // A closed stdout must not decide about the model.
        let _ = writeln!(out, "{how} {}: {line}", self.spec.id);
    }
}

/// Runs a model and fails unless the search shows what the model is about.
///
/// With a planted fault chosen, only a counterexample fails: neither a small search nor a missed
/// state counts as having found it.
///
/// # Panics
///
/// If an execution fails, or if the search breaks a rule of the harness.
pub fn model(spec: &'static Spec, body: impl Fn(Run) + Send + Sync + 'static) {
    let run = Run::new(spec);
    let searched = catch_unwind(AssertUnwindSafe(|| search(run, body)));
    let finish = match searched {
        Ok(truncated) => run.finish(truncated),
        Err(panic) => {
            let Finish { executions, .. } = run.finish(false);
            run.say("counterexample", &format!("execution {executions} failed"));
            resume_unwind(panic);
        }
    };
    if cfg!(not(slipswitch_loom)) {
        run.say("stress", &finish.line(spec));
        return;
    }
    run.say("loom", &finish.line(spec));
    if mutant().is_some() {
        return;
    }
    if let Err(fault) = finish.judge(spec, floor::TABLE) {
        panic!("model {}: {fault}", spec.id);
    }
}

/// Searches the model; true if that was cut short.
#[cfg(slipswitch_loom)]
fn search(run: Run, body: impl Fn(Run) + Send + Sync + 'static) -> bool {
    const CHECKPOINT: usize = 1_000;
    let mut builder = loom::model::Builder::new();
    // Every field is set here: no variable of the environment makes a search smaller.
    builder.max_threads = 5;
    builder.max_branches = 100_000;
    builder.preemption_bound = run.spec.preemption;
    builder.max_permutations = Some(run.spec.cap);
    builder.max_duration = None;
    builder.checkpoint_file = None;
    builder.checkpoint_interval = CHECKPOINT;
    builder.expect_explicit_explore = false;
    builder.check(move || {
        run.begin();
        body(run);
    });
    // loom looks at the cap before it begins an execution whose number is a multiple of the
    // interval, and then returns as if it were through.
    let executions = run.finish(false).executions;
    executions + 1 >= run.spec.cap && (executions + 1) % CHECKPOINT == 0
}

#[cfg(not(slipswitch_loom))]
fn search(run: Run, body: impl Fn(Run) + Send + Sync + 'static) -> bool {
    let rounds = std::env::var("SLIPSWITCH_STRESS_ROUNDS").ok().and_then(|n| n.parse().ok());
    for _ in 0..rounds.unwrap_or(2_000) {
        run.begin();
        body(run);
    }
    false
}
