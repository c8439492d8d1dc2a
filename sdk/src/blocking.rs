//! Threads for `blocking` handlers: as many as there are slots, made when needed.
//!
//! A job never waits behind another one: the pool has one thread a slot, and the server sends no
//! more tasks than there are slots. A thread that finds no job for [`IDLE`] ends.

use std::collections::VecDeque;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::Duration;

use crate::sync::{Arc, Condvar, Mutex, wait_for};

/// How long a thread without a job stays.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// A pool of at most `threads_max` threads.
#[derive(Clone)]
pub(crate) struct BlockingPool(Arc<Shared>);

struct Shared {
    threads_max: usize,
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl BlockingPool {
    pub(crate) fn new(threads_max: usize) -> Self {
        let (state, ready) = (Mutex::new(State::default()), Condvar::new());
        Self(Arc::new(Shared { threads_max: threads_max.max(1), state, ready }))
    }

    /// Runs a job on a thread of the pool.
    ///
    /// # Errors
    ///
    /// When no thread exists and none can be made; the job is dropped.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.jobs.push_back(Box::new(job));
        if state.idle >= state.jobs.len() {
            self.0.ready.notify_one();
            return Ok(());
        }
        if state.threads >= self.0.threads_max {
            // Every thread is busy: the next one that is done takes the job.
            return Ok(());
        }
        state.threads += 1;
        let number = state.threads;
        drop(state);
        let shared = Arc::clone(&self.0);
        let name = format!("slip-blocking-{number}");
        let spawned = thread::Builder::new().name(name).spawn(move || work(&shared));
        let Err(error) = spawned else { return Ok(()) };
        let mut state = self.0.state.lock();
        state.threads -= 1;
        if state.threads > 0 {
            return Ok(());
        }
        // Whoever owns the jobs learns of it by their drop, outside the lock.
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        drop(jobs);
        Err(error)
    }

    /// Lets idle threads end at once; jobs that run go on.
    pub(crate) fn close(&self) {
        self.0.state.lock().closed = true;
        self.0.ready.notify_all();
    }
}

fn work(shared: &Shared) {
    let mut state = shared.state.lock();
    loop {
        if let Some(job) = state.jobs.pop_front() {
            drop(state);
            // A panic of a handler is caught and reported inside the job; one outside of it must
            // not cost the pool a thread. There is nobody else to tell.
            let _ = panic::catch_unwind(AssertUnwindSafe(job));
            state = shared.state.lock();
            continue;
        }
        if state.closed {
            break;
        }
        state.idle += 1;
        let (guard, timed_out) = wait_for(&shared.ready, state, IDLE);
        state = guard;
        state.idle -= 1;
        if timed_out && state.jobs.is_empty() {
            break;
        }
    }
    state.threads -= 1;
}

#[cfg(test)]
mod tests;
