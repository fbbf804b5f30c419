//! What a submitter sees of a cluster: its workers, and their files by asking them.

use crate::api::{Submission, WorkerStatus};
use gristmill_scheduler::ids::WorkerId;
use gristmill_worker::agent::files::{FileKey, JobFiles, SAMPLE_ROUTE};
use gristmill_worker::api::{Input, PlanError, Submitter};
use gristmill_worker::http::{Endpoint, HttpError, Key, Pool, Secret, full};
use gristmill_worker::input::list::{ListedFile, Listing, list_local};
use gristmill_worker::input::plan::{FirstRecord, first_records, input_bytes};
use gristmill_worker::input::{FilePath, InputError, InputLimits, Place};
use hyper::{Method, StatusCode};
use std::collections::BTreeMap;

/// What planning needs to know of the cluster.
pub(crate) struct ClusterView {
    pub workers: Vec<WorkerStatus>,
    /// What opens each worker's listings and samples.
    pub list_keys: BTreeMap<WorkerId, Secret>,
    pub pool: Pool,
    pub runtime: tokio::runtime::Handle,
}

/// Lists files of this machine directly and files of workers by asking them.
pub(crate) struct ClusterListing<'a>(pub &'a ClusterView);

impl Listing for ClusterListing<'_> {
    fn list(&self, place: Place, path: &FilePath) -> Result<Vec<ListedFile>, InputError> {
        let Place::Worker(worker) = place else { return list_local(path) };
        let cluster = self.0;
        let name = FilePath::new([format!("{worker}:").as_bytes(), path.as_bytes()].concat());
        let Some(endpoint) = cluster.endpoint(worker) else {
            return Err(InputError::OutOfReach { path: name });
        };
        cluster.runtime.block_on(list_on(cluster, (worker, endpoint), path, &name))
    }
}

/// Asks a worker for a file, or the files of a directory; errors call it by its whole name.
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

/// The first worker that does not see the output directory or the first input file of a submission, and which of
/// the two; `None` if all see both. A detached job has nobody who would serve them.
pub(crate) async fn unseen(cluster: &ClusterView, submission: &Submission) -> Option<(WorkerId, FilePath)> {
    let directory = submission.output.to_path().join(gristmill_worker::commit::TEMPORARY);
    let probe = FilePath::from(directory.join(submission.output_probe.as_str()).as_path());
    let pieces = submission.splits.iter().flat_map(|split| &split.pieces);
    let first = pieces.into_iter().find(|piece| piece.place == Place::Submitter);
    for worker in &cluster.workers {
        if list_on(cluster, (worker.worker, &worker.endpoint), &probe, &probe).await.is_err() {
            return Some((worker.worker, submission.output.clone()));
        }
        if let Some(piece) = first {
            let seen = list_on(cluster, (worker.worker, &worker.endpoint), &piece.path, &piece.name)
                .await
                .unwrap_or_default();
            if !seen.iter().any(|file| file.stamp == piece.stamp) {
                return Some((worker.worker, piece.name.clone()));
            }
        }
    }
    None
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

    pub(crate) fn slots(&self) -> u32 {
        self.workers.iter().map(|worker| worker.slots).sum()
    }
}

/// Looks at inputs for a job that is being prepared.
pub(crate) struct ClusterSubmitter<'a>(pub &'a ClusterView, pub InputLimits);

impl Submitter for ClusterSubmitter<'_> {
    fn size(&self, input: &Input) -> Result<u64, PlanError> {
        input_bytes(input, &ClusterListing(self.0)).map_err(|error| unusable(input, &error))
    }

    fn first_records(&self, input: &Input) -> Result<Vec<FirstRecord>, PlanError> {
        let records = first_records(input, &ClusterListing(self.0), &self.0.files(), &self.1);
        records.map_err(|error| unusable(input, &error))
    }
}

fn unusable(input: &Input, error: &InputError) -> PlanError {
    PlanError::Input { path: input.paths.join(", "), reason: crate::chain(error) }
}
