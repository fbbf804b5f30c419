//! Evaluation of conditions on data, and of statements that consist of many conditions.
//!
//! A condition on samples is evaluated by an interval: yes if all of it meets the condition, no if none
//! of it does, unclear otherwise. Limits in conditions define a word of the statement ("much", "close"),
//! and are printed on the page. Not here: numbers compared with known ones (`number`).

use crate::Verdict;
use gristmill_scheduler::metrics::Interval;

/// Verdict on one condition or case; those of a claim make its [`Verdict`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CaseVerdict {
    /// The condition is met.
    Yes,
    /// The condition is not met.
    No,
    /// The interval is too wide to decide.
    Unclear,
}

impl From<bool> for CaseVerdict {
    /// Converts a condition without sampling error.
    fn from(met: bool) -> Self {
        if met { Self::Yes } else { Self::No }
    }
}

impl CaseVerdict {
    /// Compares a mean with a lower limit.
    pub(crate) fn above(mean: &Interval, limit: f64) -> Self {
        Self::between(mean, [limit, f64::INFINITY])
    }

    /// Compares a mean with an upper limit.
    pub(crate) fn below(mean: &Interval, limit: f64) -> Self {
        Self::between(mean, [f64::NEG_INFINITY, limit])
    }

    /// Compares a mean with two limits.
    pub(crate) fn between(mean: &Interval, [low, high]: [f64; 2]) -> Self {
        let Some(half_width) = mean.half_width else { return Self::Unclear };
        let (least, most) = (mean.mean - half_width, mean.mean + half_width);
        if low < least && most < high {
            Self::Yes
        } else if most <= low || high <= least {
            Self::No
        } else {
            Self::Unclear
        }
    }

    /// True if a mean logarithm of ratios is less than this part from 0.
    pub(crate) fn alike(log: &Interval, part: f64) -> Self {
        Self::between(log, [(1.0 - part).ln(), part.ln_1p()])
    }

    /// True if the mean of the first is smaller, compared sample by sample.
    pub(crate) fn less(one: &[f64], other: &[f64]) -> Self {
        Self::above(&paired(other, one), 0.0)
    }

    /// True if a value between two means is at most this: yes if the upper mean is below, no if the lower
    /// mean is above.
    pub(crate) fn at_most(lower: &Interval, upper: &Interval, limit: f64) -> Self {
        match (Self::below(upper, limit), Self::above(lower, limit)) {
            (Self::Yes, _) => Self::Yes,
            (_, Self::Yes) => Self::No,
            _ => Self::Unclear,
        }
    }

    /// Returns the number of results equal to this one.
    pub(crate) fn count(self, seen: &[Self]) -> usize {
        seen.iter().filter(|&&one| one == self).count()
    }

    /// True if all of these are met. A single No is enough for No.
    pub(crate) fn all(seen: impl IntoIterator<Item = Self>) -> Self {
        let seen: Vec<Self> = seen.into_iter().collect();
        if seen.contains(&Self::No) {
            Self::No
        } else if seen.contains(&Self::Unclear) || seen.is_empty() {
            Self::Unclear
        } else {
            Self::Yes
        }
    }

    /// Returns the result as a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unclear => "unclear",
        }
    }
}

/// Judges a universal statement: one clear exception makes it fail. It holds if everything is clear, and
/// holds partly if some of it is.
pub(crate) fn every(seen: impl IntoIterator<Item = CaseVerdict>) -> Verdict {
    let seen: Vec<CaseVerdict> = seen.into_iter().collect();
    if seen.contains(&CaseVerdict::No) { Verdict::Fails } else { by_case(seen) }
}

/// Judges a statement that is tested on cases named on the page. It holds or fails if it does so in all
/// clear cases, otherwise it holds partly.
pub(crate) fn by_case(seen: impl IntoIterator<Item = CaseVerdict>) -> Verdict {
    let seen: Vec<CaseVerdict> = seen.into_iter().collect();
    match (CaseVerdict::Yes.count(&seen), CaseVerdict::No.count(&seen), CaseVerdict::Unclear.count(&seen)) {
        (0, 0, _) => Verdict::Open,
        (_, 0, 0) => Verdict::Holds,
        (0, _, _) => Verdict::Fails,
        _ => Verdict::Partly,
    }
}

