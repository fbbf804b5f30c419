//! Chapter 7: the best number of workers (figure 7-1) and the best mix for a budget (figures 7-2 to 7-4).
//!
//! Not here: the lemmas (`scheduler::queueing::sizing`).

use super::{against, curve, holds, lines, series};
use crate::paper::{Axis, Block, Cell, Chart, ChartKind, Claim, Column, Section, Table, Verdict};
use gristmill_scheduler::placement::place;
use gristmill_scheduler::queueing::Server;
use gristmill_scheduler::queueing::sizing::{
    Law, Spend, WorkerMix, WorkerPrice, best_count, best_mix, curve as by_count,
};

const LAMBDA: f64 = 10.0;
const DELAY: f64 = 3.5;
const RATES: [f64; 4] = [1.0, 0.9, 0.8, 0.7];

/// Best numbers and means of the reference, for each of `RATES`.
const KNEES: [(u32, f64); 4] = [(89, 6.10667), (96, 6.87223), (106, 7.84601), (118, 9.12279)];
const KNEES_LEMMA_10: [(u32, f64); 4] = [(57, 5.61391), (64, 6.37834), (74, 7.35190), (87, 8.62968)];
const KNEES_LEMMA_11: [u32; 4] = [43, 48, 55, 64];
/// Split, name, best number and mean for equal parts of the four kinds.
const MIXED: [(&str, &str, u32, f64); 4] = [
    ("fair-split:d=3.5", "fair", 104, 7.8115),
    ("pure-deterministic:d=3.5", "pure-deterministic", 96, 7.6680),
    ("pure-stochastic:rates=raw,d=3.5", "pure-stochastic (printed)", 100, 7.3378),
    ("m-ep:d=3.5", "M-EP (nonneg)", 96, 7.4340),
];

pub(super) fn sections() -> anyhow::Result<Vec<Section>> {
    let mut sections = vec![figure_7_1()?];
    for (figure, traffic, lambda) in [(2, "high", 25.0), (3, "medium", 5.0), (4, "low", 1.0)] {
        sections.push(mixes(figure, traffic, lambda)?);
    }
    Ok(sections)
}

fn figure_7_1() -> anyhow::Result<Section> {
    let mut curves = Vec::new();
    let mut compared = Vec::new();
    let mut inside = Vec::new();
    for (i, mu) in RATES.into_iter().enumerate() {
        let points = by_count(mu, LAMBDA, Law::Delayed(DELAY), 40..=200)?;
        curves
            .push(series(format!("mu {mu}"), points.iter().map(|p| (f64::from(p.count), p.mean)).collect()));
        for (name, law, count, mean) in [
            ("offset D lambda_i / mu_i", Law::Delayed(DELAY), KNEES[i].0, Some(KNEES[i].1)),
            ("constant offset (Lemma 10)", Law::Lemma10, KNEES_LEMMA_10[i].0, Some(KNEES_LEMMA_10[i].1)),
            ("Lemma 11", Law::Lemma11, KNEES_LEMMA_11[i], None),
        ] {
            let Some(best) = best_count(mu, LAMBDA, law, 11..=400)? else { continue };
            inside.push(best.count);
            compared.push(against(
                format!("mu {mu}, {name}: best number of workers"),
                f64::from(count),
                f64::from(best.count),
                0.0,
            ));
            if let Some(mean) = mean {
                compared.push(against(format!("mu {mu}, {name}: MST there in s"), mean, best.mean, 1e-5));
            }
        }
    }
    let mut mixed = Vec::new();
    for (split, name, count, mean) in MIXED {
        let numbers = (10..=50).map(|quarter| 4.0 * f64::from(quarter));
        let at = |count: f64| -> anyhow::Result<Option<f64>> {
            let servers: Vec<Server> =
                (0..count as usize).map(|i| Server::exponential(RATES[i % RATES.len()])).collect();
            Ok(Some(place(split, &servers, LAMBDA)?.mean).filter(|mean| mean.is_finite()))
        };
        let points = curve(numbers, at)?;
        let best = points.iter().copied().reduce(|best, point| if point.1 < best.1 { point } else { best });
        let (best, least) = best.unwrap_or((f64::NAN, f64::NAN));
        compared.push(against(
            format!("four kinds mixed, {name}: best number of workers"),
            f64::from(count),
            best,
            0.0,
        ));
        compared.push(against(format!("four kinds mixed, {name}: MST there in s"), mean, least, 1e-4));
        mixed.push(series(name, points));
    }
    let claim = Claim {
        place: "chapter 7".to_owned(),
        statement: "Between 40 and 200 workers there is a knee: a best number of workers.".to_owned(),
        verdict: holds(inside.iter().all(|count| (40..200).contains(count))),
        evidence: format!("best numbers for the four rates under the three readings: {inside:?}"),
    };
    let axes = || (Axis::linear("number of workers"), Axis::linear("MST, s"));
    Ok(Section {
        id: "figure-7-1".to_owned(),
        title: "Figure 7-1: the best number of workers".to_owned(),
        text: vec![
            "lambda = 10, D = 3.5 s. The thesis does not say whether its four service rates are four clusters or one; \
             both are here. Lemma 10 is computed with C(n, i) / i, not as equation 46 is printed (see below)."
                .to_owned(),
        ],
        blocks: vec![
            lines("figure-7-1", "Equal workers of one rate: MST against their number.", axes().0, axes().1, curves),
            lines("figure-7-1-mixed", "Equal parts of the four rates, by split.", axes().0, axes().1, mixed),
            Block::Comparison(compared),
            Block::Claims(vec![claim]),
        ],
    })
}

