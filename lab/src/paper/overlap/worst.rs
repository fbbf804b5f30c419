//! Sections 3 and 4: makespan, the bounds of Corollaries 4 and 6 and of Theorems 3 and 5, and the examples that show
//! that they are tight.
//!
//! Not here: proofs. Random instances can only refute.

use super::super::{Axis, Block, Chart, ChartKind, Claim, Compared, Context, Section, Series, Verdict, each};
use super::{batch, section, total};
use gristmill_scheduler::bound::overlap::{best_in_order, completions_in_order};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Everything that serves jobs in this model: the best of them stands for the optimum, which is not known.
const ALL: [&str; 9] = [
    "fcfs",
    "ps",
    "map-fifo-shuffle-ps",
    "max-srpt",
    "max-srpt:shuffle=head",
    "split-srpt",
    "split-srpt:idle=lost",
    "split-srpt:idle=empty",
    "makespan",
];

/// Largest relative excess that is rounding.
const ROUNDING: f64 = 1e-9;

pub(super) fn sections(context: &Context<'_>) -> anyhow::Result<Vec<Section>> {
    (context.progress)("overlap: tight examples and random instances");
    Ok(vec![random_section(context)?, corollary_4(context)?, corollary_6(context)?])
}

/// The tight example after Corollary 4: half of the jobs `(alpha - epsilon, 1)`, half `(1, alpha)`. Total of MaxSRPT
/// over that of alternating jobs, both.
fn example_4(jobs: usize, alpha: f64, epsilon: f64) -> anyhow::Result<[f64; 2]> {
    let half = jobs / 2;
    let mut sizes = vec![[alpha - epsilon, 1.0]; half];
    sizes.extend(vec![[1.0, alpha]; half]);
    let alternating: Vec<[f64; 2]> = (0..half).flat_map(|_| [[1.0, alpha], [alpha - epsilon, 1.0]]).collect();
    Ok([total("max-srpt", &batch(&sizes))?, completions_in_order(&alternating).iter().sum()])
}

/// The tight example after Corollary 6: all but one `(beta, 1)`, one `(n - 1, (n - 1) beta)`. Total of the literal
/// SplitSRPT and of one job after the other.
fn example_6(jobs: usize, beta: f64) -> anyhow::Result<[f64; 2]> {
    let others = (jobs - 1) as f64;
    let mut sizes = vec![[beta, 1.0]; jobs - 1];
    sizes.push([others, others * beta]);
    Ok([total("split-srpt:idle=lost", &batch(&sizes))?, completions_in_order(&sizes).iter().sum()])
}

/// How the ratio of an example nears its limit: charts, the reference's numbers, and the claim.
struct Approach {
    id: &'static str,
    caption: &'static str,
    place: &'static str,
    statement: &'static str,
    curves: Vec<Curve>,
    compared: Vec<Compared>,
}

struct Curve {
    name: String,
    /// Ratio by number of jobs.
    points: Vec<(f64, f64)>,
    limit: f64,
}

/// A limit counts as approached when the longest example comes this near.
const NEAR: f64 = 0.02;

impl Approach {
    fn blocks(self) -> Vec<Block> {
        let mut series = Vec::new();
        let (mut monotonic, mut near, mut above) = (true, true, false);
        let mut ends = Vec::new();
        for Curve { name, points, limit } in self.curves {
            monotonic &= points.is_sorted_by(|a, b| a.1 <= b.1 + ROUNDING);
            let (jobs, ratio) = points.last().copied().unwrap_or_default();
            near &= limit * (1.0 - NEAR) <= ratio;
            above |= points.iter().any(|&(_, ratio)| limit * (1.0 + ROUNDING) < ratio);
            ends.push(format!("{name}: {ratio:.4} at {jobs} jobs, limit {limit:.4}"));
            let ends = [points.first(), points.last()].into_iter().flatten().map(|&(jobs, _)| (jobs, limit));
            series.push(Series {
                name: format!("{name}, limit"),
                points: ends.collect(),
                reference: true,
                ..Series::default()
            });
            series.push(Series { name, points, ..Series::default() });
        }
        let chart = Chart {
            id: self.id.to_owned(),
            caption: self.caption.to_owned(),
            x: Axis::logarithmic("jobs"),
            y: Axis::linear("total response over that of the alternative"),
            kind: ChartKind::Lines,
            series,
        };
        let verdict = if monotonic && near && !above { Verdict::Holds } else { Verdict::Fails };
        let claim = Claim {
            place: self.place.to_owned(),
            statement: self.statement.to_owned(),
            verdict,
            evidence: ends.join("; "),
        };
        vec![Block::Chart(chart), Block::Comparison(self.compared), Block::Claims(vec![claim])]
    }
}

