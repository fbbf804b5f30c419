//! What is kept of jobs that were started under Hadoop's names: one file for each, which the program that follows the job
//! writes as it goes, and the last words of attempts that failed, where drivers look for them.
//!
//! All of it lies where Hadoop's own clusters keep such things in `hdfs:`, below [`STAGING`], for its user alone: a folder
//! of the job in `USER/.staging`, and `userlogs/APPLICATION/ATTEMPT/{stderr,syslog}`. There are no secrets in it: whoever
//! ends a job asks the program that follows it ([`kill`]). Not here: what `mapred job` prints of it (`job_commands`).

mod ending;
mod task_logs;

use super::places::FileNames;
pub use ending::{KillOutcome, kill};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder of `hdfs:` in which Hadoop keeps what belongs to jobs.
const STAGING: &str = "tmp/hadoop-yarn/staging";

/// Jobs that are kept; the oldest that have ended go, with what their attempts said.
const JOBS_MAX: usize = 100;

/// Bytes of a job's file that are read.
const RECORD_BYTES_MAX: u64 = 4 << 20;

/// The file of a job in its folder.
const RECORD: &str = "job.json";

/// The file by which somebody says that it was they who have ended the job.
const KILL: &str = "kill";

/// How a job stands, in Hadoop's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum KeptState {
    /// It runs, or waits.
    Running,
    /// Its output is there.
    Succeeded,
    /// There is none.
    Failed,
    /// Somebody has ended it.
    Killed,
}

impl KeptState {
    /// As Hadoop writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Killed => "KILLED",
        }
    }
}

/// Tasks of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KeptTasks {
    pub total: u32,
    /// How far they are, of hundred.
    pub percent: u64,
}

/// A job as its file tells of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptJob {
    /// `STAMP_0001`: what stands behind `job_` and `application_`.
    pub number: String,
    pub name: String,
    pub user: String,
    pub priority: String,
    pub state: KeptState,
    /// Why it failed.
    pub why: String,
    pub started_ms: u64,
    pub finished_ms: Option<u64>,
    pub maps: KeptTasks,
    pub reduces: KeptTasks,
    /// By group and name.
    pub counters: BTreeMap<String, BTreeMap<String, u64>>,
    pub url: String,
    pub output: String,
    /// The process that follows the job, and when the system began it: numbers of processes come again.
    pub process: u32,
    pub process_began: u64,
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The place of all that is kept.
#[derive(Clone, Debug)]
pub struct KeptJobs {
    staging: PathBuf,
    user: String,
}

impl KeptJobs {
    /// That of these names.
    pub fn of(places: &FileNames) -> Self {
        Self { staging: places.root().join(STAGING), user: places.user().to_owned() }
    }

    fn folders(&self) -> PathBuf {
        self.staging.join(&self.user).join(".staging")
    }

    /// The folder of a job.
    fn folder(&self, number: &str) -> PathBuf {
        self.folders().join(format!("job_{number}"))
    }

    /// What attempts of a job have said.
    pub fn logs(&self, number: &str) -> PathBuf {
        self.staging.join("userlogs").join(format!("application_{number}"))
    }

    /// All jobs of the user, oldest first. A file that cannot be read is passed over.
    pub fn all(&self) -> Vec<KeptJob> {
        let entries = fs::read_dir(self.folders()).into_iter().flatten().flatten();
        let mut jobs: Vec<KeptJob> =
            entries.filter_map(|entry| read(&entry.path().join(RECORD)).ok()).collect();
        jobs.sort_by(|a, b| (a.started_ms, &a.number).cmp(&(b.started_ms, &b.number)));
        jobs
    }

    /// The job of the user with a name such as `job_STAMP_0001` or `application_STAMP_0001`.
    pub fn find(&self, name: &str) -> Option<KeptJob> {
        let number = number_of(name)?;
        let path = self.folder(number).join(RECORD);
        read(&path).ok().filter(|job| job.number == number)
    }

    /// Begins a job's file, once older ones are gone that are too many.
    pub fn begin(&self, job: KeptJob) -> io::Result<JobKeeper> {
        self.forget_oldest();
        let folder = self.folder(&job.number);
        private_folder(&folder)?;
        let keeper = JobKeeper { jobs: self.clone(), folder, job };
        keeper.save()?;
        Ok(keeper)
    }

    fn forget_oldest(&self) {
        let kept = fs::read_dir(self.folders()).map_or(0, Iterator::count);
        if kept < JOBS_MAX {
            return;
        }
        let jobs = self.all();
        let too_many = (jobs.len() + 1).saturating_sub(JOBS_MAX);
        for job in jobs.iter().filter(|job| !job.runs()).take(too_many) {
            // Of two that do so at the same time one finds nothing.
            let _ = fs::remove_dir_all(self.folder(&job.number));
            let _ = fs::remove_dir_all(self.logs(&job.number));
        }
    }
}

