//! The paper's small examples: figure 1, weak pairs, and Algorithm 6 on six jobs.

use super::WORDS;
use crate::prelude::*;
use gristmill_scheduler::job::Size;
use gristmill_scheduler::policy::pairs::optimum::{self, Optimum};
use gristmill_scheduler::policy::pairs::{PairsRule, averages, times};

fn sizes(jobs: &[(f64, f64)]) -> Vec<Size> {
    jobs.iter().copied().map(Size::from).collect()
}

/// Formats an order of jobs as in the paper: counted from 1.
pub(super) fn in_words(order: &[usize]) -> String {
    order.iter().map(|index| format!("J{}", index + 1)).collect::<Vec<_>>().join(", ")
}

fn exactly(what: &str, printed: f64, ours: f64) -> Compared {
    Compared { printed: Some(printed), ..Compared::new(what, ours, printed == ours) }
}

/// Table of start, execution and makespan of every job under some orders.
fn table(key: &str, jobs: &[Size], orders: &[&[usize]]) -> Block {
    let mut rows = Vec::new();
    for order in orders {
        let times = times(jobs, order);
        for &index in *order {
            let (job, time) = (jobs[index], times[index]);
            let words = [in_words(order), format!("J{}", index + 1)].map(Cell::text);
            let numbers = [job.map, job.shuffle, time.start, time.execution(), time.end].map(Cell::number);
            rows.push(words.into_iter().chain(numbers).collect());
        }
    }
    WORDS.table(key, holes![], rows)
}

/// Section on two jobs in both orders.
pub(super) fn figure_1() -> Section {
    let jobs = sizes(&[(1.0, 2.0), (2.0, 1.0)]);
    let last = |order: &[usize]| times(&jobs, order).iter().map(|times| times.end).fold(0.0, f64::max);
    let compared = vec![
        exactly("J2 before J1: all is done", 4.0, last(&[1, 0])),
        exactly("J1 before J2: all is done", 3.0, last(&[0, 1])),
    ];
    let blocks = vec![table("figure-1", &jobs, &[&[1, 0], &[0, 1]]), Block::Comparison(compared)];
    WORDS.section("figure-1", holes![], blocks)
}

/// Section on weak pairs in a row, which are not optimal.
pub(super) fn weak_pairs() -> Section {
    let jobs = sizes(&[(1.0, 2.0), (98.0, 97.0), (45.0, 49.0), (55.0, 51.0)]);
    let orders: [&[usize]; 2] = [&[0, 1, 2, 3], &[0, 2, 3, 1]];
    let makespan = |order: &[usize]| averages(&times(&jobs, order)).makespan;
    let best = optimum::one_order(&jobs);
    let claim = not_always_optimal(makespan(orders[0]), best.total / jobs.len() as f64, &best.order);
    let compared = vec![
        exactly("J1, J2, J3, J4: average makespan", 112.0, makespan(orders[0])),
        exactly("J1, J3, J4, J2: average makespan", 88.5, makespan(orders[1])),
    ];
    let blocks = [Block::Comparison(compared), Block::Claims(vec![claim])];
    let table = table("section-5-1", &jobs, &orders);
    WORDS.section("section-5-1", holes![], [table].into_iter().chain(blocks).collect())
}

/// Judges the average makespan of the pairs in a row and that of the best of all orders.
pub(super) fn not_always_optimal(pairs: f64, optimal: f64, order: &[usize]) -> Claim {
    let holes = holes![
        orders = gristmill_scheduler::sim::fluid::orders::orders(order.len()).len(),
        order = in_words(order),
        optimal
    ];
    WORDS.claim("section-5-1", optimal < pairs, holes)
}

/// Section on Algorithm 6 with the paper's six jobs.
pub(super) fn n_couple() -> Section {
    let jobs = sizes(&[(3.0, 4.0), (7.0, 6.0), (2.0, 4.0), (3.0, 1.0), (7.0, 5.0), (8.0, 10.0)]);
    let order = PairsRule::NewCouple { delta: 0.0 }.order(&jobs);
    let mean = averages(&times(&jobs, &order)).makespan;
    let claim = schedule_is_as_printed(&order, mean, &optimum::one_order(&jobs));
    let blocks = vec![table("section-5-2", &jobs, &[&order]), Block::Claims(vec![claim])];
    WORDS.section("section-5-2", holes![], blocks)
}

/// Schedule that the paper prints.
const PRINTED: [usize; 6] = [2, 3, 0, 1, 5, 4];

/// Judges our order with its average makespan, and the best one.
pub(super) fn schedule_is_as_printed(order: &[usize], mean: f64, best: &Optimum) -> Claim {
    let optimum = best.total / order.len() as f64;
    let [printed, ours, best] = [&PRINTED[..], order, &best.order].map(in_words);
    WORDS.claim("section-5-2", order == PRINTED, holes![printed, order = ours, mean, optimum, best])
}
