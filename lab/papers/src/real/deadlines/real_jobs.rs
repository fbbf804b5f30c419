//! Real WordCount and Join jobs, with a sleeping Simulator next to them.

use super::super::RealContext;
use super::super::common::{blocks, data_set, policies, section as section_of, workload};
use super::super::judging::pairs;
use super::{WORDS, above, claim, pooled};
use crate::judge::paired;
use crate::words::holes;
use crate::workload::deadlines::NAMES;
use crate::{Claim, Section};
use gristmill_lab::compare::statistics::mean;
use gristmill_lab::compare::workload::{Arrivals, DataSet, Kind, SEED_MARK};
use gristmill_lab::compare::{Comparison, JobRun, RunRecord, Workload};
use gristmill_lab::report::number::with_interval;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::generate;
use gristmill_scheduler::units::Bytes;

/// Policies by name and text.
const POLICIES: [(&str, &str); 3] =
    [("min", "min-scheduler:tick=5ms"), ("max", "max-scheduler:tick=5ms"), ("fair", "fair")];

/// Number of workers and speed of their slots: together less than two processors.
const REAL_WORKERS: u32 = 10;
const REAL_SPEED: f64 = 0.06;

/// Allowed slowdown of the paper's jobs relative to running alone: Simulator, WordCount and both Joins.
const FACTORS: [f64; 4] = [1.69, 2.37, 1.18, 1.18];

const MIB: u64 = 1 << 20;

/// Jobs, and the data that they read.
struct RealJobs {
    kinds: [Kind; 4],
    data: Vec<DataSet>,
    /// Size of the text and of the tables.
    data_mib: u64,
    seed: u64,
}

impl RealJobs {
    fn new(context: &RealContext<'_>) -> Self {
        let scale = context.scaled(1, 3, 8);
        let data_mib = 16 * scale;
        let seed = context.first_seed;
        let data = |name: &str, kind| data_set(name, kind, data_mib * MIB, seed);
        Self {
            kinds: [simulator(200 * scale), word_count(), join(), join()],
            data: vec![data("text", generate::Kind::Text), data("tables", generate::Kind::Tables)],
            data_mib,
            seed,
        }
    }

    fn workload(&self, kinds: Vec<Kind>, arrivals: Arrivals) -> Workload {
        workload("Simulator, WordCount, two Joins", self.seed, arrivals, kinds, self.data.clone())
    }

    /// Returns the time each job takes alone, in seconds.
    fn alone(&self, context: &RealContext<'_>) -> anyhow::Result<[f64; 4]> {
        let mut alone = [0.0; 4];
        for (place, kind) in self.kinds.iter().enumerate().take(3) {
            let single = self.workload(vec![kind.clone()], Arrivals::Batch);
            let folder = format!("deadlines-alone-{place}");
            let fifo = policies(&[("fifo", "fifo")]);
            let comparison = context.compare(&folder, &single, &config(), fifo, 1)?;
            let flows = comparison.runs.iter().flat_map(|run| &run.jobs).map(JobRun::flow);
            alone[place] = mean(flows).unwrap_or(1.0);
        }
        // The second Join equals the first.
        alone[3] = alone[2];
        Ok(alone)
    }

    /// Returns all four jobs, this far apart, with goals by the time that each takes alone.
    fn with_goals(&self, alone: [f64; 4], step: f64) -> Workload {
        let kinds = self.kinds.iter().zip(alone.iter().zip(FACTORS));
        let kinds =
            kinds.map(|(kind, (alone, factor))| Kind { deadline: Some(alone * factor), ..kind.clone() });
        self.workload(kinds.collect(), Arrivals::Times(vec![0.0, step, 2.0 * step, 3.0 * step]))
    }
}

/// Returns the sleeping job, whose sleeps are paced like work.
fn simulator(maps: u64) -> Kind {
    let maps = maps.to_string();
    // Each repetition has its own seed.
    let arguments =
        ["--maps", &maps, "--map-time", "lognormal:4ms,0.7", "--reduce-time", "2ms", "--seed", SEED_MARK];
    Kind { label: NAMES[0].to_owned(), reduces: Some(1), ..Kind::new("synthetic", &arguments) }
}

fn word_count() -> Kind {
    Kind {
        label: NAMES[1].to_owned(),
        split_bytes: Some(MIB),
        reduces: Some(1),
        ..Kind::new("wordcount", &["{data}/text"])
    }
}

fn join() -> Kind {
    let tables = ["--left", "{data}/tables/visits.csv", "--right", "{data}/tables/users.csv"];
    let how = ["--on", "user", "--strategy", "repartition"];
    Kind {
        label: NAMES[2].to_owned(),
        split_bytes: Some(MIB),
        reduces: Some(4),
        ..Kind::new("join", &[tables, how].concat())
    }
}

fn config() -> ClusterConfig {
    let mut config = pooled(REAL_WORKERS);
    config.workers.each.memory = Bytes::mib(64);
    config.workers.speeds = vec![REAL_SPEED];
    config
}

pub(super) fn section(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let jobs = RealJobs::new(context);
    let alone = jobs.alone(context)?;
    // As in the scenario, each job arrives while the earlier ones run.
    let step = alone[0] * FACTORS[0] / 6.0;
    let repetitions = context.scaled(1, 3, 8);
    let workload = jobs.with_goals(alone, step);
    let comparison =
        context.compare("deadlines-real", &workload, &config(), policies(&POLICIES), repetitions)?;
    let holes = holes![
        workers = REAL_WORKERS,
        speed = REAL_SPEED,
        data = jobs.data_mib,
        alone = alone.map(|seconds| format!("{seconds:.2}")).join(", "),
        factors = format!("{FACTORS:?}"),
        step,
        repetitions,
    ];
    let blocks = blocks("real-jobs", &comparison, &["result", "slots-per-job", "deadlines"]);
    let claims = vec![max_is_less_late(&comparison)];
    Ok(section_of((&WORDS, "real-jobs", holes), &comparison, blocks, claims))
}

pub(crate) fn max_is_less_late(comparison: &Comparison) -> Claim {
    let late = |name: &str| {
        let runs = comparison.runs.iter().filter(|run| run.contender.name == name);
        mean(runs.flat_map(|run| &run.jobs).filter_map(JobRun::tardiness)).unwrap_or(f64::NAN)
    };
    let tardiness = |run: &RunRecord| mean(run.jobs.iter().filter_map(JobRun::tardiness));
    // Seconds, as a lateness of zero is possible.
    let [max, fair] = pairs(comparison, ["max", "fair"], tardiness);
    let less = paired(&fair, &max);
    let [min, max, fair] = ["min", "max", "fair"].map(late);
    let words = holes![min, max, fair, less = with_interval(less.mean, less.half_width)];
    claim("max-is-less-late", &comparison.runs, &[(less, above(0.0))], words)
}
