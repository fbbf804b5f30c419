//! Difference of the mean flow times under two policies, and its description in words.
//!
//! Not here: the statistics (`paired`), and the correction for several differences (`holm`).

use super::holm::{Candidate, FALSE_MAX, Judgement, judge};
use super::mean;
use super::paired::Paired;
use crate::report::number::number;
use serde::Serialize;

/// Difference of the mean flow time under one policy to that under another, as a share of the other's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// Name of the one policy.
    pub one: String,
    /// Name of the other policy, of whose mean the difference is a share.
    pub other: String,
    /// True if this comparison was planned before the first run (`--against`).
    pub planned: bool,
    /// Mean over repetitions, with ratios averaged as logarithms; below 0 if the one is faster. `None` if
    /// they share no repetition.
    pub share: Option<f64>,
    /// Interval of the share, at a confidence of 1 minus the level; `None` for fewer than two repetitions.
    pub interval: Option<[f64; 2]>,
    /// Probability of this difference or a larger one if the two were equal; `None` for fewer than two
    /// repetitions.
    pub chance: Option<f64>,
    /// Probability below which it is significant: 5 %, or less with several comparisons on one page.
    pub level: f64,
    /// Number of repetitions that both have.
    pub repetitions: u64,
    /// Number of repetitions that would show a difference as large as this one in four of five comparisons; `None` if
    /// it is shown, for fewer than two repetitions, and beyond 200.
    pub needed: Option<u64>,
    /// Number of jobs that were faster under the one policy, each paired with itself under the other.
    pub faster: usize,
    /// Number of pairs of jobs.
    pub pairs: usize,
    /// Result of the comparison.
    pub shown: Shown,
    /// Jobs and arrivals for which the result is valid.
    pub scope: Scope,
}

/// Result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// The interval is below 0.
    Faster,
    /// The interval is above 0.
    Slower,
    /// The interval contains 0.
    Nothing,
    /// The interval does not exist: fewer than two repetitions.
    TooFew,
}

/// Jobs and arrivals for which a comparison is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All draws of the workload: every repetition drew its own jobs and arrivals.
    AnyDraw,
    /// Only the jobs and arrivals common to all repetitions.
    ThisDraw,
}

impl Scope {
    /// Returns what a comparison is valid for.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::AnyDraw => "with new draws in each repetition",
            Self::ThisDraw => "for this draw of jobs and arrivals only",
        }
    }

    /// Returns the same as a sentence about all comparisons of a page.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::AnyDraw => "Each repetition drew its own jobs and arrivals.",
            Self::ThisDraw => {
                "All repetitions had the same jobs and arrivals, and the verdicts are for these only."
            }
        }
    }
}

/// Two policies with the flow times of the same jobs under both, (one, other), for each repetition that
/// both have.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct FlowTimes {
    /// Name of the one policy.
    pub one: String,
    /// Name of the other policy.
    pub other: String,
    /// True if their comparison was planned.
    pub planned: bool,
    /// Flow times by repetition.
    pub repetitions: Vec<Vec<(f64, f64)>>,
}

impl FlowTimes {
    /// Returns mean flow times under both, by repetition.
    pub(super) fn means(&self) -> Vec<(f64, f64)> {
        let of = |pairs: &Vec<(f64, f64)>| {
            Some((mean(pairs.iter().map(|pair| pair.0))?, mean(pairs.iter().map(|pair| pair.1))?))
        };
        self.repetitions.iter().filter_map(of).collect()
    }

    fn paired(&self) -> Option<Paired> {
        Paired::from_pairs(&self.means())
    }

    fn difference(&self, scope: Scope, judged: Judgement) -> Difference {
        let paired = self.paired();
        let interval = paired.and_then(|paired| paired.interval(judged.level));
        let share = paired.map(|paired| paired.mean());
        let shown = match (interval, share) {
            (None, _) | (_, None) => Shown::TooFew,
            (_, Some(share)) if judged.shows && share < 0.0 => Shown::Faster,
            (_, Some(_)) if judged.shows => Shown::Slower,
            _ => Shown::Nothing,
        };
        let pairs = || self.repetitions.iter().flatten();
        Difference {
            one: self.one.clone(),
            other: self.other.clone(),
            planned: self.planned,
            share,
            interval,
            chance: paired.and_then(|paired| paired.chance()),
            level: judged.level,
            repetitions: paired.map_or(0, |paired| paired.pairs()),
            needed: paired.filter(|_| shown == Shown::Nothing).and_then(|paired| paired.needed(judged.level)),
            faster: pairs().filter(|(one, other)| one < other).count(),
            pairs: pairs().count(),
            shown,
            scope,
        }
    }
}

