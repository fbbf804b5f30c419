//! How claims about real runs are judged: a number of one contender beside that of another, repetition by repetition on
//! the same jobs; and how long it would take to decide what stays open.
//!
//! Not here: conditions and what many of them make of a statement (`paper::judge`).

use crate::compare::series::makespan;
use crate::compare::statistics::mean;
use crate::compare::{Comparison, JobRun, RunRecord};
use crate::paper::Verdict;
use crate::paper::judge::{Seen, every, log_ratio, percent};
use gristmill_scheduler::metrics::Interval;

/// A difference of less than this part is called none: a statement that one is smaller fails once it is shown that it is
/// not smaller by as much.
const NONE: f64 = 0.03;

/// What is "much smaller" is smaller by this part at least.
const MUCH: f64 = 0.1;

/// Seconds that a run takes beyond its jobs: processes start and end.
const RUN_SECONDS: f64 = 1.0;

/// What is claimed of one contender beside others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claimed {
    /// Its number is smaller.
    Smaller,
    /// It is smaller by a tenth at least.
    MuchSmaller,
    /// It is not larger.
    NotLarger,
    /// It is larger.
    Larger,
}

impl Claimed {
    /// Above which logarithm of the ratio it is refuted, and below which it is borne out. Between the two both can be
    /// said, and then it is borne out.
    fn limits(self) -> [f64; 2] {
        let less = |part: f64| (1.0 - part).ln();
        match self {
            Self::Smaller | Self::Larger => [less(NONE), 0.0],
            Self::MuchSmaller => [less(MUCH); 2],
            Self::NotLarger => [0.0, NONE.ln_1p()],
        }
    }

    /// The logarithm as the limits have it: larger is smaller the other way round.
    fn oriented(self, ratio: &Interval) -> Interval {
        let mean = if self == Self::Larger { -ratio.mean } else { ratio.mean };
        Interval { mean, ..*ratio }
    }

    fn seen(self, ratio: &Interval) -> Seen {
        let [refuted, borne_out] = self.limits();
        let ratio = self.oriented(ratio);
        match (Seen::below(&ratio, borne_out), Seen::above(&ratio, refuted)) {
            (Seen::Yes, _) => Seen::Yes,
            (_, Seen::Yes) => Seen::No,
            _ => Seen::Unclear,
        }
    }

    /// Repetitions after which the half width would be so small that one limit is passed, if mean and spread stay as
    /// they are; `None` without an interval.
    fn repetitions(self, ratio: &Interval) -> Option<f64> {
        let [refuted, borne_out] = self.limits();
        let ratio = self.oriented(ratio);
        let room = (borne_out - ratio.mean).max(ratio.mean - refuted).max(1e-4);
        Some(ratio.samples as f64 * (ratio.half_width? / room).powi(2))
    }

    /// What bears it out and what refutes it, as [`Claimed::limits`] have it.
    fn definition(self) -> String {
        let none = format!("{:.0} %", 100.0 * NONE);
        match self {
            Self::Smaller => {
                format!(
                    "Clearly smaller, by however little, holds; else clearly not smaller by {none} fails."
                )
            }
            Self::Larger => {
                format!("Clearly larger, by however little, holds; else clearly not larger by {none} fails.")
            }
            Self::NotLarger => format!("Clearly not larger by {none} holds; else clearly larger fails."),
            Self::MuchSmaller => format!("{:.0} % and more is much.", 100.0 * MUCH),
        }
    }
}

/// A number of each repetition that both contenders have, of the one and of the other.
pub(super) fn pairs(
    comparison: &Comparison,
    [one, other]: [&str; 2],
    value: impl Fn(&RunRecord) -> Option<f64>,
) -> [Vec<f64>; 2] {
    let of = |name: &str, repetition: u32| {
        let mut runs = comparison.runs.iter();
        runs.find(|run| run.contender.name == name && run.repetition == repetition).and_then(&value)
    };
    let last = comparison.runs.iter().map(|run| run.repetition).max().map_or(0, |last| last + 1);
    (0..last).filter_map(|repetition| Some((of(one, repetition)?, of(other, repetition)?))).unzip().into()
}

/// The mean flow time of a run.
pub(super) fn flow(run: &RunRecord) -> Option<f64> {
    mean(run.jobs.iter().map(JobRun::flow))
}

/// Hours that so many repetitions of all contenders take here.
fn hours(runs: &[RunRecord], repetitions: f64) -> f64 {
    let done = runs.iter().map(|run| run.repetition + 1).max().unwrap_or(1);
    let seconds: f64 = runs.iter().map(|run| makespan(run) + RUN_SECONDS).sum();
    repetitions * seconds / f64::from(done) / 3600.0
}

/// Judges that one contender's number is smaller (or so) than that of each other.
pub(super) fn judged(
    comparison: &Comparison,
    claimed: Claimed,
    (one, others): (&str, &[&str]),
    value: impl Fn(&RunRecord) -> Option<f64>,
) -> (Verdict, String) {
    let ratios = others.iter().map(|other| {
        let [ours, theirs] = pairs(comparison, [one, other], &value);
        (*other, log_ratio(&ours, &theirs))
    });
    let ratios: Vec<(&str, Interval)> = ratios.filter(|(_, ratio)| ratio.mean.is_finite()).collect();
    if ratios.len() < others.len() {
        return (Verdict::Open, "Not run at this scale.".to_owned());
    }
    let words = ratios.iter().map(|(other, ratio)| {
        let seen = claimed.seen(ratio);
        let needed = claimed.repetitions(ratio).filter(|_| seen == Seen::Unclear);
        let needed = needed.map_or_else(String::new, |needed| in_words(&comparison.runs, needed));
        format!("{one} against {other} {}: {}{needed}", percent(ratio), seen.word())
    });
    let words = words.collect::<Vec<_>>().join("; ");
    let verdict = every(ratios.iter().map(|(_, ratio)| claimed.seen(ratio)));
    (verdict, format!("{words}. {}", claimed.definition()))
}

