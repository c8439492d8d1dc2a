//! The wire protocol, without IO: frames, their fields, typed errors, limits.
//!
//! A frame is `type u8 | header length varint | payload length varint | protobuf header | payload`.
//! Nothing here may fail on peer input but by a typed error.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::arithmetic_side_effects
)]

mod census;
mod code;
mod decoder;
mod driver;
mod frame;
mod hello;
pub mod limits;
pub mod messages;
mod payload;
mod varint;

pub use code::WireCode;
pub use decoder::Decoder;
pub use driver::{Channel, Driver, Lost};
pub use frame::{Frame, ProtocolError};
pub use hello::{Feature, PROTO_VERSION, agree_features, agree_version};
pub use payload::{Assembly, Departures, Loaded, Pieces};
