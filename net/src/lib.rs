//! The slipswitch wire: frames and session state machines without IO, and the QUIC shell that
//! carries them.
#![forbid(unsafe_code)]

pub mod client;
pub mod clock;
pub mod pipe;
pub mod proto;
#[cfg(feature = "quic")]
pub mod quic;
pub mod server;
