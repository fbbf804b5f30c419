//! Counterexample to Theorem 4 and its corollaries.
//!
//! The proof takes the delayed reduce work as independent of the virtual schedule's later map work. But while the maps
//! of a large job occupy all machines there, all reduces of smaller jobs wait. The smallest form is a fixed instance; the
//! other has random arrivals that satisfy every assumption of the paper.

use super::WORDS;
use super::runs::completions;
use crate::prelude::*;
use gristmill_scheduler::sim::slotted::lower_bound;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Policies, and their names in figures. The last is `asrpt` with our repair.
const POLICIES: [(&str, &str); 4] =
    [("ASRPT", "asrpt"), ("DSRPT", "dsrpt"), ("Fair", "fair"), ("ASRPT by work", "asrpt:order=work")];
pub(super) const ASRPT: usize = 0;
pub(super) const DSRPT: usize = 1;
const FAIR: usize = 2;
const REPAIRED: usize = 3;

/// Machines of the smallest form, and those of the random one.
const FEW_MACHINES: u32 = 2;
const MACHINES: u32 = 100;

/// Work of the large job of the smallest form, at map.
const LARGE_FEW: f64 = 1000.0;

/// Slots before which the small jobs of the smallest form arrive.
const ARRIVALS: std::ops::RangeInclusive<u32> = 10..=390;
const PAUSE: usize = 20;

/// Random arrivals: in a slot, with this probability, this many jobs of (1, 1), each of which has `LARGE` units of maps
/// instead with the probability `RARE`. The load is 0.6.
const BURST: u32 = 50;
const BURST_PROBABILITY: f64 = 1.0 / 200.0;
const LARGE: f64 = 300_000.0;
const RARE: f64 = 0.0008;

/// Number of seeds of the random form.
const SEEDS: u64 = 3;

fn job(arrival: f64, maps: f64) -> Job {
    Job { arrival, work: [maps, 0.0, 1.0].into(), reduces: vec![1.0], ..Job::default() }
}

/// Returns the flow time of each small job of the smallest form under a policy, by arrival, in slots.
pub(super) fn small_flows(policy: &str) -> anyhow::Result<Vec<(f64, f64)>> {
    let mut jobs = vec![job(0.0, LARGE_FEW)];
    jobs.extend(ARRIVALS.step_by(PAUSE).map(|arrival| job(f64::from(arrival), 1.0)));
    let ends = completions(policy, FEW_MACHINES, true, &jobs)?;
    Ok(jobs.iter().zip(&ends).skip(1).map(|(job, end)| (job.arrival, end - job.arrival)).collect())
}

/// Draws the random arrivals of this many slots.
fn bursts(seed: u64, slots: u32) -> Vec<Job> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut jobs = Vec::new();
    for slot in 0..slots {
        if random.random_bool(BURST_PROBABILITY) {
            let maps = (0..BURST).map(|_| if random.random_bool(RARE) { LARGE } else { 1.0 });
            jobs.extend(maps.map(|maps| job(f64::from(slot), maps)));
        }
    }
    jobs
}

/// Total flow times of the random form over the bound of Lemma 1: by policy, by seed.
pub(super) struct BurstRatios(pub(super) [Vec<f64>; POLICIES.len()]);

impl BurstRatios {
    pub(super) fn new(context: &Context<'_>) -> anyhow::Result<Self> {
        let slots = context.scaled(30_000, 300_000, 1_000_000);
        let runs = each_cell(&[()], &context.seeds(SEEDS), |(), &seed| {
            (context.progress)(&format!("ASRPT: bursts, seed {seed}"));
            burst_ratios(seed, slots)
        })?;
        let mut ratios: [Vec<f64>; POLICIES.len()] = Default::default();
        for run in runs.into_iter().flatten() {
            ratios.iter_mut().zip(run).for_each(|(all, ratio)| all.push(ratio));
        }
        Ok(Self(ratios))
    }

    /// Returns the mean ratio of a policy to the bound.
    pub(super) fn to_bound(&self, policy: usize) -> Interval {
        mean_of(&self.0[policy])
    }

    /// Returns the mean ratio of a policy to the best schedule that is known, which is not better than the optimum.
    pub(super) fn to_best_known(&self, policy: usize) -> Interval {
        let known = |seed: usize| self.0.iter().map(|ratios| ratios[seed]).fold(f64::INFINITY, f64::min);
        let over = self.0[policy].iter().enumerate().map(|(seed, ratio)| ratio / known(seed));
        mean_of(&over.collect::<Vec<f64>>())
    }
}

/// Runs all policies on the random arrivals of a seed.
pub(super) fn burst_ratios(seed: u64, slots: u32) -> anyhow::Result<[f64; POLICIES.len()]> {
    let jobs = bursts(seed, slots);
    let total = |ends: Vec<f64>| jobs.iter().zip(ends).map(|(job, end)| end - job.arrival).sum::<f64>();
    let bound = total(lower_bound::completions(MACHINES, &jobs)?);
    let mut ratios = [0.0; POLICIES.len()];
    for (ratio, (_, policy)) in ratios.iter_mut().zip(POLICIES) {
        *ratio = total(completions(policy, MACHINES, true, &jobs)?) / bound;
    }
    Ok(ratios)
}

/// Draws both forms.
pub(super) fn section(bursts: &BurstRatios) -> anyhow::Result<Section> {
    let mut lines = Vec::new();
    for (name, policy) in POLICIES {
        lines.push(Series::new(name, small_flows(policy)?));
    }
    let small = WORDS.chart("counterexample-small", holes![], lines);
    let bar =
        |(place, (name, _)): (usize, &(&str, &str))| Series::means(*name, [(0.0, bursts.to_bound(place))]);
    let bars = POLICIES.iter().enumerate().map(bar).collect();
    let random = WORDS.chart_by_name("counterexample-bursts", holes![], ["bursts"], bars);
    let [asrpt, fair, repaired] = [ASRPT, FAIR, REPAIRED].map(|policy| bursts.to_bound(policy).mean);
    let holes = holes![
        machines = FEW_MACHINES,
        large = LARGE_FEW,
        many = MACHINES,
        burst = BURST,
        units = LARGE,
        rare = RARE,
        seeds = SEEDS,
        asrpt,
        fair,
        repaired
    ];
    Ok(WORDS.section("counterexample", holes, vec![small, random]))
}
