//! Interrupts: the first asks for an orderly end, the second ends the process.

use std::io::{self, Write};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exec;
use crate::report::{Exit, Report};

/// Ctrl-C and SIGTERM.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Listens from now on: neither ends the process by itself any more.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub(crate) fn listen() -> Result<Self, Report> {
        let both = signal(SignalKind::interrupt()).and_then(|interrupt| {
            Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
        });
        both.map_err(|error| {
            Report::environment(
                format!("signals cannot be received: {error}"),
                "run the command where the system lets it",
            )
        })
    }

    /// Waits for the next one.
    ///
    /// # Cancel safety
    ///
    /// One that comes while nobody waits is found by the next wait.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for the first, says what happens now, and from then on ends the process at the next.
    ///
    /// # Cancel safety
    ///
    /// Before the first one, dropping the future changes nothing.
    pub(crate) async fn first(mut self, what_now: &str) {
        self.next().await;
        note(&format!("{what_now}; interrupt again to end at once"));
        tokio::spawn(async move {
            self.next().await;
            end_at_once();
        });
    }
}

/// Ends the process, and the programs that it runs, because somebody insists.
pub(crate) fn end_at_once() -> ! {
    exec::end_all();
    std::process::exit(i32::from(Exit::Interrupted.code()))
}

/// Writes a note for people to standard error.
pub(crate) fn note(text: &str) {
    // Nobody reads it: no reason to stop.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
