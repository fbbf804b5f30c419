//! How time and memory grow: with the input, the number of reduces, skew, workers and slots, tasks.
//!
//! Each series is a row, each of its points a contestant. Inputs are made by `gristmill gen` and removed again. Not
//! here: which resource is the limit (`report`).

use crate::archive::{BenchSection, Finding};
use crate::bench::{Bench, Task, words};
use crate::latency::warm_jobs;
use crate::places::free_bytes;
use anyhow::{Context, bail};
use gristmill::scheduler::units::Bytes;
use std::process::{Command, Stdio};

/// The smallest input.
const SMALLEST_BYTES: u64 = 64 << 20;

/// From one size to the next.
const SIZE_FACTOR: u64 = 4;

/// Disk that a point may need, in halves of its input: the input, spills, the output and a little.
const DISK_HALVES: u64 = 7;

/// Flags of all clusters but those of `cluster`: what `run` has on two cores.
const CLUSTER: &str = "--workers 1 --slots 2";

/// The little memory of `size`, and what it is called in the names of rows.
const LITTLE_MEMORY: (&str, &str) = ("-1GiB", "--memory 1GiB");

/// A series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScalingSeries {
    /// Name of its rows; one of a job is behind a dash.
    pub name: &'static str,
    /// One line about it.
    pub title: &'static str,
}

/// All series, in the order of the report.
pub const SERIES: [ScalingSeries; 7] = [
    ScalingSeries { name: "size", title: "against the size of the input" },
    ScalingSeries { name: "reduces", title: "against the number of reduces" },
    ScalingSeries { name: "skew", title: "against the skew of the keys (exponent of Zipf's law)" },
    ScalingSeries { name: "cluster", title: "against workers x slots" },
    ScalingSeries { name: "tasks", title: "against the number of empty tasks, on a warm cluster" },
    ScalingSeries {
        name: "task-memory",
        title: "memory of the master against the number of tasks of one job",
    },
    ScalingSeries {
        name: "workers",
        title: "10,000 empty tasks against the number of workers, on a warm cluster",
    },
];

/// How far.
#[derive(Clone, Copy, Debug)]
pub struct ScalingOptions {
    /// Runs of each point.
    pub rounds: u32,
    /// Largest input.
    pub bytes_max: u64,
    /// Input of all series but `size`.
    pub base_bytes: u64,
    /// Most tasks.
    pub tasks_max: u32,
    /// Most workers.
    pub workers_max: u32,
}

/// Measures the named series, or all.
///
/// # Errors
/// A name that is none, and whatever keeps measurements from being made at all.
pub fn measure_series(bench: &mut Bench, names: &[String], options: ScalingOptions) -> anyhow::Result<()> {
    if let Some(name) = names.iter().find(|name| SERIES.iter().all(|series| series.name != **name)) {
        bail!("there is no series `{name}`");
    }
    for series in SERIES {
        if !names.is_empty() && !names.iter().any(|name| name == series.name) {
            continue;
        }
        eprintln!("{}: {}", series.name, series.title);
        match series.name {
            "size" => sizes(bench, options)?,
            "reduces" => reduces(bench, options)?,
            "skew" => skew(bench, options)?,
            "cluster" => clusters(bench, options)?,
            "tasks" | "task-memory" => tasks(bench, options, series.name)?,
            _ => workers(bench, options)?,
        }
        bench.places.clean_made()?;
    }
    bench.places.clean()
}

fn sizes(bench: &mut Bench, options: ScalingOptions) -> anyhow::Result<()> {
    let mut bytes = SMALLEST_BYTES;
    while bytes <= options.bytes_max {
        for job in [ScaledJob::WordCount, ScaledJob::Sort] {
            let setting = Bytes(bytes).to_string();
            let points = [("", ""), LITTLE_MEMORY].map(|(name, memory)| {
                let row = format!("size-{}{name}", job.name());
                let command = job.command(&format!("{CLUSTER} {memory}"));
                point(&row, &setting, &command, job.input(), 2)
            });
            let copy = format!("cp {} $OUT", job.input());
            // What the machine does with so many bytes if nothing is done with them: it too takes longer for a
            // gigabyte where the memory that it writes to is none that was in use a moment ago.
            let copy = (job == ScaledJob::Sort).then(|| point("size-copy", &setting, &copy, job.input(), 1));
            let points: Vec<Task> = points.into_iter().chain(copy).collect();
            on_made(bench, options, &job.generate(bytes), bytes, &points)?;
        }
        bytes *= SIZE_FACTOR;
    }
    Ok(())
}

fn reduces(bench: &mut Bench, options: ScalingOptions) -> anyhow::Result<()> {
    let job = ScaledJob::Sort;
    let point = |reduces: u32| {
        let command = format!("{} --reduces {reduces}", job.command(CLUSTER));
        point("reduces-sort", &reduces.to_string(), &command, job.input(), 2)
    };
    let points: Vec<Task> = (0..=6).map(|power| point(1 << power)).collect();
    on_made(bench, options, &job.generate(options.base_bytes), options.base_bytes, &points)
}

