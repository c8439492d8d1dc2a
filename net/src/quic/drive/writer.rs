//! Takes frames from the driver and hands them to the streams.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use quinn::{SendStream, WriteError};
use slipswitch_core::Instant;
use tokio::time::{Sleep, sleep_until};

use super::outgoing::Outgoing;
use super::payload::Payloads;
use super::{LANE_OPENER, Link, LinkError, StreamName};
use crate::clock::Clock;
use crate::proto::{Channel, Driver, Frame};
use crate::quic::limits;

/// Sends before the others: a heartbeat never waits for a result.
const CONTROL_PRIORITY: i32 = 1;

/// Writes until the session is closed and flushed, or broke down.
///
/// # Cancel safety
/// Not to be resumed: what was taken from the driver is gone.
pub(super) async fn write<D: Driver>(link: Rc<Link<D>>) -> Result<(), LinkError> {
    let wake = &link.wake;
    let mut writer = Writer::new(&link);
    let mut noted = pin!(wake.noted());
    loop {
        let taken = writer.take();
        if writer.is_stuck_at_the_end() {
            return Ok(());
        }
        let next = poll_fn(|cx| {
            let flushed = writer.poll_write(cx)?.is_ready();
            if taken.more && writer.backlog() < limits::LANE_BACKLOG {
                return Poll::Ready(Ok(Next::More));
            }
            if taken.closed && flushed {
                return Poll::Ready(Ok(Next::Closed));
            }
            if noted.as_mut().poll(cx).is_ready() {
                noted.set(wake.noted());
                return Poll::Ready(Ok(Next::Again));
            }
            writer.timer.poll(cx).map(|()| Ok::<_, LinkError>(Next::Again))
        });
        match next.await? {
            Next::More => turn().await,
            Next::Again => {}
            Next::Closed => return writer.finish().await,
        }
    }
}

enum Next {
    /// The driver has more to send: go on when others had their turn.
    More,
    /// Something happened: ask the driver.
    Again,
    /// All was said.
    Closed,
}

struct Taken {
    more: bool,
    closed: bool,
}

struct Writer<'a, D> {
    link: &'a Link<D>,
    /// Control, then the lanes.
    outs: Vec<Out>,
    payloads: Payloads,
    timer: Timer,
    /// When bytes began to wait for a stream that the peer has not opened.
    missing: Option<(StreamName, Instant)>,
    /// Once the driver is closed: what was still to be written, and until when that has to change.
    ending: Option<(usize, Instant)>,
}

#[derive(Default)]
struct Out {
    bytes: Outgoing,
    stream: Option<SendStream>,
}

impl<'a, D: Driver> Writer<'a, D> {
    fn new(link: &'a Link<D>) -> Self {
        let streams = limits::payload_streams(link.config.lanes);
        let payloads = Payloads::new(link.connection.clone(), link.config.stream_open, streams);
        let timer = Timer::new(link.config.clock);
        let mut writer =
            Self { link, outs: Vec::new(), payloads, timer, missing: None, ending: None };
        writer.adopt();
        if let Some(last) = writer.outs.get_mut(1..).and_then(<[Out]>::last_mut) {
            last.bytes.push_raw(LANE_OPENER);
        }
        writer
    }

    /// Takes over the streams that were opened meanwhile.
    fn adopt(&mut self) {
        let link = self.link;
        for (channel, stream) in link.opened.borrow_mut().drain(..) {
            if channel == Channel::Control {
                // Fails only if the stream is closed already; writing will say so.
                let _ = stream.set_priority(CONTROL_PRIORITY);
            }
            self.out(channel).stream = Some(stream);
        }
    }

    fn out(&mut self, channel: Channel) -> &mut Out {
        let place = match channel {
            Channel::Control => 0,
            Channel::Lane(lane) => usize::from(lane) + 1,
        };
        if self.outs.len() <= place {
            self.outs.resize_with(place + 1, Out::default);
        }
        &mut self.outs[place]
    }

    /// Takes what the driver has to send, up to the budget.
    fn take(&mut self) -> Taken {
        self.adopt();
        let now = self.link.config.clock.now();
        let driver = Rc::clone(&self.link.driver);
        let mut driver = driver.borrow_mut();
        if driver.poll_timeout().is_some_and(|due| due <= now) {
            driver.handle_timeout(now);
        }
        let mut budget = limits::WRITE_BUDGET;
        let more = loop {
            let Some((channel, frame)) = driver.poll_transmit(now) else { break false };
            budget = budget.saturating_sub(self.push(channel, &frame));
            if budget == 0 {
                break true;
            }
        };
        self.timer.arm(driver.poll_timeout());
        let closed = !more && (driver.is_closed() || self.link.last_word.get());
        Taken { more, closed }
    }

