//! Handlers: from a delivery's bytes to its answer.
//!
//! Whatever a handler does, its delivery gets one answer: input that cannot be decoded is a
//! terminal failure, a panic a retryable one, and a handler that is dropped before it finished
//! (its runtime ended) an infrastructure loss. None of them ends the session.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use serde::Serialize;

use crate::activity::Activity;
use crate::blocking::BlockingPool;
use crate::context::{Context, Delivery};
use crate::failure::{Failure, FailureClass};
use crate::payload::Payload;
use crate::sync::Arc;

/// What a delivery comes to.
pub(crate) type Answer = Result<Payload, Failure>;

/// The code of a failure whose input could not be decoded.
pub const CODE_UNDECODABLE: &str = "undecodable-input";
/// The code of a failure whose output could not be encoded.
pub const CODE_UNENCODABLE: &str = "unencodable-output";
/// The code of a failure whose handler panicked.
pub const CODE_PANIC: &str = "panic";
/// The code of a loss whose handler was dropped before it finished.
pub const CODE_DROPPED: &str = "dropped";

/// Where handlers run.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) blocking: BlockingPool,
}

/// A registered handler.
pub(crate) trait Handle<S>: Send + Sync {
    /// Starts the handler and returns at once; `done` gets the answer.
    fn start(&self, input: Bytes, cx: Context<S>, done: Done, on: &Executor);
}

/// The duty to answer one delivery.
pub(crate) struct Done(Option<Arc<Delivery>>);

impl Done {
    pub(crate) const fn new(delivery: Arc<Delivery>) -> Self {
        Self(Some(delivery))
    }

    pub(crate) fn send(mut self, answer: Answer) {
        self.give(answer);
    }

    fn give(&mut self, answer: Answer) {
        if let Some(delivery) = self.0.take() {
            Arc::clone(&delivery.report).answer(delivery, answer);
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        let class = FailureClass::Infrastructure;
        self.give(Err(Failure::new(class, CODE_DROPPED, "the handler was dropped unfinished")));
    }
}

fn decode<A: Activity>(input: Bytes) -> Result<A, Failure> {
    Payload::from(input).decode().map_err(|error| {
        let message = format_args!("the input is not a {}: {error}", A::TYPE);
        Failure::new(FailureClass::Terminal, CODE_UNDECODABLE, message)
    })
}

fn encode<T: Serialize>(output: &T) -> Answer {
    Payload::json(output)
        .map_err(|error| Failure::new(FailureClass::Terminal, CODE_UNENCODABLE, error))
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format_args!("the handler panicked: {}", text.unwrap_or("no message"));
    Failure::new(FailureClass::Retryable, CODE_PANIC, message)
}

/// Runs a future to its end and turns a panic into a failure.
async fn guarded(future: impl Future<Output = Answer>) -> Answer {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        // The future is not polled again after a panic, and what it shares with others is theirs
        // to guard, as with any panicking thread.
        match panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Err(panicked(&*panic))),
        }
    })
    .await
}

fn guarded_call(call: impl FnOnce() -> Answer) -> Answer {
    panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// A typed async function.
pub(crate) struct Typed<A, F>(Arc<F>, PhantomData<fn(A)>);

impl<A, F> Typed<A, F> {
    pub(crate) fn new(function: F) -> Self {
        Self(Arc::new(function), PhantomData)
    }
}

impl<A, S, F, Fut> Handle<S> for Typed<A, F>
where
    A: Activity,
    S: Send + Sync + 'static,
    F: Fn(A, Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<A::Output, Failure>> + Send + 'static,
{
    fn start(&self, input: Bytes, cx: Context<S>, done: Done, on: &Executor) {
        let function = Arc::clone(&self.0);
        on.runtime.spawn(async move {
            let work = async move { encode(&function(decode(input)?, cx).await?) };
            done.send(guarded(work).await);
        });
    }
}

/// A typed function that blocks its thread.
pub(crate) struct Blocking<A, F>(Arc<F>, PhantomData<fn(A)>);

impl<A, F> Blocking<A, F> {
    pub(crate) fn new(function: F) -> Self {
        Self(Arc::new(function), PhantomData)
    }
}

impl<A, S, F> Handle<S> for Blocking<A, F>
where
    A: Activity,
    S: Send + Sync + 'static,
    F: Fn(A, Context<S>) -> Result<A::Output, Failure> + Send + Sync + 'static,
{
    fn start(&self, input: Bytes, cx: Context<S>, done: Done, on: &Executor) {
        let function = Arc::clone(&self.0);
        let job = move || done.send(guarded_call(|| encode(&function(decode(input)?, cx)?)));
        if let Err(error) = on.blocking.run(job) {
            // The job was dropped, and with it `done`, which has answered.
            tracing::error!(%error, "no thread for a blocking handler");
        }
    }
}

/// An async function on bytes.
pub(crate) struct Raw<F>(pub(crate) Arc<F>);

impl<S, F, Fut, P> Handle<S> for Raw<F>
where
    S: Send + Sync + 'static,
    F: Fn(Bytes, Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<P, Failure>> + Send + 'static,
    P: Into<Payload>,
{
    fn start(&self, input: Bytes, cx: Context<S>, done: Done, on: &Executor) {
        let function = Arc::clone(&self.0);
        on.runtime.spawn(async move {
            let work = async move { function(input, cx).await.map(Into::into) };
            done.send(guarded(work).await);
        });
    }
}

/// A handler that was registered before the worker got its state.
pub(crate) struct Stateless(pub(crate) Box<dyn Handle<()>>);

impl<S: Send + Sync + 'static> Handle<S> for Stateless {
    fn start(&self, input: Bytes, cx: Context<S>, done: Done, on: &Executor) {
        self.0.start(input, cx.with_state(Arc::new(())), done, on);
    }
}

#[cfg(test)]
mod tests;
