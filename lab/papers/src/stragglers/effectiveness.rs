//! Section 6-4: average advantage of the M-EP split over others.

use super::splits::call;
use super::{SLOW, WORDS, placed};
use crate::judge::{Beside, Known, Model};
use crate::words::holes;
use crate::{Block, Claim, Compared, Section};

/// Returns the average advantage of M-EP in percent, over ten arrival rates up to a fraction of the
/// saturation rate.
fn average_above_m_ep(other: &str, delay: f64, end: f64) -> anyhow::Result<f64> {
    let steps = 10;
    let mut total = 0.0;
    for step in 0..steps {
        let lambda = end * 40.0 * SLOW * f64::from(step + 1) / f64::from(steps);
        let ours = placed(&call("m-ep:", delay), 40, lambda)?.mean;
        total += placed(&call(other, delay), 40, lambda)?.mean / ours - 1.0;
    }
    Ok(100.0 * total / f64::from(steps))
}

/// Printed averages, whole numbers of percent.
const ABOVE_FAIR: &str = "129";
const ABOVE_DETERMINISTIC: &str = "51";

/// Compares the averages. `ends` holds those with the grid up to 0.95 and up to 0.999 of saturation.
fn fair(end: f64, ends: [f64; 2]) -> anyhow::Result<Compared> {
    let ours = average_above_m_ep("fair-split:", 0.0, end)?;
    let why = WORDS.note("saturation", holes![near = ends[0], end = ends[1]]);
    let grid = Model { gap: [ours - ends[1], ours - ends[0]], why };
    let what = format!("fair above M-EP, D = 0, 40 workers, lambda up to {end} of N mu_min, average in %");
    let beside = Beside::exact(what, ours, Known::text(ABOVE_FAIR).printed());
    Ok(beside.model(Some(&grid)).note(WORDS.note("fair", holes![])).judged())
}

fn pure_deterministic(delay: f64) -> anyhow::Result<Compared> {
    let ours = average_above_m_ep("pure-deterministic:", delay, 0.99)?;
    let what = format!("pure-deterministic above M-EP, D = {delay} s, 40 workers, average in %");
    let beside = Beside::exact(what, ours, Known::text(ABOVE_DETERMINISTIC).printed());
    Ok(beside.note(WORDS.note("deterministic", holes![])).judged())
}

/// Returns the largest ratio of pure-deterministic to the optimum at D = 0.
fn most_over_optimum() -> anyhow::Result<f64> {
    let mut most = 0.0_f64;
    for step in 1..100 {
        let lambda = 36.0 * f64::from(step) / 100.0;
        let ratio = placed("pure-deterministic", 40, lambda)?.mean / placed("optimal", 40, lambda)?.mean;
        most = most.max(ratio);
    }
    Ok(most)
}

/// Section on the averages of section 6-4.
pub(super) fn section() -> anyhow::Result<Section> {
    let ends =
        [average_above_m_ep("fair-split:", 0.0, 0.95)?, average_above_m_ep("fair-split:", 0.0, 0.999)?];
    let compared =
        vec![fair(0.95, ends)?, fair(0.99, ends)?, pure_deterministic(0.0)?, pure_deterministic(100.0)?];
    let averages = [0.0, 100.0].map(|delay| average_above_m_ep("pure-deterministic:", delay, 0.99));
    let [by_memory, by_processors] = averages;
    let claim = half_as_good_again([by_memory?, by_processors?], most_over_optimum()?);
    let blocks = vec![Block::Comparison(compared), Block::Claims(vec![claim])];
    Ok(WORDS.section("section-6-4", holes![], blocks))
}

/// Judges the averages of section 6-4, in percent, bound by memory and by processors, and the largest
/// ratio of pure-deterministic to the optimum.
pub(super) fn half_as_good_again(averages: [f64; 2], most: f64) -> Claim {
    /// 51 %, rounded to a whole number.
    const PRINTED: [f64; 2] = [50.5, 51.5];
    let printed = averages.iter().any(|average| (PRINTED[0]..=PRINTED[1]).contains(average));
    let [by_memory, by_processors] = averages;
    WORDS.claim("half-as-good-again", printed, holes![by_memory, by_processors, most])
}
