//! Cancelling: at once before a worker has accepted, and with a grace after that.

use std::time::Duration;

use crate::admission::{Principal, Role};
use crate::cell::CellFamily;
use crate::engine::{AdminError, Engine};
use crate::id::TaskId;
use crate::limits::CANCEL_GRACE;
use crate::report::CancelReason;
use crate::settle::Timer;
use crate::sync::StdArc;
use crate::task::{Stopping, Task, TaskState};
use crate::text::Text;
use crate::time::Instant;
use crate::worker::{Note, RunList};

/// Why tasks are to stop, and how long a worker that is at one may take.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    /// For the handler and for people.
    pub reason: Text,
    /// After it the lease is taken away; ten seconds if not said.
    pub grace: Option<Duration>,
}

/// What a cancellation came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cancelled {
    /// Whether it was this call that did it. Cancelling twice changes nothing.
    pub changed: bool,
    /// The state afterwards.
    pub state: TaskState,
}

impl<F: CellFamily> Engine<F> {
    /// Cancels a task, in whatever state it is.
    ///
    /// A task that no worker has accepted is cancelled when this returns. One that runs is
    /// *cancelling*: its worker is told, and may complete it within the grace; whatever else
    /// becomes of it, it is cancelled. One that has ended stays as it is.
    ///
    /// # Errors
    ///
    /// There is no such task, or it is not the principal's to see, or the principal is neither
    /// producer nor operator there.
    pub fn cancel(
        &self,
        principal: &Principal,
        id: TaskId,
        cancel: &Cancel,
        now: Instant,
    ) -> Result<Cancelled, AdminError> {
        let task = self.tasks.get(&id).ok_or(AdminError::NotFound)?;
        self.may_change(principal, &task)?;
        let mut run = RunList::new();
        let cancelled = self.cancel_task(&task, cancel, now, &mut run);
        self.run(&mut run);
        Ok(cancelled)
    }

    /// Says whether the principal may cancel a task, or run it now, and so on.
    pub(crate) fn may_change(&self, principal: &Principal, task: &Task) -> Result<(), AdminError> {
        let namespace = &task.pool().namespace;
        if !principal.may_see(namespace) {
            return Err(AdminError::NotFound);
        }
        let roles = [Role::Producer, Role::Operator];
        let may = roles.iter().any(|role| principal.may(*role, namespace));
        if may { Ok(()) } else { Err(AdminError::PermissionDenied) }
    }

    pub(crate) fn cancel_task(
        &self,
        task: &StdArc<Task>,
        cancel: &Cancel,
        now: Instant,
        run: &mut RunList,
    ) -> Cancelled {
        let due = now + cancel.grace.unwrap_or(CANCEL_GRACE);
        let stopping = || Stopping { reason: cancel.reason.clone(), due };
        loop {
            let word = task.word();
            let state = word.state();
            match state {
                TaskState::Pending | TaskState::Scheduled => {
                    if !task.leave_waiting(word, TaskState::Cancelled) {
                        continue;
                    }
                    task.set_stopping(stopping());
                    self.left_line_by(task, word, run);
                    self.finish_cancelled(task, now);
                }
                TaskState::Offered => {
                    if !task.cancel_offer(word) {
                        continue;
                    }
                    task.set_stopping(stopping());
                    self.finish_cancelled(task, now);
                    self.tell_tagged(task, word.tag(), |epoch| {
                        Note::Ended(epoch, CancelReason::Asked)
                    });
                }
                TaskState::Running => {
                    // Before the step, so that whoever wins the next one finds it.
                    task.set_stopping(stopping());
                    if !task.begin_to_stop(word) {
                        continue;
                    }
                    let (epoch, _) = task.last_offer();
                    self.post(due, Timer::StopOver { task: StdArc::clone(task), epoch });
                    self.tell_tagged(task, word.tag(), Note::Stop);
                    return Cancelled { changed: true, state: TaskState::Cancelling };
                }
                TaskState::Cancelling
                | TaskState::Completed
                | TaskState::Dead
                | TaskState::Cancelled => return Cancelled { changed: false, state },
            }
            return Cancelled { changed: true, state: TaskState::Cancelled };
        }
    }

    /// Tells the holder of the lease with that tag, unless its offer is so new that the worker is
    /// not known yet: then its session finds the word changed before it sends the offer.
    fn tell_tagged(&self, task: &Task, tag: u32, note: impl FnOnce(u64) -> Note) {
        let (epoch, worker) = task.last_offer();
        if epoch as u32 == tag {
            self.tell(worker, note(epoch));
        }
    }

    /// The grace of a cancelled task is over.
    pub(crate) fn stop_over(&self, task: &StdArc<Task>, epoch: u64, now: Instant) {
        let is_stopping = task.word().state() == TaskState::Cancelling;
        if is_stopping && task.leave(epoch, TaskState::Cancelled, false).is_some() {
            self.finish_cancelled(task, now);
            let (_, worker) = task.last_offer();
            self.tell(worker, Note::Ended(epoch, CancelReason::Asked));
        }
    }

    /// Has a scheduled task wait for a worker at once, whatever it waits for.
    ///
    /// Says whether that changed anything.
    ///
    /// # Errors
    ///
    /// There is no such task, it is not the principal's to change, or it has a worker or has ended.
    pub fn run_now(
        &self,
        principal: &Principal,
        id: TaskId,
        now: Instant,
    ) -> Result<bool, AdminError> {
        let task = self.tasks.get(&id).ok_or(AdminError::NotFound)?;
        self.may_change(principal, &task)?;
        let mut run = RunList::new();
        let word = task.word();
        let changed = match word.state() {
            TaskState::Scheduled => self.become_due(&task, word.tag(), Some(now), &mut run),
            TaskState::Pending => false,
            _ => return Err(AdminError::InvalidState(word.state())),
        };
        self.run(&mut run);
        Ok(changed)
    }
}
