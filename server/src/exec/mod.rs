//! Any program as a worker: payload on standard input, result on standard output.
//!
//! Each run gets a process group of its own, and the group ends with the run: when the program
//! exits, when it runs too long or writes too much, and when the run is given up because the task
//! was cancelled or the worker stops. The group is signalled while its leader is not yet reaped,
//! so that its number cannot have passed to a stranger.
//!
//! A program need not read its input: closing it early is no failure.

mod group;
mod words;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};

use group::Group;
pub(crate) use group::end_all;
pub(crate) use words::InvalidCommand;

/// The exit code by which a program asks for another attempt (`EX_TEMPFAIL` of sysexits).
pub(crate) const RETRYABLE_EXIT: i32 = 75;

/// How much of the end of standard error becomes the message of a failure.
const STDERR_TAIL_BYTES: usize = 2048;

/// How long a program may take to end after SIGTERM before it gets SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(1);

/// How long output may still arrive after the program and its group have ended. Only a process
/// that left the group can hold the pipe open that long.
const PIPE_GRACE: Duration = Duration::from_secs(1);

/// A program and its limits, checked once before the first run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    args: Vec<String>,
    /// The longest run.
    pub(crate) timeout: Option<Duration>,
    /// The most that a run may write to standard output.
    pub(crate) output_limit: usize,
}

/// A command cannot be run as a worker.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum InvalidProgram {
    /// It cannot be split into words.
    #[error(transparent)]
    Command(#[from] InvalidCommand),
    /// No file of that name can be executed.
    #[error("the command {name:?} {reason}")]
    NotRunnable {
        /// The first word.
        name: String,
        /// Why.
        reason: &'static str,
    },
}

/// How a run ended, if not with a result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum RunError {
    /// The program asked for another attempt.
    #[error("{}", told(message, "the command exited with 75 (try again)"))]
    Retryable {
        /// The end of standard error.
        message: String,
    },
    /// The program failed for good.
    #[error("{}", told(message, &format!("the command exited with {code}")))]
    Terminal {
        /// The exit code.
        code: i32,
        /// The end of standard error.
        message: String,
    },
    /// Another process ended the program.
    #[error(
        "the command was ended by signal {signal}{}; the task may be tried again{}",
        signal_name(*signal), after(message)
    )]
    Signalled {
        /// The signal.
        signal: i32,
        /// The end of standard error.
        message: String,
    },
    /// The program ran too long and was ended.
    #[error(
        "the command ran longer than its time-out of {limit:?} and was ended{}",
        after(message)
    )]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The end of standard error.
        message: String,
    },
    /// The program wrote too much and was ended.
    #[error("the command wrote more than its output limit of {limit} bytes and was ended")]
    OutputLimit {
        /// The limit.
        limit: usize,
    },
    /// The program could not be started.
    #[error("the command could not be started: {0}")]
    Spawn(String),
}

impl RunError {
    /// A short name for programs.
    pub(crate) fn code(&self) -> String {
        match self {
            Self::Retryable { .. } => "exit-75".to_owned(),
            Self::Terminal { code, .. } => format!("exit-{code}"),
            Self::Signalled { signal, .. } => format!("signal-{signal}"),
            Self::TimedOut { .. } => "timeout".to_owned(),
            Self::OutputLimit { .. } => "output-limit".to_owned(),
            Self::Spawn(_) => "spawn".to_owned(),
        }
    }

    /// True if another attempt may help.
    pub(crate) const fn is_retryable(&self) -> bool {
        match self {
            Self::Retryable { .. } | Self::Signalled { .. } => true,
            Self::TimedOut { .. } | Self::Spawn(_) => true,
            Self::Terminal { .. } | Self::OutputLimit { .. } => false,
        }
    }
}

fn told(message: &str, otherwise: &str) -> String {
    if message.is_empty() { otherwise.to_owned() } else { message.to_owned() }
}

fn after(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

impl Program {
    /// Splits a command and finds its program as a shell would: a word with a slash is a path,
    /// another is looked up in `PATH`.
    ///
    /// # Errors
    ///
    /// When the command has no word or needs a shell, or when there is no such program.
    pub(crate) fn find(command: &str) -> Result<Self, InvalidProgram> {
        let mut words = words::split(command)?.into_iter();
        let name = words.next().unwrap_or_default();
        let path = locate(&name)
            .map_err(|reason| InvalidProgram::NotRunnable { name: name.clone(), reason })?;
        Ok(Self { path, args: words.collect(), timeout: None, output_limit: 1 << 20 })
    }

    /// Runs the program once.
    ///
    /// # Errors
    ///
    /// Says how the run ended, if not with exit code 0 within the limits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the process group at once; the program is reaped later.
    pub(crate) async fn run(
        &self,
        facts: impl IntoIterator<Item = (&'static str, String)>,
        input: Bytes,
    ) -> Result<Bytes, RunError> {
        let mut command = tokio::process::Command::new(&self.path);
        command.args(&self.args).envs(facts).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(&mut command).await.map_err(|e| RunError::Spawn(e.to_string()))?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut run = Run { group: Group::of(&child), child };
        let mut output = Vec::new();
        let mut tail = Tail::default();
        let ended = {
            let carry = async {
                let ((), written, ()) = tokio::join!(
                    feed(stdin, &input),
                    collect(stdout, &mut output, self.output_limit),
                    tail.follow(stderr),
                );
                written
            };
            run.drive(Box::pin(carry), self.timeout).await
        };
        let message = tail.message();
        match ended {
            Ended::Exited(status) => judge(status, output, message),
            Ended::TimedOut(limit) => Err(RunError::TimedOut { limit, message }),
            Ended::TooMuch => Err(RunError::OutputLimit { limit: self.output_limit }),
            Ended::Lost(error) => Err(RunError::Spawn(error.to_string())),
        }
    }
}

/// Starts a program. A file that was written just now may still be open for writing in a process
/// that is forking at this moment; that passes.
async fn spawn(command: &mut tokio::process::Command) -> io::Result<Child> {
    let mut tries = 0;
    loop {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < 10 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(tries)).await;
            }
            spawned => return spawned,
        }
    }
}

