//! quinn's configuration: every default that is wider than needed is named here.

use std::sync::Arc;

use quinn::{EndpointConfig, IdleTimeout, TransportConfig, VarInt};

use super::limits;

/// What one side may open towards the other, and when it is given up.
pub(super) struct Streams {
    pub(super) bidi: u32,
    pub(super) uni: u32,
}

impl Streams {
    /// What a server lets a client open.
    pub(super) const OF_CLIENT: Self =
        Self { bidi: limits::BIDI_STREAMS, uni: limits::UNI_STREAMS };
    /// What a client lets a server open: lanes are the client's to open.
    pub(super) const OF_SERVER: Self = Self { bidi: 0, uni: limits::UNI_STREAMS };
}

/// Builds the transport configuration; `peer` is what the other side may open.
///
/// Segmentation offload is on (without it a connection reaches a third of its speed), MTU discovery
/// keeps its upper bound, datagrams are off. No keep-alive: sessions ping.
pub(super) fn transport(peer: &Streams) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let idle = u32::try_from(limits::IDLE_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(peer.bidi))
        .max_concurrent_uni_streams(VarInt::from_u32(peer.uni))
        .receive_window(VarInt::from_u32(limits::RECEIVE_WINDOW))
        .stream_receive_window(VarInt::from_u32(limits::STREAM_WINDOW))
        .send_window(limits::SEND_WINDOW)
        .crypto_buffer_size(limits::CRYPTO_BUFFER)
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(idle))))
        .keep_alive_interval(None)
        .datagram_receive_buffer_size(None)
        .datagram_send_buffer_size(0)
        .enable_segmentation_offload(true)
        .allow_spin(false);
    Arc::new(config)
}

/// Builds the endpoint's configuration, with a reset key drawn at random.
pub(super) fn endpoint() -> EndpointConfig {
    EndpointConfig::default()
}
