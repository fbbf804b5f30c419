//! Runs a workload under one policy on a fresh cluster (or a given one). All jobs are planned before the
//! clock starts, and each is submitted at its time. At the end all data of the master are collected.
//!
//! Not here: the order of runs ([`super`]), and the use of their results ([`super::record`]).

use super::CompareError;
use super::comparison::Site;
use super::follow::{
    all_ended, batches, cancel_all, hand_over_in_time, hand_over_one_by_one, joined, processors, trace_of,
};
use super::gather::failure;
use super::record::Contender;
use super::store::ComparisonStore;
use super::workload::{DATA_MARK, DrawnJob, Workload};
use gristmill_runtime::api::{BatchPlace, EstimatorMemory, ExactWork, JobTrace, MasterStatus, PolicyChange};
use gristmill_runtime::client::{AsyncClient, Ready};
use gristmill_runtime::cluster::{Cluster, ClusterConfig};
use gristmill_runtime::deciders::DeciderNames;
use gristmill_runtime::prepared::PreparedJob;
use gristmill_runtime::registry::Registry;
use gristmill_runtime::submit::JobOptions;
use gristmill_worker::http::JoinLine;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::timeout;

/// Properties common to all runs.
pub(super) struct Runner<'a> {
    pub registry: &'a Registry,
    pub workload: &'a Workload,
    pub site: &'a Site,
    /// True to sync parts to disk.
    pub sync: bool,
    /// Maximum time of one run.
    pub run_limit: Duration,
    /// Directory of the inputs.
    pub data: PathBuf,
    pub interrupted: Option<watch::Receiver<u32>>,
    /// Knowledge of a given master's estimator at the start of each run, so that no contender profits
    /// from earlier runs. Fresh clusters have none.
    pub knowledge: Option<EstimatorMemory>,
    pub runtime: Arc<Runtime>,
}

/// Description of one run.
pub(super) struct RunOrder<'a> {
    pub contender: &'a Contender,
    pub jobs: &'a [DrawnJob],
    /// Work of each job, where it is known.
    pub exact: &'a [Option<ExactWork>],
    /// Empty directory.
    pub directory: &'a Path,
    pub arrivals: RunArrivals<'a>,
}

/// Arrival times of jobs.
#[derive(Clone, Copy)]
pub(super) enum RunArrivals<'a> {
    /// At the drawn times.
    Drawn,
    /// Each after the end of the one before it and its pause, if it has one.
    OneByOne(&'a [Duration]),
}

/// Result of a run.
pub(super) struct RunResult {
    /// Status of the master just before the first job arrived.
    pub master: MasterStatus,
    /// Traces in the order of the jobs.
    pub traces: Vec<JobTrace>,
    /// Seconds that this machine's cores were busy while jobs ran, and the seconds available.
    pub busy: Option<(f64, f64)>,
}

/// State of a given master before the comparison.
pub(super) struct Before {
    change: PolicyChange,
    pub memory: EstimatorMemory,
}

/// Name of a run's journal in its directory.
pub(super) const JOURNAL: &str = "journal.jsonl";

/// Name of the directory for outputs in a run's directory. It is removed when the run has ended.
const OUTPUTS: &str = "outputs";

