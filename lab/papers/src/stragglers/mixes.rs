//! Figures 7-2 to 7-4: the best mix of slow and fast workers for a budget.

use super::{WORDS, against, same_count};
use crate::words::holes;
use crate::{Block, Cell, Claim, Compared, Section, Series, Verdict};
use gristmill_scheduler::queueing::sizing::{Spend, WorkerMix, WorkerPrice, best_mix};

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
