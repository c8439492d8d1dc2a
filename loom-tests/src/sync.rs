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
