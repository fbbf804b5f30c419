//! Cost of the fluid simulation: long streams of log-normal jobs at load 0.9, and batches of growing size.
//!
//! Prints, for each policy, the time of a stream with its generation, and the peak memory of the process.
//! Then it prints nanoseconds for each event of batches of 10^2 to 10^5 jobs, which should grow no faster
//! than the logarithm of their number. `cargo bench -p gristmill-scheduler --bench fluid -- JOBS
//! [POLICY...]`; 10^6 jobs by default; without batches if policies are named.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a measurement reads clocks and files and prints"
)]

use gristmill_scheduler::policy::by_name;
use gristmill_scheduler::sim::fluid::run;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::workload::overlap::Poisson;
use std::time::Instant;

const LOAD: f64 = 0.9;
const SEED: u64 = 1;

/// Returns the peak memory of the process so far, in MiB; 0 where the system does not report it.
fn memory_highest_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn stream(name: &str, jobs: usize) {
    let mut policy = by_name(name).expect("a policy of this name");
    let generated = Poisson::new(LOAD, SEED).expect("a load that can be").take(jobs);
    let mut flow = 0.0;
    let start = Instant::now();
    let summary = run(&mut *policy, generated, &mut |record| flow += record.flow()).expect("a run");
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name:12} {jobs:9} {seconds:8.2} {:8.0} {:8.0} {:9} {:8.3} {:6}",
        seconds * 1e9 / jobs as f64,
        seconds * 1e9 / summary.events as f64,
        summary.jobs_max,
        flow / jobs as f64,
        memory_highest_mib(),
    );
}

fn batch(name: &str, jobs: usize) {
    let mut policy = by_name(name).expect("a policy of this name");
    let generated: Vec<Job> = Poisson::new(LOAD, SEED)
        .expect("a load that can be")
        .take(jobs)
        .map(|job| Job { arrival: 0.0, ..job })
        .collect();
    let start = Instant::now();
    let summary = run(&mut *policy, generated, &mut |_| {}).expect("a run");
    let seconds = start.elapsed().as_secs_f64();
    println!("{name:12} {jobs:9} {:8.0}", seconds * 1e9 / summary.events as f64);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let jobs = words.first().map_or(1_000_000, |word| word.parse().expect("a number of jobs"));
    let defaults = ["fcfs", "max-srpt", "split-srpt", "k-lps:k=100"].map(String::from);
    let policies = if words.len() < 2 { &defaults[..] } else { &words[1..] };
    println!("a stream at load {LOAD}, seed {SEED}");
    println!("policy            jobs        s   ns/job ns/event most jobs mean flow    MiB");
    for name in policies {
        stream(name, jobs);
    }
    if 1 < words.len() {
        return;
    }
    println!("a batch\npolicy            jobs ns/event");
    for name in ["fcfs", "max-srpt", "split-srpt"] {
        for jobs in [100, 1_000, 10_000, 100_000] {
            batch(name, jobs);
        }
    }
}
