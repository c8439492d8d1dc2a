//! The demo's producer: a bounded number of tasks on their way, and a note on each.
//!
//! Lanes take turns at the next numbers; each submits a batch, waits for all of its outcomes and
//! goes on. So lanes times batch tasks are on their way at any time, and latency is not a queue
//! that grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use slipswitch::{Client, Payload, SubmitOptions, TaskHandle, TaskId};
use slipswitch_core::Instant;
use slipswitch_net::clock::Clock;
use tokio::task::JoinSet;

use super::labour::{ACTIVITY_TYPE, Head, payload, verify};
use crate::command::failing;
use crate::report::Report;

/// How long no task may end before those on their way are given up.
const STALL_MAX: Duration = Duration::from_secs(40);

/// What a producer is to do.
#[derive(Clone, Debug)]
pub(super) struct Act {
    /// How many tasks.
    pub(super) tasks: u64,
    /// Bytes of each payload.
    pub(super) payload: usize,
    /// Where they go.
    pub(super) queue: &'static str,
    /// Batches on their way.
    pub(super) lanes: u64,
    /// Tasks of each batch.
    pub(super) batch: u64,
}

/// A task that ended, as its producer saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    pub(super) task: TaskId,
    /// What its result says; `None` if it is wrong or there is none.
    pub(super) head: Option<Head>,
    pub(super) at: Instant,
    pub(super) latency_us: u64,
}

/// What a producer noted.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Every task that was accepted.
    pub(super) submitted: Vec<TaskId>,
    /// Every outcome that arrived.
    pub(super) settled: Vec<Settled>,
}

/// How far a producer is.
#[derive(Debug)]
pub(super) struct Progress {
    next: AtomicU64,
    settled: AtomicU64,
    stop: Arc<AtomicBool>,
    failed: AtomicBool,
}

impl Progress {
    /// Nothing is done yet; no batch begins once `stop` is set.
    pub(super) fn new(stop: Arc<AtomicBool>) -> Self {
        let (next, settled) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { next, settled, stop, failed: AtomicBool::new(false) }
    }

    /// How many outcomes arrived.
    pub(super) fn settled(&self) -> u64 {
        // Relaxed: a report.
        self.settled.load(Ordering::Relaxed)
    }

    /// True if no further batch begins.
    pub(super) fn is_stopped(&self) -> bool {
        // Relaxed: seen a batch later at most.
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    fn take(&self, act: &Act) -> Option<std::ops::Range<u64>> {
        if self.is_stopped() {
            return None;
        }
        let from = self.next.fetch_add(act.batch, Ordering::Relaxed);
        let to = (from + act.batch).min(act.tasks);
        (from < to).then_some(from..to)
    }
}

/// Submits the tasks of an act and waits for their outcomes. Tasks without one when nothing
/// happens any more are not in the notes.
pub(super) async fn produce(
    client: &Client,
    act: &Act,
    clock: Clock,
    progress: &Arc<Progress>,
) -> Result<Notes, Report> {
    let notes = Arc::new(std::sync::Mutex::new(Notes::default()));
    let mut lanes = JoinSet::new();
    for _ in 0..act.lanes {
        let lane = Lane {
            client: client.clone(),
            act: act.clone(),
            clock,
            progress: Arc::clone(progress),
            notes: Arc::clone(&notes),
        };
        lanes.spawn(lane.run());
    }
    let mut failed = None;
    let mut watched = (progress.settled(), clock.now());
    while !lanes.is_empty() {
        tokio::select! {
            lane = lanes.join_next() => {
                if let Some(Ok(Err(report))) = lane {
                    progress.failed.store(true, Ordering::Relaxed);
                    failed.get_or_insert(report);
                }
            }
            () = tokio::time::sleep(Duration::from_secs(1)) => {
                let (settled, now) = (progress.settled(), clock.now());
                if settled != watched.0 {
                    watched = (settled, now);
                } else if now.saturating_since(watched.1) > STALL_MAX {
                    lanes.shutdown().await;
                }
            }
        }
    }
    match failed {
        Some(report) => Err(report),
        None => Ok(std::mem::take(&mut *lock(&notes))),
    }
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

struct Lane {
    client: Client,
    act: Act,
    clock: Clock,
    progress: Arc<Progress>,
    notes: Arc<std::sync::Mutex<Notes>>,
}

impl Lane {
    async fn run(self) -> Result<(), Report> {
        let options = SubmitOptions::default().task_queue(self.act.queue);
        while let Some(numbers) = self.progress.take(&self.act) {
            let bytes = self.act.payload;
            let payloads = numbers.clone().map(|number| Payload::from(payload(number, bytes)));
            let (payloads, began) = (payloads.collect(), self.clock.now());
            let sent = self.client.submit_batch_raw(ACTIVITY_TYPE, payloads, options.clone()).await;
            let handles = sent.map_err(|error| failing::submit(&error.kind))?;
            lock(&self.notes).submitted.extend(handles.iter().map(TaskHandle::id));
            for (number, handle) in numbers.zip(handles) {
                let settled = self.settle(number, handle, began).await?;
                lock(&self.notes).settled.push(settled);
                self.progress.settled.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    async fn settle(
        &self,
        number: u64,
        mut handle: TaskHandle,
        began: Instant,
    ) -> Result<Settled, Report> {
        let outcome = handle.outcome().await.map_err(|error| failing::query(&error))?;
        let at = self.clock.now();
        let latency = at.saturating_since(began).as_micros();
        let latency_us = u64::try_from(latency).unwrap_or(u64::MAX);
        let expected = payload(number, self.act.payload);
        let is_completed = outcome.is_completed();
        let head = verify(&expected, outcome.payload().bytes()).filter(|_| is_completed);
        Ok(Settled { task: handle.id(), head, at, latency_us })
    }
}
