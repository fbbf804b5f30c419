//! Checks theorems and corollaries of the overlap paper on random small instances. Totals are compared with the best of
//! all policies and orders, and with a lower bound. Where these two do not decide, the optimum does.

use super::WORDS;
use super::common::{ROUNDING, batch, jobs_of, simulate, total};
use super::optimum::is_at_least;
use crate::prelude::*;
use gristmill_scheduler::sim::fluid::lower_bound::lower_bound;
use gristmill_scheduler::sim::fluid::orders::{best_in_order, completions_in_order};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// All policies of this model. The best of them is the best known schedule.
pub(super) const ALL: [&str; 9] = [
    "fcfs",
    "ps",
    "map-fifo-shuffle-ps",
    "max-srpt",
    "max-srpt:shuffle=head",
    "split-srpt",
    "split-srpt:idle=lost",
    "split-srpt:idle=empty",
    "makespan",
];

/// Jobs of an instance as a batch and as a stream.
struct RandomInstance {
    sizes: Vec<[f64; 2]>,
    batch: Vec<[f64; 3]>,
    online: Vec<[f64; 3]>,
}

/// Result of one random instance.
#[derive(Clone, Copy, Default)]
pub(super) struct InstanceResult {
    /// Ratio to the best known schedule, relative to the limit of the corollary or theorem: Corollaries
    /// 4, 6, Theorems 3, 5.
    pub(super) parts: [f64; 4],
    /// Same with the ratio to a bound that no schedule can beat: a value within it is within, whatever
    /// the optimum.
    pub(super) at_most: [f64; 4],
    /// True if the limit is kept by the optimum, false if not, where the two do not decide; `None` where they do, or if
    /// the search for the optimum was given up.
    pub(super) by_optimum: [Option<bool>; 4],
    /// Makespan of `makespan` divided by `max(sum x, sum y)`.
    pub(super) makespan: f64,
    /// Total of the fixed order by max(x, y), minus that of MaxSRPT.
    pub(super) fixed_order_excess: f64,
    /// True if a policy beats the best common order.
    pub(super) beats_orders: bool,
}

fn draw_sizes(random: &mut ChaCha8Rng, jobs: usize) -> Vec<[f64; 2]> {
    let mut quarter = || f64::from(random.random_range(1..=48_u32)) / 4.0;
    (0..jobs).map(|_| [quarter(), quarter()]).collect()
}

impl RandomInstance {
    fn draw(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let jobs = random.random_range(2..=6_usize);
        let sizes = draw_sizes(&mut random, jobs);
        let mut arrival = 0.0;
        let online = sizes
            .iter()
            .map(|&[map, shuffle]| {
                arrival += f64::from(random.random_range(0..=16_u32)) / 4.0;
                [arrival, map, shuffle]
            })
            .collect();
        Self { batch: batch(&sizes), sizes, online }
    }

    /// Returns the limits of Corollary 4 and Theorem 3, then of Corollary 6 and Theorem 5.
    fn bounds(&self) -> [f64; 2] {
        let imbalance = |&[map, shuffle]: &[f64; 2]| (map / shuffle).max(shuffle / map);
        let largest = self.sizes.iter().map(imbalance).fold(1.0, f64::max);
        let smallest = self.sizes.iter().map(imbalance).fold(f64::INFINITY, f64::min);
        [2.0 * largest / (1.0 + largest), 1.0 + 1.0 / smallest]
    }

    /// Returns the smallest totals of all policies, of the batch and of the stream.
    fn best(&self) -> anyhow::Result<[f64; 2]> {
        let mut best = [f64::INFINITY; 2];
        for policy in ALL {
            best[0] = best[0].min(total(policy, &self.batch)?);
            best[1] = best[1].min(total(policy, &self.online)?);
        }
        Ok(best)
    }

    /// Returns the end of the batch under `makespan`, divided by the larger sum of a station's work.
    fn makespan(&self) -> anyhow::Result<f64> {
        let mut makespan = 0.0;
        simulate("makespan", jobs_of(&self.batch), |record| makespan = record.completion.max(makespan))?;
        let sum = |station: usize| self.sizes.iter().map(|sizes| sizes[station]).sum::<f64>();
        Ok(makespan / sum(0).max(sum(1)))
    }

    /// Returns the total of the batch in the fixed order by max(x, y).
    fn in_fixed_order(&self) -> f64 {
        let mut fixed = self.sizes.clone();
        fixed.sort_by(|a, b| a[0].max(a[1]).total_cmp(&b[0].max(b[1])));
        completions_in_order(&fixed).iter().sum()
    }
}

fn scaled(sizes: &[[f64; 3]], speed: f64) -> Vec<[f64; 3]> {
    sizes.iter().map(|&[arrival, map, shuffle]| [arrival, map / speed, shuffle / speed]).collect()
}

