//! What a producer's frames do.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use slipswitch_core::{
    BatchItem, Cancel, CellFamily, Instant, Namespace, NewTask, Submitted, TaskId, Watcher,
};

use super::answer::{self, err};
use super::intake;
use super::session::ServerSession;
use super::timed::TIMED;
use crate::proto::messages as m;
use crate::proto::{Channel, Frame, WireCode, limits};

impl<F: CellFamily> ServerSession<F> {
    fn watcher(&mut self, req: u64) -> Result<Watcher, m::Err> {
        if req & TIMED != 0 {
            return Err(err(WireCode::Malformed, "the number of a request is below 2^63"));
        }
        if self.waits >= limits::REQUESTS_MAX {
            let what = "too many outcomes are waited for on this session";
            return Err(err(WireCode::LimitExceeded, what));
        }
        Ok(Watcher { mailbox: Arc::clone(&self.mailbox), tag: req })
    }

    pub(super) fn submit(&mut self, submit: m::Submit, payload: Bytes, now: Instant) {
        let m::Submit { req, task, wait, .. } = submit;
        let taken = self.submit_one(req, task, payload, wait, now);
        self.answer_submit(req, taken);
    }

    pub(super) fn answer_submit(&mut self, req: u64, taken: Result<Submitted, m::Err>) {
        let ack = match taken {
            Ok(submitted) => m::SubmitAck {
                req,
                task_id: Bytes::copy_from_slice(submitted.id.as_bytes()),
                deduplicated: submitted.deduplicated,
                durable: submitted.durable,
                err: None,
            },
            Err(error) => {
                m::SubmitAck { req, err: Some(Box::new(error)), ..m::SubmitAck::default() }
            }
        };
        // Where the outcome will come, so that it cannot come first.
        self.answers.push_back((Channel::Lane(0), Frame::SubmitAck(ack)));
    }

    fn submit_one(
        &mut self,
        req: u64,
        spec: m::TaskSpec,
        payload: Bytes,
        wait: bool,
        now: Instant,
    ) -> Result<Submitted, m::Err> {
        let watcher = if wait { Some(self.watcher(req)?) } else { None };
        let (max, clock) = (self.greeting.payload_max, self.wall_clock(now));
        let route = self.routes.of(&self.engine, &spec)?;
        let ids = &mut self.ids;
        let task = intake::task(spec, payload, max, clock, || ids.next(now))?;
        match self.engine.submit(&self.principal, route, task, watcher, now) {
            Ok(submitted) => {
                self.waits = self.waits.saturating_add(usize::from(wait));
                Ok(submitted)
            }
            Err(refused) => Err(answer::submit_error(&refused.error)),
        }
    }

    pub(super) fn submit_batch(&mut self, batch: m::SubmitBatch, payload: Bytes, now: Instant) {
        let req = batch.req;
        let ack = match self.batch_items(batch, payload, now) {
            Ok(items) => m::SubmitBatchAck { req, items, err: None },
            Err(error) => m::SubmitBatchAck { req, items: Vec::new(), err: Some(Box::new(error)) },
        };
        // As in `submit`.
        self.answers.push_back((Channel::Lane(0), Frame::SubmitBatchAck(ack)));
    }

