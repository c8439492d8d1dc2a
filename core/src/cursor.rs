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
struct Block {
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

    /// Draws a ticket: from this lane's block under load, else a single one.
    #[inline]
    pub(crate) fn draw(&self, lane: Lane) -> u64 {
        let Some(block) = self.blocks.get().and_then(|blocks| blocks.get(lane.index())) else {
            return self.draw_strict();
        };
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
    pub(crate) fn observe(&self, lane: Lane, was_idle: bool) {
        let Some(blocks) = self.blocks.get() else {
            if !was_idle {
                self.make_blocks();
            }
            return;
        };
        let Some(block) = blocks.get(lane.index()) else { return };
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
