//! Printed equations 32, 33, 40, 43, 46 and 47, which are wrong or cannot be computed as printed, compared with
//! their replacements.
//!
//! Not here: the equations that are used (`gristmill_scheduler::placement`, `gristmill_scheduler::queueing::sizing`).

use super::WORDS;
use super::common::placed;
use crate::prelude::*;
use gristmill_scheduler::queueing::sizing::fork_join;

pub(super) fn section() -> anyhow::Result<Section> {
    let claims = vec![
        transform("equation-32", errors(equation_32)),
        transform("equation-33", errors(equation_33)),
        equation_40()?,
        equation_43(),
        equation_46(),
        equation_47(),
    ];
    Ok(WORDS.section("equations", holes![], vec![Block::Claims(claims)]))
}

/// Returns the largest relative errors of two transforms of the completion time, for M/M/1 workers of equal completion
/// times at a total rate of 1.
fn errors(transforms: impl Fn([f64; 2], f64) -> [f64; 2]) -> [f64; 2] {
    let mut worst = [0.0_f64; 2];
    for ([lambda, mu], s) in
        [[0.25, 1.0], [0.75, 1.5]].into_iter().flat_map(|one| [0.1, 10.0].map(|s| (one, s)))
    {
        let off = transforms([lambda, mu], s).map(|value| (value * (1.0 + s / (mu - lambda)) - 1.0).abs());
        worst = [worst[0].max(off[0]), worst[1].max(off[1])];
    }
    worst
}

/// Pollaczek and Khinchine's transform with the total rate of arrivals, as printed, and with that of the worker.
fn equation_32([lambda, mu]: [f64; 2], s: f64) -> [f64; 2] {
    let service = mu / (mu + s);
    [1.0, lambda].map(|rate| (1.0 - lambda / mu) * s * service / (s - rate * (1.0 - service)))
}

/// Service with the transform of all waiting times, as printed, and of those above 0.
fn equation_33([lambda, mu]: [f64; 2], s: f64) -> [f64; 2] {
    let (idle, service, above) = (1.0 - lambda / mu, mu / (mu + s), 1.0 / (1.0 + s / (mu - lambda)));
    [idle + (1.0 - idle) * above, above].map(|waiting| service * (idle + (1.0 - idle) * waiting))
}

/// Judges the errors of a printed transform and of the corrected one.
pub(super) fn transform(key: &str, [printed, corrected]: [f64; 2]) -> Claim {
    WORDS.claim(key, printed < 1e-9, holes![printed = 100.0 * printed, corrected])
}

fn equation_40() -> anyhow::Result<Claim> {
    let (mu, alpha): (f64, f64) = (0.8, 3.0);
    let printed = |delay: f64| {
        ((alpha + delay) * mu - ((mu * (alpha - delay)).powi(2) + 4.0 * delay * mu).sqrt()) / (2.0 * delay)
    };
    let right = mu - 1.0 / alpha;
    let split = placed("m-ep", 40, 10.0)?;
    let off = split.means.iter().map(|mean| (mean / split.means[0] - 1.0).abs());
    Ok(holds_for_every_delay([printed(0.0), printed(1e-14), right], off.fold(0.0, f64::max)))
}

/// Judges the values of equation 40 at D = 0 and close to it, the right value there, and the error of our
/// form.
pub(super) fn holds_for_every_delay([zero, tiny, right]: [f64; 3], spread: f64) -> Claim {
    let holds = zero.is_finite() && (tiny - right).abs() < 1e-6;
    WORDS.claim("equation-40", holds, holes![zero, tiny, right, spread])
}

/// Squared variabilities of exponential arrivals and service.
const VARIABILITIES: (f64, f64) = (1.0, 1.0);

/// Returns times of an M/M/1 queue: by equation 43 as printed, with its missing factor, and exactly.
fn queue_times(mu: f64, lambda: f64) -> [f64; 3] {
    let (ca2, cs2) = VARIABILITIES;
    let printed = lambda * (ca2 + cs2) / (2.0 * (mu - lambda)) + 1.0 / mu;
    let kingman = lambda * (ca2 + cs2) / (2.0 * mu * (mu - lambda)) + 1.0 / mu;
    [printed, kingman, 1.0 / (mu - lambda)]
}

fn equation_43() -> Claim {
    let mut worst = [0.0_f64; 2];
    for (mu, lambda) in [(0.5, 0.25), (0.8, 0.4), (1.0, 0.5), (2.0, 1.0), (4.0, 3.0)] {
        let [printed, kingman, markov] = queue_times(mu, lambda);
        worst[0] = worst[0].max((kingman / markov - 1.0).abs());
        worst[1] = worst[1].max((printed / markov - 1.0).abs());
    }
    is_kingmans(worst)
}

/// Judges the errors of Kingman's formula and of the printed one for M/M/1 queues.
pub(super) fn is_kingmans([kingman, printed]: [f64; 2]) -> Claim {
    WORDS.claim("equation-43", printed < 1e-9, holes![printed = 100.0 * printed, kingman])
}

fn equation_46() -> Claim {
    let counts = 3..=20;
    let zeros = counts.clone().filter(|&count| printed_46(count) == 0).count();
    has_its_minimum(zeros as u32, counts.count())
}

/// Judges the number of worker counts for which the printed function is 0.
pub(super) fn has_its_minimum(zeros: u32, numbers: usize) -> Claim {
    WORDS.claim("equation-46", zeros == 0, holes![zeros, numbers])
}

/// Returns the sum of equation 46 as printed, exact up to 60 workers.
fn printed_46(count: u32) -> i128 {
    let count = i128::from(count);
    let (mut binomial, mut total) = (1, 0);
    for i in 1..=count {
        binomial = binomial * (count - i + 1) / i;
        total += if i % 2 == 1 { i * binomial } else { -i * binomial };
    }
    total
}

fn equation_47() -> Claim {
    let off = |(n, right): (u32, f64)| (n, (alternating_47(n) / right - 1.0).abs().max(1e-17));
    let lost = (1..=60).zip(fork_join(60)).map(off).find(|(_, off)| 0.01 < *off);
    can_be_computed(lost.map_or(f64::NAN, |(n, _)| f64::from(n)))
}

/// Judges the number of workers from which on the sums are lost; NaN for none.
pub(super) fn can_be_computed(lost: f64) -> Claim {
    WORDS.claim("equation-47", lost.is_nan(), holes![lost])
}

/// Returns `V_n` of equation 47 as printed.
fn alternating_47(count: u32) -> f64 {
    let binomials = |n: u32| {
        (1..=n).scan(1.0, move |binomial, i| {
            *binomial *= f64::from(n - i + 1) / f64::from(i);
            Some(*binomial)
        })
    };
    let mut total = 0.0;
    for (i, outer) in (1..=count).zip(binomials(count)) {
        let mut inner = 0.0;
        let mut factor = 1.0 / f64::from(i).powi(2);
        for (j, binomial) in (1..=i).zip(binomials(i)) {
            inner += binomial * factor;
            factor *= f64::from(j) / f64::from(i);
        }
        total += if i % 2 == 1 { outer * inner } else { -outer * inner };
    }
    total
}
