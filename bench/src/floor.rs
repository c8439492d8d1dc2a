//! What the machine itself takes for the steps of which every design is made.
//!
//! A selection with its release is three locked instructions in ours (pin, reserve, give back) and
//! four in a mutex (lock and unlock, twice). How far the rest of the work shows depends on what one
//! of them costs here.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam_utils::CachePadded;

use crate::clock;

/// One step, by name.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    /// Its id, `floor/operation`.
    pub id: &'static str,
    step: fn(u64) -> u64,
}

/// All of them.
pub const FLOORS: [Floor; 4] = [
    Floor { id: "floor/fetch-add", step: fetch_add },
    Floor { id: "floor/compare-exchange", step: compare_exchange },
    Floor { id: "floor/epoch-pin", step: epoch_pin },
    Floor { id: "floor/mutex-lock-unlock", step: mutex },
];

impl Floor {
    /// Returns the nanoseconds of one step, over `count` of them on the calling thread.
    #[must_use]
    pub fn ns(&self, count: u64) -> f64 {
        let start = clock::now();
        let done = (self.step)(count);
        let nanos = clock::nanos_since(start);
        assert_eq!(done, count, "{}", self.id);
        nanos as f64 / count as f64
    }
}

fn fetch_add(count: u64) -> u64 {
    let word = CachePadded::new(AtomicU64::new(0));
    for _ in 0..count {
        black_box(&word).fetch_add(1, Ordering::Relaxed);
    }
    word.load(Ordering::Relaxed)
}

fn compare_exchange(count: u64) -> u64 {
    let word = CachePadded::new(AtomicU64::new(0));
    for _ in 0..count {
        let word = black_box(&word);
        let seen = word.load(Ordering::Relaxed);
        let _ = word.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed);
    }
    word.load(Ordering::Relaxed)
}

fn epoch_pin(count: u64) -> u64 {
    let mut done = 0;
    for _ in 0..count {
        black_box(crossbeam_epoch::pin());
        done += 1;
    }
    done
}

fn mutex(count: u64) -> u64 {
    let word = CachePadded::new(Mutex::new(0));
    for _ in 0..count {
        *black_box(&word).lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
    *word.lock().unwrap_or_else(PoisonError::into_inner)
}
