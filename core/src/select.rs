//! Choosing a worker and reserving one of its credits, in one step.
//!
//! A selection reads one snapshot and draws one ticket. From the ticket's place it goes round the
//! slice and takes the first worker whose state word gives it a credit; that compare-exchange is
//! the commit point. It takes no lock and allocates nothing, and through a route it hashes no
//! text. It is lock-free; what bounds it is the number of members of the slice.
//!
//! The other policies only change who is asked first. `least_loaded` asks the less loaded of two
//! that the ticket draws (power of two choices, Mitzenmacher 2001), `sticky` asks by rank
//! (rendezvous hashing, Thaler and Ravishankar 1998); whoever they ask is refused or taken by the
//! same compare-exchange, and the ring has the last word.

use std::fmt;

use crate::cell::CellFamily;
use crate::credit::{GiveBack, Reserve, Word};
use crate::cursor::Cursor;
use crate::id::{Generation, WorkerId};
use crate::mix::{hash, mix, two_below};
use crate::name::{Node, PoolKey};
use crate::pool::{Policy, Pool};
use crate::registry::Registry;
use crate::snapshot::{PoolView, Snapshot};
use crate::sync::StdArc;
use crate::table::Roster;
use crate::task::TaskOptions;
use crate::worker::{Member, release};

/// How many workers are asked in the order of their ranks for an affinity key.
const RANKS_ASKED: u32 = 8;

/// A pool that was resolved once; selecting through it needs no names.
#[derive(Clone, Debug)]
pub struct Route {
    pub(crate) pool: StdArc<Pool>,
}

impl Route {
    /// The key that was resolved.
    #[must_use]
    pub fn key(&self) -> &PoolKey {
        &self.pool.key
    }
}

/// From what a worker was chosen: enough to choose it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The snapshot that was read.
    pub generation: Generation,
    /// The ticket that was drawn, or the hash of the affinity key.
    pub ticket: u64,
    /// How many workers were candidates.
    pub candidates: u32,
    /// How many were asked before one took it.
    pub refused: u32,
}

/// What a selection within one snapshot came to.
#[derive(Debug)]
pub(crate) enum Chosen<'a> {
    /// A credit is held in this word of this member.
    Reserved(Member, &'a Word, Decision),
    NoWorker,
    NoCapacity,
    Draining,
}

/// What a selection came to. Only the first costs anybody anything.
#[derive(Debug)]
#[non_exhaustive]
pub enum Selection<'a, F: CellFamily> {
    /// A credit of the chosen worker is held.
    Reserved(Reservation<'a, F>),
    /// Nobody serves the pool, or nobody on that node.
    NoWorker,
    /// Those who do have no free credit.
    NoCapacity,
    /// Those who do are leaving.
    Draining,
}

/// A held credit. Dropping it gives the credit back, also when a panic unwinds.
pub struct Reservation<'a, F: CellFamily> {
    registry: &'a Registry<F>,
    word: &'a Word,
    member: Member,
    decision: Decision,
}

impl<F: CellFamily> Reservation<'_, F> {
    /// The chosen worker.
    #[must_use]
    pub fn worker_id(&self) -> WorkerId {
        self.member.worker
    }

    /// From what it was chosen.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }
}

impl<F: CellFamily> Drop for Reservation<'_, F> {
    #[inline]
    fn drop(&mut self) {
        if self.word.give_back() == GiveBack::Wanted {
            self.registry.release_late(self.member, self.word);
        }
    }
}

impl<F: CellFamily> fmt::Debug for Reservation<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("worker", &self.member.worker)
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}

