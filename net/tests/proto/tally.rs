//! Counts what the calling thread allocates.
#![expect(unsafe_code, reason = "a global allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

struct Tally;

// SAFETY: everything is the system allocator's; counting neither allocates nor fails.
unsafe impl GlobalAlloc for Tally {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size() as u64)).ok();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static TALLY: Tally = Tally;

/// How many bytes this thread has allocated.
pub(crate) fn allocated() -> u64 {
    BYTES.get()
}
