//! Micro benchmarks: one part of the data path at a time, so that a regression can be located.
//!
//! All: `cargo bench -p gristmill-benches --bench micro`, about a minute. Some: `-- segment/` or any other part of a
//! name after it. The last run is kept below `target/criterion`, and each result is compared with it; `--
//! --save-baseline NAME` and `-- --baseline NAME` compare with a chosen run. `cargo test --benches` runs each once on a
//! small input.
//!
//! Each file documents what it measures, in which unit, and which number of the design it checks. Those numbers are
//! from another machine: judge by the change from run to run and by the ratios within a file, not by the numbers alone.
//!
//! Whole jobs and other systems are measured by the program `gristmill-bench`. Several processes, and functions that
//! are not public, are not measured here.

mod codec;
mod data;
mod segment;
mod tokenise;

use criterion::Criterion;
use std::time::Duration;

/// Number of samples of each benchmark.
const SAMPLES: usize = 20;
/// Resamples for the confidence interval: enough for its two digits, and fast.
const RESAMPLES: usize = 10_000;
/// Relative change below which a difference is noise on a shared machine.
const NOISE: f64 = 0.05;

fn main() {
    let mut criterion = Criterion::default()
        .without_plots()
        .sample_size(SAMPLES)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .nresamples(RESAMPLES)
        .noise_threshold(NOISE)
        .configure_from_args();
    tokenise::benches(&mut criterion);
    codec::benches(&mut criterion);
    segment::benches(&mut criterion);
    criterion.final_summary();
}
