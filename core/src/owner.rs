//! Tasks by their owner: cancelled, superseded and held together.
//!
//! Only tasks with an owner key are listed here, so the others never meet this lock. An owner that
//! was superseded is remembered after its last task, up to a limit, the longest idle forgotten
//! first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use crate::admission::{Principal, Role};
use crate::cancel::Cancel;
use crate::cell::CellFamily;
use crate::engine::{AdminError, Engine};
use crate::hold::{Hold, HoldStatus};
use crate::id::TaskId;
use crate::limits::IDLE_OWNERS_MAX;
use crate::mutant::mutant;
use crate::name::Namespace;
use crate::submit::SubmitError;
use crate::sync::StdArc;
use crate::task::{Task, TaskState};
use crate::text::Text;
use crate::time::Instant;
use crate::worker::RunList;

type OwnerKey = (Namespace, Bytes);

#[derive(Debug, Default)]
struct Owner {
    /// Tasks of an older generation are refused.
    watermark: u64,
    /// Since when it is held, if it is.
    held: Option<Instant>,
    tasks: BTreeSet<TaskId>,
}

/// The owners of the tasks that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    by_key: BTreeMap<OwnerKey, Owner>,
    /// Superseded owners without tasks, in the order in which they became idle.
    idle: VecDeque<OwnerKey>,
}

impl Owners {
    /// Lists a task; says whether its owner is held.
    fn arrive(&mut self, task: &Task) -> Result<bool, SubmitError> {
        let owner = self.by_key.entry(key_of(task)).or_default();
        if task.options().generation < owner.watermark {
            let needed = owner.watermark;
            return Err(SubmitError::StaleGeneration { needed });
        }
        owner.tasks.insert(task.id());
        Ok(owner.held.is_some())
    }

    fn leave(&mut self, task: &Task) {
        let key = key_of(task);
        if let Some(owner) = self.by_key.get_mut(&key) {
            owner.tasks.remove(&task.id());
            self.settle(key);
        }
    }

    /// Forgets an owner of which nothing needs to be known, and remembers idle ones for a while.
    fn settle(&mut self, key: OwnerKey) {
        let Some(owner) = self.by_key.get(&key) else { return };
        if owner.held.is_some() || !owner.tasks.is_empty() {
            return;
        }
        if owner.watermark == 0 {
            self.by_key.remove(&key);
            return;
        }
        self.idle.push_back(key);
        while self.idle.len() > IDLE_OWNERS_MAX
            && let Some(oldest) = self.idle.pop_front()
        {
            let is_idle = |owner: &Owner| owner.tasks.is_empty() && owner.held.is_none();
            if self.by_key.get(&oldest).is_some_and(is_idle) {
                self.by_key.remove(&oldest);
            }
        }
    }

    fn is_held(&self, task: &Task) -> bool {
        self.by_key.get(&key_of(task)).is_some_and(|owner| owner.held.is_some())
    }

    fn tasks_of(&self, key: &OwnerKey) -> Vec<TaskId> {
        self.by_key.get(key).map_or_else(Vec::new, |owner| owner.tasks.iter().copied().collect())
    }
}

fn key_of(task: &Task) -> OwnerKey {
    (task.pool().namespace.clone(), task.options().owner_key.clone())
}

pub(crate) fn has_owner(task: &Task) -> bool {
    !task.options().owner_key.is_empty()
}

impl<F: CellFamily> Engine<F> {
    /// Lists a new task under its owner; says whether the owner is held.
    pub(crate) fn owner_arrives(&self, task: &Task) -> Result<bool, SubmitError> {
        if has_owner(task) { self.owners.lock().arrive(task) } else { Ok(false) }
    }

    /// A task has ended, or was not taken.
    pub(crate) fn owner_left(&self, task: &Task) {
        if has_owner(task) {
            self.owners.lock().leave(task);
        }
    }

    /// Says whether a task's owner is held.
    pub(crate) fn is_owner_held(&self, task: &Task) -> bool {
        has_owner(task) && self.owners.lock().is_held(task)
    }

    /// Cancels all tasks of an owner that have not ended, or those of a generation below one.
    ///
    /// Returns how many that changed.
    ///
    /// # Errors
    ///
    /// The principal may not see the namespace, or is neither producer nor operator there.
    pub fn cancel_owner(
        &self,
        principal: &Principal,
        namespace: &Namespace,
        owner_key: &Bytes,
        below_generation: Option<u64>,
        cancel: &Cancel,
        now: Instant,
    ) -> Result<u64, AdminError> {
        may_change(principal, namespace)?;
        let key = (namespace.clone(), owner_key.clone());
        let tasks = self.owners.lock().tasks_of(&key);
        Ok(self.cancel_all(tasks, below_generation, cancel, now))
    }

