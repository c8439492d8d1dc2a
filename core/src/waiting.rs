//! What belongs to a pool's pass: the backlog, and where the pool waits for credit.
//!
//! For each member two facts are kept apart: *queued*, an entry of this pool is in the worker's
//! waiting line; and *armed*, the worker's word was made to hand its next unit to that line. A
//! member that is queued but not armed may have room again, so it must be looked at.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::backlog::Backlog;
use crate::credit::{Reserve, TakeOrArm, Word};
use crate::id::Generation;
use crate::mutant::mutant;
use crate::name::Node;
use crate::pool::Pool;
use crate::snapshot::PoolView;
use crate::sync::StdArc;
use crate::worker::{Member, Worker};

#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    queued: bool,
    armed: bool,
    /// Stands in `loose`.
    in_any: bool,
    /// Stands in the `loose_on` of its node.
    in_node: bool,
}

/// The waiting tasks of a pool and the members at which it waits.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) backlog: Backlog,
    /// Units that are the pool's and not used yet.
    pub(crate) tokens: VecDeque<Member>,
    seen: Option<Generation>,
    flags: FxHashMap<Member, Flags>,
    /// Members that are not armed, in the order in which they are tried.
    loose: VecDeque<Member>,
    loose_on: BTreeMap<Node, VecDeque<Member>>,
}

impl Waiting {
    /// Takes note of the members of a new view. Linear in them, once a view.
    pub(crate) fn refresh(&mut self, view: &PoolView) {
        if self.seen == Some(view.generation) {
            return;
        }
        self.seen = Some(view.generation);
        self.loose_on.clear();
        self.loose.clear();
        let mut flags = FxHashMap::default();
        for member in view.members.iter() {
            let old = self.flags.remove(&member).unwrap_or_default();
            if !old.armed {
                self.loose.push_back(member);
            }
            flags.insert(member, Flags { in_any: !old.armed, in_node: false, ..old });
        }
        self.flags = flags;
        // Where the rotation stood: the first selections of a pass go on from there.
        let start = view.generation.as_u64() as usize % self.loose.len().max(1);
        self.loose.rotate_left(start);
    }

    /// Takes note that a token of this worker arrived: its line entry is used up.
    pub(crate) fn token_arrived(&mut self, member: Member, node: Option<&Node>) {
        self.tokens.push_back(member);
        let flags = self.flags.entry(member).or_default();
        flags.queued = false;
        flags.armed = false;
        if !flags.in_any {
            flags.in_any = true;
            self.loose.push_back(member);
        }
        if let Some(loose) = node.and_then(|node| self.loose_on.get_mut(node))
            && !flags.in_node
        {
            flags.in_node = true;
            loose.push_back(member);
        }
    }

    /// Looks for a member with room: on `node`, or any. Arms at each that has none.
    pub(crate) fn take_or_arm<'a, W>(
        &mut self,
        pool: &StdArc<Pool>,
        view: &PoolView,
        node: Option<&Node>,
        find: W,
    ) -> Option<Member>
    where
        W: Fn(Member) -> Option<(&'a Word, &'a Worker)>,
    {
        let Self { flags: all, loose, loose_on, .. } = self;
        let loose = match node {
            None => loose,
            Some(node) => {
                if !loose_on.contains_key(node) {
                    let members: VecDeque<Member> = view
                        .slice(node)
                        .map(|slice| slice.members.iter().collect())
                        .unwrap_or_default();
                    for member in &members {
                        all.entry(*member).or_default().in_node = true;
                    }
                    loose_on.insert(node.clone(), members);
                }
                loose_on.get_mut(node)?
            }
        };
        while let Some(member) = loose.pop_front() {
            let flags = all.entry(member).or_default();
            let mut stays = |flags: &mut Flags| {
                *(if node.is_none() { &mut flags.in_any } else { &mut flags.in_node }) = true;
                loose.push_back(member);
            };
            *(if node.is_none() { &mut flags.in_any } else { &mut flags.in_node }) = false;
            if flags.armed || (mutant("L10b-f") && flags.queued) {
                continue;
            }
            let Some((word, worker)) = find(member) else { continue };
            if let Reserve::Taken { .. } = word.reserve(member.generation) {
                stays(flags);
                return Some(member);
            }
            if !flags.queued && !mutant("L10b-c") {
                worker.waiters.push(StdArc::clone(pool));
            }
            let found = word.take_or_arm(member.generation);
            if !flags.queued && mutant("L10b-c") {
                worker.waiters.push(StdArc::clone(pool));
            }
            flags.queued = true;
            match found {
                TakeOrArm::Taken => {
                    stays(flags);
                    return Some(member);
                }
                TakeOrArm::Armed => flags.armed = true,
                TakeOrArm::Gone => {}
            }
        }
        None
    }
}
