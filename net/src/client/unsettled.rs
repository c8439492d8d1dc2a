//! Outcomes that were reported and have no verdict yet.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::proto::messages as m;

/// What a worker has finished and the server has not judged. It outlives sessions: what is here is
/// sent again on the next one.
#[derive(Debug, Default)]
pub struct Unsettled {
    /// In the order in which the deliveries were made.
    reports: BTreeMap<(u64, u64), (m::TaskResult, Bytes)>,
}

impl Unsettled {
    /// Keeps a report until its verdict.
    pub fn keep(&mut self, result: &m::TaskResult, payload: &Bytes) {
        let key = (result.lease.epoch, result.lease.id);
        self.reports.insert(key, (result.clone(), payload.clone()));
    }

    /// A verdict came: the task's id, if one was waited for.
    pub(super) fn settled(&mut self, lease: m::Lease) -> Option<Bytes> {
        let (result, _) = self.reports.remove(&(lease.epoch, lease.id))?;
        Some(result.task_id)
    }

    /// All reports, oldest first.
    pub(super) fn all(&self) -> Vec<(m::TaskResult, Bytes)> {
        self.reports.values().cloned().collect()
    }

    /// How many outcomes wait for their verdict.
    #[must_use]
    pub fn len(&self) -> usize {
        self.reports.len()
    }

    /// Says whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }
}
