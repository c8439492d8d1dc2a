//! Hello, ping, goodbye: what every session says.

use bytes::Bytes;
use prost::Message;

use super::Err;

/// The client's first frame.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Hello {
    /// The lowest version it speaks.
    #[prost(uint32, tag = "1")]
    pub proto_min: u32,
    /// The highest version it speaks.
    #[prost(uint32, tag = "2")]
    pub proto_max: u32,
    /// Bits of what it can do.
    #[prost(uint64, tag = "3")]
    pub features: u64,
    /// The library it is built with.
    #[prost(string, tag = "4")]
    pub sdk_name: String,
    /// That library's version.
    #[prost(string, tag = "5")]
    pub sdk_version: String,
    /// What it wants to be: 1 worker, 2 producer, 3 operator, 4 observer.
    #[prost(uint32, repeated, tag = "6")]
    pub roles: Vec<u32>,
    /// A token, for a later version.
    #[prost(bytes = "bytes", optional, tag = "7")]
    pub token: Option<Bytes>,
    /// For a later version.
    #[prost(bytes = "bytes", optional, tag = "8")]
    pub resume_token: Option<Bytes>,
    /// The largest header it takes, 0 for the protocol's own limit.
    #[prost(uint64, tag = "9")]
    pub max_frame: u64,
    /// Its wall clock, in milliseconds since 1970, for people.
    #[prost(uint64, tag = "10")]
    pub clock: u64,
}

/// Limits of the server, where they are lower than the protocol's.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Limits {
    /// Bytes of a payload.
    #[prost(uint64, tag = "1")]
    pub payload: u64,
    /// Tasks of a batch.
    #[prost(uint64, tag = "2")]
    pub batch_tasks: u64,
    /// Payload bytes of a batch.
    #[prost(uint64, tag = "3")]
    pub batch_bytes: u64,
}

/// The server's answer to [`Hello`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct HelloAck {
    /// Random for each server.
    #[prost(bytes = "bytes", tag = "1")]
    pub server_id: Bytes,
    /// Rises with each start.
    #[prost(uint32, tag = "2")]
    pub incarnation: u32,
    /// The version that both speak.
    #[prost(uint32, tag = "3")]
    pub proto: u32,
    /// The features that both know.
    #[prost(uint64, tag = "4")]
    pub features: u64,
    /// Random for each connection.
    #[prost(bytes = "bytes", tag = "5")]
    pub session_id: Bytes,
    /// The present snapshot.
    #[prost(uint64, tag = "6")]
    pub generation: u64,
    /// How long a lease lives without a beat, in milliseconds.
    #[prost(uint64, tag = "7")]
    pub lease_ttl: u64,
    /// How often to beat, in milliseconds.
    #[prost(uint64, tag = "8")]
    pub beat: u64,
    /// How long an offer may stay unanswered, in milliseconds.
    #[prost(uint64, tag = "9")]
    pub accept_timeout: u64,
    /// After which silence a side is asked whether it lives, in milliseconds.
    #[prost(uint64, tag = "10")]
    pub ping: u64,
    /// The server's limits.
    #[prost(message, optional, tag = "11")]
    pub limits: Option<Limits>,
    /// Other servers.
    #[prost(string, repeated, tag = "12")]
    pub alternates: Vec<String>,
    /// For a later version.
    #[prost(uint64, tag = "13")]
    pub auth_expires: u64,
    /// For a later version.
    #[prost(bytes = "bytes", optional, tag = "14")]
    pub resume_token: Option<Bytes>,
    /// The server's wall clock, in milliseconds since 1970, for people.
    #[prost(uint64, tag = "15")]
    pub clock: u64,
}

/// Something was refused that has no answer of its own.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Error {
    /// The request, 0 if none.
    #[prost(uint64, tag = "1")]
    pub req: u64,
    /// Why.
    #[prost(message, optional, tag = "2")]
    pub err: Option<Err>,
}

/// Asks whether the peer lives, or says so.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Ping {
    /// Comes back in the answer.
    #[prost(uint64, tag = "1")]
    pub nonce: u64,
    /// How long the asking side waits, in milliseconds.
    #[prost(uint64, tag = "2")]
    pub deadline: u64,
}

/// A side ends the session in order.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Goodbye {
    /// As [`GoodbyeReason`] numbers them.
    #[prost(uint32, tag = "1")]
    pub reason: u32,
    /// For people.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum GoodbyeReason {
    /// The client is done.
    ClientGoodbye = 1,
    /// Nothing was heard from the client for too long.
    LivenessExpired = 2,
    /// The worker was drained and has finished.
    Drained = 3,
    /// An operator put it out.
    Evicted = 4,
    /// Its credentials are over.
    AuthExpired = 5,
    /// The same instance came back on another session.
    Superseded = 6,
    /// It broke the protocol.
    ProtocolViolation = 7,
    /// The server is leaving.
    ServerShutdown = 8,
}

impl GoodbyeReason {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The reason of a number; one of a later version is none.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::ClientGoodbye,
            2 => Self::LivenessExpired,
            3 => Self::Drained,
            4 => Self::Evicted,
            5 => Self::AuthExpired,
            6 => Self::Superseded,
            7 => Self::ProtocolViolation,
            8 => Self::ServerShutdown,
            _ => return None,
        })
    }
}
