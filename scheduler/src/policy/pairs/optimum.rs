//! Smallest total of completion times of a few jobs that are all present, by trying every order.
//!
//! Paper: pairs, section 3, in whose model both phases follow one order.

use crate::job::Size;

/// Maximum number of jobs of [`one_order`], which takes at worst about a second for them.
pub const JOBS_MAX: usize = 10;

/// Totals with a smaller relative difference are equal; then the lexicographically first order counts.
pub(super) const SAME: f64 = 1e-12;

/// Optimal order.
#[derive(Clone, PartialEq, Debug)]
pub struct Optimum {
    /// Indices in the order of execution.
    pub order: Vec<usize>,
    /// Sum of all completion times, in seconds.
    pub total: f64,
}

/// Returns the smallest total completion time of any single order. Branch and bound over all `n!` orders.
///
/// # Panics
/// If there are more than [`JOBS_MAX`] jobs.
#[must_use]
pub fn one_order(jobs: &[Size]) -> Optimum {
    assert!(jobs.len() <= JOBS_MAX, "{} jobs have too many orders", jobs.len());
    let sorted = |size: fn(&Size) -> f64| {
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by(|&a, &b| size(&jobs[a]).total_cmp(&size(&jobs[b])));
        order
    };
    let mut search = OrderSearch {
        jobs,
        by_map: sorted(|job| job.map),
        by_shuffle: sorted(|job| job.shuffle),
        used: vec![false; jobs.len()],
        order: Vec::new(),
        best: Optimum { order: Vec::new(), total: f64::INFINITY },
    };
    search.extend(0.0, 0.0, 0.0);
    search.best
}

struct OrderSearch<'a> {
    jobs: &'a [Size],
    by_map: Vec<usize>,
    by_shuffle: Vec<usize>,
    used: Vec<bool>,
    order: Vec<usize>,
    best: Optimum,
}

impl OrderSearch<'_> {
    /// Tries all orders that start with `order`, whose maps and shuffles end at these times and whose completion times
    /// have this sum.
    fn extend(&mut self, maps_end: f64, end: f64, total: f64) {
        if self.order.len() == self.jobs.len() {
            if total < self.best.total - SAME * total {
                self.best = Optimum { order: self.order.clone(), total };
            }
            return;
        }
        // Each station alone would serve the shortest first; in no order do jobs end earlier.
        let alone = |order: &[usize], from: f64, size: fn(&Size) -> f64| {
            let rest = order.iter().filter(|&&index| !self.used[index]);
            rest.scan(from, |at, &index| {
                Some({
                    *at += size(&self.jobs[index]);
                    *at
                })
            })
            .sum::<f64>()
        };
        let maps = alone(&self.by_map, maps_end, |job| job.map);
        let shuffles = alone(&self.by_shuffle, end, |job| job.shuffle);
        if self.best.total * (1.0 + SAME) < total + maps.max(shuffles) {
            return;
        }
        for index in 0..self.jobs.len() {
            if self.used[index] {
                continue;
            }
            let Size { map, shuffle } = self.jobs[index];
            let maps_end = maps_end + map;
            let end = (end + shuffle).max(maps_end);
            self.used[index] = true;
            self.order.push(index);
            self.extend(maps_end, end, total + end);
            self.order.pop();
            self.used[index] = false;
        }
    }
}
