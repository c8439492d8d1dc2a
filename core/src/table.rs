//! Persistent tables: a copy shares all that it does not change.
//!
//! [`Table`] maps small integers to values: a trie with 32 branches a level, so that a publish
//! copies one path. [`Roster`] is the ordered list of a slice's members in chunks, so that adding
//! a worker to a hundred thousand copies one chunk and a list of a few hundred pointers.

use crate::sync::StdArc;

const BITS: u32 = 5;
const FAN: usize = 1 << BITS;

/// A persistent map from `u32` to `T`.
#[derive(Debug)]
pub(crate) struct Table<T> {
    /// How many levels lie above the leaves.
    height: u32,
    root: Option<StdArc<Branch<T>>>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "always behind a count; both are arrays of 32")]
enum Branch<T> {
    Inner([Option<StdArc<Self>>; FAN]),
    Leaf([Option<T>; FAN]),
}

impl<T: Clone> Clone for Branch<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Inner(children) => Self::Inner(children.clone()),
            Self::Leaf(values) => Self::Leaf(values.clone()),
        }
    }
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self { height: self.height, root: self.root.clone() }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { height: 0, root: None }
    }
}

impl<T> Table<T> {
    /// Returns the value at `index`.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let mut level = self.height;
        if u64::from(index) >> (BITS * (level + 1)) != 0 {
            return None;
        }
        let mut branch = self.root.as_deref()?;
        loop {
            match branch {
                Branch::Leaf(values) => return values[index as usize % FAN].as_ref(),
                Branch::Inner(children) => {
                    let child = (index >> (BITS * level)) as usize % FAN;
                    branch = children[child].as_deref()?;
                    level -= 1;
                }
            }
        }
    }

    /// Visits every value in the order of its index.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&T)) {
        fn walk<T>(branch: &Branch<T>, visit: &mut impl FnMut(&T)) {
            match branch {
                Branch::Leaf(values) => values.iter().flatten().for_each(visit),
                Branch::Inner(children) => {
                    for child in children.iter().flatten() {
                        walk(child, visit);
                    }
                }
            }
        }
        if let Some(root) = &self.root {
            walk(root, &mut visit);
        }
    }
}

impl<T: Clone> Table<T> {
    /// Puts `value` at `index`, or clears it. Parts that other copies share are copied first.
    pub(crate) fn set(&mut self, index: u32, value: Option<T>) {
        if self.root.is_none() {
            if value.is_none() {
                return;
            }
            self.root = Some(StdArc::new(Branch::Leaf([const { None }; FAN])));
            self.height = 0;
        }
        while u64::from(index) >> (BITS * (self.height + 1)) != 0 {
            if value.is_none() {
                return;
            }
            let mut children = [const { None }; FAN];
            children[0] = self.root.take();
            self.root = Some(StdArc::new(Branch::Inner(children)));
            self.height += 1;
        }
        let mut level = self.height;
        let mut slot = &mut self.root;
        loop {
            let branch = slot.get_or_insert_with(|| {
                StdArc::new(if level == 0 {
                    Branch::Leaf([const { None }; FAN])
                } else {
                    Branch::Inner([const { None }; FAN])
                })
            });
            match StdArc::make_mut(branch) {
                Branch::Leaf(values) => {
                    values[index as usize % FAN] = value;
                    return;
                }
                Branch::Inner(children) => {
                    slot = &mut children[(index >> (BITS * level)) as usize % FAN];
                    level -= 1;
                }
            }
        }
    }
}

/// The most members of a chunk.
const CHUNK: usize = 512;

/// A persistent, ordered list in chunks of at most 512.
#[derive(Clone, Debug)]
pub(crate) struct Roster<T> {
    len: usize,
    chunks: StdArc<[Chunk<T>]>,
}

#[derive(Debug)]
struct Chunk<T> {
    /// How many members lie before it.
    start: usize,
    members: StdArc<[T]>,
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self { len: 0, chunks: StdArc::new([]) }
    }
}