fn compared(what: String, reference: f64, ours: f64) -> Compared {
    let same = (reference - ours).abs() <= 1e-9 * reference;
    Compared {
        what,
        printed: None,
        reference: Some((reference, 0.0)),
        ours,
        half_width: None,
        verdict: if same { Verdict::Holds } else { Verdict::Fails },
        note: String::new(),
    }
}

fn corollary_4(context: &Context<'_>) -> anyhow::Result<Section> {
    let counts: &[usize] =
        context.scaled(&[4, 10, 40, 100], &[4, 10, 40, 100, 400, 1000], &[4, 10, 40, 100, 400, 1000, 4000]);
    let mut curves = Vec::new();
    for (alpha, epsilon) in [(1.5, 0.001), (2.0, 0.001), (4.0, 0.001)] {
        let mut points = Vec::new();
        for &jobs in counts {
            let [ours, other] = example_4(jobs, alpha, epsilon)?;
            points.push((jobs as f64, ours / other));
        }
        curves.push(Curve { name: format!("a = {alpha}"), points, limit: 2.0 * alpha / (1.0 + alpha) });
    }
    let mut numbers = Vec::new();
    for (jobs, totals) in [(4, [19.3, 16.0]), (10, [106.0, 85.0]), (1000, [963_475.0, 751_000.0])] {
        let ours = example_4(jobs, 2.0, 0.1)?;
        for (name, (reference, ours)) in ["MaxSRPT", "alternating"].iter().zip(totals.into_iter().zip(ours)) {
            numbers.push(compared(format!("a = 2, e = 0.1, {jobs} jobs, total of {name}"), reference, ours));
        }
    }
    let approach = Approach {
        id: "corollary-4",
        caption: "MaxSRPT on its tight example, e = 0.001",
        place: "after Corollary 4",
        statement: "The ratio 2a/(1+a) is approached for every a > 1, by many jobs and small e.",
        curves,
        compared: numbers,
    };
    Ok(section(
        "corollary-4",
        "Corollary 4: the example on which MaxSRPT is as bad as it can be",
        &[
            "Half of the jobs are (a - e, 1), half (1, a). MaxSRPT serves the first half first and wastes the shuffle, then \
           the second and wastes the map; alternating jobs keep both busy.",
        ],
        approach.blocks(),
    ))
}

fn corollary_6(context: &Context<'_>) -> anyhow::Result<Section> {
    let counts: &[usize] =
        context.scaled(&[4, 10, 40, 100], &[4, 10, 40, 100, 400, 1000], &[4, 10, 40, 100, 400, 1000, 4000]);
    let mut curves = Vec::new();
    for beta in [1.5, 2.0, 4.0] {
        let mut points = Vec::new();
        for &jobs in counts {
            let [ours, other] = example_6(jobs, beta)?;
            points.push((jobs as f64, ours / other));
        }
        curves.push(Curve { name: format!("b = {beta}"), points, limit: 1.0 + 1.0 / beta });
    }
    let mut numbers = Vec::new();
    for (jobs, totals) in [(4, [27.0, 24.0]), (10, [162.0, 126.0]), (200, [60_297.0, 40_596.0])] {
        let ours = example_6(jobs, 2.0)?;
        for (name, (reference, ours)) in ["SplitSRPT", "one by one"].iter().zip(totals.into_iter().zip(ours))
        {
            numbers.push(compared(format!("b = 2, {jobs} jobs, total of {name}"), reference, ours));
        }
    }
    let approach = Approach {
        id: "corollary-6",
        caption: "SplitSRPT (idle shares lost, as printed) on its tight example",
        place: "after Corollary 6",
        statement: "The ratio 1 + 1/b is approached for every b > 1 by many jobs.",
        curves,
        compared: numbers,
    };
    Ok(section(
        "corollary-6",
        "Corollary 6: the example on which SplitSRPT is as bad as it can be",
        &[
            "All jobs but one are (b, 1), one is (n - 1, (n - 1) b). SplitSRPT serves the large one beside all others, which \
           have only b/(1+b) of the map then; one after the other they would have all of it.",
        ],
        approach.blocks(),
    ))
}