fn skew(bench: &mut Bench, options: ScalingOptions) -> anyhow::Result<()> {
    let bytes = options.base_bytes;
    for exponent in ["0", "0.5", "1", "1.5"] {
        let job = ScaledJob::WordCount;
        let make = format!("{} --words 1000000 --exponent {exponent}", job.generate(bytes));
        let task = point("skew-wordcount", exponent, &job.command(CLUSTER), job.input(), 2);
        on_made(bench, options, &make, bytes, &[task])?;
    }
    for exponent in ["0", "0.8", "1.2"] {
        let make = format!("$GRISTMILL gen tables $MADE --size {bytes} --exponent {exponent}");
        let join = "$GRISTMILL run join --left $MADE/users.csv --right $MADE/visits.csv --on 1=2 --strategy repartition";
        let command = format!("{join} {CLUSTER} --no-sync --output $OUT");
        let task = point("skew-join", exponent, &command, "$MADE/users.csv $MADE/visits.csv", 2);
        on_made(bench, options, &make, bytes, &[task])?;
    }
    let command = format!("$JOBS run one-group --group-bytes {bytes} {CLUSTER} --no-sync --output $OUT");
    repeat(bench, options, &[point("skew-one-key", "one key", &command, "", 2)])
}

fn clusters(bench: &mut Bench, options: ScalingOptions) -> anyhow::Result<()> {
    for job in [ScaledJob::WordCount, ScaledJob::Sort] {
        let point = |(workers, slots): (u32, u32)| {
            let command = job.command(&format!("--workers {workers} --slots {slots}"));
            let row = format!("cluster-{}", job.name());
            point(&row, &format!("{workers} x {slots}"), &command, job.input(), workers * slots)
        };
        let points: Vec<Task> =
            [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (8, 1)].into_iter().map(point).collect();
        on_made(bench, options, &job.generate(options.base_bytes), options.base_bytes, &points)?;
    }
    Ok(())
}

fn tasks(bench: &mut Bench, options: ScalingOptions, row: &str) -> anyhow::Result<()> {
    let mut maps = 100;
    while maps <= options.tasks_max {
        if row == "tasks" {
            let flags = format!("--jobs 3 --warm-up 1 --maps {maps} {CLUSTER}");
            warm_jobs(bench, &point(row, &maps.to_string(), &warm(&flags), "", 2))?;
        } else {
            let command = format!(
                "$GRISTMILL run synthetic --maps {maps} --map-time 0ms --reduce-time 0ms --reduces 1 {CLUSTER} \
                 --no-sync --output $OUT"
            );
            repeat(bench, options, &[point(row, &maps.to_string(), &command, "", 2)])?;
        }
        maps *= 10;
    }
    Ok(())
}

fn workers(bench: &mut Bench, options: ScalingOptions) -> anyhow::Result<()> {
    for workers in
        [2, 4, 8, 16, 32, 64, 128, 200].into_iter().filter(|&workers| workers <= options.workers_max)
    {
        let flags = format!("--jobs 3 --warm-up 1 --maps 10000 --workers {workers} --slots 1");
        warm_jobs(bench, &point("workers", &workers.to_string(), &warm(&flags), "", workers))?;
    }
    Ok(())
}

/// Jobs whose input is made for a size.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScaledJob {
    WordCount,
    Sort,
}

impl ScaledJob {
    fn name(self) -> &'static str {
        match self {
            Self::WordCount => "wordcount",
            Self::Sort => "sort",
        }
    }

    fn input(self) -> &'static str {
        match self {
            Self::WordCount => "$MADE/text.txt",
            Self::Sort => "$MADE/records.txt",
        }
    }

    fn generate(self, bytes: u64) -> String {
        let kind = match self {
            Self::WordCount => "text",
            Self::Sort => "records",
        };
        format!("$GRISTMILL gen {kind} {} --size {bytes}", self.input())
    }

    fn command(self, cluster: &str) -> String {
        let flags = match self {
            Self::WordCount => "",
            Self::Sort => "--record-length 100 --key-bytes 0..10 ",
        };
        format!("$GRISTMILL run {} {} {flags}{cluster} --no-sync --output $OUT", self.name(), self.input())
    }
}

fn warm(flags: &str) -> String {
    format!("$JOBS run warm-jobs {flags} --reduces 1 --no-sync --quiet --output $OUT/jobs")
}

fn point(row: &str, setting: &str, command: &str, inputs: &str, slots: u32) -> Task {
    Task {
        section: BenchSection::Scaling,
        row: row.to_owned(),
        contestant: setting.to_owned(),
        command: words(command),
        environment: Vec::new(),
        inputs: words(inputs),
        slots: Some(slots),
    }
}

/// Makes an input, runs the points on it, removes it.
fn on_made(
    bench: &mut Bench,
    options: ScalingOptions,
    make: &str,
    bytes: u64,
    points: &[Task],
) -> anyhow::Result<()> {
    bench.places.clean_made()?;
    bench.places.clean()?;
    let (free, needed) = (free_bytes(bench.places.path("$MADE"))?, bytes / 2 * DISK_HALVES);
    if free < needed {
        let reason = format!("it may need {} of disk, {} are free", Bytes(needed), Bytes(free));
        return points
            .iter()
            .try_for_each(|task| bench.keep(task, Finding::Absent { reason: reason.clone() }));
    }
    let words: Vec<String> = words(make).iter().map(|word| bench.places.expand(word)).collect();
    let mut command = Command::new(&words[0]);
    let made =
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !made.with_context(|| format!("could not run {make}"))?.success() {
        bail!("could not make an input: {make}");
    }
    repeat(bench, options, points)?;
    bench.places.clean_made()
}

/// Runs points in turn, so that a noisy minute does not hit one alone.
fn repeat(bench: &mut Bench, options: ScalingOptions, points: &[Task]) -> anyhow::Result<()> {
    for round in 1..=options.rounds {
        for task in points {
            match bench.obstacle(task) {
                Some(reason) => bench.keep(task, Finding::Absent { reason })?,
                None => {
                    bench.run_and_keep(task, round, None)?;
                }
            }
        }
    }
    Ok(())
}
