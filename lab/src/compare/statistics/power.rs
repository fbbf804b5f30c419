//! Number of repetitions needed to show a difference, from the spread of a short trial.
//!
//! Not here: running the trial, and judging: the trial's own differences are not used.

use super::difference::FlowTimes;
use super::holm::{self, Candidate};
use super::paired::{Contrast, Paired};
use crate::compare::{Comparison, REPETITIONS_MAX};
use gristmill_scheduler::metrics::student;
use serde::Serialize;

/// Probability with which an existing difference should be shown.
pub const POWER: f64 = 0.8;

/// Probability that the true spread is below the upper one, which is reported with that of the trial.
pub const SPREAD_SURE: f64 = 0.8;

/// Repetitions that a pair of policies needs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Need {
    /// Name of the one policy.
    pub one: String,
    /// Name of the other policy.
    pub other: String,
    /// True if their comparison is planned.
    pub planned: bool,
    /// Probability below which it is significant while no other comparison is.
    pub level: f64,
    /// Standard deviation of the logarithm of the ratio of mean flow times between repetitions, in the trial.
    pub spread: f64,
    /// Upper end of the interval of the spread.
    pub spread_high: f64,
    /// Number of repetitions by the spread of the trial; `None` if more than [`REPETITIONS_MAX`].
    pub repetitions: Option<u32>,
    /// Number of repetitions by the upper spread.
    pub repetitions_high: Option<u32>,
}

impl Comparison {
    /// Returns the repetitions that each pair of policies needs to show a difference of this share;
    /// `None` for a trial of fewer than two repetitions.
    #[must_use]
    pub fn needs(&self, share: f64) -> Option<Vec<Need>> {
        let times = self.all_flow_times();
        // No comparison is significant yet: these are the levels at the start of judging.
        let open = |planned| Candidate { chance: None, planned };
        let candidates: Vec<Candidate> = times.iter().map(|times| open(times.planned)).collect();
        let levels = holm::judge(&candidates);
        let need = |(times, judged): (&FlowTimes, holm::Judgement)| {
            let paired = Paired::of(Contrast::Ratio, &times.means())?;
            let spread = paired.deviation()?;
            let spread_high = spread * high_factor(paired.pairs() - 1);
            Some(Need {
                one: times.one.clone(),
                other: times.other.clone(),
                planned: times.planned,
                level: judged.level,
                spread,
                spread_high,
                repetitions: repetitions(spread, share, judged.level),
                repetitions_high: repetitions(spread_high, share, judged.level),
            })
        };
        times.iter().zip(levels).map(need).collect()
    }
}

/// Returns the smallest number of repetitions with which a difference of this share is shown with a
/// probability of [`POWER`]; `None` if it is more than [`REPETITIONS_MAX`].
///
/// `(t_level + t_power) · spread / √n <= ln(1 + share)`, both quantiles with n - 1 degrees of freedom.
/// This usual approximation stays within a few hundredths of [`POWER`].
#[must_use]
pub fn repetitions(spread: f64, share: f64, level: f64) -> Option<u32> {
    let effect = share.ln_1p();
    let enough = |count: u32| {
        let freedom = u64::from(count) - 1;
        let quantiles = student::critical(level, freedom) + student::critical(2.0 * (1.0 - POWER), freedom);
        quantiles * spread / f64::from(count).sqrt() <= effect
    };
    if !enough(REPETITIONS_MAX) {
        return None;
    }
    let (mut few, mut many) = (1, REPETITIONS_MAX);
    while few + 1 < many {
        let middle = u32::midpoint(few, many);
        if enough(middle) { many = middle } else { few = middle }
    }
    Some(many)
}

