//! Ids for tasks whose producers make none: UUID version 7, with 74 random bits.
//!
//! Within one session they rise, also within a millisecond: then the random bits of the one before
//! are raised by a random step. A step is large enough that nobody who knows one id can try the
//! next ones.

use rand::rngs::StdRng;
use rand::{Rng, RngCore};
use slipswitch_core::{Instant, TaskId};
use slipswitch_net::clock::Clock;
use slipswitch_net::server::TaskIds;

use crate::clock::wall_ms;

/// The random bits of an id.
const RANDOM_BITS: u32 = 74;
/// The bits of a step within a millisecond: 2^21 of them fit before the next one is used.
const STEP_BITS: u32 = 52;

/// Translates the server's clock to the wall's. The wall is read once: a step of it later neither
/// turns ids back nor makes them meet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calendar {
    /// The wall clock in milliseconds at the origin of the server's clock.
    origin_ms: u64,
}

impl Calendar {
    /// Reads the wall clock.
    pub(crate) fn of(clock: Clock) -> Self {
        let since_origin = clock.now().as_micros() / 1000;
        Self { origin_ms: wall_ms().saturating_sub(since_origin) }
    }

    fn wall_ms(self, at: Instant) -> u64 {
        self.origin_ms.saturating_add(at.as_micros() / 1000)
    }
}

/// Makes the ids of one session.
#[derive(Debug)]
pub(crate) struct Ids<R = StdRng> {
    calendar: Calendar,
    random: R,
    last_ms: u64,
    last_bits: u128,
}

impl<R: RngCore> Ids<R> {
    pub(crate) const fn new(calendar: Calendar, random: R) -> Self {
        Self { calendar, random, last_ms: 0, last_bits: 0 }
    }
}

impl<R: RngCore> TaskIds for Ids<R> {
    fn next(&mut self, now: Instant) -> TaskId {
        let ms = self.calendar.wall_ms(now);
        let random = self.random.random::<u128>();
        if ms > self.last_ms {
            // The highest bit stays free for the steps that follow.
            (self.last_ms, self.last_bits) = (ms, random >> (128 - RANDOM_BITS + 1));
        } else {
            self.last_bits += 1 + (random >> (128 - STEP_BITS));
            if self.last_bits >> RANDOM_BITS != 0 {
                (self.last_ms, self.last_bits) =
                    (self.last_ms + 1, random >> (128 - RANDOM_BITS + 1));
            }
        }
        uuid(self.last_ms, self.last_bits)
    }
}

/// Lays out RFC 9562 version 7: 48 bits of time, version, 12 bits, variant, 62 bits.
fn uuid(ms: u64, bits: u128) -> TaskId {
    let (high, low) = (bits >> 62, bits & ((1 << 62) - 1));
    let word = u128::from(ms) << 80 | 7 << 76 | (high & 0xfff) << 64 | 2 << 62 | low;
    TaskId::from_bytes(word.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::time::Duration;

    const ORIGIN_MS: u64 = 1_796_115_600_000;

    fn ids() -> Ids {
        Ids::new(Calendar { origin_ms: ORIGIN_MS }, StdRng::seed_from_u64(7))
    }

    #[test]
    fn an_id_is_a_version_7_uuid_with_the_time() {
        let id = ids().next(Instant::from_micros(5_250_000));
        let word = u128::from_be_bytes(*id.as_bytes());
        assert_eq!(word >> 80, u128::from(ORIGIN_MS + 5_250));
        assert_eq!((word >> 76 & 0xf, word >> 62 & 0b11), (7, 2));
    }

    #[test]
    fn ids_rise_within_a_millisecond_and_when_time_stands_still() {
        let (mut ids, mut now) = (ids(), Instant::from_micros(0));
        let mut last = ids.next(now);
        for round in 0..20_000u64 {
            if round % 1000 == 0 {
                now += Duration::from_micros(700);
            }
            let next = ids.next(now);
            assert!(next > last, "{next} after {last}");
            last = next;
        }
    }

    #[test]
    fn a_millisecond_that_is_used_up_lends_from_the_next() {
        let mut ids = ids();
        let first = ids.next(Instant::from_micros(0));
        ids.last_bits = (1 << RANDOM_BITS) - 1;
        let (full, over) = (uuid(ids.last_ms, ids.last_bits), ids.next(Instant::from_micros(0)));
        assert!(first < full && full < over);
        assert!(ids.next(Instant::from_micros(999)) > over);
    }
}
