//! Awaits with a limit of time.
//!
//! A watcher that was attached to a task stays there until the task ends. So an await whose time is
//! over leaves its watcher behind, and the next await of the same task takes it up again: there is
//! one for each task, however often a peer asks.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use slipswitch_core::{Instant, TaskId};

/// Set in the tags of watchers that are here. No request has such a number.
pub(super) const TIMED: u64 = 1 << 63;

struct Timed {
    task: TaskId,
    /// The request to be answered and until when, or none if the peer was told that it took too
    /// long.
    request: Option<(u64, Instant)>,
}

#[derive(Default)]
pub(super) struct TimedAwaits {
    last_tag: u64,
    watchers: FxHashMap<u64, Timed>,
    due: BTreeSet<(Instant, u64)>,
    /// Watchers without a request.
    lapsed: FxHashMap<TaskId, u64>,
}

impl TimedAwaits {
    /// Takes up the watcher that an earlier await has left at the task. False if there is none.
    pub(super) fn resume(&mut self, task: TaskId, req: u64, due: Instant) -> bool {
        let Some(tag) = self.lapsed.remove(&task) else { return false };
        if let Some(watcher) = self.watchers.get_mut(&tag) {
            watcher.request = Some((req, due));
        }
        self.due.insert((due, tag))
    }

    /// The tag of a new watcher.
    pub(super) const fn next_tag(&mut self) -> u64 {
        self.last_tag = self.last_tag.wrapping_add(1);
        self.last_tag | TIMED
    }

    /// Takes note of a watcher that was attached.
    pub(super) fn begin(&mut self, tag: u64, task: TaskId, req: u64, due: Instant) {
        self.watchers.insert(tag, Timed { task, request: Some((req, due)) });
        self.due.insert((due, tag));
    }

    /// The request to which an outcome is the answer; none if its time was over.
    pub(super) fn ended(&mut self, tag: u64) -> Option<u64> {
        if tag & TIMED == 0 {
            return Some(tag);
        }
        let Timed { task, request } = self.watchers.remove(&tag)?;
        match request {
            Some((req, due)) => {
                self.due.remove(&(due, tag));
                Some(req)
            }
            None => {
                self.lapsed.remove(&task);
                None
            }
        }
    }

    /// The next request whose time is over.
    pub(super) fn lapse(&mut self, now: Instant) -> Option<(u64, TaskId)> {
        let (due, tag) = self.due.first().copied().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, tag));
        let watcher = self.watchers.get_mut(&tag)?;
        let (req, _) = watcher.request.take()?;
        let task = watcher.task;
        // Two awaits of one task may both lapse: the older watcher only waits for its end.
        self.lapsed.insert(task, tag);
        Some((req, task))
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(super) fn clear(&mut self) {
        *self = Self { last_tag: self.last_tag, ..Self::default() };
    }
}