const MENU: [WorkerPrice; 2] =
    [WorkerPrice { mu: 1.0, price: 400.0 }, WorkerPrice { mu: 1.25, price: 800.0 }];
const BUDGETS: [f64; 14] = [
    2000.0, 4000.0, 6000.0, 8000.0, 10000.0, 12000.0, 14000.0, 16000.0, 18000.0, 20000.0, 25000.0, 30000.0,
    35000.0, 40000.0,
];

/// Lambda, budget, and of the reference: slow and fast workers and MST with the whole budget spent.
const MIXES: [(f64, f64, u32, u32, f64); 16] = [
    (1.0, 2000.0, 1, 2, 2.2),
    (1.0, 4000.0, 0, 5, 2.17460317460317),
    (1.0, 10000.0, 1, 12, 2.75611592111592),
    (1.0, 20000.0, 0, 25, 3.15368444442439),
    (1.0, 40000.0, 0, 50, 3.65789051896701),
    (5.0, 4000.0, 10, 0, 5.85793650793651),
    (5.0, 6000.0, 1, 7, 4.57744360902256),
    (5.0, 10000.0, 1, 12, 3.7583398924308),
    (5.0, 20000.0, 0, 25, 3.63424588357477),
    (5.0, 40000.0, 0, 50, 3.91235246811254),
    (25.0, 12000.0, 30, 0, 23.9699227855223),
    (25.0, 14000.0, 35, 0, 14.513734966559),
    (25.0, 16000.0, 40, 0, 11.4094481038303),
    (25.0, 20000.0, 50, 0, 8.99841067665885),
    (25.0, 30000.0, 15, 30, 7.19173327999307),
    (25.0, 40000.0, 0, 50, 5.9989404511059),
];

