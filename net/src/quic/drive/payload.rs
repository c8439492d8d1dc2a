//! Large payloads on their way, each on a stream of its own.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn::{Connection, SendStream, WriteError};

use super::outgoing::Outgoing;
use super::{LinkError, StreamName};

type Opening = Pin<Box<dyn Future<Output = Result<SendStream, LinkError>>>>;

/// Payload streams: some open, the others in line.
#[derive(Debug)]
pub(super) struct Payloads {
    connection: Connection,
    deadline: Duration,
    open_max: usize,
    open: Vec<Payload>,
    line: VecDeque<Payload>,
    waiting: usize,
}

struct Payload {
    stream_ref: u64,
    out: Outgoing,
    stream: Option<SendStream>,
    opening: Option<Opening>,
    /// The last frame was pushed.
    complete: bool,
    /// The peer wants no more of it: further frames are dropped.
    refused: bool,
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payload").field("stream_ref", &self.stream_ref).finish_non_exhaustive()
    }
}

impl Payloads {
    /// Opens at most `open_max` streams at once, each within `deadline`.
    pub(super) fn new(connection: Connection, deadline: Duration, open_max: usize) -> Self {
        Self { connection, deadline, open_max, open: Vec::new(), line: VecDeque::new(), waiting: 0 }
    }

    /// Returns how many bytes wait.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Appends a frame to the stream of its payload.
    pub(super) fn push(
        &mut self,
        stream_ref: u64,
        last: bool,
        head: impl FnOnce(&mut BytesMut),
        bytes: &Bytes,
    ) -> usize {
        let mut known = self.open.iter_mut().chain(self.line.iter_mut());
        let is_it = |payload: &&mut Payload| payload.stream_ref == stream_ref && !payload.complete;
        let pushed = match known.find(is_it) {
            Some(payload) => payload.push(last, head, bytes),
            None => {
                let mut payload = Payload {
                    stream_ref,
                    out: Outgoing::default(),
                    stream: None,
                    opening: None,
                    complete: false,
                    refused: false,
                };
                let pushed = payload.push(last, head, bytes);
                self.line.push_back(payload);
                pushed
            }
        };
        self.waiting = self.waiting.saturating_add(pushed);
        pushed
    }

    /// Hands over what the streams take without waiting.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        loop {
            while self.open.len() < self.open_max {
                let Some(payload) = self.line.pop_front() else { break };
                self.open.push(payload);
            }
            let mut at = 0;
            while let Some(payload) = self.open.get_mut(at) {
                let before = payload.out.waiting();
                let written = payload.poll_write(cx, &self.connection, self.deadline)?;
                let now = payload.out.waiting();
                self.waiting = self.waiting.saturating_sub(before.saturating_sub(now));
                if written.is_ready() && payload.complete {
                    self.open.swap_remove(at);
                } else {
                    at = at.saturating_add(1);
                }
            }
            if self.line.is_empty() || self.open.len() >= self.open_max {
                break;
            }
        }
        if self.waiting == 0 { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl Payload {
    fn push(&mut self, last: bool, head: impl FnOnce(&mut BytesMut), bytes: &Bytes) -> usize {
        self.complete |= last;
        if self.refused { 0 } else { self.out.push(head, bytes) }
    }

    /// Ready when nothing waits here, or when the peer wants no more of it.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        connection: &Connection,
        deadline: Duration,
    ) -> Poll<Result<(), LinkError>> {
        if self.refused {
            return Poll::Ready(Ok(()));
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let opening =
                    self.opening.get_or_insert_with(|| open(connection.clone(), deadline));
                let Poll::Ready(stream) = opening.as_mut().poll(cx) else { return Poll::Pending };
                self.opening = None;
                self.stream.insert(stream?)
            }
        };
        match self.out.poll_write(cx, stream) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => {
                if self.complete {
                    // Fails only if the stream is closed already.
                    let _ = stream.finish();
                }
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(WriteError::ConnectionLost(lost))) => Poll::Ready(Err(lost.into())),
            Poll::Ready(Err(_)) => {
                // The peer stopped it: whoever sent the payload learns of its fate by frames.
                self.refused = true;
                self.out = Outgoing::default();
                Poll::Ready(Ok(()))
            }
        }
    }
}

fn open(connection: Connection, after: Duration) -> Opening {
    Box::pin(async move {
        let opened = tokio::time::timeout(after, connection.open_uni()).await;
        let stream = StreamName::Payload;
        Ok(opened.map_err(|_| LinkError::StreamOpenTimedOut { stream, after })??)
    })
}
