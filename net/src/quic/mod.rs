//! The QUIC shell: carries frames between a driver and a quinn connection, and decides nothing.

mod admission;
mod dial;
mod drive;
pub mod limits;
mod listen;
mod runtime;
mod socket;
mod tls;
mod transport;
mod wake;

pub use dial::{ConnectError, Dialer};
pub use drive::{DriveConfig, LinkError, StreamName, drive};
pub use listen::{ListenConfig, Listener};
pub use quinn::Connection;
pub use runtime::{IoThreads, Seat};
pub use socket::{BindError, SocketBuffers};
pub use tls::{ALPN, Fingerprint, Identity, InvalidFingerprint, InvalidIdentity, WrongCertificate};
pub use wake::Wake;
