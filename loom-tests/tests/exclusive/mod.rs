//! What only one thread at a time may touch.
#![cfg_attr(
    slipswitch_loom,
    expect(unsafe_code, reason = "the cell is shared so that loom can see who touches it")
)]

/// Something that one thread at a time may touch, in an order that all threads agree on.
///
/// loom fails an execution in which two touches are not ordered by what the model synchronizes
/// with. Without loom two touches at the same moment fail.
#[derive(Debug, Default)]
pub(crate) struct Exclusive(imp::Cell);

impl Exclusive {
    /// Creates one.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Touches it as its only owner.
    pub(crate) fn touch(&self) {
        self.0.touch();
    }

    /// Looks at it, as others may at the same time.
    pub(crate) fn look(&self) {
        self.0.look();
    }
}

#[cfg(slipswitch_loom)]
mod imp {
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
