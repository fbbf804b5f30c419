//! Output of handed-over reduce attempts: kept here until the job is removed, and fetched by the attempts
//! that continue.
//!
//! Not here: the state of such an attempt (the master keeps it), and segments, which are gathered again.

use super::assignment::SlotSetting;
use super::failed::{Failed, failed};
use super::part_file::PartFile;
use crate::error_text::chain;
use crate::http::{self, Body, HttpError};
use crate::output::{Output, unpacking};
use crate::protocol::{Continuation, FailureClass, JobOrder};
use crate::response;
use crate::sanitize::message as sanitize;
use crate::task::Progress;
use gristmill_scheduler::ids::{AttemptId, JobId};
use hyper::{Method, Response, StatusCode};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Route prefix under which a worker serves handed-over output.
const ROUTE: &str = "/suspended/";

/// Returns the route of the output of this attempt: `/suspended/JOB/ATTEMPT`.
fn route(attempt: AttemptId) -> String {
    format!("{ROUTE}{}/{}", attempt.task.job, attempt.file_name())
}

/// Parses the job and the attempt's name of such a path.
pub(super) fn parse_route(path: &str) -> Option<(JobId, &str)> {
    let (job, name) = path.strip_prefix(ROUTE)?.split_once('/')?;
    Some((job.parse().ok()?, name))
}

/// Files of handed-over attempts, by job and attempt. Clones share it.
#[derive(Clone, Default)]
pub(super) struct HandoverStore(Arc<Mutex<BTreeMap<JobId, BTreeMap<String, PartFile>>>>);

impl HandoverStore {
    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobId, BTreeMap<String, PartFile>>> {
        // Every change is one insert or one removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the output of an attempt.
    pub(super) fn keep(&self, attempt: AttemptId, built: PartFile) {
        self.jobs().entry(attempt.task.job).or_default().insert(attempt.file_name(), built);
    }

    /// Deletes all files of a job.
    pub(super) fn forget(&self, job: JobId) {
        let gone = self.jobs().remove(&job);
        for built in gone.into_iter().flat_map(BTreeMap::into_values) {
            // In the output's `_temporary` it may have been removed already.
            built.remove();
        }
    }

    /// Serves `GET /suspended/JOB/ATTEMPT` with the whole file; 404 if there is none.
    pub(super) async fn serve(&self, job: JobId, name: &str) -> Response<Body> {
        let built = self.jobs().get(&job).and_then(|files| files.get(name)).cloned();
        let Some(built) = built else { return response::status(StatusCode::NOT_FOUND) };
        let Ok(Ok(file)) = tokio::task::spawn_blocking(move || built.open()).await else {
            return response::status(StatusCode::NOT_FOUND);
        };
        response::with_body(StatusCode::OK, http::file_body(file).1)
    }
}

/// Writer of handed-over output, limited to its length.
struct TakenOver<'a> {
    output: &'a mut Output,
    progress: &'a Progress,
    /// Number of bytes still allowed.
    left: u64,
}

impl Write for TakenOver<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| io::Error::other("it is longer than it was"))?;
        // Written to disk on this thread, which is the slot's own.
        self.output.write(bytes);
        self.progress.bytes_out.store(self.output.bytes(), Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies the output of an earlier attempt into `output`, which is empty, and verifies it. Compressed
/// output is decompressed and compressed again, so that the part has the same bytes as if one attempt had
/// written all of it.
///
/// # Errors
/// Bytes that cannot be fetched or differ from those written. The class is `Fetch`, so that the task
/// starts from its inputs.
pub(super) fn take_over(
    from: &Continuation,
    output: &mut Output,
    progress: &Progress,
    order: &JobOrder,
    setting: &SlotSetting,
) -> Result<(), Failed> {
    let (attempt, endpoint, state) = (from.attempt, &from.endpoint, &from.state);
    let fetch_failed = |why: &str| Failed {
        class: FailureClass::Fetch,
        message: sanitize(&format!("could not take over what {attempt} had written from {endpoint}: {why}")),
    };
    let http_failed = |source: HttpError| fetch_failed(&chain(&source));
    let unpack_failed = |source: io::Error| fetch_failed(&chain(&source));
    let path = route(attempt);
    setting.runtime.block_on(async {
        let request = setting.pool.request(endpoint, Some(&order.key), Method::GET, &path, http::empty());
        let mut response = request.await.map_err(http_failed)?;
        let taken = TakenOver { output: &mut *output, progress, left: state.bytes };
        let mut unpacked = unpacking(taken, order.part_format).map_err(unpack_failed)?;
        while let Some(chunk) = response.body_mut().chunk().await.map_err(http_failed)? {
            progress.check().map_err(|failure| failed(&failure))?;
            unpacked.write_all(&chunk).map_err(unpack_failed)?;
        }
        unpacked.flush().map_err(unpack_failed)
    })?;
    let sum = output.written().map_err(|failure| failed(&failure))?;
    if (sum.bytes, sum.crc32c) != (state.bytes, state.crc32c) {
        return Err(fetch_failed("its bytes are not those that were written"));
    }
    output.count_records(state.records);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::TaskId;

    #[test]
    fn routes_name_the_job_and_the_attempt() {
        let attempt = TaskId::reduce(JobId(4), 17).attempt(2);
        assert_eq!(parse_route(&route(attempt)), Some((JobId(4), "reduce-17.2")));
        for path in ["/suspended/job-4", "/suspended/4/reduce-1.0", "/shuffle/job-4", "/suspended/"] {
            assert_eq!(parse_route(path), None, "{path}");
        }
    }

    #[test]
    fn a_shelf_keeps_files_until_their_job_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("part");
        std::fs::write(&path, "some").unwrap();
        let handovers = HandoverStore::default();
        let built = PartFile::at(crate::directory::Directory::open(directory.path()).unwrap(), "part");
        handovers.keep(TaskId::reduce(JobId(4), 0).attempt(0), built);
        handovers.forget(JobId(5));
        assert!(path.exists());
        handovers.forget(JobId(4));
        assert!(!path.exists());
    }
}
