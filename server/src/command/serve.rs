//! `slip serve`: a server until it is told to stop.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde::Serialize;
use slipswitch_net::quic::BindError;
use slipswitch_server::serve::{ServeConfig, ServeError, Server, serve};
use tracing::Level;

use super::runtime;
use crate::cli::{Format, ServeArgs};
use crate::output;
use crate::report::{Exit, Fault, Report};
use crate::stop::{Interrupts, note};

/// Where a server listens, on its first line.
#[derive(Debug, Serialize)]
pub(crate) struct Listening {
    address: SocketAddr,
    fingerprint: String,
    pid: u32,
}

impl Listening {
    pub(crate) fn of(server: &Server) -> Self {
        let fingerprint = server.fingerprint().to_string();
        Self { address: server.local_addr(), fingerprint, pid: std::process::id() }
    }
}

/// Serves until the first interrupt, then drains.
pub(crate) fn run(args: &ServeArgs, format: Format) -> Result<Exit, Report> {
    log(Level::WARN);
    runtime()?.block_on(async {
        let interrupts = Interrupts::listen()?;
        let server = start(args.listen, args.io_threads)?;
        let listening = Listening::of(&server);
        match format {
            Format::Table => output::text(&format!(
                "listening on {} fingerprint {}",
                listening.address, listening.fingerprint
            ))?,
            Format::Json | Format::Jsonl => output::object(&listening)?,
        }
        until_drained(server, interrupts, args.drain_timeout.0).await
    })
}

/// Starts a server.
pub(crate) fn start(listen: SocketAddr, io_threads: Option<u16>) -> Result<Server, Report> {
    let io_threads = io_threads.and_then(|count| NonZeroUsize::new(count.into()));
    serve(ServeConfig::new(listen).io_threads(io_threads)).map_err(|error| refused(&error))
}

/// Waits for the first interrupt and drains; at the second the process ends.
pub(crate) async fn until_drained(
    server: Server,
    interrupts: Interrupts,
    limit: Duration,
) -> Result<Exit, Report> {
    tokio::select! {
        () = interrupts.first("draining: workers finish what they have") => {}
        () = server.died() => return Err(Report::new(
            Exit::Failed,
            Fault::Ours,
            "the engine's driver ended",
            "report what it wrote above as a bug, and start the server again",
        )),
    }
    let drained = server.drain(limit).await;
    if drained.unfinished > 0 {
        let tasks = if drained.unfinished == 1 { "task was" } else { "tasks were" };
        note(&format!("{} {tasks} not finished in time", drained.unfinished));
    }
    Ok(Exit::Done)
}

/// Logs to standard error what is as grave as that.
pub(crate) fn log(level: Level) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .finish();
    // Set already: then whoever set it decides.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Says why a server does not start.
pub(crate) fn refused(error: &ServeError) -> Report {
    let report = |exit, fault, advice: &str| {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
        Report::new(exit, fault, format!("{error}{}", cause.unwrap_or_default()), advice)
    };
    match error {
        ServeError::NotLoopback { .. } => {
            report(Exit::Usage, Fault::Input, "listen on 127.0.0.1 or [::1]")
        }
        ServeError::Bind(BindError::PortInUse { .. }) => report(
            Exit::Usage,
            Fault::Environment,
            "stop the process that has it, or choose another with --listen (port 0 takes a free \
             one)",
        ),
        ServeError::Bind(BindError::AddressUnavailable { .. }) => {
            report(Exit::Usage, Fault::Input, "listen on 127.0.0.1 or [::1]")
        }
        ServeError::Bind(BindError::Forbidden { .. }) => {
            report(Exit::Usage, Fault::Environment, "choose a port above 1023")
        }
        _ => report(Exit::Failed, Fault::Environment, "free what is missing and start again"),
    }
}
