//! Register of jobs: a file in the state directory. It continues the numbers of jobs and workers from one master to the
//! next, and keeps the outcomes of jobs of earlier masters.
//!
//! It has one line of JSON behind its checksum for each note, appended. The file is rewritten when it has grown. Numbers
//! are reserved in blocks that are synced to disk before the first of them is used, so that no number is used twice,
//! however suddenly a master ends. The master of a `run` keeps no register.

use crate::api::{FailureCode, JobFailure, JobState, JobStatus};
use crate::plural::counted;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_worker::whole_file::{self, Promise};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Number of numbers reserved at once. At most this many are skipped after a sudden end.
const BLOCK: u32 = 100;

/// Number of lines after which the file is rewritten.
const LINES_MAX: usize = 10_000;

/// Bytes of a checksum and the space behind it.
const SUM_BYTES: usize = 9;

/// One line. The status is borrowed where it is written, and owned where it is read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RegisterLine<S> {
    /// Numbers below this one may have been used.
    Reserved(u32),
    /// The master has ended in order, and this is the next number.
    Rest(u32),
    /// Numbers of workers below this one may have been used.
    Workers(u32),
    /// A job has arrived.
    Came(S),
    /// A job has ended.
    Ended(S),
}

/// One line, as it is written.
type RegisterNote<'a> = RegisterLine<&'a JobStatus>;

/// The register of one master.
pub(crate) struct Register {
    file: Option<(PathBuf, File)>,
    next: u32,
    reserved: u32,
    next_worker: u32,
    workers_reserved: u32,
    /// Jobs of earlier masters, with their outcomes.
    past: BTreeMap<JobId, JobStatus>,
    /// Last line of each remembered job, from which the file is rewritten.
    lines: BTreeMap<JobId, Vec<u8>>,
    written: usize,
    /// [`LINES_MAX`], except in tests.
    lines_max: usize,
    /// True if a failure has been reported.
    failing: bool,
    /// True if the file did not exist.
    is_new: bool,
    /// Reason, in words, why it does not contain all jobs of earlier masters.
    gap: Option<String>,
}

impl Register {
    /// Creates a register in memory, with numbers from 1, for a master that keeps nothing after its end.
    pub(crate) fn in_memory() -> Self {
        Self {
            file: None,
            next: 1,
            reserved: u32::MAX,
            next_worker: 1,
            workers_reserved: u32::MAX,
            past: BTreeMap::new(),
            lines: BTreeMap::new(),
            written: 0,
            lines_max: LINES_MAX,
            failing: false,
            is_new: false,
            gap: None,
        }
    }

    /// Continues from the file of the last master. Jobs that it did not complete are lost. At most `jobs_max` jobs are
    /// remembered.
    ///
    /// # Errors
    /// A file that can be neither read nor written.
    pub(crate) fn open(path: &Path, jobs_max: usize) -> io::Result<Self> {
        let mut register = Self::in_memory();
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                register.is_new = true;
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        register.recall(&text, path);
        register.reserved = register.next;
        // Written with the first block of numbers for jobs.
        register.workers_reserved = register.next_worker.saturating_add(BLOCK);
        while jobs_max < register.past.len() {
            register.past.pop_first();
        }
        for (job, status) in &register.past {
            register.lines.insert(*job, line(&RegisterNote::Ended(status))?);
        }
        register.file =
            Some((path.to_owned(), File::options().append(true).create(true).mode(0o600).open(path)?));
        register.reserve()?;
        Ok(register)
    }

