//! A submitter's view of a cluster: its workers, and their files, which are listed by requests to them.

use crate::api::{Submission, WorkerStatus};
use crate::standard_input::{self, StandardInput};
use gristmill_scheduler::ids::WorkerId;
use gristmill_worker::agent::files::{FileKey, JobFiles, SAMPLE_ROUTE};
use gristmill_worker::api::{Input, PlanError, Submitter};
use gristmill_worker::http::{Endpoint, HttpError, Key, Pool, Secret, full};
use gristmill_worker::input::list::{
    ListedFile, Listing, Subdirectories, list_local, list_local_with, list_stored,
};
use gristmill_worker::input::plan::{FirstRecord, first_records, input_bytes};
use gristmill_worker::input::{FilePath, InputError, InputLimits, Piece, Place};
use gristmill_worker::objects::is_url;
use hyper::{Method, StatusCode};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Data about the cluster that planning needs.
pub(crate) struct ClusterView {
    pub workers: Vec<WorkerStatus>,
    /// Keys of each worker's listings and samples.
    pub list_keys: BTreeMap<WorkerId, Secret>,
    pub pool: Pool,
    pub runtime: tokio::runtime::Handle,
    /// True if another master may replace this one should it be killed.
    pub master_returns: bool,
    /// Source of the input `-`.
    pub standard_input: StandardInput,
    /// Treatment of directories inside input directories.
    pub below: Subdirectories,
}

/// Lists files of this machine directly and files of workers by requests to them.
pub(crate) struct ClusterListing<'a>(pub &'a ClusterView);

impl Listing for ClusterListing<'_> {
    fn list(&self, place: Place, path: &FilePath) -> Result<Vec<ListedFile>, InputError> {
        let cluster = self.0;
        let worker = match place {
            Place::Worker(worker) => worker,
            Place::Submitter if path.as_bytes() == standard_input::NAME => {
                return list_local(&cluster.standard_input.file()?);
            }
            Place::Submitter => return list_local_with(path, cluster.below),
            Place::Store => return list_stored(path, cluster.below),
            Place::Steps => return Err(InputError::out_of_reach(path)),
        };
        let name = FilePath::new([format!("{worker}:").as_bytes(), path.as_bytes()].concat());
        let Some(endpoint) = cluster.endpoint(worker) else {
            return Err(InputError::out_of_reach(&name));
        };
        cluster.runtime.block_on(list_on(cluster, (worker, endpoint), path, &name))
    }
}

/// Lists a file, or the files of a directory, on a worker. Errors use its full name.
async fn list_on(
    cluster: &ClusterView,
    worker: (WorkerId, &Endpoint),
    path: &FilePath,
    name: &FilePath,
) -> Result<Vec<ListedFile>, InputError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| InputError::Remote {
        path: name.clone(),
        offset: 0,
        source,
    };
    let body = serde_json::to_vec(path).map_err(|source| failed(Box::new(source)))?;
    let (_, endpoint) = worker;
    let key = cluster.list_keys.get(&worker.0).map(|key| key as &dyn Key);
    let answer = cluster.pool.request(endpoint, key, Method::POST, "/list", full(body)).await;
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(HttpError::Status { status: StatusCode::NOT_FOUND, .. }) => {
            return Err(InputError::Missing { path: name.clone() });
        }
        Err(HttpError::Status { status: StatusCode::UNPROCESSABLE_ENTITY, message, .. }) => {
            let source = std::io::Error::other(message);
            return Err(InputError::Unreadable { path: name.clone(), source });
        }
        Err(source) => return Err(failed(Box::new(source))),
    };
    let body = answer.body_mut().collect(LISTING_BYTES_MAX).await;
    let body = body.map_err(|source| failed(Box::new(source)))?;
    serde_json::from_slice(&body).map_err(|source| failed(Box::new(source)))
}

/// Timeout of a worker's check of the paths of a detached job.
const LOOK_TIMEOUT: Duration = Duration::from_secs(3);

