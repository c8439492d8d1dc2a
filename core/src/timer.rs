//! A hierarchical timing wheel: O(1) to add, amortised O(1) to fire.
//!
//! Six levels of 64 slots over ticks of one millisecond reach two years. An entry is never removed:
//! whoever fires it checks a stamp and ignores what has become stale.

use std::time::Duration;

use crate::time::Instant;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 6;
const TICK_MICROS: u64 = 1_000;

#[derive(Debug)]
struct Level<T> {
    occupied: u64,
    slots: Box<[Vec<(u64, T)>]>,
}

/// Timers by due time, for one owner.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    now: u64,
    len: usize,
    overdue: Vec<T>,
    levels: [Level<T>; LEVELS],
}

impl<T> Wheel<T> {
    pub(crate) fn new(now: Instant) -> Self {
        let level = || Level { occupied: 0, slots: (0..SLOTS).map(|_| Vec::new()).collect() };
        Self {
            now: now.as_micros() / TICK_MICROS,
            len: 0,
            overdue: Vec::new(),
            levels: std::array::from_fn(|_| level()),
        }
    }

    /// The number of entries, stale ones included.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry that fires at the first tick that is not before `due`.
    pub(crate) fn insert(&mut self, due: Instant, entry: T) {
        self.len += 1;
        self.place(due.as_micros().div_ceil(TICK_MICROS), entry);
    }

    fn place(&mut self, tick: u64, entry: T) {
        if tick <= self.now {
            self.overdue.push(entry);
            return;
        }
        // An entry beyond the last level waits in its last slot and is placed again from there.
        let reach = (1u64 << (BITS * LEVELS as u32)) - 1;
        let at = tick.min(self.now | reach);
        let level = ((u64::BITS - 1 - (at ^ self.now).leading_zeros()) / BITS) as usize;
        let slot = (at >> (BITS * level as u32)) as usize % SLOTS;
        self.levels[level].occupied |= 1 << slot;
        self.levels[level].slots[slot].push((tick, entry));
    }

    /// The next slot to look at: its level, number and first tick.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        for (index, level) in self.levels.iter().enumerate() {
            if level.occupied == 0 {
                continue;
            }
            let shift = BITS * index as u32;
            let current = (self.now >> shift) as usize % SLOTS;
            // Entries of a level lie after the current slot, within one turn.
            let ahead = level.occupied.rotate_right(current as u32).trailing_zeros() as usize;
            let slot = (current + ahead) % SLOTS;
            let turn = self.now >> (shift + BITS) << (shift + BITS);
            let tick = turn + ((slot as u64) << shift);
            return Some((index, slot, tick.max(self.now)));
        }
        None
    }

    /// When [`Wheel::advance`] should be called next, never later than the next due time.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        if !self.overdue.is_empty() {
            return Some(Instant::from_micros(self.now * TICK_MICROS));
        }
        self.next_slot().map(|(_, _, tick)| Instant::from_micros(tick * TICK_MICROS))
    }

    /// Fires everything due at `now`. A clock that went back fires nothing.
    pub(crate) fn advance(&mut self, now: Instant, mut fire: impl FnMut(T)) {
        let until = now.as_micros() / TICK_MICROS;
        loop {
            for entry in std::mem::take(&mut self.overdue) {
                self.len -= 1;
                fire(entry);
            }
            let Some((level, slot, tick)) = self.next_slot() else { break };
            if tick > until {
                break;
            }
            self.now = tick;
            self.levels[level].occupied &= !(1 << slot);
            for (tick, entry) in std::mem::take(&mut self.levels[level].slots[slot]) {
                self.place(tick, entry);
            }
        }
        self.now = self.now.max(until);
    }
}

/// How long a timer may fire after its due time because of the tick.
pub const TIMER_TICK: Duration = Duration::from_micros(TICK_MICROS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_fires_at_its_tick_and_never_before() {
        let mut seed = 7u64;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for start in [0u64, 63, 64, 4_095, 1 << 30] {
            let mut wheel = Wheel::new(Instant::from_micros(start * 1_000));
            let mut model: Vec<u64> = Vec::new();
            let mut now = start * 1_000;
            for _ in 0..2_000 {
                let due = now + random() % (1 << (random() % 38));
                wheel.insert(Instant::from_micros(due), due);
                model.push(due);
                if random() % 3 == 0 {
                    now = wheel.next_due().map_or(now, |due| due.as_micros().max(now));
                    now += random() % 5_000;
                    let mut fired = Vec::new();
                    wheel.advance(Instant::from_micros(now), |due| fired.push(due));
                    let tick = |micros: u64| micros.div_ceil(1_000);
                    assert!(fired.iter().all(|due| tick(*due) <= now / 1_000 || *due <= now));
                    let (due, rest): (Vec<u64>, Vec<u64>) =
                        model.into_iter().partition(|due| tick(*due) <= now / 1_000);
                    fired.sort_unstable();
                    let mut due = due;
                    due.sort_unstable();
                    // An entry added when its tick had begun already fires at the next call.
                    assert_eq!(fired, due);
                    model = rest;
                }
            }
            assert_eq!(wheel.len(), model.len());
        }
    }

    #[test]
    fn a_clock_that_goes_back_fires_nothing_twice() {
        let mut wheel = Wheel::new(Instant::from_micros(10_000_000));
        wheel.insert(Instant::from_micros(11_000_000), 1);
        let mut fired = 0;
        wheel.advance(Instant::from_micros(5_000_000), |_| fired += 1);
        assert_eq!(fired, 0);
        wheel.advance(Instant::from_micros(11_000_000), |_| fired += 1);
        wheel.advance(Instant::from_micros(10_500_000), |_| fired += 1);
        assert_eq!(fired, 1);
        assert_eq!(wheel.next_due(), None);
    }
}