/// What stands behind the first word of a job's, application's or attempt's name: two numbers.
fn number_of(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once('_')?;
    let at = rest.match_indices('_').nth(1).map_or(rest.len(), |(at, _)| at);
    let number = &rest[..at];
    let (stamp, sequence) = number.split_once('_')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(stamp) && is_number(sequence)).then_some(number)
}

fn read(path: &Path) -> io::Result<KeptJob> {
    let file = fs::File::open(path)?;
    let mut text = String::new();
    io::Read::read_to_string(&mut io::Read::take(file, RECORD_BYTES_MAX), &mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Makes a folder, with those it lies in, for its user alone.
fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

/// Writes a file so that it is there whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    drop(file);
    fs::rename(fresh, path)
}

impl KeptJob {
    /// Whether it still runs: its file may have been left by a program that was killed.
    pub fn runs(&self) -> bool {
        self.state == KeptState::Running && ending::began(self.process) == Some(self.process_began)
    }

    /// How it stands, also where nobody was left to write it down.
    pub fn state(&self) -> KeptState {
        if self.state == KeptState::Running && !self.runs() { KeptState::Failed } else { self.state }
    }
}

/// Keeps the file of a job as it goes on.
#[derive(Debug)]
pub struct JobKeeper {
    jobs: KeptJobs,
    folder: PathBuf,
    pub job: KeptJob,
}

impl JobKeeper {
    /// Writes how the job stands.
    ///
    /// # Errors
    /// A folder that is full or not one's own.
    pub fn save(&self) -> io::Result<()> {
        write_whole(&self.folder.join(RECORD), &serde_json::to_vec(&self.job)?)
    }

    /// Whether somebody has asked for the end of the job by [`kill`].
    pub fn is_killed(&self) -> bool {
        self.folder.join(KILL).exists()
    }

    /// Keeps the last words of an attempt that failed.
    ///
    /// # Errors
    /// A folder that is full or not one's own.
    pub fn keep_log(&self, attempt: &str, words: &str) -> io::Result<()> {
        let folder = self.jobs.logs(&self.job.number).join(attempt);
        private_folder(&folder)?;
        task_logs::write(&folder, words)
    }
}

/// The process of this program and when it began.
pub fn this_process() -> (u32, u64) {
    let process = std::process::id();
    (process, ending::began(process).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: &str, state: KeptState) -> KeptJob {
        let (process, process_began) = this_process();
        KeptJob {
            number: number.to_owned(),
            name: "streamjob".to_owned(),
            user: "me".to_owned(),
            priority: "NORMAL".to_owned(),
            state,
            why: String::new(),
            started_ms: number.split_once('_').unwrap().0.parse().unwrap(),
            finished_ms: None,
            maps: KeptTasks::default(),
            reduces: KeptTasks::default(),
            counters: BTreeMap::new(),
            url: String::new(),
            output: String::new(),
            process,
            process_began,
        }
    }

    #[test]
    fn jobs_are_kept_until_there_are_too_many_and_those_that_run_for_as_long_as_they_do() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = KeptJobs { staging: folder.path().to_owned(), user: "me".to_owned() };
        jobs.begin(job("1_0001", KeptState::Running)).unwrap();
        let mut gone = job("2_0001", KeptState::Running);
        gone.process_began += 1;
        jobs.begin(gone).unwrap().keep_log("attempt_2_0001_m_000000_0", "words").unwrap();
        assert!(jobs.find("job_1_0001").unwrap().runs());
        assert_eq!(jobs.find("application_2_0001").unwrap().state(), KeptState::Failed);
        assert!(jobs.logs("2_0001").exists());
        for stamp in 3..JOBS_MAX + 10 {
            jobs.begin(job(&format!("{stamp}_0001"), KeptState::Succeeded)).unwrap();
        }
        assert_eq!(jobs.all().len(), JOBS_MAX);
        assert!(jobs.find("job_1_0001").is_some(), "it runs");
        assert!(jobs.find("job_2_0001").is_none() && !jobs.logs("2_0001").exists());
    }

    #[test]
    fn names_of_jobs_lead_nowhere_else() {
        assert_eq!(number_of("job_123_0001"), Some("123_0001"));
        assert_eq!(number_of("attempt_123_0001_m_000000_0"), Some("123_0001"));
        for wrong in ["job", "job_1", "job_../x_1", "job_1_", "1_0001", "job__0001"] {
            assert_eq!(number_of(wrong), None, "{wrong}");
        }
    }
}
