//! Theorems 1 and 2: the instances of their proofs.
//!
//! Not here: the search for the optimum (`optimum`).

use super::WORDS;
use super::common::{ROUNDING, batch, total};
use super::optimum::is_at_least;
use super::random::ALL;
use crate::prelude::*;
use gristmill_scheduler::sim::fluid::orders::best_in_order;

/// Twice the relative precision of the search for the optimum.
const MARGIN: f64 = 2e-7;

/// True if a matching problem has a solution, and if a schedule of the constructed jobs keeps the threshold; `None` if
/// the search was given up.
pub(super) type Reduced = (bool, Option<bool>);

/// Constructs the jobs of the proof for the first of two targets, and decides both questions. The problem matches 1 and
/// 2 with 10 and 12, which exceed three times the sum of the former as the proof wants.
pub(super) fn reduced(target: f64) -> Reduced {
    let (firsts, seconds, first, second) = ([1.0, 2.0], [10.0, 12.0], 3.0, 22.0);
    let solvable = firsts.iter().any(|one| seconds.iter().any(|other| one + other == target));
    let map = 2.0 * (second + 2.0 * first) * second;
    let long = 18.0 * map;
    let lasts = [-target, target - first - second, long, long];
    let sizes: Vec<[f64; 2]> =
        firsts.into_iter().chain(seconds).chain(lasts).map(|extra| [map, map + extra]).collect();
    let threshold = 36.0 * map + 2.0 * first + second + 3.0 * long;
    let in_order = best_in_order(&sizes).is_some_and(|[best, _]| best <= threshold * (1.0 + ROUNDING));
    // In units of the map work, which suits the solver.
    let jobs: Vec<[f64; 3]> = batch(&sizes).iter().map(|job| job.map(|work| work / map)).collect();
    let by_optimum = || Some(!is_at_least(&jobs, threshold / map * (1.0 + MARGIN))?);
    (solvable, if in_order { Some(true) } else { by_optimum() })
}

/// Judges if the threshold is kept exactly where the matching problem has a solution.
pub(super) fn is_reduction(all: &[Reduced]) -> Claim {
    let seen = all.iter().map(|(solvable, kept)| {
        kept.map_or(CaseVerdict::Unclear, |kept| CaseVerdict::from(kept == *solvable))
    });
    let count = |wanted: fn(&Reduced) -> bool| all.iter().filter(|one| wanted(one)).count();
    let holes = holes![
        instances = all.len(),
        solvable = count(|one| one.0),
        kept = count(|one| one.1 == Some(true)),
        unclear = count(|one| one.1.is_none())
    ];
    WORDS.claim("theorem-1", every(seen), holes)
}

/// Ratio of the totals of a policy and of the alternative in the worse of the two streams, by the parameter k, with the
/// ratio that the proof guarantees.
pub(super) struct Adversary {
    pub(super) k: f64,
    /// By policy.
    pub(super) ratios: Vec<f64>,
    pub(super) guaranteed: f64,
}

impl Adversary {
    /// Runs all policies on both streams of the proof: the batch, then small jobs or large ones, one by one.
    fn run(k: u32) -> anyhow::Result<Self> {
        let k = f64::from(k);
        let (small, large) = ([1.0, 0.5], [k, 1.5 * k]);
        let stream = |next: [f64; 2], start: f64, gap: f64| -> Vec<[f64; 3]> {
            let sizes: Vec<[f64; 2]> =
                vec![small; (k * k) as usize].into_iter().chain(vec![large; k as usize]).collect();
            let later = (0..=(k * k * k) as u32).map(|j| [start + gap * f64::from(j), next[0], next[1]]);
            batch(&sizes).into_iter().chain(later).collect()
        };
        // Each alternative serves what the other jobs wait for first: the small jobs, or the shuffle-heavy ones.
        let after_small = (stream(small, k * k, 1.0), "max-srpt");
        let after_large = (stream(large, 2.0 * k * k, 1.5 * k), "makespan");
        let mut ratios = vec![0.0_f64; ALL.len()];
        for (jobs, alternative) in [after_small, after_large] {
            let other = total(alternative, &jobs)?;
            for (ratio, policy) in ratios.iter_mut().zip(ALL) {
                *ratio = ratio.max(total(policy, &jobs)? / other);
            }
        }
        let one = (k * k / 5.0 + 1.0) / (2.0 * (k + 1.0) + 1.5);
        let other = (2.0 * k / 15.0 + 1.0) * 1.5 * k / (2.0 * (k + 1.0) + 1.5 * k);
        Ok(Self { k, ratios, guaranteed: one.min(other) })
    }
}

/// Judges if no policy is better than the proof allows, at every k, and if the smallest ratio grows with k.
pub(super) fn no_policy_is_competitive(all: &[Adversary]) -> Claim {
    let smallest = |one: &Adversary| one.ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let allowed = all.iter().map(|one| one.guaranteed <= smallest(one));
    let grows = all.windows(2).map(|pair| smallest(&pair[0]) < smallest(&pair[1]));
    let found = all
        .iter()
        .map(|one| format!("{:.2} for k = {} (proved {:.2})", smallest(one), one.k, one.guaranteed));
    let found = found.collect::<Vec<_>>().join(", ");
    WORDS.claim(
        "theorem-2",
        every(allowed.chain(grows).map(CaseVerdict::from)),
        holes![policies = ALL.len(), found],
    )
}

pub(super) fn section(context: &Context<'_>) -> anyhow::Result<Section> {
    const ALL_TARGETS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
    let matched = each(context.scaled(&[3.0, 11.0], ALL_TARGETS, ALL_TARGETS), |&target| reduced(target));
    let sizes = context.scaled(&[4, 8][..], &[4, 8, 16, 32], &[4, 8, 16, 32]);
    let tried = each(sizes, |&k| Adversary::run(k)).into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let claims = vec![is_reduction(&matched), no_policy_is_competitive(&tried)];
    Ok(WORDS.section("hardness", holes![], vec![Block::Claims(claims)]))
}
