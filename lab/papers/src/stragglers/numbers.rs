//! Figure 7-1: the best number of workers.

use super::{WORDS, against, curve, least, same_count};
use crate::words::holes;
use crate::{Block, Claim, Compared, Section, Series};
use gristmill_scheduler::placement::place;
use gristmill_scheduler::queueing::Server;
use gristmill_scheduler::queueing::sizing::{Law, best_count, curve as by_count};

const LAMBDA: f64 = 10.0;
const DELAY: f64 = 3.5;
const RATES: [f64; 4] = [1.0, 0.9, 0.8, 0.7];

/// Best numbers and means of the reference, for each of `RATES`.
const KNEES: [(u32, &str); 4] = [(89, "6.10667"), (96, "6.87223"), (106, "7.84601"), (118, "9.12279")];
const KNEES_LEMMA_10: [(u32, &str); 4] = [(57, "5.61391"), (64, "6.37834"), (74, "7.35190"), (87, "8.62968")];
const KNEES_LEMMA_11: [u32; 4] = [43, 48, 55, 64];
/// Split, name, best number and mean for equal parts of the four kinds.
const MIXED: [(&str, &str, u32, &str); 4] = [
    ("fair-split:d=3.5", "fair", 104, "7.8115"),
    ("pure-deterministic:d=3.5", "pure-deterministic", 96, "7.6680"),
    ("pure-stochastic:rates=raw,d=3.5", "pure-stochastic (printed)", 100, "7.3378"),
    ("m-ep:d=3.5", "M-EP (nonneg)", 96, "7.4340"),
];

/// Curves with the reference's minima.
#[derive(Default)]
struct Minima {
    curves: Vec<Series>,
    compared: Vec<Compared>,
    /// Best numbers of workers.
    counts: Vec<u32>,
}

/// Computes equal workers, of each rate under the three readings of the lemmas.
fn equal() -> anyhow::Result<Minima> {
    let mut minima = Minima::default();
    for (i, mu) in RATES.into_iter().enumerate() {
        let points = by_count(mu, LAMBDA, Law::Delayed(DELAY), 40..=200)?;
        let points = points.iter().map(|point| (f64::from(point.count), point.mean)).collect();
        minima.curves.push(Series::new(format!("mu {mu}"), points));
        for (name, law, count, mean) in [
            ("offset D lambda_i / mu_i", Law::Delayed(DELAY), KNEES[i].0, Some(KNEES[i].1)),
            ("constant offset (Lemma 10)", Law::Lemma10, KNEES_LEMMA_10[i].0, Some(KNEES_LEMMA_10[i].1)),
            ("Lemma 11", Law::Lemma11, KNEES_LEMMA_11[i], None),
        ] {
            let Some(best) = best_count(mu, LAMBDA, law, 11..=400)? else { continue };
            minima.counts.push(best.count);
            let what = format!("mu {mu}, {name}");
            let ours = f64::from(best.count);
            minima.compared.push(same_count(format!("{what}: best number of workers"), count, ours));
            let mean = mean.map(|mean| against(format!("{what}: MST there in s"), mean, best.mean));
            minima.compared.extend(mean);
        }
    }
    Ok(minima)
}

/// Computes equal parts of the four rates, by split.
fn mixed() -> anyhow::Result<Minima> {
    let mut minima = Minima::default();
    for (split, name, count, mean) in MIXED {
        let numbers = (10..=50).map(|quarter| 4.0 * f64::from(quarter));
        let points = curve(numbers, |count| mixed_mean(split, count))?;
        let (best, least) = least(points.iter().copied());
        let what = format!("four kinds mixed, {name}");
        minima.compared.extend([
            same_count(format!("{what}: best number of workers"), count, best),
            against(format!("{what}: MST there in s"), mean, least),
        ]);
        minima.curves.push(Series::new(name, points));
    }
    Ok(minima)
}

/// Returns the MST of this many workers, the same number of each rate; `None` if it is not finite.
fn mixed_mean(split: &str, count: f64) -> anyhow::Result<Option<f64>> {
    let rates = RATES.iter().copied().cycle().take(count as usize);
    let servers: Vec<Server> = rates.map(Server::exponential).collect();
    Ok(Some(place(split, &servers, LAMBDA)?.mean).filter(|mean| mean.is_finite()))
}

pub(super) fn figure_7_1() -> anyhow::Result<Section> {
    let (equal, mixed) = (equal()?, mixed()?);
    let claim = knee(&equal.counts);
    let blocks = vec![
        WORDS.chart("figure-7-1", holes![], equal.curves),
        WORDS.chart("figure-7-1-mixed", holes![], mixed.curves),
        Block::Comparison([equal.compared, mixed.compared].concat()),
        Block::Claims(vec![claim]),
    ];
    Ok(WORDS.section("figure-7-1", holes![], blocks))
}

/// Judges the best numbers of workers.
pub(super) fn knee(counts: &[u32]) -> Claim {
    let between = counts.iter().all(|count| (40..200).contains(count));
    WORDS.claim("knee", between, holes![counts = format!("{counts:?}")])
}
