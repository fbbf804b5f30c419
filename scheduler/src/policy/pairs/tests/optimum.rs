//! Optima by trying every order: in the model of the pairs paper, and with two orders in the fluid model of the overlap
//! paper, where different orders at the two stations can be better.

use super::sizes;
use crate::job::Size;
use crate::policy::pairs::optimum::{SAME, one_order};
use crate::policy::pairs::{times, total};
use crate::sim::fluid::orders::orders;
use proptest::prelude::*;

/// Maximum number of jobs of [`two_orders`].
const TWO_ORDERS_JOBS_MAX: usize = 5;

/// Returns the smallest total completion time with one order at the map and another at the shuffle, by trying all
/// `n!²`.
///
/// # Panics
/// If there are more than [`TWO_ORDERS_JOBS_MAX`] jobs.
pub(super) fn two_orders(jobs: &[Size]) -> f64 {
    assert!(jobs.len() <= TWO_ORDERS_JOBS_MAX, "{} jobs have too many pairs of orders", jobs.len());
    let all = orders(jobs.len());
    let mut best = f64::INFINITY;
    for maps in &all {
        for shuffles in &all {
            let total: f64 = completions(jobs, maps, shuffles).iter().sum();
            if total < best - SAME * total {
                best = total;
            }
        }
    }
    best
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
pub(super) fn completions(jobs: &[Size], maps: &[usize], shuffles: &[usize]) -> Vec<f64> {
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
        prop_assert!(two_orders(&jobs) <= one_order(&jobs).total + 1e-9);
    }
}

#[test]
fn two_orders_can_be_better_than_one() {
    let jobs = sizes(&[(2.0, 7.0), (12.0, 8.0), (9.0, 2.0), (4.0, 1.0)]);
    assert_eq!(one_order(&jobs).total, 57.0);
    assert_eq!(two_orders(&jobs), 56.0);
}