impl<T: Copy + Ord> Roster<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the member at `index`, which must be below [`Roster::len`].
    #[inline]
    pub(crate) fn at(&self, index: usize) -> T {
        if let [only] = &*self.chunks {
            return only.members[index];
        }
        let after = self.chunks.partition_point(|chunk| chunk.start <= index);
        let chunk = &self.chunks[after - 1];
        chunk.members[index - chunk.start]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.members.iter().copied())
    }

    /// Returns the list with `added` put in and `removed` left out, in order. Both are sorted.
    ///
    /// Chunks without a change are shared: the cost is that of the chunks that change, and of the
    /// list of chunks.
    pub(crate) fn changed(&self, mut added: &[T], mut removed: &[T]) -> Self {
        let Some(first) = added.first().into_iter().chain(removed.first()).min() else {
            return self.clone();
        };
        // The chunk in which the first change lies, or the last one for what comes behind it.
        let before = |chunk: &Chunk<T>| chunk.members.last().is_some_and(|last| last < first);
        let kept = self.chunks.partition_point(before).min(self.chunks.len().saturating_sub(1));
        let mut build = Build::with(&self.chunks[..kept]);
        for (at, chunk) in self.chunks.iter().enumerate().skip(kept) {
            let next = self.chunks.get(at + 1).and_then(|next| next.members.first());
            let count = |change: &[T]| {
                next.map_or(change.len(), |next| change.partition_point(|one| one < next))
            };
            let (added_here, added_later) = added.split_at(count(added));
            let (removed_here, removed_later) = removed.split_at(count(removed));
            (added, removed) = (added_later, removed_later);
            if added_here.is_empty() && removed_here.is_empty() {
                build.share(&chunk.members);
            } else {
                build.push(merged(&chunk.members, added_here, removed_here));
            }
        }
        if self.chunks.is_empty() {
            build.push(merged(&[], added, removed));
        }
        Self { len: build.len, chunks: build.chunks.into() }
    }
}

/// `old` and `added` in order, each once, without `removed`. Copies the runs between changes.
fn merged<T: Copy + Ord>(mut old: &[T], mut added: &[T], mut removed: &[T]) -> Vec<T> {
    let mut members = Vec::with_capacity(old.len() + added.len());
    while let Some(next) = added.first().into_iter().chain(removed.first()).min().copied() {
        let (run, rest) = old.split_at(old.partition_point(|member| *member < next));
        members.extend_from_slice(run);
        let was_there = rest.first() == Some(&next);
        old = if was_there { &rest[1..] } else { rest };
        let is_added = added.first() == Some(&next);
        let is_removed = removed.first() == Some(&next);
        if (was_there || is_added) && !is_removed {
            members.push(next);
        }
        added = if is_added { &added[1..] } else { added };
        removed = if is_removed { &removed[1..] } else { removed };
    }
    members.extend_from_slice(old);
    members
}

struct Build<T> {
    len: usize,
    chunks: Vec<Chunk<T>>,
}

impl<T: Copy> Build<T> {
    /// Begins with chunks that are shared as they are.
    fn with(chunks: &[Chunk<T>]) -> Self {
        let len = chunks.last().map_or(0, |last| last.start + last.members.len());
        let mut all = Vec::with_capacity(chunks.len() + 2);
        all.extend(
            chunks
                .iter()
                .map(|chunk| Chunk { start: chunk.start, members: StdArc::clone(&chunk.members) }),
        );
        Self { len, chunks: all }
    }

    fn share(&mut self, members: &StdArc<[T]>) {
        self.chunks.push(Chunk { start: self.len, members: StdArc::clone(members) });
        self.len += members.len();
    }

