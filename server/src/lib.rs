//! The slipswitch server and the slip command.
#![forbid(unsafe_code)]

pub mod clock;