fn result(seed: u64) -> anyhow::Result<InstanceResult> {
    let instance = RandomInstance::draw(seed);
    let RandomInstance { batch, online, .. } = &instance;
    let [ratio_4, ratio_6] = instance.bounds();
    let [in_order, _] = best_in_order(&instance.sizes).unwrap_or([f64::INFINITY; 2]);
    let [of_policies, best_online] = instance.best()?;
    let best_batch = of_policies.min(in_order);
    let max_srpt = total("max-srpt", batch)?;
    let split_srpt = total("split-srpt", batch)?.max(total("split-srpt:idle=lost", batch)?);
    // Limits: a larger ratio in a batch, and a higher speed in a stream.
    let over = |[batch, online]: [f64; 2], faster: [f64; 2]| {
        [max_srpt / batch / ratio_4, split_srpt / batch / ratio_6, faster[0] / online, faster[1] / online]
    };
    let faster = [
        total("max-srpt:shuffle=head", &scaled(online, ratio_4))?,
        total("split-srpt:idle=lost", &scaled(online, ratio_6))?,
    ];
    let bounds = [batch, online].map(|jobs| lower_bound(jobs.iter().copied()));
    let (parts, at_most) = (over([best_batch, best_online], faster), over(bounds, faster));
    // The optimum that would just keep each limit.
    let [of_batch, of_online] = [[max_srpt / ratio_4, split_srpt / ratio_6], faster];
    let needed = [(batch, of_batch[0]), (batch, of_batch[1]), (online, of_online[0]), (online, of_online[1])];
    let mut by_optimum = [None; 4];
    for (place, (jobs, least)) in needed.into_iter().enumerate() {
        if keeps(parts[place]) && !keeps(at_most[place]) {
            by_optimum[place] = is_at_least(jobs, least);
        }
    }
    Ok(InstanceResult {
        parts,
        at_most,
        by_optimum,
        makespan: instance.makespan()?,
        fixed_order_excess: instance.in_fixed_order() - max_srpt,
        beats_orders: of_policies < in_order * (1.0 - ROUNDING),
    })
}

pub(super) fn section(context: &Context<'_>) -> anyhow::Result<Section> {
    let seeds = context.seeds(context.scaled(100, 2_000, 20_000));
    let results = each(&seeds, |&seed| result(seed)).into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let claims = Block::Claims(claims(context.first_seed, &results));
    Ok(WORDS.section("sections-3-and-4", holes![], vec![claims]))
}

/// Claims about bounds, with their indices in [`InstanceResult::parts`].
const BOUNDS: [(&str, usize); 4] =
    [("theorem-3", 2), ("corollary-4", 0), ("theorem-5", 3), ("corollary-6", 1)];

pub(super) fn claims(seed: u64, results: &[InstanceResult]) -> Vec<Claim> {
    let instances = results.len();
    let late = results.iter().map(|result| result.makespan).fold(0.0, f64::max);
    let mut claims = vec![WORDS.claim("earliest-makespan", late <= 1.0 + ROUNDING, holes![instances, late])];
    claims.extend(BOUNDS.map(|(key, at)| within_bound(key, seed, results, at)));
    let excesses = results.iter().map(|result| result.fixed_order_excess);
    let differ: Vec<f64> = excesses.filter(|excess| ROUNDING < excess.abs()).collect();
    let better = differ.iter().filter(|&&excess| 0.0 < excess).count();
    let of_order = holes![instances, differ = differ.len(), better];
    claims.push(WORDS.claim("sorted-by-size", differ.is_empty(), of_order));
    let beaten = results.iter().filter(|result| result.beats_orders).count();
    claims.push(WORDS.claim("no-common-order", beaten != 0, holes![beaten, instances]));
    claims
}

/// True if a ratio relative to its limit is within it.
fn keeps(part: f64) -> bool {
    part <= 1.0 + ROUNDING
}

fn within_bound(key: &str, seed: u64, results: &[InstanceResult], at: usize) -> Claim {
    let worst = results.iter().map(|result| result.parts[at]).fold(0.0, f64::max);
    let within = |result: &InstanceResult| match (
        keeps(result.parts[at]),
        keeps(result.at_most[at]),
        result.by_optimum[at],
    ) {
        (false, ..) | (true, false, Some(false)) => CaseVerdict::No,
        (true, true, _) | (true, false, Some(true)) => CaseVerdict::Yes,
        (true, false, None) => CaseVerdict::Unclear,
    };
    let programs = results.iter().filter(|result| result.by_optimum[at].is_some()).count();
    let seen: Vec<CaseVerdict> = results.iter().map(within).collect();
    let [broken, kept, unclear] =
        [CaseVerdict::No, CaseVerdict::Yes, CaseVerdict::Unclear].map(|wanted| wanted.count(&seen));
    let found = holes![instances = results.len(), seed, broken, kept, programs, unclear, worst];
    WORDS.claim(key, every(seen), holes![found = WORDS.note("within-bound", found)])
}
