//! Lookup by key. An index only: nothing is decided by who wins an operation on it.
//!
//! loom cannot look into the real map, so the models run over a locked stand-in.

use std::hash::{BuildHasher, Hash};

#[cfg(not(slipswitch_loom))]
use papaya::HashMap;

#[cfg(slipswitch_loom)]
use crate::sync::Mutex;

/// A concurrent map whose reads never block.
#[cfg(not(slipswitch_loom))]
pub(crate) struct Index<K, V, S>(HashMap<K, V, S>);

#[cfg(not(slipswitch_loom))]
impl<K: Hash + Eq, V: Clone, S: BuildHasher> Index<K, V, S> {
    pub(crate) fn new(hasher: S) -> Self {
        Self(HashMap::with_hasher(hasher))
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.0.pin().get(key).cloned()
    }

    /// Inserts unless the key is there already. False if it was.
    pub(crate) fn insert(&self, key: K, value: V) -> bool {
        self.0.pin().try_insert(key, value).is_ok()
    }

    pub(crate) fn remove(&self, key: &K) {
        self.0.pin().remove(key);
    }

    /// Visits what is there; what comes or goes meanwhile may be seen or not.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&K, &V)) {
        for (key, value) in &self.0.pin() {
            visit(key, value);
        }
    }
}

/// The stand-in for the models.
#[cfg(slipswitch_loom)]
pub(crate) struct Index<K, V, S>(Mutex<std::collections::HashMap<K, V, S>>);

#[cfg(slipswitch_loom)]
impl<K: Hash + Eq, V: Clone, S: BuildHasher> Index<K, V, S> {
    pub(crate) fn new(hasher: S) -> Self {
        Self(Mutex::new(std::collections::HashMap::with_hasher(hasher)))
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.0.lock().get(key).cloned()
    }

    pub(crate) fn insert(&self, key: K, value: V) -> bool {
        let mut map = self.0.lock();
        let absent = !map.contains_key(&key);
        if absent {
            map.insert(key, value);
        }
        absent
    }

    pub(crate) fn remove(&self, key: &K) {
        let gone = self.0.lock().remove(key);
        drop(gone);
    }

    pub(crate) fn for_each(&self, mut visit: impl FnMut(&K, &V)) {
        for (key, value) in &*self.0.lock() {
            visit(key, value);
        }
    }
}

impl<K, V, S> std::fmt::Debug for Index<K, V, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").finish_non_exhaustive()
    }
}
