//! A running server: the engine, its driver, the IO threads and the endpoint.
//!
//! Each connection gets a session on the IO thread where it lives. Tasks cross from one session to
//! another through the engine alone; nothing here is on their way.
//!
//! A drain has two steps. First the engine is told: nothing more is offered, workers hear of it
//! from their sessions and finish what they have. When nothing is in flight any more, or the time
//! is over, every session says goodbye; only then the endpoint closes.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use slipswitch_core::{Config, Engine, Notify, Principal, SessionId};
use slipswitch_net::clock::Clock;
use slipswitch_net::proto::{WireCode, limits};
use slipswitch_net::quic::{
    BindError, Connection, DriveConfig, Fingerprint, Identity, IoThreads, ListenConfig, Listener,
    Wake, drive,
};
use slipswitch_net::server::{Greeting, ServerSession};
use thiserror::Error;
use tokio::sync::watch;

use crate::clock::wall_ms;
use crate::driver::Driver;
use crate::identity::{self, GenerateError};
use crate::ids::{Calendar, Ids};
use crate::seats::Seats;

/// Connections that one principal may have.
pub const CONNECTIONS_MAX: usize = 1_024;

/// How long the sessions of a server that leaves may take to say goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(2);

/// The code that a connection is closed with when there are too many.
const TOO_MANY: u32 = WireCode::QuotaExceeded.number();

/// How long sessions stay open after the last task has ended. Outcomes and verdicts travel on lanes
/// and a goodbye on the control stream, which does not wait for them.
const LINGER: Duration = Duration::from_millis(200);

/// Where a server listens and within which bounds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeConfig {
    /// A loopback address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Certificate and key; `None` generates them.
    pub identity: Option<Identity>,
    /// Threads that carry connections; `None` takes one for each core.
    pub io_threads: Option<NonZeroUsize>,
    /// Connections that one principal may have.
    pub connections_max: usize,
    /// What the engine is told. The incarnation and the seed are drawn when it starts.
    pub engine: Config,
}

impl ServeConfig {
    /// Listens at an address, with the default of everything else.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            identity: None,
            io_threads: None,
            connections_max: CONNECTIONS_MAX,
            engine: Config::default(),
        }
    }

    /// Sets the number of IO threads.
    #[must_use]
    pub const fn io_threads(mut self, count: Option<NonZeroUsize>) -> Self {
        self.io_threads = count;
        self
    }

    /// Sets how many connections one principal may have.
    #[must_use]
    pub const fn connections_max(mut self, count: usize) -> Self {
        self.connections_max = count;
        self
    }

    /// Sets what the engine is told.
    #[must_use]
    pub fn engine(mut self, engine: Config) -> Self {
        self.engine = engine;
        self
    }

    /// Sets certificate and key.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }
}

/// A server cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Others than this machine could reach it, and nobody would ask who they are.
    #[error("{addr} is not a loopback address, and this server cannot tell friend from foe yet")]
    NotLoopback {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// The address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// No certificate can be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The system refuses threads.
    #[error("this machine has no thread to give: {0}")]
    Thread(#[source] io::Error),
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Tasks that workers had not finished when the time was over.
    pub unfinished: u64,
}

/// A running server. Dropping it closes every connection without a goodbye; [`Server::drain`]
/// says one.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    fingerprint: Fingerprint,
    seats: Arc<Seats>,
    leaving: watch::Sender<bool>,
    clock: Clock,
    // After the listener, so that no session outlives the thread that wakes it.
    driver: Driver,
}

/// Starts a server.
///
/// # Errors
///
/// Says why there is none; whatever was started is stopped.
pub fn serve(config: ServeConfig) -> Result<Server, ServeError> {
    if !config.listen.ip().is_loopback() {
        return Err(ServeError::NotLoopback { addr: config.listen });
    }
    let identity = match config.identity {
        Some(identity) => identity,
        None => identity::generate()?,
    };
    let fingerprint = identity.fingerprint();
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let io = IoThreads::start(config.io_threads.unwrap_or(cores).get());
    let io = Arc::new(io.map_err(ServeError::Thread)?);
    let listener = Listener::bind(&ListenConfig::new(config.listen, identity), io)?;
    let clock = Clock::start();
    let engine = Config { incarnation: incarnation(), seed: seed(), ..config.engine };
    let greeting = Greeting {
        server_id: StdRng::from_os_rng().random(),
        incarnation: engine.incarnation,
        lease_ttl: engine.lease_ttl,
        accept_timeout: engine.accept_timeout,
        payload_max: limits::PAYLOAD_MAX,
        wall_clock: 0,
    };
    let driver = Driver::start(engine, clock).map_err(ServeError::Thread)?;
    let (leaving, _) = watch::channel(false);
    let seats = Seats::new(config.connections_max);
    let door = Door {
        engine: Arc::clone(driver.engine()),
        principal: Principal::operator("local"),
        seats: Arc::clone(&seats),
        leaving: leaving.subscribe(),
        clock,
        calendar: Calendar::of(clock),
        greeting,
    };
    listener.serve(move |connection| door.clone().admit(connection));
    Ok(Server { listener, fingerprint, seats, leaving, clock, driver })
}

