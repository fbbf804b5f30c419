//! Smallest total of completion times of a few jobs that are all present, by trying every order.
//!
//! Paper: pairs, section 3. [`one_order`] is the optimum of its model, where both phases follow one order. In the fluid
//! model of the overlap paper different orders at the two stations can be better, which [`two_orders`] tries.

use crate::job::Size;

/// Maximum number of jobs of [`one_order`], which takes at worst about a second for them.
pub const JOBS_MAX: usize = 10;

/// Maximum number of jobs of [`two_orders`].
pub const TWO_ORDERS_JOBS_MAX: usize = 5;

/// Totals with a smaller relative difference are equal; then the lexicographically first order counts.
const SAME: f64 = 1e-12;

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

/// Optimal pair of orders.
#[derive(Clone, PartialEq, Debug)]
pub struct TwoOrders {
    /// Indices in the order of the maps.
    pub maps: Vec<usize>,
    /// Indices by priority at the shuffle.
    pub shuffles: Vec<usize>,
    /// Sum of all completion times, in seconds.
    pub total: f64,
}

/// Returns the smallest total completion time with one order at the map and another at the shuffle, by trying all
/// `n!²`.
///
/// # Panics
/// If there are more than [`TWO_ORDERS_JOBS_MAX`] jobs.
#[must_use]
pub fn two_orders(jobs: &[Size]) -> TwoOrders {
    assert!(jobs.len() <= TWO_ORDERS_JOBS_MAX, "{} jobs have too many pairs of orders", jobs.len());
    let all = orders(jobs.len());
    let mut best = TwoOrders { maps: Vec::new(), shuffles: Vec::new(), total: f64::INFINITY };
    for maps in &all {
        for shuffles in &all {
            let total: f64 = completions(jobs, maps, shuffles).iter().sum();
            if total < best.total - SAME * total {
                best = TwoOrders { maps: maps.clone(), shuffles: shuffles.clone(), total };
            }
        }
    }
    best
}

/// Returns all orders of `n` things, lexicographically.
#[must_use]
pub fn orders(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let longer = |order: &Vec<usize>| {
            let order = order.clone();
            (0..n).filter(move |index| !order.contains(index)).collect::<Vec<_>>()
        };
        all = all
            .iter()
            .flat_map(|order| {
                longer(order).into_iter().map(move |index| [order.as_slice(), &[index]].concat())
            })
            .collect();
    }
    all
}

/// Progress of a job through both stations.
#[derive(Clone, Copy, Debug, Default)]
struct JobProgress {
    /// Shuffle work that its maps have output and that has not been moved.
    buffer: f64,
    /// Current output rate of its maps.
    inflow: f64,
    mapped: bool,
    completion: Option<f64>,
}

