//! The UDP socket of an endpoint and the buffers that the system granted it.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;

use super::tls::InvalidIdentity;

/// Socket buffers: asked for and granted, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketBuffers {
    /// Asked for, each way.
    pub requested: usize,
    /// Granted for receiving.
    pub granted_receive: usize,
    /// Granted for sending.
    pub granted_send: usize,
}

impl SocketBuffers {
    /// True if the system granted less than was asked for.
    #[must_use]
    pub const fn is_short(&self) -> bool {
        self.granted_receive < self.requested || self.granted_send < self.requested
    }
}

/// An endpoint cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket holds the port.
    #[error("port {} is in use at {}", .addr.port(), .addr.ip())]
    PortInUse {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// This machine does not have the address.
    #[error("this machine has no address {}", .addr.ip())]
    AddressUnavailable {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// The user may not bind the port.
    #[error("no permission to bind port {}", .addr.port())]
    Forbidden {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    InvalidIdentity(#[from] InvalidIdentity),
    /// The system refused for another reason.
    #[error("cannot open a UDP socket at {addr}")]
    Io {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

impl BindError {
    pub(super) fn from_io(addr: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::PortInUse { addr },
            io::ErrorKind::AddrNotAvailable => Self::AddressUnavailable { addr },
            io::ErrorKind::PermissionDenied => Self::Forbidden { addr },
            _ => Self::Io { addr, source },
        }
    }
}

/// Binds a UDP socket, asks for `requested` bytes of buffer each way and logs what was granted.
///
/// # Errors
/// Says why the address cannot be bound.
pub(super) fn bind(
    addr: SocketAddr,
    requested: usize,
) -> Result<(std::net::UdpSocket, SocketBuffers), BindError> {
    let opened = open(addr, requested).map_err(|error| BindError::from_io(addr, error))?;
    let buffers = opened.1;
    if buffers.is_short() {
        tracing::warn!(
            %addr,
            requested = buffers.requested,
            granted_receive = buffers.granted_receive,
            granted_send = buffers.granted_send,
            "socket buffers are smaller than asked for: bursts may lose packets; \
             on Linux, raise net.core.rmem_max and net.core.wmem_max"
        );
    } else {
        tracing::info!(
            %addr,
            requested = buffers.requested,
            granted_receive = buffers.granted_receive,
            granted_send = buffers.granted_send,
            "socket buffers"
        );
    }
    Ok(opened)
}

fn open(addr: SocketAddr, requested: usize) -> io::Result<(std::net::UdpSocket, SocketBuffers)> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // A refusal to grow is not an error: what was granted is read back and reported.
    let _ = socket.set_recv_buffer_size(requested);
    let _ = socket.set_send_buffer_size(requested);
    socket.bind(&addr.into())?;
    let buffers = SocketBuffers {
        requested,
        granted_receive: granted(socket.recv_buffer_size()?),
        granted_send: granted(socket.send_buffer_size()?),
    };
    Ok((socket.into(), buffers))
}

/// Linux reports twice what it granted, the other half being its own bookkeeping.
const fn granted(reported: usize) -> usize {
    if cfg!(target_os = "linux") { reported / 2 } else { reported }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    // bug: B51
    #[test]
    fn granted_rcvbuf_reported() {
        let modest = 64 << 10;
        let (_socket, buffers) = bind(LOOPBACK, modest).unwrap();
        assert_eq!(buffers.requested, modest);
        assert_eq!(buffers.granted_receive, modest, "every system grants this much");
        assert!(!buffers.is_short());
        // No system grants this: the figure reported is the system's, not the wish.
        let absurd = i32::MAX as usize;
        let (socket, buffers) = bind(LOOPBACK, absurd).unwrap();
        let reported = socket2::SockRef::from(&socket).recv_buffer_size().unwrap();
        assert_eq!(buffers.requested, absurd);
        assert_eq!(buffers.granted_receive, granted(reported));
        assert!(buffers.granted_receive < absurd && buffers.is_short());
    }

    #[test]
    fn taken_port_is_named() {
        let (socket, _) = bind(LOOPBACK, 4096).unwrap();
        let taken = socket.local_addr().unwrap();
        let error = bind(taken, 4096).unwrap_err();
        assert!(matches!(error, BindError::PortInUse { addr } if addr == taken), "{error:?}");
        assert_eq!(error.to_string(), format!("port {} is in use at 127.0.0.1", taken.port()));
    }

    #[test]
    fn foreign_address_is_named() {
        let foreign = SocketAddr::from(([192, 0, 2, 1], 0));
        let error = bind(foreign, 4096).unwrap_err();
        assert!(matches!(error, BindError::AddressUnavailable { .. }), "{error:?}");
    }
}
