//! The server's side of a session: frames in, calls to the engine, frames out.

mod answer;
mod command;
mod intake;
mod producer;
mod query;
mod session;
mod timed;
mod worker;

pub use session::{Greeting, ServerSession, TaskIds};
