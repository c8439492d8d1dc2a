//! `slip demo`: a server process, worker processes and this producer, all over QUIC on loopback.
//!
//! Act one has no fault: how fast it is. In act two a worker process is killed with SIGKILL while
//! it holds tasks: nothing is lost. Each act has workers of its own, which leave before their
//! journals are read; then the producer's notes are held against them.

mod archive;
mod check;
mod child;
mod journal;
mod labour;
mod producer;
mod staff;
mod story;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use slipswitch::{Client, ConnectOptions};
use slipswitch_core::Instant;
use slipswitch_net::clock::Clock;

use crate::cli::{DemoArgs, Format, View};
use crate::command::{failing, runtime};
use crate::output;
use crate::report::{Exit, Fault, Report};
use crate::stop::Interrupts;
use archive::Archive;
use check::{Findings, Journals, check};
use child::Child;
use journal::Note;
use labour::{HEAD_BYTES, PAYLOAD_BYTES_MIN};
use producer::{Act, Notes, Progress, produce};
pub(crate) use staff::{server, worker};
use story::{Kill, Story, Ticker};

/// The largest payload: its result must fit, too.
const PAYLOAD_BYTES_MAX: u64 = (1 << 20) - HEAD_BYTES as u64;
/// Payload bytes on their way, above which fewer tasks are.
const WINDOW_BYTES: u64 = 8 << 20;
/// Tasks on their way in act one.
const WINDOW: u64 = 1_024;
/// Tasks of one batch in act one.
const BATCH: u64 = 64;
/// Credit of each worker in act two.
const SLOTS_TWO: u64 = 64;
/// How long act two should take at least, so that the kill finds tasks at work.
const ACT_TWO_MIN: Duration = Duration::from_millis(400);

/// Plays both acts and checks them.
pub(crate) fn run(args: &DemoArgs, view: View) -> Result<Exit, Report> {
    let payload = args.payload.0;
    if !(PAYLOAD_BYTES_MIN as u64..=PAYLOAD_BYTES_MAX).contains(&payload) {
        return Err(Report::input(
            format!("--payload {} is out of range", args.payload),
            format!("give {PAYLOAD_BYTES_MIN}B to {PAYLOAD_BYTES_MAX}B"),
        ));
    }
    let story = runtime()?.block_on(play(args))?;
    match view.output {
        Format::Table => output::text(&story.to_string())?,
        Format::Json | Format::Jsonl => output::plain(&story.summary())?,
    }
    Ok(if story.is_clean() { Exit::Done } else { Exit::Failed })
}

/// Where the demo's server is.
#[derive(Debug, Deserialize)]
struct Place {
    address: String,
    fingerprint: String,
}

/// What both acts need.
struct Stage {
    client: Client,
    place: Place,
    archive: Archive,
    workers: u16,
    payload: usize,
    clock: Clock,
    stop: Arc<AtomicBool>,
}

/// What became of an act.
struct Played {
    findings: Findings,
    notes: Notes,
    began: Instant,
}

async fn play(args: &DemoArgs) -> Result<Story, Report> {
    let interrupts = Interrupts::listen()?;
    let (server, first) = Child::start("server", &["demo-server".to_owned()], &[]).await?;
    let place: Place = serde_json::from_str(&first).map_err(|error| odd(&first, &error))?;
    let fingerprint = place.fingerprint.parse().map_err(|error| odd(&first, &error))?;
    let options = ConnectOptions::new(place.address.as_str(), fingerprint).sdk_name("slip demo");
    let stage = Stage {
        client: Client::connect(options).await.map_err(|error| failing::connect(&error))?,
        place,
        archive: Archive::make()?,
        workers: args.workers,
        payload: usize::try_from(args.payload.0).unwrap_or(usize::MAX),
        clock: Clock::start(),
        stop: Arc::default(),
    };
    let acts = async {
        let one = stage.act_one(args.tasks).await?;
        let (two, kill) = stage.act_two((args.tasks / 10).max(1)).await?;
        Ok::<_, Report>(Story::new(args, one, two, kill))
    };
    let stopped = async {
        interrupts.first("the demo ends after the tasks on their way").await;
        // Relaxed: seen a batch later at most.
        stage.stop.store(true, Ordering::Relaxed);
        std::future::pending().await
    };
    let story = tokio::select! {
        story = acts => story?,
        never = stopped => never,
    };
    stage.client.close().await;
    server.leave().await?;
    Ok(story)
}

fn odd(line: &str, error: &dyn std::error::Error) -> Report {
    Report::environment(
        format!("the demo's server process said {line:?}: {error}"),
        "run the demo again",
    )
}

impl Stage {
    /// Every task once, and nobody fails.
    async fn act_one(&self, tasks: u64) -> Result<Played, Report> {
        let window = (WINDOW_BYTES / self.payload as u64).clamp(1, WINDOW);
        let batch = window.min(BATCH);
        let lanes = (window / batch).max(1);
        let act = Act { tasks, payload: self.payload, queue: "act-one", lanes, batch };
        let slots = (window / u64::from(self.workers)).clamp(16, 1_024);
        let staff = self.staff(&act, slots, Duration::ZERO, false).await?;
        let began = self.clock.now();
        let progress = Arc::new(Progress::new(Arc::clone(&self.stop)));
        let ticker = Ticker::start("act one", tasks, Arc::clone(&progress));
        let notes = produce(&self.client, &act, self.clock, &progress).await;
        drop(ticker);
        let notes = self.unless_stopped(notes?)?;
        let mut journals = Journals::default();
        for (worker, path) in staff {
            worker.leave().await?;
            journals.left.extend(read(&path, 0)?.0);
        }
        let findings = check(&notes, &journals);
        Ok(Played { findings, notes, began })
    }