/// Judges all comparisons of a page together.
pub(crate) fn differences(scope: Scope, all: &[FlowTimes]) -> Vec<Difference> {
    let candidate = |times: &FlowTimes| Candidate {
        chance: times.paired().and_then(|paired| paired.chance()),
        planned: times.planned,
    };
    let candidates: Vec<Candidate> = all.iter().map(candidate).collect();
    let judged = judge(&candidates);
    all.iter().zip(judged).map(|(times, judged)| times.difference(scope, judged)).collect()
}

impl Difference {
    /// Describes the difference and what it is valid for in a sentence, without a full stop.
    #[must_use]
    pub fn words(&self) -> String {
        let (words, scope) = (self.verdict(), self.scope.words());
        if self.interval.is_some() { format!("{words}, {scope}") } else { words }
    }

    /// Describes the difference in a sentence, without a full stop.
    #[must_use]
    pub fn verdict(&self) -> String {
        let Self { one, other, share, shown, .. } = self;
        let Some(share) = *share else { return format!("{one} and {other} share no repetition") };
        let Some([low, high]) = self.interval else {
            return format!(
                "no difference shown between {one} and {other}: one repetition has no interval ({} %)",
                signed(share, decimals(&[share]))
            );
        };
        let decimals = match shown {
            Shown::Faster | Shown::Slower => decimals(&[share, low, high]),
            Shown::Nothing | Shown::TooFew => decimals(&[low, high]),
        };
        let percent = |share: f64| format!("{:.decimals$}", 100.0 * share.abs());
        let of = self.other_than_usual();
        match shown {
            Shown::Faster => {
                let (share, low, high) = (percent(share), percent(low), percent(high));
                format!("{one} is faster than {other} by {share} % ({high} to {low} %{of})")
            }
            Shown::Slower => {
                let (share, low, high) = (percent(share), percent(low), percent(high));
                format!("{one} is slower than {other} by {share} % ({low} to {high} %{of})")
            }
            Shown::Nothing | Shown::TooFew => {
                let needed = self.needed.map(|needed| {
                    let share = signed(share, self::decimals(&[share]));
                    format!("; about {needed} repetitions would show one as large as measured ({share} %)")
                });
                format!(
                    "no difference shown between {one} and {other} ({} to {} %{of}){}",
                    signed(low, decimals),
                    signed(high, decimals),
                    needed.unwrap_or_default()
                )
            }
        }
    }

    /// Describes the confidence of the interval, if it is not the usual 95 %.
    fn other_than_usual(&self) -> String {
        match (self.level - FALSE_MAX).abs() < 1e-12 {
            true => String::new(),
            false => format!(", interval of {} %", number(100.0 * (1.0 - self.level))),
        }
    }
}

/// Returns the number of decimals: one where all shares are small, and enough that no nonzero share is
/// printed as 0. So an interval without 0 is recognizable.
fn decimals(shares: &[f64]) -> usize {
    const SMALL: f64 = 0.1;
    const MOST: usize = 4;
    let least = usize::from(shares.iter().all(|share| share.abs() < SMALL));
    // Half of the last digit rounds up.
    let is_seen = |share: &f64, decimals: usize| {
        *share == 0.0 || 0.5 <= 100.0 * share.abs() * 10_f64.powi(decimals as i32)
    };
    (least..MOST).find(|&decimals| shares.iter().all(|share| is_seen(share, decimals))).unwrap_or(MOST)
}