    /// Enters the content of the file.
    fn recall(&mut self, text: &[u8], path: &Path) {
        let mut damaged = 0_u32;
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match read_line(line) {
                Some(RegisterLine::Reserved(below)) => self.next = self.next.max(below),
                Some(RegisterLine::Rest(next)) => self.next = next,
                Some(RegisterLine::Workers(next)) => self.next_worker = next,
                Some(RegisterLine::Came(status)) => drop(self.past.insert(status.job, lost(*status))),
                // Its output was open, and only its own master knew the outcome.
                Some(RegisterLine::Ended(status)) if !status.state.ended() => {
                    drop(self.past.insert(status.job, lost(*status)));
                }
                Some(RegisterLine::Ended(status)) => drop(self.past.insert(status.job, *status)),
                None => damaged += 1,
            }
        }
        if 0 < damaged {
            // An unreadable line may have reserved numbers.
            self.next = self.next.saturating_add(BLOCK);
            self.next_worker = self.next_worker.saturating_add(BLOCK);
            tracing::warn!(path = %path.display(), damaged, "lines of the register of jobs cannot be read");
            let lines = counted(u64::from(damaged), "line", "lines");
            let path = path.display();
            self.gap = Some(format!(
                "{lines} of the register of jobs {path} could not be read when this master began"
            ));
        }
        let after = self.past.last_key_value().map_or(1, |(job, _)| job.0.saturating_add(1));
        self.next = self.next.max(after);
    }

    /// Returns a number that no job has had.
    ///
    /// # Errors
    /// A reservation that cannot be written, or no number that is left.
    pub(crate) fn next_job(&mut self) -> io::Result<JobId> {
        if self.next == self.reserved {
            self.reserve()?;
        }
        let job = JobId(self.next);
        self.next += 1;
        Ok(job)
    }

    /// Returns a number that no worker has had, because inputs name workers by their numbers. If none can be reserved,
    /// the worker is accepted anyway.
    pub(crate) fn next_worker(&mut self) -> WorkerId {
        if self.workers_reserved <= self.next_worker {
            let below = self.next_worker.saturating_add(BLOCK);
            let result = self.append_synced(&RegisterNote::Workers(below));
            if result.is_ok() {
                self.workers_reserved = below;
            }
            self.report(result);
        }
        let worker = WorkerId(self.next_worker);
        self.next_worker += 1;
        worker
    }

    /// Notes that an earlier master existed, so that a missing file was lost. The archive goes up to `newest`; this
    /// number and those before it are not used again.
    pub(crate) fn expect_earlier(&mut self, newest: Option<JobId>) {
        self.next = self.next.max(newest.map_or(0, |job| job.0.saturating_add(1)));
        self.reserved = self.reserved.max(self.next);
        if let Some((path, _)) = self.file.as_ref().filter(|_| self.is_new) {
            let path = path.display();
            self.gap = Some(format!("the register of jobs {path} was gone when this master began"));
        }
    }

    /// Reason, in words, why jobs of earlier masters may be missing; `None` if all are known.
    pub(crate) fn gap(&self) -> Option<&str> {
        self.gap.as_deref()
    }

    /// True if the register outlives this master.
    pub(crate) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// True if this number has been used.
    pub(crate) fn was_given_out(&self, job: JobId) -> bool {
        0 < job.0 && job.0 < self.next
    }

    /// Outcome of a job of an earlier master.
    pub(crate) fn past(&self, job: JobId) -> Option<&JobStatus> {
        self.past.get(&job)
    }

    /// All jobs of earlier masters, oldest first.
    pub(crate) fn past_jobs(&self) -> impl ExactSizeIterator<Item = &JobStatus> {
        self.past.values()
    }

    /// Takes over a job of an earlier master, so that it is not reported as lost.
    pub(crate) fn came_back(&mut self, job: JobId) {
        self.past.remove(&job);
        self.next = self.next.max(job.0.saturating_add(1));
    }

    /// Enters that a job has arrived.
    pub(crate) fn job_arrived(&mut self, status: impl FnOnce() -> JobStatus) {
        if self.file.is_some() {
            let status = status();
            self.note(status.job, &RegisterNote::Came(&status));
        }
    }

    /// Enters that a job has ended.
    pub(crate) fn ended(&mut self, status: impl FnOnce() -> JobStatus) {
        if self.file.is_some() {
            let status = status();
            self.note(status.job, &RegisterNote::Ended(&status));
        }
    }

    /// Forgets a job.
    pub(crate) fn forget(&mut self, job: JobId) {
        self.past.remove(&job);
        self.lines.remove(&job);
    }

    /// Forgets the oldest job of an earlier master.
    pub(crate) fn forget_oldest(&mut self) {
        if let Some((job, _)) = self.past.pop_first() {
            self.lines.remove(&job);
        }
    }

    /// Closes the register as the master ends in order. The next master continues with the very next number.
    pub(crate) fn close(&mut self) {
        for note in [RegisterNote::Rest(self.next), RegisterNote::Workers(self.next_worker)] {
            let result = line(&note).and_then(|line| self.append(&line));
            self.report(result);
        }
    }

    fn note(&mut self, job: JobId, note: &RegisterNote<'_>) {
        let result = line(note).and_then(|line| {
            let result = self.append(&line);
            self.lines.insert(job, line);
            result
        });
        self.report(result);
        if self.lines_max <= self.written {
            let result = self.rewrite();
            self.report(result);
        }
    }

    /// Reports a write error. It loses history, but no job.
    fn report(&mut self, result: io::Result<()>) {
        let failed = result.err();
        if let Some(error) = failed.as_ref().filter(|_| !self.failing) {
            tracing::warn!(%error, "the register of jobs could not be written: a later master will not know of all jobs");
        }
        self.failing = failed.is_some();
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let Some((_, file)) = &mut self.file else { return Ok(()) };
        if self.failing {
            // The last line may be incomplete.
            file.write_all(b"\n")?;
        }
        file.write_all(line)?;
        self.written += 1;
        Ok(())
    }

    fn append_synced(&mut self, note: &RegisterNote<'_>) -> io::Result<()> {
        self.append(&line(note)?)?;
        self.file.as_ref().map_or(Ok(()), |(_, file)| file.sync_data())
    }

    /// Reserves a block of numbers, and rewrites the file with it.
    fn reserve(&mut self) -> io::Result<()> {
        let none_left = || io::Error::other("all numbers for jobs have been given out");
        let below = self.next.checked_add(BLOCK).ok_or_else(none_left)?;
        let before = std::mem::replace(&mut self.reserved, below);
        let result = match self.written {
            0 => self.rewrite(),
            _ => self.append_synced(&RegisterNote::Reserved(below)),
        };
        if result.is_err() {
            self.reserved = before;
        }
        result
    }

    /// Rewrites the file with the remembered lines.
    fn rewrite(&mut self) -> io::Result<()> {
        let Some((path, _)) = &self.file else { return Ok(()) };
        let path = path.clone();
        let mut text = line(&RegisterNote::Reserved(self.reserved))?;
        text.extend_from_slice(&line(&RegisterNote::Workers(self.workers_reserved))?);
        for line in self.lines.values() {
            text.extend_from_slice(line);
        }
        whole_file::replace(&path, Promise::PrivateAndDurable, |file| file.write_all(&text))?;
        let file = File::options().append(true).create(true).mode(0o600).open(&path)?;
        self.file = Some((path, file));
        self.written = self.lines.len() + 2;
        Ok(())
    }
}

