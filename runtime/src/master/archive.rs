//! Archive of ended jobs: the data of each job's trace, report, explanations and logs, in files that outlive the
//! master.
//!
//! There is one file for each job, written off the event loop when the job has ended. Their number and total size are
//! limited: the oldest are deleted. A job that cannot be written causes a warning in the log only. The master of a
//! `run` has no archive. The outcomes of jobs are kept separately (`register`).

use super::kept_job::KeptJob;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::error_text::chain;
use gristmill_worker::whole_file::{self, Promise};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of jobs kept.
const JOBS_MAX: usize = 1000;

/// Bytes of all files together.
const BYTES_MAX: u64 = 256 << 20;

/// Bytes of one file. A larger job is kept with its outcome but without attempts and transfers.
const JOB_BYTES_MAX: usize = 64 << 20;

/// Bytes of a job that are written at once.
const BLOCK_BYTES: usize = 64 << 10;

/// Bytes of the largest file that is read.
const FILE_BYTES_MAX: u64 = JOB_BYTES_MAX as u64;

/// Error of an archived job whose file exists, and cannot be read, is damaged or belongs to another job.
#[derive(Debug, thiserror::Error)]
#[error("could not read {}, where the history of {job} is kept", path.display())]
pub(crate) struct JobArchiveError {
    job: JobId,
    path: PathBuf,
    source: io::Error,
}

/// The newest archived job in a directory; `None` if there is none, or no directory.
pub(crate) fn newest_in(directory: &Path) -> Option<JobId> {
    let names = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str().and_then(job_of)).max()
}

/// A directory of ended jobs.
pub(crate) struct JobArchive {
    directory: PathBuf,
    /// Archived jobs, with the bytes of their files.
    kept: Mutex<BTreeMap<JobId, u64>>,
    jobs_max: usize,
    bytes_max: u64,
    job_bytes_max: usize,
}

impl JobArchive {
    /// Opens a directory, or creates it.
    ///
    /// # Errors
    /// A directory that can be neither created nor read.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        match fs::DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        whole_file::remove_drafts(directory)?;
        let mut kept = BTreeMap::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let Some(job) = entry.file_name().to_str().and_then(job_of) else { continue };
            match entry.metadata()?.len() {
                // No archived job is this large, and the file must not push out those that are.
                bytes if FILE_BYTES_MAX < bytes => {
                    let path = entry.path();
                    tracing::warn!(path = %path.display(), bytes, "this is no history of a job: it is left alone");
                }
                bytes => drop(kept.insert(job, bytes)),
            }
        }
        let archive = Self {
            directory: directory.to_owned(),
            kept: Mutex::new(kept),
            jobs_max: JOBS_MAX,
            bytes_max: BYTES_MAX,
            job_bytes_max: JOB_BYTES_MAX,
        };
        archive.make_room();
        Ok(archive)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<JobId, u64>> {
        // No panic can leave the map half changed.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Archives a job. Blocking.
    pub(crate) fn keep(&self, mut kept: KeptJob) {
        let job = kept.trace.status.job;
        let result = self.write(&kept).or_else(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => {
                let trace = &mut kept.trace;
                trace.omitted += (trace.attempts.len() + trace.fetches.len()) as u64;
                (trace.attempts, trace.fetches) = (Vec::new(), Vec::new());
                self.write(&kept)
            }
            _ => Err(error),
        });
        match result {
            Ok(bytes) => {
                self.kept().insert(job, bytes);
                self.make_room();
            }
            Err(error) => tracing::warn!(%job, %error, "the history of a job could not be written"),
        }
    }

    /// Writes the file of a job, of at most `job_bytes_max`, and returns its length. The text is never in memory as a
    /// whole: that of a job with many tasks is larger than all else in a master.
    fn write(&self, kept: &KeptJob) -> io::Result<u64> {
        let mut length = 0;
        // A power failure may take the last few: the disk must serve running jobs.
        whole_file::replace(&self.path(kept.trace.status.job), Promise::Private, |file| {
            let mut bounded = Bounded { to: file, room: self.job_bytes_max };
            kept.write(BufWriter::with_capacity(BLOCK_BYTES, &mut bounded))?;
            length = (self.job_bytes_max - bounded.room) as u64;
            Ok::<_, io::Error>(())
        })?;
        Ok(length)
    }

    /// Reads an archived job; `None` if there is none. Blocking.
    ///
    /// # Errors
    /// A file that cannot be read, or is damaged.
    pub(crate) fn find(&self, job: JobId) -> Result<Option<KeptJob>, JobArchiveError> {
        if !self.kept().contains_key(&job) {
            return Ok(None);
        }
        let path = self.path(job);
        let read = || -> io::Result<KeptJob> {
            let text = whole_file::read(&path, FILE_BYTES_MAX).map_err(io::Error::other)?;
            let damaged = |source| io::Error::other(format!("it is damaged: {source}"));
            let kept = KeptJob::of_text(&text).map_err(damaged)?;
            match kept.trace.status.job {
                found if found == job => Ok(kept),
                found => Err(io::Error::other(format!("it is that of {found}"))),
            }
        };
        let found = read().map_err(|source| JobArchiveError { job, path: path.clone(), source });
        found.map(Some).inspect_err(|error| {
            tracing::warn!(error = chain(error), "no history");
        })
    }

    /// Deletes the oldest files until the rest is within the limits.
    fn make_room(&self) {
        let mut kept = self.kept();
        let mut bytes: u64 = kept.values().sum();
        while self.jobs_max < kept.len() || self.bytes_max < bytes {
            let Some((oldest, length)) = kept.pop_first() else { return };
            bytes -= length;
            if let Err(error) = fs::remove_file(self.path(oldest)) {
                tracing::warn!(job = %oldest, %error, "the history of an old job could not be removed");
            }
        }
    }

    fn path(&self, job: JobId) -> PathBuf {
        self.directory.join(format!("{job}.json"))
    }
}

