//! Workers: handlers, and the session that brings them work.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{ActivityType, InvalidName, Namespace, Node, TaskQueue};
use thiserror::Error;

use crate::activity::Activity;
use crate::connect::{ConfigError, ConnectOptions};
use crate::context::Context;
use crate::error::{ConnectError, Fault};
use crate::event::{Left, WorkerEvent};
use crate::failure::Failure;
use crate::handler::{Blocking, Handle, Raw, Stateless, Typed};
use crate::host;
use crate::payload::Payload;
use crate::sync::Arc;

mod life;
mod run;

/// The largest weight.
const WEIGHT_MAX: usize = 100;
/// The largest credit: how many deliveries a worker may have in its hands.
pub const CREDIT_MAX: u32 = 65_535;
/// The most handlers of one worker.
pub const HANDLERS_MAX: usize = 1_024;
/// The most namespaces of one worker.
pub const NAMESPACES_MAX: usize = 64;

const CREDIT_DEFAULT: u32 = 64;
const DRAIN_TIMEOUT_DEFAULT: Duration = Duration::from_secs(25);

type OnEvent = Arc<dyn Fn(WorkerEvent) + Send + Sync>;

/// A worker: handlers for activity types, ready to run.
///
/// Transport and beats run on a thread of their own, so that a busy handler never looks dead;
/// handlers run on the runtime that [`Worker::run_until`] is called on, blocking ones on threads
/// of their own, one for each delivery at work.
///
/// # Examples
///
/// ```no_run
/// use serde::{Deserialize, Serialize};
/// use slipswitch::{Activity, Context, Failure, Worker};
///
/// #[derive(Serialize, Deserialize)]
/// struct Greet {
///     name: String,
/// }
///
/// impl Activity for Greet {
///     const TYPE: &'static str = "greet";
///     type Output = String;
/// }
///
/// async fn greet(input: Greet, _cx: Context) -> Result<String, Failure> {
///     Ok(format!("hello {}", input.name))
/// }
///
/// # async fn run(stop: impl Future<Output = ()>) -> Result<(), Box<dyn std::error::Error>> {
/// let left = Worker::from_env()?.credit(64).activity(greet).run_until(stop).await?;
/// assert_eq!(left.abandoned, 0);
/// # Ok(())
/// # }
/// ```
pub struct Worker<S = ()> {
    config: Config,
    handlers: Vec<Box<dyn Handle<S>>>,
    state: Arc<S>,
    on_event: Option<OnEvent>,
}

/// What a worker says about itself; checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) connect: ConnectOptions,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) task_queue: TaskQueue,
    /// In the order of the handlers.
    pub(crate) types: Vec<ActivityType>,
    pub(crate) node: Option<Node>,
    pub(crate) identity: String,
    pub(crate) credit: u32,
    pub(crate) weight: u32,
    pub(crate) drain_timeout: Duration,
    pub(crate) fail_fast: bool,
}

impl Worker {
    /// Starts to build a worker for the development server of the same user.
    pub fn builder() -> WorkerBuilder {
        Self::connect(ConnectOptions::dev())
    }

    /// Starts to build a worker for a server.
    pub fn connect(options: ConnectOptions) -> WorkerBuilder {
        WorkerBuilder::new(options)
    }

    /// Starts to build a worker for the server that the environment names.
    ///
    /// # Errors
    ///
    /// As [`ConnectOptions::from_env`].
    pub fn from_env() -> Result<WorkerBuilder, ConfigError> {
        Ok(Self::connect(ConnectOptions::from_env()?))
    }
}

impl<S> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A worker in the making.
#[must_use = "a builder does nothing until it is run"]
pub struct WorkerBuilder<S = ()> {
    connect: ConnectOptions,
    namespaces: Vec<String>,
    task_queue: String,
    node: NodeChoice,
    identity: Option<String>,
    credit: u32,
    weight: u32,
    drain_timeout: Duration,
    fail_fast: bool,
    handlers: Vec<(String, Box<dyn Handle<S>>)>,
    state: Arc<S>,
    on_event: Option<OnEvent>,
}

enum NodeChoice {
    Host,
    None,
    Named(String),
}

