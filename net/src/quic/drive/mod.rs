//! Drives one session over one connection: a reader task and a writer task.
//!
//! Both run on the thread that owns the connection. The reader hands every frame that arrived to
//! the [`Driver`] and rings once per batch; the writer takes frames from the driver until there are
//! none or [`WRITE_BUDGET`] is reached, gathers them by stream and hands each stream its bytes in
//! one call. A stream that takes no more does not hold the others back, and the control stream
//! goes first.
//!
//! Streams: the client opens one for control, then its lanes, and writes [`LANE_OPENER`] on the
//! last, which makes all of them known to the server. Their numbers say which is which, so that
//! nothing is announced. Payload frames travel on streams of their own, one for each `stream_ref`.
//!
//! The end of a session is the driver's word: once it says that it is closed, everything taken
//! from it is flushed, the streams are finished, and only when the peer acknowledged all of it (or
//! [`FLUSH_DEADLINE`] is over) the connection is closed. A peer that takes nothing for that long while
//! the last frames wait to be written does not hold the session open either. A close of the connection is never the
//! goodbye, for it overtakes what is still in flight and may not be sent at all on a full link.
//!
//! [`WRITE_BUDGET`]: super::limits::WRITE_BUDGET
//! [`FLUSH_DEADLINE`]: super::limits::FLUSH_DEADLINE

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, ConnectionError, RecvStream, SendStream, Side, VarInt};
use thiserror::Error;
use tokio::task::{AbortHandle, JoinError, spawn_local};

use super::limits;
use super::wake::Wake;
use crate::clock::Clock;
use crate::proto::{Channel, Driver, Lost, ProtocolError};

mod outgoing;
mod payload;
mod reader;
mod writer;

/// An empty frame of a type that every reader skips.
const LANE_OPENER: &[u8] = &[0x80, 0, 0];

/// How a session is driven.
#[derive(Clone, Copy, Debug)]
pub struct DriveConfig {
    /// The clock that the driver's instants come from.
    pub clock: Clock,
    /// Lanes that a client opens; a server takes what the client opens.
    pub lanes: u8,
    /// For a stream to be opened by either side.
    pub stream_open: Duration,
    /// For the last frames to be acknowledged.
    pub flush: Duration,
}

impl DriveConfig {
    /// One lane and the deadlines of [`limits`](super::limits).
    #[must_use]
    pub const fn new(clock: Clock) -> Self {
        Self {
            clock,
            lanes: 1,
            stream_open: limits::STREAM_OPEN_DEADLINE,
            flush: limits::FLUSH_DEADLINE,
        }
    }
}

/// A session ended without a goodbye.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The peer broke the protocol.
    #[error("the peer broke the protocol")]
    Protocol(#[from] ProtocolError),
    /// The connection is gone.
    #[error("the connection is gone")]
    Connection(#[from] ConnectionError),
    /// The peer gave up a stream that a session needs, or ended one within a frame.
    #[error("the peer gave up the {stream} stream")]
    StreamGone {
        /// Which one.
        stream: StreamName,
    },
    /// The peer did not let a stream be opened, or did not open the one to be answered on.
    #[error("the {stream} stream was not opened within {after:?}")]
    StreamOpenTimedOut {
        /// Which one.
        stream: StreamName,
        /// The deadline.
        after: Duration,
    },
    /// The session's own code panicked.
    #[error("the session panicked")]
    Panicked,
}

impl LinkError {
    /// What the driver is told.
    fn lost(&self) -> Lost {
        match self {
            Self::Protocol(_) => Lost::Protocol,
            Self::Connection(ConnectionError::TimedOut) => Lost::TimedOut,
            Self::Connection(_) | Self::StreamGone { .. } => Lost::Reset,
            Self::StreamOpenTimedOut { .. } => Lost::TimedOut,
            Self::Panicked => Lost::Internal,
        }
    }
}

/// A stream of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamName {
    /// The control stream.
    Control,
    /// A lane, counted from 0.
    Lane(u8),
    /// A stream of one large payload.
    Payload,
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.write_str("control"),
            Self::Lane(lane) => write!(f, "lane {lane}"),
            Self::Payload => f.write_str("payload"),
        }
    }
}

