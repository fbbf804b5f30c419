//! What the paper claims of efficiency ratios.

use super::super::runs::{PROVED, Runs, SCHEDULERS, STEPS, Scenario};
use super::{UNIFORM_SMALL, cases};
use crate::paper::judge::{Seen, every, log_ratio, paired, percent};
use crate::paper::{Block, Claim, Section, Verdict};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::asrpt::{SETTINGS, SLOTS};

/// Places in `SCHEDULERS`.
const ASRPT: usize = 0;
const LRPT: usize = 3;

/// The rivals of ASRPT in the figures, as places in `SCHEDULERS`.
const RIVALS: [usize; 3] = [1, 2, 3];

/// A ratio that changes by less than this part while T doubles is called constant: one that grew like the logarithm of
/// T would change by 12.6 %, one that grew like T by 100 %.
const CONSTANT: f64 = 0.1;

/// Theorems 2 and 3: the ratio of any work-conserving scheduler tends to a constant.
pub(in crate::paper::asrpt) fn constant_ratio(runs: &Runs) -> Claim {
    let change = |scenario: usize, scheduler: usize| {
        let at = |step: usize| {
            let kept = runs.of(UNIFORM_SMALL, scenario, scheduler).iter();
            kept.map(|kept| kept.within[step]).collect::<Vec<f64>>()
        };
        log_ratio(&at(STEPS - 1), &at(STEPS / 2 - 1))
    };
    let changes: Vec<(String, Interval)> = [(0, "preemptive"), (1, "non-preemptive")]
        .into_iter()
        .flat_map(|(scenario, name)| (0..4).map(move |scheduler| (scenario, name, scheduler)))
        .map(|(scenario, name, scheduler)| {
            (format!("{} {name}", SCHEDULERS[scheduler].title), change(scenario, scheduler))
        })
        .collect();
    let limits = [(1.0 - CONSTANT).ln(), (1.0 + CONSTANT).ln()];
    let largest = changes.iter().max_by(|(_, a), (_, b)| a.mean.abs().total_cmp(&b.mean.abs()));
    let words = largest.map(|(name, change)| format!("that of {name}, changes by {}", percent(change)));
    Claim::new(
        "Theorems 2 and 3, section VII B",
        "Any work-conserving scheduler, even LRPT, has a constant efficiency ratio.",
        every(changes.iter().map(|(_, change)| Seen::between(change, limits))),
        format!(
            "From T = {} to T = {SLOTS} the ratio that changes most, {}; less than {:.0} % counts as constant, \
             growth like the logarithm of T would be 12.6 %.",
            SLOTS / 2,
            words.unwrap_or_default(),
            100.0 * CONSTANT
        ),
    )
}

/// Section VI and VII B in claims.
pub(in crate::paper::asrpt) fn section(runs: &Runs) -> Section {
    Section::new(
        "theorem-4",
        "Theorem 4, its corollaries, and section VII B: what is claimed of ASRPT",
        [format!("All runs of figures 5 to 8: {} in each setting.", runs.seeds_in_words())],
        vec![Block::Claims(of_ratios(runs))],
    )
}

pub(in crate::paper::asrpt) fn of_ratios(runs: &Runs) -> Vec<Claim> {
    vec![
        asrpt_is_best(runs),
        lrpt_is_worst(runs),
        asrpt_against_dsrpt(runs),
        below_three_bounds(runs),
        ratio_of_two(runs),
    ]
}

/// The mean over seeds of how much the ratio of one scheduler is above that of another.
fn difference(runs: &Runs, setting: usize, scenario: usize, above: usize, below: usize) -> Option<Interval> {
    let ratios = |scheduler| runs.of(setting, scenario, scheduler).iter().map(|kept| kept.ratio).collect();
    let [above, below]: [Vec<f64>; 2] = [ratios(above), ratios(below)];
    (!above.is_empty() && !below.is_empty()).then(|| paired(&above, &below))
}

/// Whether differences are above 0 everywhere, and the least of them in words.
fn all_above(differences: &[(String, Interval)]) -> (Verdict, String) {
    let seen: Vec<Seen> = differences.iter().map(|(_, apart)| Seen::above(apart, 0.0)).collect();
    let count = |wanted: Seen| seen.iter().filter(|&&one| one == wanted).count();
    let words = differences.iter().min_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean)).map(|(what, least)| {
        format!(
            "Above by more than the 95 % interval of the seeds' differences in {} of {} comparisons, below in {}; \
             closest: {what}, {:+.3} ± {:.3}.",
            count(Seen::Yes),
            differences.len(),
            count(Seen::No),
            least.mean,
            least.half_width.unwrap_or(f64::INFINITY)
        )
    });
    (every(seen), words.unwrap_or_default())
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

/// The ratio is to the optimum, which lies between the bound and the best schedule that is known.
fn ratio_of_two(runs: &Runs) -> Claim {
    let mut seen = Vec::new();
    let (mut most, mut least) = (0.0_f64, 0.0_f64);
    for setting in 0..SETTINGS.len() {
        let known = |seed: usize| {
            let ratios = (0..SCHEDULERS.len()).filter_map(|one| runs.of(setting, 0, one).get(seed));
            ratios.map(|kept| kept.ratio).fold(f64::INFINITY, f64::min)
        };
        let asrpt: Vec<f64> = runs.of(setting, 0, ASRPT).iter().map(|kept| kept.ratio).collect();
        let over_known: Vec<f64> =
            asrpt.iter().enumerate().map(|(seed, ratio)| ratio / known(seed)).collect();
        let nothing = vec![0.0; asrpt.len()];
        let (at_most, at_least) = (paired(&asrpt, &nothing), paired(&over_known, &nothing));
        (most, least) = (most.max(at_most.mean), least.max(at_least.mean));
        seen.push(match (Seen::below(&at_most, 2.0), Seen::above(&at_least, 2.0)) {
            (Seen::Yes, _) => Seen::Yes,
            (_, Seen::Yes) => Seen::No,
            _ => Seen::Unclear,
        });
    }
    Claim::new(
        "Corollary 2",
        "ASRPT has an efficiency ratio of 2 in the preemptive scenario.",
        every(seen),
        format!(
            "The ratio is to the optimum, which is at least the bound and at most the best of all schedulers: in the \
             worst setting ASRPT is between {least:.2} and {most:.2} times the optimum, means over seeds. (The list \
             of contributions says \"less than 2\", the corollary 2.)"
        ),
    )
}
