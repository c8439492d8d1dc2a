//! Processes of `slip` and what they say.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A user with a home of their own: no other server's note is found.
pub(crate) struct User {
    pub(crate) home: tempfile::TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    /// Names a file after writing it.
    pub(crate) fn file(&self, name: &str, contents: &[u8]) -> String {
        std::fs::write(self.home.path().join(name), contents).unwrap();
        self.path(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slip"));
        command.args(args).env("XDG_RUNTIME_DIR", self.home.path());
        command.env("TMPDIR", self.home.path());
        for name in ["SLIP_ADDRESS", "SLIP_FINGERPRINT", "NO_COLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        Said::of(self.command(args).output().unwrap())
    }
}

/// What a process that ended said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn of(output: std::process::Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The exit code, after the check that nothing failed silently.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// One JSON value on standard output.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// Checks that the command was refused in one sentence: what, whose fault, what to do.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, fault: &str, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.out, "", "data on standard output");
        assert_eq!(self.err.lines().count(), 1, "one sentence: {:?}", self.err);
        let rest = self.err.strip_prefix("error: ").unwrap();
        let (what, advice) = rest.split_once(&format!(" (the {fault} is at fault): ")).unwrap();
        assert!(!what.is_empty() && advice.trim_end().len() > 5, "{rest}");
        for word in words {
            assert!(rest.contains(word), "{word:?} is not in {rest:?}");
        }
    }
}

/// A process that runs on. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        Self { stdin: child.stdin.take(), out, err, child }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// The next line of standard output.
    #[track_caller]
    pub(crate) fn out_line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended: {}", self.rest_of_err());
        line.trim_end().to_owned()
    }

    /// The next line of standard error with these words.
    #[track_caller]
    pub(crate) fn err_line(&mut self, words: &str) -> String {
        let mut seen = String::new();
        loop {
            let from = seen.len();
            self.err.read_line(&mut seen).unwrap();
            let line = &seen[from..];
            assert!(!line.is_empty(), "it ended without {words:?}: {seen}");
            if line.contains(words) {
                return line.trim_end().to_owned();
            }
        }
    }

    fn rest_of_err(&mut self) -> String {
        let mut rest = String::new();
        let _ = self.err.read_to_string(&mut rest);
        rest
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Ends a worker at once, and with it the programs that it runs.
    pub(crate) fn end_at_once(mut self) {
        self.signal(Signal::INT);
        self.err_line("interrupt again");
        self.signal(Signal::INT);
        assert_eq!(self.end().code, Some(130));
    }

    /// Waits for the end; what was not read yet is what it said.
    pub(crate) fn end(mut self) -> Said {
        self.stdin = None;
        let mut out = String::new();
        self.out.read_to_string(&mut out).unwrap();
        let err = self.rest_of_err();
        Said { code: self.child.wait().unwrap().code(), out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `slip serve` on a free port, and a user who knows it.
pub(crate) struct Served {
    pub(crate) user: User,
    pub(crate) server: Running,
    pub(crate) address: String,
    pub(crate) fingerprint: String,
}

impl Served {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(more: &[&str]) -> Self {
        let user = User::new();
        let mut args = vec!["serve", "--listen", "127.0.0.1:0", "-o", "json"];
        args.extend(more);
        let mut server = Running::start(user.command(&args));
        let line: Value = serde_json::from_str(&server.out_line()).unwrap();
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        let (address, fingerprint) = (text("address"), text("fingerprint"));
        assert_eq!(line["schema"], 1);
        Self { user, server, address, fingerprint }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.user.command(args);
        command.env("SLIP_ADDRESS", &self.address).env("SLIP_FINGERPRINT", &self.fingerprint);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        Said::of(self.command(args).output().unwrap())
    }

    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Said {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // It may end before it read everything.
            scope.spawn(move || drop(stdin.write_all(input)));
            Said::of(child.wait_with_output().unwrap())
        })
    }

    /// A worker that the server knows.
    pub(crate) fn worker(&self, args: &[&str]) -> Running {
        let mut all = vec!["worker"];
        all.extend(args);
        let mut worker = Running::start(self.command(&all));
        worker.err_line("is registered");
        worker
    }

    /// Submits one task and returns its id.
    pub(crate) fn submit(&self, args: &[&str]) -> String {
        let mut all = vec!["submit"];
        all.extend(args);
        self.run(&all).ok().trim_end().to_owned()
    }

    pub(crate) fn task(&self, id: &str) -> Value {
        self.run(&["tasks", "get", id, "-o", "json"]).json()
    }

    /// Asks until the answer is the one waited for. What is asked changes on its own time.
    pub(crate) fn until(&self, args: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let answer = self.run(args).json();
            if wanted(&answer) {
                return answer;
            }
            pause();
        }
    }
}

/// A breath between two looks at what changes on its own time.
pub(crate) fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(2));
}

/// Waits until a file has this many lines, and returns them.
pub(crate) fn lines_of(path: impl AsRef<Path>, count: usize) -> Vec<String> {
    loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() >= count && text.ends_with('\n') {
            return lines;
        }
        pause();
    }
}
