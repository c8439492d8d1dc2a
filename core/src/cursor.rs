//! The rotation of a slice: tickets, one by one while workers are idle, in blocks under load.
//!
//! Two threads that draw single tickets move the cursor's cache line, and the lines of the workers
//! they take turns on, with every selection. A thread that holds a block of consecutive tickets
//! touches the cursor once in 32. But a block at low load would send two tasks to one worker while
//! another idles, so the block follows the load: a selection that found its worker idle draws
//! single tickets, one that found work in flight doubles the block up to 32. A remainder is never
//! dropped: it is parked while the slice is idle and used up when load returns, so that over the
//! life of a slice every ticket is drawn.

use crossbeam_utils::CachePadded;

use crate::lane::Lane;
use crate::sync::{AtomicU64, OnceLock, Ordering};

/// The most consecutive tickets a thread holds.
const BLOCK_MAX: u64 = if cfg!(slipswitch_loom) { 2 } else { 32 };
/// Threads beyond this number draw single tickets.
const LANES: usize = if cfg!(slipswitch_loom) { 2 } else { 16 };

/// The rotation counter of one slice, shared by the successive views of it.
#[derive(Debug)]
pub(crate) struct Cursor {
    next: CachePadded<AtomicU64>,
    blocks: OnceLock<Box<[CachePadded<Block>]>>,
}

/// What one lane holds. Only the lane's own thread touches it.
#[derive(Debug)]
pub(crate) struct Block {
    next: AtomicU64,
    left: AtomicU64,
    /// How many tickets the next block takes; 0 means that the slice was last found idle.
    size: AtomicU64,
}

impl Cursor {
    pub(crate) fn new() -> Self {
        Self::starting_at(0)
    }

    pub(crate) fn starting_at(ticket: u64) -> Self {
        Self { next: CachePadded::new(AtomicU64::new(ticket)), blocks: OnceLock::new() }
    }

    /// Draws a single ticket, in order among all threads.
    #[inline]
    pub(crate) fn draw_strict(&self) -> u64 {
        // Relaxed: a cursor; any ticket selects a member of the caller's own view.
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// What the calling thread holds, once the slice has seen load.
    #[inline]
    pub(crate) fn block(&self) -> Option<&Block> {
        let blocks = self.blocks.get()?;
        blocks.get(Lane::current().index()).map(|block| &**block)
    }

    /// Draws a ticket: from the thread's block under load, else a single one.
    #[inline]
    pub(crate) fn draw(&self, block: Option<&Block>) -> u64 {
        let Some(block) = block else { return self.draw_strict() };
        // Relaxed: the block is this thread's own, here and below.
        let size = block.size.load(Ordering::Relaxed);
        if size == 0 {
            return self.draw_strict();
        }
        let left = block.left.load(Ordering::Relaxed);
        if left > 0 {
            let ticket = block.next.load(Ordering::Relaxed);
            block.next.store(ticket.wrapping_add(1), Ordering::Relaxed);
            block.left.store(left - 1, Ordering::Relaxed);
            return ticket;
        }
        let ticket = self.next.fetch_add(size, Ordering::Relaxed);
        block.next.store(ticket.wrapping_add(1), Ordering::Relaxed);
        block.left.store(size - 1, Ordering::Relaxed);
        block.size.store((size * 2).min(BLOCK_MAX), Ordering::Relaxed);
        ticket
    }

    /// Tells the cursor what the ticket's selection found.
    #[inline]
    pub(crate) fn observe(&self, block: Option<&Block>, was_idle: bool) {
        let Some(block) = block else {
            if !was_idle && self.blocks.get().is_none() {
                self.make_blocks();
            }
            return;
        };
        // Relaxed: the block is this thread's own.
        let size = block.size.load(Ordering::Relaxed);
        if was_idle {
            if size != 0 {
                block.size.store(0, Ordering::Relaxed);
            }
        } else if size == 0 {
            block.size.store(2, Ordering::Relaxed);
        }
    }

    #[cold]
    fn make_blocks(&self) {
        self.blocks.get_or_init(|| {
            (0..LANES)
                .map(|_| {
                    CachePadded::new(Block {
                        next: AtomicU64::new(0),
                        left: AtomicU64::new(0),
                        size: AtomicU64::new(0),
                    })
                })
                .collect()
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn draw(cursor: &Cursor, was_idle: bool) -> u64 {
        let block = cursor.block();
        let ticket = cursor.draw(block);
        cursor.observe(block, was_idle);
        ticket
    }

    // bug: B11
    #[test]
    fn cursor_wrap_pools_1_to_17() {
        for n in 1..=17u64 {
            let cursor = Cursor::starting_at(u64::MAX - 3 * n);
            let mut last = None;
            let mut jumps = 0;
            let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
            for _ in 0..8 * n {
                let at = cursor.draw_strict() % n;
                *counts.entry(at).or_default() += 1;
                let follows = last.is_none_or(|last: u64| (last + 1) % n == at);
                jumps += u64::from(!follows);
                last = Some(at);
            }
            // The wrap counts as one change: at most one step out of turn, nobody left out.
            assert!(jumps <= 1, "{n}: {jumps} jumps");
            let (least, most) = (counts.values().min(), counts.values().max());
            assert_eq!(counts.len() as u64, n);
            assert!(most.copied().unwrap_or(0) - least.copied().unwrap_or(0) <= 2, "{counts:?}");
        }
    }

    #[test]
    fn cursor_near_max() {
        let cursor = Cursor::starting_at(u64::MAX - 40);
        for _ in 0..200 {
            draw(&cursor, false);
        }
    }

    #[test]
    fn a_block_follows_the_load_and_keeps_its_remainder() {
        let cursor = Cursor::new();
        let draw = |was_idle| draw(&cursor, was_idle);
        assert_eq!((0..3).map(|_| draw(true)).collect::<Vec<_>>(), [0, 1, 2]);
        // Load: after the first busy one come blocks of 2, 4, 8 and so on.
        assert_eq!((0..7).map(|_| draw(false)).collect::<Vec<_>>(), [3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(draw(false), 10);
        // 11 is drawn from a block of 8 and finds its worker idle: the other seven are parked.
        assert_eq!(draw(true), 11);
        assert_eq!((0..2).map(|_| draw(true)).collect::<Vec<_>>(), [19, 20]);
        // Load again: a single one, then the remainder, then a new block.
        assert_eq!(draw(false), 21);
        assert_eq!((0..7).map(|_| draw(false)).collect::<Vec<_>>(), [12, 13, 14, 15, 16, 17, 18]);
        assert_eq!(draw(false), 22);
    }

    #[test]
    fn threads_with_blocks_draw_every_ticket_once() {
        let cursor = Cursor::new();
        let drawn: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| (0..10_000).map(|_| draw(&cursor, false)).collect::<Vec<_>>())
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        let mut sorted = drawn;
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 40_000);
        // What is missing below the highest is what four unfinished blocks still hold.
        assert!(sorted.last().copied().unwrap_or(0) < 40_000 + 4 * BLOCK_MAX);
    }
}