/// Rule that some have less of something than others on average, sample by sample: the name of the
/// number, those who have less, those who have more. `others` alone means all that the other side
/// does not name.
pub(crate) type Less = (String, Vec<String>, Vec<String>);

/// True if the samples of each number and name satisfy all of these rules.
pub(crate) fn keeps(rules: &[Less], all: &[&str], samples: impl Fn(&str, &str) -> Vec<f64>) -> CaseVerdict {
    let names = |side: &[String], other: &[String]| -> Vec<String> {
        let others =
            || all.iter().map(|&name| name.to_owned()).filter(|name| !other.contains(name)).collect();
        if side == ["others"] { others() } else { side.to_vec() }
    };
    CaseVerdict::all(rules.iter().flat_map(|(number, less, more)| {
        let sides = [names(less, more), names(more, less)];
        let [less, more] =
            sides.map(|side| side.iter().map(|name| samples(number, name)).collect::<Vec<_>>());
        less.iter()
            .flat_map(|one| more.iter().map(|other| CaseVerdict::less(one, other)))
            .collect::<Vec<CaseVerdict>>()
    }))
}

/// Smallest number of runs that shows more than a coin, which comes out alike in all of them at most once
/// in twenty times.
pub(crate) const RUNS_MIN: usize = 5;

/// Judges a statement on random runs, in each of which it is true or false. It holds if it is true in
/// all, fails if it is false in more than half, and holds partly otherwise. With fewer than [`RUNS_MIN`]
/// runs it stays open.
pub(crate) fn in_runs(holds: &[bool]) -> Verdict {
    match holds.iter().filter(|&&one| one).count() {
        _ if holds.len() < RUNS_MIN => Verdict::Open,
        all if all == holds.len() => Verdict::Holds,
        few if 2 * few <= holds.len() => Verdict::Fails,
        _ => Verdict::Partly,
    }
}

/// Returns the mean of samples, without an interval for fewer than two.
pub(crate) fn mean_of(samples: &[f64]) -> Interval {
    Interval::from_samples(samples).unwrap_or(Interval { mean: f64::NAN, half_width: None, samples: 0 })
}

/// Returns the mean of a number of each of these runs.
pub(crate) fn mean_by<R>(runs: &[R], number: impl Fn(&R) -> f64) -> Interval {
    mean_of(&runs.iter().map(number).collect::<Vec<f64>>())
}

/// Returns the mean of paired differences, sample by sample, without an interval for fewer than two.
pub(crate) fn paired(one: &[f64], other: &[f64]) -> Interval {
    mean_of(&one.iter().zip(other).map(|(one, other)| one - other).collect::<Vec<_>>())
}

/// Returns the mean logarithm of paired ratios, in which twice and half cancel.
pub(crate) fn log_ratio(one: &[f64], other: &[f64]) -> Interval {
    let [one, other] =
        [one, other].map(|samples| samples.iter().map(|sample| sample.ln()).collect::<Vec<_>>());
    paired(&one, &other)
}