/// The first worker that reports that it cannot see the output directory or the first input file of a submission, with
/// that path. A detached job has no submitter that could serve its files. Objects in stores are checked by the caller.
/// A worker that does not respond, because it is being replaced or is cut off, is ignored: only the others are asked.
pub(crate) async fn unseen(
    cluster: Arc<ClusterView>,
    submission: &Submission,
) -> Option<(WorkerId, FilePath)> {
    let directory = submission.output.to_path().join(gristmill_worker::commit::TEMPORARY);
    let probe = FilePath::from(directory.join(submission.output_probe.as_str()).as_path());
    let probe = Some(probe).filter(|_| !is_url(&submission.output.to_text()));
    let pieces = submission.splits.iter().flat_map(|split| &split.pieces);
    let first = pieces.into_iter().find(|piece| piece.place == Place::Submitter);
    let wanted = Arc::new(Wanted { output: submission.output.clone(), probe, first: first.cloned() });
    let mut looks = JoinSet::new();
    for worker in 0..cluster.workers.len() {
        let (cluster, wanted) = (cluster.clone(), wanted.clone());
        looks.spawn(async move {
            let worker = &cluster.workers[worker];
            let look = wanted.unseen_by(&cluster, (worker.worker, &worker.endpoint));
            timeout(LOOK_TIMEOUT, look).await.ok().flatten().map(|path| (worker.worker, path))
        });
    }
    looks.join_all().await.into_iter().flatten().min_by_key(|(worker, _)| *worker)
}

/// Paths of a detached job that all workers must see.
struct Wanted {
    output: FilePath,
    /// A file in the output directory; `None` if the output is not a directory.
    probe: Option<FilePath>,
    first: Option<Piece>,
}

impl Wanted {
    /// The path that this worker reports it cannot see.
    async fn unseen_by(&self, cluster: &ClusterView, worker: (WorkerId, &Endpoint)) -> Option<FilePath> {
        let says_no = |error: &InputError| !matches!(error, InputError::Remote { .. });
        if let Some(probe) = &self.probe
            && list_on(cluster, worker, probe, probe).await.is_err_and(|error| says_no(&error))
        {
            return Some(self.output.clone());
        }
        let piece = self.first.as_ref()?;
        let sees = match list_on(cluster, worker, &piece.path, &piece.name).await {
            Ok(files) => files.iter().any(|file| file.stamp == piece.stamp),
            Err(error) => !says_no(&error),
        };
        (!sees).then(|| piece.name.clone())
    }
}

/// Longest listing of a worker's files.
const LISTING_BYTES_MAX: usize = 256 << 20;

impl ClusterView {
    fn endpoint(&self, worker: WorkerId) -> Option<&Endpoint> {
        self.workers.iter().find(|known| known.worker == worker).map(|known| &known.endpoint)
    }

    pub(crate) fn files(&self) -> JobFiles {
        JobFiles {
            route: SAMPLE_ROUTE.to_owned(),
            worker: None,
            key: FileKey::OfWorkers(self.list_keys.clone()),
            submitter: None,
            peers: self.workers.iter().map(|worker| (worker.worker, worker.endpoint.clone())).collect(),
            pool: self.pool.clone(),
            runtime: self.runtime.clone(),
        }
    }

    /// Number of slots of connected workers.
    pub(crate) fn slots(&self) -> u32 {
        self.workers.iter().filter(|worker| !worker.away).map(|worker| worker.slots).sum()
    }
}

/// Examines inputs for a job that is being prepared.
pub(crate) struct ClusterSubmitter<'a>(pub &'a ClusterView, pub InputLimits);

impl Submitter for ClusterSubmitter<'_> {
    fn size(&self, input: &Input) -> Result<u64, PlanError> {
        input_bytes(input, &ClusterListing(self.0)).map_err(|error| unusable(input, &error))
    }

    fn first_records(&self, input: &Input) -> Result<Vec<FirstRecord>, PlanError> {
        let records = first_records(input, &ClusterListing(self.0), &self.0.files(), &self.1);
        records.map_err(|error| unusable(input, &error))
    }

    fn memory_bytes(&self) -> u64 {
        self.0.workers.iter().map(|worker| worker.memory_budget_bytes).min().unwrap_or(u64::MAX)
    }
}

fn unusable(input: &Input, error: &InputError) -> PlanError {
    PlanError::Input { path: input.paths.join(", "), reason: gristmill_worker::error_text::chain(error) }
}
