//! How deliveries end: results, losses, and time.
//!
//! Each function here first wins one step of the task's lease word, or changes nothing. A task that
//! goes back to waiting is announced to its pool before the step, so that the count of those who
//! wait is never too small, and whoever ends it afterwards finds it counted.

use rustc_hash::FxHashMap;

use crate::cell::CellFamily;
use crate::engine::Engine;
use crate::id::{InstanceId, TaskId, WorkerId};
use crate::limits::{LOST_OFFERS_MAX, OFFERED_LOOK};
use crate::outcome::{Class, Delivered, Outcome};
use crate::report::{CancelReason, End, Failure, FailureClass};
use crate::retry::redelivery_delay;
use crate::sync::StdArc;
use crate::task::{Again, LeaseWord, Left, Task, TaskState};
use crate::time::Instant;
use crate::worker::{Note, RunList};

/// What may be due.
#[derive(Debug)]
pub(crate) enum Timer {
    /// The attempt had to be accepted by now. Names the task, so as not to keep one that has ended.
    Start(TaskId),
    /// The task had to end by now.
    Deadline(TaskId),
    /// The next attempt or delivery may begin, if the word still carries the tag.
    Due { id: TaskId, tag: u32 },
    /// The worker of an abruptly lost session had until now.
    Grace { task: StdArc<Task>, epoch: u64 },
    /// The deadline of a drain, by the number of its entry.
    DrainOver(u64),
    /// The worker had until now to stop.
    StopOver { task: StdArc<Task>, epoch: u64 },
    /// The outcome was to be kept until now.
    Forget(TaskId),
}

/// An accepted lease whose session was lost abruptly.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub(crate) epoch: u64,
    pub(crate) principal: StdArc<str>,
    pub(crate) instance: InstanceId,
}

/// Leases that wait for their worker to come back.
pub(crate) type Orphans = FxHashMap<TaskId, Orphan>;

impl<F: CellFamily> Engine<F> {
    /// Does what a timer is for. A timer that has become stale does nothing.
    pub(crate) fn fire(&self, timer: Timer, now: Instant, run: &mut RunList) {
        match timer {
            Timer::Start(id) => {
                let Some(task) = self.tasks.get(&id) else { return };
                let state = task.word().state();
                // The time of a later attempt has a timer of its own.
                if state == TaskState::Pending && task.start_due() <= now {
                    self.expire(&task, "nobody accepted it in time", now, run);
                }
            }
            Timer::Deadline(id) => {
                // A task that was requeued has a deadline, and a timer, of its new life.
                if let Some(task) = self.tasks.get(&id)
                    && task.deadline().is_some_and(|due| due <= now)
                {
                    self.deadline_over(&task, now, run);
                }
            }
            Timer::Due { id, tag } => {
                if let Some(task) = self.tasks.get(&id).filter(|task| task.due() <= now) {
                    self.become_due(&task, tag, None, run);
                }
            }
            Timer::StopOver { task, epoch } => self.stop_over(&task, epoch, now),
            Timer::Forget(id) => self.forget(id),
            Timer::DrainOver(serial) => self.drain_over(serial),
            Timer::Grace { task, epoch } => {
                let mut orphans = self.orphans.lock();
                let is_due = orphans.get(&task.id()).is_some_and(|orphan| orphan.epoch == epoch);
                if is_due {
                    orphans.remove(&task.id());
                }
                drop(orphans);
                if is_due {
                    self.lose(&task, epoch, now, run);
                }
            }
        }
    }

    fn deadline_over(&self, task: &StdArc<Task>, now: Instant, run: &mut RunList) {
        let word = task.word();
        match word.state() {
            TaskState::Offered => {
                // The offer is answered or taken back soon; timers wait for that.
                self.post(now + OFFERED_LOOK, Timer::Deadline(task.id()));
            }
            TaskState::Running => {
                let (epoch, worker) = task.last_offer();
                if let Some(left) = task.leave(epoch, TaskState::Dead, false) {
                    if left.to == TaskState::Dead {
                        self.finish_dead(task, Class::Expired, "the deadline is over", now);
                    } else {
                        self.finish_cancelled(task, now);
                    }
                    self.tell(worker, Note::Ended(epoch, CancelReason::Expired));
                } else {
                    self.post(now + OFFERED_LOOK, Timer::Deadline(task.id()));
                }
            }
            TaskState::Pending | TaskState::Scheduled => {
                if !self.expire(task, "the deadline is over", now, run) {
                    self.post(now + OFFERED_LOOK, Timer::Deadline(task.id()));
                }
            }
            // The end of its grace comes first.
            TaskState::Cancelling => {}
            TaskState::Completed | TaskState::Dead | TaskState::Cancelled => {}
        }
    }

    /// Tells the session of a worker something about one of its leases, if it is there.
    pub(crate) fn tell(&self, worker: u64, note: Note) {
        if let Some(worker) = self.registry.worker(WorkerId::new(worker)) {
            worker.tell(note);
        }
    }

