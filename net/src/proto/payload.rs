//! Payloads on streams of their own: cut into pieces, and put together again.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use rustc_hash::FxHashMap;

use super::frame::{Frame, ProtocolError};
use super::limits;

/// The pieces of one payload, in order. Slices, not copies.
#[derive(Debug)]
pub struct Pieces {
    stream_ref: u64,
    offset: u64,
    rest: Option<Bytes>,
}

impl Pieces {
    /// Cuts a payload.
    #[must_use]
    pub const fn new(stream_ref: u64, payload: Bytes) -> Self {
        Self { stream_ref, offset: 0, rest: Some(payload) }
    }
}

impl Iterator for Pieces {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let mut rest = self.rest.take()?;
        let bytes = rest.split_to(rest.len().min(limits::PIECE_MAX));
        let (stream_ref, offset, last) = (self.stream_ref, self.offset, rest.is_empty());
        self.offset = self.offset.saturating_add(bytes.len() as u64);
        if !last {
            self.rest = Some(rest);
        }
        Some(Frame::Payload { stream_ref, offset, last, bytes })
    }
}

/// Payloads that leave beside their frames.
///
/// Frames must not run ahead of their payloads by more than the receiver keeps: while
/// [`Departures::is_full`], the sender sends pieces before it sends another frame with a large
/// payload. [`Departures::load`] is called when a frame is sent, not when it is queued.
#[derive(Debug, Default)]
pub struct Departures {
    next_ref: u64,
    pieces: VecDeque<Pieces>,
}

impl Departures {
    /// Leaves a payload in its frame, or gives it a stream of its own and leaves nothing.
    pub fn load(&mut self, payload: Bytes, stream_ref: &mut Option<u64>) -> Bytes {
        if payload.len() <= limits::INLINE_PAYLOAD_MAX {
            *stream_ref = None;
            return payload;
        }
        self.next_ref = self.next_ref.wrapping_add(1);
        *stream_ref = Some(self.next_ref);
        self.pieces.push_back(Pieces::new(self.next_ref, payload));
        Bytes::new()
    }

    /// The next piece to send: one payload after the other, in the order of their frames.
    pub fn next_piece(&mut self) -> Option<Frame> {
        let pieces = self.pieces.front_mut()?;
        let frame = pieces.next();
        if pieces.rest.is_none() {
            self.pieces.pop_front();
        }
        frame
    }

    /// Says whether pieces must go before another payload is loaded.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.pieces.len() >= limits::PAYLOADS_AHEAD_MAX
    }

    /// Says whether no piece is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Forgets what has not been sent.
    pub fn clear(&mut self) {
        self.pieces.clear();
    }
}

#[derive(Debug)]
enum Part {
    Growing(Growing),
    Complete(Loaded),
}

#[derive(Debug, Default)]
struct Growing {
    /// How much came.
    len: usize,
    /// All of it, or nothing if it is over the limit.
    bytes: BytesMut,
}

/// What became of a payload that travelled in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// It is here.
    Whole(Bytes),
    /// It had so many bytes, which is over the limit. They were let go as they came.
    TooLong(usize),
}

/// Payloads that are under way, and frames that wait for theirs.
///
/// Frame and payload travel on different streams, so either may be first. A payload over the limit
/// is read to its end, so that whoever sent its frame is answered and the session lives.
#[derive(Debug)]
pub struct Assembly<T> {
    parts: FxHashMap<u64, Part>,
    waiting: FxHashMap<u64, T>,
    bytes: usize,
    /// The most bytes of one payload.
    payload_max: usize,
}

impl<T> Assembly<T> {
    /// Takes payloads of at most `payload_max` bytes.
    #[must_use]
    pub fn new(payload_max: usize) -> Self {
        let payload_max = payload_max.min(limits::PAYLOAD_CAP);
        Self { parts: FxHashMap::default(), waiting: FxHashMap::default(), bytes: 0, payload_max }
    }

