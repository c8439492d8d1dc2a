//! A task's life as one table: what each event does in each state.
//!
//! The documentation shows it and a test drives the engine through every cell of it, those that are
//! not listed included: there a command is refused, a report is stale, and nothing changes.

use crate::task::TaskState;

/// What can happen to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LifeEvent {
    /// Its time has come.
    Due,
    /// Somebody has it run before its time.
    RunNow,
    /// A worker with room for it was found.
    Offer,
    /// The worker begins.
    Accept,
    /// The worker hands the offer back.
    Reject,
    /// The worker did not answer the offer in time.
    AcceptTimeout,
    /// The worker's session was lost, and the time to come back is over.
    SessionLost,
    /// The worker completed it.
    Completed,
    /// The attempt failed, and there are more.
    Retryable,
    /// The last attempt failed.
    LastRetryable,
    /// It failed for good.
    Terminal,
    /// The worker lost it, as it says itself.
    Infrastructure,
    /// The lease had no beat for too long.
    LeaseExpiry,
    /// The last delivery that may be lost was lost.
    LastLoss,
    /// The attempt took longer than it may.
    StartToClose,
    /// The handler was not heard of.
    HeartbeatOver,
    /// Nobody accepted it in time.
    ScheduleToStart,
    /// Its life as a whole took too long.
    Deadline,
    /// Somebody cancels it.
    Cancel,
    /// A cancelled one was not given up in time.
    GraceOver,
    /// The deadline of a drain takes it from its worker.
    Park,
    /// An operator has it live again.
    Requeue,
    /// An operator lets go of it.
    Discard,
    /// Its outcome was kept long enough.
    RetentionOver,
}

/// What becomes of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LifeNext {
    /// It is in that state.
    State(TaskState),
    /// Nothing of it is known any more.
    Removed,
}

/// One cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LifeCell {
    /// The state before.
    pub state: TaskState,
    /// What happens.
    pub event: LifeEvent,
    /// What becomes of it.
    pub next: LifeNext,
}

const fn cell(state: TaskState, event: LifeEvent, next: TaskState) -> LifeCell {
    LifeCell { state, event, next: LifeNext::State(next) }
}

const fn removed(state: TaskState, event: LifeEvent) -> LifeCell {
    LifeCell { state, event, next: LifeNext::Removed }
}

use LifeEvent as E;
use TaskState as S;

/// All that can happen. A result that comes before its accept counts as both.
pub const LIFE: &[LifeCell] = &[
    cell(S::Scheduled, E::Due, S::Pending),
    cell(S::Scheduled, E::RunNow, S::Pending),
    cell(S::Scheduled, E::Deadline, S::Dead),
    cell(S::Scheduled, E::Cancel, S::Cancelled),
    cell(S::Pending, E::Offer, S::Offered),
    cell(S::Pending, E::ScheduleToStart, S::Dead),
    cell(S::Pending, E::Deadline, S::Dead),
    cell(S::Pending, E::Cancel, S::Cancelled),
    cell(S::Offered, E::Accept, S::Running),
    cell(S::Offered, E::Reject, S::Pending),
    cell(S::Offered, E::AcceptTimeout, S::Pending),
    cell(S::Offered, E::SessionLost, S::Pending),
    cell(S::Offered, E::Park, S::Pending),
    cell(S::Offered, E::Completed, S::Completed),
    cell(S::Offered, E::Retryable, S::Scheduled),
    cell(S::Offered, E::LastRetryable, S::Dead),
    cell(S::Offered, E::Terminal, S::Dead),
    cell(S::Offered, E::Infrastructure, S::Pending),
    cell(S::Offered, E::LastLoss, S::Dead),
    cell(S::Offered, E::Cancel, S::Cancelled),
    cell(S::Running, E::Reject, S::Pending),
    cell(S::Running, E::Completed, S::Completed),
    cell(S::Running, E::Retryable, S::Scheduled),
    cell(S::Running, E::LastRetryable, S::Dead),
    cell(S::Running, E::Terminal, S::Dead),
    cell(S::Running, E::Infrastructure, S::Pending),
    cell(S::Running, E::LeaseExpiry, S::Pending),
    cell(S::Running, E::SessionLost, S::Pending),
    cell(S::Running, E::LastLoss, S::Dead),
    cell(S::Running, E::StartToClose, S::Scheduled),
    cell(S::Running, E::HeartbeatOver, S::Scheduled),
    cell(S::Running, E::Park, S::Pending),
    cell(S::Running, E::Deadline, S::Dead),
    cell(S::Running, E::Cancel, S::Cancelling),
    cell(S::Cancelling, E::Completed, S::Completed),
    cell(S::Cancelling, E::Reject, S::Cancelled),
    cell(S::Cancelling, E::Retryable, S::Cancelled),
    cell(S::Cancelling, E::LastRetryable, S::Cancelled),
    cell(S::Cancelling, E::Terminal, S::Cancelled),
    cell(S::Cancelling, E::Infrastructure, S::Cancelled),
    cell(S::Cancelling, E::LeaseExpiry, S::Cancelled),
    cell(S::Cancelling, E::SessionLost, S::Cancelled),
    cell(S::Cancelling, E::LastLoss, S::Cancelled),
    cell(S::Cancelling, E::StartToClose, S::Cancelled),
    cell(S::Cancelling, E::HeartbeatOver, S::Cancelled),
    cell(S::Cancelling, E::GraceOver, S::Cancelled),
    cell(S::Dead, E::Requeue, S::Pending),
    removed(S::Dead, E::Discard),
    removed(S::Completed, E::RetentionOver),
    removed(S::Cancelled, E::RetentionOver),
];