/// What one random instance says.
#[derive(Clone, Copy, Default)]
struct Trial {
    /// Ratio to the best known over what the corollary or theorem allows: Corollaries 4, 6, Theorems 3, 5.
    parts: [f64; 4],
    /// Makespan of `makespan` over `max(sum x, sum y)`.
    makespan: f64,
    /// The total of the fixed order by max(x, y), less that of MaxSRPT.
    fixed_order_excess: f64,
    /// Some policy beats the best common order.
    beats_orders: bool,
}

fn draw(random: &mut ChaCha8Rng, jobs: usize) -> Vec<[f64; 2]> {
    let mut quarter = || f64::from(random.random_range(1..=48_u32)) / 4.0;
    (0..jobs).map(|_| [quarter(), quarter()]).collect()
}

fn scaled(sizes: &[[f64; 3]], speed: f64) -> Vec<[f64; 3]> {
    sizes.iter().map(|&[arrival, map, shuffle]| [arrival, map / speed, shuffle / speed]).collect()
}

fn trial(seed: u64) -> anyhow::Result<Trial> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let jobs = random.random_range(2..=6_usize);
    let sizes = draw(&mut random, jobs);
    let mut gap = 0.0;
    let online: Vec<[f64; 3]> = sizes
        .iter()
        .map(|&[map, shuffle]| {
            gap += f64::from(random.random_range(0..=16_u32)) / 4.0;
            [gap, map, shuffle]
        })
        .collect();
    let imbalance = |&[map, shuffle]: &[f64; 2]| (map / shuffle).max(shuffle / map);
    let largest = sizes.iter().map(imbalance).fold(1.0, f64::max);
    let smallest = sizes.iter().map(imbalance).fold(f64::INFINITY, f64::min);
    let (ratio_4, ratio_6) = (2.0 * largest / (1.0 + largest), 1.0 + 1.0 / smallest);
    let batched = batch(&sizes);
    let [in_order, _] = best_in_order(&sizes).unwrap_or([f64::INFINITY; 2]);
    let (mut best_batch, mut best_online) = (f64::INFINITY, f64::INFINITY);
    for policy in ALL {
        best_batch = best_batch.min(total(policy, &batched)?);
        best_online = best_online.min(total(policy, &online)?);
    }
    let beats_orders = best_batch < in_order * (1.0 - ROUNDING);
    best_batch = best_batch.min(in_order);
    let max_srpt = total("max-srpt", &batched)?;
    let mut fixed = sizes.clone();
    fixed.sort_by(|a, b| a[0].max(a[1]).total_cmp(&b[0].max(b[1])));
    let mut makespan = 0.0;
    super::simulate("makespan", super::jobs_of(&batched), |record| {
        makespan = record.completion.max(makespan);
    })?;
    let sum = |station: usize| sizes.iter().map(|sizes| sizes[station]).sum::<f64>();
    Ok(Trial {
        parts: [
            max_srpt / best_batch / ratio_4,
            total("split-srpt", &batched)?.max(total("split-srpt:idle=lost", &batched)?)
                / best_batch
                / ratio_6,
            total("max-srpt:shuffle=head", &scaled(&online, ratio_4))? / best_online,
            total("split-srpt:idle=lost", &scaled(&online, ratio_6))? / best_online,
        ],
        makespan: makespan / sum(0).max(sum(1)),
        fixed_order_excess: completions_in_order(&fixed).iter().sum::<f64>() - max_srpt,
        beats_orders,
    })
}