impl From<Channel> for StreamName {
    fn from(channel: Channel) -> Self {
        match channel {
            Channel::Control => Self::Control,
            Channel::Lane(lane) => Self::Lane(lane),
        }
    }
}

/// What the tasks of one session share.
struct Link<D> {
    connection: Connection,
    driver: Rc<RefCell<D>>,
    wake: Arc<Wake>,
    config: DriveConfig,
    /// Send halves of the streams that the peer opened, until the writer takes them.
    opened: RefCell<Vec<(Channel, SendStream)>>,
    /// The session broke down, and what it still has to say is its last word.
    last_word: Cell<bool>,
}

/// Drives a session until it ends; the driver has been told of it then.
///
/// # Errors
/// Says why the session ended without a goodbye.
///
/// # Cancel safety
/// Dropping the future closes the connection at once, and tells the driver.
pub async fn drive<D: Driver + 'static>(
    connection: Connection,
    driver: Rc<RefCell<D>>,
    wake: Arc<Wake>,
    config: DriveConfig,
) -> Result<(), LinkError> {
    let link = Rc::new(Link {
        connection,
        driver,
        wake,
        config,
        opened: RefCell::default(),
        last_word: Cell::new(false),
    });
    let mut guard = Guard { link: Rc::clone(&link), reason: Lost::Cancelled, tasks: Vec::new() };
    let mut ended = run(&link, &mut guard.tasks).await;
    // After the goodbye, whoever is first to have heard enough closes the connection.
    if matches!(ended, Err(LinkError::Connection(_))) && link.driver.borrow().is_closed() {
        ended = Ok(());
    }
    guard.reason = ended.as_ref().map_or_else(LinkError::lost, |()| Lost::Closed);
    ended
}

/// Closes the connection and tells the driver, however the session ends.
struct Guard<D: Driver> {
    link: Rc<Link<D>>,
    reason: Lost,
    tasks: Vec<AbortHandle>,
}

impl<D: Driver> Drop for Guard<D> {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.link.connection.close(VarInt::from_u32(0), b"");
        // Borrowed only if the driver itself drops the session: then it knows.
        if let Ok(mut driver) = self.link.driver.try_borrow_mut() {
            driver.handle_lost(self.reason, self.link.config.clock.now());
        }
    }
}

/// Starts both tasks and waits for them; the one that ends first says why.
async fn run<D: Driver + 'static>(
    link: &Rc<Link<D>>,
    tasks: &mut Vec<AbortHandle>,
) -> Result<(), LinkError> {
    let mut inbound = Vec::new();
    if link.connection.side() == Side::Client {
        let lanes = (0..link.config.lanes.min(limits::LANES_MAX)).map(Channel::Lane);
        for channel in std::iter::once(Channel::Control).chain(lanes) {
            let (send, recv) = open(link, channel).await?;
            link.opened.borrow_mut().push((channel, send));
            inbound.push((channel, recv));
        }
    }
    let mut reader = spawn_local(reader::read(Rc::clone(link), inbound));
    let mut writer = spawn_local(writer::write(Rc::clone(link)));
    tasks.extend([reader.abort_handle(), writer.abort_handle()]);
    let broken = tokio::select! {
        biased;
        written = &mut writer => return ended(written),
        read = &mut reader => match ended(read) {
            Ok(never) => match never {},
            Err(error) => error,
        },
    };
    if matches!(broken, LinkError::Protocol(_)) {
        // The session answers a violation; the writer ends once that is flushed.
        link.last_word.set(true);
        link.wake.wake();
        let _ = writer.await;
    }
    Err(broken)
}

fn ended<T>(task: Result<Result<T, LinkError>, JoinError>) -> Result<T, LinkError> {
    task.unwrap_or(Err(LinkError::Panicked))
}

async fn open<D>(link: &Link<D>, channel: Channel) -> Result<(SendStream, RecvStream), LinkError> {
    let after = link.config.stream_open;
    let opened = tokio::time::timeout(after, link.connection.open_bi()).await;
    let stream = StreamName::from(channel);
    Ok(opened.map_err(|_| LinkError::StreamOpenTimedOut { stream, after })??)
}