/// Returns the ratio of the upper end of the interval of a standard deviation to the observed one, with
/// this many degrees of freedom. It is the root of freedom over a quantile of chi-squared, approximated
/// after Wilson and Hilferty (1931).
fn high_factor(freedom: u64) -> f64 {
    /// Quantile of the normal distribution at a probability of 1 minus [`SPREAD_SURE`].
    const QUANTILE: f64 = -0.841_621;
    let part = 2.0 / (9.0 * freedom as f64);
    let root = 1.0 - part + QUANTILE * part.sqrt();
    root.powi(3).recip().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{comparison, job, run};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    /// Draws from an approximately normal distribution: twelve uniform draws.
    fn normal(draws: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| (draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }

    /// Returns how many of 1,000 comparisons with this many repetitions show the difference.
    fn shown(count: u32, spread: f64, share: f64, level: f64) -> usize {
        let shows = |seed: u64| {
            let mut draws = ChaCha8Rng::seed_from_u64(seed);
            let pair = |_| ((1.0 + share) * (spread * normal(&mut draws)).exp(), 1.0);
            let pairs: Vec<(f64, f64)> = (0..count).map(pair).collect();
            Paired::of(Contrast::Ratio, &pairs).unwrap().chance().unwrap() < level
        };
        (0..1000).filter(|&seed| shows(seed)).count()
    }

    #[test]
    fn so_many_repetitions_show_the_difference_four_times_in_five() {
        for (spread, share, level) in
            [(0.05, 0.05, 0.05), (0.02, 0.05, 0.05), (0.1, 0.2, 0.01), (0.04, 0.05, 0.005), (0.2, 0.1, 0.04)]
        {
            let count = repetitions(spread, share, level).unwrap();
            let found = shown(count, spread, share, level);
            println!(
                "spread {spread}, share {share}, level {level}: {count} repetitions, {found} of 1000, seeds 0 to 999"
            );
            // 80 % within three standard deviations of 1.3 %, and more where one repetition is a large step.
            assert!(760 <= found, "{count} repetitions show it {found} times in 1000");
            let fewer = shown(count - 1, spread, share, level);
            assert!(fewer < 840, "{} repetitions are enough: {fewer} times in 1000", count - 1);
        }
    }

    #[test]
    fn smaller_differences_larger_spreads_and_stricter_levels_take_more() {
        let base = repetitions(0.05, 0.05, 0.05).unwrap();
        assert!(base < repetitions(0.05, 0.03, 0.05).unwrap());
        assert!(base < repetitions(0.08, 0.05, 0.05).unwrap());
        assert!(base < repetitions(0.05, 0.05, 0.005).unwrap());
        assert_eq!(repetitions(1.0, 0.01, 0.05), None, "more than can be asked for");
        assert_eq!(repetitions(0.0, 0.05, 0.05), Some(2), "no spread at all");
    }

    #[test]
    fn spread_of_few_repetitions_may_be_much_larger() {
        // Roots of freedom over the 20 % quantiles of chi-squared: 0.4463 of 2, 1.649 of 4, 6.989 of 11.
        for (freedom, printed) in [(2_u64, 2.117), (4, 1.557), (11, 1.255)] {
            let found = high_factor(freedom);
            assert!((found / printed - 1.0).abs() < 0.01, "{freedom}: {found} and not {printed}");
        }
    }

    #[test]
    fn trial_says_what_each_pair_needs_at_the_level_it_will_be_judged_at() {
        let runs = [1.0, 1.05, 0.96].into_iter().zip(0..).flat_map(|(noise, repetition)| {
            ["a", "b", "c"].map(|name| {
                let flow = if name == "a" { noise } else { 1.0 };
                run(name, repetition, vec![job(0, 0.0, 4.0 * flow)])
            })
        });
        let mut trial = comparison(runs.collect());
        trial.against = Some("b".to_owned());
        let needs = trial.needs(0.05).unwrap();
        assert_eq!(needs.len(), 3);
        assert!(needs[0].planned && (needs[0].level - 0.04).abs() < 1e-12, "{:?}", needs[0]);
        assert!((needs[1].level - 0.005).abs() < 1e-12, "{:?}", needs[1]);
        // Logarithms 0, 0.0488, -0.0408.
        assert!((needs[0].spread - 0.04485).abs() < 1e-4, "{}", needs[0].spread);
        let equal = needs.iter().find(|need| need.one == "c" && need.other == "b").unwrap();
        assert_eq!(equal.repetitions, Some(2));
        assert!(needs[0].repetitions < needs[0].repetitions_high);
        trial.runs.retain(|run| run.repetition == 0);
        assert_eq!(trial.needs(0.05), None, "one repetition has no spread");
    }
}