    /// Hands a batch in, all of it or nothing.
    fn batch_items(
        &mut self,
        batch: m::SubmitBatch,
        mut payload: Bytes,
        now: Instant,
    ) -> Result<Vec<m::BatchItem>, m::Err> {
        let m::SubmitBatch { req, tasks, wait, common } = batch;
        if tasks.len() > limits::BATCH_TASKS_MAX {
            let (count, max) = (tasks.len(), limits::BATCH_TASKS_MAX);
            let what = format!("a batch of {count} tasks, at most {max}");
            return Err(err(WireCode::LimitExceeded, what));
        }
        if wait && self.waits.saturating_add(tasks.len()) > limits::REQUESTS_MAX {
            let what = "too many outcomes are waited for on this session";
            return Err(err(WireCode::LimitExceeded, what));
        }
        let clock = self.wall_clock(now);
        let shared = match common {
            None => None,
            Some(spec) => {
                let route = self.routes.of(&self.engine, &spec)?.clone();
                Some((route, intake::options(*spec, clock)?))
            }
        };
        let mut judged = Vec::with_capacity(tasks.len());
        for m::BatchTask { task, payload_len } in tasks {
            let share = usize::try_from(payload_len).ok().filter(|len| *len <= payload.len());
            let Some(share) = share else {
                let what = "the payloads of the batch are longer than its frame's";
                return Err(err(WireCode::Malformed, what));
            };
            let bytes = payload.split_to(share);
            let max = self.greeting.payload_max;
            let ids = &mut self.ids;
            let (route, task) = match (task, &shared) {
                (Some(spec), _) => {
                    let route = self.routes.of(&self.engine, &spec)?.clone();
                    (route, intake::task(*spec, bytes, max, clock, || ids.next(now))?)
                }
                (None, Some((route, options))) => {
                    let payload = intake::payload(bytes, max)?;
                    let options = options.clone();
                    (route.clone(), NewTask { id: ids.next(now), payload, options })
                }
                (None, None) => {
                    return Err(err(WireCode::Malformed, "a task of the batch says nothing"));
                }
            };
            let watcher = if wait { Some(self.watcher(req)?) } else { None };
            judged.push(BatchItem { route, task, watcher });
        }
        if !payload.is_empty() {
            let what = "the frame's payload is longer than those of the batch";
            return Err(err(WireCode::Malformed, what));
        }
        let taken = self.engine.submit_batch(&self.principal, judged, now);
        let taken = taken.map_err(|refused| {
            let m::Err { message, .. } = answer::submit_error(&refused.error);
            let at = refused.index;
            m::Err {
                message: format!("task {at} of the batch: {message}"),
                ..answer::submit_error(&refused.error)
            }
        })?;
        if wait {
            self.waits = self.waits.saturating_add(taken.len());
        }
        let items = taken.into_iter().map(|submitted| m::BatchItem {
            task_id: Bytes::copy_from_slice(submitted.id.as_bytes()),
            deduplicated: submitted.deduplicated,
            durable: submitted.durable,
            err: None,
        });
        Ok(items.collect())
    }

    pub(super) fn wait_for(&mut self, channel: Channel, wait: &m::Await, now: Instant) {
        if let Err(error) = self.watch(wait, now) {
            let refused = m::Outcome {
                req: wait.req,
                task_id: wait.task_id.clone(),
                err: Some(Box::new(error)),
                ..m::Outcome::default()
            };
            self.answers.push_back((channel, Frame::Outcome(Box::new(refused), Bytes::new())));
        }
    }

    fn watch(&mut self, wait: &m::Await, now: Instant) -> Result<(), m::Err> {
        let id = TaskId::from_slice(&wait.task_id)
            .ok_or_else(|| err(WireCode::Malformed, "a task id has 16 bytes"))?;
        let due = (wait.timeout > 0).then(|| now + Duration::from_millis(wait.timeout));
        if due.is_some_and(|due| self.timed.resume(id, wait.req, due)) {
            return Ok(());
        }
        let mut watcher = self.watcher(wait.req)?;
        if due.is_some() {
            watcher.tag = self.timed.next_tag();
        }
        let tag = watcher.tag;
        self.engine.watch(&self.principal, id, watcher).map_err(answer::admin_error)?;
        self.waits = self.waits.saturating_add(1);
        if let Some(due) = due {
            self.timed.begin(tag, id, wait.req, due);
        }
        Ok(())
    }

    pub(super) fn cancel_task(&mut self, channel: Channel, cancel: &m::CancelTask, now: Instant) {
        let req = cancel.req;
        let ack = match self.cancelled(cancel, now) {
            Ok((affected, state)) => m::CancelTaskAck { req, affected, state, err: None },
            Err(error) => {
                m::CancelTaskAck { req, err: Some(Box::new(error)), ..m::CancelTaskAck::default() }
            }
        };
        self.answers.push_back((channel, Frame::CancelTaskAck(ack)));
    }

    fn cancelled(&self, cancel: &m::CancelTask, now: Instant) -> Result<(u64, u32), m::Err> {
        let reason = intake::reason(&cancel.reason)?;
        let grace = cancel.grace.map(|millis| intake::time("the grace", millis)).transpose()?;
        let how = Cancel { reason, grace };
        let (engine, principal) = (&self.engine, &self.principal);
        if cancel.owner_key.is_empty() {
            let id = TaskId::from_slice(&cancel.task_id)
                .ok_or_else(|| err(WireCode::Malformed, "a task id has 16 bytes"))?;
            let done = engine.cancel(principal, id, &how, now).map_err(answer::admin_error)?;
            return Ok((u64::from(done.changed), done.state as u32));
        }
        if !cancel.task_id.is_empty() {
            let what = "a cancellation is of one task or of an owner's, not both";
            return Err(err(WireCode::Malformed, what));
        }
        let namespace = Namespace::new(&cancel.namespace)
            .map_err(|error| err(WireCode::InvalidName, error.to_string()))?;
        let (owner, below) = (&cancel.owner_key, cancel.below_generation);
        let done = engine.cancel_owner(principal, &namespace, owner, below, &how, now);
        Ok((done.map_err(answer::admin_error)?, 0))
    }
}
