//! Policies compared on real execution: the same jobs, at the same times, on fresh clusters of the same shape, one run
//! after the other in an order that changes, so that drift of the machine hits all policies alike.
//!
//! [`run`] gives plain data; `summary` and `statistics` say what they show, `report` makes sections and pages of them.
//! Every run is kept on disk as soon as it has ended, so that an interrupted comparison can go on. Not here: the command
//! line, and decisions of policies.

mod alone;
pub mod bound;
pub mod file;
mod predicted;
pub mod record;
pub mod report;
mod run;
pub mod series;
pub mod statistics;
pub mod store;
pub mod summary;
pub mod workload;

pub use record::{Alone, Contender, JobRun, RunRecord};
pub use store::{MARK, Store, StoreError};
pub use workload::Workload;

use crate::report::names::slug;
use gristmill_runtime::api::ExactWork;
use gristmill_runtime::client::ClientError;
use gristmill_runtime::cluster::{ClusterConfig, ClusterError};
use gristmill_runtime::generate::{GenerateArgs, GenerateError};
use gristmill_runtime::registry::Registry;
use gristmill_worker::http::JoinLine;
use gristmill_worker::protocol::SlotCounts;
use record::Gathering;
use run::{Order, Runner};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use workload::{DrawError, DrawnJob};

/// Repetitions at most.
pub const REPETITIONS_MAX: u32 = 1000;

/// Jobs of the run that is discarded before all others.
const WARM_UP_JOBS: usize = 4;

/// Where the workload runs.
#[derive(Clone, Debug)]
pub enum Site {
    /// On a fresh cluster of local processes for each run; its policy and placement are the contender's.
    Embedded(ClusterConfig),
    /// On the cluster of this master, whose policy is changed between runs and restored at the end.
    Given(JoinLine),
}

/// How a comparison is done.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is compared, the first being the one that the others are compared with.
    pub contenders: Vec<Contender>,
    /// Runs of each.
    pub repetitions: u32,
    /// Where.
    pub site: Site,
    /// The folder for runs and data; see [`Store`].
    pub folder: PathBuf,
    /// Go on with the runs in the folder.
    pub resume: bool,
    /// A short run is discarded before all others, so that the first policy does not pay for cold caches.
    pub warm_up: bool,
    /// Each different job is also run alone, for slowdown and for what an oracle tells.
    pub isolated: bool,
    /// Parts are synced to disk.
    pub sync: bool,
    /// Longest time of one run.
    pub run_limit: Duration,
}

