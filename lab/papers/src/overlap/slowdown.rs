//! Figure 9 of the overlap paper: mean slowdown by size of the job under three policies, and the claims about it.
//! Slowdown is flow time divided by the larger of map and shuffle work.

use super::WORDS;
use super::cells::{BUCKET_WIDTH, BUCKETS, CLASSES, LOADS, PolicyAtLoad, RUNS, SlowdownShare, find};
use super::common::POLICIES;
use crate::prelude::*;

pub(super) fn figure_9(context: &Context<'_>, jobs: usize, cells: &[PolicyAtLoad]) -> Section {
    let jobs_min = context.scaled(100.0, 2_000.0, 10_000.0);
    let of_load = |load| [slowdown_chart(cells, load, jobs_min), Block::Claims(slowdown_claims(cells, load))];
    let blocks = LOADS.into_iter().flat_map(of_load).collect();
    WORDS.section("figure-9", holes![runs = RUNS, jobs, jobs_min], blocks)
}

/// Formats a load for ids.
fn in_percent(load: f64) -> String {
    format!("{:03}", (load * 100.0).round())
}

fn slowdown_chart(cells: &[PolicyAtLoad], load: f64, jobs_min: f64) -> Block {
    let series = POLICIES.iter().filter_map(|&(_, name)| find(cells, load, name)).map(|cell| {
        let mut points = Vec::new();
        let mut open = SlowdownShare::default();
        let mut from = 0;
        for bucket in 0..BUCKETS {
            for run in &cell.runs {
                open.add(run.buckets[bucket]);
            }
            if jobs_min <= open.jobs || bucket + 1 == BUCKETS {
                let middle = BUCKET_WIDTH * (from + bucket + 1) as f64 / 2.0;
                points.extend(open.mean().map(|mean| (middle, mean)));
                open = SlowdownShare::default();
                from = bucket + 1;
            }
        }
        Series::new(cell.name, points)
    });
    WORDS.chart("figure-9-load-{percent}", holes![percent = in_percent(load), load], series.collect())
}

fn class_name(class: usize) -> String {
    match (class.checked_sub(1).map(|before| CLASSES[before]), CLASSES.get(class)) {
        (None, Some(end)) => format!("below {end}"),
        (Some(start), Some(end)) => format!("{start} to {end}"),
        (start, None) => format!("above {}", start.unwrap_or_default()),
    }
}

/// Means of one class of size, one for each run that has jobs of it.
type MeanSlowdowns = Vec<Option<f64>>;

/// Returns the means of the runs that have both.
fn both(one: &MeanSlowdowns, other: &MeanSlowdowns) -> [Vec<f64>; 2] {
    one.iter().zip(other).filter_map(|(one, other)| Some(((*one)?, (*other)?))).unzip().into()
}

/// Slowdowns of one policy by class of size, smallest class first.
struct ByClass(Vec<MeanSlowdowns>);

impl ByClass {
    fn from_cells(name: &str, cells: &[PolicyAtLoad], load: f64) -> Self {
        let cell = find(cells, load, name);
        Self((0..=CLASSES.len()).filter_map(|class| Some(cell?.class_means(class))).collect())
    }

    fn means(&self) -> Vec<f64> {
        let mean =
            |means: &MeanSlowdowns| mean_of(&means.iter().copied().flatten().collect::<Vec<f64>>()).mean;
        self.0.iter().map(mean).collect()
    }

    /// Returns the means of the smallest and of the largest jobs.
    fn end_means(&self) -> [f64; 2] {
        let means = self.means();
        [means.first(), means.last()].map(|mean| mean.copied().unwrap_or(f64::NAN))
    }

    /// True if it is below another policy in a class, run by run on the same jobs.
    fn is_below_in(&self, other: &Self, class: usize) -> CaseVerdict {
        let (Some(ours), Some(theirs)) = (self.0.get(class), other.0.get(class)) else {
            return CaseVerdict::Unclear;
        };
        let [ours, theirs] = both(ours, theirs);
        CaseVerdict::less(&ours, &theirs)
    }

