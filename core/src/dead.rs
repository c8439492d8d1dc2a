//! Dead letters: tasks that were given up, kept with their payload and cause until somebody
//! requeues or discards them.

use std::collections::BTreeMap;
use std::fmt;

use crate::admission::{Principal, Role};
use crate::cell::CellFamily;
use crate::engine::{AdminError, Engine};
use crate::id::TaskId;
use crate::limits::{DEAD_BYTES_MAX, DEAD_MAX, DEAD_RETENTION};
use crate::name::{ActivityType, Namespace, TaskQueue};
use crate::outcome::{Class, Outcome};
use crate::sync::StdArc;
use crate::task::Task;
use crate::time::Instant;
use crate::worker::RunList;

/// What failures that look alike have in common: class, code and message without its digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// That of an outcome.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        // FNV-1a, 64 bits (Fowler, Noll, Vo): no key, so that it is the same on every server.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut take = |byte: u8| {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        };
        let parts = [outcome.class.as_str(), &outcome.code, &outcome.message];
        for part in parts {
            part.bytes().filter(|byte| !byte.is_ascii_digit()).for_each(&mut take);
            take(0);
        }
        Self(hash)
    }

    /// Reads what [`fmt::Display`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok().map(Self))?
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Which dead letters; what is not given does not restrict.
#[derive(Clone, Debug, Default)]
pub struct DeadFilter {
    /// In this namespace.
    pub namespace: Option<Namespace>,
    /// On this task queue.
    pub task_queue: Option<TaskQueue>,
    /// Of this activity type.
    pub activity_type: Option<ActivityType>,
    /// Given up for this reason.
    pub class: Option<Class>,
    /// With a failure that looks like this.
    pub fingerprint: Option<Fingerprint>,
}

/// A task that was given up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Its place: later ones have higher numbers.
    pub place: u64,
    /// The task, with its payload.
    pub task: StdArc<Task>,
    /// How it ended.
    pub outcome: StdArc<Outcome>,
    /// What it can be found by.
    pub fingerprint: Fingerprint,
    /// When it was given up.
    pub died: Instant,
}

impl DeadFilter {
    fn admits(&self, letter: &DeadLetter) -> bool {
        let key = letter.task.pool();
        self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            && self.task_queue.as_ref().is_none_or(|queue| *queue == key.task_queue)
            && self.activity_type.as_ref().is_none_or(|name| *name == key.activity_type)
            && self.class.is_none_or(|class| letter.outcome.class == class)
            && self.fingerprint.is_none_or(|fingerprint| letter.fingerprint == fingerprint)
    }
}

/// The dead letters of an engine, oldest first.
#[derive(Debug, Default)]
pub(crate) struct DeadLetters {
    by_place: BTreeMap<u64, DeadLetter>,
    places: BTreeMap<TaskId, u64>,
    bytes: u64,
    last: u64,
}

fn bytes_of(letter: &DeadLetter) -> u64 {
    letter.task.size() + letter.outcome.details.len() as u64
}

impl DeadLetters {
    fn put(&mut self, task: &StdArc<Task>, outcome: &StdArc<Outcome>, now: Instant) {
        self.last += 1;
        let letter = DeadLetter {
            place: self.last,
            task: StdArc::clone(task),
            outcome: StdArc::clone(outcome),
            fingerprint: Fingerprint::of(outcome),
            died: now,
        };
        self.bytes += bytes_of(&letter);
        self.places.insert(task.id(), self.last);
        self.by_place.insert(self.last, letter);
    }

    fn take(&mut self, id: TaskId) -> Option<DeadLetter> {
        let place = self.places.remove(&id)?;
        let letter = self.by_place.remove(&place)?;
        self.bytes -= bytes_of(&letter);
        Some(letter)
    }

    /// Takes out what is over a limit, the oldest first.
    fn trim(&mut self, now: Instant) -> Vec<DeadLetter> {
        let mut gone = Vec::new();
        while let Some((_, oldest)) = self.by_place.first_key_value()
            && (self.by_place.len() > DEAD_MAX
                || self.bytes > DEAD_BYTES_MAX
                || now.saturating_since(oldest.died) > DEAD_RETENTION)
        {
            let id = oldest.task.id();
            gone.extend(self.take(id));
        }
        gone
    }
}

impl<F: CellFamily> Engine<F> {
    /// Keeps a task that was given up.
    pub(crate) fn bury(&self, task: &StdArc<Task>, outcome: &StdArc<Outcome>, now: Instant) {
        let gone = {
            let mut dead = self.dead.lock();
            dead.put(task, outcome, now);
            dead.trim(now)
        };
        for letter in gone {
            self.forget(letter.task.id());
        }
    }

