//! Chapter 7: the best number of workers, and the best mix of them for a budget.

use super::WORDS;
use super::common::curve;
use crate::prelude::*;
use gristmill_scheduler::placement::place;
use gristmill_scheduler::queueing::Server;
use gristmill_scheduler::queueing::sizing::{
    Law, Spend, WorkerMix, WorkerPrice, best_count, best_mix, curve as by_count,
};

const LAMBDA: f64 = 10.0;
const DELAY: f64 = 3.5;
const RATES: [f64; 4] = [1.0, 0.9, 0.8, 0.7];

/// Splits for equal parts of the four kinds, and their names.
const MIXED: [(&str, &str); 4] = [
    ("fair-split:d=3.5", "fair"),
    ("pure-deterministic:d=3.5", "pure-deterministic"),
    ("pure-stochastic:rates=raw,d=3.5", "pure-stochastic (printed)"),
    ("m-ep:d=3.5", "M-EP (nonneg)"),
];

/// Returns the curve of equal workers of this rate.
fn equal(mu: f64) -> anyhow::Result<Series> {
    let points = by_count(mu, LAMBDA, Law::Delayed(DELAY), 40..=200)?;
    let points = points.iter().map(|point| (f64::from(point.count), point.mean)).collect();
    Ok(Series::new(format!("mu {mu}"), points))
}

/// Returns the best numbers of equal workers, for each rate under the three readings of the lemmas.
fn best_counts() -> anyhow::Result<Vec<u32>> {
    let laws = [Law::Delayed(DELAY), Law::Lemma10, Law::Lemma11];
    let settings = RATES.into_iter().flat_map(|mu| laws.map(|law| (mu, law)));
    let best = settings.map(|(mu, law)| best_count(mu, LAMBDA, law, 11..=400));
    let best = best.collect::<Result<Vec<_>, _>>()?;
    Ok(best.into_iter().flatten().map(|best| best.count).collect())
}

/// Returns the curve of equal parts of the four rates under a split.
fn mixed((split, name): (&str, &str)) -> anyhow::Result<Series> {
    let numbers = (10..=50).map(|quarter| 4.0 * f64::from(quarter));
    Ok(Series::new(name, curve(numbers, |count| mixed_mean(split, count))?))
}

/// Returns the MST of this many workers, the same number of each rate; `None` if it is not finite.
fn mixed_mean(split: &str, count: f64) -> anyhow::Result<Option<f64>> {
    let rates = RATES.iter().copied().cycle().take(count as usize);
    let servers: Vec<Server> = rates.map(Server::exponential).collect();
    Ok(Some(place(split, &servers, LAMBDA)?.mean).filter(|mean| mean.is_finite()))
}

pub(super) fn figure_7_1() -> anyhow::Result<Section> {
    let equal = RATES.into_iter().map(equal).collect::<anyhow::Result<_>>()?;
    let mixed = MIXED.into_iter().map(mixed).collect::<anyhow::Result<_>>()?;
    let blocks = vec![
        WORDS.chart("figure-7-1", holes![], equal),
        WORDS.chart("figure-7-1-mixed", holes![], mixed),
        Block::Claims(vec![knee(&best_counts()?)]),
    ];
    Ok(WORDS.section("figure-7-1", holes![], blocks))
}

/// Judges the best numbers of workers.
pub(super) fn knee(counts: &[u32]) -> Claim {
    let between = counts.iter().all(|count| (40..200).contains(count));
    WORDS.claim("knee", between, holes![counts = format!("{counts:?}")])
}

const MENU: [WorkerPrice; 2] =
    [WorkerPrice { mu: 1.0, price: 400.0 }, WorkerPrice { mu: 1.25, price: 800.0 }];
const BUDGETS: [f64; 14] = [
    2000.0, 4000.0, 6000.0, 8000.0, 10000.0, 12000.0, 14000.0, 16000.0, 18000.0, 20000.0, 25000.0, 30000.0,
    35000.0, 40000.0,
];

/// Best mix at each of the budgets; `None` where no mix carries the load, or none costs exactly this much.
type Mixes = Vec<Option<WorkerMix>>;

fn best(lambda: f64) -> anyhow::Result<Mixes> {
    BUDGETS.iter().map(|budget| Ok(best_mix(&MENU, lambda, *budget, Spend::Exactly)?)).collect()
}

pub(super) fn section(figure: u32, traffic: &str, lambda: f64) -> anyhow::Result<Section> {
    let all = best(lambda)?;
    let bars = |kind: usize| {
        let count = |mix: &Option<WorkerMix>| mix.as_ref().map_or(0.0, |mix| f64::from(mix.counts[kind]));
        all.iter().enumerate().map(|(place, mix)| (place as f64, count(mix))).collect()
    };
    let bars =
        vec![Series::new("LP (mu 1, price 400)", bars(0)), Series::new("HP (mu 1.25, price 800)", bars(1))];
    let blocks = vec![
        WORDS.chart_by_name("figure-7-{figure}", holes![figure, lambda], BUDGETS, bars),
        Block::Claims(vec![switch(lambda, &all)]),
    ];
    Ok(WORDS.section("figure-7-{figure}", holes![figure, traffic, lambda], blocks))
}

/// Claim about the range in which LP workers are bought.
pub(super) fn switch(lambda: f64, mixes: &[Option<WorkerMix>]) -> Claim {
    let load = |mix: &WorkerMix| {
        let rates = mix.counts.iter().zip(MENU).map(|(count, offer)| f64::from(*count) * offer.mu);
        lambda / rates.sum::<f64>()
    };
    let found = mixes.iter().zip(BUDGETS).filter_map(|(mix, budget)| Some((mix.as_ref()?, budget)));
    // One LP worker is the remainder where the budget is no multiple of the price of HP.
    let (slow, fast): (Vec<_>, Vec<_>) = found.partition(|(mix, _)| 1 < mix.counts[0]);
    let least = slow.iter().map(|(mix, _)| load(mix)).fold(f64::INFINITY, f64::min);
    let most = fast.iter().map(|(mix, _)| load(mix)).fold(0.0, f64::max);
    let cheaper = slow.iter().all(|(_, low)| fast.iter().all(|(_, high)| low < high));
    let verdict = match (most < least, cheaper) {
        (true, _) => Verdict::Holds,
        (false, true) => Verdict::Partly,
        (false, false) => Verdict::Fails,
    };
    let list: Vec<String> =
        slow.iter().map(|(mix, budget)| format!("{budget} (load {:.2})", load(mix))).collect();
    let found =
        WORDS.note(if list.is_empty() { "no-mix" } else { "mix" }, holes![list = list.join(", "), most]);
    WORDS.claim("switch", verdict, holes![found])
}