    /// True if it is below another policy in every class.
    fn is_below(&self, other: &Self) -> CaseVerdict {
        CaseVerdict::all((0..=CLASSES.len()).map(|class| self.is_below_in(other, class)))
    }

    /// Returns the difference of each class to the smallest one, run by run.
    fn off_smallest(&self) -> Vec<Interval> {
        let Some((smallest, others)) = self.0.split_first() else { return Vec::new() };
        let off = |class: &MeanSlowdowns| {
            let [ours, smallest] = both(class, smallest);
            log_ratio(&ours, &smallest)
        };
        others.iter().map(off).collect()
    }
}

/// Relative difference below which slowdowns are nearly the same.
const NEARLY: f64 = 0.2;

pub(super) fn slowdown_claims(cells: &[PolicyAtLoad], load: f64) -> Vec<Claim> {
    let by_class = ["k-LPS", "MaxSRPT", "SplitSRPT"].map(|name| ByClass::from_cells(name, cells, load));
    let [lps, max, split] = &by_class;
    let [[small, large], [_, max_large], [_, split_large]] = by_class.each_ref().map(ByClass::end_means);
    let changes = lps.off_smallest();
    let nearly = changes.iter().map(|off| CaseVerdict::alike(off, NEARLY));
    let falls = changes.last().map_or(CaseVerdict::Unclear, |largest| CaseVerdict::below(largest, 0.0));
    let off = changes.last().map_or_else(String::new, percent);
    let better = CaseVerdict::all([max.is_below(lps), split.is_below(lps)]);
    let crosses = CaseVerdict::all([max.is_below_in(split, 0), split.is_below_in(max, CLASSES.len())]);
    let of_lps = holes![load, small, large, off, nearly = 100.0 * NEARLY];
    let of_largest = holes![load, lps = large, max = max_large, split = split_large];
    vec![
        WORDS.claim("nearly-independent", every([CaseVerdict::all(nearly.chain([falls]))]), of_lps),
        WORDS.claim("all-better-off", every([better]), of_largest),
        WORDS.claim("crossing", every([crosses]), holes![load, crossing = crossing(max, split)]),
    ]
}

/// Describes the class from which on SplitSRPT is ahead of MaxSRPT.
fn crossing(max: &ByClass, split: &ByClass) -> String {
    let ahead = max.means().iter().zip(split.means()).position(|(max, split)| split < *max);
    let Some(class) = ahead else { return "SplitSRPT is ahead in no class".to_owned() };
    let ([max_small, max_large], [small, large]) = (max.end_means(), split.end_means());
    format!(
        "smallest {small:.2} against {max_small:.2}, largest {large:.2} against {max_large:.2}; SplitSRPT is ahead from \
         class \"{}\" on",
        class_name(class)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap::cells::CellRun;

    #[test]
    fn classes_are_compared_within_a_run_also_where_a_run_lacks_one() {
        // The larger class is 10 % above the smaller one in each run that has it. Runs differ tenfold.
        let run = |scale: f64, has_large: bool| {
            let share = |slowdowns: f64, jobs: f64| SlowdownShare { slowdowns, jobs };
            let mut classes = [share(scale, 1.0); CLASSES.len() + 1];
            classes[CLASSES.len()] = if has_large { share(1.1 * scale, 1.0) } else { share(0.0, 0.0) };
            CellRun { mean: scale, buckets: Vec::new(), classes }
        };
        let runs = vec![run(1.0, false), run(10.0, true), run(1.0, true), run(10.0, true)];
        let cells = [PolicyAtLoad { load: 0.75, name: "k-LPS", runs }];
        let off = ByClass::from_cells("k-LPS", &cells, 0.75).off_smallest();
        let largest = off.last().unwrap();
        assert!((largest.mean - 1.1_f64.ln()).abs() < 1e-12, "{largest:?}");
        assert!(largest.half_width.unwrap() < 1e-9 && largest.samples == 3, "{largest:?}");
    }
}
