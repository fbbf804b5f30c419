//! Figure 4-1, and figures 6-1, 6-3, 6-5 and 6-7: mean sojourn time against arrival rate and number of workers.
//!
//! Not here: the advanced splits of figure 6-8.

use super::{COUNTS, against, curve, halves, holds, lines, mean, placed, series};
use crate::paper::{Axis, Block, Claim, Compared, Section, Verdict};
use gristmill_scheduler::placement::place;
use gristmill_scheduler::queueing::Server;
use gristmill_scheduler::queueing::sizing::{Law, best_count, curve as by_count};

/// Figure 4-1: 60 equal workers, and equal workers at lambda 2.
pub(super) fn figure_4_1() -> anyhow::Result<Section> {
    let workers = vec![Server::exponential(1.0); 60];
    let at = |lambda: f64| -> anyhow::Result<f64> { Ok(place("pure-stochastic", &workers, lambda)?.mean) };
    let by_rate = curve((1..=118).map(|i| 0.5 * f64::from(i)), |lambda| Ok(Some(at(lambda)?)))?;
    let by_number = by_count(1.0, 2.0, Law::Lemma10, 3..=200)?;
    let points = by_number.iter().map(|point| (f64::from(point.count), point.mean)).collect();
    let reference = [
        (1.0, 4.7592),
        (10.0, 5.6158),
        (20.0, 7.0198),
        (30.0, 9.3597),
        (40.0, 14.0396),
        (50.0, 28.0792),
        (55.0, 56.1584),
        (59.0, 280.79),
    ];
    let mut compared: Vec<Compared> = Vec::new();
    for (lambda, reference) in reference {
        compared.push(against(
            format!("60 workers, lambda {lambda}, MST in s"),
            reference,
            at(lambda)?,
            1e-4,
        ));
    }
    for (count, reference) in [(8, 3.62381), (10, 3.66119), (20, 3.99746)] {
        let ours = by_number.iter().find(|point| point.count == count).map_or(f64::NAN, |point| point.mean);
        compared.push(against(format!("lambda 2, {count} workers, MST in s"), reference, ours, 1e-5));
    }
    let blocks = vec![
        lines(
            "figure-4-1-a",
            "(a) 60 workers with mu = 1: MST against the arrival rate.",
            Axis::linear("arrival rate lambda, tasks/s"),
            Axis::linear("MST, s"),
            vec![series("60 workers", by_rate.clone())],
        ),
        lines(
            "figure-4-1-b",
            "(b) lambda = 2, mu = 1: MST against the number of workers.",
            Axis::linear("number of workers"),
            Axis::linear("MST, s"),
            vec![series("lambda 2", points)],
        ),
        Block::Comparison(compared),
        Block::Claims(growth(&by_rate)?),
    ];
    Ok(Section {
        id: "figure-4-1".to_owned(),
        title: "Figure 4-1: mean sojourn time against the arrival rate and the number of workers".to_owned(),
        text: vec![
            "Equal workers (mu = 1 task/s, D = 0) share the work equally: independent M/M/1 queues, whose largest \
             time has the mean H_N / (mu - lambda / N)."
                .to_owned(),
        ],
        blocks,
    })
}

