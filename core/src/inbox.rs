//! A queue with many producers that is taken whole, and whose gate can be closed.
//!
//! The queue is one word: the newest node, or null, or a mark that says *closed*. A push is a
//! compare-exchange on it, so a push and a close have one order: a push that lost against the
//! close fails and hands its value back, and a push that won is in what the close returns. Nothing
//! lies between. Taking everything swaps the word, which also keeps the classic problem of a
//! reused node away: no node is ever popped alone.
//!
//! A push is lock-free, taking and closing are wait-free apart from undoing the order.
#![expect(unsafe_code, reason = "nodes are owned through a raw pointer in the head word")]

use std::fmt;
use std::ptr;

use crate::mutant::mutant;
use crate::sync::{AtomicPtr, Ordering, UnsafeCell};

struct Node<T> {
    next: UnsafeCell<*mut Self>,
    value: T,
}

/// A closable queue of many producers, taken whole.
pub struct Inbox<T> {
    head: AtomicPtr<Node<T>>,
}

/// What a push that succeeded found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The inbox was empty: its owner may be asleep and must be woken.
    First,
    /// Something was there already: whoever put it there wakes the owner.
    Behind,
}

fn closed<T>() -> *mut Node<T> {
    ptr::without_provenance_mut(1)
}

// SAFETY: a node moves from the pushing to the taking thread whole; nothing is shared but the
// head word.
unsafe impl<T: Send> Send for Inbox<T> {}
// SAFETY: as above; no method hands out a reference to a value.
unsafe impl<T: Send> Sync for Inbox<T> {}

impl<T> Inbox<T> {
    /// Creates an open, empty inbox.
    #[must_use]
    pub fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Appends a value.
    ///
    /// # Errors
    ///
    /// Hands the value back if the inbox is closed.
    pub fn push(&self, value: T) -> Result<Pushed, T> {
        // Acquire [E2]: pairs with `Inbox::close`, for the caller that finds it closed.
        let mut head = self.head.load(Ordering::Acquire);
        if head == closed() {
            return Err(value);
        }
        let node = Box::into_raw(Box::new(Node { next: UnsafeCell::new(ptr::null_mut()), value }));
        let order = if mutant("L10a") { Ordering::Relaxed } else { Ordering::Release };
        loop {
            if head == closed() {
                // SAFETY: the node was made above and no other thread has seen it.
                return Err(unsafe { Box::from_raw(node) }.value);
            }
            // SAFETY: the node is still this thread's own.
            let link = |next: *mut *mut Node<T>| unsafe { *next = head };
            // SAFETY: `node` came from a box above and is not freed before it was pushed.
            unsafe { &*node }.next.with_mut(link);
            // Release [E3]: pairs with the swap in `Inbox::take` and `Inbox::close`; the value.
            match self.head.compare_exchange(head, node, order, Ordering::Acquire) {
                Ok(_) if head.is_null() => return Ok(Pushed::First),
                Ok(_) => return Ok(Pushed::Behind),
                Err(now) => head = now,
            }
        }
    }

    /// Takes everything that is there, oldest first.
    pub fn take(&self) -> Batch<T> {
        // Relaxed: a look that saves the exchange; a push in between wakes its owner again.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head.is_null() || head == closed() {
                return Batch { next: ptr::null_mut() };
            }
            // Acquire [E3]: pairs with the Release in `Inbox::push`; the values.
            let swap = self.head.compare_exchange(
                head,
                ptr::null_mut(),
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match swap {
                Ok(newest) => return Batch::oldest_first(newest),
                Err(now) => head = now,
            }
        }
    }

    /// Closes the gate and takes everything that was pushed before.
    ///
    /// No push succeeds afterwards. Closing twice takes nothing the second time.
    pub fn close(&self) -> Batch<T> {
        if mutant("L10b-gate") {
            return self.take();
        }
        // AcqRel [E2] [E3]: pairs with the Acquire loads and Release of `Inbox::push`; values one
        // way, everything before the close the other way.
        let newest = self.head.swap(closed(), Ordering::AcqRel);
        if newest == closed() {
            return Batch { next: ptr::null_mut() };
        }
        Batch::oldest_first(newest)
    }

    /// Opens a closed inbox again. Does nothing to an open one.
    pub fn reopen(&self) {
        // Release [E2]: AcqRel; pairs with the Acquire of `Inbox::push`: all that was done while
        // the gate was closed.
        self.head
            .compare_exchange(closed(), ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed)
            .ok();
    }

    /// Says whether nothing is waiting. True for a closed inbox.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Relaxed: a hint; whoever acts on it takes.
        let head = self.head.load(Ordering::Relaxed);
        head.is_null() || head == closed()
    }
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        drop(self.close());
    }
}

impl<T> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("empty", &self.is_empty()).finish_non_exhaustive()
    }
}

/// What was taken from an [`Inbox`], oldest first. Dropping it drops the rest.
pub struct Batch<T> {
    next: *mut Node<T>,
}

// SAFETY: the batch owns its nodes.
unsafe impl<T: Send> Send for Batch<T> {}
// SAFETY: a shared batch shows nothing but whether it is empty.
unsafe impl<T: Send> Sync for Batch<T> {}

impl<T> Batch<T> {
    fn oldest_first(newest: *mut Node<T>) -> Self {
        let mut behind = ptr::null_mut();
        let mut node = newest;
        while !node.is_null() {
            // SAFETY: the chain was taken whole, so this thread owns every node in it.
            let next = unsafe { &*node }.next.with_mut(|slot| {
                // SAFETY: exclusive, as above.
                unsafe { ptr::replace(slot, behind) }
            });
            behind = node;
            node = next;
        }
        Self { next: behind }
    }

    /// Says whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next.is_null()
    }
}

impl<T> Iterator for Batch<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: the batch owns the node and forgets it with the next line.
        let node = unsafe { Box::from_raw(self.next) };
        // SAFETY: exclusive: the node is owned.
        self.next = node.next.with(|next| unsafe { *next });
        Some(node.value)
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        for value in self.by_ref() {
            drop(value);
        }
    }
}

impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("empty", &self.is_empty()).finish_non_exhaustive()
    }
}
