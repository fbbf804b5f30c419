//! Judging of claims about real runs: a number of one contender compared with that of another, repetition
//! by repetition on the same jobs, and the time it would take to decide open ones.
//!
//! Not here: conditions, and statements made of many of them (`crate::judge`).

use crate::judge::{Rivals, Seen, every, log_ratio, percent};
use crate::words::{Words, holes};
use crate::{Claim, Verdict};
use gristmill_lab::compare::series::makespan;
use gristmill_lab::compare::statistics::mean;
use gristmill_lab::compare::{Comparison, JobRun, RunRecord};
use gristmill_scheduler::metrics::Interval;

/// Seconds that a run takes in addition to its jobs, to start and end processes.
const RUN_SECONDS: f64 = 1.0;

/// Returns a number of each repetition that both contenders have, for the one and for the other.
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

/// Returns the mean flow time of a run.
pub(super) fn flow(run: &RunRecord) -> Option<f64> {
    mean(run.jobs.iter().map(JobRun::flow))
}

/// Returns the hours that this many repetitions of all contenders take on this machine.
fn hours(runs: &[RunRecord], repetitions: f64) -> f64 {
    let done = runs.iter().map(|run| run.repetition + 1).max().unwrap_or(1);
    let seconds: f64 = runs.iter().map(|run| makespan(run) + RUN_SECONDS).sum();
    repetitions * seconds / f64::from(done) / 3600.0
}

/// Judges that one contender's number is smaller (or another [`Claimed`](crate::judge::Claimed)) than
/// that of each other.
pub(super) fn judged(
    comparison: &Comparison,
    Rivals { is, one, others }: &Rivals,
    value: impl Fn(&RunRecord) -> Option<f64>,
) -> (Verdict, String) {
    let ratios = others.iter().map(|other| {
        let [ours, theirs] = pairs(comparison, [one, other], &value);
        (other, log_ratio(&ours, &theirs))
    });
    let ratios: Vec<(&String, Interval)> = ratios.filter(|(_, ratio)| ratio.mean.is_finite()).collect();
    if ratios.len() < others.len() {
        return (Verdict::Open, "Not run at this scale.".to_owned());
    }
    let words = ratios.iter().map(|(other, ratio)| {
        let seen = is.seen(ratio);
        let needed = is.repetitions(ratio).filter(|_| seen == Seen::Unclear);
        let needed = needed.map_or_else(String::new, |needed| in_words(&comparison.runs, needed));
        format!("{one} against {other} {}: {}{needed}", percent(ratio), seen.word())
    });
    let words = words.collect::<Vec<_>>().join("; ");
    let verdict = every(ratios.iter().map(|(_, ratio)| is.seen(ratio)));
    (verdict, format!("{words}. {}", is.definition()))
}

/// Judges a claim by its rule, from a number of each run.
pub(super) fn claim(
    words: &Words,
    key: &str,
    comparison: &Comparison,
    value: impl Fn(&RunRecord) -> Option<f64>,
) -> Claim {
    let (verdict, found) = judged(comparison, words.rivals(key), value);
    words.claim(key, verdict, holes![found])
}

/// Describes the runs that would decide unclear conditions, each a mean and the limit it is compared
/// with. Empty if all are clear, or without intervals.
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
    use crate::judge::Claimed;
    use crate::real::tests::made_up::flows;

    fn of_flows(is: Claimed, comparison: &Comparison) -> (Verdict, String) {
        judged(comparison, &Rivals { is, one: "a".to_owned(), others: vec!["b".to_owned()] }, flow)
    }

    fn verdict(claimed: Claimed, ratios: &[f64]) -> Verdict {
        let one: Vec<f64> = ratios.iter().map(|ratio| 2.0 * ratio).collect();
        of_flows(claimed, &flows(&[("a", &one), ("b", &[2.0; 4])])).0
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
        let (verdict, words) = of_flows(Claimed::Smaller, &small);
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
        let (verdict, words) = of_flows(Claimed::Smaller, &comparison);
        assert_eq!(verdict, Verdict::Open);
        assert!(words.contains("repetitions (") && words.contains("hours) would tell"), "{words}");
        let unclear = Interval { mean: 0.5, half_width: Some(1.0), samples: 4 };
        assert!(would_tell(&comparison.runs, &[(unclear, 0.0)]).contains("about 16 repetitions"));
        assert_eq!(would_tell(&comparison.runs, &[(unclear, 2.0)]), "");
    }
}