impl Runner<'_> {
    /// Performs one run; `None` if interrupted.
    pub fn run(&self, order: &RunOrder<'_>) -> Result<Option<RunResult>, CompareError> {
        if self.is_interrupted() {
            return Ok(None);
        }
        let outputs = order.directory.join(OUTPUTS);
        std::fs::create_dir_all(&outputs).map_err(super::store::StoreError::io("make", &outputs))?;
        let result = match self.site {
            Site::Embedded(config) => self.on_fresh_cluster(config, order, &outputs),
            Site::Given(line) => {
                let client = AsyncClient::new(line);
                self.prepare_master(&client, order.contender).and_then(|()| {
                    self.runtime.clone().block_on(self.interruptible(&client, 1, order, &outputs))
                })
            }
        };
        super::store::remove_tree(&outputs)?;
        result
    }

    /// Runs jobs one by one under FIFO, in a directory of this name that is removed after `read`. Returns `None` if
    /// interrupted.
    pub fn run_apart<T>(
        &self,
        store: &ComparisonStore,
        name: &str,
        jobs: &[DrawnJob],
        pauses: &[Duration],
        read: impl FnOnce(RunResult, &Path) -> Result<T, CompareError>,
    ) -> Result<Option<T>, CompareError> {
        let contender = Contender::new(name, "fifo", "pull");
        // An oracle needs the work of every job. The value has no effect while there is only one job.
        let exact: Vec<_> = jobs.iter().map(|job| self.workload.kinds[job.kind].exact.clone()).collect();
        let directory = &store.path().join(name);
        let arrivals = RunArrivals::OneByOne(pauses);
        super::store::remove_tree(directory)?;
        let ran = self.run(&RunOrder { contender: &contender, jobs, exact: &exact, directory, arrivals });
        let found = ran.and_then(|ran| ran.map(|ran| read(ran, directory)).transpose());
        super::store::remove_tree(directory)?;
        found
    }

    /// True if the comparison was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|count| 0 < *count.borrow())
    }

    /// Returns the current policy and estimator knowledge of a given master.
    pub fn policy_of(&self, line: &JoinLine) -> Result<Before, CompareError> {
        let client = AsyncClient::new(line);
        let master =
            self.runtime.block_on(client.master()).map_err(CompareError::client("ask the master"))?;
        if 0 < master.jobs_live {
            return Err(CompareError::Busy { jobs: master.jobs_live });
        }
        let memory = self.runtime.block_on(client.estimator_memory());
        Ok(Before {
            change: PolicyChange { policy: Some(master.policy), placement: Some(master.placement) },
            memory: memory.map_err(CompareError::client("ask what the master's estimator knows"))?,
        })
    }

    /// Restores the policy and estimator knowledge of a master.
    pub fn restore(&self, line: &JoinLine, before: &Before) -> Result<(), CompareError> {
        let client = AsyncClient::new(line);
        let changed = self.runtime.block_on(client.decide_by(&before.change));
        changed.map_err(CompareError::client("restore the master's policy"))?;
        let known = self.runtime.block_on(client.restore_memory(&before.memory));
        known.map_err(CompareError::client("restore what the master's estimator knew"))
    }

    /// Installs the contender's policy, with an estimator that has the knowledge from before the first run.
    fn prepare_master(&self, client: &AsyncClient, contender: &Contender) -> Result<(), CompareError> {
        let change = PolicyChange {
            policy: Some(contender.policy.clone()),
            placement: Some(contender.placement.clone()),
        };
        let changed = self.runtime.block_on(client.decide_by(&change));
        changed.map_err(CompareError::client("change the master's policy"))?;
        let Some(knowledge) = &self.knowledge else { return Ok(()) };
        let known = self.runtime.block_on(client.restore_memory(knowledge));
        known.map_err(CompareError::client("give the master's estimator the knowledge of the first run"))
    }

    fn on_fresh_cluster(
        &self,
        config: &ClusterConfig,
        order: &RunOrder<'_>,
        outputs: &Path,
    ) -> Result<Option<RunResult>, CompareError> {
        let config = ClusterConfig {
            workers: config.workers.clone(),
            deciders: DeciderNames {
                policy: order.contender.policy.clone(),
                placement: order.contender.placement.clone(),
                estimator: config.deciders.estimator.clone(),
            },
            pools: config.pools.clone(),
            journal: Some(order.directory.join(JOURNAL)),
            backups: config.backups,
            divides: config.divides || order.contender.divides,
        };
        self.runtime.clone().block_on(async {
            let cluster = Cluster::start(&config).await.map_err(|source| CompareError::Cluster { source })?;
            let client = AsyncClient::new(&cluster.join_line());
            let ran = self.interruptible(&client, config.workers.count, order, outputs).await;
            cluster.stop().await;
            ran
        })
    }

    /// Does the same as [`Runner::carry_out`], but stops on an interruption or after the time limit.
    async fn interruptible(
        &self,
        client: &AsyncClient,
        workers: u32,
        order: &RunOrder<'_>,
        outputs: &Path,
    ) -> Result<Option<RunResult>, CompareError> {
        let mut interrupted = self.interrupted.clone();
        let interruption = async {
            match &mut interrupted {
                Some(count) => drop(count.wait_for(|count| 0 < *count).await),
                None => std::future::pending().await,
            }
        };
        let ran = tokio::select! {
            ran = timeout(self.run_limit, self.carry_out(client, workers, order, outputs)) => match ran {
                Ok(ran) => ran.map(Some),
                Err(_) => Err(CompareError::Late { contender: order.contender.name.clone(), limit: self.run_limit }),
            },
            () = interruption => Ok(None),
        };
        if matches!(self.site, Site::Given(_)) && !matches!(ran, Ok(Some(_))) {
            cancel_all(client).await;
        }
        ran
    }

    async fn carry_out(
        &self,
        client: &AsyncClient,
        workers: u32,
        order: &RunOrder<'_>,
        outputs: &Path,
    ) -> Result<RunResult, CompareError> {
        let master = joined(client, workers).await?;
        let mut ready = Vec::with_capacity(order.jobs.len());
        for (job, batch) in order.jobs.iter().zip(batch_places(order)) {
            let made = self.make_ready(client, order, (job, batch), outputs).await;
            match made {
                Ok(made) => ready.push(made),
                Err(error) => {
                    ready.into_iter().for_each(Ready::abandon);
                    return Err(error);
                }
            }
        }
        let before = processors();
        let mut read = BTreeMap::new();
        let ids = match order.arrivals {
            RunArrivals::Drawn => hand_over_in_time(client, order.jobs, ready, &mut read).await?,
            RunArrivals::OneByOne(pauses) => hand_over_one_by_one(client, pauses, ready, &mut read).await?,
        };
        all_ended(client).await?;
        let busy = before.zip(processors()).map(|(before, now)| (now.0 - before.0, now.1 - before.1));
        let busy = busy.filter(|(_, all)| 0.0 < *all);
        let mut traces = Vec::with_capacity(ids.len());
        for (id, job) in ids.into_iter().zip(order.jobs) {
            let trace = match read.remove(&id) {
                Some(trace) => trace,
                None => trace_of(client, id).await?,
            };
            if let Some(reason) = failure(&trace) {
                return Err(CompareError::Job {
                    job: self.workload.kinds[job.kind].label.clone(),
                    index: job.index,
                    contender: order.contender.name.clone(),
                    reason,
                });
            }
            traces.push(trace);
        }
        let after = client.master().await.map_err(CompareError::client("ask the master"))?;
        if master.policy_panics < after.policy_panics {
            let contender = order.contender.name.clone();
            return Err(CompareError::Policy { contender, reason: after.policy_panic });
        }
        Ok(RunResult { master, traces, busy })
    }

    async fn make_ready(
        &self,
        client: &AsyncClient,
        order: &RunOrder<'_>,
        (job, batch): (&DrawnJob, Option<BatchPlace>),
        outputs: &Path,
    ) -> Result<Ready, CompareError> {
        let kind = &self.workload.kinds[job.kind];
        let mut options = JobOptions::new(outputs.join(format!("{:05}", job.index)));
        options.label = Some(kind.label.clone());
        options.reduces = kind.reduces;
        options.weight = kind.weight;
        options.pool = kind.pool.clone();
        options.priority = kind.priority;
        options.deadline = kind.deadline.map(Duration::from_secs_f64);
        options.exact = order.exact.get(job.index).cloned().flatten();
        options.sync = self.sync;
        if let Some(bytes) = kind.split_bytes {
            options.split_bytes = bytes;
        }
        options.batch = batch;
        let prepared = prepare(self.registry, self.workload, job, &self.data)?;
        // Jobs are alike: if a given cluster sees the files of the first, it sees those of all.
        let checked = job.index == 0 && matches!(self.site, Site::Given(_));
        client.make_ready(prepared, &options, checked).await.map_err(CompareError::client("plan a job"))
    }
}

