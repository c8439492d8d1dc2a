//! Hands what arrives to the driver.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use quinn::{ReadError, RecvStream, Side};

use super::{Link, LinkError, StreamName};
use crate::proto::{Channel, Decoder, Driver};
use crate::quic::limits;

/// Reads until the connection is gone or the peer broke the protocol.
///
/// # Cancel safety
/// Not to be resumed: what was read is with the driver, the rest of a frame is not.
pub(super) async fn read<D: Driver>(
    link: Rc<Link<D>>,
    streams: Vec<(Channel, RecvStream)>,
) -> Result<Infallible, LinkError> {
    let mut reader = Reader {
        link: &link,
        streams: streams
            .into_iter()
            .map(|(channel, recv)| Inbound::new(channel.into(), channel, recv))
            .collect(),
        payloads: Vec::new(),
        segments: std::array::from_fn(|_| Bytes::new()),
    };
    let mut accept_bi = pin!(link.connection.accept_bi());
    let mut accept_uni = pin!(link.connection.accept_uni());
    let is_server = link.connection.side() == Side::Server;
    poll_fn(|cx| {
        let mut budget = limits::READ_BUDGET;
        if is_server {
            while let Poll::Ready(opened) = accept_bi.as_mut().poll(cx) {
                let (send, recv) = opened?;
                accept_bi.set(link.connection.accept_bi());
                let Some(channel) = channel_of(&recv) else { continue };
                link.opened.borrow_mut().push((channel, send));
                link.wake.wake();
                reader.streams.push(Inbound::new(channel.into(), channel, recv));
            }
        }
        while let Poll::Ready(opened) = accept_uni.as_mut().poll(cx) {
            reader.payloads.push(Inbound::new(StreamName::Payload, Channel::Control, opened?));
            accept_uni.set(link.connection.accept_uni());
        }
        let read = reader.read(cx, &mut budget);
        // One ring a batch; an answer may be due whatever became of the rest.
        if budget < limits::READ_BUDGET {
            link.wake.wake();
        }
        read?;
        if budget == 0 {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await
}

struct Reader<'a, D> {
    link: &'a Link<D>,
    streams: Vec<Inbound>,
    payloads: Vec<Inbound>,
    /// Where a stream's segments are put before they are decoded.
    segments: [Bytes; limits::READ_SEGMENTS],
}

struct Inbound {
    name: StreamName,
    channel: Channel,
    recv: RecvStream,
    decoder: Decoder,
    ended: bool,
}

impl Inbound {
    fn new(name: StreamName, channel: Channel, recv: RecvStream) -> Self {
        Self { name, channel, recv, decoder: Decoder::default(), ended: false }
    }

    /// The peer has no more to say here; it must have finished its sentence.
    fn end(&mut self) -> Result<(), LinkError> {
        self.ended = true;
        if self.decoder.is_empty() {
            Ok(())
        } else {
            Err(LinkError::StreamGone { stream: self.name })
        }
    }

    /// The peer broke off. A payload it may give up, the other streams carry the session.
    fn reset(&mut self) -> Result<(), LinkError> {
        self.ended = true;
        if self.name == StreamName::Payload {
            Ok(())
        } else {
            Err(LinkError::StreamGone { stream: self.name })
        }
    }
}

impl<D: Driver> Reader<'_, D> {
    /// Reads every stream until it has no more or the budget is spent.
    fn read(&mut self, cx: &mut Context<'_>, budget: &mut usize) -> Result<(), LinkError> {
        let now = self.link.config.clock.now();
        let mut driver = self.link.driver.borrow_mut();
        for inbound in self.streams.iter_mut().chain(&mut self.payloads) {
            while !inbound.ended && *budget > 0 {
                // Dropping the future is safe: either it read and is ready, or it read nothing.
                let read = pin!(inbound.recv.read_chunks(&mut self.segments)).poll(cx);
                let count = match read {
                    Poll::Pending => break,
                    Poll::Ready(Ok(Some(count))) => count,
                    Poll::Ready(Ok(None)) => {
                        inbound.end()?;
                        break;
                    }
                    Poll::Ready(Err(ReadError::ConnectionLost(lost))) => return Err(lost.into()),
                    Poll::Ready(Err(_)) => {
                        inbound.reset()?;
                        break;
                    }
                };
                for segment in self.segments.iter_mut().take(count) {
                    let segment = std::mem::take(segment);
                    *budget = budget.saturating_sub(segment.len());
                    inbound.decoder.push(segment);
                    while let Some(frame) = inbound.decoder.next()? {
                        driver.handle_frame(inbound.channel, frame, now)?;
                    }
                }
            }
        }
        self.payloads.retain(|inbound| !inbound.ended);
        Ok(())
    }
}

/// The number of a stream says what it is: streams are opened, and accepted, in order. One beyond
/// the lanes is turned away by being dropped.
fn channel_of(recv: &RecvStream) -> Option<Channel> {
    match recv.id().index().checked_sub(1) {
        None => Some(Channel::Control),
        Some(lane) => {
            u8::try_from(lane).ok().filter(|&lane| lane < limits::LANES_MAX).map(Channel::Lane)
        }
    }
}
