//! The slipswitch wire: frames and session state machines without IO, and the QUIC shell that
//! carries them.

pub mod client;
pub mod proto;
pub mod server;