/// Returns the place of each job among those that arrive with it; `None` if it arrives alone. The name of a batch must not
/// be that of an earlier run on the same master.
fn batch_places(order: &RunOrder<'_>) -> Vec<Option<BatchPlace>> {
    if !matches!(order.arrivals, RunArrivals::Drawn) {
        return vec![None; order.jobs.len()];
    }
    let run = order.directory.file_name().unwrap_or_default().display();
    let in_batch = |(number, batch): (usize, &[DrawnJob])| {
        let (name, jobs) = (format!("{}-{run}-{number}", std::process::id()), batch.len() as u32);
        let place = move |place| (jobs > 1).then(|| BatchPlace { batch: name.clone(), jobs, place });
        (0..jobs).map(place)
    };
    batches(order.jobs).enumerate().flat_map(in_batch).collect()
}

/// Prepares the job of these arguments.
pub(super) fn prepare(
    registry: &Registry,
    workload: &Workload,
    job: &DrawnJob,
    data: &Path,
) -> Result<Box<dyn PreparedJob>, CompareError> {
    let kind = &workload.kinds[job.kind];
    let known = registry.find_job(&kind.job).ok_or_else(|| CompareError::Unknown {
        job: kind.job.clone(),
        nearest: gristmill_scheduler::catalogue::nearest(&kind.job, registry.job_names()).map(str::to_owned),
    })?;
    let data = data.display().to_string();
    let mut arguments: Vec<String> =
        job.arguments.iter().map(|text| text.replace(DATA_MARK, &data)).collect();
    if kind.plays_exact {
        arguments
            .extend(["--times".to_owned(), times_file(Path::new(&data), job.kind).display().to_string()]);
    }
    let refused = |source: clap::Error| CompareError::Arguments { label: kind.label.clone(), source };
    let flags = known.command().no_binary_name(true).try_get_matches_from(arguments).map_err(refused)?;
    known.parse(&flags).map_err(refused)
}

/// Returns the path of the file with the times of a kind, for the job that plays them.
pub(super) fn times_file(data: &Path, kind: usize) -> PathBuf {
    data.join(format!("times-{kind}.json"))
}