/// A worker cannot be built. The program is at fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two handlers have the same name.
    #[error("two handlers are named {name}")]
    DuplicateHandler {
        /// The name.
        name: String,
    },
    /// There is no handler: the worker could do nothing.
    #[error("a worker needs at least one handler")]
    NoHandlers,
    /// A name is wrong.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A number is out of its range.
    #[error("{what} is {value}, allowed are 1 to {max}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: usize,
        /// The largest value.
        max: usize,
    },
}

/// A worker ended without having been asked to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// It cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// There is no session, and no further dial: the server does not admit the worker, the
    /// redial budget is spent, or the first dial failed and [`WorkerBuilder::fail_fast`] is set.
    #[error("the worker has no session with a server")]
    Connect(#[from] ConnectError),
    /// This machine has no thread to give.
    #[error("cannot start the IO thread")]
    Thread(#[source] std::io::Error),
    /// The IO thread ended by a panic: a bug of this crate.
    #[error("the IO thread ended unexpectedly")]
    IoThreadLost,
}

impl WorkerError {
    /// Says whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Build(_) => Fault::Caller,
            Self::Connect(error) => error.fault(),
            Self::Thread(_) => Fault::Environment,
            Self::IoThreadLost => Fault::Ours,
        }
    }
}

impl WorkerBuilder {
    fn new(connect: ConnectOptions) -> Self {
        Self {
            connect,
            namespaces: Vec::new(),
            task_queue: String::new(),
            node: NodeChoice::Host,
            identity: None,
            credit: CREDIT_DEFAULT,
            weight: 1,
            drain_timeout: DRAIN_TIMEOUT_DEFAULT,
            fail_fast: false,
            handlers: Vec::new(),
            state: Arc::new(()),
            on_event: None,
        }
    }

    /// Gives all handlers a state to share; [`Context::state`] returns it.
    pub fn state<S: Send + Sync + 'static>(self, state: S) -> WorkerBuilder<S> {
        let adapt = |(name, handler)| -> (String, Box<dyn Handle<S>>) {
            (name, Box::new(Stateless(handler)))
        };
        WorkerBuilder {
            connect: self.connect,
            namespaces: self.namespaces,
            task_queue: self.task_queue,
            node: self.node,
            identity: self.identity,
            credit: self.credit,
            weight: self.weight,
            drain_timeout: self.drain_timeout,
            fail_fast: self.fail_fast,
            handlers: self.handlers.into_iter().map(adapt).collect(),
            state: Arc::new(state),
            on_event: self.on_event,
        }
    }
}

