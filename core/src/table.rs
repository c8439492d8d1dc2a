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

const CHUNK_BITS: usize = 9;
const CHUNK: usize = 1 << CHUNK_BITS;

/// A persistent, ordered list in chunks of 512.
#[derive(Clone, Debug)]
pub(crate) struct Roster<T> {
    len: usize,
    chunks: StdArc<[StdArc<[T]>]>,
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
        self.chunks[index >> CHUNK_BITS][index & (CHUNK - 1)]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.iter().copied())
    }

    /// Returns the list with `added` inserted and `removed` left out, in order.
    ///
    /// Chunks before the first change are shared. `added` and `removed` are sorted.
    pub(crate) fn changed(&self, added: &[T], removed: &[T]) -> Self {
        let first = added.iter().chain(removed).min().copied();
        let Some(first) = first else { return self.clone() };
        let kept = self.chunks.partition_point(|chunk| {
            chunk.len() == CHUNK && chunk.last().is_some_and(|last| *last < first)
        });
        let mut chunks: Vec<StdArc<[T]>> = self.chunks[..kept].to_vec();
        let mut tail = Vec::with_capacity(CHUNK);
        let mut added = added.iter().copied().peekable();
        let mut removed = removed.iter().copied().peekable();
        let mut push = |value: T| {
            tail.push(value);
            if tail.len() == CHUNK {
                chunks.push(tail.as_slice().into());
                tail.clear();
            }
        };
        for old in self.chunks[kept..].iter().flat_map(|chunk| chunk.iter().copied()) {
            while let Some(new) = added.next_if(|new| *new < old) {
                push(new);
            }
            added.next_if_eq(&old);
            while removed.next_if(|gone| *gone < old).is_some() {}
            if removed.next_if_eq(&old).is_none() {
                push(old);
            }
        }
        added.for_each(&mut push);
        if !tail.is_empty() {
            chunks.push(tail.as_slice().into());
        }
        let len = chunks.iter().map(|chunk| chunk.len()).sum();
        Self { len, chunks: chunks.into() }
    }
}