/// Formats a mean logarithm of ratios as a change in percent, with the ends of its interval. It prints
/// enough decimals that no nonzero value appears as 0.
pub(crate) fn percent(log: &Interval) -> String {
    const MOST: usize = 4;
    let ends = log.half_width.filter(|half| *half != 0.0).map(|half| [log.mean - half, log.mean + half]);
    let changes = |log: f64| 100.0 * log.exp_m1();
    let all: Vec<f64> = [log.mean].into_iter().chain(ends.into_iter().flatten()).map(changes).collect();
    let is_seen = |change: f64, decimals: usize| {
        change.abs() < 1e-9 || 0.5 <= change.abs() * 10_f64.powi(decimals as i32)
    };
    let decimals = (1..MOST).find(|&decimals| all.iter().all(|&change| is_seen(change, decimals)));
    let decimals = decimals.unwrap_or(MOST);
    let change = |log: f64| format!("{:+.decimals$}", changes(log)).replace('-', "−");
    match ends {
        Some([low, high]) => format!("{} % ({} to {} %)", change(log.mean), change(low), change(high)),
        None => format!("{} %", change(log.mean)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CaseVerdict::{No, Unclear, Yes};

    fn mean(mean: f64, half_width: f64) -> Interval {
        Interval { mean, half_width: Some(half_width), samples: 10 }
    }

    #[test]
    fn condition_is_met_only_by_the_whole_interval_and_refuted_only_by_the_whole_interval() {
        assert_eq!([0.3, 0.1, -0.3].map(|at| CaseVerdict::above(&mean(at, 0.2), 0.0)), [Yes, Unclear, No]);
        assert_eq!([0.3, 0.1, -0.3].map(|at| CaseVerdict::below(&mean(at, 0.2), 0.0)), [No, Unclear, Yes]);
        let within = |at, half| CaseVerdict::between(&mean(at, half), [-1.0, 1.0]);
        assert_eq!([within(0.0, 0.5), within(0.9, 0.5), within(2.0, 0.5)], [Yes, Unclear, No]);
        assert_eq!(within(0.0, 2.0), Unclear);
        assert_eq!(CaseVerdict::above(&Interval { mean: 9.0, half_width: None, samples: 1 }, 0.0), Unclear);
        assert_eq!(CaseVerdict::above(&Interval::exactly(0.0), 0.0), No, "equal is not above");
    }

    #[test]
    fn one_clear_exception_refutes_a_statement_about_everything_and_not_one_about_cases() {
        let judge = |seen: &[CaseVerdict]| (every(seen.to_vec()), by_case(seen.to_vec()));
        assert_eq!(judge(&[Yes, Yes]), (Verdict::Holds, Verdict::Holds));
        assert_eq!(judge(&[Yes, No]), (Verdict::Fails, Verdict::Partly));
        assert_eq!(judge(&[Yes, Unclear]), (Verdict::Partly, Verdict::Partly));
        assert_eq!(judge(&[No, Unclear]), (Verdict::Fails, Verdict::Fails));
        assert_eq!(judge(&[Unclear, Unclear]), (Verdict::Open, Verdict::Open));
        assert_eq!(judge(&[]), (Verdict::Open, Verdict::Open));
        assert_eq!(
            [CaseVerdict::all([Yes, Yes]), CaseVerdict::all([Yes, Unclear]), CaseVerdict::all([Unclear, No])],
            [Yes, Unclear, No]
        );
    }

    #[test]
    fn statement_about_runs_fails_unless_it_is_true_in_more_than_half() {
        let of = |met: usize, runs: usize| in_runs(&(0..runs).map(|run| run < met).collect::<Vec<bool>>());
        assert_eq!([of(5, 5), of(10, 10)], [Verdict::Holds; 2]);
        assert_eq!([of(3, 5), of(9, 10)], [Verdict::Partly; 2]);
        assert_eq!([of(2, 5), of(5, 10), of(0, 5)], [Verdict::Fails; 3]);
    }

    #[test]
    fn statement_about_runs_stays_open_where_a_coin_could_have_made_them_alike() {
        for runs in 0..5 {
            assert_eq!(in_runs(&vec![true; runs]), Verdict::Open, "{runs} runs");
            assert_eq!(in_runs(&vec![false; runs]), Verdict::Open, "{runs} runs");
        }
        assert!(0.05 < 0.5_f64.powi(RUNS_MIN as i32 - 1) && 0.5_f64.powi(RUNS_MIN as i32) < 0.05);
    }

    #[test]
    fn ratios_are_averaged_as_logarithms() {
        assert!(log_ratio(&[2.0, 1.0], &[1.0, 2.0]).mean.abs() < 1e-12);
        assert_eq!(percent(&Interval::exactly(2.0_f64.ln())), "+100.0 %");
    }

    #[test]
    fn change_whose_interval_leaves_out_zero_is_not_printed_as_if_it_held_it() {
        assert_eq!(percent(&mean(-0.003, 0.0028)), "−0.30 % (−0.58 to −0.02 %)");
        assert_eq!(percent(&mean(-0.02, 0.03)), "−2.0 % (−4.9 to +1.0 %)");
    }
}
