//! Best number of workers, and best mix of kinds for a budget: thesis, chapter 7, Lemmas 10 to 12.
//!
//! With more workers each gets fewer tasks, but the slowest of them is slower, so there is an optimal number. All are
//! M/M/1 queues here, with the work split so that all have the same spare rate.
//! Deviations: equation 46 is printed with `n! / ((n-i)! (i-1)!)`, which makes it 0 for every `n` above 1; the proof
//! has `C(n, i) / i`, whose alternating sum is the harmonic number. The alternating sums of equation 47 cancel beyond
//! some thirty workers; an equal integral is used here.

use crate::queueing::quadrature::{QuadratureNode, integrate};
use crate::queueing::{QueueError, check_delay, finite_above_zero};
use std::ops::RangeInclusive;

/// Maximum number of workers tried.
pub const COUNT_MAX: u32 = 1_000_000;
/// Lower maximum for Lemma 11, whose integrals are all computed at once.
pub(crate) const FORK_JOIN_COUNT_MAX: u32 = 20_000;
/// Maximum number of combinations tried for a budget.
pub const COMBINATIONS_MAX: u64 = 20_000_000;
/// A budget counts as spent if the rest is less than this fraction of it.
const SPENT: f64 = 1e-9;

/// Mean time that is minimised over the number `n` of equal workers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Law {
    /// Lemma 10: `H_n / (mu - lambda / n)`, independent M/M/1 queues (equation 46, corrected).
    Lemma10,
    /// Lemma 11: the interpolation of Makowski and Varma for fork and join (equation 47).
    Lemma11,
    /// Lemma 10 with the offset of figure 7-1: plus `D lambda / (n mu)`, with D in seconds.
    Delayed(f64),
}

/// Number of workers and its mean time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClusterSize {
    /// Number of workers.
    pub count: u32,
    /// Mean sojourn time, in seconds.
    pub mean: f64,
}

/// Returns the mean sojourn time for every number of workers in `range` that can carry the load: each serves `mu` tasks
/// per second, `lambda` tasks arrive per second.
///
/// # Errors
/// Rates or D out of range, and a range beyond the limits.
pub fn curve(
    mu: f64,
    lambda: f64,
    law: Law,
    range: RangeInclusive<u32>,
) -> Result<Vec<ClusterSize>, QueueError> {
    finite_above_zero("mu", mu)?;
    finite_above_zero("lambda", lambda)?;
    if let Law::Delayed(delay) = law {
        check_delay(delay)?;
    }
    let limit = if law == Law::Lemma11 { FORK_JOIN_COUNT_MAX } else { COUNT_MAX };
    if limit < *range.end() {
        let value = f64::from(*range.end());
        return Err(QueueError::Setting {
            field: "range",
            value,
            wanted: "within the limit on numbers of workers",
        });
    }
    let joined = if law == Law::Lemma11 { fork_join(*range.end()) } else { Vec::new() };
    let mut points = Vec::new();
    let mut harmonic = 0.0;
    for count in 1..=*range.end() {
        let workers = f64::from(count);
        harmonic += 1.0 / workers;
        let spare = mu - lambda / workers;
        if !range.contains(&count) || spare <= 0.0 {
            continue;
        }
        let mean = match law {
            Law::Lemma10 => harmonic / spare,
            Law::Delayed(delay) => delay * lambda / (workers * mu) + harmonic / spare,
            Law::Lemma11 => {
                let load = lambda / (workers * mu);
                (harmonic + (joined[count as usize - 1] - harmonic) * load) / spare
            }
        };
        points.push(ClusterSize { count, mean });
    }
    Ok(points)
}

/// Returns the number of workers with the smallest mean sojourn time, ties to the smaller number; `None` if none in
/// `range` can carry the load.
///
/// # Errors
/// As for [`curve`].
pub fn best_count(
    mu: f64,
    lambda: f64,
    law: Law,
    range: RangeInclusive<u32>,
) -> Result<Option<ClusterSize>, QueueError> {
    Ok(curve(mu, lambda, law, range)?
        .into_iter()
        .reduce(|best, point| if point.mean < best.mean { point } else { best }))
}

/// Returns `V_1 ... V_n` of Lemma 11, the heavy-traffic limits of fork and join: `V_n = integral of sum over k <= n of
/// [(1 - e^-u)^k - (1 - (1 + u) e^-u)^k] / (k u)`, which equals the printed `sum of C(n,i) (-1)^(i+1) sum of C(i,j)
/// (j-1)! / i^(j+1)`.
#[must_use]
pub fn fork_join(count: u32) -> Vec<f64> {
    // The terms vanish where `n e^-u` does; they are smooth at unit scale, so a fixed rule is exact.
    let end = 45.0 + f64::from(count).ln().max(0.0);
    let mut points: Vec<QuadratureNode> = Vec::new();
    let mut low = 0.0;
    while low < end {
        integrate(&|_| 0.0, low, low + 0.5, 1.0, &mut |point| points.push(point));
        low += 0.5;
    }
    let mut powers: Vec<[f64; 4]> = points
        .iter()
        .map(|QuadratureNode { at: u, weight }| {
            let (full, part) = (-(-u).exp_m1(), below_erlang(*u));
            [full, part, full * weight / u, part * weight / u]
        })
        .collect();
    let mut total = 0.0;
    (1..=count)
        .map(|k| {
            let mut term = 0.0;
            for [full, part, full_power, part_power] in &mut powers {
                term += *full_power - *part_power;
                *full_power *= *full;
                *part_power *= *part;
            }
            total += term / f64::from(k);
            total
        })
        .collect()
}

