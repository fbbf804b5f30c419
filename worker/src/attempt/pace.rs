//! How long a slot that plays a slower one must wait: pure, with time as an argument.

use std::time::Duration;

/// Work between two waits, so that progress looks even to whoever watches it.
const STRETCH: Duration = Duration::from_millis(5);

/// Books of one attempt: what it worked, and what it has waited for that. Times are of any clock that only rises.
///
/// Invariant: the debt is `rest` times the work so far, less what was waited so far; below zero if a wait took longer
/// than asked for.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Waiting for each unit of work.
    rest: f64,
    /// Work up to this time has been counted.
    since: Duration,
    debt_seconds: f64,
}

impl Pacer {
    /// For a slot of this speed, above 0 and below 1, in which work begins now.
    pub fn new(speed: f64, now: Duration) -> Self {
        Self { rest: 1.0 / speed - 1.0, since: now, debt_seconds: 0.0 }
    }

    /// When it is worth looking again.
    pub(crate) fn next_look(&self) -> Duration {
        self.since + STRETCH
    }

    /// How long to wait now for all time since the last look, of which `worked` was work if that is known: then the rest
    /// was waiting and costs nothing more.
    pub(crate) fn owes(&mut self, now: Duration, worked: Option<Duration>) -> Duration {
        let passed = now.saturating_sub(self.since);
        let worked = worked.map_or(passed, |worked| worked.min(passed));
        self.since = self.since.max(now);
        self.debt_seconds += worked.as_secs_f64() * self.rest;
        Duration::try_from_secs_f64(self.debt_seconds).unwrap_or_default()
    }

    /// The time from the last look until now was waited.
    pub fn waited(&mut self, now: Duration) {
        self.debt_seconds -= now.saturating_sub(self.since).as_secs_f64();
        self.since = self.since.max(now);
    }

    /// The time from the last look until now was neither worked nor waited for work.
    pub(crate) fn pass_over(&mut self, now: Duration) {
        self.since = self.since.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn milliseconds(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_slot_of_half_the_speed_waits_as_long_as_it_works() {
        let mut pacer = Pacer::new(0.5, milliseconds(100));
        assert_eq!(pacer.owes(milliseconds(120), None), milliseconds(20));
        pacer.waited(milliseconds(140));
        assert_eq!(pacer.owes(milliseconds(140), None), Duration::ZERO);
        assert_eq!(pacer.owes(milliseconds(147), None), milliseconds(7));
    }

    #[test]
    fn waiting_is_not_stretched_where_it_is_told_from_work() {
        let mut pacer = Pacer::new(0.2, Duration::ZERO);
        assert_eq!(pacer.owes(milliseconds(20_010), Some(milliseconds(10))), milliseconds(40));
        let mut all = Pacer::new(0.2, Duration::ZERO);
        assert_eq!(
            all.owes(milliseconds(20_010), None),
            milliseconds(80_040),
            "told from nothing, all of it counts"
        );
    }

    #[test]
    fn a_wait_that_took_too_long_is_taken_off_the_next() {
        let mut pacer = Pacer::new(0.25, Duration::ZERO);
        assert_eq!(pacer.owes(milliseconds(10), None), milliseconds(30));
        pacer.waited(milliseconds(50));
        assert_eq!(pacer.owes(milliseconds(60), None), milliseconds(20));
    }

    #[test]
    fn a_wait_that_was_broken_off_is_made_up_for() {
        let mut pacer = Pacer::new(0.5, Duration::ZERO);
        assert_eq!(pacer.owes(milliseconds(10), None), milliseconds(10));
        pacer.waited(milliseconds(14));
        pacer.pass_over(milliseconds(1000));
        assert_eq!(
            pacer.owes(milliseconds(1000), None),
            milliseconds(6),
            "what passed while it was suspended is free"
        );
    }

    proptest! {
        #[test]
        fn waits_add_up_to_what_the_speed_asks_for(
            speed in 0.05f64..0.99,
            stretches in proptest::collection::vec((1u64..50_000, 0u64..3_000, 0u64..20_000), 1..60),
        ) {
            let micros = Duration::from_micros;
            let mut pacer = Pacer::new(speed, Duration::ZERO);
            let (mut now, mut worked, mut waited, mut late) = (Duration::ZERO, Duration::ZERO, Duration::ZERO, Duration::ZERO);
            for (work, overshoot, suspended) in stretches {
                now += micros(work);
                worked += micros(work);
                let owed = pacer.owes(now, None);
                if !owed.is_zero() {
                    late = micros(overshoot);
                    now += owed + late;
                    waited += owed + late;
                    pacer.waited(now);
                }
                now += micros(suspended);
                pacer.pass_over(now);
            }
            let due = worked.as_secs_f64() * (1.0 / speed - 1.0);
            let surplus = waited.as_secs_f64() - due;
            prop_assert!(-1e-6 <= surplus && surplus <= late.as_secs_f64() + 1e-6, "{surplus} s too much");
        }
    }
}
