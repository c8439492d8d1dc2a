//! IO threads: one current-thread runtime each, and connections placed on them whole.
//!
//! quinn spawns the task that drives a connection at the moment the connection is accepted or
//! dialled, on whatever its [`quinn::Runtime`] says. [`Placement`] sends it to the IO thread named
//! by [`Placement::on`]; the session's reader and writer are then started on the same thread, so
//! that a connection is never touched by two threads at once.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle, ThreadId};

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use tokio::runtime::{Builder, Handle, LocalOptions};
use tokio::sync::mpsc;

type Job = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// Threads that own connections. Dropping it stops the threads and joins them.
#[derive(Debug)]
pub struct IoThreads {
    threads: Vec<IoThread>,
}

/// One thread, its runtime and the way to start work on it.
struct IoThread {
    runtime: Handle,
    /// `None` once the thread was told to stop.
    jobs: Option<mpsc::UnboundedSender<Job>>,
    id: ThreadId,
    join: Option<JoinHandle<()>>,
    /// Cloned into every [`Seat`]: the count of references is the load of the thread.
    seats: Arc<()>,
}

impl fmt::Debug for IoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoThread").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A connection's place on an IO thread, counted until it is dropped.
#[derive(Debug)]
pub struct Seat {
    thread: usize,
    _taken: Arc<()>,
}

impl Seat {
    /// Returns the number of the thread.
    #[must_use]
    pub const fn thread(&self) -> usize {
        self.thread
    }
}

impl IoThreads {
    /// Starts `count` threads, at least one.
    ///
    /// # Errors
    /// Fails when the system refuses a thread or a runtime.
    pub fn start(count: usize) -> io::Result<Self> {
        let threads = (0..count.max(1)).map(IoThread::start).collect::<io::Result<_>>()?;
        Ok(Self { threads })
    }

    /// Returns the number of threads.
    #[must_use]
    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// Starts a future on a thread; the future is made there, so it need not be `Send`. Does
    /// nothing when there is no such thread or when it is stopping.
    ///
    /// A panic in it ends that future alone.
    pub fn spawn_on<F, Fut>(&self, thread: usize, make: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        if let Some(jobs) = self.threads.get(thread).and_then(|thread| thread.jobs.as_ref()) {
            // `make` runs inside the task: a panic in it must not reach the thread.
            let _ = jobs.send(Box::new(move || Box::pin(async move { make().await })));
        }
    }

    /// Takes a place on the thread that has the fewest.
    #[must_use]
    pub fn seat(&self) -> Seat {
        let loads = self.threads.iter().map(|thread| Arc::strong_count(&thread.seats));
        let least = loads.enumerate().min_by_key(|&(_, load)| load);
        let thread = least.map_or(0, |(thread, _)| thread);
        let taken = self.threads.get(thread).map(|thread| Arc::clone(&thread.seats));
        Seat { thread, _taken: taken.unwrap_or_default() }
    }

    /// Returns how many places of a thread are taken.
    #[must_use]
    pub fn load(&self, thread: usize) -> usize {
        self.threads.get(thread).map_or(0, |thread| Arc::strong_count(&thread.seats) - 1)
    }

    /// Returns the runtime that quinn is given for an endpoint on these threads.
    #[must_use]
    pub(super) fn placement(&self) -> Arc<Placement> {
        let runtimes = self.threads.iter().map(|thread| thread.runtime.clone()).collect();
        Arc::new(Placement { runtimes })
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        for thread in &mut self.threads {
            thread.jobs = None;
        }
        for thread in &mut self.threads {
            // One of the threads itself may hold the last reference: it cannot wait for itself.
            if thread.id != thread::current().id() {
                if let Some(join) = thread.join.take() {
                    let _ = join.join();
                }
            }
        }
    }
}

impl IoThread {
    fn start(number: usize) -> io::Result<Self> {
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        let (jobs, inbox) = mpsc::unbounded_channel();
        let join = thread::Builder::new()
            .name(format!("slip-io-{number}"))
            .spawn(move || Self::run(&ready, inbox))?;
        let gone = || io::Error::other("the IO thread ended at once");
        let runtime = started.recv().map_err(|_| gone())??;
        let id = join.thread().id();
        Ok(Self { runtime, jobs: Some(jobs), id, join: Some(join), seats: Arc::default() })
    }

    fn run(
        ready: &std::sync::mpsc::SyncSender<io::Result<Handle>>,
        mut inbox: mpsc::UnboundedReceiver<Job>,
    ) {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        let _ = ready.send(Ok(runtime.handle().clone()));
        runtime.block_on(async move {
            while let Some(job) = inbox.recv().await {
                tokio::task::spawn_local(job());
            }
        });
    }
}

thread_local! {
    static TARGET: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The [`quinn::Runtime`] of an endpoint whose connections live on [`IoThreads`].
#[derive(Debug)]
pub(super) struct Placement {
    runtimes: Vec<Handle>,
}

impl Placement {
    /// Runs `f`; what quinn spawns meanwhile goes to the thread named, the first if there is none.
    pub(super) fn on<R>(thread: usize, f: impl FnOnce() -> R) -> R {
        /// Resets also when `f` unwinds.
        struct Reset(Option<usize>);
        impl Drop for Reset {
            fn drop(&mut self) {
                TARGET.set(self.0);
            }
        }
        let _reset = Reset(TARGET.replace(Some(thread)));
        f()
    }

    fn target(&self) -> Option<&Handle> {
        let number = TARGET.get().unwrap_or_default();
        self.runtimes.get(number).or_else(|| self.runtimes.first())
    }
}

impl Runtime for Placement {
    fn new_timer(&self, at: std::time::Instant) -> Pin<Box<dyn AsyncTimer>> {
        // Called from a task that this runtime spawned: the timer belongs to that task's thread.
        TokioRuntime.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        if let Some(runtime) = self.target() {
            runtime.spawn(future);
        }
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let _entered = self.target().map(Handle::enter);
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> std::time::Instant {
        TokioRuntime.now()
    }
}

#[cfg(test)]
mod tests;
