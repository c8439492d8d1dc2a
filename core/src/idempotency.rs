//! Idempotency keys: the same key with the same content is the same task.
//!
//! A key is known as long as its task is: from the submission until the outcome is forgotten.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher};

use bytes::Bytes;

use crate::cell::CellFamily;
use crate::engine::Engine;
use crate::id::TaskId;
use crate::name::Namespace;
use crate::registry::KeyHasher;
use crate::submit::SubmitError;
use crate::task::Task;

/// What a task is about, so that two of the same key can be compared without their payloads.
pub(crate) type Digest = u128;

#[derive(Debug, Default)]
pub(crate) struct Keys(BTreeMap<(Namespace, Bytes), (TaskId, Digest)>);

fn key_of(task: &Task) -> Option<(Namespace, Bytes)> {
    let key = &task.options().rare().idempotency_key;
    (!key.is_empty()).then(|| (task.pool().namespace.clone(), key.clone()))
}

fn digest(task: &Task, seed: u64) -> Digest {
    let half = |seed: u64| {
        let mut hasher = KeyHasher::with_seed(seed).build_hasher();
        let options = task.options();
        task.pool().hash(&mut hasher);
        task.payload().hash(&mut hasher);
        options.content_type.hash(&mut hasher);
        options.encoding.hash(&mut hasher);
        options.require.hash(&mut hasher);
        (options.priority, options.ordinal, options.generation).hash(&mut hasher);
        options.owner_key.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(seed) << 64 | half(!seed)
}

impl<F: CellFamily> Engine<F> {
    /// Takes the key of a new task, if it has one. Some other task's id if that has the key and the
    /// same content.
    pub(crate) fn take_key(&self, task: &Task) -> Result<Option<TaskId>, SubmitError> {
        let Some(key) = key_of(task) else { return Ok(None) };
        let digest = digest(task, self.config.seed);
        let mut keys = self.keys.lock();
        match keys.0.get(&key) {
            Some((id, other)) if *other == digest => Ok(Some(*id)),
            Some(_) => Err(SubmitError::KeyConflict),
            None => {
                keys.0.insert(key, (task.id(), digest));
                Ok(None)
            }
        }
    }

    /// The task that has the key of this one, and the same content.
    pub(crate) fn known_by_key(&self, task: &Task) -> Option<TaskId> {
        let key = key_of(task)?;
        let digest = digest(task, self.config.seed);
        let keys = self.keys.lock();
        keys.0.get(&key).filter(|(_, other)| *other == digest).map(|(id, _)| *id)
    }

    /// The task is not known any more, or was not taken.
    pub(crate) fn forget_key(&self, task: &Task) {
        let Some(key) = key_of(task) else { return };
        let mut keys = self.keys.lock();
        if keys.0.get(&key).is_some_and(|(id, _)| *id == task.id()) {
            keys.0.remove(&key);
        }
    }
}