impl<S: Send + Sync + 'static> WorkerBuilder<S> {
    /// Serves a namespace, in addition to those named before; `default` if none is named.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespaces.push(namespace.into());
        self
    }

    /// Serves a task queue; `default` by default.
    pub fn task_queue(mut self, task_queue: impl Into<String>) -> Self {
        self.task_queue = task_queue.into();
        self
    }

    /// Names the node: tasks that require it come here. By default the host's name, if it is a
    /// valid name.
    pub fn node(mut self, node: impl Into<String>) -> Self {
        self.node = NodeChoice::Named(node.into());
        self
    }

    /// Registers without a node: tasks that require one never come here.
    pub fn no_node(mut self) -> Self {
        self.node = NodeChoice::None;
        self
    }

    /// Sets how many deliveries may be in the worker's hands at once, 64 by default. There is a
    /// free slot for each: no delivery waits for another one's handler.
    pub fn credit(mut self, credit: u32) -> Self {
        self.credit = credit;
        self
    }

    /// Sets the weight, 1 to 100, 1 by default: in a pool with the policy `least_loaded` a worker of
    /// weight 2 is as loaded with two tasks as one of weight 1 with one.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Names this worker for people; the program, host and process id by default.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets how long leaving may wait for handlers, 25 s by default.
    pub fn drain_timeout(mut self, limit: Duration) -> Self {
        self.drain_timeout = limit;
        self
    }

    /// Ends the worker if the very first dial fails, instead of dialling on.
    pub fn fail_fast(mut self) -> Self {
        self.fail_fast = true;
        self
    }

    /// Calls a function for each event, on the runtime of the handlers. Events are logged, too.
    pub fn on_event(mut self, function: impl Fn(WorkerEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(function));
        self
    }

    /// Adds an async handler; its input names the activity type.
    ///
    /// A panic is a retryable failure, input that cannot be decoded a terminal one. A handler that
    /// blocks its thread holds up others of the same runtime: [`WorkerBuilder::blocking`] does not.
    pub fn activity<A, F, Fut>(self, function: F) -> Self
    where
        A: Activity,
        F: Fn(A, Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A::Output, Failure>> + Send + 'static,
    {
        self.handler(A::TYPE, Box::new(Typed::new(function)))
    }

    /// Adds a handler that blocks: it runs on a thread of its own.
    pub fn blocking<A, F>(self, function: F) -> Self
    where
        A: Activity,
        F: Fn(A, Context<S>) -> Result<A::Output, Failure> + Send + Sync + 'static,
    {
        self.handler(A::TYPE, Box::new(Blocking::new(function)))
    }

    /// Adds an async handler on bytes for the activity type `name`.
    pub fn raw<F, Fut, P>(self, name: &str, function: F) -> Self
    where
        F: Fn(Bytes, Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<P, Failure>> + Send + 'static,
        P: Into<Payload> + 'static,
    {
        self.handler(name, Box::new(Raw(Arc::new(function))))
    }

    fn handler(mut self, name: &str, handler: Box<dyn Handle<S>>) -> Self {
        self.handlers.push((name.to_owned(), handler));
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    ///
    /// When there is no handler, two have one name, or a name or number is wrong.
    pub fn build(self) -> Result<Worker<S>, BuildError> {
        if self.handlers.is_empty() {
            return Err(BuildError::NoHandlers);
        }
        within("the number of handlers", self.handlers.len(), HANDLERS_MAX)?;
        within("the weight", self.weight as usize, WEIGHT_MAX)?;
        within("the credit", self.credit as usize, CREDIT_MAX as usize)?;
        let mut types: Vec<ActivityType> = Vec::with_capacity(self.handlers.len());
        let mut handlers = Vec::with_capacity(self.handlers.len());
        for (name, handler) in self.handlers {
            let activity_type = ActivityType::new(&name)?;
            if types.contains(&activity_type) {
                return Err(BuildError::DuplicateHandler { name });
            }
            types.push(activity_type);
            handlers.push(handler);
        }
        let mut namespaces = Vec::with_capacity(self.namespaces.len().max(1));
        for name in &self.namespaces {
            let namespace = Namespace::new(name)?;
            if !namespaces.contains(&namespace) {
                namespaces.push(namespace);
            }
        }
        if namespaces.is_empty() {
            namespaces.push(Namespace::new(DEFAULT_NAMESPACE)?);
        }
        within("the number of namespaces", namespaces.len(), NAMESPACES_MAX)?;
        let node = match self.node {
            NodeChoice::Host => host::node(),
            NodeChoice::None => None,
            NodeChoice::Named(name) => Some(Node::new(&name)?),
        };
        let config = Config {
            connect: self.connect,
            namespaces,
            task_queue: TaskQueue::or_default(&self.task_queue)?,
            types,
            node,
            identity: self.identity.unwrap_or_else(host::identity),
            credit: self.credit,
            weight: self.weight,
            drain_timeout: self.drain_timeout,
            fail_fast: self.fail_fast,
        };
        Ok(Worker { config, handlers, state: self.state, on_event: self.on_event })
    }

    /// Builds the worker and runs it; see [`Worker::run_until`].
    ///
    /// # Errors
    ///
    /// As [`WorkerBuilder::build`] and [`Worker::run_until`].
    ///
    /// # Cancel safety
    ///
    /// As [`Worker::run_until`].
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<Left, WorkerError> {
        self.build()?.run_until(shutdown).await
    }
}

/// The namespace of workers and clients that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

const fn within(what: &'static str, value: usize, max: usize) -> Result<(), BuildError> {
    if value == 0 || value > max {
        return Err(BuildError::OutOfRange { what, value, max });
    }
    Ok(())
}

impl<S> fmt::Debug for WorkerBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.handlers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("WorkerBuilder")
            .field("connect", &self.connect)
            .field("handlers", &names)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