fn judge(status: ExitStatus, output: Vec<u8>, message: String) -> Result<Bytes, RunError> {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(output.into()),
        (Some(RETRYABLE_EXIT), _) => Err(RunError::Retryable { message }),
        (Some(code), _) => Err(RunError::Terminal { code, message }),
        (None, signal) => Err(RunError::Signalled { signal: signal.unwrap_or(0), message }),
    }
}

/// A started program and its group.
struct Run {
    // Dropped before the child: the group is signalled while its leader is not yet reaped.
    group: Group,
    child: Child,
}

enum Ended {
    Exited(ExitStatus),
    TimedOut(Duration),
    TooMuch,
    Lost(io::Error),
}

/// Standard output went over its limit.
struct TooMuch;

impl Run {
    /// Carries the streams until the program has ended, and ends its group.
    async fn drive(
        &mut self,
        mut carry: impl Future<Output = Result<(), TooMuch>> + Unpin,
        timeout: Option<Duration>,
    ) -> Ended {
        let over = async {
            match timeout {
                Some(limit) => {
                    tokio::time::sleep(limit).await;
                    limit
                }
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over);
        let mut carried = false;
        loop {
            tokio::select! {
                written = &mut carry, if !carried => match written {
                    Ok(()) => carried = true,
                    Err(TooMuch) => return self.finish(Ended::TooMuch).await,
                },
                exited = self.group.exited(&mut self.child) => {
                    if let Err(error) = exited {
                        return self.finish(Ended::Lost(error)).await;
                    }
                    break;
                }
                limit = &mut over => {
                    self.group.terminate();
                    // The streams are read on, so that the program's last words are heard.
                    let end = async {
                        tokio::join!(self.group.exited(&mut self.child), async {
                            if !carried {
                                let _ = carry.await;
                            }
                        })
                    };
                    let _ = tokio::time::timeout(TERM_GRACE, end).await;
                    return self.finish(Ended::TimedOut(limit)).await;
                }
            }
        }
        self.group.kill();
        if !carried {
            // What was written before the end still lies in the pipe.
            if let Ok(Err(TooMuch)) = tokio::time::timeout(PIPE_GRACE, carry).await {
                return self.finish(Ended::TooMuch).await;
            }
        }
        match self.reap().await {
            Ok(status) => Ended::Exited(status),
            Err(error) => Ended::Lost(error),
        }
    }

    /// Ends what is left and reaps it.
    async fn finish(&mut self, ended: Ended) -> Ended {
        self.group.kill();
        match self.reap().await {
            Ok(_) => ended,
            Err(error) => Ended::Lost(error),
        }
    }

    async fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.group.forget();
        status
    }
}

/// Writes the input. A program that does not read it is within its rights.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        // EPIPE says that the program closed its input; whether that matters, its exit code tells.
        let _ = stdin.write_all(input).await;
    }
}

async fn collect(
    stdout: Option<impl AsyncRead + Unpin>,
    output: &mut Vec<u8>,
    limit: usize,
) -> Result<(), TooMuch> {
    let Some(stdout) = stdout else { return Ok(()) };
    let mut bounded = stdout.take(u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1));
    // A broken pipe to a program that has ended holds nothing more.
    let _ = bounded.read_to_end(output).await;
    if output.len() > limit { Err(TooMuch) } else { Ok(()) }
}

/// The end of standard error.
#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    cut: bool,
}

impl Tail {
    async fn follow(&mut self, stderr: Option<impl AsyncRead + Unpin>) {
        let Some(mut stderr) = stderr else { return };
        let mut chunk = vec![0; 1024];
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            self.bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
            let over = self.bytes.len().saturating_sub(STDERR_TAIL_BYTES);
            if over > 0 {
                self.bytes.drain(..over);
                self.cut = true;
            }
        }
    }

    fn message(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.trim_start_matches('\u{fffd}').trim();
        if self.cut { format!("…{text}") } else { text.to_owned() }
    }
}

/// Finds a program as `execvp` would.
fn locate(name: &str) -> Result<PathBuf, &'static str> {
    if name.contains('/') {
        return runnable(Path::new(name)).map(|()| absolute(Path::new(name)));
    }
    let search = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    let mut refused = "is not in PATH";
    for dir in std::env::split_paths(&search) {
        let path = dir.join(name);
        match runnable(&path) {
            Ok(()) => return Ok(absolute(&path)),
            Err("does not exist") => {}
            Err(reason) => refused = reason,
        }
    }
    Err(refused)
}

/// A run must not depend on where the worker stands when it starts it.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn runnable(path: &Path) -> Result<(), &'static str> {
    use rustix::fs::{Access, access};
    match path.metadata() {
        Ok(meta) if meta.is_dir() => Err("is a directory"),
        Ok(_) => access(path, Access::EXEC_OK).map_err(|_| "may not be executed"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err("may not be executed"),
        Err(_) => Err("does not exist"),
    }
}

#[cfg(test)]
mod tests;
