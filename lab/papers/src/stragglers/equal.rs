//! Figure 4-1: mean sojourn time of equal workers against arrival rate and number of workers.

use super::WORDS;
use super::common::curve;
use crate::prelude::*;
use gristmill_scheduler::placement::place;
use gristmill_scheduler::queueing::Server;
use gristmill_scheduler::queueing::sizing::{Law, best_count, curve as by_count};

/// Returns the MST of 60 equal workers.
fn of_sixty(lambda: f64) -> anyhow::Result<f64> {
    Ok(place("pure-stochastic", &vec![Server::exponential(1.0); 60], lambda)?.mean)
}

/// Section on 60 equal workers, and on equal workers at lambda 2.
pub(super) fn figure_4_1() -> anyhow::Result<Section> {
    let rates = curve((1..=118).map(|i| 0.5 * f64::from(i)), |lambda| Ok(Some(of_sixty(lambda)?)))?;
    let numbers = by_count(1.0, 2.0, Law::Lemma10, 3..=200)?;
    let points = numbers.iter().map(|point| (f64::from(point.count), point.mean)).collect();
    let claims = growth(&rates)?;
    let blocks = vec![
        WORDS.chart("figure-4-1-a", holes![], vec![Series::new("60 workers", rates)]),
        WORDS.chart("figure-4-1-b", holes![], vec![Series::new("lambda 2", points)]),
        Block::Claims(claims),
    ];
    Ok(WORDS.section("figure-4-1", holes![], blocks))
}

/// Returns the harmonic number `H_N`.
fn harmonic(count: u32) -> f64 {
    (1..=count).map(|i| 1.0 / f64::from(i)).sum()
}

fn growth(by_rate: &[(f64, f64)]) -> anyhow::Result<Vec<Claim>> {
    let harmonic = harmonic(60);
    let off = by_rate.iter().map(|(lambda, mean)| (mean * (1.0 - lambda / 60.0) / harmonic - 1.0).abs());
    let off = off.fold(0.0, f64::max);
    let best = best_count(1.0, 2.0, Law::Lemma10, 3..=200)?.map_or(0, |best| best.count);
    let far = by_count(1.0, 2.0, Law::Lemma10, 1..=100_000)?;
    let at = |count: usize| {
        far.iter().find(|point| point.count as usize == count).map_or(f64::NAN, |point| point.mean)
    };
    let slope = (at(100_000) - at(1_000)) / 100_f64.ln();
    Ok(of_growth(off, best, slope, [at(10), at(20)]))
}

/// Judges the distance of the curve to a homographic function, the best number of workers, the growth for
/// each unit of ln N, and MST at 10 and 20 workers.
pub(super) fn of_growth(off: f64, best: u32, slope: f64, [ten, twenty]: [f64; 2]) -> Vec<Claim> {
    let beyond_ten = (5..=12).contains(&best) && ten < twenty;
    vec![
        WORDS.claim("homographic", off < 1e-10, holes![off]),
        WORDS.claim("beyond-ten", beyond_ten, holes![best, ten, twenty]),
        WORDS.claim("logarithm", (slope - 1.0).abs() < 0.01, holes![slope]),
    ]
}
