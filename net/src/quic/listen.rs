//! The server's endpoint: one socket, its connections spread over the IO threads.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use quinn::{Connection, Endpoint, Incoming, ServerConfig, VarInt};

use super::admission::{Handshakes, Ticket, Verdict};
use super::limits;
use super::runtime::{IoThreads, Placement, Seat};
use super::socket::{self, BindError, SocketBuffers};
use super::tls::{self, Identity};
use super::transport::{self, Streams};

/// Where and as whom a server listens.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    /// The address to bind; port 0 lets the system choose.
    pub addr: SocketAddr,
    /// The certificate that clients pin, and its key.
    pub identity: Identity,
    /// Bytes of socket buffer to ask for, each way.
    pub socket_buffer: usize,
}

impl ListenConfig {
    /// Listens at `addr` as `identity`.
    #[must_use]
    pub const fn new(addr: SocketAddr, identity: Identity) -> Self {
        Self { addr, identity, socket_buffer: limits::SOCKET_BUFFER }
    }
}

/// A bound endpoint of a server.
#[derive(Debug)]
pub struct Listener {
    endpoint: Endpoint,
    local_addr: SocketAddr,
    buffers: SocketBuffers,
    io: Arc<IoThreads>,
}

impl Listener {
    /// Binds the socket; its packets are read on the first of the IO threads.
    ///
    /// # Errors
    /// Says why the address cannot be bound or the identity not be used.
    pub fn bind(config: &ListenConfig, io: Arc<IoThreads>) -> Result<Self, BindError> {
        let crypto = tls::server(&config.identity, tls::ALPN)?;
        let mut server = ServerConfig::with_crypto(crypto);
        server
            .transport_config(transport::transport(&Streams::OF_CLIENT))
            .max_incoming(limits::INCOMING_MAX)
            .incoming_buffer_size(limits::INCOMING_BUFFER)
            .incoming_buffer_size_total(limits::INCOMING_BUFFER_TOTAL);
        let (socket, buffers) = socket::bind(config.addr, config.socket_buffer)?;
        let failed = |error| BindError::from_io(config.addr, error);
        let local_addr = socket.local_addr().map_err(failed)?;
        let placement = io.placement();
        let endpoint = Placement::on(0, || {
            Endpoint::new(transport::endpoint(), Some(server), socket, placement)
        });
        Ok(Self { endpoint: endpoint.map_err(failed)?, local_addr, buffers, io })
    }

    /// Returns the address bound, with the port that the system chose.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Returns the socket buffers asked for and granted.
    #[must_use]
    pub const fn buffers(&self) -> SocketBuffers {
        self.buffers
    }

    /// Accepts connections from now on. For each, `session` makes the future that owns it, on the
    /// IO thread where the connection lives: it need not be `Send`.
    ///
    /// A panic in a session ends that session alone.
    pub fn serve<F, Fut>(&self, session: F)
    where
        F: Fn(Connection) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let endpoint = self.endpoint.clone();
        let io = Arc::downgrade(&self.io);
        self.io.spawn_on(0, move || async move {
            let mut handshakes = Handshakes::default();
            while let Some(incoming) = endpoint.accept().await {
                if let Some((incoming, ticket)) = admit(&mut handshakes, incoming) {
                    place(&io, incoming, ticket, session.clone());
                }
            }
        });
    }

    /// Closes every connection at once and accepts no more. Sessions that are to hear a goodbye are
    /// ended by their drivers before.
    pub fn close(&self) {
        self.endpoint.close(VarInt::from_u32(0), b"");
    }

    /// Waits until every connection has said its last word, at most for `limit`.
    ///
    /// # Cancel safety
    /// Waits only.
    pub async fn idle(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.endpoint.wait_idle()).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

fn admit(handshakes: &mut Handshakes, incoming: Incoming) -> Option<(Incoming, Ticket)> {
    let addr = incoming.remote_address();
    match handshakes.judge(addr.ip(), incoming.remote_address_validated()) {
        Verdict::Accept(ticket) => return Some((incoming, ticket)),
        // One that may not be asked again is refused by being dropped.
        Verdict::Retry => drop(incoming.retry()),
        Verdict::Refuse => {
            tracing::debug!(%addr, "connection refused: too many handshakes in progress");
            incoming.refuse();
        }
        Verdict::Ignore => incoming.ignore(),
    }
    None
}

/// Gives a connection to the IO thread that has the fewest, from its first packet on.
fn place<F, Fut>(io: &Weak<IoThreads>, incoming: Incoming, ticket: Ticket, session: F)
where
    F: FnOnce(Connection) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let Some(io) = io.upgrade() else {
        return incoming.refuse();
    };
    let seat = io.seat();
    let addr = incoming.remote_address();
    match Placement::on(seat.thread(), || incoming.accept()) {
        Ok(connecting) => {
            io.spawn_on(seat.thread(), move || run(connecting, addr, ticket, seat, session))
        }
        Err(error) => tracing::debug!(%addr, %error, "first packet rejected"),
    }
}

async fn run<F, Fut>(
    connecting: quinn::Connecting,
    addr: SocketAddr,
    ticket: Ticket,
    _seat: Seat,
    session: F,
) where
    F: FnOnce(Connection) -> Fut,
    Fut: Future<Output = ()>,
{
    let shaken = tokio::time::timeout(limits::HANDSHAKE_DEADLINE, connecting).await;
    drop(ticket);
    match shaken.map_err(io::Error::from) {
        Ok(Ok(connection)) => session(connection).await,
        Ok(Err(error)) => tracing::debug!(%addr, %error, "handshake failed"),
        Err(_) => tracing::debug!(%addr, "handshake timed out"),
    }
}
