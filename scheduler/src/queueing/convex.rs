//! Split with the smallest mean sojourn time, numerically: thesis, equations 14 to 16.
//!
//! Let `R_i = offset_i + D lambda_i / mu_i + E_i / (mu_i - lambda_i)`, where `E_i` is exponential with mean 1
//! for any split. Every `R_i` is convex in `lambda_i` for every outcome, and so is the mean of the largest of
//! them. So equal workers get the same rate, a local minimum is the minimum, and the derivatives bound the
//! distance to it. The method: projected gradients, each rate scaled by its own curvature, and halved steps
//! where they overshoot.

use crate::queueing::level::positive_root;
use crate::queueing::quadrature::QuadratureNode;
use crate::queueing::sojourn::{Largest, log_below};
use crate::queueing::{Dtd, QueueError, QueueSetting, sum};

/// Relative gap to the minimum at which it stops.
const GAP: f64 = 1e-10;
/// Relative difference of means that may be hidden by the rounding of their integrals. Then a step may be accepted if
/// the predicted gain of the next step is smaller, since it shrinks towards the minimum.
const HIDDEN: f64 = 1e-9;
/// Relative difference below which means differ only by rounding, and only the predicted gain is used. Otherwise steps
/// that overshoot would alternate.
const ROUNDING: f64 = 1e-13;
/// Maximum number of steps; after that the gap tells how good the result is.
const STEPS_MAX: u32 = 1000;
/// Maximum divisor of steps.
const CAUTION_MAX: f64 = 1e9;
/// Maximum fraction of the distance to saturation of a worker per step.
const TOWARDS_SATURATION: f64 = 0.9;

/// Split, and its distance from the minimum.
#[derive(Clone, PartialEq, Debug)]
pub struct Least {
    /// Tasks per second for each worker; none is negative.
    pub rates: Vec<f64>,
    /// Mean sojourn time, in seconds.
    pub mean: f64,
    /// Upper bound of the difference to the smallest mean sojourn time of all splits, in seconds.
    pub gap: f64,
}

/// Returns the split with the smallest mean sojourn time of all with non-negative rates, starting from `start`. That
/// must be such a split and leave every worker some spare rate.
///
/// # Errors
/// `start` is not such a split.
pub fn least_sojourn(setting: &QueueSetting<'_>, start: &[f64]) -> Result<Least, QueueError> {
    let servers = setting.servers;
    if start.len() != servers.len() {
        return Err(QueueError::Workers { count: start.len() });
    }
    for (worker, (server, &rate)) in servers.iter().zip(start).enumerate() {
        if !(0.0..server.mu).contains(&rate) {
            let wanted = "at least 0 and below `mu`";
            return Err(QueueError::Worker { worker, field: "rate", value: rate, wanted });
        }
    }
    let (kinds, kind_of) = kinds(setting, start);
    let descent = Descent { kinds, lambda: setting.lambda, delay: setting.delay };
    let mut rates: Vec<f64> = descent.kinds.iter().map(|kind| kind.start).collect();
    let mut slope = descent.slope(&rates);
    let mut caution = 1.0;
    for _ in 0..STEPS_MAX {
        if descent.gap(&rates, &slope) <= GAP * slope.mean {
            break;
        }
        let Some((next, next_slope, found)) = descent.step(&rates, &slope, caution) else { break };
        caution = (0.5 * found).max(1.0 / 64.0);
        (rates, slope) = (next, next_slope);
    }
    let gap = descent.gap(&rates, &slope);
    Ok(Least { rates: kind_of.iter().map(|&kind| rates[kind]).collect(), mean: slope.mean, gap })
}

/// Group of equal workers.
struct CurveKind {
    mu: f64,
    offset: f64,
    count: f64,
    /// Mean of their rates at the start.
    start: f64,
}

/// Returns the groups, and the group of each worker.
fn kinds(setting: &QueueSetting<'_>, start: &[f64]) -> (Vec<CurveKind>, Vec<usize>) {
    let servers = setting.servers;
    let mut order: Vec<usize> = (0..servers.len()).collect();
    let key = |i: usize| (servers[i].mu.to_bits(), (servers[i].offset + 0.0).to_bits());
    order.sort_by_key(|&i| key(i));
    let mut kinds: Vec<CurveKind> = Vec::new();
    let mut kind_of = vec![0; servers.len()];
    let mut last = None;
    for i in order {
        if last != Some(key(i)) {
            last = Some(key(i));
            kinds.push(CurveKind { mu: servers[i].mu, offset: servers[i].offset, count: 0.0, start: 0.0 });
        }
        let place = kinds.len() - 1;
        kinds[place].count += 1.0;
        kinds[place].start += start[i];
        kind_of[i] = place;
    }
    for kind in &mut kinds {
        kind.start /= kind.count;
    }
    (kinds, kind_of)
}

