//! The slipswitch server: an engine behind a QUIC endpoint.
//!
//! [`serve::serve`] starts one in this process; the command `slip` does nothing else. With the
//! feature `testing` there is `testing::TestServer` for the tests of programs that use slipswitch.
#![forbid(unsafe_code)]

pub mod clock;
mod driver;
pub mod identity;
mod ids;
mod seats;
pub mod serve;
#[cfg(feature = "testing")]
pub mod testing;