fn growth(by_rate: &[(f64, f64)]) -> anyhow::Result<Vec<Claim>> {
    let harmonic: f64 = (1..=60).map(|i| 1.0 / f64::from(i)).sum();
    let off = by_rate.iter().map(|(lambda, mean)| (mean * (1.0 - lambda / 60.0) / harmonic - 1.0).abs());
    let off = off.fold(0.0, f64::max);
    let best = best_count(1.0, 2.0, Law::Lemma10, 3..=200)?.map_or(0, |best| best.count);
    let far = by_count(1.0, 2.0, Law::Lemma10, 1..=100_000)?;
    let at = |count: usize| {
        far.iter().find(|point| point.count as usize == count).map_or(f64::NAN, |point| point.mean)
    };
    let slope = (at(100_000) - at(1_000)) / 100_f64.ln();
    Ok(vec![
        Claim {
            place: "section 4-3".to_owned(),
            statement: "With the arrival rate MST tends to infinity like a homographic function.".to_owned(),
            verdict: holds(off < 1e-10),
            evidence: format!("MST (mu - lambda / N) is constant over the curve to {off:.0e} of itself"),
        },
        Claim {
            place: "section 4-3".to_owned(),
            statement: "Beyond about 10 workers the time to synchronise outweighs the smaller share of each."
                .to_owned(),
            verdict: holds((5..=12).contains(&best)),
            evidence: format!(
                "the minimum is at {best} workers; at 10 and 20 MST is {:.3} and {:.3} s",
                at(10),
                at(20)
            ),
        },
        Claim {
            place: "section 4-3".to_owned(),
            statement: "MST grows like the logarithm of the number of workers.".to_owned(),
            verdict: holds((slope - 1.0).abs() < 0.01),
            evidence: format!(
                "from 1,000 to 100,000 workers it grows by {slope:.4} / mu for each unit of ln N"
            ),
        },
    ])
}

/// Split, figure, name in legends.
const FIGURES: [(&str, &str, &str, &str); 3] = [
    ("fair-split", "figure-6-1", "Figure 6-1: the fair split", "equation 12"),
    ("pure-deterministic", "figure-6-3", "Figure 6-3: the pure-deterministic split", "equation 18"),
    (
        "pure-stochastic:rates=raw",
        "figure-6-5",
        "Figure 6-5: the pure-stochastic split",
        "equation 23 as printed",
    ),
];
const LAMBDAS: [f64; 5] = [2.0, 5.0, 10.0, 20.0, 30.0];

/// Arrival rates that 40 workers can carry under every split.
fn rates() -> impl Iterator<Item = f64> {
    (1..=63).map(|i| 0.5 * f64::from(i))
}

fn counts() -> impl Iterator<Item = f64> {
    (10..=50).map(|i| 4.0 * f64::from(i))
}

/// Figures 6-1, 6-3, 6-5 and 6-7.
pub(super) fn figures_6() -> anyhow::Result<Vec<Section>> {
    let mut sections = Vec::new();
    for (split, id, title, equation) in FIGURES {
        let mut by_rate = Vec::new();
        for count in COUNTS {
            by_rate.push(series(
                format!("{count} workers"),
                curve(rates(), |lambda| mean(split, count, lambda))?,
            ));
        }
        let mut by_number = Vec::new();
        for lambda in LAMBDAS {
            let points = curve(counts(), |count| mean(split, count as u32, lambda))?;
            by_number.push(series(format!("lambda {lambda}"), points));
        }
        let claims = minima(split)?;
        sections.push(Section {
            id: id.to_owned(),
            title: title.to_owned(),
            text: vec![format!("Half of the workers at mu = 0.8, half at mu = 1, D = 0; {equation}.")],
            blocks: vec![
                lines(
                    &format!("{id}-rate"),
                    "MST against the arrival rate.",
                    Axis::linear("arrival rate lambda, tasks/s"),
                    Axis::logarithmic("MST, s"),
                    by_rate,
                ),
                lines(
                    &format!("{id}-number"),
                    "MST against the number of workers.",
                    Axis::linear("number of workers"),
                    Axis::logarithmic("MST, s"),
                    by_number,
                ),
                Block::Claims(claims),
            ],
        });
    }
    sections.push(figure_6_7()?);
    Ok(sections)
}

