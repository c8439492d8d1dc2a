//! The client's side of a session: commands in, events out.

mod session;
mod unsettled;

pub use session::{ClientHello, ClientSession, Ended, Event, Welcome};
pub use unsettled::Unsettled;
