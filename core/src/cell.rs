//! Snapshot cells: one writer replaces a value, readers load it without waiting.
//!
//! [`EpochCell`] is the default and visible to loom down into the reclaimer. [`ArcSwapCell`] is an
//! alternative that loom cannot look into. [`ModelCell`] is the specification: a locked pointer.
//! One conformance suite runs over all three (`tests/cell.rs`).
#![expect(unsafe_code, reason = "EpochCell dereferences a pointer that its pin protects")]

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use crossbeam_epoch as epoch;

use crate::mutant::mutant;
use crate::sync::{Arc, Mutex, Ordering, StdArc};

/// A cell that holds an immutable value and lets one writer replace it.
///
/// # Consistency
///
/// Loads and publishes are linearizable: a load that starts after a publish returned yields that
/// value or a newer one. A value lives until the last guard on it is dropped.
pub trait SnapshotCell<T>: Send + Sync {
    /// Keeps a loaded value alive. It must not cross an await.
    type Guard<'a>: Deref<Target = T>
    where
        Self: 'a;

    /// Creates a cell that holds `value`.
    fn new(value: T) -> Self;

    /// Loads the current value.
    fn load(&self) -> Self::Guard<'_>;

    /// Replaces the value. Callers serialize their publishes.
    fn publish(&self, value: T);

    /// Frees replaced values on which no guard is left, if the cell had put them aside.
    ///
    /// What still has one is left to a later call.
    fn tidy(&self) {}
}

/// Chooses the cell of a registry at compile time.
pub trait CellFamily: fmt::Debug + Send + Sync + 'static {
    /// The cell for a value of type `T`.
    type Cell<T: Send + Sync + 'static>: SnapshotCell<T>;
}

/// Registries over [`EpochCell`].
#[derive(Debug)]
pub struct EpochCells;

impl CellFamily for EpochCells {
    type Cell<T: Send + Sync + 'static> = EpochCell<T>;
}

/// Registries over [`ArcSwapCell`].
#[derive(Debug)]
pub struct ArcSwapCells;

impl CellFamily for ArcSwapCells {
    type Cell<T: Send + Sync + 'static> = ArcSwapCell<T>;
}

/// Registries over [`ModelCell`].
#[derive(Debug)]
pub struct ModelCells;

impl CellFamily for ModelCells {
    type Cell<T: Send + Sync + 'static> = ModelCell<T>;
}

/// A cell over epoch-based reclamation.
///
/// A load pins the thread: one exchange on a line of its own, no shared write.
///
/// Replaced values are freed by the publisher, many at once, and never by a reader. What is
/// deferred to the end of the readers' pins is a mark, not the values: a reader that happens to
/// turn the epoch on lets go of a count and of the reclaimer's own parcel, one for all of a lot.
pub struct EpochCell<T> {
    current: epoch::Atomic<T>,
    replaced: Mutex<Replaced<T>>,
}

/// How many replaced values wait for one turn of the epoch together.
const RETIRED_TOGETHER: usize = if cfg!(slipswitch_loom) { 1 } else { 64 };

/// Values that were in the cell.
struct Replaced<T> {
    /// No mark was deferred for them yet.
    fresh: Values<T>,
    /// Each lot with its mark, whose other half goes when no reader is left at the lot.
    waiting: Vec<(Arc<()>, Values<T>)>,
}

/// Values that are owned here alone. Dropping frees them.
struct Values<T>(Vec<*mut T>);

// SAFETY: values that may be sent, owned by whoever holds their pointers.
unsafe impl<T: Send> Send for Values<T> {}

impl<T> Drop for Values<T> {
    fn drop(&mut self) {
        for value in self.0.drain(..) {
            // SAFETY: the pointer was the cell's own and came out of it once. It is dropped with
            // the cell, which no guard borrows then, or after its lot's mark was let go.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> Replaced<T> {
    fn new() -> Self {
        Self { fresh: Values(Vec::new()), waiting: Vec::new() }
    }

    /// Defers a mark for the values that have none yet.
    fn mark(&mut self) {
        if self.fresh.0.is_empty() {
            return;
        }
        let mark = Arc::new(());
        let theirs = Arc::clone(&mark);
        let pin = epoch::pin();
        // SAFETY: the closure owns what it touches, which may be sent.
        unsafe { pin.defer_unchecked(move || drop(theirs)) };
        pin.flush();
        let fresh = std::mem::replace(&mut self.fresh, Values(Vec::new()));
        self.waiting.push((mark, fresh));
    }

    /// Takes the lots out at which no reader is left.
    fn unread(&mut self) -> Vec<Values<T>> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut unread = Vec::new();
        for (mut mark, values) in waiting {
            // Orders the readers' last looks, which came before their half was let go.
            if Arc::get_mut(&mut mark).is_some() || mutant("L1b") {
                unread.push(values);
            } else {
                self.waiting.push((mark, values));
            }
        }
        unread
    }
}

/// A value loaded from an [`EpochCell`]. The thread stays pinned while it lives.
pub struct EpochGuard<'a, T> {
    value: *const T,
    _pin: epoch::Guard,
    _cell: PhantomData<&'a EpochCell<T>>,
}