    /// A worker process is killed while it holds tasks.
    async fn act_two(&self, tasks: u64) -> Result<(Played, Kill), Report> {
        let slots = SLOTS_TWO * u64::from(self.workers);
        let window = (WINDOW_BYTES / self.payload as u64).clamp(1, 4 * slots);
        // Small batches: one whose tasks the killed worker holds waits, the others go on.
        let batch = window.min(4);
        let lanes = (window / batch).max(1);
        let act = Act { tasks, payload: self.payload, queue: "act-two", lanes, batch };
        let rounds = u32::try_from(tasks.div_ceil(slots)).unwrap_or(u32::MAX);
        let busy = (ACT_TWO_MIN / rounds).max(Duration::from_millis(2));
        let mut staff = self.staff(&act, SLOTS_TWO, busy, true).await?;
        let began = self.clock.now();
        let progress = Arc::new(Progress::new(Arc::clone(&self.stop)));
        let ticker = Ticker::start("act two", tasks, Arc::clone(&progress));
        let producing = produce(&self.client, &act, self.clock, &progress);
        let killing = self.kill_one(&mut staff, &progress, tasks);
        let (notes, killed) = tokio::join!(producing, killing);
        drop(ticker);
        let (notes, (killed_at, victim)) = (self.unless_stopped(notes?)?, killed?);
        let mut journals = Journals { killed: read(&victim, 0)?.0, ..Journals::default() };
        for (worker, path) in staff {
            worker.leave().await?;
            journals.left.extend(read(&path, 0)?.0);
        }
        let findings = check(&notes, &journals);
        let redelivered = notes.settled.iter().filter(|task| {
            task.head.is_some_and(|head| head.deliveries > 0) && task.at >= killed_at
        });
        let recovered = redelivered.map(|task| task.at.saturating_since(killed_at)).max();
        let kill = Kill { tasks, recovered: recovered.unwrap_or_default() };
        Ok((Played { findings, notes, began }, kill))
    }

    /// Starts the workers of an act.
    async fn staff(
        &self,
        act: &Act,
        slots: u64,
        busy: Duration,
        write_through: bool,
    ) -> Result<Vec<(Child, PathBuf)>, Report> {
        let env = [
            ("SLIP_ADDRESS", self.place.address.clone()),
            ("SLIP_FINGERPRINT", self.place.fingerprint.clone()),
        ];
        let mut staff = Vec::new();
        for number in 1..=self.workers {
            let path = self.archive.file(&format!("{}-{number}", act.queue));
            let mut args = vec!["demo-worker".to_owned()];
            for (name, value) in [
                ("--journal", path.display().to_string()),
                ("--slots", slots.to_string()),
                ("--busy", format!("{}us", busy.as_micros())),
                ("--queue", act.queue.to_owned()),
            ] {
                args.extend([name.to_owned(), value]);
            }
            if write_through {
                args.push("--write-through".to_owned());
            }
            let (worker, _) = Child::start("worker", &args, &env).await?;
            staff.push((worker, path));
        }
        Ok(staff)
    }

    /// Kills the first worker seen with tasks at work once a third of the tasks is done; returns
    /// when, and its journal. With few tasks there is no such moment: then any worker will do.
    async fn kill_one(
        &self,
        staff: &mut Vec<(Child, PathBuf)>,
        progress: &Progress,
        tasks: u64,
    ) -> Result<(Instant, PathBuf), Report> {
        let mut journals = vec![(0, 0i64); staff.len()];
        let victim = 'watch: loop {
            for (place, ((_, path), (from, at_work))) in staff.iter().zip(&mut journals).enumerate()
            {
                let (records, next) = read(path, *from)?;
                *from = next;
                *at_work += records
                    .iter()
                    .map(|record| match record.note {
                        Note::Started => 1,
                        Note::Executed => -1,
                        Note::Refused => 0,
                    })
                    .sum::<i64>();
                if *at_work > 0 && progress.settled() * 3 >= tasks.saturating_sub(3) {
                    break 'watch place;
                }
            }
            if progress.settled() >= tasks || progress.is_stopped() {
                break 0;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let (worker, path) = staff.swap_remove(victim);
        let killed_at = self.clock.now();
        worker.kill().await?;
        Ok((killed_at, path))
    }

    fn unless_stopped(&self, notes: Notes) -> Result<Notes, Report> {
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(notes);
        }
        let ended = notes.settled.len();
        Err(Report::new(
            Exit::Failed,
            Fault::Input,
            format!("the demo was interrupted; the {ended} tasks of this act have all ended"),
            "run it again and let it end to see the check",
        ))
    }
}

fn read(path: &std::path::Path, from: u64) -> Result<(Vec<journal::Record>, u64), Report> {
    journal::read(path, from).map_err(|error| {
        Report::environment(
            format!("the journal {} cannot be read: {error}", path.display()),
            "free the disk that holds temporary files, and run the demo again",
        )
    })
}
