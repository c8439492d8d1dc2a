//! Bytes of one stream to frames, however they were cut.

use bytes::{Bytes, BytesMut};

use super::census;
use super::frame::{Frame, ProtocolError, payload_max};
use super::limits;
use super::varint::{self, Read};

/// Puts the frames of one stream together again.
///
/// A frame that lies in one chunk is a slice of it. One that does not is gathered; memory grows
/// only with the bytes that have arrived, whatever length was declared.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes that no frame was made of yet, unless `partial` has some.
    chunk: Bytes,
    /// The beginning of a frame, up to all of it.
    partial: BytesMut,
}

/// What the first bytes of a frame say.
#[derive(Clone, Copy, Debug)]
struct Prefix {
    number: u8,
    /// Where the header begins.
    start: usize,
    header: usize,
    total: usize,
}

impl Decoder {
    /// Adds the bytes that came next. Take all frames before adding more.
    pub fn push(&mut self, bytes: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = bytes;
        } else {
            // Against the advice: no byte is lost for it.
            let mut joined = BytesMut::from(&self.chunk[..]);
            joined.extend_from_slice(&bytes);
            self.chunk = joined.freeze();
        }
    }

    /// Says whether no part of a frame is waiting for the rest.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunk.is_empty() && self.partial.is_empty()
    }

    /// The next frame, if all of it has arrived. Frames of types that are to be skipped are.
    ///
    /// # Errors
    ///
    /// The bytes are none of this protocol's; what follows cannot be read any more.
    #[expect(clippy::should_implement_trait, reason = "fallible, and goes on after none")]
    pub fn next(&mut self) -> Result<Option<Frame>, ProtocolError> {
        loop {
            let Some((number, header, payload)) = self.next_raw()? else { return Ok(None) };
            census::check(number, &header)?;
            if let Some(frame) = Frame::decode(number, header, payload)? {
                return Ok(Some(frame));
            }
        }
    }

    fn next_raw(&mut self) -> Result<Option<(u8, Bytes, Bytes)>, ProtocolError> {
        if self.partial.is_empty() {
            match prefix(&self.chunk)? {
                Some(prefix) if prefix.total <= self.chunk.len() => {
                    let frame = self.chunk.split_to(prefix.total);
                    return Ok(Some(cut(prefix, frame)));
                }
                _ if self.chunk.is_empty() => return Ok(None),
                _ => {
                    self.partial.extend_from_slice(&self.chunk);
                    self.chunk = Bytes::new();
                    return Ok(None);
                }
            }
        }
        loop {
            let missing = match prefix(&self.partial)? {
                Some(prefix) if prefix.total <= self.partial.len() => {
                    let frame = std::mem::take(&mut self.partial).freeze();
                    return Ok(Some(cut(prefix, frame)));
                }
                Some(prefix) => prefix.total.saturating_sub(self.partial.len()),
                // Byte by byte: the frame may end right behind its prefix.
                None => 1,
            };
            if self.chunk.is_empty() {
                return Ok(None);
            }
            let part = self.chunk.split_to(missing.min(self.chunk.len()));
            self.partial.extend_from_slice(&part);
        }
    }
}

fn cut(prefix: Prefix, mut frame: Bytes) -> (u8, Bytes, Bytes) {
    let mut body = frame.split_off(prefix.start);
    let payload = body.split_off(prefix.header);
    (prefix.number, body, payload)
}

/// Reads type and lengths, and refuses what is over a limit before it has arrived.
fn prefix(bytes: &[u8]) -> Result<Option<Prefix>, ProtocolError> {
    let Some((&number, rest)) = bytes.split_first() else { return Ok(None) };
    let Some(payload_max) = payload_max(number) else {
        return Err(ProtocolError::violation(format!("frame type {number:#04x} is not known")));
    };
    let Some((header, after_header)) = length(rest)? else { return Ok(None) };
    if header > limits::HEADER_MAX {
        let max = limits::HEADER_MAX;
        let what = format!("frame type {number:#04x}: a header of {header} bytes, at most {max}");
        return Err(ProtocolError::violation(what));
    }
    let rest = rest.get(after_header..).unwrap_or_default();
    let Some((payload, after_payload)) = length(rest)? else { return Ok(None) };
    if payload > payload_max {
        let what = format!(
            "frame type {number:#04x}: a payload of {payload} bytes, at most {payload_max}"
        );
        return Err(ProtocolError::violation(what));
    }
    let start = after_header.saturating_add(after_payload).saturating_add(1);
    let total = start.saturating_add(header).saturating_add(payload);
    Ok(Some(Prefix { number, start, header, total }))
}

fn length(bytes: &[u8]) -> Result<Option<(usize, usize)>, ProtocolError> {
    match varint::read(bytes) {
        Read::Value(value, took) => Ok(Some((usize::try_from(value).unwrap_or(usize::MAX), took))),
        Read::Incomplete => Ok(None),
        Read::TooLong => Err(ProtocolError::violation("a length of more than five bytes")),
    }
}
