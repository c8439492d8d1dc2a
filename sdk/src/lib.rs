//! Workers and clients for the slipswitch dispatch engine.
//!
//! A [`Worker`] runs handlers for activity types; a [`Client`] submits tasks and learns their
//! outcomes. Both keep one session with the server on a thread of their own and make it anew after
//! a loss.
#![forbid(unsafe_code)]

mod activity;
mod backoff;
mod blocking;
mod client;
mod connect;
mod context;
mod error;
mod event;
mod failure;
mod handler;
mod host;
mod io;
mod link;
mod options;
mod outcome;
mod payload;
pub mod profile;
mod sync;
mod task;
mod worker;

pub use activity::Activity;
pub use backoff::Backoff;
pub use client::{
    BATCH_BYTES_MAX, BATCH_TASKS_MAX, Call, Cancelled, Client, DeadQuery, HoldInfo, PoolInfo,
    Submit, TaskInfo, TaskQuery, WorkerInfo,
};
pub use connect::{ConfigError, ConnectOptions, ENV_ADDRESS, ENV_FINGERPRINT, LANES_MAX};
pub use context::{CancelReason, Context, PROGRESS_BYTES_MAX, Signal, Signals};
pub use error::{
    CallError, Cause, ConnectError, Fault, QueryError, Refusal, SubmitError, SubmitErrorKind,
};
pub use event::{Left, LeftReason, NO_CREDIT_AFTER, WorkerEvent};
pub use failure::{DETAILS_BYTES_MAX, Failure, FailureClass, MESSAGE_BYTES_MAX};
pub use handler::{CODE_DROPPED, CODE_PANIC, CODE_UNDECODABLE, CODE_UNENCODABLE};
pub use options::SubmitOptions;
pub use outcome::{Ending, Outcome, TaskError};
pub use payload::{CONTENT_TYPE_JSON, Payload};
pub use task::{AwaitError, TaskHandle};
pub use worker::{
    BuildError, CREDIT_MAX, DEFAULT_NAMESPACE, HANDLERS_MAX, NAMESPACES_MAX, Worker, WorkerBuilder,
    WorkerError,
};

/// The words that the engine itself uses.
pub use slipswitch_core::{
    DrainScope, Hold, InvalidName, Lease, Namespace, Node, Policy, PoolKey, RetryKind, RetryPolicy,
    TaskId, TaskQueue, WorkerId,
};
/// How a server's certificate is known, and how refusals are named.
pub use slipswitch_net::{
    proto::WireCode,
    quic::{Fingerprint, InvalidFingerprint},
};
