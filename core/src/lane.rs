//! A small number for each running thread, its own as long as it runs.
//!
//! Per-thread state inside shared structures (blocks of tickets) is indexed by it, so such state
//! needs no lock and no read-modify-write. Numbers are handed on when a thread ends; the lock of
//! the free list orders its last use before the next.

use std::cell::OnceCell;
use std::sync::PoisonError;

/// A thread's lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane(usize);

#[expect(clippy::disallowed_types, reason = "loom has no thread exits to model here")]
type Free = std::sync::Mutex<(usize, Vec<usize>)>;

static FREE: Free = Free::new((0, Vec::new()));

struct Owned(usize);

impl Drop for Owned {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).1.push(self.0);
    }
}

thread_local! {
    static OWN: OnceCell<Owned> = const { OnceCell::new() };
}

impl Lane {
    /// The lane of the calling thread. A thread that is being torn down has none of its own and
    /// gets the largest number.
    #[inline]
    pub(crate) fn current() -> Self {
        Self(OWN.try_with(|own| own.get_or_init(Self::claim).0).unwrap_or(usize::MAX))
    }

    #[cold]
    fn claim() -> Owned {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = free.1.pop() {
            return Owned(number);
        }
        free.0 += 1;
        Owned(free.0 - 1)
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0
    }
}
