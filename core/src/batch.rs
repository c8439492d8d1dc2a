//! Handing in many tasks, all of them or none.

use thiserror::Error;

use crate::admission::Principal;
use crate::cell::CellFamily;
use crate::engine::Engine;
use crate::outcome::Watcher;
use crate::pool::NamespaceState;
use crate::select::Route;
use crate::submit::{Admitted, SubmitError, Submitted};
use crate::sync::StdArc;
use crate::task::{NewTask, Task};
use crate::time::Instant;
use crate::worker::RunList;

/// One task of a batch.
#[derive(Debug)]
pub struct BatchItem {
    /// Its pool.
    pub route: Route,
    /// The task.
    pub task: NewTask,
    /// Gets the outcome.
    pub watcher: Option<Watcher>,
}

/// A batch of which nothing was taken.
#[derive(Debug, Error)]
#[error("task {index} of the batch: {error}")]
pub struct BatchRefused {
    /// The place of the task on whose account it was refused.
    pub index: usize,
    /// Why.
    #[source]
    pub error: SubmitError,
}

/// What a batch needs of the quotas: tasks by namespace, of which there are few, and bytes.
#[derive(Default)]
struct Room<'a> {
    tasks: Vec<(&'a StdArc<NamespaceState>, u64)>,
    bytes: u64,
}

impl<'a> Room<'a> {
    /// Adds a task; returns what its namespace and all together come to.
    fn with(&mut self, namespace: &'a StdArc<NamespaceState>, size: u64) -> (u64, u64) {
        self.bytes += size;
        let at = self.tasks.iter().position(|(other, _)| StdArc::ptr_eq(other, namespace));
        let at = at.unwrap_or_else(|| {
            self.tasks.push((namespace, 0));
            self.tasks.len() - 1
        });
        self.tasks[at].1 += 1;
        (self.tasks[at].1, self.bytes)
    }
}

impl<F: CellFamily> Engine<F> {
    /// Takes all tasks of a batch, or none.
    ///
    /// No task of a batch may have to start at once. The quotas must have room for all of them,
    /// also if they would not wait.
    ///
    /// # Consistency
    ///
    /// Nothing is placed before all are admitted. Until then, those of a batch that is refused in
    /// the end can be seen.
    ///
    /// # Errors
    ///
    /// The first task that cannot be taken; nothing of the batch is left behind.
    pub fn submit_batch(
        &self,
        principal: &Principal,
        items: Vec<BatchItem>,
        now: Instant,
    ) -> Result<Vec<Submitted>, BatchRefused> {
        let mut room = Room::default();
        for (index, item) in items.iter().enumerate() {
            let options = &item.task.options;
            let at_once = options.schedule_to_start.is_some_and(|limit| limit.is_zero());
            let may = match at_once {
                true => Err(SubmitError::Invalid("a task that must start at once is in a batch")),
                false => self.may_submit(principal, &item.route.pool, options),
            };
            may.and_then(|()| {
                let size = item.task.payload.len() as u64;
                let (tasks, bytes) = room.with(&item.route.pool.namespace, size);
                self.has_room_for(&item.route.pool, tasks, bytes)
            })
            .map_err(|error| BatchRefused { index, error })?;
        }
        let mut admitted: Vec<(Route, StdArc<Task>, Option<Watcher>, Admitted)> =
            Vec::with_capacity(items.len());
        for (index, BatchItem { route, task, watcher }) in items.into_iter().enumerate() {
            let task = StdArc::new(Task::new(task, StdArc::clone(&route.pool.key), now));
            match self.admit(&task) {
                Ok(how) => admitted.push((route, task, watcher, how)),
                Err(error) => {
                    for (_, task, _, how) in admitted.iter().rev() {
                        if matches!(how, Admitted::New) {
                            self.retract(task);
                        }
                    }
                    return Err(BatchRefused { index, error });
                }
            }
        }
        let mut run = RunList::new();
        let mut submitted = Vec::with_capacity(admitted.len());
        for (mut route, task, watcher, how) in admitted {
            let (id, deduplicated) = match how {
                Admitted::New => (task.id(), false),
                Admitted::Same(id) => (id, true),
            };
            if let Some(watcher) = watcher {
                self.watch_known(id, watcher);
            }
            if !deduplicated {
                self.place_or_queue(&mut route, &task, now, &mut run);
                self.run(&mut run);
                self.post_deadlines(&task);
            }
            submitted.push(Submitted { id, deduplicated, durable: false });
        }
        Ok(submitted)
    }
}
