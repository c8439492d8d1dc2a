//! How long settled tasks are kept, and which are forgotten first.

use std::collections::VecDeque;

use crate::id::TaskId;
use crate::limits::{DELIVERED_MAX, RETAINED_BYTES_MAX, RETENTION, UNDELIVERED_MAX};
use crate::time::Instant;

#[derive(Debug)]
struct Kept {
    id: TaskId,
    bytes: u64,
    settled: Instant,
}

/// The settled tasks that are still known, oldest first.
///
/// Those whose outcome was delivered are kept in small number, for late reports and questions. The
/// others are kept until their time is over. Both count against one limit of bytes.
#[derive(Debug, Default)]
pub(crate) struct Retention {
    delivered: VecDeque<Kept>,
    undelivered: VecDeque<Kept>,
    bytes: u64,
}

impl Retention {
    /// Takes note of a settled task; `forget` gets those that are over a limit by it.
    pub(crate) fn keep(
        &mut self,
        id: TaskId,
        bytes: u64,
        delivered: bool,
        now: Instant,
        forget: impl FnMut(TaskId),
    ) {
        self.bytes += bytes;
        let kept = Kept { id, bytes, settled: now };
        if delivered {
            self.delivered.push_back(kept);
        } else {
            self.undelivered.push_back(kept);
        }
        self.sweep(now, forget);
    }

    /// Hands what is over a limit to `forget`.
    pub(crate) fn sweep(&mut self, now: Instant, mut forget: impl FnMut(TaskId)) {
        let Self { delivered, undelivered, bytes } = self;
        let mut trim = |queue: &mut VecDeque<Kept>, most: usize, bytes: &mut u64| {
            while let Some(kept) = queue.front()
                && (queue.len() > most
                    || *bytes > RETAINED_BYTES_MAX
                    || now.saturating_since(kept.settled) > RETENTION)
            {
                *bytes -= kept.bytes;
                forget(kept.id);
                queue.pop_front();
            }
        };
        trim(delivered, DELIVERED_MAX, bytes);
        trim(undelivered, UNDELIVERED_MAX, bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn id(number: u64) -> TaskId {
        TaskId::from_bytes(u128::from(number).to_be_bytes())
    }

    #[test]
    fn delivered_outcomes_are_kept_in_small_number() {
        let mut retention = Retention::default();
        let mut gone = Vec::new();
        for number in 0..DELIVERED_MAX as u64 + 3 {
            retention.keep(id(number), 10, true, Instant::ZERO, |id| gone.push(id));
        }
        assert_eq!(gone, [id(0), id(1), id(2)]);
    }

    #[test]
    fn undelivered_outcomes_are_kept_for_their_time() {
        let mut retention = Retention::default();
        let mut gone = Vec::new();
        for number in 0..10_000 {
            retention.keep(id(number), 10, false, Instant::from_micros(number), |id| gone.push(id));
        }
        assert!(gone.is_empty());
        let later = Instant::from_micros(4_999) + RETENTION + Duration::from_micros(1);
        retention.sweep(later, |id| gone.push(id));
        assert_eq!(gone.len(), 5_000);
        assert_eq!(retention.bytes, 5_000 * 10);
    }

    #[test]
    fn bytes_are_bounded_and_delivered_ones_go_first() {
        let mut retention = Retention::default();
        let mut gone = Vec::new();
        let half = RETAINED_BYTES_MAX / 2 + 1;
        retention.keep(id(1), half, false, Instant::ZERO, |id| gone.push(id));
        retention.keep(id(2), half, true, Instant::ZERO, |id| gone.push(id));
        assert_eq!(gone, [id(2)]);
        retention.keep(id(3), half, false, Instant::ZERO, |id| gone.push(id));
        assert_eq!(gone, [id(2), id(1)]);
        assert_eq!(retention.bytes, half);
    }
}
