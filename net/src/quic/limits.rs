//! Every number of the QUIC shell: windows, counts, deadlines.
//!
//! A connection may make its peer hold [`RECEIVE_WINDOW`] of received and [`SEND_WINDOW`] of sent
//! bytes, whatever the peer does. One stream may hold [`STREAM_WINDOW`]; lanes and payload streams
//! together never reach the window of the connection, see [`payload_streams`], so that the control
//! stream can always send.

use std::time::Duration;

/// Unread bytes that all streams of a connection may hold.
pub const RECEIVE_WINDOW: u32 = 2 << 20;
/// Unread bytes that one stream may hold.
pub const STREAM_WINDOW: u32 = 256 << 10;
/// Bytes written but not acknowledged that a connection may hold.
pub const SEND_WINDOW: u64 = 4 << 20;
/// Streams in both directions that a client may have open: control, lanes, and as many to spare.
pub const BIDI_STREAMS: u32 = 16;
/// Payload streams that either side may have open towards the other.
pub const UNI_STREAMS: u32 = 8;
/// Handshake bytes that may arrive out of order.
pub const CRYPTO_BUFFER: usize = 16 << 10;
/// Lanes that a client may open.
pub const LANES_MAX: u8 = 8;

/// Bytes of socket buffer asked for, each way. The default of most systems loses packets.
pub const SOCKET_BUFFER: usize = 4 << 20;

/// From the first packet to the end of the handshake.
pub const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(5);
/// For a stream to be opened, or for the peer to open the stream that one has to answer on.
pub const STREAM_OPEN_DEADLINE: Duration = Duration::from_secs(5);
/// For the last frames of a closed session to be acknowledged.
pub const FLUSH_DEADLINE: Duration = Duration::from_secs(2);
/// Silence after which the transport itself gives up. Sessions ping every 3 s and give their peer
/// up after 6 s; this is the backstop behind them.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(8);

/// Handshakes in progress above which an unvalidated address must first prove itself.
pub const HANDSHAKES_RETRY: usize = 64;
/// Handshakes in progress above which further ones are refused.
pub const HANDSHAKES_REFUSE: usize = 1_024;
/// Handshakes in progress above which further ones are not even answered.
pub const HANDSHAKES_IGNORE: usize = 2_048;
/// Handshakes in progress from one address prefix (IPv4 /24, IPv6 /56); loopback has no quota.
pub const HANDSHAKES_PER_PREFIX: usize = 128;
/// First packets that wait for the accept loop.
pub const INCOMING_MAX: usize = 4_096;
/// Bytes kept for one connection that was not accepted yet.
pub const INCOMING_BUFFER: u64 = 64 << 10;
/// Bytes kept for all connections that were not accepted yet.
pub const INCOMING_BUFFER_TOTAL: u64 = 8 << 20;

/// Bytes that the writer takes from the session before it writes.
pub const WRITE_BUDGET: usize = 64 << 10;
/// Bytes waiting on lanes above which the writer takes frames only when something happened.
pub const LANE_BACKLOG: usize = 1 << 20;
/// Bytes that the reader hands to the session before others get their turn.
pub const READ_BUDGET: usize = 256 << 10;
/// Received segments taken from a stream in one call.
pub const READ_SEGMENTS: usize = 32;

/// Payload streams that the writer keeps open at once, for a number of lanes.
///
/// Lanes and payload streams together hold at most seven stream windows, the eighth of the
/// connection's window is left to the control stream. With eight lanes one payload stream remains,
/// and the control stream shares.
#[must_use]
pub const fn payload_streams(lanes: u8) -> usize {
    match lanes {
        0..=3 => 4,
        4 => 3,
        5 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_keeps_a_stream_window_for_itself() {
        for lanes in 0..=6_u8 {
            let streams = usize::from(lanes) + payload_streams(lanes) + 1;
            assert!(streams * STREAM_WINDOW as usize <= RECEIVE_WINDOW as usize, "{lanes} lanes");
        }
    }

    #[test]
    fn every_lane_and_payload_stream_can_be_opened() {
        assert!(u32::from(LANES_MAX) < BIDI_STREAMS);
        for lanes in 0..=LANES_MAX {
            assert!(payload_streams(lanes) <= UNI_STREAMS as usize);
            assert!(payload_streams(lanes) > 0);
        }
    }
}
