//! Synchronization for models: loom's under `cfg(slipswitch_loom)`, else std's.

#[cfg(slipswitch_loom)]
pub use loom::sync::{Arc, Mutex};
#[cfg(not(slipswitch_loom))]
pub use std::sync::{Arc, Mutex};

pub mod atomic {
    //! Atomic integers that the model is about.

    #[cfg(slipswitch_loom)]
    pub use loom::sync::atomic::{AtomicU64, AtomicUsize};
    pub use std::sync::atomic::Ordering;
    #[cfg(not(slipswitch_loom))]
    pub use std::sync::atomic::{AtomicU64, AtomicUsize};
}

/// What is counted beside the model: loom does not see it.
pub mod beside {
    /// A count of references that is no part of the model.
    pub type Shared<T> = std::sync::Arc<T>;
    /// A number that is no part of the model.
    pub type Count = std::sync::atomic::AtomicUsize;
    pub use std::sync::atomic::Ordering;
}

/// Something that one thread at a time may touch, in an order that all threads agree on.
///
/// loom fails an execution in which two touches are not ordered by what the model synchronizes
/// with. Without loom two touches at the same moment fail.
#[derive(Debug, Default)]
pub struct Exclusive(imp::Cell);

impl Exclusive {
    /// Creates one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Touches it as its only owner.
    pub fn touch(&self) {
        self.0.touch();
    }

    /// Looks at it, as others may at the same time.
    pub fn look(&self) {
        self.0.look();
    }
}

#[cfg(slipswitch_loom)]
mod imp {
    #![expect(unsafe_code, reason = "the cell is shared so that loom can see who touches it")]

    #[derive(Debug, Default)]
    pub(super) struct Cell(loom::cell::UnsafeCell<()>);

    // SAFETY: there is nothing in it: only loom's books about who touches it.
    unsafe impl Sync for Cell {}

    impl Cell {
        pub(super) fn touch(&self) {
            self.0.with_mut(|_| ());
        }

        pub(super) fn look(&self) {
            self.0.with(|_| ());
        }
    }
}

#[cfg(not(slipswitch_loom))]
mod imp {
    #[derive(Debug, Default)]
    pub(super) struct Cell(std::sync::RwLock<()>);

    impl Cell {
        pub(super) fn touch(&self) {
            assert!(self.0.try_write().is_ok(), "two threads touch what one of them owns");
        }

        pub(super) fn look(&self) {
            assert!(self.0.try_read().is_ok(), "a thread looks at what another changes");
        }
    }
}