/// Returns `1 - (1 + u) e^-u`, accurately also where it is small.
fn below_erlang(u: f64) -> f64 {
    -(-u).exp_m1() - u * (-u).exp()
}

/// Kind of worker that can be bought.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkerPrice {
    /// Tasks per second of the worker.
    pub mu: f64,
    /// Price of the worker, in the unit of the budget.
    pub price: f64,
}

/// Part of a budget that is spent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spend {
    /// At most the budget.
    AtMost,
    /// The whole budget, as Lemma 12 is printed.
    Exactly,
}

/// Mix of workers.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerMix {
    /// Number of each kind, in the order of the menu.
    pub counts: Vec<u32>,
    /// Mean sojourn time (equation 48), in seconds.
    pub mean: f64,
    /// Cost of the mix, in the unit of the budget.
    pub cost: f64,
}

/// Returns the mix of workers with the smallest mean sojourn time that the budget buys, by trying all. Lemma
/// 12, equation 48: `f = N H_N / (sum of N_i mu_i - lambda)`. Ties go to the mix with fewer of the first
/// kind. `None` if no mix can carry the load. At low load equation 48 lets slow workers pass work on (a
/// negative rate).
///
/// # Errors
/// No kind, rates, prices or a budget out of range, and more combinations than [`COMBINATIONS_MAX`].
pub fn best_mix(
    menu: &[WorkerPrice],
    lambda: f64,
    budget: f64,
    spend: Spend,
) -> Result<Option<WorkerMix>, QueueError> {
    if menu.is_empty() {
        return Err(QueueError::Workers { count: 0 });
    }
    finite_above_zero("lambda", lambda)?;
    finite_above_zero("budget", budget)?;
    for (worker, offer) in menu.iter().enumerate() {
        for (field, value) in [("mu", offer.mu), ("price", offer.price)] {
            if !(value.is_finite() && 0.0 < value) {
                return Err(QueueError::Worker { worker, field, value, wanted: "a finite number above 0" });
            }
        }
        if f64::from(COUNT_MAX) < budget / offer.price {
            let wanted = "enough for the budget to buy at most a million of them";
            return Err(QueueError::Worker { worker, field: "price", value: offer.price, wanted });
        }
    }
    let mut harmonic = vec![0.0];
    let mut search =
        MixSearch { menu, lambda, budget, spend, tried: 0, counts: vec![0; menu.len()], best: None };
    search.buy(0, 0.0, 0.0, 0, &mut harmonic)?;
    Ok(search.best)
}

struct MixSearch<'a> {
    menu: &'a [WorkerPrice],
    lambda: f64,
    budget: f64,
    spend: Spend,
    tried: u64,
    counts: Vec<u32>,
    best: Option<WorkerMix>,
}

impl MixSearch<'_> {
    /// Tries all numbers of the kinds from `kind` on, given the cost, number and total rate of the workers chosen so
    /// far.
    fn buy(
        &mut self,
        kind: usize,
        spent: f64,
        rate: f64,
        count: usize,
        harmonic: &mut Vec<f64>,
    ) -> Result<(), QueueError> {
        let Some(offer) = self.menu.get(kind) else {
            self.judge(spent, rate, count, harmonic);
            return Ok(());
        };
        let rest = (self.budget - spent) / offer.price;
        let most = (rest + SPENT * self.budget / offer.price).floor();
        let last = kind + 1 == self.menu.len();
        let least = if last && self.spend == Spend::Exactly { most } else { 0.0 };
        let mut number = least;
        while number <= most {
            self.tried += 1;
            if COMBINATIONS_MAX < self.tried {
                return Err(QueueError::Combinations { limit: COMBINATIONS_MAX });
            }
            self.counts[kind] = number as u32;
            let (spent, rate) = (spent + number * offer.price, rate + number * offer.mu);
            self.buy(kind + 1, spent, rate, count + number as usize, harmonic)?;
            number += 1.0;
        }
        Ok(())
    }

    fn judge(&mut self, spent: f64, rate: f64, count: usize, harmonic: &mut Vec<f64>) {
        let left = self.budget - spent;
        let wrong_sum = self.spend == Spend::Exactly && SPENT * self.budget < left.abs();
        if count == 0 || rate <= self.lambda || wrong_sum {
            return;
        }
        while harmonic.len() <= count {
            let next = harmonic[harmonic.len() - 1] + 1.0 / harmonic.len() as f64;
            harmonic.push(next);
        }
        let mean = count as f64 * harmonic[count] / (rate - self.lambda);
        if self.best.as_ref().is_none_or(|best| mean < best.mean) {
            self.best = Some(WorkerMix { counts: self.counts.clone(), mean, cost: spent });
        }
    }
}
