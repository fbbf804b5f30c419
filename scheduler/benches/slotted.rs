//! The four settings of the ASRPT paper, 20 seeds, all schedulers, on one core: job generation, bounds
//! and simulations.
//!
//! Prints seconds for each scheduler, all settings and seeds together, and the efficiency ratios as a
//! check of the results. `cargo bench -p gristmill-scheduler --bench slotted`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a measurement reads clocks and prints"
)]

use gristmill_scheduler::policy;
use gristmill_scheduler::sim::slotted::lower_bound;
use gristmill_scheduler::sim::slotted::{self, Config};
use gristmill_scheduler::workload::asrpt::{Arrivals, Cut, MACHINES, SETTINGS};
use gristmill_scheduler::workload::{Generator, Job};
use std::time::Instant;

const SEEDS: u64 = 20;

const SCHEDULERS: [(&str, bool); 10] = [
    ("srpt", true),
    ("dsrpt", true),
    ("asrpt", true),
    ("fifo", true),
    ("fair", true),
    ("lrpt", true),
    ("asrpt", false),
    ("fifo", false),
    ("fair", false),
    ("lrpt", false),
];

fn flow(name: &str, preemptive: bool, jobs: &[Job]) -> f64 {
    let mut policy = policy::by_name(name).expect("the policies of the paper are in the catalogue");
    let config = Config::of(&*policy, MACHINES, preemptive);
    let mut flow = 0.0;
    let mut add = |record: &gristmill_scheduler::metrics::JobRecord| flow += record.flow();
    slotted::run(&mut *policy, &config, jobs, &mut add, &mut |_, _| {})
        .expect("the paper's jobs can be simulated");
    flow
}

fn main() {
    let start = Instant::now();
    let workloads: Vec<(usize, Vec<Job>, f64)> = (0..SETTINGS.len())
        .flat_map(|setting| (1..=SEEDS).map(move |seed| (setting, seed)))
        .map(|(setting, seed)| {
            let jobs: Vec<Job> = Arrivals::of(SETTINGS[setting], Cut::Even).jobs(seed).collect();
            let bound = lower_bound::total_flow(MACHINES, &jobs).expect("the paper's jobs have a bound");
            (setting, jobs, bound)
        })
        .collect();
    println!("jobs and bounds      {:7.3} s", start.elapsed().as_secs_f64());
    for (name, preemptive) in SCHEDULERS {
        let began = Instant::now();
        let mut ratios = [0.0; SETTINGS.len()];
        for (setting, jobs, bound) in &workloads {
            ratios[*setting] += flow(name, preemptive, jobs) / bound / SEEDS as f64;
        }
        let form = if preemptive { "p" } else { "np" };
        let ratios = ratios.map(|ratio| format!("{ratio:6.3}")).join(" ");
        println!("{name:>6}/{form:<2}            {:7.3} s   ratios {ratios}", began.elapsed().as_secs_f64());
    }
    println!("altogether           {:7.3} s", start.elapsed().as_secs_f64());
}