    fn push(&mut self, channel: Channel, frame: &Frame) -> usize {
        let head = |out: &mut BytesMut| frame.encode_head(out);
        let bytes = frame.payload();
        match *frame {
            Frame::Payload { stream_ref, last, .. } => {
                self.payloads.push(stream_ref, last, head, bytes)
            }
            _ => self.out(channel).bytes.push(head, bytes),
        }
    }

    fn backlog(&self) -> usize {
        let outs = self.outs.iter().map(|out| out.bytes.waiting());
        outs.sum::<usize>().saturating_add(self.payloads.waiting())
    }

    /// Hands over what the streams take without waiting; ready when nothing is left.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        let mut flushed = true;
        let mut missing = None;
        for (place, out) in self.outs.iter_mut().enumerate() {
            if out.bytes.waiting() == 0 {
                continue;
            }
            let name = name(place);
            let Some(stream) = &mut out.stream else {
                missing = missing.or(Some(name));
                flushed = false;
                continue;
            };
            match out.bytes.poll_write(cx, stream) {
                Poll::Ready(Ok(())) => {}
                Poll::Pending => flushed = false,
                Poll::Ready(Err(WriteError::ConnectionLost(lost))) => {
                    return Poll::Ready(Err(lost.into()));
                }
                Poll::Ready(Err(_)) => {
                    return Poll::Ready(Err(LinkError::StreamGone { stream: name }));
                }
            }
        }
        flushed &= self.payloads.poll_write(cx)?.is_ready();
        self.await_stream(missing)?;
        if flushed { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Gives up when the peer does not open a stream that bytes wait for.
    fn await_stream(&mut self, missing: Option<StreamName>) -> Result<(), LinkError> {
        let Some(stream) = missing else {
            self.missing = None;
            return Ok(());
        };
        let now = self.link.config.clock.now();
        let after = self.link.config.stream_open;
        let since = match self.missing {
            Some((name, since)) if name == stream => since,
            _ => now,
        };
        self.missing = Some((stream, since));
        if now >= since + after {
            return Err(LinkError::StreamOpenTimedOut { stream, after });
        }
        self.timer.arm(Some(since + after));
        Ok(())
    }

    /// Says whether a session that is over makes no progress: its peer takes nothing more, and would
    /// keep its place for as long as it likes.
    fn is_stuck_at_the_end(&mut self) -> bool {
        if !self.link.driver.borrow().is_closed() && !self.link.last_word.get() {
            return false;
        }
        let (now, left) = (self.link.config.clock.now(), self.backlog());
        let due = match self.ending {
            Some((before, due)) if before == left => due,
            _ => now + self.link.config.flush,
        };
        self.ending = Some((left, due));
        self.timer.arm(Some(due));
        now >= due
    }

    /// Finishes the streams and waits until the peer has acknowledged all that they carried.
    async fn finish(mut self) -> Result<(), LinkError> {
        let mut streams: Vec<_> =
            self.outs.iter_mut().filter_map(|out| out.stream.take()).collect();
        let acknowledged = async {
            for stream in &mut streams {
                if stream.finish().is_ok() {
                    // An error says that the peer has closed: it heard what it wanted to hear.
                    let _ = stream.stopped().await;
                }
            }
        };
        // On a link this bad the peer finds out by itself.
        let _ = tokio::time::timeout(self.link.config.flush, acknowledged).await;
        Ok(())
    }
}

fn name(place: usize) -> StreamName {
    match u8::try_from(place).ok().and_then(|place| place.checked_sub(1)) {
        None => StreamName::Control,
        Some(lane) => StreamName::Lane(lane),
    }
}

/// Lets the other tasks of the thread run once: the one that sends packets, above all.
async fn turn() {
    let mut passed = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut passed, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The writer's one timer. Moving it is dearer than a needless wake-up: it is armed for the
/// earliest deadline seen and asks again when that has passed.
struct Timer {
    clock: Clock,
    sleep: Pin<Box<Sleep>>,
    armed: Option<Instant>,
}

impl Timer {
    fn new(clock: Clock) -> Self {
        let sleep = Box::pin(sleep_until(clock.deadline(clock.now()).into()));
        Self { clock, sleep, armed: None }
    }

    fn arm(&mut self, due: Option<Instant>) {
        let Some(due) = due else { return };
        if self.armed.is_none_or(|armed| due < armed) {
            self.armed = Some(due);
            self.sleep.as_mut().reset(self.clock.deadline(due).into());
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.armed.is_none() || self.sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.armed = None;
        Poll::Ready(())
    }
}
