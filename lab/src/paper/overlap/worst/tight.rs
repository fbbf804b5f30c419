//! The examples on which MaxSRPT and SplitSRPT are as bad as they can be.

use super::super::{batch, section, total};
use super::ROUNDING;
use crate::paper::judge::{Beside, Known, Seen, by_case};
use crate::paper::{Axis, Block, Chart, Claim, Compared, Context, Section, Series};
use gristmill_scheduler::bound::overlap::completions_in_order;

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
    curves: Vec<Approaching>,
    compared: Vec<Compared>,
}

pub(in crate::paper::overlap) struct Approaching {
    pub(in crate::paper::overlap) name: String,
    /// Ratio by number of jobs.
    pub(in crate::paper::overlap) points: Vec<(f64, f64)>,
    pub(in crate::paper::overlap) limit: f64,
}

/// A limit counts as approached when the longest example comes this near.
const NEAR: f64 = 0.02;

impl Approaching {
    /// The ratio of an example by the number of jobs; it gives the totals of the policy and of the alternative.
    fn run(
        name: String,
        limit: f64,
        counts: &[usize],
        example: impl Fn(usize) -> anyhow::Result<[f64; 2]>,
    ) -> anyhow::Result<Self> {
        let mut points = Vec::new();
        for &jobs in counts {
            let [ours, other] = example(jobs)?;
            points.push((jobs as f64, ours / other));
        }
        Ok(Self { name, points, limit })
    }

    /// Whether the ratio grows, comes near to its limit and stays below it.
    fn holds(&self) -> bool {
        let (_, last) = self.points.last().copied().unwrap_or_default();
        self.points.is_sorted_by(|a, b| a.1 <= b.1 + ROUNDING)
            && self.limit * (1.0 - NEAR) <= last
            && !self.points.iter().any(|&(_, ratio)| self.limit * (1.0 + ROUNDING) < ratio)
    }

    fn in_words(&self) -> String {
        let (jobs, ratio) = self.points.last().copied().unwrap_or_default();
        format!("{}: {ratio:.4} at {jobs} jobs, limit {:.4}", self.name, self.limit)
    }

    fn series(self) -> [Series; 2] {
        let ends = [self.points.first(), self.points.last()].into_iter().flatten();
        let limit = ends.map(|&(jobs, _)| (jobs, self.limit)).collect();
        let limit = Series::new(format!("{}, limit", self.name), limit).as_reference();
        [limit, Series::new(self.name, self.points)]
    }
}

impl Approach {
    fn blocks(self) -> Vec<Block> {
        let claim = approached((self.place, self.statement), &self.curves);
        let chart = Chart::lines(
            self.id,
            self.caption,
            [Axis::logarithmic("jobs"), Axis::linear("total response over that of the alternative")],
            self.curves.into_iter().flat_map(Approaching::series).collect(),
        );
        vec![Block::Chart(chart), Block::Comparison(self.compared), Block::Claims(vec![claim])]
    }
}

/// Whether every curve grows to its limit.
pub(in crate::paper::overlap) fn approached(
    (place, statement): (&str, &str),
    curves: &[Approaching],
) -> Claim {
    let ends: Vec<String> = curves.iter().map(Approaching::in_words).collect();
    let evidence = format!("{} (nearer than {:.0} % counts as approached)", ends.join("; "), 100.0 * NEAR);
    Claim::new(place, statement, by_case(curves.iter().map(|curve| Seen::from(curve.holds()))), evidence)
}

/// The statements after Corollaries 4 and 6.
pub(in crate::paper::overlap) const STATEMENTS: [(&str, &str); 2] = [
    ("after Corollary 4", "The ratio 2a/(1+a) is approached for every a > 1, by many jobs and small e."),
    ("after Corollary 6", "The ratio 1 + 1/b is approached for every b > 1 by many jobs."),
];

fn compared(what: String, reference: f64, ours: f64) -> Compared {
    Beside::exact(what, ours, Known::exact(reference)).judged()
}

fn counts(context: &Context<'_>) -> &'static [usize] {
    context.scaled(&[4, 10, 40, 100], &[4, 10, 40, 100, 400, 1000], &[4, 10, 40, 100, 400, 1000, 4000])
}

/// The totals that the reference prints, of the policy and of the alternative, beside ours.
fn totals(
    known: [(usize, [f64; 2]); 3],
    setting: &str,
    names: [&str; 2],
    example: impl Fn(usize) -> anyhow::Result<[f64; 2]>,
) -> anyhow::Result<Vec<Compared>> {
    let mut numbers = Vec::new();
    for (jobs, totals) in known {
        for (name, (reference, ours)) in names.iter().zip(totals.into_iter().zip(example(jobs)?)) {
            numbers.push(compared(format!("{setting}, {jobs} jobs, total of {name}"), reference, ours));
        }
    }
    Ok(numbers)
}

pub(super) fn corollary_4(context: &Context<'_>) -> anyhow::Result<Section> {
    const EPSILON: f64 = 0.001;
    let curve = |alpha: f64| {
        let limit = 2.0 * alpha / (1.0 + alpha);
        Approaching::run(format!("a = {alpha}"), limit, counts(context), |jobs| {
            example_4(jobs, alpha, EPSILON)
        })
    };
    let approach = Approach {
        id: "corollary-4",
        caption: "MaxSRPT on its tight example, e = 0.001",
        place: STATEMENTS[0].0,
        statement: STATEMENTS[0].1,
        curves: vec![curve(1.5)?, curve(2.0)?, curve(4.0)?],
        compared: totals(
            [(4, [19.3, 16.0]), (10, [106.0, 85.0]), (1000, [963_475.0, 751_000.0])],
            "a = 2, e = 0.1",
            ["MaxSRPT", "alternating"],
            |jobs| example_4(jobs, 2.0, 0.1),
        )?,
    };
    Ok(section(
        "corollary-4",
        "Corollary 4: the example on which MaxSRPT is as bad as it can be",
        &["Half of the jobs are (a - e, 1), half (1, a). MaxSRPT serves the first half first and wastes \
             the shuffle, then the second and wastes the map; alternating jobs keep both busy."],
        approach.blocks(),
    ))
}

pub(super) fn corollary_6(context: &Context<'_>) -> anyhow::Result<Section> {
    let curve = |beta: f64| {
        let limit = 1.0 + 1.0 / beta;
        Approaching::run(format!("b = {beta}"), limit, counts(context), |jobs| example_6(jobs, beta))
    };
    let approach = Approach {
        id: "corollary-6",
        caption: "SplitSRPT (idle shares lost, as printed) on its tight example",
        place: STATEMENTS[1].0,
        statement: STATEMENTS[1].1,
        curves: vec![curve(1.5)?, curve(2.0)?, curve(4.0)?],
        compared: totals(
            [(4, [27.0, 24.0]), (10, [162.0, 126.0]), (200, [60_297.0, 40_596.0])],
            "b = 2",
            ["SplitSRPT", "one by one"],
            |jobs| example_6(jobs, 2.0),
        )?,
    };
    Ok(section(
        "corollary-6",
        "Corollary 6: the example on which SplitSRPT is as bad as it can be",
        &["All jobs but one are (b, 1), one is (n - 1, (n - 1) b). SplitSRPT serves the large one beside \
             all others, which have only b/(1+b) of the map then; one after the other they would have all \
             of it."],
        approach.blocks(),
    ))
}