/// Mean sojourn time at a split, with its derivatives by the rate of one worker of each group.
struct Slope {
    mean: f64,
    first: Vec<f64>,
    /// Approximate second derivatives; never below them by much, always above 0.
    second: Vec<f64>,
}

struct Descent {
    kinds: Vec<CurveKind>,
    lambda: f64,
    delay: f64,
}

impl Descent {
    fn times(&self, rates: &[f64]) -> Vec<(Dtd, f64)> {
        let pairs = self.kinds.iter().zip(rates);
        let time = |(kind, rate): (&CurveKind, &f64)| {
            let offset = kind.offset + self.delay * rate / kind.mu;
            (Dtd { a: kind.mu - rate, b: 0.0, offset }, kind.count)
        };
        pairs.map(time).collect()
    }

    fn slope(&self, rates: &[f64]) -> Slope {
        let times = self.times(rates);
        let largest = Largest::of_groups(times.clone());
        let mut points = Vec::new();
        let mean = largest.mean(&mut |point| points.push(point));
        let mut slope = Slope { mean, first: vec![0.0; times.len()], second: vec![0.0; times.len()] };
        let mut logs = vec![0.0; times.len()];
        for QuadratureNode { at, weight } in points {
            let mut all = 0.0;
            for (log, (time, count)) in logs.iter_mut().zip(&times) {
                *log = log_below(time.a * (largest.floor() - time.offset + at));
                all += count * *log;
            }
            for (i, (time, _)) in times.iter().enumerate() {
                let x = largest.floor() - time.offset + at;
                let others = weight * (all - logs[i] - time.a * x).exp();
                // Minus the derivative of `(mu - lambda) x` by lambda, where x decreases by D / mu.
                let inner = x + time.a * self.delay / self.kinds[i].mu;
                slope.first[i] += inner * others;
                slope.second[i] += inner * inner * others;
            }
        }
        slope
    }

    /// Returns how far the mean can be above its minimum: it is convex, so its linear model is a lower bound.
    fn gap(&self, rates: &[f64], slope: &Slope) -> f64 {
        let mut order: Vec<usize> = (0..rates.len()).collect();
        order.sort_by(|&i, &j| slope.first[i].total_cmp(&slope.first[j]));
        let mut left = self.lambda;
        let mut gap = sum((0..rates.len()).map(|i| self.kinds[i].count * rates[i] * slope.first[i]));
        for i in order {
            let most = (self.kinds[i].count * self.kinds[i].mu).min(left);
            gap -= most * slope.first[i];
            left -= most;
        }
        gap.max(0.0)
    }

    /// Returns a better split, its slope and the divisor of the step. `None` if rounding hides any improvement.
    fn step(&self, rates: &[f64], slope: &Slope, caution: f64) -> Option<(Vec<f64>, Slope, f64)> {
        let mut caution = caution;
        let promised =
            |rates: &[f64], slope: &Slope| self.promise(rates, slope, &self.project(rates, slope, 1.0));
        while caution < CAUTION_MAX {
            let next = self.project(rates, slope, caution);
            let expected = -self.promise(rates, slope, &next);
            let next_slope = self.slope(&next);
            let falls = next_slope.mean <= slope.mean + 0.25 * expected;
            let nears =
                || -expected <= HIDDEN * slope.mean && promised(&next, &next_slope) < promised(rates, slope);
            if falls && ROUNDING * slope.mean < -expected || nears() {
                return Some((next, next_slope, caution));
            }
            caution *= 4.0;
        }
        None
    }

    /// Returns the decrease of the mean towards the next split by its derivatives. Both splits have the same sum of
    /// rates, so the common part of the derivatives has no effect. It is subtracted first, so that it does not hide the
    /// rest.
    fn promise(&self, rates: &[f64], slope: &Slope, next: &[f64]) -> f64 {
        let common = slope.first.iter().copied().fold(f64::INFINITY, f64::min);
        let of = |i: usize| self.kinds[i].count * (slope.first[i] - common) * (rates[i] - next[i]);
        sum((0..rates.len()).map(of))
    }

    /// Minimises the quadratic model with these derivatives over the splits that are near enough.
    fn project(&self, rates: &[f64], slope: &Slope, caution: f64) -> Vec<f64> {
        let bound = |i: usize| rates[i] + TOWARDS_SATURATION * (self.kinds[i].mu - rates[i]);
        let rate = |i: usize, price: f64| {
            let wished = rates[i] - (slope.first[i] - price) / (caution * slope.second[i]);
            wished.clamp(0.0, bound(i))
        };
        let given = |price: f64| sum((0..rates.len()).map(|i| self.kinds[i].count * rate(i, price)));
        // All derivatives are above 0, and so is the price at which the rates have the right sum.
        let price = positive_root(|price| given(price) < self.lambda);
        (0..rates.len()).map(|i| rate(i, price)).collect()
    }
}
