//! Orders by sorting, with jobs of one priority taken in pairs: MaxDiff, MaxShuffle, MaxSRPT, Pairwise and Algorithms 1
//! to 3 of the pairs paper.
//!
//! Every function returns blocks, each of which was reordered together, in the order of execution.

use super::sequence::by;
use crate::job::Size;

/// Indices of jobs in the order of execution, split into units of a rule.
pub type JobBlocks = Vec<Vec<usize>>;

/// MaxDiff: by `m - s`, shuffle-heavy jobs first. O(n log n).
#[must_use]
pub fn max_diff(jobs: &[Size]) -> JobBlocks {
    sorted(jobs, |job| -job.surplus())
}

/// MaxShuffle: by `s`, largest first. O(n log n).
#[must_use]
pub fn max_shuffle(jobs: &[Size]) -> JobBlocks {
    sorted(jobs, |job| -job.shuffle)
}

/// MaxSRPT as the paper's baseline: by `max(m, s)` on arrival. O(n log n).
#[must_use]
pub fn max_srpt(jobs: &[Size]) -> JobBlocks {
    sorted(jobs, Size::dominant)
}

/// Pairwise: all jobs in pairs of the most shuffle-heavy and the most map-heavy one of the rest. O(n log n).
#[must_use]
pub fn pairwise(jobs: &[Size]) -> JobBlocks {
    let all: Vec<usize> = (0..jobs.len()).collect();
    in_pairs(jobs, &all).chunks(2).map(<[usize]>::to_vec).collect()
}

/// Algorithms 1 to 3: by priority in steps of `delta` (0: exact values), with those of one step in pairs.
///
/// The priority is [`Size::dominant`] in Algorithm 1 (`pair`), [`Size::total`] in Algorithm 2 (`couple`) and
/// [`Size::blend`] in Algorithm 3 (`generalized`). Priorities are rounded to steps, sizes stay exact. O(n log n).
#[must_use]
pub fn by_priority(jobs: &[Size], delta: f64, priority: impl Fn(Size) -> f64) -> JobBlocks {
    let priorities: Vec<f64> = jobs.iter().map(|&job| priority(job)).collect();
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_unstable_by(by(|index| priorities[index]));
    let step = |index: usize| steps(priorities[index], delta);
    order.chunk_by(|&a, &b| step(a) == step(b)).map(|subset| in_pairs(jobs, subset)).collect()
}

/// Returns the step of a value; the value itself for `delta` 0. A small constant is added so that values that are an
/// integer number of steps, except for rounding, get that step.
pub(super) fn steps(value: f64, delta: f64) -> f64 {
    if 0.0 < delta { (value / delta + 1e-9).floor() } else { value }
}

/// Reorders a subset in pairs: the most shuffle-heavy job, then the most map-heavy one of the rest. Ties keep the order
/// of the subset; an odd job is last. O(n log n).
#[must_use]
pub fn in_pairs(jobs: &[Size], subset: &[usize]) -> Vec<usize> {
    let mut heavy = subset.to_vec();
    // A stable sort, so that ties keep their order.
    heavy.sort_by(|&a, &b| jobs[b].surplus().total_cmp(&jobs[a].surplus()));
    alternate(&heavy, |&index| jobs[index].surplus())
}

/// Takes alternately from both ends of a list that is descending in `surplus`, the front first; of equal ones always
/// the first. O(n).
pub(super) fn alternate<T: Copy>(falling: &[T], surplus: impl Fn(&T) -> f64) -> Vec<T> {
    let mut out = Vec::with_capacity(falling.len());
    let mut front = 0;
    // Last run of equal values with items left, and the next item taken at the back: runs are taken from their start.
    let (mut run_start, mut next) = (falling.len(), falling.len());
    let mut run_end = falling.len();
    let mut from_front = true;
    while out.len() < falling.len() {
        if next == run_end {
            run_end = run_start;
            let value = surplus(&falling[run_end - 1]);
            run_start = run_end - 1;
            while front < run_start && surplus(&falling[run_start - 1]) == value {
                run_start -= 1;
            }
            next = run_start;
        }
        if from_front && front < run_start {
            out.push(falling[front]);
            front += 1;
        } else {
            out.push(falling[next]);
            next += 1;
        }
        from_front = !from_front;
    }
    out
}

fn sorted(jobs: &[Size], key: impl Fn(Size) -> f64) -> JobBlocks {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_unstable_by(by(|index| key(jobs[index]) + 0.0));
    order.into_iter().map(|index| vec![index]).collect()
}
