//! A server in the test's own process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use slipswitch::ConnectOptions;
use slipswitch_core::{Engine, Principal, Reason, TaskFilter, TaskState};

use crate::serve::{Drained, ServeConfig, ServeError, Server, serve};

/// How long workers may take to finish when a test server stops.
const STOP_MAX: Duration = Duration::from_secs(5);

/// A server of a test's own: a free port of loopback, a certificate of its own, nothing on disk.
///
/// # Examples
///
/// ```
/// use slipswitch::{Client, Context, Failure, Payload, Worker};
/// use slipswitch_server::testing::TestServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = TestServer::start()?;
/// let worker = Worker::connect(server.options())
///     .raw("echo", |input, _cx: Context| async move { Ok::<_, Failure>(input) });
/// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// let worker = tokio::spawn(worker.run_until(async { stopped.await.unwrap_or_default() }));
///
/// let client = Client::connect(server.options()).await?;
/// let mut task = client.submit_raw("echo", "hello", Default::default()).await?;
/// assert_eq!(task.outcome().await?.payload().bytes().as_ref(), b"hello");
///
/// let _ = stop.send(());
/// worker.await??;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TestServer {
    server: Server,
}

impl TestServer {
    /// Starts a server with the default of everything.
    ///
    /// # Errors
    ///
    /// When the machine has no port or thread to give.
    pub fn start() -> Result<Self, ServeError> {
        Self::with(Self::config())
    }

    /// Returns what [`TestServer::start`] starts with, to be changed for [`TestServer::with`].
    #[must_use]
    pub fn config() -> ServeConfig {
        ServeConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Starts a server as configured.
    ///
    /// # Errors
    ///
    /// As [`serve`].
    pub fn with(config: ServeConfig) -> Result<Self, ServeError> {
        Ok(Self { server: serve(config)? })
    }

    /// Returns how to reach it.
    #[must_use]
    pub fn options(&self) -> ConnectOptions {
        ConnectOptions::new(self.server.local_addr().to_string(), self.server.fingerprint())
    }

    /// Returns its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Returns its engine, to look at what it holds.
    #[must_use]
    pub const fn engine(&self) -> &Arc<Engine> {
        self.server.engine()
    }

    /// Returns the server.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Checks that nothing is lost and no credit is stuck: each unit in use belongs to a task that
    /// a worker has, and each task that waits is counted in its pool. For a moment at which nothing
    /// moves.
    ///
    /// # Panics
    ///
    /// When it is not so.
    pub fn assert_conserved(&self) {
        let (engine, operator) = (self.engine(), Principal::operator("assert-conserved"));
        let tasks = engine.tasks(&operator, &TaskFilter::default(), None, usize::MAX);
        let in_state = |states: &[TaskState]| {
            tasks.iter().filter(|status| states.contains(&status.state)).count() as u64
        };
        let at_work = in_state(&[TaskState::Offered, TaskState::Running, TaskState::Cancelling]);
        assert_eq!(engine.in_flight(), at_work, "units in use, and tasks that workers have");
        // Tasks of a held owner are put aside, so they are not counted in a line.
        let pending = tasks.iter().filter(|status| status.state == TaskState::Pending);
        let held = pending.clone().filter(|status| status.reason == Reason::Held).count() as u64;
        let pending = pending.count() as u64;
        let (_, pools) = engine.pools(&operator);
        let waiting: u64 = pools.iter().map(|pool| pool.waiting).sum();
        let counted = pending.saturating_sub(held)..=pending;
        assert!(counted.contains(&waiting), "{waiting} counted in lines, {pending} that wait");
    }

    /// Drains and stops it.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the server stops at once.
    pub async fn stop(self) -> Drained {
        self.server.drain(STOP_MAX).await
    }
}
