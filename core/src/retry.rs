//! What happens after a retryable failure, and after a lost delivery.

use std::time::Duration;

/// How the delay between attempts grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryKind {
    /// Always the initial delay.
    Fixed,
    /// The initial delay times the number of failures.
    Linear,
    /// The initial delay times `factor` for each failure but the first.
    Exponential,
}

/// The delay after failure n, and how many attempts there are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The curve.
    pub kind: RetryKind,
    /// The delay after the first failure.
    pub initial: Duration,
    /// The growth of [`RetryKind::Exponential`], 1 or more.
    pub factor: f64,
    /// The longest delay, before jitter.
    pub cap: Duration,
    /// The share by which the delay varies either way, 0 to 1.
    pub jitter: f64,
    /// How many attempts there are in all, 1 or more.
    pub max_attempts: u32,
    /// Failure codes after which there is no other attempt.
    pub non_retryable: Vec<String>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            kind: RetryKind::Exponential,
            initial: Duration::from_secs(1),
            factor: 2.0,
            cap: Duration::from_secs(300),
            jitter: 0.2,
            max_attempts: 5,
            non_retryable: Vec::new(),
        }
    }
}

impl RetryPolicy {
    /// Returns the delay after the failure of attempt `attempt`, from 1.
    ///
    /// `seed` chooses the place within the jitter: the same seed gives the same delay.
    #[must_use]
    pub fn delay(&self, attempt: u32, seed: u64) -> Duration {
        let initial = self.initial.as_secs_f64();
        let n = f64::from(attempt.max(1));
        let raw = match self.kind {
            RetryKind::Fixed => initial,
            RetryKind::Linear => initial * n,
            RetryKind::Exponential => initial * self.factor.max(1.0).powf(n - 1.0),
        };
        let capped = raw.min(self.cap.as_secs_f64());
        // 53 bits of the mixed seed make a fraction from 0 to 1.
        let share = (mix(seed) >> 11) as f64 / (1u64 << 53) as f64;
        let jitter = self.jitter.clamp(0.0, 1.0);
        let delay = capped * (1.0 + jitter * (2.0 * share - 1.0));
        Duration::try_from_secs_f64(delay).unwrap_or(self.cap)
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): spreads close seeds.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The delay before a task is offered again after `lost` lost deliveries, from 1: none at first,
/// then one second, doubling to thirty.
pub(crate) fn redelivery_delay(lost: u32) -> Duration {
    match lost {
        0 | 1 => Duration::ZERO,
        n => Duration::from_secs((1u64 << (n - 2).min(5)).min(30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_curve_and_jitter() {
        let exact = |kind| RetryPolicy { kind, jitter: 0.0, ..RetryPolicy::default() };
        let seconds = |policy: &RetryPolicy, n| policy.delay(n, 1).as_secs_f64();
        let exponential = exact(RetryKind::Exponential);
        let curve: Vec<f64> = (1..=10).map(|n| seconds(&exponential, n)).collect();
        assert_eq!(curve, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0]);
        assert_eq!(seconds(&exact(RetryKind::Linear), 7), 7.0);
        assert_eq!(seconds(&exact(RetryKind::Fixed), 7), 1.0);
        let policy = RetryPolicy::default();
        let delays: Vec<f64> = (0..1_000).map(|s| policy.delay(3, s).as_secs_f64()).collect();
        assert!(delays.iter().all(|d| (3.2..=4.8).contains(d)));
        assert!(delays.iter().any(|d| *d < 3.3) && delays.iter().any(|d| *d > 4.7));
        assert_eq!(policy.delay(u32::MAX, 3), policy.delay(u32::MAX, 3));
    }

    #[test]
    fn redelivery_is_immediate_then_doubles_to_thirty_seconds() {
        let curve: Vec<u64> = (1..=9).map(|n| redelivery_delay(n).as_secs()).collect();
        assert_eq!(curve, [0, 1, 2, 4, 8, 16, 30, 30, 30]);
    }
}
