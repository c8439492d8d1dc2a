//! The server's side of a session: frames in, calls to the engine, frames out.

mod answer;
mod intake;
mod query;
mod session;

pub use session::{Greeting, ServerSession, TaskIds};
