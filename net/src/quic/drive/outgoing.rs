//! Bytes on their way into one stream.

use std::pin::pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use quinn::{SendStream, WriteError};

/// A payload of at least this many bytes is handed over as the slice that it is. A smaller one is
/// copied beside its header: the transport looks for the bytes of every packet by walking its
/// segments, so that a segment costs more than the copy.
const SLICE_MIN: usize = 2 << 10;
/// Bounds of the block that small frames are gathered in.
const BLOCK_MIN: usize = 512;
const BLOCK_MAX: usize = 64 << 10;
/// Written chunks kept in front of the others before they are moved out of the way.
const WRITTEN_MAX: usize = 1_024;

/// What waits to be written to one stream, in order.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Frames gathered, behind everything in `chunks`.
    tail: BytesMut,
    /// Written from `next` on; what lies before is empty.
    chunks: Vec<Bytes>,
    next: usize,
    /// Bytes in `chunks` and `tail` not yet taken by the stream.
    waiting: usize,
    /// The size of the last batch: the block of the next one.
    block: usize,
}

impl Outgoing {
    /// Returns how many bytes wait.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Appends a frame: `head` writes all but the payload. Returns the bytes appended.
    pub(super) fn push(&mut self, head: impl FnOnce(&mut BytesMut), payload: &Bytes) -> usize {
        if self.tail.capacity() == self.tail.len() {
            self.tail.reserve(self.block.clamp(BLOCK_MIN, BLOCK_MAX));
        }
        let before = self.tail.len();
        head(&mut self.tail);
        if payload.len() < SLICE_MIN {
            self.tail.extend_from_slice(payload);
        }
        let mut bytes = self.tail.len().saturating_sub(before);
        if payload.len() >= SLICE_MIN {
            self.seal();
            self.chunks.push(payload.clone());
            bytes = bytes.saturating_add(payload.len());
        }
        self.waiting = self.waiting.saturating_add(bytes);
        bytes
    }

    /// Appends bytes as they are.
    pub(super) fn push_raw(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        self.waiting = self.waiting.saturating_add(bytes.len());
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.block = self.tail.len().next_power_of_two();
            self.chunks.push(self.tail.split().freeze());
        }
    }

    /// Hands over what the stream takes without waiting; pending while bytes are left.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut SendStream,
    ) -> Poll<Result<(), WriteError>> {
        self.seal();
        while let Some(chunks) = self.chunks.get_mut(self.next..).filter(|rest| !rest.is_empty()) {
            // Dropping the future is safe: either it wrote and is ready, or it wrote nothing.
            let Poll::Ready(written) = pin!(stream.write_chunks(chunks)).poll(cx) else {
                if self.next > WRITTEN_MAX {
                    self.chunks.drain(..self.next);
                    self.next = 0;
                }
                return Poll::Pending;
            };
            let written = written?;
            self.next = self.next.saturating_add(written.chunks);
            self.waiting = self.waiting.saturating_sub(written.bytes);
        }
        self.chunks.clear();
        self.next = 0;
        Poll::Ready(Ok(()))
    }
}
