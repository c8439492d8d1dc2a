//! What the demo tells: a line that moves, a summary for people, a line for programs.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::task::JoinHandle;

use super::Played;
use super::check::Findings;
use super::producer::Progress;
use crate::cli::DemoArgs;

/// How often the moving line moves.
const TICK: Duration = Duration::from_millis(100);
const BAR_COLUMNS: u64 = 40;

/// A line on a terminal that says how far an act is, until it is dropped.
#[derive(Debug)]
pub(super) struct Ticker(Option<JoinHandle<()>>);

impl Ticker {
    /// Starts the line, if there is a terminal to write it on.
    pub(super) fn start(act: &'static str, tasks: u64, progress: Arc<Progress>) -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        Self(Some(tokio::spawn(async move {
            loop {
                draw(act, progress.settled(), tasks);
                tokio::time::sleep(TICK).await;
            }
        })))
    }
}

fn draw(act: &str, settled: u64, tasks: u64) {
    let full =
        usize::try_from((settled * BAR_COLUMNS).checked_div(tasks).unwrap_or(0)).unwrap_or(0);
    let bar = "█".repeat(full);
    let width = BAR_COLUMNS as usize;
    let _ = write!(io::stderr().lock(), "\r{act}  {bar:░<width$}  {settled} of {tasks} ");
}

impl Drop for Ticker {
    fn drop(&mut self) {
        if let Some(line) = self.0.take() {
            line.abort();
            // Back to the start of the line, and clear it.
            let _ = write!(io::stderr().lock(), "\r\x1b[2K");
        }
    }
}

/// How long tasks took from submission to outcome, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Latency {
    p50: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Latency {
    fn of(micros: impl Iterator<Item = u64>) -> Self {
        let mut max = 0;
        // Three digits; what is longer than an hour counts as an hour.
        let hour = 3_600_000_000;
        let Ok(mut histogram) = Histogram::<u64>::new_with_bounds(1, hour, 3) else {
            return Self::default();
        };
        for micros in micros {
            max = max.max(micros);
            histogram.saturating_record(micros);
        }
        let at = |quantile| histogram.value_at_quantile(quantile).min(max);
        Self { p50: at(0.5), p99: at(0.99), p999: at(0.999), max }
    }
}

/// What act two adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kill {
    pub(super) tasks: u64,
    /// From the kill to the last outcome of a task that was redelivered.
    pub(super) recovered: Duration,
}

/// Both acts.
#[derive(Debug)]
pub(super) struct Story {
    summary: Summary,
    one: Findings,
    two: Findings,
    payload: String,
}

/// The last line for programs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    schema: u8,
    transport: &'static str,
    tasks: u64,
    completed: u64,
    lost: u64,
    settled_twice: u64,
    redelivered: u64,
    workers: u16,
    seconds: f64,
    throughput_per_s: u64,
    latency_us: Latency,
    kill: Killed,
}

#[derive(Clone, Debug, Serialize)]
struct Killed {
    tasks: u64,
    completed: u64,
    redelivered: u64,
    recovered_ms: u64,
}

impl Story {
    pub(super) fn new(args: &DemoArgs, one: Played, two: Played, kill: Kill) -> Self {
        let last = one.notes.settled.iter().map(|task| task.at).max().unwrap_or(one.began);
        let seconds = last.saturating_since(one.began).as_secs_f64();
        let latency = Latency::of(one.notes.settled.iter().map(|task| task.latency_us));
        let (one, two) = (one.findings, two.findings);
        let summary = Summary {
            schema: 1,
            transport: "quic",
            tasks: args.tasks,
            completed: one.completed,
            lost: one.lost + two.lost,
            settled_twice: one.settled_twice + two.settled_twice,
            redelivered: one.redelivered,
            workers: args.workers,
            seconds: (seconds * 1000.0).round() / 1000.0,
            throughput_per_s: rate(one.completed, seconds),
            latency_us: latency,
            kill: Killed {
                tasks: kill.tasks,
                completed: two.completed,
                redelivered: two.redelivered,
                recovered_ms: u64::try_from(kill.recovered.as_millis()).unwrap_or(u64::MAX),
            },
        };
        Self { summary, one, two, payload: args.payload.to_string() }
    }

    /// True if every task was settled exactly once with the right result.
    pub(super) fn is_clean(&self) -> bool {
        let Summary { tasks, completed, kill, .. } = &self.summary;
        let all = completed == tasks && kill.completed == kill.tasks;
        all && self.one.is_clean() && self.two.is_clean()
    }

    pub(super) const fn summary(&self) -> &Summary {
        &self.summary
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a rate for people: finite, not negative, and far below 2^53"
)]
fn rate(tasks: u64, seconds: f64) -> u64 {
    if seconds > 0.0 { (tasks as f64 / seconds).round() as u64 } else { 0 }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { summary, one, two, payload } = self;
        let Latency { p50, p99, p999, max } = summary.latency_us;
        let ms = |micros: u64| format!("{}.{:01} ms", micros / 1000, micros % 1000 / 100);
        writeln!(
            f,
            "one server, {} workers and a producer, each a process, over QUIC on loopback\n",
            summary.workers
        )?;
        writeln!(f, "act one: {} tasks of {payload}, no fault", summary.tasks)?;
        writeln!(
            f,
            "  {} completed in {:.2} s: {} tasks/s",
            summary.completed, summary.seconds, summary.throughput_per_s
        )?;
        writeln!(
            f,
            "  from submit to outcome: p50 {}, p99 {}, p99.9 {}, max {}",
            ms(p50),
            ms(p99),
            ms(p999),
            ms(max)
        )?;
        let kill = &summary.kill;
        writeln!(f, "act two: {} tasks, one worker process killed with SIGKILL", kill.tasks)?;
        writeln!(
            f,
            "  {} completed, {} of them delivered again, the last {} ms after the kill",
            kill.completed, kill.redelivered, kill.recovered_ms
        )?;
        writeln!(f, "check: what was submitted against what workers executed")?;
        for (act, found) in [("one", one), ("two", two)] {
            writeln!(
                f,
                "  act {act}: {} lost, {} settled twice, {} wrong, {} unexplained",
                found.lost, found.settled_twice, found.wrong, found.unexplained
            )?;
        }
        let verdict = if self.is_clean() {
            "every task was settled exactly once, with the right result"
        } else {
            "FAILED: the promise was broken"
        };
        write!(f, "{verdict}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_read_off_in_order() {
        let latency = Latency::of(1..=1000);
        assert_eq!((latency.p50, latency.p99, latency.p999, latency.max), (500, 990, 999, 1000));
        assert_eq!(Latency::of(std::iter::empty()).max, 0);
        let long = Latency::of([u64::MAX].into_iter());
        assert_eq!(long.max, u64::MAX);
    }

    #[test]
    fn a_rate_without_time_is_zero() {
        assert_eq!(rate(10, 0.0), 0);
        assert_eq!(rate(10, 0.5), 20);
    }
}
