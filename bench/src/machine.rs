//! What a table must say about where and when it was measured.

use std::fmt;
use std::fs;
use std::process::Command;

use crate::clock;

/// The machine, the compiler, the commit and the date of a run.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// How many threads run at once.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The compiler found at run time.
    pub rustc: String,
    /// The commit of the working tree, with `+` if it has changes.
    pub commit: String,
    /// The day, in UTC.
    pub date: String,
    /// The load average at the start: above zero, others were running too.
    pub load: String,
    /// What two clock readings in a row report.
    pub timer_ns: u64,
}

impl Machine {
    /// Looks the facts up; what cannot be found out is `unknown`.
    #[must_use]
    pub fn look_up() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .and_then(|rest| rest.split_once(": "))
            .map_or_else(unknown, |(_, name)| name.trim().to_owned());
        let mut commit = output("git", &["rev-parse", "--short", "HEAD"]);
        if !output_raw("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty() {
            commit.push('+');
        }
        Self {
            cpu,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: first_line("/proc/sys/kernel/osrelease"),
            rustc: output("rustc", &["-V"]),
            commit,
            date: date(clock::since_epoch().as_secs()),
            load: first_line("/proc/loadavg").split(' ').take(1).collect(),
            timer_ns: clock::timer_cost_ns(),
        }
    }

    /// The facts as an object.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "cpu": self.cpu,
            "cores": self.cores,
            "kernel": self.kernel,
            "rustc": self.rustc,
            "commit": self.commit,
            "date": self.date,
            "load": self.load,
            "timer_ns": self.timer_ns,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} cores, kernel {}, {}, commit {}, {} (load average at the start {}; \
             two clock readings in a row: {} ns)",
            self.cpu,
            self.cores,
            self.kernel,
            self.rustc,
            self.commit,
            self.date,
            self.load,
            self.timer_ns,
        )
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path)
        .ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_else(unknown)
}

fn output_raw(program: &str, arguments: &[&str]) -> String {
    Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let text = output_raw(program, arguments);
    if text.is_empty() { unknown() } else { text }
}

/// Returns the day of a count of seconds since 1970, as `year-month-day`.
fn date(seconds: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut days = seconds / 86_400;
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests;