/// Encodes a line: the CRC-32C of the JSON as eight hexadecimal digits, a space, the JSON.
fn line(note: &RegisterNote<'_>) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(note)?;
    Ok([sum_of(&json).as_bytes(), &json, b"\n"].concat())
}

fn sum_of(json: &[u8]) -> String {
    format!("{:08x} ", crc32c::crc32c(json))
}

/// Decodes a line; `None` if its checksum is wrong.
fn read_line(line: &[u8]) -> Option<RegisterLine<Box<JobStatus>>> {
    let (sum, json) = line.split_at_checked(SUM_BYTES)?;
    let json = (sum == sum_of(json).as_bytes()).then_some(json)?;
    serde_json::from_slice(json).ok()
}

/// Status of a job whose master ended before it.
fn lost(mut status: JobStatus) -> JobStatus {
    status.state = JobState::Failed;
    status.ended_ns = None;
    status.failure = Some(JobFailure {
        code: FailureCode::MasterLost,
        message: "was lost: the master that ran it ended before the job did".to_owned(),
        detail: None,
    });
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(job: JobId, state: JobState) -> JobStatus {
        JobStatus { state, ..crate::master::state::tests::status_of(job) }
    }

    #[test]
    fn number_never_comes_twice_however_a_master_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let mut last = 0;
        for (jobs, in_order) in [(3, true), (0, false), (250, false), (BLOCK, false), (1, true), (2, true)] {
            let mut register = Register::open(&path, 10).unwrap();
            for _ in 0..jobs {
                let job = register.next_job().unwrap().0;
                assert!(last < job, "{job} after {last}");
                last = job;
            }
            if in_order {
                register.close();
                assert_eq!(Register::open(&path, 10).unwrap().next, last + 1);
                // The register opened here counts as one that ended suddenly.
                last = last.max(Register::open(&path, 10).unwrap().next - 1);
            }
        }
    }

    #[test]
    fn number_of_a_worker_never_comes_twice_however_a_master_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let mut last = 0;
        for (workers, in_order) in [(3, true), (0, false), (250, false), (BLOCK, false), (1, true), (2, true)]
        {
            let mut register = Register::open(&path, 10).unwrap();
            for _ in 0..workers {
                let worker = register.next_worker().0;
                assert!(last < worker, "{worker} after {last}");
                last = worker;
                register.rewrite().unwrap();
            }
            if in_order {
                register.close();
                assert_eq!(Register::open(&path, 10).unwrap().next_worker, last + 1);
                // The register opened here counts as one that ended suddenly.
                last = last.max(Register::open(&path, 10).unwrap().next_worker - 1);
            }
        }
    }

    #[test]
    fn jobs_of_an_earlier_master_are_told_as_they_ended_and_those_that_did_not_as_lost() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let mut register = Register::open(&path, 10).unwrap();
        let [first, second, third] = [(); 3].map(|()| register.next_job().unwrap());
        for job in [first, second, third] {
            register.job_arrived(|| status(job, JobState::Waiting));
        }
        register.ended(|| status(second, JobState::Succeeded));
        register.forget(third);
        // A line cut off by a power failure.
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"ended\":{\"sche").unwrap();
        let register = Register::open(&path, 2).unwrap();
        assert!(
            register.gap().unwrap().starts_with("1 line of the register of jobs "),
            "{:?}",
            register.gap()
        );
        assert_eq!(register.past_jobs().len(), 2, "only two are remembered");
        assert_eq!(register.past(second).unwrap().state, JobState::Succeeded);
        assert_eq!(register.past(third).unwrap().failure.as_ref().unwrap().code, FailureCode::MasterLost);
        assert!(register.was_given_out(first) && register.past(first).is_none());
        assert!(!register.was_given_out(JobId(register.next)));
    }

    #[test]
    fn job_that_was_publishing_when_its_master_ended_is_lost_and_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let mut register = Register::open(&path, 10).unwrap();
        let job = register.next_job().unwrap();
        register.ended(|| status(job, JobState::Publishing));
        let again = Register::open(&path, 10).unwrap();
        assert_eq!(again.past(job).unwrap().state, JobState::Failed);
    }

    #[test]
    fn every_bit_flipped_in_the_register_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let mut register = Register::open(&path, 10).unwrap();
        let job = register.next_job().unwrap();
        register.ended(|| status(job, JobState::Succeeded));
        let written = fs::read(&path).unwrap();
        for bit in 0..8 * written.len() {
            let mut damaged = written.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let mut read = Register::in_memory();
            read.recall(&damaged, &path);
            assert!(read.gap().is_some(), "bit {bit} of {:?}", String::from_utf8_lossy(&written));
        }
    }

    #[test]
    fn register_that_is_gone_is_told_of_only_where_a_master_has_been() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let expected = || {
            let mut register = Register::open(&path, 10).unwrap();
            register.expect_earlier(Some(JobId(7)));
            register
        };
        assert_eq!(Register::open(&path, 10).unwrap().gap(), None);
        assert_eq!(expected().gap(), None, "it is there");
        fs::remove_file(&path).unwrap();
        let mut register = expected();
        assert!(
            register.gap().unwrap().ends_with("/jobs was gone when this master began"),
            "{:?}",
            register.gap()
        );
        assert_eq!(register.next_job().unwrap(), JobId(8), "it would take the place of a job in the history");
    }

    #[test]
    fn file_stays_small_however_many_jobs_come() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let mut register = Register::open(&path, 10).unwrap();
        register.lines_max = 50;
        let mut longest = 0;
        for _ in 0..100 {
            let job = register.next_job().unwrap();
            register.job_arrived(|| status(job, JobState::Waiting));
            register.ended(|| status(job, JobState::Succeeded));
            if let Some(old) = job.0.checked_sub(5) {
                register.forget(JobId(old));
            }
            longest = longest.max(register.written);
        }
        assert!(40 < longest && longest <= 50, "{longest}");
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(lines, register.written);
        assert!(lines < 50, "{lines}");
    }
}
