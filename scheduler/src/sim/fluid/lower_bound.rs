//! Lower bound of the overlap paper, section 5.1: no schedule of the overlapping tandem queue has a smaller total
//! response time.
//!
//! Paper: Lin, Zhang, Wierman and Tan, *Joint Optimization of Overlapping Phases in MapReduce*, section 5.1. Queue A
//! serves the map sizes and queue B the shuffle sizes, each by shortest remaining processing time. A cycle ends when
//! both are idle. Each cycle contributes the larger of the two total response times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Job for the bound: arrival, map size, shuffle size.
pub type StationSizes = [f64; 3];

/// Single server that always serves the shortest remaining job.
#[derive(Clone, Debug, Default)]
struct Shortest {
    /// Remaining sizes as ordered bits, with the arrivals, smallest first.
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
    now: f64,
    /// Total response time of the jobs that ended in this cycle.
    total: f64,
}

impl Shortest {
    /// Serves until this time, or until nothing is left.
    fn serve_until(&mut self, until: f64) {
        while let Some(mut top) = self.waiting.peek_mut() {
            let Reverse((bits, arrival)) = *top;
            let left = f64::from_bits(bits);
            let end = self.now + left;
            if until < end {
                *top = Reverse(((left - (until - self.now)).max(0.0).to_bits(), arrival));
                self.now = until;
                return;
            }
            std::collections::binary_heap::PeekMut::pop(top);
            self.total += end - f64::from_bits(arrival);
            self.now = end;
        }
    }

    fn add(&mut self, arrival: f64, size: f64) {
        if self.waiting.is_empty() {
            self.now = arrival;
        }
        self.waiting.push(Reverse((size.to_bits(), arrival.to_bits())));
    }
}

/// Bound of a stream of jobs, one by one. Memory grows with the waiting jobs.
#[derive(Clone, Debug, Default)]
pub struct LowerBound {
    queues: [Shortest; 2],
    jobs: u64,
    total: f64,
}

impl LowerBound {
    /// Creates the bound of no jobs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job: its arrival, not before that of the previous job, and its map and shuffle size; all finite and at
    /// least 0. If both queues are idle, the arrival ends a cycle, and its bound is returned.
    pub fn push(&mut self, [arrival, map, shuffle]: StationSizes) -> Option<f64> {
        for queue in &mut self.queues {
            queue.serve_until(arrival);
        }
        let ended = (0 < self.jobs && self.is_idle()).then(|| self.end_cycle());
        // Adding 0 makes a negative zero positive, so that its bits are ordered.
        for (queue, size) in self.queues.iter_mut().zip([map + 0.0, shuffle + 0.0]) {
            queue.add(arrival + 0.0, size);
        }
        self.jobs += 1;
        ended
    }

    /// Serves the waiting jobs. Returns the bound of the last cycle and of all jobs together.
    #[must_use]
    pub fn finish(mut self) -> (f64, f64) {
        for queue in &mut self.queues {
            queue.serve_until(f64::INFINITY);
        }
        let last = self.end_cycle();
        (last, self.total)
    }

    fn is_idle(&self) -> bool {
        self.queues.iter().all(|queue| queue.waiting.is_empty())
    }

    fn end_cycle(&mut self) -> f64 {
        let [a, b] = &mut self.queues;
        let bound = a.total.max(b.total);
        a.total = 0.0;
        b.total = 0.0;
        self.total += bound;
        bound
    }
}

/// Returns a lower bound of the total response time of these jobs, given in the order of their arrival.
#[must_use]
pub fn lower_bound(jobs: impl IntoIterator<Item = StationSizes>) -> f64 {
    let mut bound = LowerBound::new();
    for job in jobs {
        bound.push(job);
    }
    bound.finish().1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_takes_the_larger_queue_of_each_cycle() {
        // The worked example: two cycles, 10 and 4.
        let mut bound = LowerBound::new();
        let jobs = [[0.0, 1.0, 2.0], [0.0, 3.0, 1.0], [0.0, 2.0, 2.0], [10.0, 2.0, 1.0], [11.0, 0.5, 3.0]];
        let cycles: Vec<f64> = jobs.into_iter().filter_map(|job| bound.push(job)).collect();
        let (last, total) = bound.finish();
        assert_eq!((cycles, last, total), (vec![10.0], 4.0, 14.0));
        assert_eq!(lower_bound(jobs), 14.0);
    }

    #[test]
    fn an_arrival_at_the_moment_of_idleness_starts_a_new_cycle() {
        let mut bound = LowerBound::new();
        assert_eq!(bound.push([0.0, 2.0, 1.0]), None);
        assert_eq!(bound.push([2.0, 1.0, 3.0]), Some(2.0));
        assert_eq!(bound.finish(), (3.0, 5.0));
    }

    #[test]
    fn no_jobs_have_a_bound_of_zero() {
        assert_eq!(lower_bound([]), 0.0);
    }
}
