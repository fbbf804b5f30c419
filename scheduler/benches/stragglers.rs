//! Cost of the mathematics of stragglers: splits and mean sojourn times of different workers, numbers and
//! mixes.
//!
//! `cargo bench -p gristmill-scheduler --bench stragglers` prints the median of some runs and, where a
//! closed form exists, the error of the result. Not here: the cost of a deal on a cluster.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a measurement reads clocks and prints"
)]

use gristmill_scheduler::placement::place;
use gristmill_scheduler::queueing::sizing::{Law, Spend, WorkerPrice, best_count, best_mix};
use gristmill_scheduler::queueing::{Dtd, Server, mean_sojourn};
use std::hint::black_box;
use std::time::Instant;

const REPEATS: usize = 5;

/// Returns the median milliseconds of some runs.
fn measure(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[REPEATS / 2]
}

fn report(what: &str, milliseconds: f64, note: &str) {
    println!("{what:<58} {milliseconds:>10.3} ms  {note}");
}

fn servers(count: u32) -> Vec<Server> {
    (0..count).map(|i| Server::exponential(0.5 + f64::from(i) / f64::from(count))).collect()
}

fn main() {
    let workers = servers(1000);
    let capacity: f64 = workers.iter().map(|server| server.mu).sum();
    for split in [
        "fair-split:d=3.5",
        "pure-deterministic:d=3.5",
        "pure-stochastic:d=3.5",
        "g-m-1:arrivals=e2",
        "m-ep:d=3.5",
        "m-ep:model=g-g-1",
        "dm-ep:d=3.5",
        "optimal",
        "optimal:d=3.5",
    ] {
        // The fair split must assign work to the slowest worker.
        let lambda = 0.45 * capacity;
        let time = measure(|| drop(black_box(place(split, &workers, lambda))));
        report(&format!("rates and mean of 1,000 workers, {split}"), time, "");
    }
    let equal = vec![Dtd { a: 0.3, b: 0.0, offset: 0.0 }; 1_000];
    let harmonic: f64 = (1..=1000).map(|i| 1.0 / f64::from(i)).sum();
    let off = mean_sojourn(&equal).map_or(f64::NAN, |mean| mean * 0.3 / harmonic - 1.0);
    report(
        "mean of 1,000 equal workers",
        measure(|| drop(black_box(mean_sojourn(&equal)))),
        &format!("off {off:.1e}"),
    );
    let pareto: Vec<Dtd> =
        (0..1000).map(|i| Dtd { a: 0.0, b: 1.5 + f64::from(i) * 1e-3, offset: 1.0 }).collect();
    report("mean of 1,000 different Pareto times", measure(|| drop(black_box(mean_sojourn(&pareto)))), "");
    let mixed: Vec<Dtd> =
        (0..1000).map(|i| Dtd { a: 0.1 + f64::from(i) * 1e-3, b: 1.5, offset: f64::from(i % 7) }).collect();
    report("mean of 1,000 different mixed times", measure(|| drop(black_box(mean_sojourn(&mixed)))), "");
    report(
        "best of 10,000 numbers, lemma 11",
        measure(|| drop(black_box(best_count(1.0, 10.0, Law::Lemma11, 1..=10_000)))),
        "",
    );
    let menu = [WorkerPrice { mu: 1.0, price: 400.0 }, WorkerPrice { mu: 1.25, price: 800.0 }];
    report(
        "best mix of two kinds for 40,000",
        measure(|| drop(black_box(best_mix(&menu, 25.0, 40_000.0, Spend::Exactly)))),
        "",
    );
}
