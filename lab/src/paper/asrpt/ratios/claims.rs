//! What the paper claims of efficiency ratios.

use super::super::runs::{PROVED, Runs, SCHEDULERS, STEPS, Scenario};
use super::{UNIFORM_SMALL, cases};
use crate::paper::{Block, Claim, Section, Verdict};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::asrpt::{SETTINGS, SLOTS};

/// Places in `SCHEDULERS`.
const ASRPT: usize = 0;
const LRPT: usize = 3;

/// The rivals of ASRPT in the figures, as places in `SCHEDULERS`.
const RIVALS: [usize; 3] = [1, 2, 3];

/// Theorems 2 and 3: the ratio of any work-conserving scheduler tends to a constant.
pub(super) fn constant_ratio(runs: &Runs) -> Claim {
    let change = |scenario: usize, scheduler: usize| {
        let at = |step: usize| {
            let mean = runs.mean([UNIFORM_SMALL, scenario, scheduler], |kept| kept.within[step]);
            mean.map_or(f64::NAN, |mean| mean.mean)
        };
        at(STEPS - 1) / at(STEPS / 2 - 1) - 1.0
    };
    let changes: Vec<(String, f64)> = [(0, "preemptive"), (1, "non-preemptive")]
        .into_iter()
        .flat_map(|(scenario, name)| (0..4).map(move |scheduler| (scenario, name, scheduler)))
        .map(|(scenario, name, scheduler)| {
            (format!("{} {name}", SCHEDULERS[scheduler].title), change(scenario, scheduler))
        })
        .collect();
    let largest = changes.iter().max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
    let (name, change) = largest.cloned().unwrap_or((String::new(), f64::NAN));
    Claim::new(
        "Theorems 2 and 3, section VII B",
        "Any work-conserving scheduler, even LRPT, has a constant efficiency ratio.",
        Verdict::holds_or_open(change.abs() < 0.1),
        format!(
            "From T = {} to T = {SLOTS} the ratio that changes most, that of {name}, changes by {:+.1} % \
             (it is taken to settle if that is less than 10 %).",
            SLOTS / 2,
            100.0 * change
        ),
    )
}

/// Section VI and VII B in claims.
pub(in crate::paper::asrpt) fn section(runs: &Runs) -> Section {
    Section::new(
        "theorem-4",
        "Theorem 4, its corollaries, and section VII B: what is claimed of ASRPT",
        [format!("All runs of figures 5 to 8: {} in each setting.", runs.seeds_in_words())],
        vec![Block::Claims(vec![
            asrpt_is_best(runs),
            lrpt_is_worst(runs),
            asrpt_against_dsrpt(runs),
            below_three_bounds(runs),
            ratio_of_two(runs),
        ])],
    )
}

/// The mean over seeds of how much the ratio of one scheduler is above that of another.
fn difference(runs: &Runs, setting: usize, scenario: usize, above: usize, below: usize) -> Option<Interval> {
    let pairs = runs.of(setting, scenario, above).iter().zip(runs.of(setting, scenario, below));
    let differences: Vec<f64> = pairs.map(|(above, below)| above.ratio - below.ratio).collect();
    Interval::of(&differences)
}

/// Whether differences are above 0 everywhere, and the least of them in words.
fn all_above(differences: &[(String, Interval)]) -> (Verdict, String) {
    let above = differences.iter().filter(|(_, d)| 0.0 < d.mean).count();
    let clear = differences.iter().filter(|(_, d)| 0.0 < d.mean - d.half_width.unwrap_or(0.0)).count();
    let verdict = match above {
        above if above == differences.len() => Verdict::Holds,
        0 => Verdict::Fails,
        _ => Verdict::Partly,
    };
    let words = differences.iter().min_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean)).map(|(what, least)| {
        let half = least.half_width.unwrap_or(0.0);
        format!(
            "Above on average in {above} of {} comparisons, by more than the 95 % interval of the seeds' \
             differences in {clear}; closest: {what}, {:+.3} ± {half:.3}.",
            differences.len(),
            least.mean
        )
    });
    (verdict, words.unwrap_or_default())
}