impl<F: CellFamily> Registry<F> {
    /// Selects a worker of the pool, on `node` if one is given.
    #[inline]
    pub(crate) fn select(&self, pool: &Pool, node: Option<&Node>) -> Selection<'_, F> {
        if !pool.goes_in_turn() {
            return self.select_by_load_or_key(pool, node);
        }
        let snapshot = self.load();
        self.selected(self.choose_in_turn(&snapshot, pool, node))
    }

    /// Whole and apart: one call that leaves a [`Chosen`] in memory would have the way in turn read
    /// its own back from there, which costs one instruction in twenty.
    #[cold]
    #[inline(never)]
    fn select_by_load_or_key(&self, pool: &Pool, node: Option<&Node>) -> Selection<'_, F> {
        let snapshot = self.load();
        self.selected(self.choose_by_load_or_key(&snapshot, pool, node, &[]))
    }

    /// Selects a worker of the pool for a task with these options.
    pub(crate) fn select_for(&self, pool: &Pool, options: &TaskOptions) -> Selection<'_, F> {
        let snapshot = self.load();
        self.selected(self.choose_for(&snapshot, pool, options))
    }

    #[inline]
    fn selected<'a>(&'a self, chosen: Chosen<'a>) -> Selection<'a, F> {
        match chosen {
            Chosen::Reserved(member, word, decision) => {
                Selection::Reserved(Reservation { registry: self, word, member, decision })
            }
            Chosen::NoWorker => Selection::NoWorker,
            Chosen::NoCapacity => Selection::NoCapacity,
            Chosen::Draining => Selection::Draining,
        }
    }

    /// Chooses for a task, within a snapshot that the caller holds.
    #[inline]
    pub(crate) fn choose_for(
        &self,
        snapshot: &Snapshot,
        pool: &Pool,
        options: &TaskOptions,
    ) -> Chosen<'_> {
        let rare = options.rare();
        if options.require.is_none()
            && !rare.prefer.is_empty()
            && let Some(chosen) = self.preferred(snapshot, pool, &rare.prefer)
        {
            return chosen;
        }
        if pool.goes_in_turn() {
            self.choose_in_turn(snapshot, pool, options.require.as_ref())
        } else {
            let node = options.require.as_ref();
            self.choose_by_load_or_key(snapshot, pool, node, &rare.affinity_key)
        }
    }

    /// Chooses by the ticket alone, within a snapshot that the caller holds.
    #[inline]
    fn choose_in_turn(&self, snapshot: &Snapshot, pool: &Pool, node: Option<&Node>) -> Chosen<'_> {
        let Some(view) = snapshot.view(pool) else { return Chosen::NoWorker };
        if view.is_drained {
            return Chosen::Draining;
        }
        let Some((members, cursor)) = Self::slice(view, pool, node) else {
            return Chosen::NoWorker;
        };
        let strict = pool.is_strict();
        let block = if strict { None } else { cursor.block() };
        let ticket = cursor.draw(block);
        match self.first_with_room(members, ticket) {
            Found::Taken { member, word, refused, was_idle } => {
                if !strict {
                    cursor.observe(block, was_idle);
                }
                Self::reserved(snapshot, members.len(), member, word, ticket, refused)
            }
            Found::Full => Chosen::NoCapacity,
            Found::Leaving => Chosen::Draining,
        }
    }

    /// Those who may be asked, and whose turn it is among them. None if there are none.
    #[inline]
    fn slice<'s>(
        view: &'s PoolView,
        pool: &'s Pool,
        node: Option<&Node>,
    ) -> Option<(&'s Roster<Member>, &'s Cursor)> {
        match node {
            None => Some((&view.members, &pool.cursor)),
            Some(node) => view.slice(node).map(|slice| (&slice.members, &*slice.cursor)),
        }
    }

    /// The policies that look at the workers or at the task before they ask.
    #[cold]
    #[inline(never)]
    fn choose_by_load_or_key(
        &self,
        snapshot: &Snapshot,
        pool: &Pool,
        node: Option<&Node>,
        affinity: &[u8],
    ) -> Chosen<'_> {
        let Some(view) = snapshot.view(pool) else { return Chosen::NoWorker };
        if view.is_drained {
            return Chosen::Draining;
        }
        let Some((members, cursor)) = Self::slice(view, pool, node) else {
            return Chosen::NoWorker;
        };
        match pool.policy() {
            Policy::Sticky if !affinity.is_empty() => {
                self.by_affinity(snapshot, members, hash(affinity))
            }
            Policy::LeastLoaded => self.less_loaded(snapshot, members, cursor.draw_strict()),
            _ => self.in_turn(snapshot, members, cursor.draw_strict(), 0),
        }
    }

    /// Asks the less loaded of two that the ticket draws, then the other, then all in turn.
    fn less_loaded(
        &self,
        snapshot: &Snapshot,
        members: &Roster<Member>,
        ticket: u64,
    ) -> Chosen<'_> {
        let (first, second) = two_below(members.len() as u32, mix(self.seed ^ ticket));
        let mut pair = [first, second].map(|at| members.at(at as usize));
        let load = |member: Member| {
            let state = self.slab.word(member.slot).map(Word::peek)?;
            let weight = snapshot.entry(member).map_or(1, |entry| entry.worker.weight);
            let room = u64::from(state.limit()) * u64::from(weight);
            Some((u64::from(state.in_flight()), room))
        };
        if let (Some((a, of_a)), Some((b, of_b))) = (load(pair[0]), load(pair[1]))
            && (b * of_a, b) < (a * of_b, a)
        {
            pair.swap(0, 1);
        }
        for (at, member) in pair.into_iter().enumerate() {
            if let Some(word) = self.slab.word(member.slot)
                && let Reserve::Taken { .. } = word.reserve(member.generation)
            {
                let refused = at as u32;
                return Self::reserved(snapshot, members.len(), member, word, ticket, refused);
            }
        }
        self.in_turn(snapshot, members, ticket, 2)
    }

    /// Asks the eight that rank first for the key, then whoever ranks first of those who look as if
    /// they had room, then all in turn.
    fn by_affinity(&self, snapshot: &Snapshot, members: &Roster<Member>, key: u64) -> Chosen<'_> {
        let rank = |member: Member| {
            let entry = snapshot.entry(member)?;
            // Of equal ranks, which two of one name have, the lower id is first.
            Some((mix(key ^ entry.worker.identity_hash), std::cmp::Reverse(member.worker), member))
        };
        let mut last = None;
        let mut refused = 0;
        while refused < RANKS_ASKED {
            let ranks = members.iter().filter_map(rank).map(|(r, id, m)| ((r, id), m));
            let below = ranks.filter(|(rank, _)| last.is_none_or(|last| *rank < last));
            let Some((rank, member)) = below.max_by_key(|(rank, _)| *rank) else { break };
            last = Some(rank);
            if let Some(word) = self.slab.word(member.slot)
                && let Reserve::Taken { .. } = word.reserve(member.generation)
            {
                return Self::reserved(snapshot, members.len(), member, word, key, refused);
            }
            refused += 1;
        }
        let open = members.iter().filter_map(rank).filter(|(_, _, member)| {
            self.slab.word(member.slot).is_some_and(|word| word.peek().takes(member.generation))
        });
        if let Some((.., member)) = open.max_by_key(|(rank, id, _)| (*rank, *id))
            && let Some(word) = self.slab.word(member.slot)
            && let Reserve::Taken { .. } = word.reserve(member.generation)
        {
            return Self::reserved(snapshot, members.len(), member, word, key, refused);
        }
        self.in_turn(snapshot, members, key, refused)
    }

    /// Asks the workers on the nodes that a task prefers, from a place that its ticket draws among
    /// them all. None if no worker there has room.
    #[cold]
    #[inline(never)]
    fn preferred(&self, snapshot: &Snapshot, pool: &Pool, nodes: &[Node]) -> Option<Chosen<'_>> {
        let view = snapshot.view(pool)?;
        if view.is_drained {
            return None;
        }
        let rosters = || nodes.iter().filter_map(|node| Some(&view.slice(node)?.members));
        let count: usize = rosters().map(Roster::len).sum();
        if count == 0 {
            return None;
        }
        // Drawn and not in turn: tasks of one pool prefer different nodes, and turns of theirs that
        // share a counter would fall into step.
        let ticket = pool.draw_aside();
        let start = (mix(self.seed ^ ticket) % count as u64) as usize;
        for asked in 0..count {
            let mut at = (start + asked) % count;
            let roster = rosters().find(|roster| {
                let is_here = at < roster.len();
                if !is_here {
                    at -= roster.len();
                }
                is_here
            })?;
            let member = roster.at(at);
            if let Some(word) = self.slab.word(member.slot)
                && let Reserve::Taken { .. } = word.reserve(member.generation)
            {
                let asked = asked as u32;
                return Some(Self::reserved(snapshot, count, member, word, ticket, asked));
            }
        }
        None
    }

    fn in_turn(
        &self,
        snapshot: &Snapshot,
        members: &Roster<Member>,
        ticket: u64,
        asked: u32,
    ) -> Chosen<'_> {
        match self.first_with_room(members, ticket) {
            Found::Taken { member, word, refused, .. } => {
                Self::reserved(snapshot, members.len(), member, word, ticket, asked + refused)
            }
            Found::Full => Chosen::NoCapacity,
            Found::Leaving => Chosen::Draining,
        }
    }

    #[inline]
    const fn reserved<'a>(
        snapshot: &Snapshot,
        candidates: usize,
        member: Member,
        word: &'a Word,
        ticket: u64,
        refused: u32,
    ) -> Chosen<'a> {
        let generation = snapshot.generation;
        let candidates = candidates as u32;
        Chosen::Reserved(member, word, Decision { generation, ticket, candidates, refused })
    }

    #[inline]
    fn first_with_room(&self, members: &Roster<Member>, ticket: u64) -> Found<'_> {
        let count = members.len();
        let mut at = (ticket % count.max(1) as u64) as usize;
        let mut full = false;
        for refused in 0..count {
            let member = members.at(at);
            if let Some(word) = self.slab.word(member.slot) {
                match word.reserve(member.generation) {
                    Reserve::Taken { was_idle } => {
                        return Found::Taken { member, word, refused: refused as u32, was_idle };
                    }
                    Reserve::Full => full = true,
                    Reserve::Draining | Reserve::Gone => {}
                }
            }
            at += 1;
            if at == count {
                at = 0;
            }
        }
        if full { Found::Full } else { Found::Leaving }
    }

    /// Gives a unit back for which a pool waits. The pools that wake go to the driver.
    #[cold]
    pub(crate) fn release_late(&self, member: Member, word: &Word) {
        loop {
            let worker = self.load().entry(member).map(|entry| entry.worker.clone());
            match worker {
                Some(worker) => {
                    let mut run = Vec::new();
                    release(word, &worker, 1, &mut run);
                    for pool in run {
                        self.driver.take_over(pool);
                    }
                    return;
                }
                // Gone from the snapshot, so its word is closed and nobody is waited for.
                None if word.give_back() == GiveBack::Done => return,
                None => crate::sync::spin_loop(),
            }
        }
    }
}

enum Found<'a> {
    Taken { member: Member, word: &'a Word, refused: u32, was_idle: bool },
    Full,
    Leaving,
}
