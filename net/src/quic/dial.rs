//! A client's endpoint: one socket on the runtime it was made on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, TokioRuntime, VarInt};
use quinn_proto::{TransportError, TransportErrorCode};
use thiserror::Error;

use super::limits;
use super::socket::{self, BindError, SocketBuffers};
use super::tls::{self, Fingerprint, WrongCertificate};
use super::transport::{self, Streams};

/// TLS alerts that mean that the peer speaks another protocol or another version of it.
const ALERT_PROTOCOL_VERSION: u8 = 70;
const ALERT_NO_APPLICATION_PROTOCOL: u8 = 120;

/// A server cannot be reached, or must not be talked to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Nothing listens there, or no way leads there: the network said so.
    #[error("no server at {addr}")]
    Unreachable {
        /// The address dialled.
        addr: SocketAddr,
        /// What the network said.
        source: io::Error,
    },
    /// Nothing answered.
    #[error("no answer from {addr} within {after:?}")]
    TimedOut {
        /// The address dialled.
        addr: SocketAddr,
        /// The deadline.
        after: Duration,
    },
    /// The server is not the one that was pinned.
    #[error(transparent)]
    WrongCertificate(#[from] WrongCertificate),
    /// What listens there speaks another protocol, or another version of this one.
    #[error("{addr} does not speak slipswitch/1")]
    VersionMismatch {
        /// The address dialled.
        addr: SocketAddr,
    },
    /// The server has no room for more handshakes now; a later attempt may succeed.
    #[error("the server at {addr} refused the connection")]
    Refused {
        /// The address dialled.
        addr: SocketAddr,
    },
    /// The handshake failed for another reason.
    #[error("the handshake with {addr} failed")]
    Handshake {
        /// The address dialled.
        addr: SocketAddr,
        /// What the transport said.
        source: ConnectionError,
    },
    /// This side is closed, or cannot dial such an address.
    #[error("cannot dial {addr}")]
    Local {
        /// The address dialled.
        addr: SocketAddr,
        /// What the transport said.
        source: quinn::ConnectError,
    },
}

/// A bound endpoint of a client.
#[derive(Debug)]
pub struct Dialer {
    endpoint: Endpoint,
    buffers: SocketBuffers,
    transport: Arc<quinn::TransportConfig>,
}

impl Dialer {
    /// Binds a socket from which `server` can be dialled. Its tasks run on the runtime that this
    /// is called on, which must be entered.
    ///
    /// # Errors
    /// Says why no socket can be had.
    pub fn bind(server: SocketAddr) -> Result<Self, BindError> {
        let ip: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let addr = SocketAddr::new(ip, 0);
        let (socket, buffers) = socket::bind(addr, limits::SOCKET_BUFFER)?;
        let endpoint = Endpoint::new(transport::endpoint(), None, socket, Arc::new(TokioRuntime))
            .map_err(|error| BindError::from_io(addr, error))?;
        let transport = transport::transport(&Streams::OF_SERVER);
        Ok(Self { endpoint, buffers, transport })
    }

    /// Returns the socket buffers asked for and granted.
    #[must_use]
    pub const fn buffers(&self) -> SocketBuffers {
        self.buffers
    }

    /// Connects to the server whose certificate has the fingerprint `pin`.
    ///
    /// # Errors
    /// Says why there is no connection, at the latest after `deadline`. A port where nothing
    /// listens is usually known at once.
    ///
    /// # Cancel safety
    /// Dropping the future gives the attempt up.
    pub async fn connect(
        &self,
        addr: SocketAddr,
        pin: Fingerprint,
        deadline: Duration,
    ) -> Result<Connection, ConnectError> {
        self.connect_as(addr, pin, deadline, tls::ALPN).await
    }

    async fn connect_as(
        &self,
        addr: SocketAddr,
        pin: Fingerprint,
        deadline: Duration,
        alpn: &[u8],
    ) -> Result<Connection, ConnectError> {
        let (tls, wrong) = tls::client(pin, alpn).map_err(|error| {
            let source = ConnectionError::TransportError(TransportError {
                code: TransportErrorCode::INTERNAL_ERROR,
                frame: None,
                reason: error.to_string(),
            });
            ConnectError::Handshake { addr, source }
        })?;
        let mut config = ClientConfig::new(tls);
        config.transport_config(Arc::clone(&self.transport));
        let connecting = self
            .endpoint
            .connect_with(config, addr, tls::SERVER_NAME)
            .map_err(|source| ConnectError::Local { addr, source })?;
        let mut connecting = pin!(tokio::time::timeout(deadline, connecting));
        let shaken = tokio::select! {
            biased;
            shaken = &mut connecting => shaken,
            source = unreachable(addr) => return Err(ConnectError::Unreachable { addr, source }),
        };
        let error = match shaken {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => error,
            Err(_) => return Err(ConnectError::TimedOut { addr, after: deadline }),
        };
        let wrong = *wrong.borrow();
        Err(wrong.map_or_else(|| classify(addr, deadline, error), ConnectError::from))
    }

    /// Closes what is still connected and waits until the peers were told, at most for `limit`.
    ///
    /// # Cancel safety
    /// The connections are closed even when the future is dropped.
    pub async fn close(self, limit: Duration) {
        self.endpoint.close(VarInt::from_u32(0), b"");
        let _ = tokio::time::timeout(limit, self.endpoint.wait_idle()).await;
    }
}

fn classify(addr: SocketAddr, after: Duration, error: ConnectionError) -> ConnectError {
    let code = match &error {
        ConnectionError::VersionMismatch => return ConnectError::VersionMismatch { addr },
        ConnectionError::TimedOut => return ConnectError::TimedOut { addr, after },
        ConnectionError::ConnectionClosed(close) => close.error_code,
        ConnectionError::TransportError(error) => error.code,
        _ => return ConnectError::Handshake { addr, source: error },
    };
    let version = [ALERT_PROTOCOL_VERSION, ALERT_NO_APPLICATION_PROTOCOL];
    if code == TransportErrorCode::CONNECTION_REFUSED {
        ConnectError::Refused { addr }
    } else if version.into_iter().any(|alert| code == TransportErrorCode::crypto(alert)) {
        ConnectError::VersionMismatch { addr }
    } else {
        ConnectError::Handshake { addr, source: error }
    }
}

/// Ends only when the network says that nothing is to be reached at `addr`.
///
/// The endpoint's own socket is not connected and never hears of such an answer; this one is. It
/// sends a single byte, which no QUIC endpoint answers.
async fn unreachable(addr: SocketAddr) -> io::Error {
    let asked = async {
        let any: IpAddr = match addr {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = tokio::net::UdpSocket::bind(SocketAddr::new(any, 0)).await?;
        socket.connect(addr).await?;
        socket.send(&[0]).await?;
        socket.recv(&mut [0; 1]).await
    };
    match asked.await {
        Err(error) if is_unreachable(&error) => error,
        // Any other answer proves nothing; the handshake decides.
        _ => std::future::pending().await,
    }
}

fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}
