//! What a command says when it cannot do its work: one sentence on what happened, whose fault
//! it is and what to do, and the exit code that scripts read.

use std::fmt;
use std::io;

/// The exit codes of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// The task or a check failed.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// What was named does not exist.
    NotFound = 3,
    /// The peer may not do this, or is not who it should be.
    Denied = 4,
    /// No server answers.
    Unreachable = 5,
    /// The time given was over before the work was done.
    TimedOut = 6,
    /// The state of the thing named does not allow it.
    Conflict = 8,
    /// Refused for now; the same may be tried again.
    TryAgain = 9,
    /// A second interrupt.
    Interrupted = 130,
}

impl Exit {
    /// Returns the number that the process exits with.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The command as it was typed, or its input.
    Input,
    /// The server.
    Server,
    /// The task's handler.
    Handler,
    /// This machine or its network.
    Environment,
    /// slipswitch itself.
    Ours,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "the input is at fault",
            Self::Server => "the server is at fault",
            Self::Handler => "the handler is at fault",
            Self::Environment => "the environment is at fault",
            Self::Ours => "slipswitch is at fault",
        })
    }
}

/// Why a command ends without having done its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What happened.
    what: String,
    /// Whose fault it is.
    fault: Fault,
    /// What to do about it.
    advice: String,
    /// True if nobody is left to read the answer, so that nothing is said.
    quiet: bool,
}

impl Report {
    /// Builds a report from what happened, whose fault it is and what to do.
    pub(crate) fn new(
        exit: Exit,
        fault: Fault,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { exit, what: what.into(), fault, advice: advice.into(), quiet: false }
    }

    /// Reports input that no server was asked about: exit 2.
    pub(crate) fn input(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Exit::Usage, Fault::Input, what, advice)
    }

    /// Reports a failure of this machine: a file, a socket, a process.
    pub(crate) fn environment(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Exit::Failed, Fault::Environment, what, advice)
    }

    /// Ends the command with a code and without a word: what there is to say was said.
    pub(crate) fn said(exit: Exit) -> Self {
        Self { exit, what: String::new(), fault: Fault::Input, advice: String::new(), quiet: true }
    }

    /// Reports that standard output cannot be written. A reader that has gone, as in
    /// `slip tasks list | head -1`, is no failure.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::said(Exit::Done);
        }
        Self::environment(
            format!("standard output cannot be written: {error}"),
            "free the disk or the pipe behind it and run the command again",
        )
    }

    /// Prefixes what happened, as with the number of the line that it happened in.
    pub(crate) fn within(mut self, place: &str) -> Self {
        self.what = format!("{place}: {}", self.what);
        self
    }

    /// Appends to the advice.
    pub(crate) fn and_then(mut self, advice: &str) -> Self {
        self.advice = format!("{}; {advice}", self.advice);
        self
    }

    /// True if there is nothing to print.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.quiet
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, fault, advice, .. } = self;
        write!(f, "{} ({fault}): {advice}", Plain(what))
    }
}

/// Text of a peer or a child: control characters are escaped, so that none reaches a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain<'a>(pub(crate) &'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                fmt::Write::write_char(f, character)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_line_whatever_a_peer_wrote() {
        let report = Report::input("bad\n\u{1b}[31mname", "rename it").within("line 7");
        assert_eq!(
            report.to_string(),
            "line 7: bad\\n\\u{1b}[31mname (the input is at fault): rename it"
        );
    }

    #[test]
    fn a_reader_that_left_is_no_failure() {
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Report::output(&gone).exit, Exit::Done);
        assert!(Report::output(&gone).is_quiet());
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Report::output(&full).exit, Exit::Failed);
    }
}
