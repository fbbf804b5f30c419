//! Printed equations 40, 43, 46 and 47, which are wrong or cannot be computed as printed, compared with
//! their replacements.
//!
//! Not here: the equations that are used (`gristmill_scheduler::placement`, `gristmill_scheduler::queueing::sizing`).

use super::{WORDS, placed};
use crate::words::holes;
use crate::{Block, Cell, Claim, Section, Series};
use gristmill_scheduler::queueing::sizing::{Law, curve, fork_join};

pub(super) fn section() -> anyhow::Result<Section> {
    let (forty_six, forty_six_claim) = equation_46()?;
    let (forty_seven, forty_seven_claim) = equation_47();
    let (forty_three, forty_three_claim) = equation_43();
    let claims = vec![equation_40()?, forty_three_claim, forty_six_claim, forty_seven_claim];
    let blocks = vec![forty_three, forty_six, forty_seven, Block::Claims(claims)];
    Ok(WORDS.section("equations", holes![], blocks))
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

/// Returns the arrival rate that equation 44 yields for a time.
fn equation_44(mu: f64, time: f64) -> f64 {
    let (ca2, cs2) = VARIABILITIES;
    mu / (1.0 + (ca2 + cs2) / mu / (2.0 * time - 2.0 / mu))
}

fn equation_43() -> (Block, Claim) {
    let mut rows = Vec::new();
    let mut worst = [0.0_f64; 2];
    for (mu, lambda) in [(0.5, 0.25), (0.8, 0.4), (1.0, 0.5), (2.0, 1.0), (4.0, 3.0)] {
        let [printed, kingman, markov] = queue_times(mu, lambda);
        worst[0] = worst[0].max((kingman / markov - 1.0).abs());
        worst[1] = worst[1].max((printed / markov - 1.0).abs());
        let back = [printed, kingman].map(|time| equation_44(mu, time));
        let numbers = [mu, lambda, printed, kingman, markov, back[0], back[1]];
        rows.push(numbers.map(Cell::number).to_vec());
    }
    (WORDS.table("equation-43", holes![], rows), is_kingmans(worst))
}

/// Judges the errors of Kingman's formula and of the printed one for M/M/1 queues.
pub(super) fn is_kingmans([kingman, printed]: [f64; 2]) -> Claim {
    WORDS.claim("equation-43", printed < 1e-9, holes![printed = 100.0 * printed, kingman])
}

fn equation_46() -> anyhow::Result<(Block, Claim)> {
    let (mu, lambda) = (1.0, 2.0);
    let mut zeros = 0;
    let mut rows = Vec::new();
    for point in curve(mu, lambda, Law::Lemma10, 3..=20)? {
        let printed = printed_46(point.count);
        zeros += u32::from(printed == 0);
        let count = f64::from(point.count);
        rows.push([count, printed as f64 / (mu - lambda / count), point.mean].map(Cell::number).to_vec());
    }
    let claim = has_its_minimum(zeros, rows.len());
    Ok((WORDS.table("equation-46", holes![], rows), claim))
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

fn equation_47() -> (Block, Claim) {
    const COUNT: u32 = 60;
    let off = |(n, right): (u32, f64)| (f64::from(n), (alternating_47(n) / right - 1.0).abs().max(1e-17));
    let points: Vec<(f64, f64)> = (1..=COUNT).zip(fork_join(COUNT)).map(off).collect();
    let lost = points.iter().find(|(_, off)| 0.01 < *off).map_or(f64::NAN, |(n, _)| *n);
    let chart = WORDS.chart("equation-47", holes![], vec![Series::new("alternating sum", points)]);
    (chart, can_be_computed(lost))
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
