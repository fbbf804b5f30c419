//! Micro benchmarks: one part of the data path or of the master at a time, so that a regression can be located.
//!
//! All: `cargo bench -p gristmill-benches --bench micro`, about two minutes. Some: `-- fetch/` or any other part of a
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
mod collector;
mod commit;
mod data;
mod decision;
mod fetch;
mod merge;
mod segment;
mod sort;
mod task;
mod tokenise;

use criterion::measurement::WallTime;
use criterion::{BatchSize, Bencher, BenchmarkGroup, Criterion, SamplingMode};
use std::time::Duration;

/// Number of samples of each benchmark.
const SAMPLES: usize = 20;
/// Number of samples of benchmarks whose single run takes many milliseconds.
const SAMPLES_SLOW: usize = 10;
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
    collector::benches(&mut criterion);
    sort::benches(&mut criterion);
    segment::benches(&mut criterion);
    merge::benches(&mut criterion);
    fetch::benches(&mut criterion);
    commit::benches(&mut criterion);
    decision::benches(&mut criterion);
    criterion.final_summary();
}

/// Creates a group of benchmarks whose single run takes many milliseconds: each sample has the fewest runs that fill
/// the time.
fn slow_group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(SAMPLES_SLOW).sampling_mode(SamplingMode::Flat);
    group
}

/// Measures `run` only; its result is dropped after the clock has stopped, one at a time.
fn measure<T>(bencher: &mut Bencher<'_>, mut run: impl FnMut() -> T) {
    bencher.iter_batched(|| (), |()| run(), BatchSize::PerIteration);
}
