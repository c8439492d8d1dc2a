//! How deliveries end: results, losses, and time.
//!
//! Each function here first wins one step of the task's lease word, or changes nothing. A task that
//! goes back to waiting is announced to its pool before the step, so that the count of those who
//! wait is never too small, and whoever ends it afterwards finds it counted.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::cell::CellFamily;
use crate::engine::Engine;
use crate::id::{InstanceId, TaskId};
use crate::limits::{LOST_OFFERS_MAX, OFFERED_LOOK};
use crate::outcome::{Class, Delivered, Outcome};
use crate::report::{End, Failure, FailureClass};
use crate::retry::redelivery_delay;
use crate::sync::StdArc;
use crate::task::{Task, TaskState};
use crate::text::Text;
use crate::time::Instant;
use crate::worker::RunList;

/// What may be due.
#[derive(Debug)]
pub(crate) enum Timer {
    /// The attempt had to be accepted by now. Names the task, so as not to keep one that has ended.
    Start(TaskId),
    /// The task had to end by now.
    Deadline(TaskId),
    /// The next attempt or delivery may begin, if the word still carries the tag.
    Due { task: StdArc<Task>, tag: u32 },
    /// The worker of an abruptly lost session had until now.
    Grace { task: StdArc<Task>, epoch: u64 },
    /// The deadline of a drain, by the number of its entry.
    DrainOver(u64),
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
                if let Some(task) = self.tasks.get(&id) {
                    self.deadline_over(&task, now, run);
                }
            }
            Timer::Due { task, tag } => {
                let pool = self.announce_anew(&task);
                if task.leave_waiting(tag, TaskState::Scheduled, TaskState::Pending) {
                    self.queue(&pool, &task, run);
                    self.post_start(&task);
                } else {
                    self.left_line(&pool, &task);
                    pool.notify(run);
                }
            }
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
                if task.leave(epoch, TaskState::Dead, false).is_some() {
                    self.finish_dead(task, Class::Expired, "the deadline is over", now);
                    let worker = self.registry.worker(crate::id::WorkerId::new(worker));
                    if let Some(worker) = worker {
                        worker.tell_ended(epoch);
                    }
                } else {
                    self.post(now + OFFERED_LOOK, Timer::Deadline(task.id()));
                }
            }
            TaskState::Pending | TaskState::Scheduled => {
                if !self.expire(task, "the deadline is over", now, run) {
                    self.post(now + OFFERED_LOOK, Timer::Deadline(task.id()));
                }
            }
            TaskState::Completed | TaskState::Dead | TaskState::Cancelled => {}
        }
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
        if !waits || !task.leave_waiting(word.tag(), from, TaskState::Dead) {
            return false;
        }
        if from == TaskState::Pending
            && let Some(pool) = self.registry.pools.get(task.pool())
        {
            // It was announced, so its pool is not retired before this.
            self.left_line(&pool, task);
            pool.notify(run);
        }
        self.finish_dead(task, Class::Expired, why, now);
        true
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
        } else if task.leave(epoch, TaskState::Dead, false).is_some() {
            self.finish_dead(task, Class::LostOffers, "its offers were never answered", now);
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
            if task.leave(epoch, TaskState::Dead, true).is_none() {
                return false;
            }
            task.count_loss();
            let why = "it was lost with its workers too often";
            self.finish_dead(task, Class::LostDeliveries, why, now);
            return true;
        }
        let delay = redelivery_delay(lost);
        if !delay.is_zero() {
            if task.leave(epoch, TaskState::Scheduled, true).is_none() {
                return false;
            }
            task.count_loss();
            self.post(now + delay, Timer::Due { task: StdArc::clone(task), tag: epoch as u32 });
            return true;
        }
        let pool = self.announce_anew(task);
        if task.leave(epoch, TaskState::Pending, true).is_none() {
            self.left_line(&pool, task);
            pool.notify(run);
            return false;
        }
        task.count_loss();
        self.queue(&pool, task, run);
        self.post_start(task);
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
                    details: Bytes::new(),
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

    fn fail(&self, task: &StdArc<Task>, epoch: u64, failure: Failure, now: Instant) -> bool {
        let retry = &task.options().retry;
        let attempt = task.attempt();
        let is_final =
            failure.class == FailureClass::Terminal || retry.non_retryable.contains(&failure.code);
        if !is_final && attempt < retry.max_attempts {
            if task.leave(epoch, TaskState::Scheduled, true).is_none() {
                return false;
            }
            let seed = u128::from_be_bytes(*task.id().as_bytes()) as u64 ^ u64::from(attempt);
            let delay = match failure.retry_after {
                Some(asked) => asked.min(retry.cap),
                None => retry.delay(attempt, seed),
            };
            let due = now + delay;
            task.count_attempt(due);
            self.post(due, Timer::Due { task: StdArc::clone(task), tag: epoch as u32 });
            return true;
        }
        if task.leave(epoch, TaskState::Dead, true).is_none() {
            return false;
        }
        let class = if is_final { Class::TerminalFailure } else { Class::AttemptsExhausted };
        let outcome = Outcome {
            state: TaskState::Dead,
            class,
            code: failure.code,
            message: failure.message,
            details: failure.details,
            payload: Bytes::new(),
            content_type: Text::EMPTY,
            encoding: Text::EMPTY,
            attempt,
            deliveries: task.deliveries(),
        };
        self.finish(task, outcome, now);
        true
    }

    fn finish_dead(&self, task: &StdArc<Task>, class: Class, why: &str, now: Instant) {
        let outcome = Outcome {
            state: TaskState::Dead,
            class,
            code: String::new(),
            message: why.to_owned(),
            details: Bytes::new(),
            payload: Bytes::new(),
            content_type: Text::EMPTY,
            encoding: Text::EMPTY,
            attempt: task.attempt(),
            deliveries: task.deliveries(),
        };
        self.finish(task, outcome, now);
    }

    /// Makes the outcome known. The caller won the step to the terminal state, so this runs once.
    fn finish(&self, task: &StdArc<Task>, outcome: Outcome, now: Instant) {
        drop(task.take_payload());
        let bytes = (outcome.payload.len() + outcome.details.len()) as u64;
        let outcome = StdArc::new(outcome);
        // The step to the terminal state was won once.
        task.outcome.set(StdArc::clone(&outcome)).ok();
        let mut delivered = false;
        // Closed after the outcome was set: who comes later finds it.
        for watcher in task.watchers.close() {
            let (tag, mailbox) = (watcher.tag, watcher.mailbox);
            let (task, outcome) = (StdArc::clone(task), StdArc::clone(&outcome));
            delivered |= mailbox.deliver(Delivered { tag, task, outcome });
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
            self.tasks.remove(&id);
        }
    }
}