fn signed(share: f64, decimals: usize) -> String {
    let text = format!("{:+.decimals$}", 100.0 * share);
    // A value that rounds to zero has no sign.
    if text.trim_start_matches(['+', '-']).chars().all(|digit| ['0', '.'].contains(&digit)) {
        return "0".to_owned();
    }
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one job in each repetition, whose flow times have these ratios.
    fn times(one: &str, other: &str, ratios: &[f64]) -> FlowTimes {
        let repetitions = ratios.iter().map(|&ratio| vec![(2.0 * ratio, 2.0), (8.0 * ratio, 8.0)]).collect();
        FlowTimes { one: one.to_owned(), other: other.to_owned(), planned: false, repetitions }
    }

    fn difference(scope: Scope, times: &FlowTimes) -> Difference {
        differences(scope, std::slice::from_ref(times)).remove(0)
    }

    fn alone(ratios: &[f64]) -> Difference {
        difference(Scope::ThisDraw, &times("a", "b", ratios))
    }

    #[test]
    fn interval_below_zero_is_faster_and_above_it_slower() {
        let faster = alone(&[0.90, 0.88, 0.86]);
        assert_eq!((faster.shown, faster.faster, faster.pairs), (Shown::Faster, 6, 6));
        assert_eq!(
            faster.words(),
            "a is faster than b by 12 % (7 to 17 %), for this draw of jobs and arrivals only"
        );
        let slower = alone(&[1.0 / 0.90, 1.0 / 0.88, 1.0 / 0.86]);
        assert_eq!(slower.shown, Shown::Slower);
        assert!(slower.words().starts_with("a is slower than b by 14 % (7 to 20 %)"), "{}", slower.words());
    }

    #[test]
    fn interval_that_holds_zero_shows_no_difference() {
        let found = alone(&[0.91, 1.1, 1.0]);
        assert_eq!(found.shown, Shown::Nothing);
        assert!(
            found.words().starts_with("no difference shown between a and b (−21 to +27 %)"),
            "{}",
            found.words()
        );
        let near = alone(&[0.98, 0.98, 0.96, 1.01]);
        assert!(near.words().contains("(−5.0 to +1.6 %)"), "{}", near.words());
    }

    #[test]
    fn interval_that_leaves_out_zero_is_not_printed_as_if_it_held_it() {
        // Logarithms of -0.12 ± 0.118: faster by 11 %, by 0.2 % at least.
        let logs = [-0.12 - 0.0475_f64, -0.12, -0.12 + 0.0475];
        let found = alone(&logs.map(f64::exp));
        assert_eq!(found.shown, Shown::Faster);
        assert!(
            found.words().starts_with("a is faster than b by 11.3 % (0.2 to 21.2 %)"),
            "{}",
            found.words()
        );
        let tiny = alone(&[0.999_7, 0.999_6, 0.999_65]);
        assert!(
            tiny.words().starts_with("a is faster than b by 0.04 % (0.02 to 0.05 %)"),
            "{}",
            tiny.words()
        );
    }

    #[test]
    fn single_repetition_shows_nothing_however_large_the_difference() {
        let found = alone(&[0.1]);
        assert_eq!(found.shown, Shown::TooFew);
        assert!(found.words().contains("one repetition has no interval (−90 %)"), "{}", found.words());
        assert_eq!(alone(&[]).words(), "a and b share no repetition");
    }

    #[test]
    fn interval_of_huge_and_noisy_differences_stays_above_minus_a_hundred_percent() {
        let [low, high] = alone(&[0.01, 0.9, 0.02]).interval.unwrap();
        assert!(-1.0 < low && 1.0 < high, "{low} to {high}");
    }

    #[test]
    fn what_shows_alone_shows_nothing_among_nine_others_that_show_nothing() {
        let real = [0.90, 0.88, 0.86];
        let mut page: Vec<FlowTimes> = (0..9).map(|_| times("c", "d", &[0.91, 1.1, 1.0])).collect();
        page.push(times("a", "b", &real));
        let found = differences(Scope::AnyDraw, &page);
        assert_eq!(found[9].shown, Shown::Nothing, "chance {:?}", found[9].chance);
        assert!(found[9].interval.unwrap()[1] > 0.0, "the interval must agree with the verdict");
        assert!(found[9].words().ends_with("with new draws in each repetition"));
        assert_eq!(alone(&real).shown, Shown::Faster);
        assert!(found[9].words().contains(" %, interval of 99.5 %)"), "{}", found[9].words());
        page[9].planned = true;
        assert_eq!(differences(Scope::AnyDraw, &page)[9].shown, Shown::Faster, "it was planned");
        let planned = differences(Scope::AnyDraw, &page).swap_remove(9);
        assert!(planned.words().contains("by 12 % (6 to 17 %, interval of 96 %)"), "{}", planned.words());
        assert!(!alone(&real).words().contains("interval"), "95 % is usual");
    }

    #[test]
    fn words_say_of_which_draw_they_speak() {
        let times = times("a", "b", &[0.90, 0.88, 0.86]);
        assert!(difference(Scope::AnyDraw, &times).words().ends_with("with new draws in each repetition"));
        assert!(
            difference(Scope::ThisDraw, &times).words().ends_with("for this draw of jobs and arrivals only")
        );
    }
}
