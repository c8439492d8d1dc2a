//! What a session is to the shell that carries its frames.

use slipswitch_core::Instant;

use super::frame::{Frame, ProtocolError};

/// Where a frame travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// The first stream: hello, registration, credit, beats, drain, goodbye.
    Control,
    /// A long-lived stream for tasks and results, counted from 0.
    Lane(u8),
}

/// Why a transport is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lost {
    /// After a goodbye, or because the peer closed it.
    Closed,
    /// The peer or the network cut it.
    Reset,
    /// Nothing was heard for too long.
    TimedOut,
    /// The peer broke the protocol.
    Protocol,
    /// The shell dropped it.
    Cancelled,
    /// A fault of this side.
    Internal,
}

/// A session without IO: frames and time in, frames out.
pub trait Driver {
    /// Takes one frame that arrived.
    ///
    /// # Errors
    ///
    /// The peer broke the protocol. The session has queued its last words: the shell sends what
    /// [`Driver::poll_transmit`] still has, and closes.
    fn handle_frame(
        &mut self,
        channel: Channel,
        frame: Frame,
        now: Instant,
    ) -> Result<(), ProtocolError>;

    /// The next frame to send, if anything is due. Called until there is none, or the shell has
    /// enough for one write.
    fn poll_transmit(&mut self, now: Instant) -> Option<(Channel, Frame)>;

    /// When [`Driver::handle_timeout`] should be called.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// The transport is gone. Telling it again does nothing.
    fn handle_lost(&mut self, reason: Lost, now: Instant);

    /// True once everything is said: the shell flushes and closes.
    fn is_closed(&self) -> bool;
}