/// Where the minimum over the number of workers lies.
fn minima(split: &str) -> anyhow::Result<Vec<Claim>> {
    let mut bests = Vec::new();
    for lambda in LAMBDAS {
        let numbers = (2..=400).map(|half| 2.0 * f64::from(half));
        let points = curve(numbers, |count| Ok(placed_or_none(split, count as u32, lambda)))?;
        let best = points.into_iter().reduce(|best, point| if point.1 < best.1 { point } else { best });
        bests.push(best.map_or(f64::NAN, |(count, _)| count));
    }
    let mut rising = true;
    for count in COUNTS {
        let means = curve(rates(), |lambda| mean(split, count, lambda))?;
        rising &= means.is_sorted_by(|one, next| one.1 < next.1);
    }
    let list = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<String>>().join(", ");
    Ok(vec![
        Claim {
            place: "section 6-1".to_owned(),
            statement: "MST always rises with the arrival rate.".to_owned(),
            verdict: holds(rising),
            evidence: format!("checked at {} rates for {} numbers of workers", rates().count(), COUNTS.len()),
        },
        Claim {
            place: "section 6-1".to_owned(),
            statement: "There is a best number of workers, and it rises with the arrival rate.".to_owned(),
            verdict: holds(bests.is_sorted_by(|one, next| one < next) && bests.last() < Some(&800.0)),
            evidence: format!("best numbers {} at lambda {}", list(&bests), list(&LAMBDAS)),
        },
    ])
}

/// None where the workers cannot carry the load.
fn placed_or_none(split: &str, count: u32, lambda: f64) -> Option<f64> {
    place(split, &halves(count), lambda).ok().map(|placed| placed.mean).filter(|mean| mean.is_finite())
}

fn figure_6_7() -> anyhow::Result<Section> {
    let names = [
        ("fair", "fair-split"),
        ("pure-deterministic", "pure-deterministic"),
        ("pure-stochastic (printed)", "pure-stochastic:rates=raw"),
        ("pure-stochastic (nonneg)", "pure-stochastic"),
    ];
    let mut by_rate = Vec::new();
    let mut by_number = Vec::new();
    for (name, split) in names {
        by_rate.push(series(name, curve(rates(), |lambda| mean(split, 40, lambda))?));
        by_number.push(series(name, curve(counts(), |count| mean(split, count as u32, 10.0))?));
    }
    let mut lowest = [true; 2];
    let mut negative = 0;
    let mut total = 0;
    for count in COUNTS {
        for lambda in rates() {
            let others = [mean("fair-split", count, lambda)?, mean("pure-deterministic", count, lambda)?];
            for (lowest, split) in lowest.iter_mut().zip(["pure-stochastic:rates=raw", "pure-stochastic"]) {
                let placed = placed(split, count, lambda)?;
                negative += u32::from(placed.rates.iter().any(|rate| *rate < 0.0));
                *lowest &= others.iter().flatten().all(|other| placed.mean <= other * (1.0 + 1e-12));
            }
            total += 1;
        }
    }
    let claim = Claim {
        place: "section 6-3".to_owned(),
        statement: "The MST of the pure-stochastic split is below the others even at very low arrival rates."
            .to_owned(),
        verdict: match lowest {
            [true, true] => Verdict::Holds,
            [true, false] | [false, true] => Verdict::Partly,
            [false, false] => Verdict::Fails,
        },
        evidence: format!(
            "as printed: {}, without negative rates: {}, at {total} settings with D = 0; in {negative} of them the \
             printed rates are negative (equation 24)",
            word(lowest[0]),
            word(lowest[1])
        ),
    };
    Ok(Section {
        id: "figure-6-7".to_owned(),
        title: "Figure 6-7: fair, pure-deterministic and pure-stochastic splits compared".to_owned(),
        text: vec!["Half of the workers at mu = 0.8, half at mu = 1, D = 0.".to_owned()],
        blocks: vec![
            lines(
                "figure-6-7-rate",
                "40 workers: MST against the arrival rate.",
                Axis::linear("arrival rate lambda, tasks/s"),
                Axis::logarithmic("MST, s"),
                by_rate,
            ),
            lines(
                "figure-6-7-number",
                "lambda = 10: MST against the number of workers.",
                Axis::linear("number of workers"),
                Axis::linear("MST, s"),
                by_number,
            ),
            Block::Claims(vec![claim]),
        ],
    })
}

fn word(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}
