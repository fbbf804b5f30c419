//! Waiting time of a slot that simulates a slower one: pure, with time as an argument.

use std::time::Duration;

/// Work between two waits, short enough for smooth progress.
const STRETCH: Duration = Duration::from_millis(5);

/// Accounts of one attempt: its work, and its waiting for it. Times are of any monotonic clock.
///
/// Invariant: the debt is `rest` times the work so far, minus the time waited so far; negative if a wait took longer
/// than requested.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Waiting per unit of work.
    rest: f64,
    /// Time up to which work has been counted.
    since: Duration,
    debt_seconds: f64,
}

impl Pacer {
    /// Creates accounts for a slot of this speed, above 0 and below 1, in which work starts now.
    pub fn new(speed: f64, now: Duration) -> Self {
        Self { rest: 1.0 / speed - 1.0, since: now, debt_seconds: 0.0 }
    }

    /// Returns the time of the next useful check.
    pub(crate) fn next_look(&self) -> Duration {
        self.since + STRETCH
    }

    /// Returns the time to wait now for the time since the last check. `worked` returns the part of it that was work: the
    /// rest was waiting and adds no debt.
    pub(crate) fn owes(&mut self, now: Duration, worked: impl FnOnce(Duration) -> Duration) -> Duration {
        let worked = worked(now.saturating_sub(self.since));
        self.since = self.since.max(now);
        self.debt_seconds += worked.as_secs_f64() * self.rest;
        Duration::try_from_secs_f64(self.debt_seconds).unwrap_or_default()
    }

    /// Records that the time from the last check until now was waited.
    pub fn waited(&mut self, now: Duration) {
        self.debt_seconds -= now.saturating_sub(self.since).as_secs_f64();
        self.since = self.since.max(now);
    }

    /// Skips the time from the last check until now: it was neither work nor waiting for it.
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
        assert_eq!(pacer.owes(milliseconds(120), |all| all), milliseconds(20));
        pacer.waited(milliseconds(140));
        assert_eq!(pacer.owes(milliseconds(140), |all| all), Duration::ZERO);
        assert_eq!(pacer.owes(milliseconds(147), |all| all), milliseconds(7));
    }

    #[test]
    fn waiting_is_not_stretched_where_it_is_told_from_work() {
        let mut pacer = Pacer::new(0.2, Duration::ZERO);
        assert_eq!(pacer.owes(milliseconds(20_010), |_| milliseconds(10)), milliseconds(40));
        let mut all = Pacer::new(0.2, Duration::ZERO);
        assert_eq!(
            all.owes(milliseconds(20_010), |all| all),
            milliseconds(80_040),
            "told from nothing, all of it counts"
        );
    }

    #[test]
    fn a_wait_that_took_too_long_is_taken_off_the_next() {
        let mut pacer = Pacer::new(0.25, Duration::ZERO);
        assert_eq!(pacer.owes(milliseconds(10), |all| all), milliseconds(30));
        pacer.waited(milliseconds(50));
        assert_eq!(pacer.owes(milliseconds(60), |all| all), milliseconds(20));
    }

    #[test]
    fn a_wait_that_was_broken_off_is_made_up_for() {
        let mut pacer = Pacer::new(0.5, Duration::ZERO);
        assert_eq!(pacer.owes(milliseconds(10), |all| all), milliseconds(10));
        pacer.waited(milliseconds(14));
        pacer.pass_over(milliseconds(1000));
        assert_eq!(
            pacer.owes(milliseconds(1000), |all| all),
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
                let owed = pacer.owes(now, |all| all);
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
