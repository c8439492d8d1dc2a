//! Two sessions joined in memory, on a clock in the caller's hand.
//!
//! Every frame crosses as bytes, cut as told, through the codec of each side. Nothing happens but
//! in [`Pipe::run`], so a test sees each step and can end the connection between any two.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use slipswitch_core::Instant;

use crate::proto::{Channel, Decoder, Driver, Frame, Lost, ProtocolError};

/// Two drivers and what is between them.
#[derive(Debug)]
pub struct Pipe<A, B> {
    /// One side.
    pub client: A,
    /// The other side.
    pub server: B,
    now: Instant,
    /// Bytes that a chunk has at most.
    chunk: usize,
    to_server: BTreeMap<Channel, Decoder>,
    to_client: BTreeMap<Channel, Decoder>,
    /// Frames that may still cross before the connection is lost.
    left: Option<u64>,
    crossed: u64,
    is_lost: bool,
}

impl<A: Driver, B: Driver> Pipe<A, B> {
    /// Joins two drivers; `now` is the time at which both were made.
    #[must_use]
    pub fn new(client: A, server: B, now: Instant) -> Self {
        Self {
            client,
            server,
            now,
            chunk: usize::MAX,
            to_server: BTreeMap::new(),
            to_client: BTreeMap::new(),
            left: None,
            crossed: 0,
            is_lost: false,
        }
    }

    /// Cuts what crosses into chunks of at most so many bytes.
    #[must_use]
    pub fn in_chunks_of(mut self, bytes: usize) -> Self {
        self.chunk = bytes.max(1);
        self
    }

    /// Loses the connection after so many more frames.
    pub fn lose_after(&mut self, frames: u64) {
        self.left = Some(frames);
    }

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Frames that have crossed, both ways.
    #[must_use]
    pub const fn crossed(&self) -> u64 {
        self.crossed
    }

    /// Says whether the connection is gone.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Loses the connection now; both sides are told.
    pub fn lose(&mut self) {
        if !self.is_lost {
            self.is_lost = true;
            self.client.handle_lost(Lost::Reset, self.now);
            self.server.handle_lost(Lost::Reset, self.now);
        }
    }

    /// Carries frames until neither side has any.
    ///
    /// # Errors
    ///
    /// A side found that the other broke the protocol; what it had to say has crossed by then.
    pub fn run(&mut self) -> Result<(), ProtocolError> {
        loop {
            let mut moved = false;
            while let Some((channel, frame)) = self.take_from_client() {
                moved = true;
                let decoder = self.to_server.entry(channel).or_default();
                let carried =
                    carry(channel, &frame, self.chunk, decoder, &mut self.server, self.now);
                if let Err(error) = carried {
                    self.flush_last_words();
                    return Err(error);
                }
            }
            while let Some((channel, frame)) = self.take_from_server() {
                moved = true;
                let decoder = self.to_client.entry(channel).or_default();
                carry(channel, &frame, self.chunk, decoder, &mut self.client, self.now)?;
            }
            if !moved {
                return Ok(());
            }
        }
    }

    fn flush_last_words(&mut self) {
        while let Some((channel, frame)) = self.take_from_server() {
            let decoder = self.to_client.entry(channel).or_default();
            let told = carry(channel, &frame, self.chunk, decoder, &mut self.client, self.now);
            if told.is_err() {
                return;
            }
        }
    }

    fn may_cross(&mut self) -> bool {
        if self.is_lost {
            return false;
        }
        if self.left == Some(0) {
            self.lose();
            return false;
        }
        true
    }

    fn take_from_client(&mut self) -> Option<(Channel, Frame)> {
        if !self.may_cross() {
            return None;
        }
        let taken = self.client.poll_transmit(self.now)?;
        self.count();
        Some(taken)
    }

    fn take_from_server(&mut self) -> Option<(Channel, Frame)> {
        if !self.may_cross() {
            return None;
        }
        let taken = self.server.poll_transmit(self.now)?;
        self.count();
        Some(taken)
    }

    fn count(&mut self) {
        self.crossed = self.crossed.saturating_add(1);
        self.left = self.left.map(|left| left.saturating_sub(1));
    }

    /// Lets time pass, to each deadline on the way, and carries what is sent.
    ///
    /// # Errors
    ///
    /// As [`Pipe::run`].
    pub fn pass(&mut self, time: Duration) -> Result<(), ProtocolError> {
        self.pass_with(time, |_| {})
    }

    /// As [`Pipe::pass`]; `also` is told each time that is stopped at.
    ///
    /// # Errors
    ///
    /// As [`Pipe::run`].
    pub fn pass_with(
        &mut self,
        time: Duration,
        mut also: impl FnMut(Instant),
    ) -> Result<(), ProtocolError> {
        let end = self.now + time;
        loop {
            self.run()?;
            let due = [self.client.poll_timeout(), self.server.poll_timeout()];
            let due = due.into_iter().flatten().min().unwrap_or(Instant::MAX);
            // A deadline that stays in the past must not stop the clock.
            let step = self.now + Duration::from_millis(10);
            self.now = due.max(self.now + Duration::from_micros(1)).min(end).min(step.max(due));
            also(self.now);
            for side in [true, false] {
                let driver: &mut dyn Driver =
                    if side { &mut self.client } else { &mut self.server };
                if driver.poll_timeout().is_some_and(|due| due <= self.now) {
                    driver.handle_timeout(self.now);
                }
            }
            self.run()?;
            if self.now >= end {
                return Ok(());
            }
        }
    }
}

/// Encodes a frame, cuts it, and hands it to the other side.
fn carry(
    channel: Channel,
    frame: &Frame,
    chunk: usize,
    decoder: &mut Decoder,
    to: &mut impl Driver,
    now: Instant,
) -> Result<(), ProtocolError> {
    let mut bytes = BytesMut::new();
    frame.encode_head(&mut bytes);
    bytes.extend_from_slice(frame.payload());
    let mut rest: Bytes = bytes.freeze();
    while !rest.is_empty() {
        decoder.push(rest.split_to(rest.len().min(chunk)));
        while let Some(frame) = decoder.next()? {
            to.handle_frame(channel, frame, now)?;
        }
    }
    Ok(())
}