    /// A scheduled task begins to wait for a worker, `early` if somebody has it run now. False if it
    /// is not scheduled with that tag any more.
    pub(crate) fn become_due(
        &self,
        task: &StdArc<Task>,
        tag: u32,
        early: Option<Instant>,
        run: &mut RunList,
    ) -> bool {
        let pool = self.announce_anew(task);
        if !task.become_due(tag, early) {
            self.left_line(&pool, task);
            pool.notify(run);
            return false;
        }
        self.left_schedule(task);
        self.queue(&pool, task, run);
        self.post_start(task);
        true
    }

    /// Ends a task that waits. False if it waits no more.
    fn expire(
        &self,
        task: &StdArc<Task>,
        why: &'static str,
        now: Instant,
        run: &mut RunList,
    ) -> bool {
        let word = task.word();
        let from = word.state();
        let waits = matches!(from, TaskState::Pending | TaskState::Scheduled);
        if !waits || !task.leave_waiting(word, TaskState::Dead) {
            return false;
        }
        self.left_line_by(task, word, run);
        self.finish_dead(task, Class::Expired, why, now);
        true
    }

    /// Somebody won the step of a waiting task out of `word`: it leaves the line it stood in, or the
    /// schedule.
    pub(crate) fn left_line_by(&self, task: &Task, word: LeaseWord, run: &mut RunList) {
        if word.state() == TaskState::Scheduled {
            self.left_schedule(task);
        } else if word.is_in_line()
            && let Some(pool) = self.registry.pools.get(task.pool())
        {
            // It was announced, so its pool is not retired before this.
            self.left_line(&pool, task);
            pool.notify(run);
        }
    }

    /// Takes an offer back that did not get through, and has the task wait again. No counter moves.
    pub(crate) fn hand_back(
        &self,
        task: &StdArc<Task>,
        epoch: u64,
        now: Instant,
        run: &mut RunList,
    ) {
        let pool = self.announce_anew(task);
        if !task.take_back(epoch) {
            self.left_line(&pool, task);
            pool.notify(run);
            return;
        }
        self.queue(&pool, task, run);
        if task.start_due() <= now {
            self.expire(task, "nobody accepted it in time", now, run);
        } else {
            self.post_start(task);
        }
    }

    /// As [`Engine::hand_back`], for an offer that was sent and never answered: too many of those
    /// in a row end the task.
    pub(crate) fn lose_offer(
        &self,
        task: &StdArc<Task>,
        epoch: u64,
        now: Instant,
        run: &mut RunList,
    ) {
        if task.lost_offers() + 1 < LOST_OFFERS_MAX {
            task.count_lost_offer();
            self.hand_back(task, epoch, now, run);
        } else if let Some(left) = task.leave(epoch, TaskState::Dead, false) {
            let why = "its offers were never answered";
            self.finish_left(task, left, Class::LostOffers, why, now);
        }
    }

    /// An accepted delivery was lost. False if the lease had ended already.
    pub(crate) fn lose(
        &self,
        task: &StdArc<Task>,
        epoch: u64,
        now: Instant,
        run: &mut RunList,
    ) -> bool {
        let lost = task.lost_deliveries() + 1;
        if lost >= task.options().max_lost_deliveries {
            let Some(left) = task.leave(epoch, TaskState::Dead, true) else { return false };
            task.count_loss();
            let why = "it was lost with its workers too often";
            self.finish_left(task, left, Class::LostDeliveries, why, now);
            return true;
        }
        let delay = redelivery_delay(lost);
        if !delay.is_zero() {
            return self.wait_until(task, epoch, Again::Delivery(now + delay), now);
        }
        let pool = self.announce_anew(task);
        let left = task.leave(epoch, TaskState::Pending, true);
        if left.is_none_or(|left| left.to == TaskState::Cancelled) {
            self.left_line(&pool, task);
            pool.notify(run);
        }
        let Some(left) = left else { return false };
        task.count_loss();
        if left.to == TaskState::Cancelled {
            self.finish_cancelled(task, now);
        } else {
            self.queue(&pool, task, run);
            self.post_start(task);
        }
        true
    }

    /// A result for a lease that the caller found current. False if another step was first.
    pub(crate) fn settle(
        &self,
        task: &StdArc<Task>,
        epoch: u64,
        end: End,
        now: Instant,
        run: &mut RunList,
    ) -> bool {
        match end {
            End::Completed { payload, content_type, encoding } => {
                if task.leave(epoch, TaskState::Completed, true).is_none() {
                    return false;
                }
                let outcome = Outcome {
                    state: TaskState::Completed,
                    class: Class::Completed,
                    code: String::new(),
                    message: String::new(),
                    details: bytes::Bytes::new(),
                    payload,
                    content_type,
                    encoding,
                    attempt: task.attempt(),
                    deliveries: task.deliveries(),
                };
                self.finish(task, outcome, now);
                true
            }
            End::Failed(failure) if failure.class == FailureClass::Infrastructure => {
                self.lose(task, epoch, now, run)
            }
            End::Failed(failure) => self.fail(task, epoch, failure, now),
        }
    }

