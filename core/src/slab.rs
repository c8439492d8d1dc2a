//! The slab of state words: a slot keeps its place for the life of the engine.
//!
//! Chunks double in size and are never moved or freed, so a reference to a word stays valid while
//! old snapshots still name it. A chunk is created by the publisher before a snapshot names one of
//! its slots; the snapshot's publication orders the two.

use crossbeam_utils::CachePadded;

use crate::credit::{State, Word};
use crate::sync::OnceLock;

const FIRST_BITS: u32 = if cfg!(slipswitch_loom) { 1 } else { 6 };
const CHUNKS: usize = 22;

type Chunk = Box<[CachePadded<Word>]>;

/// Slots of state words, growing and never shrinking.
#[derive(Debug)]
pub(crate) struct Slab {
    chunks: [OnceLock<Chunk>; CHUNKS],
}

#[inline]
fn place(slot: u32) -> (usize, usize) {
    // Chunk k holds the slots from 2^(k+F) - 2^F on, 2^(k+F) of them.
    let shifted = slot as usize + (1 << FIRST_BITS);
    let high = usize::BITS - 1 - shifted.leading_zeros();
    ((high - FIRST_BITS) as usize, shifted - (1 << high))
}

impl Slab {
    pub(crate) fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// The number of slots a slab can hold.
    pub(crate) const fn capacity() -> u32 {
        ((1 << (FIRST_BITS + CHUNKS as u32)) - (1 << FIRST_BITS)) as u32
    }

    /// Returns the word of a slot that was made.
    #[inline]
    pub(crate) fn word(&self, slot: u32) -> Option<&Word> {
        let (chunk, at) = place(slot);
        self.chunks.get(chunk)?.get()?.get(at).map(|word| &**word)
    }

    /// Makes sure that the slot exists. Called by the publisher alone.
    pub(crate) fn make(&self, slot: u32) {
        let (chunk, _) = place(slot);
        self.chunks[chunk].get_or_init(|| {
            (0..1usize << (chunk as u32 + FIRST_BITS))
                .map(|_| CachePadded::new(Word::new(State::UNUSED)))
                .collect()
        });
    }
}
