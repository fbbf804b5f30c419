//! The paper's small examples: figure 1, weak pairs, and Algorithm 6 on six jobs.

use crate::paper::{Block, Cell, Claim, Column, Compared, Section, Table};
use gristmill_scheduler::bound::optimum::{self, Optimum};
use gristmill_scheduler::job::Size;
use gristmill_scheduler::policy::pairs::{Rule, averages, times};

fn sizes(jobs: &[(f64, f64)]) -> Vec<Size> {
    jobs.iter().copied().map(Size::from).collect()
}

/// Jobs of an order as the paper writes them: from 1.
pub(super) fn in_words(order: &[usize]) -> String {
    order.iter().map(|index| format!("J{}", index + 1)).collect::<Vec<_>>().join(", ")
}

fn exactly(what: &str, printed: f64, ours: f64) -> Compared {
    Compared { printed: Some(printed), ..Compared::new(what, ours, printed == ours) }
}

/// Start, execution and makespan of every job under some orders.
fn table(id: &str, caption: &str, jobs: &[Size], orders: &[&[usize]]) -> Table {
    let mut columns = vec![Column::new("order", ""), Column::new("job", "")];
    for name in ["map", "shuffle", "waiting", "execution", "makespan"] {
        columns.push(Column::new(name, "slots"));
    }
    let mut rows = Vec::new();
    for order in orders {
        let times = times(jobs, order);
        for &index in *order {
            let (job, time) = (jobs[index], times[index]);
            let mut row = vec![Cell::text(in_words(order)), Cell::text(format!("J{}", index + 1))];
            row.extend([job.map, job.shuffle, time.start, time.execution(), time.end].map(Cell::number));
            rows.push(row);
        }
    }
    Table::new(id, caption, columns, rows)
}

/// Two jobs in both orders.
pub(super) fn figure_1() -> Section {
    let jobs = sizes(&[(1.0, 2.0), (2.0, 1.0)]);
    let last = |order: &[usize]| times(&jobs, order).iter().map(|times| times.end).fold(0.0, f64::max);
    Section::new(
        "figure-1",
        "Figure 1: the shuffle-heavy job first",
        ["J1 maps for 1 slot and shuffles for 2, J2 the other way round. If J2 is first, its maps put \
             out too little to keep the network busy, and all takes a slot longer."],
        vec![
            Block::Table(table("figure-1", "Both orders", &jobs, &[&[1, 0], &[0, 1]])),
            Block::Comparison(vec![
                exactly("J2 before J1: all is done", 4.0, last(&[1, 0])),
                exactly("J1 before J2: all is done", 3.0, last(&[0, 1])),
            ]),
        ],
    )
}

/// Weak pairs in a row are not optimal.
pub(super) fn weak_pairs() -> Section {
    let jobs = sizes(&[(1.0, 2.0), (98.0, 97.0), (45.0, 49.0), (55.0, 51.0)]);
    let orders: [&[usize]; 2] = [&[0, 1, 2, 3], &[0, 2, 3, 1]];
    let makespan = |order: &[usize]| averages(&times(&jobs, order)).makespan;
    let best = optimum::one_order(&jobs);
    let optimal = best.total / jobs.len() as f64;
    let claim = not_always_optimal(makespan(orders[0]), optimal, &best.order);
    Section::new(
        "section-5-1",
        "Section 5.1: weak pairs do not make an optimum",
        ["J1 and J2 balance each other, and so do J3 and J4. Running each pair in a row keeps the network \
                    busy at the cost of a large job before two that are half its size."],
        vec![
            Block::Table(table("section-5-1", "Pairs in a row, and the better order", &jobs, &orders)),
            Block::Comparison(vec![
                exactly("J1, J2, J3, J4: average makespan", 112.0, makespan(orders[0])),
                exactly("J1, J3, J4, J2: average makespan", 88.5, makespan(orders[1])),
            ]),
            Block::Claims(vec![claim]),
        ],
    )
}

/// By the average makespan of the pairs in a row and by the best of all orders.
pub(super) fn not_always_optimal(pairs: f64, optimal: f64, order: &[usize]) -> Claim {
    Claim::new(
        "Section 5.1",
        "Weak pairs in a row are not always optimal.",
        optimal < pairs,
        format!(
            "Of all {} orders {} has the least average makespan, {optimal}.",
            optimum::orders(order.len()).len(),
            in_words(order)
        ),
    )
}

/// Algorithm 6 on the paper's six jobs.
pub(super) fn n_couple() -> Section {
    let jobs = sizes(&[(3.0, 4.0), (7.0, 6.0), (2.0, 4.0), (3.0, 1.0), (7.0, 5.0), (8.0, 10.0)]);
    let order = Rule::NewCouple { delta: 0.0 }.order(&jobs);
    let best = optimum::one_order(&jobs);
    let mean = averages(&times(&jobs, &order)).makespan;
    Section::new(
        "section-5-2",
        "Section 5.2: Algorithm 6 on six jobs",
        ["Jobs with the same |map - shuffle| form pairs, the smallest first; all sizes are in steps. \
             Only a shuffle-heavy and a map-heavy job are a possible pair, as the example has it."],
        vec![
            Block::Table(table("section-5-2", "The order of Algorithm 6", &jobs, &[&order])),
            Block::Claims(vec![schedule_is_as_printed(&order, mean, &best)]),
        ],
    )
}

/// The schedule that the paper prints.
const PRINTED: [usize; 6] = [2, 3, 0, 1, 5, 4];

/// By our order with its average makespan, and the best one.
pub(super) fn schedule_is_as_printed(order: &[usize], mean: f64, best: &Optimum) -> Claim {
    Claim::new(
        "Section 5.2",
        format!("The schedule is {}.", in_words(&PRINTED)),
        order == PRINTED,
        format!(
            "Ours is {}, with an average makespan of {mean:.3} steps; the optimum is {:.3}, by {}.",
            in_words(order),
            best.total / order.len() as f64,
            in_words(&best.order)
        ),
    )
}
