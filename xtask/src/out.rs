//! Lines for whoever runs a task.

use std::io::{self, IsTerminal as _, Write as _};

/// Prints one line. A reader that went away is no reason to stop.
pub(crate) fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Says whether colour and cursor movement are wanted.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
