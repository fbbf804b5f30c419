//! Jobs in weak pairs: Algorithms 6 (`n-couple`), 7 (`match`) and 8 (`o-match`) of the pairs paper.
//!
//! Two jobs are a weak pair if the sum of their map times equals the sum of their shuffle times.

use super::sequence::by;
use super::sorted::{JobBlocks, steps};
use crate::job::Size;
use crate::matching;

/// Maximum number of jobs matched at once. A matching of this many takes up to a second, and the time grows with the
/// third power. With more jobs, the smallest by total workload are matched, and the others follow by total workload.
pub const MATCHED_MAX: usize = 1_000;

/// Algorithm 6: pairs with the same `|m - s|`, smallest first. Each consists of one shuffle-heavy and one map-heavy job
/// (any two where `m = s`), the one with the larger `s - m` first. Jobs without a partner go to the end by total
/// workload. O(n log n).
///
/// Both workloads are counted in steps of `delta` seconds (0: exactly). Only line 7, the order within a pair, uses
/// exact values, since different values may be in the same step. Ties go to lower indices.
#[must_use]
pub fn n_couple(jobs: &[Size], delta: f64) -> JobBlocks {
    let stepped: Vec<Size> = jobs
        .iter()
        .map(|job| Size { map: steps(job.map, delta), shuffle: steps(job.shuffle, delta) })
        .collect();
    let total = |index: usize| stepped[index].total();
    let lean = |index: usize| stepped[index].surplus().abs();
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_unstable_by(|a, b| lean(*a).total_cmp(&lean(*b)).then(by(total)(a, b)));
    let (mut pairs, mut alone): (Vec<[usize; 2]>, Vec<usize>) = (Vec::new(), Vec::new());
    for subset in order.chunk_by(|&a, &b| lean(a) == lean(b)) {
        if lean(subset[0]) == 0.0 {
            let (twos, odd) = subset.as_chunks::<2>();
            pairs.extend(twos);
            alone.extend(odd);
            continue;
        }
        // The smallest pair is the smallest of one kind with the smallest of the other, and so on.
        let (shuffle_heavy, map_heavy): (Vec<usize>, Vec<usize>) =
            subset.iter().partition(|&&index| 0.0 < stepped[index].surplus());
        pairs.extend(shuffle_heavy.iter().zip(&map_heavy).map(|(&first, &second)| [first, second]));
        let paired = shuffle_heavy.len().min(map_heavy.len());
        alone.extend(&shuffle_heavy[paired..]);
        alone.extend(&map_heavy[paired..]);
    }
    alone.sort_unstable_by(by(total));
    in_order_of_totals(jobs, pairs, total)
        .into_iter()
        .chain(alone.into_iter().map(|index| vec![index]))
        .collect()
}

/// Algorithm 7: the pairs of a minimum-weight perfect matching by [`Size::weight`], smallest total first, in each the
/// job with the larger `s - m` first. Of an odd number the most map-heavy job goes last. O(n³).
#[must_use]
pub fn matched(jobs: &[Size], alpha: f64) -> JobBlocks {
    let total = |index: usize| jobs[index].total();
    let (order, odd) = matched_jobs(jobs);
    let mut rest: Vec<usize> = Vec::new();
    if MATCHED_MAX < jobs.len() {
        rest = (0..jobs.len())
            .filter(|index| order.binary_search(index).is_err() && odd != Some(*index))
            .collect();
        rest.sort_unstable_by(by(total));
    }
    let pairs = pairs_of(jobs, &order, alpha);
    let last = odd.into_iter().chain(rest).map(|index| vec![index]);
    in_order_of_totals(jobs, pairs, total).into_iter().chain(last).collect()
}

/// Returns the smallest weight of a perfect matching of these jobs, without the most map-heavy one of an odd number.
/// O(n³) for n up to `MATCHED_MAX`; of more jobs the smallest, as in [`matched`].
#[must_use]
pub fn smallest_weight(jobs: &[Size], alpha: f64) -> f64 {
    let (order, _) = matched_jobs(jobs);
    pairs_of(jobs, &order, alpha).iter().map(|&[a, b]| jobs[a].weight(jobs[b], alpha)).sum()
}

