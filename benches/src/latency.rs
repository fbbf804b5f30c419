//! Small jobs: from a cold start, on a warm cluster, and with very many tasks.

use crate::archive::{BenchSection, Finding};
use crate::bench::{Bench, RunOutcome, Task, words};
use anyhow::Context;
use serde::Deserialize;
use std::fs;

/// Bytes of the small input.
const SMALL_BYTES: usize = 1024;

/// Uncounted cold starts before the counted ones.
const COLD_WARM_UP: u32 = 3;

/// Number of cold starts of other systems: enough for a median.
const PEER_RUNS: u32 = 10;

/// Target of a row, with its unit and direction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// Median below this, milliseconds.
    MillisecondsMax(f64),
    /// Median above this, tasks per second.
    TasksPerSecondMin(f64),
}

/// Measurement of small jobs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Small {
    /// Name of the row.
    pub name: &'static str,
    /// Title in one line.
    pub title: &'static str,
    /// Target of the row.
    pub goal: Goal,
    /// Times of other systems, as measured elsewhere.
    pub quoted: &'static str,
}

/// Cold start.
pub const COLD: Small = Small {
    name: "cold-1KiB",
    title: "wordcount of 1 KiB, process start to exit",
    goal: Goal::MillisecondsMax(8.0),
    quoted: "DuckDB 110 ms, Dask 760 ms, Ray 3.5 s, Spark 6.7 s to their first result",
};

/// Jobs on a warm cluster.
pub const WARM: Small = Small {
    name: "warm-job",
    title: "one map and one reduce on a warm cluster, submitted to committed in the client (2.5 ms are 400 jobs/s)",
    goal: Goal::MillisecondsMax(2.5),
    quoted: "Spark 104 ms (DataFrame) and 156 ms (RDD) for a small shuffle",
};

/// Jobs of many clients on a warm cluster.
pub const WARM_CLIENTS: Small = Small {
    name: "warm-job-100",
    title: "the same for each of 100 clients at once (50 ms are 2,000 jobs/s)",
    goal: Goal::MillisecondsMax(50.0),
    quoted: "",
};

/// Many tasks on a warm cluster.
pub const TASKS: Small = Small {
    name: "tasks-10000",
    title: "10,000 empty maps and one reduce on a warm cluster, submitted to committed in the client",
    goal: Goal::TasksPerSecondMin(20_000.0),
    quoted: "Ray 1,770, Spark 1,010, Dask 580 tasks/s (10,000 empty tasks)",
};

/// All rows.
pub const ALL: [Small; 4] = [COLD, WARM, WARM_CLIENTS, TASKS];

/// Output of `warm-jobs`.
#[derive(Deserialize)]
struct Printed {
    seconds: Vec<f64>,
    tasks: u64,
}

/// Numbers of runs.
#[derive(Clone, Copy, Debug)]
pub struct LatencyOptions {
    /// Number of cold starts.
    pub cold_runs: u32,
    /// Number of jobs on a warm cluster.
    pub warm_jobs: u32,
}

/// Measures all rows.
///
/// # Errors
/// An error that prevents measurements.
pub fn measure_all(bench: &mut Bench, options: LatencyOptions) -> anyhow::Result<()> {
    bench.places.clean_made()?;
    let small: Vec<u8> = b"the miller grinds the grain that the farmer reaps\n"
        .iter()
        .copied()
        .cycle()
        .take(SMALL_BYTES)
        .collect();
    fs::write(bench.places.path("$MADE").join("small.txt"), small)?;
    let cold = "$GRISTMILL run wordcount $MADE/small.txt --workers 1 --slots 2 --no-sync --output $OUT";
    repeat(bench, &task(COLD, "ours", cold, &["$MADE/small.txt"]), COLD_WARM_UP, options.cold_runs)?;
    let duckdb = "$PYTHON $PEERS/duckdb_jobs.py wc-books $MADE/small.txt $OUT";
    let duckdb = task(COLD, "DuckDB", duckdb, &["$MADE/small.txt"]);
    repeat(bench, &duckdb, 1, options.cold_runs.min(PEER_RUNS))?;
    let jobs = options.warm_jobs;
    warm_jobs(bench, &task(WARM, "ours", &warm(&format!("--jobs {jobs} --maps 1")), &[]))?;
    let many = warm("--clients 100 --jobs 20 --warm-up 2 --maps 1");
    warm_jobs(bench, &task(WARM_CLIENTS, "ours", &many, &[]))?;
    warm_jobs(bench, &task(TASKS, "ours", &warm("--jobs 5 --warm-up 1 --maps 10000"), &[]))?;
    bench.places.clean_made()?;
    bench.places.clean()
}

fn warm(flags: &str) -> String {
    format!(
        "$JOBS run warm-jobs {flags} --workers 1 --slots 2 --reduces 1 --no-sync --quiet --output $OUT/jobs"
    )
}

fn task(small: Small, contestant: &str, command: &str, inputs: &[&str]) -> Task {
    Task {
        section: BenchSection::Latency,
        row: small.name.to_owned(),
        contestant: contestant.to_owned(),
        command: words(command),
        environment: Vec::new(),
        inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
    }
}

fn repeat(bench: &mut Bench, task: &Task, warm_up: u32, runs: u32) -> anyhow::Result<()> {
    if let Some(reason) = bench.obstacle(task) {
        return bench.keep(task, Finding::Absent { reason });
    }
    for number in 0..warm_up + runs {
        let round = (number + 1).saturating_sub(warm_up);
        if bench.run_and_keep(task, round, None)? == RunOutcome::Failed {
            break;
        }
    }
    Ok(())
}

/// Runs `warm-jobs` and stores the times that it prints, with the resources of its processes.
///
/// # Errors
/// An error that prevents the measurement.
pub fn warm_jobs(bench: &mut Bench, task: &Task) -> anyhow::Result<()> {
    if let Some(reason) = bench.obstacle(task) {
        return bench.keep(task, Finding::Absent { reason });
    }
    if bench.run_and_keep(task, 1, None)? == RunOutcome::Failed {
        return Ok(());
    }
    let printed: Printed =
        serde_json::from_str(bench.printed()?.trim()).context("warm-jobs printed something else")?;
    bench.keep(task, Finding::Samples { seconds: printed.seconds, tasks: printed.tasks })
}
