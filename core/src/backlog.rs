//! The tasks of a pool that wait: first in, first out, unpinned ones and those of each node.
//!
//! A task that was taken back goes to its old place. What has ended meanwhile is left out when it
//! is met. Priorities and fairness keys slot in behind [`Backlog::pop_for`], the one place that
//! decides whose turn it is.

use std::collections::{BTreeMap, VecDeque};

use crate::name::Node;
use crate::sync::{Ordering, StdArc};
use crate::task::Task;

#[derive(Debug, Default)]
struct Queue(VecDeque<StdArc<Task>>);

fn order(task: &Task) -> u64 {
    // Relaxed: written by the pump that owns this backlog.
    task.order.load(Ordering::Relaxed)
}

fn waits(task: &Task) -> bool {
    task.word().is_in_line()
}

impl Queue {
    fn push(&mut self, task: StdArc<Task>) {
        let place = order(&task);
        if self.0.back().is_none_or(|last| order(last) <= place) {
            self.0.push_back(task);
        } else {
            let at = self.0.partition_point(|other| order(other) <= place);
            self.0.insert(at, task);
        }
    }

    fn drop_ended(&mut self) {
        while self.0.front().is_some_and(|task| !waits(task)) {
            self.0.pop_front();
        }
    }

    fn first(&self) -> Option<u64> {
        self.0.front().map(|task| order(task))
    }
}

/// The waiting tasks of one pool. It belongs to whoever runs the pool's pump.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    next: u64,
    /// Some task of those that came since it was empty prefers nodes.
    prefers: bool,
    any: Queue,
    pinned: BTreeMap<Node, Queue>,
}

impl Backlog {
    /// Adds a task, at the end or, if it was here before, at its old place.
    pub(crate) fn push(&mut self, task: StdArc<Task>) {
        if order(&task) == 0 {
            self.next += 1;
            // Relaxed: read by the pump that owns this backlog.
            task.order.store(self.next, Ordering::Relaxed);
        }
        self.prefers |= !task.options().rare().prefer.is_empty();
        match task.options().require.clone() {
            None => self.any.push(task),
            Some(node) => self.pinned.entry(node).or_default().push(task),
        }
    }

    /// Leaves out tasks at the heads that have ended.
    pub(crate) fn drop_ended(&mut self) {
        self.any.drop_ended();
        self.pinned.retain(|_, queue| {
            queue.drop_ended();
            !queue.0.is_empty()
        });
        self.prefers &= !self.is_empty();
    }

    /// Says whether a task may wait that prefers nodes.
    pub(crate) const fn prefers(&self) -> bool {
        self.prefers
    }

    /// Leaves out all tasks that have ended; for when they are many.
    pub(crate) fn compact(&mut self) {
        self.any.0.retain(|task| waits(task));
        for queue in self.pinned.values_mut() {
            queue.0.retain(|task| waits(task));
        }
        self.drop_ended();
    }

    /// Takes the oldest task that may run on a worker of that node.
    pub(crate) fn pop_for(&mut self, node: Option<&Node>) -> Option<StdArc<Task>> {
        self.any.drop_ended();
        let pinned = node.and_then(|node| {
            let queue = self.pinned.get_mut(node)?;
            queue.drop_ended();
            queue.first().map(|order| (order, queue))
        });
        match (self.any.first(), pinned) {
            (Some(any), Some((order, queue))) if order < any => queue.0.pop_front(),
            (Some(_), _) => self.any.0.pop_front(),
            (None, Some((_, queue))) => queue.0.pop_front(),
            (None, None) => None,
        }
    }

    /// The oldest of the unpinned tasks, and of those of each node.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &StdArc<Task>> {
        let queues = std::iter::once(&self.any).chain(self.pinned.values());
        queues.filter_map(|queue| queue.0.front())
    }

    /// Says whether a task waits that any worker may run.
    pub(crate) fn wants_any(&self) -> bool {
        !self.any.0.is_empty()
    }

    /// Says whether a task waits that a worker of that node may run.
    pub(crate) fn wants(&self, node: Option<&Node>) -> bool {
        self.wants_any() || node.is_some_and(|node| self.pinned.contains_key(node))
    }

    /// The nodes for which pinned tasks wait.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.pinned.keys()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.any.0.is_empty() && self.pinned.is_empty()
    }

    /// How many tasks are held, ended ones included.
    pub(crate) fn len(&self) -> usize {
        self.any.0.len() + self.pinned.values().map(|queue| queue.0.len()).sum::<usize>()
    }
}
