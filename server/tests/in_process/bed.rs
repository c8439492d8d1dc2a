//! Workers that run beside a test.

use std::sync::Arc;
use std::time::Duration;

use slipswitch::{Client, Left, Worker, WorkerBuilder, WorkerError, WorkerEvent};
use slipswitch_core::{Principal, WorkerStatus};
use slipswitch_server::testing::TestServer;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A worker that runs until it is told to leave, or dies when this is dropped.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<Left, WorkerError>>,
    pub(crate) events: mpsc::UnboundedReceiver<WorkerEvent>,
}

impl Running {
    /// Starts a worker and waits until the server knows it.
    pub(crate) async fn start<S: Send + Sync + 'static>(worker: WorkerBuilder<S>) -> Self {
        let (seen, events) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = worker.on_event(move |event| drop(seen.send(event)));
        let task = tokio::spawn(worker.run_until(async { stopped.await.unwrap_or_default() }));
        let mut running = Self { stop: Some(stop), task, events };
        running.registered().await;
        running
    }

    /// Waits until it is registered, the first time or again.
    pub(crate) async fn registered(&mut self) {
        self.event(|event| matches!(event, WorkerEvent::Registered { .. })).await;
    }

    /// Waits for an event.
    pub(crate) async fn event(&mut self, wanted: impl Fn(&WorkerEvent) -> bool) -> WorkerEvent {
        loop {
            let event = self.events.recv().await.expect("the worker ended");
            if wanted(&event) {
                return event;
            }
        }
    }

    /// Lets it finish and leave.
    pub(crate) async fn leave(mut self) -> Left {
        drop(self.stop.take());
        self.task.await.unwrap().unwrap()
    }

    /// Waits until it has left by itself.
    pub(crate) async fn left(self) -> Left {
        self.task.await.unwrap().unwrap()
    }

    /// Ends it without a word.
    pub(crate) fn die(self) {
        self.task.abort();
    }
}

/// Connects a client.
pub(crate) async fn client(server: &TestServer) -> Client {
    Client::connect(server.options()).await.unwrap()
}

/// Starts to build a worker.
pub(crate) fn worker(server: &TestServer) -> WorkerBuilder {
    Worker::connect(server.options()).no_node()
}

/// The workers that selection knows.
pub(crate) fn workers(server: &TestServer) -> Vec<WorkerStatus> {
    server.engine().workers(&Principal::operator("test")).1
}

/// Looks again until it is so. What is waited for happens on other threads.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A count that handlers raise.
pub(crate) type Count = Arc<std::sync::atomic::AtomicU64>;
