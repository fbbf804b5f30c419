//! Judgement of claims about real runs: a number of one contender compared with that of another, repetition by
//! repetition on the same jobs.
//!
//! Not here: conditions, and the verdict on a statement of several conditions (`crate::judge`).

use super::control::{Control, PredictedMeans};
use crate::prelude::*;
use gristmill_lab::compare::statistics::mean;
use gristmill_lab::compare::{Comparison, JobRun, RunRecord};

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

/// Number of a run that the simulator predicts too.
pub(super) struct PredictedNumber {
    pub(super) name: &'static str,
    pub(super) measured: fn(&RunRecord) -> Option<f64>,
    pub(super) predicted: fn(&PredictedMeans) -> f64,
}

/// Mean flow time.
pub(super) const FLOW: PredictedNumber =
    PredictedNumber { name: "mean flow times", measured: flow, predicted: |means| means.flow };

/// Returns the mean flow time of a run.
pub(super) fn flow(run: &RunRecord) -> Option<f64> {
    mean(run.jobs.iter().map(JobRun::flow))
}

/// Judges that one contender's number is smaller (or another [`Claimed`](crate::judge::Claimed)) than
/// that of each other.
pub(super) fn judged(
    comparison: &Comparison,
    rivals: &Rivals,
    value: impl Fn(&RunRecord) -> Option<f64>,
) -> (Verdict, String) {
    let ratio = |names: [&str; 2]| {
        let [ours, theirs] = pairs(comparison, names, &value);
        (log_ratio(&ours, &theirs), None)
    };
    of_ratios(comparison, rivals, ratio)
}

/// Judges the same of a number, adjusted by predictions.
fn judged_adjusted(
    comparison: &Comparison,
    control: &Control,
    number: &PredictedNumber,
    rivals: &Rivals,
) -> (Verdict, String) {
    let ratio = |names: [&str; 2]| {
        let [ours, theirs] = pairs(comparison, names, number.measured);
        let measured: Vec<f64> =
            ours.iter().zip(&theirs).map(|(ours, theirs)| (ours / theirs).ln()).collect();
        let of = number.predicted;
        let predicted = |[one, other]: [&PredictedMeans; 2]| (of(one) / of(other)).ln();
        (control.adjusted(names, &measured, predicted), Some(log_ratio(&ours, &theirs)))
    };
    of_ratios(comparison, rivals, ratio)
}

/// Judges ratios, each with the one that was measured if it is adjusted.
fn of_ratios(
    comparison: &Comparison,
    Rivals { is, one, others }: &Rivals,
    ratio: impl Fn([&str; 2]) -> (Interval, Option<Interval>),
) -> (Verdict, String) {
    if let Some(reason) = comparison.moved_otherwise() {
        return (Verdict::Open, reason);
    }
    let ratios = others.iter().map(|other| (other, ratio([one, other])));
    let ratios: Vec<(&String, (Interval, Option<Interval>))> =
        ratios.filter(|(_, (ratio, _))| ratio.mean.is_finite()).collect();
    if ratios.len() < others.len() {
        return (Verdict::Open, "Not run at this scale.".to_owned());
    }
    let words = |(other, (ratio, plain)): &(&String, (Interval, Option<Interval>))| {
        let plain = plain.as_ref().map(|plain| format!(", {} as measured", percent(plain)));
        format!(
            "{one} against {other} {}{}: {}",
            percent(ratio),
            plain.unwrap_or_default(),
            is.judge(ratio).word()
        )
    };
    let words = ratios.iter().map(words).collect::<Vec<_>>().join("; ");
    let verdict = every(ratios.iter().map(|(_, (ratio, _))| is.judge(ratio)));
    (verdict, format!("{words}. {}", is.definition()))
}

/// Judges a claim by its rule, from a number of each run.
pub(super) fn claim(
    words: &PaperWords,
    key: &str,
    comparison: &Comparison,
    value: impl Fn(&RunRecord) -> Option<f64>,
) -> Claim {
    let (verdict, found) = judged(comparison, words.rivals(key), value);
    words.claim(key, verdict, holes![found])
}

/// Judges a claim about a number by its rule, adjusted by predictions.
pub(super) fn adjusted_claim(
    (words, key): (&PaperWords, &str),
    comparison: &Comparison,
    control: &Control,
    number: &PredictedNumber,
) -> Claim {
    let (verdict, found) = judged_adjusted(comparison, control, number, words.rivals(key));
    words.claim(key, verdict, holes![found])
}