/// Returns the completion times by index in the fluid model: maps run one after the other in one order with an even
/// output. At the shuffle the first job of the other order with buffered work takes all that is left, and a job without
/// buffered work takes at most its inflow.
///
/// # Panics
/// If one of the orders is not an order of all jobs.
#[must_use]
pub fn completions(jobs: &[Size], maps: &[usize], shuffles: &[usize]) -> Vec<f64> {
    assert!(maps.len() == jobs.len() && shuffles.len() == jobs.len(), "orders of {} jobs", jobs.len());
    let mut ways = vec![JobProgress::default(); jobs.len()];
    let (mut now, mut place, mut maps_end) = (0.0, 0, 0.0);
    loop {
        // Starts maps, those of zero length at once.
        while place < maps.len() && maps_end <= now {
            let Size { map, shuffle } = jobs[maps[place]];
            let way = &mut ways[maps[place]];
            if 0.0 < map {
                (way.inflow, maps_end) = (shuffle / map, now + map);
                break;
            }
            (way.buffer, way.mapped) = (shuffle, true);
            place += 1;
        }
        for way in &mut ways {
            if way.mapped && way.buffer <= 0.0 && way.completion.is_none() {
                way.completion = Some(now);
            }
        }
        if place == maps.len() && ways.iter().all(|way| way.completion.is_some()) {
            return ways.iter().filter_map(|way| way.completion).collect();
        }
        let rates = rates(&ways, shuffles);
        let mut step = if place < maps.len() { maps_end - now } else { f64::INFINITY };
        let drains = |way: &JobProgress, rate: f64| way.buffer / (rate - way.inflow);
        for (way, &rate) in ways.iter().zip(&rates) {
            if 0.0 < way.buffer && way.inflow < rate {
                step = step.min(drains(way, rate));
            }
        }
        for (way, &rate) in ways.iter_mut().zip(&rates) {
            let empty = 0.0 < way.buffer && way.inflow < rate && drains(way, rate) <= step;
            let left = way.buffer + (way.inflow - rate) * step;
            // The variable of an event is set exactly, so that no rounding error is left.
            way.buffer = if empty || (way.buffer <= 0.0 && way.inflow <= rate) { 0.0 } else { left.max(0.0) };
        }
        now += step;
        if place < maps.len() && maps_end <= now {
            now = maps_end;
            let way = &mut ways[maps[place]];
            (way.inflow, way.mapped) = (0.0, true);
            place += 1;
        }
    }
}

fn rates(ways: &[JobProgress], shuffles: &[usize]) -> Vec<f64> {
    let mut rates = vec![0.0; ways.len()];
    let mut left = 1.0_f64;
    for &index in shuffles {
        let way = &ways[index];
        rates[index] = if 0.0 < way.buffer { left } else { way.inflow.min(left) };
        left -= rates[index];
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::{completions, one_order, orders, two_orders};
    use crate::job::Size;
    use crate::policy::pairs::{times, total};
    use proptest::prelude::*;

    fn sizes(jobs: &[(f64, f64)]) -> Vec<Size> {
        jobs.iter().copied().map(Size::from).collect()
    }

    fn few(count: usize) -> impl Strategy<Value = Vec<Size>> {
        prop::collection::vec((0_u8..12, 0_u8..12), 0..=count).prop_map(|jobs| {
            jobs.into_iter().map(|(map, shuffle)| Size::from((map.into(), shuffle.into()))).collect()
        })
    }

    proptest! {
        #[test]
        fn optimum_of_one_order_is_the_first_of_the_best_of_all(jobs in few(6)) {
            let all = orders(jobs.len());
            let best = all.iter().min_by(|a, b| total(&jobs, a).total_cmp(&total(&jobs, b))).unwrap();
            let found = one_order(&jobs);
            prop_assert_eq!(found.total, total(&jobs, best));
            prop_assert_eq!(&found.order, best);
        }

        #[test]
        fn one_order_at_both_stations_is_the_closed_form(jobs in few(6)) {
            // A job without shuffle waits for no job in the fluid model, and for those before it in the closed form.
            let jobs: Vec<Size> = jobs.into_iter().filter(|job| 0.0 < job.shuffle).collect();
            let order: Vec<usize> = (0..jobs.len()).rev().collect();
            let fluid = completions(&jobs, &order, &order);
            for (fluid, times) in fluid.iter().zip(times(&jobs, &order)) {
                prop_assert!((fluid - times.end).abs() < 1e-9, "{fluid} against {}", times.end);
            }
        }

        #[test]
        fn two_orders_are_never_worse_than_one(jobs in few(4)) {
            prop_assert!(two_orders(&jobs).total <= one_order(&jobs).total + 1e-9);
        }
    }

    #[test]
    fn two_orders_can_be_better_than_one() {
        let jobs = sizes(&[(2.0, 7.0), (12.0, 8.0), (9.0, 2.0), (4.0, 1.0)]);
        assert_eq!(one_order(&jobs).total, 57.0);
        assert_eq!(two_orders(&jobs).total, 56.0);
    }
}