/// Judges that one contender's jobs end sooner than those of each of the others.
pub(super) fn faster_than(comparison: &Comparison, one: &str, others: &[&str]) -> (Verdict, String) {
    judged(comparison, Claimed::Smaller, (one, others), flow)
}

/// Judges that one contender's jobs end later than those of each of the others.
pub(super) fn slower_than(comparison: &Comparison, one: &str, others: &[&str]) -> (Verdict, String) {
    judged(comparison, Claimed::Larger, (one, others), flow)
}

/// What would decide conditions of which some are unclear: by each mean and the limit that it is held against. Empty if
/// all are clear, or there are no intervals.
pub(super) fn would_tell(runs: &[RunRecord], conditions: &[(Interval, f64)]) -> String {
    let needed = conditions.iter().filter_map(|(mean, limit)| {
        let (half_width, room) = (mean.half_width?, (mean.mean - limit).abs());
        (room <= half_width).then(|| mean.samples as f64 * (half_width / room.max(1e-4)).powi(2))
    });
    let needed = needed.fold(0.0, f64::max);
    if needed == 0.0 { String::new() } else { in_words(runs, needed) }
}

fn in_words(runs: &[RunRecord], repetitions: f64) -> String {
    format!(", about {repetitions:.0} repetitions ({:.1} hours) would tell", hours(runs, repetitions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::real::made_up::flows;

    fn verdict(claimed: Claimed, ratios: &[f64]) -> Verdict {
        let one: Vec<f64> = ratios.iter().map(|ratio| 2.0 * ratio).collect();
        judged(&flows(&[("a", &one), ("b", &[2.0; 4])]), claimed, ("a", &["b"]), flow).0
    }

    #[test]
    fn smaller_is_borne_out_below_and_refuted_where_it_is_not_smaller_by_more_than_nothing() {
        let judge = |ratios: &[f64]| verdict(Claimed::Smaller, ratios);
        assert_eq!(judge(&[0.9, 0.91, 0.89, 0.9]), Verdict::Holds);
        assert_eq!(judge(&[1.1, 1.11, 1.09, 1.1]), Verdict::Fails);
        assert_eq!(judge(&[1.0, 1.001, 0.999, 1.0]), Verdict::Fails, "no difference to speak of");
        assert_eq!(judge(&[0.99, 0.991, 0.989, 0.99]), Verdict::Holds, "small and clear");
        assert_eq!(judge(&[0.8, 1.2, 0.9, 1.0]), Verdict::Open);
        assert_eq!(judge(&[0.5]), Verdict::Open, "one repetition has no interval");
    }

    #[test]
    fn small_gain_that_holds_is_not_called_none() {
        let small = flows(&[("a", &[0.99, 0.991, 0.989]), ("b", &[1.0; 3])]);
        let (verdict, words) = faster_than(&small, "a", &["b"]);
        assert_eq!(verdict, Verdict::Holds);
        let wanted = "Clearly smaller, by however little, holds; else clearly not smaller by 3 % fails.";
        assert!(words.ends_with(wanted), "{words}");
    }

    #[test]
    fn much_smaller_and_not_larger_have_limits_of_their_own() {
        assert_eq!(verdict(Claimed::MuchSmaller, &[0.8, 0.81, 0.79, 0.8]), Verdict::Holds);
        assert_eq!(verdict(Claimed::MuchSmaller, &[0.95, 0.951, 0.949, 0.95]), Verdict::Fails);
        assert_eq!(verdict(Claimed::NotLarger, &[1.0, 1.001, 0.999, 1.0]), Verdict::Holds);
        assert_eq!(verdict(Claimed::NotLarger, &[1.1, 1.101, 1.099, 1.1]), Verdict::Fails);
        assert_eq!(verdict(Claimed::Larger, &[1.1, 1.101, 1.099, 1.1]), Verdict::Holds);
        assert_eq!(verdict(Claimed::Larger, &[0.9, 0.91, 0.89, 0.9]), Verdict::Fails);
        assert_eq!(verdict(Claimed::Larger, &[1.0, 1.001, 0.999, 1.0]), Verdict::Fails);
    }

    #[test]
    fn what_stays_open_says_how_many_repetitions_and_hours_would_tell() {
        let comparison = flows(&[("a", &[0.8, 1.2, 0.9, 1.0]), ("b", &[1.0; 4])]);
        let (verdict, words) = faster_than(&comparison, "a", &["b"]);
        assert_eq!(verdict, Verdict::Open);
        assert!(words.contains("repetitions (") && words.contains("hours) would tell"), "{words}");
        let unclear = Interval { mean: 0.5, half_width: Some(1.0), samples: 4 };
        assert!(would_tell(&comparison.runs, &[(unclear, 0.0)]).contains("about 16 repetitions"));
        assert_eq!(would_tell(&comparison.runs, &[(unclear, 2.0)]), "");
    }
}
