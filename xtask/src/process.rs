//! Child processes: their output goes on line by line and is read on the way.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::{clock, out};

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Success,
    Failure,
    /// It could not be started.
    Absent,
    /// It ran into its limit and was killed.
    TimedOut,
}

/// Starts `cargo` or another program in the workspace, without the variables that cargo set for
/// this program alone: they would make a build differ from the same command typed by hand.
pub(crate) fn command(root: &Path, words: &[&str]) -> Command {
    let (program, args) = words.split_first().map_or(("cargo", &[][..]), |(p, a)| (*p, a));
    let mut command = Command::new(program);
    command.args(args).current_dir(root).stdin(Stdio::null()).env("PATH", search_path(root));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    if out::is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}

/// Says whether `program` answers to `--version`.
pub(crate) fn is_there(root: &Path, program: &str) -> bool {
    command(root, &[program, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs to the end, passing every line on and showing it to `each`.
pub(crate) fn run(mut command: Command, mut each: impl FnMut(&str)) -> End {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return End::Absent };
    let lines = lines_of(&mut child);
    for line in lines {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(line.as_bytes());
        let _ = out.write_all(b"\n");
        drop(out);
        each(&line);
    }
    match child.wait() {
        Ok(status) if status.success() => End::Success,
        _ => End::Failure,
    }
}

/// Runs to the end or to the limit and keeps the output.
pub(crate) fn capture(mut command: Command, limit: Duration) -> (End, String) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return (End::Absent, String::new()) };
    let lines = lines_of(&mut child);
    let begin = clock::now();
    let mut text = String::new();
    let mut killed = false;
    loop {
        let left = limit.saturating_sub(begin.elapsed());
        match lines.recv_timeout(if killed { Duration::from_secs(5) } else { left }) {
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
            }
            Err(mpsc::RecvTimeoutError::Timeout) if !killed => {
                killed = true;
                let _ = child.kill();
            }
            // After the kill a grandchild may still hold the pipe: nobody waits for it.
            Err(_) => break,
        }
    }
    let end = match child.wait() {
        _ if killed => End::TimedOut,
        Ok(status) if status.success() => End::Success,
        _ => End::Failure,
    };
    (end, text)
}

fn lines_of(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    if let Some(pipe) = child.stdout.take() {
        forward(pipe, sender.clone());
    }
    if let Some(pipe) = child.stderr.take() {
        forward(pipe, sender);
    }
    lines
}

fn forward(pipe: impl Read + Send + 'static, sender: mpsc::Sender<String>) {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while matches!(pipe.read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line);
            if sender.send(text.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
}

/// The search path with the tools that `.ci/run` installs in front.
fn search_path(root: &Path) -> OsString {
    let own = root.join("target/tools/bin");
    let rest = env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(own).chain(env::split_paths(&rest));
    env::join_paths(all).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        command(Path::new("."), &["sh", "-c", script])
    }

    #[test]
    fn output_of_both_pipes_is_kept_with_the_end() {
        let (end, text) = capture(shell("echo one; echo two >&2; exit 3"), Duration::from_secs(60));
        assert_eq!(end, End::Failure);
        assert!(text.contains("one\n") && text.contains("two\n"), "{text:?}");
        assert_eq!(capture(shell("true"), Duration::from_secs(60)).0, End::Success);
    }

    #[test]
    fn a_child_over_its_limit_is_killed() {
        let (end, _) = capture(shell("exec sleep 600"), Duration::from_millis(20));
        assert_eq!(end, End::TimedOut);
    }

    #[test]
    fn a_program_that_is_not_there_is_absent() {
        assert_eq!(run(command(Path::new("."), &["no-such-program-here"]), |_| {}), End::Absent);
        assert!(!is_there(Path::new("."), "no-such-program-here"));
    }
}
