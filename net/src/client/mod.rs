//! The client's side of a session: commands in, events out.

mod event;
mod session;
mod unsettled;

pub use event::{ClientHello, Ended, Event, Welcome};
pub use session::ClientSession;
pub use unsettled::Unsettled;