    /// The present attempt has failed. False if the lease had ended already.
    pub(crate) fn fail(
        &self,
        task: &StdArc<Task>,
        epoch: u64,
        failure: Failure,
        now: Instant,
    ) -> bool {
        let retry = &task.options().retry;
        let attempt = task.attempt();
        let is_final =
            failure.class == FailureClass::Terminal || retry.non_retryable.contains(&failure.code);
        if !is_final && attempt < retry.max_attempts {
            let seed = u128::from_be_bytes(*task.id().as_bytes()) as u64 ^ u64::from(attempt);
            let delay = match failure.retry_after {
                Some(asked) => asked.min(retry.cap),
                None => retry.delay(attempt, seed),
            };
            return self.wait_until(task, epoch, Again::Attempt(now + delay), now);
        }
        let Some(left) = task.leave(epoch, TaskState::Dead, true) else { return false };
        if left.to == TaskState::Cancelled {
            self.finish_cancelled(task, now);
            return true;
        }
        let class = if is_final { Class::TerminalFailure } else { Class::AttemptsExhausted };
        let outcome = Outcome {
            class,
            code: failure.code,
            message: failure.message,
            details: failure.details,
            attempt,
            ..Outcome::of_nothing(task)
        };
        self.finish(task, outcome, now);
        true
    }

    /// The lease ends, and the task waits for a time. False if it had ended already.
    fn wait_until(&self, task: &StdArc<Task>, epoch: u64, again: Again, now: Instant) -> bool {
        let Some(left) = task.leave_until(epoch, again) else { return false };
        if left.to == TaskState::Cancelled {
            self.finish_cancelled(task, now);
        } else {
            self.schedule(task);
        }
        true
    }

    /// A lease was left on the way to dead.
    fn finish_left(&self, task: &StdArc<Task>, left: Left, class: Class, why: &str, now: Instant) {
        if left.to == TaskState::Cancelled {
            self.finish_cancelled(task, now);
        } else {
            self.finish_dead(task, class, why, now);
        }
    }

    fn finish_dead(&self, task: &StdArc<Task>, class: Class, why: &str, now: Instant) {
        self.finish_without_result(task, TaskState::Dead, class, why, now);
    }

    /// The task is cancelled: the caller won that step.
    pub(crate) fn finish_cancelled(&self, task: &StdArc<Task>, now: Instant) {
        let stopping = task.stopping();
        let why = stopping.as_ref().map_or("", |stopping| stopping.reason.as_str());
        self.finish_without_result(task, TaskState::Cancelled, Class::Cancelled, why, now);
    }

    fn finish_without_result(
        &self,
        task: &StdArc<Task>,
        state: TaskState,
        class: Class,
        why: &str,
        now: Instant,
    ) {
        let message = why.to_owned();
        let outcome = Outcome { state, class, message, ..Outcome::of_nothing(task) };
        self.finish(task, outcome, now);
    }

    /// Makes the outcome known. The caller won the step to the terminal state, so this runs once.
    fn finish(&self, task: &StdArc<Task>, outcome: Outcome, now: Instant) {
        let is_dead = outcome.state == TaskState::Dead;
        let bytes = (outcome.payload.len() + outcome.details.len()) as u64;
        let outcome = StdArc::new(outcome);
        task.set_outcome(StdArc::clone(&outcome), is_dead);
        self.owner_left(task);
        if is_dead {
            // Before it is told: whoever hears of it finds it there.
            self.bury(task, &outcome, now);
        }
        let mut delivered = false;
        // Closed after the outcome was set: who comes later finds it.
        for watcher in task.watchers.close() {
            let (tag, mailbox) = (watcher.tag, watcher.mailbox);
            let (task, outcome) = (StdArc::clone(task), StdArc::clone(&outcome));
            delivered |= mailbox.deliver(Delivered { tag, task, outcome });
        }
        if is_dead {
            return;
        }
        if let Some(retention) = task.options().rare().retention {
            self.post(now + retention, Timer::Forget(task.id()));
            return;
        }
        let mut gone = [None; 4];
        let mut over = Vec::new();
        self.retention.lock().keep(task.id(), bytes, delivered, now, |id| {
            match gone.iter_mut().find(|place| place.is_none()) {
                Some(place) => *place = Some(id),
                None => over.push(id),
            }
        });
        for id in gone.into_iter().flatten().chain(over) {
            self.forget(id);
        }
    }

    /// Nothing of the task is known any more.
    pub(crate) fn forget(&self, id: TaskId) {
        if let Some(task) = self.tasks.get(&id) {
            self.forget_key(&task);
        }
        self.tasks.remove(&id);
    }
}