/// So that nobody outside can choose names whose hashes collide.
fn seed() -> u64 {
    StdRng::from_os_rng().random()
}

/// Rises with every start on one machine, as long as its wall clock does: without a store there is
/// nothing better to count with.
fn incarnation() -> u32 {
    u32::try_from(wall_ms() / 1000).unwrap_or(u32::MAX)
}

impl Server {
    /// Returns the address that it listens at, with the port that the system chose.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Returns the fingerprint of its certificate, by which clients know it.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns its engine.
    #[must_use]
    pub const fn engine(&self) -> &Arc<Engine> {
        self.driver.engine()
    }

    /// Returns the clock that its engine is told the time from.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns how many connections there are.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.seats.taken()
    }

    /// Waits until the engine is driven no more, which only a bug of ours can bring about: offers
    /// and timers stand still then, and the process should end rather than look alive.
    ///
    /// # Cancel safety
    ///
    /// Waits only.
    pub async fn died(&self) {
        self.driver.died().await;
    }

    /// Offers nothing more, lets workers finish for at most `limit`, says goodbye and closes.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the server closes at once.
    pub async fn drain(self, limit: Duration) -> Drained {
        let engine = self.driver.engine();
        engine.drain(self.clock.now());
        let _ = tokio::time::timeout(limit, finished(engine)).await;
        let unfinished = engine.in_flight();
        let _ = tokio::time::timeout(LINGER, self.seats.empty()).await;
        self.leaving.send_replace(true);
        let _ = tokio::time::timeout(GOODBYE_MAX, self.seats.empty()).await;
        self.listener.close();
        self.listener.idle(GOODBYE_MAX).await;
        Drained { unfinished }
    }
}

/// Waits until nothing is in flight.
async fn finished(engine: &Engine) {
    loop {
        let ticket = engine.idle().subscribe();
        if engine.in_flight() == 0 {
            return;
        }
        engine.idle().wait(ticket).await;
    }
}

/// What every new connection is handed.
#[derive(Clone)]
struct Door {
    engine: Arc<Engine>,
    /// Who connects over loopback: the user of this machine.
    principal: Principal,
    seats: Arc<Seats>,
    leaving: watch::Receiver<bool>,
    clock: Clock,
    calendar: Calendar,
    greeting: Greeting,
}

impl Door {
    /// Gives a connection its session and drives it to its end.
    async fn admit(self, connection: Connection) {
        let addr = connection.remote_address();
        let Some(_seat) = Seats::take(&self.seats) else {
            tracing::warn!(%addr, "connection refused: the principal has too many");
            connection.close(TOO_MANY.into(), b"too many connections");
            return;
        };
        let wake = Arc::new(Wake::new());
        let mut random = StdRng::from_os_rng();
        let id = SessionId::from_bytes(random.random());
        let session = Rc::new(RefCell::new(ServerSession::new(
            self.engine,
            self.principal,
            id,
            Arc::new(Ring(Arc::clone(&wake))),
            Box::new(Ids::new(self.calendar, random)),
            Greeting { wall_clock: wall_ms(), ..self.greeting },
            self.clock.now(),
        )));
        let config = DriveConfig::new(self.clock);
        let driving = drive(connection, Rc::clone(&session), Arc::clone(&wake), config);
        let ended = {
            let mut driving = pin!(driving);
            let mut leaving = self.leaving;
            tokio::select! {
                ended = &mut driving => ended,
                // An error says that the server is gone, which is as good a reason.
                _ = leaving.wait_for(|leaving| *leaving) => {
                    session.borrow_mut().shut_down(self.clock.now());
                    wake.wake();
                    driving.await
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%addr, %error, "session lost");
        }
    }
}

/// Rings for the shell that drives a session.
struct Ring(Arc<Wake>);

impl Notify for Ring {
    fn notify(&self) {
        self.0.wake();
    }
}
