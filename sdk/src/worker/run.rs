//! A worker at work: handlers on the user's runtime, the session on the IO thread.

use std::future::Future;
use std::pin::pin;

use bytes::Bytes;
use tokio::sync::Notify;

use super::life::{Command, WorkerLife};
use super::{OnEvent, Worker, WorkerError};
use crate::blocking::BlockingPool;
use crate::context::{Context, Delivery};
use crate::event::{Left, WorkerEvent};
use crate::handler::{Done, Executor};
use crate::io::{IoWake, spawn};
use crate::link::{Outbox, Queue};
use crate::sync::Arc;

/// What the IO thread hands to the runtime of the handlers.
pub(super) enum News {
    /// A delivery that was accepted, for a handler.
    Start { handler: usize, input: Bytes, delivery: Arc<Delivery> },
    /// Something to tell.
    Event(WorkerEvent),
    /// The worker has ended.
    Ended(Result<Left, WorkerError>),
}

impl<S: Send + Sync + 'static> Worker<S> {
    /// Runs the worker until it was asked to stop and has finished what it has, until the server
    /// drained it, or until there is no hope of a session.
    ///
    /// Must be called within a tokio runtime: handlers run on it.
    ///
    /// # Errors
    ///
    /// The server does not admit the worker, the redial budget is spent, or this machine has no
    /// thread to give.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the session without a goodbye; handlers that run go on, and what
    /// they return is lost.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<Left, WorkerError> {
        let Self { config, handlers, state, on_event } = self;
        let wake = Arc::new(IoWake::default());
        let commands: Arc<Queue<Command, Arc<IoWake>>> = Queue::new(Arc::clone(&wake));
        let news: Arc<Outbox<News>> = Queue::new(Notify::new());
        let blocking = BlockingPool::new(config.credit as usize);
        let runtime = tokio::runtime::Handle::current();
        let on = Executor { runtime, blocking };
        let _stopped =
            Stopped { commands: Arc::clone(&commands), news: Arc::clone(&news), on: on.clone() };
        let make = {
            let (commands, news, config) =
                (Arc::clone(&commands), Arc::clone(&news), config.clone());
            move || WorkerLife::new(config, commands, news)
        };
        spawn(config.connect.clone(), wake, make).map_err(WorkerError::Thread)?;
        let mut shutdown = pin!(shutdown);
        let mut is_stopping = false;
        let mut batch = Vec::new();
        loop {
            let open = tokio::select! {
                biased;
                () = &mut shutdown, if !is_stopping => {
                    is_stopping = true;
                    // A closed queue says that the worker has ended already.
                    drop(commands.push(Command::Leave));
                    continue;
                }
                open = news.recv(&mut batch) => open,
            };
            if !open {
                return Err(WorkerError::IoThreadLost);
            }
            for item in batch.drain(..) {
                match item {
                    News::Start { handler, input, delivery } => {
                        let Some(handler) = handlers.get(handler) else { continue };
                        let cx = Context::new(Arc::clone(&delivery), Arc::clone(&state));
                        handler.start(input, cx, Done::new(delivery), &on);
                    }
                    News::Event(event) => tell(on_event.as_ref(), event),
                    News::Ended(ended) => return ended,
                }
            }
        }
    }
}

/// However the run ends: the IO thread is told, and threads for blocking handlers may end.
struct Stopped {
    commands: Arc<Queue<Command, Arc<IoWake>>>,
    news: Arc<Outbox<News>>,
    on: Executor,
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.commands.close();
        self.news.close();
        self.on.blocking.close();
    }
}

fn tell(on_event: Option<&OnEvent>, event: WorkerEvent) {
    match &event {
        WorkerEvent::Registered { worker_id, address } => {
            tracing::info!(worker = %worker_id, %address, "registered");
        }
        WorkerEvent::Draining => tracing::info!("the server asks to finish and leave"),
        other => tracing::warn!(event = ?other, "worker"),
    }
    if let Some(on_event) = on_event {
        on_event(event);
    }
}