/// A file that takes `room` more bytes, and refuses the rest as too large.
struct Bounded<'a> {
    to: &'a mut File,
    room: usize,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.room < bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let written = self.to.write(bytes)?;
        self.room -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn job_of(name: &str) -> Option<JobId> {
    name.strip_suffix(".json")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{FetchRecord, JobTrace, LogEntry};
    use gristmill_scheduler::ids::{AttemptId, TaskId, TaskKind, WorkerId};

    fn trace(job: u32, name: &str) -> KeptJob {
        let mut status = crate::master::state::tests::status_of(JobId(job));
        name.clone_into(&mut status.name);
        let trace = JobTrace {
            status,
            attempts: Vec::new(),
            fetches: Vec::new(),
            estimates: Vec::new(),
            omitted: 0,
            combines: None,
            cuttable_bytes: None,
            had_all_slots: true,
            path: Vec::new(),
        };
        let text = "printed\n".to_owned();
        KeptJob::new(trace, vec![LogEntry { attempt: None, worker: WorkerId(1), text, omitted_bytes: 0 }])
    }

    fn names(archive: &JobArchive) -> Vec<Option<String>> {
        (1..=4).map(|job| archive.find(JobId(job)).unwrap().map(|kept| kept.trace.status.name)).collect()
    }

    #[test]
    fn jobs_are_found_again_by_the_next_master_and_the_oldest_go_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ended");
        let mut archive = JobArchive::open(&path).unwrap();
        archive.jobs_max = 2;
        for job in 1..=3 {
            archive.keep(trace(job, &format!("number {job}")));
        }
        let known = [None, Some("number 2".to_owned()), Some("number 3".to_owned()), None];
        assert_eq!(names(&archive), known);
        fs::write(path.join(".gristmill-draft-x"), "half").unwrap();
        fs::write(path.join("other"), "not ours").unwrap();
        let next = JobArchive::open(&path).unwrap();
        assert_eq!(names(&next), known);
        assert!(!path.join(".gristmill-draft-x").exists() && path.join("other").exists());
    }

    #[test]
    fn bytes_are_bounded_and_a_job_that_is_kept_again_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let mut archive = JobArchive::open(directory.path()).unwrap();
        archive.keep(trace(1, "a"));
        let one = *archive.kept().get(&JobId(1)).unwrap();
        archive.bytes_max = 2 * one + 10;
        archive.keep(trace(1, "b"));
        archive.keep(trace(2, "c"));
        assert_eq!(names(&archive)[..2], [Some("b".to_owned()), Some("c".to_owned())]);
        archive.keep(trace(3, "d"));
        assert_eq!(names(&archive)[..3], [None, Some("c".to_owned()), Some("d".to_owned())]);
    }

    #[test]
    fn job_that_is_too_large_is_kept_without_its_attempts_which_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let mut archive = JobArchive::open(directory.path()).unwrap();
        let fetch = |map| FetchRecord {
            map: AttemptId { task: TaskId { job: JobId(1), kind: TaskKind::Map, index: map }, epoch: 0 },
            from: WorkerId(1),
            to: WorkerId(2),
            partitions: 1,
            bytes: 1,
            started_ns: 0,
            ended_ns: 1,
        };
        let large = || {
            let mut kept = trace(1, "large");
            kept.trace.fetches = (0..10).map(fetch).collect();
            kept
        };
        archive.keep(large());
        let whole = archive.kept()[&JobId(1)];
        let found = archive.find(JobId(1)).unwrap().unwrap();
        assert_eq!((found.trace.fetches.len(), found.trace.omitted), (10, 0));
        archive.job_bytes_max = whole as usize;
        archive.keep(large());
        assert_eq!(archive.kept()[&JobId(1)], whole);
        archive.job_bytes_max -= 1;
        archive.keep(large());
        let found = archive.find(JobId(1)).unwrap().unwrap();
        assert_eq!((found.trace.fetches.len(), found.trace.omitted), (0, 10));
        assert_eq!(archive.kept()[&JobId(1)], fs::metadata(archive.path(JobId(1))).unwrap().len());
    }

    #[test]
    fn logs_are_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let archive = JobArchive::open(directory.path()).unwrap();
        archive.keep(trace(1, "a"));
        let logs = |job: u32| archive.find(JobId(job)).unwrap().unwrap().logs;
        assert_eq!(logs(1)[0].text, "printed\n");
        let path = archive.path(JobId(1));
        fs::write(&path, [&fs::read(&path).unwrap()[..], b"[]"].concat()).unwrap();
        assert!(archive.find(JobId(1)).is_err(), "something follows the logs");
    }

    #[test]
    fn history_of_another_job_and_what_is_too_large_for_one_are_not_told_and_push_nobody_out() {
        let directory = tempfile::tempdir().unwrap();
        let archive = JobArchive::open(directory.path()).unwrap();
        archive.keep(trace(1, "a"));
        let path = |job: u32| archive.path(JobId(job));
        fs::copy(path(1), path(2)).unwrap();
        fs::File::create(path(4)).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        fs::File::create(path(5)).unwrap().set_len(BYTES_MAX + 1).unwrap();
        let next = JobArchive::open(directory.path()).unwrap();
        assert_eq!(next.find(JobId(1)).unwrap().unwrap().trace.status.name, "a");
        let said = chain(&next.find(JobId(2)).unwrap_err());
        assert!(said.contains("it is that of job-1"), "{said}");
        assert!(next.find(JobId(4)).unwrap().is_none() && path(4).exists() && path(5).exists());
    }

    #[test]
    fn what_stands_in_the_place_of_a_history_is_said_and_never_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("job-1.json"), "{").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("job-2.json"), rustix::fs::Mode::from_raw_mode(0o600))
            .unwrap();
        fs::create_dir(path("job-3.json")).unwrap();
        let archive = JobArchive::open(directory.path()).unwrap();
        for (job, expected) in [(1, "it is damaged: EOF"), (2, "it is a pipe"), (3, "it is a directory")] {
            let said = chain(&archive.find(JobId(job)).unwrap_err());
            assert!(said.contains(expected) && said.contains(&format!("job-{job}.json")), "{said}");
        }
        assert!(archive.find(JobId(4)).unwrap().is_none());
    }
}
