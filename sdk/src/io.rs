//! The IO thread: dials, drives a session until it ends, and dials again.
//!
//! What is to be done over many sessions is a [`Life`]: a worker's or a client's. It is a
//! [`Driver`] itself, so that a frame reaches it without a change of task; commands of other
//! threads arrive in its queue and are taken whenever the writer asks what to send. While there
//! is no session the loop here tends it instead.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use slipswitch_core::Instant;
use slipswitch_net::clock::Clock;
use slipswitch_net::proto::Driver;
use slipswitch_net::quic::{self, DriveConfig, LinkError};
use tokio::sync::Notify;

use crate::backoff::{Redial, SessionRecord};
use crate::connect::ConnectOptions;
use crate::error::ConnectError;
use crate::link::Wake;
use crate::sync::Arc;

/// How long a goodbye to the transport may take once the session is over.
const TRANSPORT_CLOSE_MAX: Duration = Duration::from_millis(200);

/// Wakes the IO thread, in a session or between two.
#[derive(Default)]
pub(crate) struct IoWake {
    session: Arc<quic::Wake>,
    between: Notify,
}

impl Wake for Arc<IoWake> {
    fn wake(&self) {
        self.session.wake();
        self.between.notify_one();
    }
}

/// What one side does over many sessions.
pub(crate) trait Life: Driver + 'static {
    /// A transport to `address` is there: starts a session on it.
    fn begin(&mut self, address: &str, now: Instant);

    /// The session that was begun is over, and so is its transport. An error says that the server
    /// never welcomed it.
    fn ended(
        &mut self,
        link: Result<(), LinkError>,
        now: Instant,
    ) -> Result<SessionRecord, ConnectError>;

    /// There is no session. Takes commands and fails what is overdue.
    fn tend(&mut self, now: Instant);

    /// When [`Life::tend`] is due again without a command.
    fn tend_at(&self) -> Option<Instant>;

    /// A dial failed, or a session was never welcomed. The next dial follows after `retry_in`;
    /// none follows if that is none.
    fn dial_failed(&mut self, error: ConnectError, retry_in: Option<Duration>, now: Instant);

    /// The first failure ends it.
    fn fail_fast(&self) -> bool;

    /// Nothing is left to do: no dial follows.
    fn is_over(&self) -> bool;
}

/// Starts the IO thread for a life; the life is made there. `wake` is that of its queue.
pub(crate) fn spawn<L: Life>(
    options: ConnectOptions,
    wake: Arc<IoWake>,
    make: impl FnOnce() -> L + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("slip-io".to_owned()).spawn(move || {
        let clock = Clock::start();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async move {
            let life = Rc::new(RefCell::new(make()));
            live(&options, &wake, &life, clock).await;
        });
    })?;
    Ok(())
}

/// Dials and drives until the life is over.
async fn live<L: Life>(
    options: &ConnectOptions,
    wake: &IoWake,
    life: &Rc<RefCell<L>>,
    clock: Clock,
) {
    let mut redial = Redial::new(options.backoff, rand::random());
    let mut first = true;
    loop {
        let dialled = tended(dial(options), wake, life, clock).await;
        let Some(dialled) = dialled else { return };
        let ended = match dialled {
            Ok((dialer, connection, address)) => {
                life.borrow_mut().begin(&address, clock.now());
                let config = DriveConfig { lanes: options.lanes, ..DriveConfig::new(clock) };
                // What came while nobody drove is noted again for the writer to see.
                wake.session.wake();
                let link =
                    quic::drive(connection, Rc::clone(life), Arc::clone(&wake.session), config);
                let link = link.await;
                dialer.close(TRANSPORT_CLOSE_MAX).await;
                life.borrow_mut().ended(link, clock.now())
            }
            Err(error) => Err(error),
        };
        let failed = match ended {
            Ok(record) => {
                first = false;
                redial.session_over(record);
                None
            }
            Err(error) => Some(error),
        };
        let mut delay = redial.next_delay();
        if let Some(error) = failed {
            if error.ends_the_loop() || (first && life.borrow().fail_fast()) {
                delay = None;
            }
            life.borrow_mut().dial_failed(error, delay, clock.now());
        }
        let Some(delay) = delay else { return };
        if tended(tokio::time::sleep(delay), wake, life, clock).await.is_none() {
            return;
        }
    }
}

/// Waits for something while there is no session, and tends the life meanwhile. None if that is
/// over.
async fn tended<L: Life, T>(
    wait: impl Future<Output = T>,
    wake: &IoWake,
    life: &Rc<RefCell<L>>,
    clock: Clock,
) -> Option<T> {
    let mut wait = pin!(wait);
    loop {
        let due = {
            let mut life = life.borrow_mut();
            life.tend(clock.now());
            if life.is_over() {
                return None;
            }
            life.tend_at()
        };
        let at = due.map(|due| tokio::time::Instant::from_std(clock.deadline(due)));
        let tend = async {
            match at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = &mut wait => return Some(done),
            () = wake.between.notified() => {}
            () = tend => {}
        }
    }
}

type Dialled = (quic::Dialer, quic::Connection, String);

/// One dial, the transport's handshake included.
async fn dial(options: &ConnectOptions) -> Result<Dialled, ConnectError> {
    let (address, fingerprint) = options.target.resolve()?;
    let limit = options.dial_timeout;
    let first = async { Ok(tokio::net::lookup_host(&address).await?.next()) };
    let resolved = tokio::time::timeout(limit, first).await;
    let addr: Option<SocketAddr> = match resolved {
        Ok(Ok(found)) => found,
        Ok(Err(source)) => return Err(ConnectError::Resolve { address, source }),
        Err(_) => return Err(ConnectError::TimedOut { address, after: limit }),
    };
    let Some(addr) = addr else {
        let source = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        return Err(ConnectError::Resolve { address, source });
    };
    let dialer =
        quic::Dialer::bind(addr).map_err(|error| ConnectError::Local { source: error.into() })?;
    match dialer.connect(addr, fingerprint, limit).await {
        Ok(connection) => Ok((dialer, connection, address)),
        Err(error) => Err(named(error, address)),
    }
}

fn named(error: quic::ConnectError, address: String) -> ConnectError {
    match error {
        quic::ConnectError::Unreachable { source, .. } => {
            ConnectError::Unreachable { address, source: source.into() }
        }
        quic::ConnectError::TimedOut { after, .. } => ConnectError::TimedOut { address, after },
        quic::ConnectError::WrongCertificate(wrong) => {
            ConnectError::WrongCertificate { address, expected: wrong.expected, got: wrong.got }
        }
        quic::ConnectError::VersionMismatch { .. } => ConnectError::VersionMismatch { address },
        quic::ConnectError::Local { source, .. } => ConnectError::Local { source: source.into() },
        other => ConnectError::Handshake { address, source: other.into() },
    }
}