/// Whether the ratio of one scheduler is above that of another, in every case and for all pairs, and by how much.
fn above_in_all_cases(
    runs: &Runs,
    pairs: [(usize, usize); 3],
    named: fn((usize, usize)) -> usize,
) -> (Verdict, String) {
    let differences = cases().flat_map(|(setting, scenario)| {
        pairs.into_iter().filter_map(move |(above, below)| {
            let (name, cut) = (SETTINGS[setting].name, Scenario::ALL[scenario].name());
            let what = format!("{} in {name}, {cut}", SCHEDULERS[named((above, below))].title);
            Some((what, difference(runs, setting, scenario, above, below)?))
        })
    });
    all_above(&differences.collect::<Vec<_>>())
}

fn asrpt_is_best(runs: &Runs) -> Claim {
    let (verdict, words) = above_in_all_cases(runs, RIVALS.map(|rival| (rival, ASRPT)), |(rival, _)| rival);
    Claim::new(
        "Section VII B",
        "The total flow time of ASRPT is smaller than that of FIFO, Fair and LRPT in all settings, \
         preemptive and not.",
        verdict,
        format!("Ratios of the others minus that of ASRPT, with all three cuts. {words}"),
    )
}

fn lrpt_is_worst(runs: &Runs) -> Claim {
    let (verdict, words) = above_in_all_cases(runs, [0, 1, 2].map(|other| (LRPT, other)), |(_, other)| other);
    Claim::new(
        "Section VII A",
        "LRPT shows how poorly work-conserving schedulers can do.",
        verdict,
        format!("Ratio of LRPT minus that of the others. {words}"),
    )
}

fn asrpt_against_dsrpt(runs: &Runs) -> Claim {
    let dsrpt = SCHEDULERS.len() - 1;
    let pairs =
        (0..SETTINGS.len()).flat_map(|setting| runs.of(setting, 0, 0).iter().zip(runs.of(setting, 0, dsrpt)));
    let gaps: Vec<f64> = pairs.map(|(asrpt, dsrpt)| dsrpt.ratio - asrpt.ratio).collect();
    let worse = gaps.iter().filter(|&&gap| gap < 0.0).count();
    let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
    Claim::new(
        "Corollary 2",
        "The total flow time of ASRPT is not greater than that of DSRPT.",
        worse == 0,
        format!(
            "Greater in {worse} of {} preemptive runs; the least gain in the ratio is {least:.3}. The \
             paper's argument is a sketch; small random instances are tested beside these runs.",
            gaps.len()
        ),
    )
}

/// The largest ratio of a scheduler over all preemptive runs.
fn largest(runs: &Runs, scheduler: usize) -> f64 {
    let ratios =
        (0..SETTINGS.len()).flat_map(|setting| runs.of(setting, 0, scheduler)).map(|kept| kept.ratio);
    ratios.fold(0.0, f64::max)
}

fn below_three_bounds(runs: &Runs) -> Claim {
    let [asrpt, dsrpt] = [0, SCHEDULERS.len() - 1].map(|scheduler| largest(runs, scheduler));
    Claim::new(
        "Theorem 4, Corollaries 1 and 2",
        "DSRPT and ASRPT, preemptive, are at most three times the bound of Lemma 1 as n goes to infinity.",
        asrpt.max(dsrpt) < PROVED,
        format!("Largest ratio of all runs: DSRPT {dsrpt:.2}, ASRPT {asrpt:.2}."),
    )
}

fn ratio_of_two(runs: &Runs) -> Claim {
    let asrpt = largest(runs, 0);
    Claim::new(
        "Corollary 2",
        "ASRPT has an efficiency ratio of 2 in the preemptive scenario.",
        Verdict::holds_or_open(asrpt <= 2.0),
        format!(
            "The ratio is to the optimum, which is at least the bound; ASRPT is at most {asrpt:.2} times \
             the bound in any run. (The list of contributions says \"less than 2\", the corollary 2.)"
        ),
    )
}