    /// Adds a run that changed: cut if it is too long, put to its neighbour if it is short.
    fn push(&mut self, mut members: Vec<T>) {
        if let Some(last) = self.chunks.last()
            && members.len() < CHUNK / 4
            && last.members.len() + members.len() <= CHUNK
        {
            let mut joined = last.members.to_vec();
            joined.append(&mut members);
            self.len = last.start;
            self.chunks.pop();
            members = joined;
        }
        for piece in members.chunks(CHUNK) {
            self.share(&piece.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn dice(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        }
    }

    #[test]
    fn a_roster_is_a_sorted_set() {
        for seed in 1..=20 {
            let mut dice = dice(seed);
            let mut model = BTreeSet::new();
            let mut roster: Roster<usize> = Roster::default();
            for round in 0..300 {
                let reach = [10, 1_000, 5_000][dice(3)];
                let shrinks = round > 150 && dice(2) == 0;
                let added: BTreeSet<usize> =
                    (0..dice(if shrinks { 2 } else { 40 })).map(|_| dice(reach)).collect();
                let removed: BTreeSet<usize> =
                    (0..dice(if shrinks { 400 } else { 20 })).map(|_| dice(reach)).collect();
                // What is in both is left out.
                model.extend(&added);
                model.retain(|member| !removed.contains(member));
                let sorted = |set: BTreeSet<usize>| set.into_iter().collect::<Vec<_>>();
                let before = roster.clone();
                let old: Vec<usize> = before.iter().collect();
                roster = roster.changed(&sorted(added), &sorted(removed));
                assert!(roster.iter().eq(model.iter().copied()));
                assert_eq!(roster.len(), model.len());
                for (index, member) in model.iter().enumerate() {
                    assert_eq!(roster.at(index), *member);
                }
                // The old one is as it was.
                assert!(before.iter().eq(old.iter().copied()));
            }
            let all: Vec<usize> = model.into_iter().collect();
            let empty = roster.changed(&[], &all);
            assert_eq!((empty.len(), empty.iter().next()), (0, None));
        }
    }

    #[test]
    fn a_change_shares_all_other_chunks() {
        let members: Vec<usize> = (0..100_000).collect();
        let roster = Roster::default().changed(&members, &[]);
        for removed in [0, 50_000, 99_999] {
            let changed = roster.changed(&[], &[removed]);
            let old: BTreeSet<_> = roster.chunks.iter().map(|c| c.members.as_ptr()).collect();
            let new = changed.chunks.iter().filter(|c| !old.contains(&c.members.as_ptr()));
            assert!(new.count() <= 2);
        }
    }

    #[test]
    fn emptied_from_the_front_it_has_no_small_chunks() {
        let members: Vec<usize> = (0..20_000).collect();
        let mut roster = Roster::default().changed(&members, &[]);
        for member in 0..20_000 {
            // Two of three leave, everywhere.
            if member % 3 != 0 {
                roster = roster.changed(&[], &[member]);
            }
        }
        assert!(roster.chunks.len() <= 2 * (roster.len() / (CHUNK / 4)));
    }

    #[test]
    fn a_table_is_a_map() {
        for seed in 1..=20 {
            let mut dice = dice(seed);
            let mut model: BTreeMap<u32, usize> = BTreeMap::new();
            let mut table: Table<usize> = Table::default();
            for _ in 0..2_000 {
                let reach = [40, 2_000, 100_000][dice(3)];
                let index = dice(reach) as u32;
                let value = (dice(4) > 0).then(|| dice(1_000));
                let before = table.clone();
                let was = before.get(index).copied();
                table.set(index, value);
                match value {
                    Some(value) => drop(model.insert(index, value)),
                    None => drop(model.remove(&index)),
                }
                assert_eq!(table.get(index), model.get(&index));
                assert_eq!(before.get(index).copied(), was);
            }
            let mut listed = Vec::new();
            table.for_each(|value| listed.push(*value));
            assert!(listed.iter().eq(model.values()));
            assert!((0..3_000).all(|index| table.get(index) == model.get(&index)));
        }
    }
}