    /// Forgets dead letters that have outlived their time.
    pub(crate) fn sweep_dead(&self, now: Instant) {
        let gone = self.dead.lock().trim(now);
        for letter in gone {
            self.forget(letter.task.id());
        }
    }

    /// The dead letters that the principal may see, oldest first, from after a place on.
    #[must_use]
    pub fn dead(
        &self,
        principal: &Principal,
        filter: &DeadFilter,
        after: u64,
        limit: usize,
    ) -> Vec<DeadLetter> {
        let dead = self.dead.lock();
        let later = dead.by_place.range(after.saturating_add(1)..).map(|(_, letter)| letter);
        let seen = later.filter(|letter| {
            filter.admits(letter) && principal.may_see(&letter.task.pool().namespace)
        });
        seen.take(limit).cloned().collect()
    }

    /// One dead letter, unless there is none or it is not the principal's to see.
    #[must_use]
    pub fn dead_letter(&self, principal: &Principal, id: TaskId) -> Option<DeadLetter> {
        let dead = self.dead.lock();
        let letter = dead.by_place.get(dead.places.get(&id)?)?;
        principal.may_see(&letter.task.pool().namespace).then(|| letter.clone())
    }

    /// Has a dead task live again: attempt 1, no losses, the same id. Once: of two calls one finds
    /// it dead. A late report of an earlier life is stale.
    ///
    /// # Errors
    ///
    /// There is no such dead letter, it is not the principal's to see, or the principal is no
    /// operator there.
    pub fn requeue(
        &self,
        principal: &Principal,
        id: TaskId,
        now: Instant,
    ) -> Result<(), AdminError> {
        let letter = self.take_dead(principal, id)?;
        let mut run = RunList::new();
        self.revive(&letter.task, now, &mut run);
        self.run(&mut run);
        Ok(())
    }

    /// Forgets a dead task.
    ///
    /// # Errors
    ///
    /// As [`Engine::requeue`].
    pub fn discard(&self, principal: &Principal, id: TaskId) -> Result<(), AdminError> {
        let letter = self.take_dead(principal, id)?;
        self.forget(letter.task.id());
        Ok(())
    }

    /// Requeues the dead letters that the filter admits and of which the principal is operator.
    pub fn requeue_all(&self, principal: &Principal, filter: &DeadFilter, now: Instant) -> u64 {
        let mut run = RunList::new();
        let mut count = 0;
        for letter in self.take_all_dead(principal, filter) {
            self.revive(&letter.task, now, &mut run);
            count += 1;
        }
        self.run(&mut run);
        count
    }

    /// Discards the dead letters that the filter admits and of which the principal is operator.
    pub fn discard_all(&self, principal: &Principal, filter: &DeadFilter) -> u64 {
        let letters = self.take_all_dead(principal, filter);
        letters.iter().for_each(|letter| self.forget(letter.task.id()));
        letters.len() as u64
    }

    fn take_dead(&self, principal: &Principal, id: TaskId) -> Result<DeadLetter, AdminError> {
        let mut dead = self.dead.lock();
        let letter = dead.places.get(&id).and_then(|place| dead.by_place.get(place));
        let namespace = &letter.ok_or(AdminError::NotFound)?.task.pool().namespace;
        if !principal.may_see(namespace) {
            return Err(AdminError::NotFound);
        }
        if !principal.may(Role::Operator, namespace) {
            return Err(AdminError::PermissionDenied);
        }
        dead.take(id).ok_or(AdminError::NotFound)
    }

    fn take_all_dead(&self, principal: &Principal, filter: &DeadFilter) -> Vec<DeadLetter> {
        let mut dead = self.dead.lock();
        let wanted = |letter: &&DeadLetter| {
            filter.admits(letter) && principal.may(Role::Operator, &letter.task.pool().namespace)
        };
        let ids: Vec<TaskId> =
            dead.by_place.values().filter(wanted).map(|letter| letter.task.id()).collect();
        ids.into_iter().filter_map(|id| dead.take(id)).collect()
    }

    /// Whoever took the letter out is the only one to do this.
    fn revive(&self, task: &StdArc<Task>, now: Instant, run: &mut RunList) {
        task.begin_again(now);
        // After the outcome was taken out: who watches from here on waits for the next one.
        task.watchers.reopen();
        // A generation below the owner's was cancelled for that, so it is not here; one that was
        // superseded while it was dead lives again by an operator's word.
        self.owner_arrives(task).ok();
        let pool = self.announce_anew(task);
        if task.revive(task.word()) {
            self.queue(&pool, task, run);
            self.post_deadlines(task);
        } else {
            self.left_line(&pool, task);
            pool.notify(run);
        }
    }
}
