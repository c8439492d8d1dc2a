//! Frames per second through the QUIC shell alone: no engine, no SDK.
//!
//! One process, two threads: a client keeps a window of frames in flight on one lane, a server
//! sends each back. Both threads do the work of both directions, so that a frame counted here was
//! written, read, written and read again. `cargo run --release -p slipswitch-net --example
//! echo_rate [seconds]`

use std::cell::RefCell;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::Instant;
use slipswitch_net::clock::Clock;
use slipswitch_net::proto::{Channel, Driver, Frame, Lost, ProtocolError};
use slipswitch_net::quic::{
    Dialer, DriveConfig, Fingerprint, Identity, IoThreads, ListenConfig, Listener, Wake, drive,
};

const DEADLINE: Duration = Duration::from_secs(5);

/// Keeps `window` frames in flight as a client; sends everything back as a server.
struct Echo {
    due: Vec<Frame>,
    heard: u64,
}

impl Driver for Echo {
    fn handle_frame(
        &mut self,
        _channel: Channel,
        frame: Frame,
        _now: Instant,
    ) -> Result<(), ProtocolError> {
        self.heard += 1;
        self.due.push(frame);
        Ok(())
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Channel, Frame)> {
        Some((Channel::Lane(0), self.due.pop()?))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn handle_lost(&mut self, _reason: Lost, _now: Instant) {}

    fn is_closed(&self) -> bool {
        false
    }
}

fn frame(payload: usize) -> Frame {
    Frame::Offer(Box::default(), Bytes::from(vec![0x5a; payload]))
}

fn identity() -> Result<Identity, rcgen::Error> {
    let key = rcgen::KeyPair::generate()?;
    let params = rcgen::CertificateParams::new(vec!["slipswitch".to_string()])?;
    let certificate = params.self_signed(&key)?;
    Ok(Identity::from_der(certificate.der().to_vec(), key.serialize_der()))
}

/// Returns round trips per second.
async fn rate(
    server: SocketAddr,
    pin: Fingerprint,
    payload: usize,
    window: usize,
    time: Duration,
) -> Result<f64, Box<dyn std::error::Error>> {
    let dialer = Dialer::bind(server)?;
    let connection = dialer.connect(server, pin, DEADLINE).await?;
    let clock = Clock::start();
    let due = std::iter::repeat_with(|| frame(payload)).take(window).collect();
    let driver = Rc::new(RefCell::new(Echo { due, heard: 0 }));
    let wake = Arc::new(Wake::new());
    let driving = tokio::task::spawn_local(drive(
        connection,
        Rc::clone(&driver),
        wake,
        DriveConfig::new(clock),
    ));
    // The congestion window grows first.
    tokio::time::sleep(time / 4).await;
    let (start, before) = (clock.now(), driver.borrow().heard);
    tokio::time::sleep(time).await;
    let took = clock.now().saturating_since(start);
    let heard = driver.borrow().heard - before;
    driving.abort();
    dialer.close(DEADLINE).await;
    Ok(heard as f64 / took.as_secs_f64())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(2.0), |text| text.parse())?;
    let time = Duration::from_secs_f64(seconds);
    let identity = identity()?;
    let pin = identity.fingerprint();
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let io = Arc::new(IoThreads::start(1)?);
    let listener = Listener::bind(&ListenConfig::new(addr, identity), io)?;
    listener.serve(|connection| async move {
        let driver = Rc::new(RefCell::new(Echo { due: Vec::new(), heard: 0 }));
        let config = DriveConfig::new(Clock::start());
        let _ = drive(connection, driver, Arc::new(Wake::new()), config).await;
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "the QUIC shell alone, echo, one process, two threads")?;
    writeln!(out, "{:>9} {:>9} {:>14}", "payload B", "in flight", "frames/s")?;
    for (payload, window) in
        [(64, 1), (64, 256), (64, 4_096), (1 << 10, 256), (16 << 10, 64), (64 << 10, 16)]
    {
        let rate = runtime.block_on(rate(listener.local_addr(), pin, payload, window, time))?;
        writeln!(out, "{payload:>9} {window:>9} {rate:>14.0}")?;
    }
    Ok(())
}
