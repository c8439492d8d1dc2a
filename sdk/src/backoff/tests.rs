use slipswitch_core::Instant;

use super::*;

const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

/// A clock that the test moves.
struct Clock(Instant);

impl Clock {
    fn session(&mut self, lasting: Duration, settled: bool) -> SessionRecord {
        let started = self.0;
        self.0 += lasting;
        SessionRecord { lived: self.0.saturating_since(started), settled, drained: false }
    }
}

fn spend(redial: &mut Redial) -> u32 {
    let mut dials = 0;
    while redial.next_delay().is_some() {
        dials += 1;
    }
    dials
}

#[test]
fn blip_after_a_month() {
    let mut clock = Clock(Instant::ZERO);
    let mut redial = Redial::new(Backoff::default().budget(5), 7);
    for _ in 0..4 {
        redial.next_delay().expect("the server starts slowly, within the budget");
    }
    redial.session_over(clock.session(MONTH, true));
    assert_eq!(spend(&mut redial), 5, "a month of good service filled the budget");
}

#[test]
fn a_session_longer_than_the_cap_fills_the_budget_and_a_shorter_one_does_not() {
    let mut clock = Clock(Instant::ZERO);
    let mut redial = Redial::new(Backoff::default().budget(3), 7);
    assert_eq!(spend(&mut redial), 3);
    redial.session_over(clock.session(Duration::from_secs(10), false));
    assert_eq!(spend(&mut redial), 0, "exactly the cap is not longer than the cap");
    redial.session_over(clock.session(Duration::from_millis(10_001), false));
    assert_eq!(spend(&mut redial), 3);
    redial.session_over(clock.session(Duration::from_millis(1), true));
    assert_eq!(spend(&mut redial), 3, "a settled task is success, however short the session");
}

#[test]
fn a_drained_session_costs_nothing() {
    let mut redial = Redial::new(Backoff::default().budget(1), 7);
    for _ in 0..100 {
        redial.next_delay().expect("each rolling restart is free");
        redial.session_over(SessionRecord { drained: true, ..SessionRecord::default() });
    }
}

#[test]
fn retries_are_unlimited_and_never_immediate() {
    let mut redial = Redial::new(Backoff::default(), 1);
    let mut longest = Duration::ZERO;
    for nth in 0..10_000_u32 {
        let delay = redial.next_delay().expect("no budget, no end");
        let bound = Duration::from_millis(100) * 2_u32.pow(nth.min(7));
        assert!(delay >= FLOOR && delay <= bound.min(Duration::from_secs(10)));
        longest = longest.max(delay);
    }
    assert!(longest > Duration::from_secs(9), "the cap is reached, jitter is full");
}

#[test]
fn two_peers_do_not_return_in_step() {
    let mut one = Redial::new(Backoff::default(), 1);
    let mut other = Redial::new(Backoff::default(), 2);
    let same = (0..32).filter(|_| one.next_delay() == other.next_delay()).count();
    assert!(same <= 1);
}
