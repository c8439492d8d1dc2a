//! Frames: their types, and how they become bytes and back.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use thiserror::Error as ThisError;

use super::code::WireCode;
use super::messages as m;
use super::{limits, varint};

/// The peer broke the protocol, or asked for what cannot be agreed upon: the session ends.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{code}: {message}")]
pub struct ProtocolError {
    code: WireCode,
    message: String,
}

impl ProtocolError {
    /// Ends a session with that code; the message is for people at the other end.
    #[must_use]
    pub fn new(code: WireCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A violation.
    #[must_use]
    pub fn violation(message: impl Into<String>) -> Self {
        Self::new(WireCode::ProtocolViolation, message)
    }

    /// What is wrong, as a code.
    #[must_use]
    pub const fn code(&self) -> WireCode {
        self.code
    }

    /// What is wrong, for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

static NO_PAYLOAD: Bytes = Bytes::new();

macro_rules! frames {
    (
        bare { $($(#[$bdoc:meta])* $bname:ident($bmessage:ty) = $btype:literal;)* }
        loaded { $($(#[$ldoc:meta])* $lname:ident($lmessage:ty) = $ltype:literal, $lmax:expr;)* }
    ) => {
        /// One frame.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Frame {
            $($(#[$bdoc])* $bname($bmessage),)*
            $($(#[$ldoc])* $lname($lmessage, Bytes),)*
            /// A piece of a large payload.
            Payload {
                /// Which payload.
                stream_ref: u64,
                /// How many bytes came before.
                offset: u64,
                /// Nothing follows.
                last: bool,
                /// The bytes.
                bytes: Bytes,
            },
        }

        impl Frame {
            /// The type's number.
            #[must_use]
            pub const fn number(&self) -> u8 {
                match self {
                    $(Self::$bname(_) => $btype,)*
                    $(Self::$lname(..) => $ltype,)*
                    Self::Payload { .. } => 0x40,
                }
            }

            /// The type's name.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$bname(_) => stringify!($bname),)*
                    $(Self::$lname(..) => stringify!($lname),)*
                    Self::Payload { .. } => "Payload",
                }
            }

            /// The bytes that travel behind the header.
            #[must_use]
            pub fn payload(&self) -> &Bytes {
                match self {
                    $(Self::$bname(_) => &NO_PAYLOAD,)*
                    $(Self::$lname(_, payload) => payload,)*
                    Self::Payload { bytes, .. } => bytes,
                }
            }

            /// Appends all of the frame but its payload.
            pub fn encode_head(&self, out: &mut BytesMut) {
                match self {
                    $(Self::$bname(message) => head($btype, message, 0, out),)*
                    $(Self::$lname(message, payload) => {
                        head($ltype, message, payload.len(), out);
                    })*
                    Self::Payload { stream_ref, offset, last, bytes } => {
                        let (stream_ref, offset, last) = (*stream_ref, *offset, *last);
                        let message = m::Piece { stream_ref, offset, last };
                        head(0x40, &message, bytes.len(), out);
                    }
                }
            }

            /// Reads a frame of a known type; none if the type is to be skipped.
            pub(crate) fn decode(
                number: u8,
                header: Bytes,
                payload: Bytes,
            ) -> Result<Option<Self>, ProtocolError> {
                Ok(Some(match number {
                    $($btype => Self::$bname(read(stringify!($bname), header)?),)*
                    $($ltype => Self::$lname(read(stringify!($lname), header)?, payload),)*
                    0x40 => {
                        let m::Piece { stream_ref, offset, last } = read("Payload", header)?;
                        Self::Payload { stream_ref, offset, last, bytes: payload }
                    }
                    _ => return Ok(None),
                }))
            }
        }

        /// The most payload bytes of a frame of that type; none if it is no frame of ours.
        pub(crate) const fn payload_max(number: u8) -> Option<usize> {
            match number {
                $($btype => Some(0),)*
                $($ltype => Some($lmax),)*
                0x40 => Some(limits::PIECE_MAX),
                0x80.. => Some(limits::INLINE_PAYLOAD_MAX),
                _ => None,
            }
        }
    };
}

frames! {
    bare {
        /// The client's first frame.
        Hello(Box<m::Hello>) = 0x01;
        /// The server's answer to it.
        HelloAck(Box<m::HelloAck>) = 0x02;
        /// A refusal that has no answer of its own.
        Error(m::Error) = 0x03;
        /// Asks whether the peer lives.
        Ping(m::Ping) = 0x04;
        /// Says so.
        Pong(m::Ping) = 0x05;
        /// A side ends the session in order.
        Goodbye(m::Goodbye) = 0x07;
        /// The other side has heard it.
        GoodbyeAck(m::Goodbye) = 0x08;
        /// A worker registers.
        Register(Box<m::Register>) = 0x10;
        /// The answer to it and to an update.
        RegisterAck(m::RegisterAck) = 0x11;
        /// A worker changes what it serves.
        Update(Box<m::Register>) = 0x12;
        /// How many tasks a worker takes at once.
        Credit(m::Credit) = 0x13;
        /// How many tasks wait.
        Demand(m::Demand) = 0x14;
        /// A worker begins.
        Accept(m::Accept) = 0x19;
        /// A worker hands an offer back.
        Reject(m::Reject) = 0x1a;
        /// A worker is alive and at work.
        Heartbeat(m::Heartbeat) = 0x1b;
        /// The answer to it.
        HeartbeatAck(m::HeartbeatAck) = 0x1c;
        /// What reports came to.
        ResultAck(m::ResultAck) = 0x1e;
        /// A worker is to stop working on a delivery.
        Cancel(m::Cancel) = 0x1f;
        /// What became of a signal.
        SignalAck(m::SignalAck) = 0x21;
        /// A side is to finish and leave.
        Drain(m::Drain) = 0x22;
        /// The answer to it.
        DrainAck(m::DrainAck) = 0x23;
        /// What became of a task that was handed in.
        SubmitAck(m::SubmitAck) = 0x31;
        /// What became of tasks that were handed in.
        SubmitBatchAck(m::SubmitBatchAck) = 0x33;
        /// A producer waits for an outcome.
        Await(m::Await) = 0x34;
        /// A client is told what happens.
        Watch(m::Watch) = 0x36;
        /// Something happened.
        Event(Box<m::Event>) = 0x37;
        /// Tasks are to stop.
        CancelTask(m::CancelTask) = 0x38;
        /// The answer to it.
        CancelTaskAck(m::CancelTaskAck) = 0x39;
        /// A question.
        Query(m::Query) = 0x3a;
        /// The answer to it.
        Reply(m::Reply) = 0x3b;
        /// An operator does something.
        Admin(m::Admin) = 0x3c;
        /// The answer to it.
        AdminAck(m::AdminAck) = 0x3d;
    }
    loaded {
        /// A task for a worker.
        Offer(Box<m::Offer>) = 0x18, limits::INLINE_PAYLOAD_MAX;
        /// How a delivery ended.
        Result(m::TaskResult) = 0x1d, limits::INLINE_PAYLOAD_MAX;
        /// Bytes for whoever holds a lease.
        Signal(m::Signal) = 0x20, limits::SIGNAL_MAX;
        /// A producer hands a task in.
        Submit(Box<m::Submit>) = 0x30, limits::INLINE_PAYLOAD_MAX;
        /// A producer hands tasks in.
        SubmitBatch(m::SubmitBatch) = 0x32, limits::BATCH_BYTES_MAX;
        /// How a task ended.
        Outcome(Box<m::Outcome>) = 0x35, limits::INLINE_PAYLOAD_MAX;
    }
}

fn head<M: Message>(number: u8, message: &M, payload: usize, out: &mut BytesMut) {
    let header = message.encoded_len();
    out.reserve(header.saturating_add(16));
    out.put_u8(number);
    varint::write(header as u64, out);
    varint::write(payload as u64, out);
    message.encode_raw(out);
}

fn read<M: Message + Default>(name: &str, header: Bytes) -> Result<M, ProtocolError> {
    M::decode(header).map_err(|error| {
        ProtocolError::new(WireCode::Malformed, format!("the header of {name}: {error}"))
    })
}