/// Returns the indices of the matched jobs, ascending and of an even number, and the odd one left out.
fn matched_jobs(jobs: &[Size]) -> (Vec<usize>, Option<usize>) {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    if MATCHED_MAX < order.len() {
        order.sort_unstable_by(by(|index| jobs[index].total()));
        order.truncate(MATCHED_MAX);
        order.sort_unstable();
    }
    if order.len().is_multiple_of(2) {
        return (order, None);
    }
    let odd = order.iter().copied().min_by(by(|index| jobs[index].surplus()));
    order.retain(|&index| Some(index) != odd);
    (order, odd)
}

fn pairs_of(jobs: &[Size], order: &[usize], alpha: f64) -> Vec<[usize; 2]> {
    let weight = |a: usize, b: usize| jobs[order[a]].weight(jobs[order[b]], alpha);
    let pairs = matching::minimum_weight_perfect(order.len(), weight);
    pairs.into_iter().map(|[a, b]| [order[a], order[b]]).collect()
}

/// Lines 6 and 7 of Algorithm 6, lines 7 and 8 of Algorithm 7: the smallest pair first, in each the job with the larger
/// exact `s - m`.
fn in_order_of_totals(jobs: &[Size], mut pairs: Vec<[usize; 2]>, total: impl Fn(usize) -> f64) -> JobBlocks {
    let of_pair = |pair: &[usize; 2]| total(pair[0]) + total(pair[1]);
    let smallest = |pair: &[usize; 2]| pair[0].min(pair[1]);
    pairs.sort_unstable_by(|a, b| of_pair(a).total_cmp(&of_pair(b)).then(smallest(a).cmp(&smallest(b))));
    let heavier_first = |[a, b]: [usize; 2]| match jobs[a].surplus() < jobs[b].surplus() {
        true => vec![b, a],
        false => vec![a, b],
    };
    pairs.into_iter().map(heavier_first).collect()
}

/// Algorithm 8: a schedule of waiting jobs into which each arrival is inserted next to its best match.
///
/// An arrival costs O(n), a reschedule as much as [`matched`].
#[derive(Clone, PartialEq, Debug)]
pub struct Schedule {
    alpha: f64,
    /// Jobs in the order of execution.
    jobs: Vec<(u64, Size)>,
}

impl Schedule {
    /// Creates a schedule without jobs.
    #[must_use]
    pub fn new(alpha: f64) -> Self {
        Self { alpha, jobs: Vec::new() }
    }

    /// Adds an arrival. `drawn` is uniform in 0..1; below `1 / n⁴` all jobs are matched again, where `n` counts the
    /// waiting jobs including this one. Otherwise it is inserted next to the job of smallest [`Size::weight`] (the
    /// first of equals): before it if its `s - m` is larger, else behind it. Returns true if all jobs were matched
    /// again.
    pub fn arrive(&mut self, id: u64, size: Size, drawn: f64) -> bool {
        if drawn * ((self.jobs.len() + 1) as f64).powi(4) < 1.0 {
            let mut all = std::mem::take(&mut self.jobs);
            all.push((id, size));
            all.sort_unstable_by_key(|&(id, _)| id);
            self.reschedule(&all);
            return true;
        }
        let weight = |place: usize| size.weight(self.jobs[place].1, self.alpha);
        let Some(near) = (0..self.jobs.len()).min_by(by(weight)) else {
            // A single job needs no matching, whatever was drawn.
            self.jobs.push((id, size));
            return true;
        };
        let before = self.jobs[near].1.surplus() < size.surplus();
        self.jobs.insert(if before { near } else { near + 1 }, (id, size));
        false
    }

    /// Applies Algorithm 7 to these jobs, which must be all waiting jobs.
    pub fn reschedule(&mut self, jobs: &[(u64, Size)]) {
        let sizes: Vec<Size> = jobs.iter().map(|&(_, size)| size).collect();
        self.jobs = matched(&sizes, self.alpha).concat().into_iter().map(|index| jobs[index]).collect();
    }

    /// Removes a job that started or left; the others keep their order.
    pub fn leave(&mut self, id: u64) {
        self.jobs.retain(|&(other, _)| other != id);
    }

    /// Returns the ids of the waiting jobs in the order of execution.
    pub fn order(&self) -> impl Iterator<Item = u64> {
        self.jobs.iter().map(|&(id, _)| id)
    }
}
