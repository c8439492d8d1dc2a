//! The fields of the frames. Numbers follow the frames' tables from 1 and are never used again.
//!
//! Names in the frames that every task crosses are bytes: they are compared, not owned, and are
//! checked where they become names. On the wire they are what a protobuf string is.

use bytes::Bytes;
use prost::Message;

mod question;
mod session;
mod task;
mod worker;

pub use question::*;
pub use session::*;
pub use task::*;
pub use worker::*;

/// A typed error.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Err {
    /// As [`WireCode`](super::WireCode) numbers them.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    /// The same request may succeed later.
    #[prost(bool, tag = "2")]
    pub retryable: bool,
    /// When to try again, in milliseconds; 0 if not known.
    #[prost(uint64, tag = "3")]
    pub retry_after: u64,
    /// One sentence for people.
    #[prost(string, tag = "4")]
    pub message: String,
    /// More, by code.
    #[prost(bytes = "bytes", tag = "5")]
    pub details: Bytes,
}

/// One delivery.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Lease {
    /// Where the session keeps it.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The fencing number.
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
}

/// A name and a value.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Pair {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A piece of a large payload; its bytes travel beside it.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Piece {
    /// Which payload.
    #[prost(uint64, tag = "1")]
    pub stream_ref: u64,
    /// Where the piece belongs: how many bytes came before.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// Nothing follows.
    #[prost(bool, tag = "3")]
    pub last: bool,
}