/// What one hears of a comparison while it is done.
#[derive(Clone, PartialEq, Debug)]
pub enum Progress<'a> {
    /// Inputs are made.
    Data,
    /// Something is run that will be discarded.
    WarmUp,
    /// Jobs run alone.
    Isolated,
    /// A run begins; its place among all.
    Begins(&'a Contender, u32, u32),
    /// A run has ended.
    Ended(&'a RunRecord, u32),
    /// A run was done in an earlier call.
    Kept(&'a RunRecord, u32),
}

/// What came out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// What was run.
    pub workload: Workload,
    /// All that two comparisons must share for their runs to stand side by side.
    pub setting: Value,
    /// Who was compared.
    pub contenders: Vec<Contender>,
    /// Runs of each that were asked for.
    pub repetitions: u32,
    /// Runs that ended, in the order in which they were done.
    pub runs: Vec<RunRecord>,
    /// Jobs alone; empty if they were not run.
    pub alone: Vec<Alone>,
    /// Whether somebody interrupted it.
    pub interrupted: bool,
}

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A job that this program does not know.
    #[error(
        "the workload names a job `{job}` that this program does not know{}",
        nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    )]
    Unknown {
        /// As named.
        job: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// Arguments that a job does not take.
    #[error("the arguments of `{label}` are refused: {}", source.to_string().trim())]
    Arguments {
        /// The kind.
        label: String,
        /// Why.
        source: clap::Error,
    },
    /// A policy or placement that cannot run on a cluster.
    #[error("{reason}")]
    Name {
        /// Why, with its name.
        reason: String,
    },
    /// No policies, the same twice, or no repetitions.
    #[error("{reason}")]
    Options {
        /// Which, in words.
        reason: String,
    },
    /// Nothing can be drawn from the workload.
    #[error(transparent)]
    Draw {
        /// Why.
        #[from]
        source: DrawError,
    },
    /// Inputs cannot be made.
    #[error("the workload's data cannot be made")]
    Data {
        /// Why.
        #[source]
        source: GenerateError,
    },
    /// The folder cannot be used.
    #[error(transparent)]
    Store {
        /// Why.
        #[from]
        source: StoreError,
    },
    /// A cluster did not start.
    #[error(transparent)]
    Cluster {
        /// Why.
        source: ClusterError,
    },
    /// Workers did not join in time.
    #[error("not all of the {workers} workers joined in time")]
    Missing {
        /// How many there should be.
        workers: u32,
    },
    /// The given master has jobs of others.
    #[error("the master has {jobs} job(s) that have not ended; a comparison needs the cluster for itself")]
    Busy {
        /// How many.
        jobs: u32,
    },
    /// A call to the master failed, or a job could not be planned.
    #[error("could not {action}")]
    Client {
        /// What was tried.
        action: &'static str,
        /// Why not.
        #[source]
        source: Box<ClientError>,
    },
    /// The master keeps the tasks of so many jobs only, and they were more.
    #[error(
        "the master has forgotten what tasks of job {index} took, for there were too many: measure smaller jobs alone"
    )]
    Forgotten {
        /// Its place in the order of arrival.
        index: usize,
    },
    /// A job failed, so flow times mean nothing.
    #[error("job {index} ({job}) failed under {contender}: {reason}")]
    Job {
        /// Its kind.
        job: String,
        /// Its place in the order of arrival.
        index: usize,
        /// Under which policy.
        contender: String,
        /// Why.
        reason: String,
    },
    /// The same job gave other bytes.
    #[error(
        "job {index} ({job}) gave other output under {contender} than under {other} in repetition {repetition}"
    )]
    Output {
        /// Its kind.
        job: String,
        /// Its place in the order of arrival.
        index: usize,
        /// Under which policy.
        contender: String,
        /// Than under which.
        other: String,
        /// Which repetition, from 1.
        repetition: u32,
    },
    /// A run that did not end.
    #[error("the run under {contender} did not end within {} s", limit.as_secs())]
    Late {
        /// Under which policy.
        contender: String,
        /// The limit.
        limit: Duration,
    },
    /// A runtime of our own could not be started.
    #[error("the comparison could not start")]
    Start {
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl CompareError {
    fn client(action: &'static str) -> impl FnOnce(ClientError) -> Self {
        move |source| CompareError::Client { action, source: Box::new(source) }
    }
}

/// In which order the contenders run in a repetition: rotated, so that none is always first.
#[must_use]
pub fn rotation(contenders: usize, repetition: u32) -> Vec<usize> {
    (0..contenders).map(|place| (place + repetition as usize) % contenders).collect()
}

/// Refuses everything that can be refused before anything starts.
///
/// # Errors
/// Unknown jobs and policies, policies that cannot run on a cluster, arguments that a job does not take, options that
/// make no sense.
pub fn check(registry: &Registry, workload: &Workload, options: &Options) -> Result<(), CompareError> {
    let refuse = |reason: String| Err(CompareError::Options { reason });
    if options.contenders.is_empty() {
        return refuse("there is no policy to run".to_owned());
    }
    if options.repetitions == 0 || REPETITIONS_MAX < options.repetitions {
        return refuse(format!("{} repetitions are not from 1 to {REPETITIONS_MAX}", options.repetitions));
    }
    let mut names = BTreeSet::new();
    for contender in &options.contenders {
        registry.make_policy(&contender.policy).map_err(|reason| CompareError::Name { reason })?;
        registry.make_placement(&contender.placement).map_err(|reason| CompareError::Name { reason })?;
        if !names.insert(slug(&contender.name)) {
            return refuse(format!("`{}` is there twice", contender.name));
        }
    }
    for job in workload.draw(0)? {
        run::prepare(registry, workload, &job, Path::new("/data"))?;
    }
    Ok(())
}

/// Whether policies are told sizes that must be measured first.
fn needs_sizes(workload: &Workload, options: &Options) -> bool {
    let oracle = match &options.site {
        Site::Embedded(config) => config.deciders.estimator.starts_with("oracle"),
        Site::Given(_) => false,
    };
    oracle && workload.kinds.iter().any(|kind| kind.exact.is_none())
}

/// Cores that all workers share, if they are all of this machine.
fn cores(site: &Site) -> Option<u32> {
    match site {
        Site::Embedded(_) => std::thread::available_parallelism().ok().map(|cores| cores.get() as u32),
        Site::Given(_) => None,
    }
}

/// Runs the workload under every policy, as often as asked for.
///
/// Comes back early, with what has been done, once `interrupted` is above 0.
///
/// # Errors
/// Whatever [`check`] refuses, and everything that keeps a job from succeeding. Runs that ended before stay in the
/// folder.
pub fn run(
    registry: &Registry,
    workload: &Workload,
    options: &Options,
    interrupted: Option<watch::Receiver<u32>>,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<Comparison, CompareError> {
    check(registry, workload, options)?;
    let setting = setting(workload, options);
    let store = Store::open(&options.folder, &setting, options.resume)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = Arc::new(runtime.map_err(|source| CompareError::Start { source })?);
    let runner = Runner {
        registry,
        workload,
        site: &options.site,
        sync: options.sync,
        run_limit: options.run_limit,
        data: store.data(),
        interrupted,
        runtime,
    };
    let before = match &options.site {
        Site::Given(line) => Some((line, runner.policy_of(line)?)),
        Site::Embedded(_) => None,
    };
    let mut comparison = Comparison {
        workload: workload.clone(),
        setting,
        contenders: options.contenders.clone(),
        repetitions: options.repetitions,
        runs: Vec::new(),
        alone: Vec::new(),
        interrupted: false,
    };
    told(Progress::Data);
    make_data(workload, &store)?;
    let result = run_all(&runner, options, &store, &mut comparison, told);
    if let Some((line, change)) = before {
        // What went wrong in a run tells more than what went wrong after it.
        let restored = runner.restore(line, &change);
        result.and(restored)?;
    } else {
        result?;
    }
    Ok(comparison)
}

fn run_all(
    runner: &Runner<'_>,
    options: &Options,
    store: &Store,
    comparison: &mut Comparison,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<(), CompareError> {
    let mut warm = !options.warm_up;
    if options.isolated || needs_sizes(runner.workload, options) {
        if !warm && store.alone()?.is_none() {
            told(Progress::WarmUp);
            let jobs = runner.workload.draw(0)?;
            let told: Vec<_> = jobs.iter().map(|job| runner.workload.kinds[job.kind].exact.clone()).collect();
            warm_up(runner, store, &options.contenders[0], &jobs, &told)?;
            warm = true;
        }
        told(Progress::Isolated);
        let Some(alone) = alone::measure(runner, options, store)? else {
            comparison.interrupted = true;
            return Ok(());
        };
        comparison.alone = alone;
    }
    let mut place = 0;
    for repetition in 0..options.repetitions {
        let jobs = runner.workload.draw(repetition)?;
        let exact: Vec<Option<ExactWork>> =
            jobs.iter().map(|job| alone::known(runner.workload, job, &comparison.alone)).collect();
        for contender in rotation(options.contenders.len(), repetition) {
            let contender = &options.contenders[contender];
            if let Some(kept) = store.finished(contender, repetition)? {
                told(Progress::Kept(&kept, place));
                comparison.runs.push(kept);
                place += 1;
                continue;
            }
            if !warm {
                told(Progress::WarmUp);
                warm_up(runner, store, contender, &jobs, &exact)?;
                warm = true;
            }
            told(Progress::Begins(contender, repetition, place));
            let folder = store.begin(contender, repetition)?;
            let order = Order { contender, jobs: &jobs, exact: &exact, folder: &folder, one_by_one: false };
            let Some(ran) = runner.run(&order)? else {
                store::remove_tree(&folder)?;
                comparison.interrupted = true;
                return Ok(());
            };
            let gathering = Gathering {
                contender,
                repetition,
                place,
                cores: cores(&options.site),
                busy: ran.busy.filter(|_| cores(&options.site).is_some()),
                workload: runner.workload,
                drawn: &jobs,
                master: &ran.master,
                traces: &ran.traces,
            };
            let mut record = gathering.record();
            predicted::add(runner.registry, &options.site, &folder, &mut record);
            same_output(&comparison.runs, &record)?;
            store.keep(&record)?;
            told(Progress::Ended(&record, place));
            comparison.runs.push(record);
            place += 1;
        }
    }
    Ok(())
}

/// A few jobs at once, for caches of files and of the processor's clock; what comes out is thrown away.
fn warm_up(
    runner: &Runner<'_>,
    store: &Store,
    contender: &Contender,
    jobs: &[DrawnJob],
    exact: &[Option<ExactWork>],
) -> Result<(), CompareError> {
    let few: Vec<DrawnJob> =
        jobs.iter().take(WARM_UP_JOBS).map(|job| DrawnJob { arrival: 0.0, ..job.clone() }).collect();
    let folder = store.path().join("warm-up");
    store::remove_tree(&folder)?;
    let order = Order { contender, jobs: &few, exact, folder: &folder, one_by_one: false };
    let ran = runner.run(&order).map(drop);
    store::remove_tree(&folder)?;
    ran
}

/// Refuses a run whose jobs gave other bytes than in the same repetition under another policy.
fn same_output(runs: &[RunRecord], record: &RunRecord) -> Result<(), CompareError> {
    let Some(other) = runs.iter().find(|run| run.repetition == record.repetition) else { return Ok(()) };
    let differs = |(one, two): &(&record::JobRun, &record::JobRun)| {
        (one.output_digest, one.output_bytes) != (two.output_digest, two.output_bytes)
    };
    match record.jobs.iter().zip(&other.jobs).find(differs) {
        None => Ok(()),
        Some((job, _)) => Err(CompareError::Output {
            job: job.label.clone(),
            index: job.index,
            contender: record.contender.name.clone(),
            other: other.contender.name.clone(),
            repetition: record.repetition + 1,
        }),
    }
}

/// Makes inputs and files of times that are not there yet.
fn make_data(workload: &Workload, store: &Store) -> Result<(), CompareError> {
    let data = store.data();
    std::fs::create_dir_all(&data).map_err(StoreError::io("make", &data))?;
    for set in &workload.data {
        let (output, done) = (data.join(&set.name), data.join(format!(".{}-done", set.name)));
        if done.exists() {
            continue;
        }
        store::remove_tree(&output)
            .or_else(|_| std::fs::remove_file(&output).map_err(StoreError::io("remove", &output)))?;
        if set.kind == gristmill_runtime::generate::Kind::Tables {
            std::fs::create_dir_all(&output).map_err(StoreError::io("make", &output))?;
        }
        let arguments = GenerateArgs {
            kind: set.kind,
            output,
            size: set.bytes,
            seed: set.seed,
            words: 100_000,
            exponent: 1.0,
            overwrite: true,
        };
        gristmill_runtime::generate::run(&arguments).map_err(|source| CompareError::Data { source })?;
        store.write(&done, b"")?;
    }
    for (place, kind) in workload.kinds.iter().enumerate().filter(|(_, kind)| kind.plays_exact) {
        let text = serde_json::to_vec(&kind.exact).unwrap_or_default();
        store.write(&run::times_file(&data, place), &text)?;
    }
    Ok(())
}

/// All that must be the same for two runs to stand side by side.
fn setting(workload: &Workload, options: &Options) -> Value {
    let site = match &options.site {
        Site::Embedded(ClusterConfig { workers, deciders, .. }) => json!({
            "workers": workers.count,
            "slots": workers.each.slots.total(),
            "pools": match workers.each.slots {
                SlotCounts::Unified(_) => None,
                SlotCounts::Pools { map, reduce } => Some((map, reduce)),
            },
            "memory_bytes": workers.memory(),
            "estimator": deciders.estimator,
            "speeds": workers.speeds,
            "nic_bytes_per_second": workers.each.nic_bytes_per_second,
            "shuffle": workers.each.shuffle,
        }),
        Site::Given(line) => json!({"master": line.endpoint.to_string()}),
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build": gristmill_worker::build_id(),
        "workload": workload,
        "cluster": site,
        "contenders": options.contenders,
        "isolated": options.isolated,
        "sync": options.sync,
    })
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