fn random_section(context: &Context<'_>) -> anyhow::Result<Section> {
    let count = context.scaled(100, 2_000, 20_000);
    let seeds: Vec<u64> = (0..count).map(|trial| context.seed.wrapping_add(trial)).collect();
    let trials: Vec<Trial> = each(&seeds, |&seed| trial(seed)).into_iter().collect::<anyhow::Result<_>>()?;
    let bound = |place: &str, statement: &str, at: usize| {
        let worst = trials.iter().map(|trial| trial.parts[at]).fold(0.0, f64::max);
        let broken = trials.iter().filter(|trial| 1.0 + ROUNDING < trial.parts[at]).count();
        Claim {
            place: place.to_owned(),
            statement: statement.to_owned(),
            verdict: if broken == 0 { Verdict::Holds } else { Verdict::Fails },
            evidence: format!(
                "{count} random instances of 2 to 6 jobs, seeds from {}: broken in {broken}; the worst case comes to \
                 {worst:.4} of what is allowed",
                context.seed
            ),
        }
    };
    let late = trials.iter().map(|trial| trial.makespan).fold(0.0, f64::max);
    let differ: Vec<f64> = trials
        .iter()
        .map(|trial| trial.fixed_order_excess)
        .filter(|excess| ROUNDING < excess.abs())
        .collect();
    let better = differ.iter().filter(|&&excess| 0.0 < excess).count();
    let beaten = trials.iter().filter(|trial| trial.beats_orders).count();
    let claims = vec![
        Claim {
            place: "section 3.1".to_owned(),
            statement:
                "Jobs with y >= x before the others end a batch at max(sum x, sum y), the earliest possible."
                    .to_owned(),
            verdict: if late <= 1.0 + ROUNDING { Verdict::Holds } else { Verdict::Fails },
            evidence: format!("{count} random batches: the last job ends at {late:.6} of it at the latest"),
        },
        bound(
            "Theorem 3",
            "MaxSRPT is 2a/(1+a)-speed 1-competitive (here the shuffle serves the head only).",
            2,
        ),
        bound("Corollary 4", "In a batch MaxSRPT is within 2a/(1+a) of the optimum.", 0),
        bound(
            "Theorem 5",
            "SplitSRPT is (1 + 1/b)-speed 1-competitive (here as printed, idle shares lost).",
            3,
        ),
        bound("Corollary 6", "In a batch SplitSRPT is within 1 + 1/b of the optimum.", 1),
        Claim {
            place: "before Corollary 4".to_owned(),
            statement: "In a batch MaxSRPT simply sorts the jobs by max(x, y).".to_owned(),
            verdict: if differ.is_empty() { Verdict::Holds } else { Verdict::Fails },
            evidence: format!(
                "Algorithm 1 goes by sizes left, and a later job can overtake at the shuffle: of {count} random batches \
                 {} come out otherwise than in the fixed order, {better} of them better. Example: (1, 10), (1, 10.5), \
                 (11, 1) ends at 10, 21.5, 13 instead of 10, 20.5, 21.5",
                differ.len()
            ),
        },
        Claim {
            place: "sections 3 and 4".to_owned(),
            statement: "Not in the paper: no common order of both stations need be optimal for the mean."
                .to_owned(),
            verdict: if beaten == 0 { Verdict::Open } else { Verdict::Holds },
            evidence: format!(
                "a policy with different orders at the two stations beats the best common order in {beaten} of {count} \
                 random batches"
            ),
        },
    ];
    Ok(section(
        "sections-3-and-4",
        "Sections 3 and 4: theorems on random instances",
        &[
            "Sizes are drawn in quarters from 1/4 to 12, so that ties happen. The optimum is not known: the best of all \
           policies, and in a batch of all common orders, stands for it; what breaks a bound against it would break the \
           theorem. a is the largest and b the smallest imbalance max(x/y, y/x) of an instance.",
        ],
        vec![Block::Claims(claims)],
    ))
}