impl LifeEvent {
    /// All events, in the order of the table's columns.
    pub const ALL: [Self; 24] = [
        Self::Due,
        Self::RunNow,
        Self::Offer,
        Self::Accept,
        Self::Reject,
        Self::AcceptTimeout,
        Self::SessionLost,
        Self::Completed,
        Self::Retryable,
        Self::LastRetryable,
        Self::Terminal,
        Self::Infrastructure,
        Self::LeaseExpiry,
        Self::LastLoss,
        Self::StartToClose,
        Self::HeartbeatOver,
        Self::ScheduleToStart,
        Self::Deadline,
        Self::Cancel,
        Self::GraceOver,
        Self::Park,
        Self::Requeue,
        Self::Discard,
        Self::RetentionOver,
    ];

    /// What the event does to a task in that state; nothing if it is not listed.
    #[must_use]
    pub fn in_state(self, state: TaskState) -> Option<LifeNext> {
        let mut cells = LIFE.iter();
        cells.find(|cell| cell.state == state && cell.event == self).map(|cell| cell.next)
    }

    /// The words for the event in the documentation.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::RunNow => "run_now",
            Self::Offer => "offer",
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::AcceptTimeout => "accept timeout",
            Self::SessionLost => "session lost",
            Self::Completed => "completed",
            Self::Retryable => "retryable",
            Self::LastRetryable => "retryable, last attempt",
            Self::Terminal => "terminal",
            Self::Infrastructure => "infrastructure",
            Self::LeaseExpiry => "lease expiry",
            Self::LastLoss => "loss, last delivery",
            Self::StartToClose => "start_to_close over",
            Self::HeartbeatOver => "heartbeat_timeout over",
            Self::ScheduleToStart => "schedule_to_start over",
            Self::Deadline => "deadline over",
            Self::Cancel => "cancel",
            Self::GraceOver => "grace over",
            Self::Park => "park",
            Self::Requeue => "requeue",
            Self::Discard => "discard",
            Self::RetentionOver => "retention over",
        }
    }
}

/// The table as the documentation shows it: a line a state, in Markdown.
#[must_use]
pub fn life_table() -> String {
    let states = [
        S::Scheduled,
        S::Pending,
        S::Offered,
        S::Running,
        S::Cancelling,
        S::Dead,
        S::Completed,
        S::Cancelled,
    ];
    let mut table = String::from("| State | Event → next |\n|---|---|\n");
    for state in states {
        let mut nexts: Vec<(&str, Vec<&str>)> = Vec::new();
        for cell in LIFE.iter().filter(|cell| cell.state == state) {
            let next = match cell.next {
                LifeNext::State(next) => next.as_str(),
                LifeNext::Removed => "removed",
            };
            match nexts.iter_mut().find(|(other, _)| *other == next) {
                Some((_, events)) => events.push(cell.event.as_str()),
                None => nexts.push((next, vec![cell.event.as_str()])),
            }
        }
        let parts = nexts.iter().map(|(next, events)| format!("{} → {next}", events.join(" / ")));
        let line = parts.collect::<Vec<_>>().join("; ");
        table.push_str(&format!("| {state} | {line} |\n"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_shows_this_table() {
        let document = include_str!("../../ARCHITECTURE.md");
        assert!(document.contains(&life_table()), "ARCHITECTURE.md should have:\n{}", life_table());
    }

    #[test]
    fn no_cell_is_listed_twice() {
        for (at, cell) in LIFE.iter().enumerate() {
            let again = |other: &LifeCell| other.state == cell.state && other.event == cell.event;
            assert!(!LIFE[at + 1..].iter().any(again), "{cell:?}");
        }
    }
}
