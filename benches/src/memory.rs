//! Memory targets: the peak over all processes of a job stays under a limit, and the output bytes stay
//! the same.

use crate::archive::{BenchSection, Finding};
use crate::bench::{Bench, RunOutcome, Task, words};
use crate::check::OutputKind;
use crate::places::free_bytes;
use crate::rows::{BenchRow, row};
use anyhow::{Context, bail};
use gristmill::scheduler::units::Bytes;

/// Bytes of one group that is reduced.
pub const GROUP_BYTES: u64 = 4 << 30;

/// Free disk that a job may need, as a multiple of its data: map outputs, gathered segments, a merge.
const DISK_FACTOR: u64 = 3;

/// Name of the run without a memory limit, whose bytes are compared.
const REFERENCE: &str = "default budget";

/// Memory target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// Name of its row.
    pub name: &'static str,
    /// Title in one line.
    pub title: &'static str,
    /// Upper limit of the peak, bytes.
    pub peak_bytes_max: u64,
}

/// All targets.
pub const PROMISES: [Promise; 3] = [
    Promise {
        name: "sort-256MiB",
        title: "sort of 1 GB under --memory 256MiB, the same bytes as without",
        peak_bytes_max: 400 << 20,
    },
    Promise {
        name: "wordcount-zipf",
        title: "wordcount with 4.6 million different words under the default budget",
        peak_bytes_max: 1536 << 20,
    },
    Promise { name: "one-group", title: "one key with 4 GiB of values, reduced", peak_bytes_max: 256 << 20 },
];

/// Name of the contestant that the target applies to.
pub const OURS: &str = "ours";

/// Measures all targets.
///
/// # Errors
/// Bytes that differ, and errors that prevent measurements.
pub fn measure_all(bench: &mut Bench, rounds: u32, group_bytes: u64) -> anyhow::Result<()> {
    for promise in PROMISES {
        eprintln!("{}: {}", promise.name, promise.title);
        match promise.name {
            "sort-256MiB" => {
                let sort = row("sort").context("there is no row `sort`")?;
                let budget = words("--memory 256MiB");
                let expected = measure_one(bench, &task(promise, REFERENCE, &sort, &[]), 1)?;
                let found = measure_one(bench, &task(promise, OURS, &sort, &budget), rounds)?;
                if found.iter().any(|content| expected.first().is_some_and(|expected| expected != content)) {
                    bail!("a sort with --memory 256MiB wrote other bytes than one without");
                }
            }
            "wordcount-zipf" => {
                let count = row("wordcount-zipf").context("there is no row `wordcount-zipf`")?;
                measure_one(bench, &task(promise, OURS, &count, &[]), rounds)?;
            }
            _ => {
                measure_group(bench, promise, rounds, group_bytes)?;
            }
        }
    }
    bench.places.clean()
}

fn task(promise: Promise, contestant: &str, row: &BenchRow, flags: &[String]) -> Task {
    let mut command = row.ours(false);
    command.extend_from_slice(flags);
    Task {
        section: BenchSection::Memory,
        row: promise.name.to_owned(),
        contestant: contestant.to_owned(),
        command,
        environment: Vec::new(),
        inputs: row.input_paths(),
        slots: None,
    }
}

/// Runs it a few times and returns the digests of its outputs.
fn measure_one(bench: &mut Bench, task: &Task, rounds: u32) -> anyhow::Result<Vec<u64>> {
    if let Some(reason) = bench.obstacle(task) {
        eprintln!("  {} is left out: {reason}", task.row);
        bench.keep(task, Finding::Absent { reason })?;
        return Ok(Vec::new());
    }
    let mut contents = Vec::new();
    for round in 1..=rounds {
        // Only the sort has bytes to compare.
        let kind = (task.row == "sort-256MiB").then_some(OutputKind::Sorted);
        if let RunOutcome::Well(Some(digest)) = bench.run_and_keep(task, round, kind)? {
            contents.push(digest.content);
        }
    }
    Ok(contents)
}

fn measure_group(bench: &mut Bench, promise: Promise, rounds: u32, bytes: u64) -> anyhow::Result<()> {
    let command = format!(
        "$JOBS run one-group --group-bytes {bytes} --memory 128MiB --workers 2 --slots 1 --no-sync --output $OUT"
    );
    let task = Task {
        section: BenchSection::Memory,
        row: promise.name.to_owned(),
        // The target applies to its own size only.
        contestant: if bytes == GROUP_BYTES { OURS } else { "another size" }.to_owned(),
        command: words(&command),
        environment: Vec::new(),
        inputs: Vec::new(),
        slots: None,
    };
    bench.places.clean()?;
    let (free, needed) = (free_bytes(bench.places.path("$SPILL"))?, bytes * DISK_FACTOR);
    if free < needed {
        let reason = format!("it may need {} of disk, {} are free", Bytes(needed), Bytes(free));
        eprintln!("  {} is left out: {reason}", task.row);
        return bench.keep(&task, Finding::Absent { reason });
    }
    measure_one(bench, &task, rounds).map(drop)
}
