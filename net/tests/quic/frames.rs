//! The few frames that the tests send.

use bytes::Bytes;
use slipswitch_net::proto::{Frame, ProtocolError, messages as m};

pub(crate) fn ping(nonce: u64) -> Frame {
    Frame::Ping(m::Ping { nonce, deadline: 0 })
}

pub(crate) fn goodbye() -> Frame {
    Frame::Goodbye(m::Goodbye::default())
}

pub(crate) fn goodbye_ack() -> Frame {
    Frame::GoodbyeAck(m::Goodbye::default())
}

/// A frame that carries a payload beside its header.
pub(crate) fn loaded(number: u64, payload: Bytes) -> Frame {
    Frame::Offer(Box::new(m::Offer { ordinal: number, ..m::Offer::default() }), payload)
}

pub(crate) fn piece(stream_ref: u64, offset: u64, last: bool, bytes: Bytes) -> Frame {
    Frame::Payload { stream_ref, offset, last, bytes }
}

/// The number of a ping.
pub(crate) fn nonce(frame: &Frame) -> Option<u64> {
    match frame {
        Frame::Ping(ping) => Some(ping.nonce),
        _ => None,
    }
}

/// The number and payload of a loaded frame.
pub(crate) fn load(frame: &Frame) -> Option<(u64, &Bytes)> {
    match frame {
        Frame::Offer(offer, payload) => Some((offer.ordinal, payload)),
        _ => None,
    }
}

/// The bytes of a piece of a large payload, and where they belong.
pub(crate) fn bytes_of(frame: &Frame) -> Option<(u64, u64, bool, &Bytes)> {
    match frame {
        Frame::Payload { stream_ref, offset, last, bytes } => {
            Some((*stream_ref, *offset, *last, bytes))
        }
        _ => None,
    }
}

pub(crate) fn violation() -> ProtocolError {
    ProtocolError::violation("planted")
}