fn mixes(figure: u32, traffic: &str, lambda: f64) -> anyhow::Result<Section> {
    let find = |spend| -> anyhow::Result<Vec<Option<WorkerMix>>> {
        BUDGETS.iter().map(|budget| Ok(best_mix(&MENU, lambda, *budget, spend)?)).collect()
    };
    let (all, most) = (find(Spend::Exactly)?, find(Spend::AtMost)?);
    let bars = |kind: usize| {
        let count = |mix: &Option<WorkerMix>| mix.as_ref().map_or(0.0, |mix| f64::from(mix.counts[kind]));
        all.iter().enumerate().map(|(place, mix)| (place as f64, count(mix))).collect()
    };
    let cells = |mix: &Option<WorkerMix>| match mix {
        Some(mix) => vec![
            Cell::number(f64::from(mix.counts[0])),
            Cell::number(f64::from(mix.counts[1])),
            Cell::number(mix.mean),
        ],
        None => vec![Cell::text("none"), Cell::text("none"), Cell::Empty],
    };
    let rows = BUDGETS
        .iter()
        .zip(all.iter().zip(&most))
        .map(|(budget, (all, most))| [vec![Cell::number(*budget)], cells(all), cells(most)].concat());
    let table = Table {
        id: format!("figure-7-{figure}-mixes"),
        caption: "Best mixes: with the whole budget spent, and with at most the budget. `none`: no mix carries the load, \
                  or none costs exactly this much."
            .to_owned(),
        columns: vec![
            Column::new("budget", ""),
            Column::new("LP, all spent", "workers"),
            Column::new("HP, all spent", "workers"),
            Column::new("MST, all spent", "s"),
            Column::new("LP, at most", "workers"),
            Column::new("HP, at most", "workers"),
            Column::new("MST, at most", "s"),
        ],
        rows: rows.collect(),
    };
    let compared = MIXES.iter().filter(|row| row.0 == lambda).flat_map(|(_, budget, low, high, mean)| {
        let place = BUDGETS.iter().position(|other| other == budget);
        let mix = place.and_then(|place| all[place].as_ref());
        let (ours, counts) = mix.map_or((f64::NAN, [0; 2]), |mix| (mix.mean, [mix.counts[0], mix.counts[1]]));
        [
            against(format!("budget {budget}: LP workers"), f64::from(*low), f64::from(counts[0]), 0.0),
            against(format!("budget {budget}: HP workers"), f64::from(*high), f64::from(counts[1]), 0.0),
            against(format!("budget {budget}: MST in s"), *mean, ours, 1e-9),
        ]
    });
    let chart = Chart {
        id: format!("figure-7-{figure}"),
        caption: format!("Best numbers of LP and HP workers with the whole budget spent, lambda = {lambda}."),
        x: Axis::names("budget", BUDGETS.iter().map(f64::to_string)),
        y: Axis::linear("workers"),
        kind: ChartKind::Bars,
        series: vec![series("LP (mu 1, price 400)", bars(0)), series("HP (mu 1.25, price 800)", bars(1))],
    };
    Ok(Section {
        id: format!("figure-7-{figure}"),
        title: format!("Figure 7-{figure}: mixes of slow and fast workers in {traffic} traffic"),
        text: vec![format!(
            "LP workers serve 1 task/s for 400, HP workers 1.25 for 800; lambda = {lambda} (Lemma 12, equation 48). The \
             constraint is read as equality, as printed; the table has both readings."
        )],
        blocks: vec![
            Block::Chart(chart),
            Block::Table(table),
            Block::Comparison(compared.collect()),
            Block::Claims(vec![switch(lambda, &all)]),
        ],
    })
}

/// Where LP workers are bought.
fn switch(lambda: f64, mixes: &[Option<WorkerMix>]) -> Claim {
    let load = |mix: &WorkerMix| {
        let rates = mix.counts.iter().zip(MENU).map(|(count, offer)| f64::from(*count) * offer.mu);
        lambda / rates.sum::<f64>()
    };
    let found = mixes.iter().zip(BUDGETS).filter_map(|(mix, budget)| Some((mix.as_ref()?, budget)));
    // One LP worker is what is left over where the budget is no multiple of the price of HP.
    let (slow, fast): (Vec<_>, Vec<_>) = found.partition(|(mix, _)| 1 < mix.counts[0]);
    let least = slow.iter().map(|(mix, _)| load(mix)).fold(f64::INFINITY, f64::min);
    let most = fast.iter().map(|(mix, _)| load(mix)).fold(0.0, f64::max);
    let cheaper = slow.iter().all(|(_, low)| fast.iter().all(|(_, high)| low < high));
    let verdict = match (most < least, cheaper) {
        (true, _) => Verdict::Holds,
        (false, true) => Verdict::Partly,
        (false, false) => Verdict::Fails,
    };
    let evidence = if slow.is_empty() {
        format!(
            "more than one LP worker is bought at no budget; the load of the best mixes is at most {most:.2}"
        )
    } else {
        let list: Vec<String> =
            slow.iter().map(|(mix, budget)| format!("{budget} (load {:.2})", load(mix))).collect();
        format!(
            "more than one LP worker is bought at the budgets {}; at all others the load is at most {most:.2}",
            list.join(", ")
        )
    };
    Claim {
        place: "chapter 7".to_owned(),
        statement: "LP workers pay only where the budget barely carries the load; HP workers otherwise."
            .to_owned(),
        verdict,
        evidence,
    }
}