impl<T> Deref for EpochGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pointer was loaded under `_pin`, and a value that `publish` replaced is freed
        // only when the mark is gone that waits for every pin that might have seen it. Tested by the
        // conformance suite and by the models of `loom-tests` over this cell.
        unsafe { &*self.value }
    }
}

impl<T: Send + Sync + 'static> SnapshotCell<T> for EpochCell<T> {
    type Guard<'a> = EpochGuard<'a, T>;

    fn new(value: T) -> Self {
        Self { current: epoch::Atomic::new(value), replaced: Mutex::new(Replaced::new()) }
    }

    #[inline]
    fn load(&self) -> EpochGuard<'_, T> {
        let pin = epoch::pin();
        // Acquire [E1]: pairs with the swap in `EpochCell::publish`; all reached through the value.
        let shared = self.current.load(Ordering::Acquire, &pin);
        EpochGuard { value: shared.as_raw(), _pin: pin, _cell: PhantomData }
    }

    fn publish(&self, value: T) {
        let new = epoch::Owned::new(value);
        if mutant("L1a") {
            // SAFETY: a planted fault of the models: the order is missing, the retirement is right.
            // Not pinned yet: a pin has a fence, which would order it.
            let old = self.current.swap(new, Ordering::Relaxed, unsafe { epoch::unprotected() });
            // SAFETY: as below.
            unsafe { epoch::pin().defer_destroy(old) };
            return;
        }
        let pin = epoch::pin();
        // Release [E1]: AcqRel; pairs with the Acquire in `EpochCell::load`.
        let old = self.current.swap(new, Ordering::AcqRel, &pin);
        // It came out of the cell by the swap: no later load returns it, and nobody else retires it.
        let old = old.as_raw().cast_mut();
        drop(pin);
        let fresh = {
            let mut replaced = self.replaced.lock();
            replaced.fresh.0.push(old);
            replaced.fresh.0.len()
        };
        if fresh >= RETIRED_TOGETHER {
            self.tidy();
        }
    }

    fn tidy(&self) {
        self.replaced.lock().mark();
        // Three turns of the epoch let the marks go even if nobody pins again.
        for _ in 0..3 {
            epoch::pin().flush();
        }
        let unread = self.replaced.lock().unread();
        drop(unread);
    }
}

impl<T> Drop for EpochCell<T> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: no guard borrows the cell any more.
        let pin = unsafe { epoch::unprotected() };
        // Relaxed: exclusive access orders it.
        let last = self.current.swap(epoch::Shared::null(), Ordering::Relaxed, pin);
        if !last.is_null() {
            // SAFETY: the pointer was the cell's own, and the cell is gone after this.
            drop(unsafe { last.into_owned() });
        }
        // What was replaced goes with the field.
    }
}

impl<T> fmt::Debug for EpochCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpochCell").finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for EpochGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EpochGuard").field(&**self).finish()
    }
}

/// A cell over `arc_swap`.
#[derive(Debug)]
pub struct ArcSwapCell<T> {
    current: arc_swap::ArcSwap<T>,
}

/// A value loaded from an [`ArcSwapCell`].
#[derive(Debug)]
pub struct ArcSwapGuard<T>(arc_swap::Guard<StdArc<T>>);

impl<T> Deref for ArcSwapGuard<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync + 'static> SnapshotCell<T> for ArcSwapCell<T> {
    type Guard<'a> = ArcSwapGuard<T>;

    fn new(value: T) -> Self {
        Self { current: arc_swap::ArcSwap::from_pointee(value) }
    }

    #[inline]
    fn load(&self) -> ArcSwapGuard<T> {
        ArcSwapGuard(self.current.load())
    }

    fn publish(&self, value: T) {
        self.current.store(StdArc::new(value));
    }
}

/// The specification of a snapshot cell: a pointer behind a lock.
#[derive(Debug)]
pub struct ModelCell<T> {
    current: Mutex<Arc<T>>,
}

/// A value loaded from a [`ModelCell`].
#[derive(Debug)]
pub struct ModelGuard<T>(Arc<T>);

impl<T> Deref for ModelGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync + 'static> SnapshotCell<T> for ModelCell<T> {
    type Guard<'a> = ModelGuard<T>;

    fn new(value: T) -> Self {
        Self { current: Mutex::new(Arc::new(value)) }
    }

    fn load(&self) -> ModelGuard<T> {
        ModelGuard(Arc::clone(&self.current.lock()))
    }

    fn publish(&self, value: T) {
        let new = Arc::new(value);
        let old = std::mem::replace(&mut *self.current.lock(), new);
        drop(old);
    }
}
