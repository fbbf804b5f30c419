//! How long a running attempt still takes, and whether a backup would be faster: the estimate of LATE.
//!
//! Zaharia et al., *Improving MapReduce Performance in Heterogeneous Environments*, OSDI 2008, section 4: the progress
//! rate of an attempt is its progress score divided by the time it has run, and the time left `(1 - score) / rate`; of
//! those slower than a threshold the one with the longest time left comes first.
//!
//! Deviations: the score of a map is the share of its split that it has read, and nothing else. Attempts that tell no
//! progress are judged by the time that they have run, and on a worker known as slow by how slow it is. Slow is an attempt
//! that takes a number of times as long as its peers, not one of the slowest quarter, of which there is one always.

use crate::units::Span;

/// What is known of a running attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    /// How long it runs.
    pub(super) ran: Span,
    /// How long it had run when it said so last, and what share of its input it had read by then.
    pub(super) read: Option<(Span, f64)>,
    /// How long the same task takes on a worker like most.
    pub(super) usual: Span,
    /// How many times as long tasks take on its worker as elsewhere, as far as tasks tell that ended there.
    pub(super) slowness: f64,
}

/// A share of the input below this tells nothing of the rate.
const SHARE_MIN: f64 = 0.02;

impl Running {
    /// How many times as long as usual it takes, as far as anybody can tell by now.
    pub(super) fn times_usual(&self) -> f64 {
        self.whole() / self.usual.seconds().max(1e-9)
    }

    /// The time left, in seconds, if it is slow and a backup that begins now would end before it; else `None`.
    pub(super) fn lags(&self, slow_times: f64) -> Option<f64> {
        let left = self.left();
        (slow_times <= self.times_usual() && self.usual.seconds() < left).then_some(left)
    }

    /// What it takes in all, in seconds; at least as long as it has run.
    fn whole(&self) -> f64 {
        let by_rate = self.read.filter(|(_, share)| (SHARE_MIN..1.0).contains(share));
        let by_rate = by_rate.map(|(at, share)| at.seconds() / share);
        let by_worker = self.usual.seconds() * self.slowness.max(1.0);
        by_rate.unwrap_or(by_worker).max(self.ran.seconds())
    }

    /// The time left, in seconds. What should be over already takes as long again.
    fn left(&self) -> f64 {
        let (whole, ran) = (self.whole(), self.ran.seconds());
        if ran < whole { whole - ran } else { ran }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Running = Running {
        ran: Span::milliseconds(1_000),
        read: None,
        usual: Span::milliseconds(1_000),
        slowness: 1.0,
    };

    fn read(ran_ms: u64, at_ms: u64, share: f64) -> Running {
        Running { ran: Span::milliseconds(ran_ms), read: Some((Span::milliseconds(at_ms), share)), ..USUAL }
    }

    #[track_caller]
    fn check(running: Running, left: Option<f64>) {
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
        check(Running { ran: Span::milliseconds(1_900), ..USUAL }, None);
        check(Running { ran: Span::milliseconds(2_000), ..USUAL }, Some(2.0));
    }

    #[test]
    fn an_attempt_whose_input_is_read_is_judged_by_its_time() {
        check(read(1_900, 1_000, 1.0), None);
        check(read(2_500, 1_000, 1.0), Some(2.5));
    }

    #[test]
    fn an_attempt_on_a_slow_worker_lags_from_its_begin() {
        let slow = Running { ran: Span::milliseconds(200), slowness: 10.0, ..USUAL };
        check(slow, Some(9.8));
        check(Running { read: Some((Span::milliseconds(200), 0.3)), ..slow }, None);
    }

    #[test]
    fn an_attempt_that_stands_still_lags_once_it_has_said_so_often_enough() {
        check(read(1_500, 1_400, 0.9), None);
        check(read(9_000, 9_000, 0.9), None);
        check(read(30_000, 30_000, 0.9), Some(10.0 / 3.0));
    }
}
