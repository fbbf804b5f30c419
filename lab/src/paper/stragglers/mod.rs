//! The stragglers thesis: how long the slowest of many workers takes, and what follows for splitting work and buying
//! workers.
//!
//! Not here: the mathematics and the splits (`scheduler::queueing`, `scheduler::placement`).

mod cost;
mod equal;
mod equations;
mod fitted;
#[cfg(test)]
pub(super) mod made_up;
mod simulated;
mod sojourn;
mod splits;
mod stream;

use super::{Block, Chart, Compared, Context, Paper, Series};
use crate::paper::Axis;
use crate::paper::judge::{Beside, Known};
use gristmill_scheduler::placement::{Placed, place};
use gristmill_scheduler::queueing::Server;

/// The numbers of workers in the figures of chapter 6.
const COUNTS: [u32; 5] = [40, 80, 120, 160, 200];
/// Service rate of slow and fast workers in chapter 6, in tasks per second.
const SLOW: f64 = 0.8;
const FAST: f64 = 1.0;

/// Runs everything.
///
/// # Errors
/// A computation that fails, which is a bug.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    (context.progress)("distributions fitted to task times");
    let mut sections = vec![fitted::generated(context)?, fitted::measured()?];
    (context.progress)("the largest of many times");
    sections.push(equal::figure_4_1()?);
    sections.extend(sojourn::figures_6()?);
    (context.progress)("queues simulated task by task");
    sections.push(simulated::section(context)?);
    (context.progress)("splits against the optimum");
    sections.extend(splits::sections(context)?);
    (context.progress)("numbers and mixes of workers");
    sections.extend(cost::sections()?);
    (context.progress)("a stream of jobs on a simulated cluster");
    sections.push(stream::section(context)?);
    sections.push(equations::section()?);
    let about = [
        "A reduce can begin only when the slowest map has ended. The thesis models every worker as a queue \
         whose tasks take a delayed tailed time, P(X <= t) = 1 - exp(-a x - b ln(1 + x)) with x = t - T, \
         and asks for the mean of the largest of these times, the mean sojourn time (MST). From it follow \
         how arriving tasks should be split over workers of different speeds (arrival rates lambda_i at \
         service rates mu_i), and how many workers of which kind are best: more workers take less each, but \
         the slowest of more is slower.",
        "Chapter 6 has half of the workers at mu = 0.8 and half at mu = 1 tasks per second. Completion \
         times are T_i = D lambda_i / mu_i plus an exponential time with the rate mu_i - lambda_i. D is 0 \
         for jobs bound by memory and 100 s for jobs bound by processors.",
        "The thesis prints curves, not numbers. The reference numbers beside ours are from an independent \
         implementation of the same equations. MST is computed as the integral of 1 - product of F_i, which \
         holds for any number of workers; the printed sum over all subsets (equation 10) overflows and \
         cancels beyond about thirty. `printed` splits may hand work on (negative rates); `nonneg` is the \
         same without that.",
    ];
    Ok(Paper {
        name: "stragglers",
        title: "Stochastic Modeling and Optimization of Stragglers in MapReduce Framework (F. Farhat, 2015)",
        about: about.map(str::to_owned).to_vec(),
        sections,
    })
}

/// So many workers, half of them slow.
fn halves(count: u32) -> Vec<Server> {
    (0..count).map(|i| Server::exponential(if i < count / 2 { SLOW } else { FAST })).collect()
}

/// The split of this text for half slow and half fast workers.
fn placed(split: &str, count: u32, lambda: f64) -> anyhow::Result<Placed> {
    Ok(place(split, &halves(count), lambda)?)
}

/// Mean sojourn time, where it is finite.
fn mean(split: &str, count: u32, lambda: f64) -> anyhow::Result<Option<f64>> {
    Ok(Some(placed(split, count, lambda)?.mean).filter(|mean| mean.is_finite()))
}

/// Points of a curve, without those that are infinite.
fn curve(
    xs: impl IntoIterator<Item = f64>,
    y: impl Fn(f64) -> anyhow::Result<Option<f64>>,
) -> anyhow::Result<Vec<(f64, f64)>> {
    let points = xs.into_iter().map(|x| Ok(y(x)?.map(|y| (x, y))));
    Ok(points.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn series(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
    Series::new(name, points)
}

fn lines(id: &str, caption: &str, x: Axis, y: Axis, series: Vec<Series>) -> Block {
    Block::Chart(Chart::lines(id, caption, [x, y], series))
}

/// A chart against the rate at which tasks arrive.
fn by_rate(id: &str, caption: &str, y: Axis, series: Vec<Series>) -> Block {
    lines(id, caption, Axis::linear("arrival rate lambda, tasks/s"), y, series)
}

/// A chart against the number of workers.
fn by_number(id: &str, caption: &str, y: Axis, series: Vec<Series>) -> Block {
    lines(id, caption, Axis::linear("number of workers"), y, series)
}

/// A number of ours beside one of the reference, which is right to its last digit.
fn against(what: String, reference: &str, ours: f64) -> Compared {
    Beside::exact(what, ours, Known::text(reference)).judged()
}

/// A count of ours beside one of the reference.
fn same_count(what: String, reference: u32, ours: f64) -> Compared {
    Beside::exact(what, ours, Known::exact(f64::from(reference))).judged()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::judge::refuted::{check, check_listed};
    use crate::paper::testing::check_whole;
    use crate::paper::{Scale, Verdict};

    #[test]
    fn every_claim_of_the_thesis_can_fail_and_can_hold() {
        check(&made_up::rules());
    }

    #[test]
    fn a_quick_run_gives_every_figure_and_agrees_with_the_reference() {
        let context = Context { scale: Scale::Quick, first_seed: 1, progress: &|_| {} };
        let paper = run(&context).unwrap();
        let ids: Vec<&str> = paper.sections.iter().map(|section| section.id.as_str()).collect();
        for id in
            ["table-3-1", "figure-4-1", "figure-6-1", "figure-6-3", "figure-6-5", "figure-6-7", "figure-6-8"]
        {
            assert!(ids.contains(&id), "{id} in {ids:?}");
        }
        for id in ["figure-6-9", "figure-7-1", "figure-7-2", "figure-7-3", "figure-7-4", "equations"] {
            assert!(ids.contains(&id), "{id} in {ids:?}");
        }
        check_whole(&paper);
        check_listed(&paper, &made_up::rules());
        // What is compared with an exact reference agrees, but for what the reference has wrong in its last digits.
        let mut differ = Vec::new();
        for block in paper.sections.iter().flat_map(|section| &section.blocks) {
            let Block::Comparison(rows) = block else { continue };
            let exact = rows.iter().filter(|row| row.half_width.is_none() && row.reference.is_some());
            let exact = exact.filter(|row| row.verdict != Verdict::Holds);
            differ.extend(exact.map(|row| row.what.as_str()));
        }
        assert_eq!(differ, ["lambda 2, 10 workers, MST in s", "lambda 2, 20 workers, MST in s"]);
    }
}
