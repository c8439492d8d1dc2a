//! A server on loopback whose sessions are toys.

use std::cell::RefCell;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use slipswitch_net::clock::Clock;
use slipswitch_net::quic::{
    Connection, Dialer, DriveConfig, Fingerprint, Identity, IoThreads, LinkError, ListenConfig,
    Listener, drive,
};
use tokio::runtime::{Builder, LocalOptions};

use crate::echo::{Echo, Session};

pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

pub(crate) fn identity() -> Identity {
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["slipswitch".to_string()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    Identity::from_der(certificate.der().to_vec(), key.serialize_der())
}

pub(crate) struct Server {
    pub(crate) listener: Listener,
    pub(crate) fingerprint: Fingerprint,
    /// How each session ended.
    pub(crate) ended: mpsc::Receiver<Result<(), LinkError>>,
}

impl Server {
    /// A server whose every session is set up by `session`.
    pub(crate) fn start(threads: usize, session: fn() -> Session) -> Self {
        Self::start_with(threads, move |session_ended| {
            move |connection| {
                let session_ended = session_ended.clone();
                async move {
                    let Session { driver, wake } = session();
                    let config = DriveConfig::new(Clock::start());
                    let _ = session_ended.send(drive(connection, driver, wake, config).await);
                }
            }
        })
    }

    pub(crate) fn start_with<M, F, Fut>(threads: usize, make: M) -> Self
    where
        M: FnOnce(mpsc::Sender<Result<(), LinkError>>) -> F,
        F: Fn(Connection) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let io = Arc::new(IoThreads::start(threads).unwrap());
        let identity = identity();
        let fingerprint = identity.fingerprint();
        let config = ListenConfig::new(any_port(), identity);
        let listener = Listener::bind(&config, io).unwrap();
        let (session_ended, ended) = mpsc::channel();
        listener.serve(make(session_ended));
        Self { listener, fingerprint, ended }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Connects a client; must be called within [`on_client`].
    pub(crate) async fn connect(&self) -> (Dialer, Connection) {
        let dialer = Dialer::bind(self.addr()).unwrap();
        let connection = dialer.connect(self.addr(), self.fingerprint, DEADLINE).await.unwrap();
        (dialer, connection)
    }
}

pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Runs a client on a runtime of its own, the calling thread's.
pub(crate) fn on_client<T>(client: impl Future<Output = T>) -> T {
    Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .unwrap()
        .block_on(client)
}

/// Starts driving a session of a client.
pub(crate) fn start(
    connection: Connection,
    session: &Session,
    config: DriveConfig,
) -> tokio::task::JoinHandle<Result<(), LinkError>> {
    let driver: Rc<RefCell<Echo>> = Rc::clone(&session.driver);
    tokio::task::spawn_local(drive(connection, driver, Arc::clone(&session.wake), config))
}

pub(crate) fn config() -> DriveConfig {
    DriveConfig::new(Clock::start())
}
