//! Worst cases of the policies MaxSRPT and SplitSRPT, which the overlap paper gives after Corollaries 4 and 6. As jobs
//! are added, the total response time relative to another order grows to the limit of the corollary.

use super::WORDS;
use super::common::{ROUNDING, batch, total};
use crate::prelude::*;
use gristmill_scheduler::sim::fluid::orders::completions_in_order;

/// Runs the tight example after Corollary 4: half of the jobs `(alpha - epsilon, 1)`, half `(1, alpha)`.
/// Returns the total of MaxSRPT and that of alternating jobs.
fn example_4(jobs: usize, alpha: f64, epsilon: f64) -> anyhow::Result<[f64; 2]> {
    let half = jobs / 2;
    let mut sizes = vec![[alpha - epsilon, 1.0]; half];
    sizes.extend(vec![[1.0, alpha]; half]);
    let alternating: Vec<[f64; 2]> = (0..half).flat_map(|_| [[1.0, alpha], [alpha - epsilon, 1.0]]).collect();
    Ok([total("max-srpt", &batch(&sizes))?, completions_in_order(&alternating).iter().sum()])
}

/// Runs the tight example after Corollary 6: all but one `(beta, 1)`, one `(n - 1, (n - 1) beta)`.
/// Returns the total of the literal SplitSRPT and that of one job after the other.
fn example_6(jobs: usize, beta: f64) -> anyhow::Result<[f64; 2]> {
    let others = (jobs - 1) as f64;
    let mut sizes = vec![[beta, 1.0]; jobs - 1];
    sizes.push([others, others * beta]);
    Ok([total("split-srpt:idle=lost", &batch(&sizes))?, completions_in_order(&sizes).iter().sum()])
}

/// Ratio of an example that approaches its limit.
pub(super) struct Approaching {
    pub(super) name: String,
    /// Ratio by number of jobs.
    pub(super) points: Vec<(f64, f64)>,
    pub(super) limit: f64,
}

/// Distance of the longest example to a limit that counts as approached.
const NEAR: f64 = 0.02;

impl Approaching {
    /// Computes the ratio of an example by the number of jobs. The example returns the totals of the
    /// policy and of the alternative.
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

    /// True if the ratio grows, comes near its limit and stays below it.
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
}

/// Statements after Corollaries 4 and 6.
pub(super) const STATEMENTS: [&str; 2] = ["after-corollary-4", "after-corollary-6"];

/// Claim that every curve grows to its limit.
pub(super) fn approached(key: &str, curves: &[Approaching]) -> Claim {
    let ends: Vec<String> = curves.iter().map(Approaching::in_words).collect();
    let seen = curves.iter().map(|curve| CaseVerdict::from(curve.holds()));
    WORDS.claim(key, by_case(seen), holes![ends = ends.join("; "), near = 100.0 * NEAR])
}

fn section(key: &str, statement: &str, curves: &[Approaching]) -> Section {
    WORDS.section(key, holes![], vec![Block::Claims(vec![approached(statement, curves)])])
}

fn counts(context: &Context<'_>) -> &'static [usize] {
    context.scaled(&[4, 10, 40, 100], &[4, 10, 40, 100, 400, 1000], &[4, 10, 40, 100, 400, 1000, 4000])
}

pub(super) fn corollary_4(context: &Context<'_>) -> anyhow::Result<Section> {
    const EPSILON: f64 = 0.001;
    let curve = |alpha: f64| {
        let limit = 2.0 * alpha / (1.0 + alpha);
        let example = |jobs| example_4(jobs, alpha, EPSILON);
        Approaching::run(format!("a = {alpha}"), limit, counts(context), example)
    };
    Ok(section("corollary-4", STATEMENTS[0], &[curve(1.5)?, curve(2.0)?, curve(4.0)?]))
}

pub(super) fn corollary_6(context: &Context<'_>) -> anyhow::Result<Section> {
    let curve = |beta: f64| {
        let limit = 1.0 + 1.0 / beta;
        Approaching::run(format!("b = {beta}"), limit, counts(context), |jobs| example_6(jobs, beta))
    };
    Ok(section("corollary-6", STATEMENTS[1], &[curve(1.5)?, curve(2.0)?, curve(4.0)?]))
}
