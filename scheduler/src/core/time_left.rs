//! Estimate of the time left of a running attempt, and if a speculative attempt would be faster: the estimate of LATE.
//! Divisions use the same estimate.
//!
//! Zaharia et al., *Improving MapReduce Performance in Heterogeneous Environments*, OSDI 2008, section 4. The
//! progress rate of an attempt is its progress score divided by the time it has run. The time left is `(1 -
//! score) / rate`. Of those slower than a threshold, the one with the longest time left comes first.
//!
//! Deviations: the score of a map is only the fraction of its split that it has read. Attempts without progress reports
//! are judged by their run time and, on a slow worker, by its slowness. An attempt is slow if it takes a number of
//! times as long as its peers, not if it is among the slowest quarter, which is never empty.

use crate::units::Span;

/// Measurements of a running attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningMeasurements {
    /// Time since its start.
    pub(super) ran: Span,
    /// Run time at its last progress report, and the fraction of its input read by then.
    pub(super) read: Option<(Span, f64)>,
    /// Time of the same task on a typical worker.
    pub(super) usual: Span,
    /// Time of tasks on its worker relative to others, from tasks that ended there.
    pub(super) slowness: f64,
}

/// Smallest fraction of the input from which a rate is estimated.
const SHARE_MIN: f64 = 0.02;

impl RunningMeasurements {
    /// Estimated total time divided by the usual time.
    pub(super) fn times_usual(&self) -> f64 {
        self.whole() / self.usual.seconds().max(1e-9)
    }

    /// Returns the time left in seconds if the attempt is slow and a speculative attempt started now would end first,
    /// else `None`.
    pub(super) fn lags(&self, slow_times: f64) -> Option<f64> {
        let left = self.remaining_seconds();
        (slow_times <= self.times_usual() && self.usual.seconds() < left).then_some(left)
    }

    /// True if it has read enough to show its rate.
    pub(super) fn shows_rate(&self) -> bool {
        self.read.is_some_and(|(_, share)| (SHARE_MIN..1.0).contains(&share))
    }

    /// Estimated total time in seconds; at least the time that it has run.
    fn whole(&self) -> f64 {
        let by_rate = self.read.filter(|_| self.shows_rate()).map(|(at, share)| at.seconds() / share);
        let by_worker = self.usual.seconds() * self.slowness.max(1.0);
        by_rate.unwrap_or(by_worker).max(self.ran.seconds())
    }

    /// Estimated time left in seconds. An overdue attempt is expected to take as long again.
    pub(super) fn remaining_seconds(&self) -> f64 {
        let (whole, ran) = (self.whole(), self.ran.seconds());
        if ran < whole { whole - ran } else { ran }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: RunningMeasurements = RunningMeasurements {
        ran: Span::milliseconds(1_000),
        read: None,
        usual: Span::milliseconds(1_000),
        slowness: 1.0,
    };

    fn read(ran_ms: u64, at_ms: u64, share: f64) -> RunningMeasurements {
        RunningMeasurements {
            ran: Span::milliseconds(ran_ms),
            read: Some((Span::milliseconds(at_ms), share)),
            ..USUAL
        }
    }

    #[track_caller]
    fn check(running: RunningMeasurements, left: Option<f64>) {
        let found = running.lags(2.0);
        let near = match (found, left) {
            (Some(found), Some(left)) => (found - left).abs() < 1e-6,
            (found, left) => found == left,
        };
        assert!(near, "{running:?} lags by {found:?}, not by {left:?}");
    }

    #[test]
    fn an_attempt_that_reads_at_a_tenth_of_the_usual_rate_lags() {
        check(read(1_000, 1_000, 0.1), Some(9.0));
        check(read(1_400, 1_000, 0.1), Some(8.6));
    }

    #[test]
    fn an_attempt_that_reads_as_fast_as_others_does_not_lag() {
        check(read(500, 500, 0.5), None);
        check(read(900, 500, 0.5), None);
    }

    #[test]
    fn a_slow_attempt_that_is_done_before_a_backup_would_be_gets_none() {
        check(read(4_500, 4_500, 0.9), None);
    }

    #[test]
    fn an_attempt_that_says_nothing_lags_when_it_has_run_far_too_long() {
        check(RunningMeasurements { ran: Span::milliseconds(1_900), ..USUAL }, None);
        check(RunningMeasurements { ran: Span::milliseconds(2_000), ..USUAL }, Some(2.0));
    }

    #[test]
    fn an_attempt_whose_input_is_read_is_judged_by_its_time() {
        check(read(1_900, 1_000, 1.0), None);
        check(read(2_500, 1_000, 1.0), Some(2.5));
    }

    #[test]
    fn an_attempt_on_a_slow_worker_lags_from_its_start() {
        let slow = RunningMeasurements { ran: Span::milliseconds(200), slowness: 10.0, ..USUAL };
        check(slow, Some(9.8));
        check(RunningMeasurements { read: Some((Span::milliseconds(200), 0.3)), ..slow }, None);
    }

    #[test]
    fn an_attempt_that_stands_still_lags_once_it_has_said_so_often_enough() {
        check(read(1_500, 1_400, 0.9), None);
        check(read(9_000, 9_000, 0.9), None);
        check(read(30_000, 30_000, 0.9), Some(10.0 / 3.0));
    }
}