    /// Says whether a frame waits for its payload.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A frame came whose payload has that reference: both, if the payload is complete.
    ///
    /// # Errors
    ///
    /// The reference is in use, or too many frames wait.
    pub fn expect(
        &mut self,
        stream_ref: u64,
        frame: T,
    ) -> Result<Option<(T, Loaded)>, ProtocolError> {
        if let Some(Part::Complete(_)) = self.parts.get(&stream_ref)
            && let Some(Part::Complete(loaded)) = self.parts.remove(&stream_ref)
        {
            if let Loaded::Whole(bytes) = &loaded {
                self.bytes = self.bytes.saturating_sub(bytes.len());
            }
            return Ok(Some((frame, loaded)));
        }
        if self.waiting.len() >= limits::PAYLOADS_UNDER_WAY_MAX {
            return Err(ProtocolError::violation("too many frames wait for their payload"));
        }
        if self.waiting.insert(stream_ref, frame).is_some() {
            return Err(ProtocolError::violation("two frames name the same payload"));
        }
        Ok(None)
    }

    /// A piece came: the frame that waited for it, if the payload is complete.
    ///
    /// # Errors
    ///
    /// The piece is not the next one, or a limit is passed.
    pub fn piece(
        &mut self,
        stream_ref: u64,
        offset: u64,
        last: bool,
        bytes: &Bytes,
    ) -> Result<Option<(T, Loaded)>, ProtocolError> {
        let under_way = self.parts.len();
        let part = match self.parts.get_mut(&stream_ref) {
            Some(Part::Growing(part)) => part,
            Some(Part::Complete(_)) => {
                return Err(ProtocolError::violation("a piece behind the last of its payload"));
            }
            None if under_way >= limits::PAYLOADS_UNDER_WAY_MAX => {
                return Err(ProtocolError::violation("too many payloads are under way"));
            }
            None => match self.parts.entry(stream_ref).or_insert(Part::Growing(Growing::default()))
            {
                Part::Growing(part) => part,
                Part::Complete(_) => return Ok(None),
            },
        };
        if offset != part.len as u64 {
            let (at, came) = (part.len, offset);
            let what = format!("a piece at byte {came} of a payload of which {at} bytes came");
            return Err(ProtocolError::violation(what));
        }
        part.len = part.len.saturating_add(bytes.len());
        if part.len > limits::PAYLOAD_CAP {
            let max = limits::PAYLOAD_CAP;
            return Err(ProtocolError::violation(format!("a payload of more than {max} bytes")));
        }
        if part.len > self.payload_max {
            self.bytes = self.bytes.saturating_sub(part.bytes.len());
            part.bytes = BytesMut::new();
        } else {
            self.bytes = self.bytes.saturating_add(bytes.len());
            if self.bytes > limits::PAYLOAD_BYTES_UNDER_WAY_MAX {
                let max = limits::PAYLOAD_BYTES_UNDER_WAY_MAX;
                let what = format!("payloads under way: more than {max} bytes");
                return Err(ProtocolError::violation(what));
            }
            part.bytes.extend_from_slice(bytes);
        }
        if !last {
            return Ok(None);
        }
        let Some(Part::Growing(part)) = self.parts.remove(&stream_ref) else { return Ok(None) };
        let loaded = if part.len > self.payload_max {
            Loaded::TooLong(part.len)
        } else {
            Loaded::Whole(part.bytes.freeze())
        };
        if let Some(frame) = self.waiting.remove(&stream_ref) {
            if let Loaded::Whole(bytes) = &loaded {
                self.bytes = self.bytes.saturating_sub(bytes.len());
            }
            return Ok(Some((frame, loaded)));
        }
        self.parts.insert(stream_ref, Part::Complete(loaded));
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(stream_ref: u64, len: usize) -> (Bytes, Vec<(u64, bool, Bytes)>) {
        let payload: Bytes = (0..len).map(|at| (at % 251) as u8).collect();
        let cut = Pieces::new(stream_ref, payload.clone()).map(|piece| match piece {
            Frame::Payload { offset, last, bytes, .. } => (offset, last, bytes),
            other => panic!("{other:?}"),
        });
        (payload.clone(), cut.collect())
    }

    #[test]
    fn payloads_come_together_in_either_order() {
        for len in [0, 1, limits::PIECE_MAX, limits::PIECE_MAX + 1, 300_000] {
            for frame_first in [true, false] {
                let mut assembly = Assembly::new(limits::PAYLOAD_MAX);
                let (payload, cut) = pieces(5, len);
                let mut whole = None;
                if frame_first {
                    assert!(assembly.expect(5, "frame").unwrap().is_none());
                }
                for (offset, last, bytes) in &cut {
                    assert!(whole.is_none());
                    whole = assembly.piece(5, *offset, *last, bytes).unwrap();
                }
                if !frame_first {
                    assert!(whole.is_none());
                    whole = assembly.expect(5, "frame").unwrap();
                }
                assert_eq!(whole, Some(("frame", Loaded::Whole(payload))));
                assert_eq!((assembly.bytes, assembly.parts.len()), (0, 0));
            }
        }
    }

    #[test]
    fn pieces_are_slices() {
        let (payload, cut) = pieces(1, 200_000);
        for (offset, _, bytes) in cut {
            assert_eq!(bytes.as_ptr(), payload.slice(offset as usize..).as_ptr());
        }
    }

    #[test]
    fn gaps_repeats_and_floods_are_violations() {
        let bytes = Bytes::from_static(b"abc");
        let new = || Assembly::<()>::new(10);
        assert!(new().piece(1, 1, false, &bytes).is_err());
        let mut repeated = new();
        repeated.piece(1, 0, false, &bytes).unwrap();
        assert!(repeated.piece(1, 0, false, &bytes).is_err());
        let mut behind = new();
        behind.piece(1, 0, true, &bytes).unwrap();
        assert!(behind.piece(1, 3, true, &bytes).is_err());
        let mut many = new();
        for stream_ref in 0..limits::PAYLOADS_UNDER_WAY_MAX as u64 {
            many.piece(stream_ref, 0, false, &bytes).unwrap();
        }
        assert!(many.piece(u64::MAX, 0, false, &bytes).is_err());
        let mut frames = new();
        frames.expect(1, ()).unwrap();
        assert!(frames.expect(1, ()).is_err());
    }

    #[test]
    fn a_payload_over_the_limit_is_read_to_its_end_and_not_kept() {
        for frame_first in [true, false] {
            let mut assembly = Assembly::new(limits::PIECE_MAX);
            let (_, cut) = pieces(5, 3 * limits::PIECE_MAX);
            if frame_first {
                assert!(assembly.expect(5, "frame").unwrap().is_none());
            }
            let mut whole = None;
            for (offset, last, bytes) in &cut {
                whole = assembly.piece(5, *offset, *last, bytes).unwrap();
                assert!(assembly.bytes <= limits::PIECE_MAX);
            }
            if !frame_first {
                whole = assembly.expect(5, "frame").unwrap();
            }
            assert_eq!(whole, Some(("frame", Loaded::TooLong(3 * limits::PIECE_MAX))));
            assert_eq!((assembly.bytes, assembly.parts.len()), (0, 0));
        }
        // What no setting allows is a violation.
        let mut assembly = Assembly::<()>::new(10);
        let bytes = Bytes::from(vec![0; limits::PIECE_MAX]);
        let sent = (0..).map(|n| assembly.piece(1, n * limits::PIECE_MAX as u64, false, &bytes));
        let taken = sent.take_while(Result::is_ok).count();
        assert_eq!(taken, limits::PAYLOAD_CAP / limits::PIECE_MAX);
    }
}
