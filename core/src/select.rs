//! Choosing a worker and reserving one of its credits, in one step.
//!
//! A selection reads one snapshot and draws one ticket. From the ticket's place it goes round the
//! slice and takes the first worker whose state word gives it a credit; that compare-exchange is
//! the commit point. It takes no lock and allocates nothing, and through a route it hashes no
//! text. It is lock-free; what bounds it is the number of members of the slice.

use std::fmt;

use crate::cell::CellFamily;
use crate::credit::{GiveBack, Reserve, Word};
use crate::id::{Generation, WorkerId};
use crate::name::{Node, PoolKey};
use crate::pool::Pool;
use crate::registry::Registry;
use crate::snapshot::Snapshot;
use crate::sync::StdArc;
use crate::table::Roster;
use crate::worker::{Member, release};

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
    /// The ticket that was drawn.
    pub ticket: u64,
    /// How many workers were candidates.
    pub candidates: u32,
    /// How many of them, in ring order from the ticket's place, refused before one took it.
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
        let snapshot = self.load();
        match self.choose(&snapshot, pool, node) {
            Chosen::Reserved(member, word, decision) => {
                Selection::Reserved(Reservation { registry: self, word, member, decision })
            }
            Chosen::NoWorker => Selection::NoWorker,
            Chosen::NoCapacity => Selection::NoCapacity,
            Chosen::Draining => Selection::Draining,
        }
    }

    /// Chooses within a snapshot that the caller holds.
    #[inline]
    pub(crate) fn choose(
        &self,
        snapshot: &Snapshot,
        pool: &Pool,
        node: Option<&Node>,
    ) -> Chosen<'_> {
        let Some(view) = snapshot.view(pool) else { return Chosen::NoWorker };
        if view.is_drained {
            return Chosen::Draining;
        }
        let (members, cursor) = match node {
            None => (&view.members, &pool.cursor),
            Some(node) => match view.slice(node) {
                Some(slice) => (&slice.members, &*slice.cursor),
                None => return Chosen::NoWorker,
            },
        };
        let strict = pool.is_strict();
        let block = if strict { None } else { cursor.block() };
        let ticket = cursor.draw(block);
        match self.first_with_room(members, ticket) {
            Found::Taken { member, word, refused, was_idle } => {
                if !strict {
                    cursor.observe(block, was_idle);
                }
                let decision = Decision {
                    generation: snapshot.generation,
                    ticket,
                    candidates: members.len() as u32,
                    refused,
                };
                Chosen::Reserved(member, word, decision)
            }
            Found::Full => Chosen::NoCapacity,
            Found::Leaving => Chosen::Draining,
        }
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
