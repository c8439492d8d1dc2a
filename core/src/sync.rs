//! The one door to atomics, locks, reference counts and cells.
//!
//! Without a cfg these are std's; under `cfg(slipswitch_loom)` they are loom's, so that the models
//! in `loom-tests` run the shipped source. Nothing else in this crate names those types.

#[cfg(not(slipswitch_loom))]
#[expect(clippy::disallowed_types, reason = "this is the door")]
mod imp {
    use std::sync::atomic;

    pub(crate) type Arc<T> = std::sync::Arc<T>;
    pub(crate) type AtomicPtr<T> = atomic::AtomicPtr<T>;
    pub(crate) type AtomicU32 = atomic::AtomicU32;
    pub(crate) type AtomicU64 = atomic::AtomicU64;

    /// A mutex that a panic does not poison: whoever held it left the data as each step does.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }
    }

    impl<T: ?Sized> Mutex<T> {
        pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }

    /// A cell whose exclusive access is promised by a protocol, not by the type.
    #[derive(Debug, Default)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }

    #[inline]
    pub(crate) fn spin_loop() {
        std::hint::spin_loop();
    }
}

#[cfg(slipswitch_loom)]
mod imp {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }

    pub(crate) fn spin_loop() {
        loom::thread::yield_now();
    }
}

#[expect(clippy::disallowed_types, reason = "this is the door")]
mod unseen {
    /// A reference count that orders nothing of ours: loom need not see it.
    pub(crate) type StdArc<T> = std::sync::Arc<T>;
    /// Written once under the publisher's lock and reached only through a published snapshot, or
    /// written by the one winner of a step that orders it.
    pub(crate) type OnceLock<T> = std::sync::OnceLock<T>;
}

pub(crate) use imp::*;
pub(crate) use std::sync::atomic::Ordering;
pub(crate) use unseen::{OnceLock, StdArc};
