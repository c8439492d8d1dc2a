//! The immutable table from which every selection chooses.

use crate::cursor::Cursor;
use crate::id::Generation;
use crate::name::Node;
use crate::pool::Pool;
use crate::sync::StdArc;
use crate::table::{Roster, Table};
use crate::worker::{Member, Worker};

/// Pools and workers at one generation. Never changed; replaced by a publish.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) generation: Generation,
    /// By the pool's index. A pool without workers has no view.
    pub(crate) views: Table<StdArc<PoolView>>,
    /// By the worker's slot.
    pub(crate) workers: Table<StdArc<Entry>>,
    pub(crate) worker_count: usize,
}

/// A worker and the pools that it serves at this generation.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) worker: StdArc<Worker>,
    pub(crate) pools: StdArc<[StdArc<Pool>]>,
}

/// The members of one pool, and those of each node.
#[derive(Debug)]
pub(crate) struct PoolView {
    pub(crate) serial: u64,
    pub(crate) generation: Generation,
    /// Nothing of the pool is to be placed.
    pub(crate) is_drained: bool,
    pub(crate) members: Roster<Member>,
    /// In the order of the nodes' names.
    pub(crate) slices: Vec<NodeSlice>,
}

/// The members of a pool on one node. The cursor passes on to the next view.
#[derive(Clone, Debug)]
pub(crate) struct NodeSlice {
    pub(crate) node: Node,
    pub(crate) members: Roster<Member>,
    pub(crate) cursor: StdArc<Cursor>,
}

impl PoolView {
    /// The slice of a node. Compares texts, hashes none.
    pub(crate) fn slice(&self, node: &Node) -> Option<&NodeSlice> {
        let at = self.slices.binary_search_by(|slice| slice.node.cmp(node)).ok()?;
        self.slices.get(at)
    }
}

impl Snapshot {
    /// The view of a pool, unless it has no worker or the index is another pool's by now.
    #[inline]
    pub(crate) fn view(&self, pool: &Pool) -> Option<&StdArc<PoolView>> {
        self.views.get(pool.index).filter(|view| view.serial == pool.serial)
    }

    /// The worker of a member that a view of this very snapshot names.
    #[inline]
    pub(crate) fn entry(&self, member: Member) -> Option<&Entry> {
        let entry = self.workers.get(member.slot)?;
        (entry.worker.member == member).then_some(entry)
    }
}
