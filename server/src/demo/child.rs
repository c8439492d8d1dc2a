//! The processes of the demo: this program again, under a hidden command.
//!
//! A child reads its standard input: a line asks it to leave, the end says that the demo is gone.
//! So none outlives the demo, however that ends.

use std::io::{self, BufRead};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;

use crate::report::{Exit, Fault, Report};

/// How long a child may take to say that it is ready.
const READY_MAX: Duration = Duration::from_secs(20);
/// How long a child may take to leave.
const LEAVE_MAX: Duration = Duration::from_secs(30);

/// A process that this one started.
#[derive(Debug)]
pub(super) struct Child {
    name: String,
    process: tokio::process::Child,
    stdin: ChildStdin,
    /// Kept open, so that the child can write.
    _stdout: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts this program with other arguments and waits for its first line.
    pub(super) async fn start(
        name: &str,
        args: &[String],
        env: &[(&str, String)],
    ) -> Result<(Self, String), Report> {
        let failed = |what: String| broken(name, &what);
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        // In a group of its own: an interrupt from the terminal is the demo's to handle.
        command.args(args).envs(env.iter().cloned()).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed("its pipes are missing".to_owned()));
        };
        let mut stdout = BufReader::new(stdout).lines();
        let first = tokio::time::timeout(READY_MAX, stdout.next_line()).await;
        let first = first.map_err(|_| failed("it does not get ready".to_owned()))?;
        let first = first.map_err(|error| failed(error.to_string()))?;
        let first = first.ok_or_else(|| failed("it ended at once".to_owned()))?;
        Ok((Self { name: name.to_owned(), process, stdin, _stdout: stdout }, first))
    }

    /// Asks the process to leave and waits until it has.
    pub(super) async fn leave(mut self) -> Result<(), Report> {
        let asked = self.stdin.write_all(b"leave\n").await;
        asked.map_err(|error| broken(&self.name, &error.to_string()))?;
        let left = tokio::time::timeout(LEAVE_MAX, self.process.wait()).await;
        let left = left.map_err(|_| broken(&self.name, "it does not leave"))?;
        let status = left.map_err(|error| broken(&self.name, &error.to_string()))?;
        if status.success() { Ok(()) } else { Err(broken(&self.name, &status.to_string())) }
    }

    /// Kills the process with SIGKILL and waits until it is gone.
    pub(super) async fn kill(mut self) -> Result<(), Report> {
        let killed = self.process.kill().await;
        killed.map_err(|error| broken(&self.name, &error.to_string()))
    }
}

fn broken(name: &str, what: &str) -> Report {
    Report::new(
        Exit::Failed,
        Fault::Environment,
        format!("the demo's {name} process does not work: {what}"),
        "look at what it wrote above, and run the demo again",
    )
}

/// In a child: resolves when it is asked to leave, and ends the process when its parent is gone.
pub(super) fn asked_to_leave() -> impl Future<Output = ()> {
    let (ask, asked) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let is_asked = io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 0);
        if !is_asked {
            std::process::exit(i32::from(Exit::Failed.code()));
        }
        let _ = ask.send(());
        // Nobody who leaves stays longer than whoever asked.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(i32::from(Exit::Failed.code()));
    });
    async {
        // The thread sends or ends the process.
        let _ = asked.await;
    }
}