/// Judges a claim about mean flow times by its rule, adjusted by predictions.
pub(super) fn flow_claim(words: &PaperWords, key: &str, comparison: &Comparison, control: &Control) -> Claim {
    adjusted_claim((words, key), comparison, control, &FLOW)
}

/// Returns tables of what adjusted claims are computed from: a number of each run with its prediction, and geometric
/// means.
pub(super) fn predictions(
    prefix: &str,
    comparison: &Comparison,
    control: &Control,
    number: &PredictedNumber,
) -> [Block; 2] {
    let geometric = |all: Vec<f64>| log_ratio(&all, &vec![1.0; all.len()]).mean.exp();
    let (mut means, mut draws) = (Vec::new(), Vec::new());
    for contender in &comparison.contenders {
        let Some(predicted) = control.0.get(&contender.name) else { continue };
        let name = || Cell::text(format!("`{}`", contender.name));
        let of_run = |run: &RunRecord| Some((run.repetition, (number.measured)(run)?));
        let measured: Vec<_> = comparison.runs_of(contender).into_iter().filter_map(of_run).collect();
        let [same, others] =
            predicted.each_ref().map(|means| means.iter().map(number.predicted).collect::<Vec<_>>());
        draws.extend(measured.iter().filter_map(|&(repetition, measured)| {
            let predicted = *same.get(repetition as usize)?;
            Some([name(), (f64::from(repetition) + 1.0).into(), measured.into(), predicted.into()].to_vec())
        }));
        let measured = measured.into_iter().map(|(_, measured)| measured).collect();
        let numbers = [measured, same, others].map(|all| Cell::number(geometric(all)));
        means.push([name()].into_iter().chain(numbers).collect());
    }
    let same = ("predicted for the same draws", "s");
    let columns = [("policy", ""), ("measured", "s"), same, ("predicted for others", "s")];
    let caption = format!("Geometric means of {}, by which claims are adjusted", number.name);
    let of_means = ReportTable::new(format!("{prefix}-predictions"), caption, Column::list(&columns), means);
    let columns = [("policy", ""), ("repetition", ""), ("measured", "s"), ("predicted", "s")];
    let caption = format!("By repetition: {} of each run, and predicted for its draw", number.name);
    let of_draws = ReportTable::new(format!("{prefix}-draws"), caption, Column::list(&columns), draws);
    [of_means, of_draws].map(Block::Table)
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
    fn nothing_is_judged_by_runs_that_moved_other_bytes_than_policies_know() {
        let mut comparison = flows(&[("a", &[1.0; 4]), ("b", &[2.0; 4])]);
        assert_eq!(of_flows(Claimed::Smaller, &comparison).0, Verdict::Holds);
        let run = &mut comparison.runs[0];
        run.workers[0].nic_bytes_per_second = Some(1_000_000);
        (run.jobs[0].shuffle_bytes, run.jobs[0].known_shuffle_bytes) = (17_400_000, Some(25.6e6));
        let (verdict, words) = of_flows(Claimed::Smaller, &comparison);
        assert_eq!(verdict, Verdict::Open);
        assert!(words.starts_with("not comparable: "), "{words}");
    }

    #[test]
    fn predictions_of_the_same_draws_decide_what_a_few_runs_leave_open() {
        let ratios = [0.5, 2.1, 0.7, 1.2];
        let means = |flow: &f64| PredictedMeans { flow: *flow, ..PredictedMeans::default() };
        let rivals = Rivals { is: Claimed::Smaller, one: "a".to_owned(), others: vec!["b".to_owned()] };
        let judge = |measured: [f64; 4], all: [f64; 2]| {
            let one = [ratios.iter().map(means).collect(), [all; 500].concat().iter().map(means).collect()];
            let other = [vec![means(&1.0); 4], vec![means(&1.0); 1000]];
            let control = Control([("a".to_owned(), one), ("b".to_owned(), other)].into());
            judged_adjusted(&flows(&[("a", &measured), ("b", &[1.0; 4])]), &control, &FLOW, &rivals).0
        };
        // Over all draws the predicted mean is below or above that of the other.
        assert_eq!(judge([0.51, 2.09, 0.705, 1.19], [0.85, 0.95]), Verdict::Holds);
        assert_eq!(judge([0.51, 2.09, 0.705, 1.19], [1.15, 1.05]), Verdict::Fails);
        assert_eq!(judge([2.0, 0.5, 1.5, 0.7], [0.85, 0.95]), Verdict::Open, "not what was predicted");
        let alone = flows(&[("a", &ratios), ("b", &[1.0; 4])]);
        assert_eq!(
            judged_adjusted(&alone, &Control::default(), &FLOW, &rivals).0,
            Verdict::Open,
            "without predictions"
        );
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
}
