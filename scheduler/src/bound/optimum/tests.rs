//! Optima of small instances: orders that try all against orders that are known.

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
        // A job without shuffle waits for nobody in the fluid model, and for those before it in the closed form.
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
