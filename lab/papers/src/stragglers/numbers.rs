//! Chapter 7: the best number of workers, and the best mix of them for a budget.

use super::{WORDS, against, curve, least, same_count};
use crate::words::holes;
use crate::{Block, Cell, Claim, Compared, Section, Series, Verdict};
use gristmill_scheduler::placement::place;
use gristmill_scheduler::queueing::Server;
use gristmill_scheduler::queueing::sizing::{
    Law, Spend, WorkerMix, WorkerPrice, best_count, best_mix, curve as by_count,
};

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

const MENU: [WorkerPrice; 2] =
    [WorkerPrice { mu: 1.0, price: 400.0 }, WorkerPrice { mu: 1.25, price: 800.0 }];
const BUDGETS: [f64; 14] = [
    2000.0, 4000.0, 6000.0, 8000.0, 10000.0, 12000.0, 14000.0, 16000.0, 18000.0, 20000.0, 25000.0, 30000.0,
    35000.0, 40000.0,
];

/// Lambda, budget, and from the reference: slow and fast workers and MST with the whole budget spent.
const MIXES: [(f64, f64, u32, u32, &str); 16] = [
    (1.0, 2000.0, 1, 2, "2.200000000000000"),
    (1.0, 4000.0, 0, 5, "2.17460317460317"),
    (1.0, 10000.0, 1, 12, "2.75611592111592"),
    (1.0, 20000.0, 0, 25, "3.15368444442439"),
    (1.0, 40000.0, 0, 50, "3.65789051896701"),
    (5.0, 4000.0, 10, 0, "5.85793650793651"),
    (5.0, 6000.0, 1, 7, "4.57744360902256"),
    (5.0, 10000.0, 1, 12, "3.7583398924308"),
    (5.0, 20000.0, 0, 25, "3.63424588357477"),
    (5.0, 40000.0, 0, 50, "3.91235246811254"),
    (25.0, 12000.0, 30, 0, "23.9699227855223"),
    (25.0, 14000.0, 35, 0, "14.513734966559"),
    (25.0, 16000.0, 40, 0, "11.4094481038303"),
    (25.0, 20000.0, 50, 0, "8.99841067665885"),
    (25.0, 30000.0, 15, 30, "7.19173327999307"),
    (25.0, 40000.0, 0, 50, "5.9989404511059"),
];

/// Best mix at each of the budgets; `None` where no mix carries the load, or none costs exactly this much.
type Mixes = Vec<Option<WorkerMix>>;

fn best(lambda: f64, spend: Spend) -> anyhow::Result<Mixes> {
    BUDGETS.iter().map(|budget| Ok(best_mix(&MENU, lambda, *budget, spend)?)).collect()
}

pub(super) fn section(figure: u32, traffic: &str, lambda: f64) -> anyhow::Result<Section> {
    let (all, most) = (best(lambda, Spend::Exactly)?, best(lambda, Spend::AtMost)?);
    let rows = BUDGETS.iter().zip(all.iter().zip(&most)).map(|(budget, (all, most))| {
        [Cell::number(*budget)].into_iter().chain(cells(all.as_ref())).chain(cells(most.as_ref())).collect()
    });
    let bars = |kind: usize| {
        let count = |mix: &Option<WorkerMix>| mix.as_ref().map_or(0.0, |mix| f64::from(mix.counts[kind]));
        all.iter().enumerate().map(|(place, mix)| (place as f64, count(mix))).collect()
    };
    let bars =
        vec![Series::new("LP (mu 1, price 400)", bars(0)), Series::new("HP (mu 1.25, price 800)", bars(1))];
    let blocks = vec![
        WORDS.chart_by_name("figure-7-{figure}", holes![figure, lambda], BUDGETS, bars),
        WORDS.table("figure-7-{figure}-mixes", holes![figure], rows.collect()),
        Block::Comparison(beside_reference(lambda, &all)),
        Block::Claims(vec![switch(lambda, &all)]),
    ];
    Ok(WORDS.section("figure-7-{figure}", holes![figure, traffic, lambda], blocks))
}

fn cells(mix: Option<&WorkerMix>) -> [Cell; 3] {
    match mix {
        Some(mix) => [f64::from(mix.counts[0]), f64::from(mix.counts[1]), mix.mean].map(Cell::number),
        None => [Cell::text("none"), Cell::text("none"), Cell::Empty],
    }
}

fn beside_reference(lambda: f64, all: &Mixes) -> Vec<Compared> {
    let known = MIXES.iter().filter(|row| row.0 == lambda);
    let rows = known.flat_map(|(_, budget, low, high, mean)| {
        let place = BUDGETS.iter().position(|other| other == budget);
        let mix = place.and_then(|place| all[place].as_ref());
        let (ours, counts) = mix.map_or((f64::NAN, [0; 2]), |mix| (mix.mean, [mix.counts[0], mix.counts[1]]));
        [
            same_count(format!("budget {budget}: LP workers"), *low, f64::from(counts[0])),
            same_count(format!("budget {budget}: HP workers"), *high, f64::from(counts[1])),
            against(format!("budget {budget}: MST in s"), mean, ours),
        ]
    });
    rows.collect()
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