    /// Cancels the tasks of an owner that are of a generation below `generation`, and refuses those
    /// that would follow. Superseding by an older generation than before changes nothing.
    ///
    /// # Consistency
    ///
    /// One step against submissions: a task of an older generation is refused, or is cancelled.
    ///
    /// # Errors
    ///
    /// As [`Engine::cancel_owner`].
    pub fn supersede(
        &self,
        principal: &Principal,
        namespace: &Namespace,
        owner_key: &Bytes,
        generation: u64,
        now: Instant,
    ) -> Result<u64, AdminError> {
        may_change(principal, namespace)?;
        let key = (namespace.clone(), owner_key.clone());
        let tasks = {
            let mut owners = self.owners.lock();
            let owner = owners.by_key.entry(key.clone()).or_default();
            owner.watermark = owner.watermark.max(generation);
            let tasks = owners.tasks_of(&key);
            owners.settle(key);
            tasks
        };
        let reason = Text::from_static("a newer generation of its owner has come");
        let cancel = Cancel { reason, grace: None };
        Ok(self.cancel_all(tasks, Some(generation), &cancel, now))
    }

    fn cancel_all(
        &self,
        tasks: Vec<TaskId>,
        below: Option<u64>,
        cancel: &Cancel,
        now: Instant,
    ) -> u64 {
        let mut run = RunList::new();
        let mut changed = 0;
        for task in tasks.into_iter().filter_map(|id| self.tasks.get(&id)) {
            if below.is_none_or(|below| task.options().generation < below) {
                changed += u64::from(self.cancel_task(&task, cancel, now, &mut run).changed);
            }
        }
        self.run(&mut run);
        changed
    }

    /// Holds the tasks of an owner: none is placed until they are released. Those that run go on.
    pub(crate) fn hold_owner(&self, namespace: &Namespace, owner_key: &Bytes, now: Instant) {
        let key = (namespace.clone(), owner_key.clone());
        let tasks = {
            let mut owners = self.owners.lock();
            if !mutant("L14a") {
                owners.by_key.entry(key.clone()).or_default().held.get_or_insert(now);
            }
            owners.tasks_of(&key)
        };
        let mut run = RunList::new();
        for task in tasks.into_iter().filter_map(|id| self.tasks.get(&id)) {
            loop {
                let word = task.word();
                if word.state() != TaskState::Pending || word.is_parked() {
                    break;
                }
                if task.park(word) {
                    self.left_line_by(&task, word, &mut run);
                    break;
                }
            }
        }
        if mutant("L14a") {
            // A planted fault: what comes to wait in between sees no hold and is not seen.
            self.owners.lock().by_key.entry(key).or_default().held.get_or_insert(now);
        }
        self.run(&mut run);
    }

    /// Puts the held tasks of an owner back into their lines. False if it was not held.
    pub(crate) fn release_owner(&self, namespace: &Namespace, owner_key: &Bytes) -> bool {
        let key = (namespace.clone(), owner_key.clone());
        let tasks = {
            let mut owners = self.owners.lock();
            let owner = owners.by_key.get_mut(&key);
            let Some(owner) = owner.filter(|owner| owner.held.is_some()) else { return false };
            owner.held = None;
            let tasks = owners.tasks_of(&key);
            owners.settle(key);
            tasks
        };
        let mut run = RunList::new();
        for task in tasks.into_iter().filter_map(|id| self.tasks.get(&id)) {
            let word = task.word();
            if !word.is_parked() {
                continue;
            }
            let pool = self.announce_anew(&task);
            if task.unpark(word) {
                self.queue(&pool, &task, &mut run);
                self.post_start(&task);
            } else {
                self.left_line(&pool, &task);
                pool.notify(&mut run);
            }
        }
        self.run(&mut run);
        true
    }

    /// The owners that are held, with how many of their tasks wait for it.
    pub(crate) fn held_owners(&self) -> Vec<HoldStatus> {
        let held: Vec<(OwnerKey, Instant, Vec<TaskId>)> = {
            let owners = self.owners.lock();
            let held = owners.by_key.iter().filter_map(|(key, owner)| {
                Some((key.clone(), owner.held?, owner.tasks.iter().copied().collect()))
            });
            held.collect()
        };
        let is_parked = |id: &TaskId| self.tasks.get(id).is_some_and(|task| is_held(&task));
        held.into_iter()
            .map(|((namespace, key), since, tasks)| HoldStatus {
                hold: Hold::Owner(namespace, key),
                since,
                tasks: Some(tasks.iter().filter(|id| is_parked(id)).count() as u64),
            })
            .collect()
    }
}

fn is_held(task: &StdArc<Task>) -> bool {
    task.word().is_parked()
}

fn may_change(principal: &Principal, namespace: &Namespace) -> Result<(), AdminError> {
    if !principal.may_see(namespace) {
        return Err(AdminError::NotFound);
    }
    let roles = [Role::Producer, Role::Operator];
    let may = roles.iter().any(|role| principal.may(*role, namespace));
    if may { Ok(()) } else { Err(AdminError::PermissionDenied) }
}
