//! Files about jobs that were started under Hadoop's names, for `mapred job` and `yarn application`
//! (`job_commands`).
//!
//! They are where Hadoop's clusters store theirs, below [`STAGING`] in `hdfs:`, private to their user. The
//! program that follows a job writes `USER/.staging/JOB/job.json`, and the last lines of failed attempts to
//! `userlogs/APPLICATION/ATTEMPT/{stderr,syslog}`, where drivers look for them.

use super::log::{Level, record};
use super::places::FileNames;
use gristmill_worker::whole_file::{self, Promise};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Directory of `hdfs:` in which Hadoop stores files about jobs.
const STAGING: &str = "tmp/hadoop-yarn/staging";

/// Maximum number of recorded jobs. The oldest ended ones are removed, with the logs of their attempts.
const JOBS_MAX: usize = 100;

/// Maximum bytes of a job's file.
const RECORD_BYTES_MAX: u64 = 4 << 20;

/// File of a job in its directory.
const RECORD: &str = "job.json";

/// File that marks a job as ended by `-kill`.
const KILL: &str = "kill";

/// Time that `-kill` waits for the end of a job, and the pause between two checks.
const KILL_TIMEOUT: Duration = Duration::from_secs(60);
const KILL_PAUSE: Duration = Duration::from_millis(20);

/// Start of the line by which an attempt reports its input.
const SPLIT: &str = "Processing split: ";

/// mrjob recognises a failure only if `syslog` has a line of a Java program's stack.
const STACK: &str = "\tat org.apache.hadoop.streaming.PipeMapRed.waitOutputThreads(PipeMapRed.java:326)";

/// State of a job in Hadoop's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum KeptState {
    Running,
    Succeeded,
    Failed,
    Killed,
}

/// Tasks of one kind: their number, and their progress in percent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KeptTasks {
    pub total: u32,
    pub percent: u64,
}

/// Job in its file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptJob {
    /// `STAMP_0001`, which follows `job_` and `application_`.
    pub number: String,
    pub name: String,
    pub user: String,
    pub state: KeptState,
    /// Reason of a failure.
    pub why: String,
    pub started_ms: u64,
    pub maps: KeptTasks,
    pub reduces: KeptTasks,
    /// By group and name.
    pub counters: BTreeMap<String, BTreeMap<String, u64>>,
    pub url: String,
    /// Process that follows the job, and its start time, as numbers of processes are used again.
    pub process: u32,
    pub process_started: u64,
}

impl KeptJob {
    /// Job that this process starts to follow.
    pub fn new(number: String, name: String, user: String, url: String) -> Self {
        let process = std::process::id();
        Self {
            number,
            name,
            user,
            state: KeptState::Running,
            why: String::new(),
            started_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_millis() as u64),
            maps: KeptTasks::default(),
            reduces: KeptTasks::default(),
            counters: BTreeMap::new(),
            url,
            process,
            process_started: start_of(process).unwrap_or(0),
        }
    }

    /// True while the process that follows the job runs.
    pub fn runs(&self) -> bool {
        self.state == KeptState::Running && start_of(self.process) == Some(self.process_started)
    }
}

/// All kept jobs of a user.
#[derive(Clone, Debug)]
pub struct KeptJobs {
    staging: PathBuf,
    user: String,
}

impl KeptJobs {
    pub fn new(names: &FileNames) -> Self {
        Self { staging: names.root().join(STAGING), user: names.user().to_owned() }
    }

    fn directories(&self) -> PathBuf {
        self.staging.join(&self.user).join(".staging")
    }

    fn directory(&self, number: &str) -> PathBuf {
        self.directories().join(format!("job_{number}"))
    }

    /// Directory of the logs of failed attempts of a job.
    fn logs(&self, number: &str) -> PathBuf {
        self.staging.join("userlogs").join(format!("application_{number}"))
    }

    /// Returns all jobs, oldest first. A job whose process was killed has failed.
    pub fn all(&self) -> Vec<KeptJob> {
        let read = |directory: &Path| -> Option<KeptJob> {
            let bytes = whole_file::read(&directory.join(RECORD), RECORD_BYTES_MAX).ok()?;
            let mut job: KeptJob = serde_json::from_slice(&bytes).ok()?;
            if job.state == KeptState::Running && !job.runs() {
                job.state = KeptState::Failed;
                job.why = "the program that followed it was killed".to_owned();
            }
            Some(job)
        };
        let entries = fs::read_dir(self.directories()).into_iter().flatten().flatten();
        let mut jobs: Vec<KeptJob> = entries.filter_map(|entry| read(&entry.path())).collect();
        jobs.sort_by(|a, b| (a.started_ms, &a.number).cmp(&(b.started_ms, &b.number)));
        jobs
    }

    /// Returns the job with a name such as `job_STAMP_0001` or `application_STAMP_0001`.
    pub fn find(&self, name: &str) -> Option<KeptJob> {
        let (_, number) = name.split_once('_')?;
        self.all().into_iter().find(|job| job.number == number)
    }

    /// Starts a job's file, and removes the oldest jobs beyond the limit.
    ///
    /// # Errors
    /// A directory that is full or belongs to another user.
    pub fn start(&self, job: KeptJob) -> io::Result<JobKeeper> {
        let jobs = self.all();
        let too_many = (jobs.len() + 1).saturating_sub(JOBS_MAX);
        for job in jobs.iter().filter(|job| !job.runs()).take(too_many) {
            // Two programs may do so at the same time.
            let _ = fs::remove_dir_all(self.directory(&job.number));
            let _ = fs::remove_dir_all(self.logs(&job.number));
        }
        create_private(&self.directory(&job.number))?;
        let keeper = JobKeeper { jobs: self.clone(), job };
        keeper.save()?;
        Ok(keeper)
    }

    /// Ends a job as Ctrl-C does, and waits for its end. Returns false if it had ended before.
    ///
    /// # Errors
    /// A process of another user, or one that does not end in time.
    pub fn kill(&self, job: &KeptJob) -> io::Result<bool> {
        let Some(process) = i32::try_from(job.process).ok().and_then(Pid::from_raw) else { return Ok(false) };
        let held = match pidfd_open(process, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(false),
            held => held?,
        };
        // While it is held, its number is not reused.
        if !job.runs() {
            return Ok(false);
        }
        File::create(self.directory(&job.number).join(KILL))?;
        match pidfd_send_signal(&held, Signal::INT) {
            Err(rustix::io::Errno::SRCH) => return Ok(false),
            sent => sent?,
        }
        let asked = Instant::now();
        while asked.elapsed() < KILL_TIMEOUT {
            if !job.runs() {
                return Ok(true);
            }
            std::thread::sleep(KILL_PAUSE);
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the job was asked to end and still runs"))
    }
}

/// Creates a private directory, with its parents.
fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

/// Returns the start time of a process in ticks since the system's; `None` if it has ended.
fn start_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses, and may contain parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?;
    (state != "Z" && state != "X").then(|| words.nth(18)?.parse().ok())?
}

/// Writer of a job's file.
#[derive(Debug)]
pub struct JobKeeper {
    jobs: KeptJobs,
    pub job: KeptJob,
}

impl JobKeeper {
    /// Writes the state of the job.
    ///
    /// # Errors
    /// A directory that is full or belongs to another user.
    pub fn save(&self) -> io::Result<()> {
        let bytes = serde_json::to_vec(&self.job)?;
        let path = self.jobs.directory(&self.job.number).join(RECORD);
        whole_file::replace(&path, Promise::Private, |file| file.write_all(&bytes))
    }

    /// True if the job was ended by [`KeptJobs::kill`].
    pub fn is_killed(&self) -> bool {
        self.jobs.directory(&self.job.number).join(KILL).exists()
    }

    /// Writes the last lines of a failed attempt. The first is the error; the others are the command's,
    /// except the line of its split.
    ///
    /// # Errors
    /// A directory that is full or belongs to another user.
    pub fn keep_log(&self, attempt: &str, message: &str) -> io::Result<()> {
        let directory = self.jobs.logs(&self.job.number).join(attempt);
        create_private(&directory)?;
        let mut lines = message.lines();
        let error = lines.next().unwrap_or_default();
        let (mut syslog, mut stderr) = (String::new(), String::new());
        for line in lines {
            if line.starts_with(SPLIT) && syslog.is_empty() {
                syslog = record(Level::Info, "mapred.MapTask", line) + "\n";
            } else {
                stderr.push_str(line);
                stderr.push('\n');
            }
        }
        let error = format!("Exception running child : java.lang.RuntimeException: {error}");
        syslog.push_str(&format!("{}\n{STACK}\n", record(Level::Warn, "mapred.YarnChild", &error)));
        fs::write(directory.join("stderr"), stderr)?;
        fs::write(directory.join("syslog"), syslog)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> (tempfile::TempDir, KeptJobs) {
        let directory = tempfile::tempdir().unwrap();
        let jobs = KeptJobs { staging: directory.path().to_owned(), user: "me".to_owned() };
        (directory, jobs)
    }

    fn job(stamp: usize, state: KeptState) -> KeptJob {
        let job = KeptJob::new(format!("{stamp}_0001"), "streamjob".into(), "me".into(), String::new());
        KeptJob { state, started_ms: stamp as u64, ..job }
    }

    #[test]
    fn jobs_are_kept_until_there_are_too_many_and_those_that_run_for_as_long_as_they_do() {
        let (_directory, jobs) = kept();
        jobs.start(job(1, KeptState::Running)).unwrap();
        let mut gone = job(2, KeptState::Running);
        gone.process_started += 1;
        jobs.start(gone).unwrap().keep_log("attempt_2_0001_m_000000_0", "words").unwrap();
        assert!(jobs.find("job_1_0001").unwrap().runs());
        assert_eq!(jobs.find("application_2_0001").unwrap().state, KeptState::Failed);
        assert!(jobs.logs("2_0001").exists() && jobs.find("job_3_0001").is_none());
        for stamp in 3..JOBS_MAX + 10 {
            jobs.start(job(stamp, KeptState::Succeeded)).unwrap();
        }
        assert_eq!(jobs.all().len(), JOBS_MAX);
        assert!(jobs.find("job_1_0001").is_some(), "it runs");
        assert!(jobs.find("job_2_0001").is_none() && !jobs.logs("2_0001").exists());
    }

    #[test]
    fn lines_of_an_attempt_fall_into_those_of_the_command_and_of_the_framework() {
        let (_directory, jobs) = kept();
        let keeper = jobs.start(job(1, KeptState::Running)).unwrap();
        let words = "subprocess failed with code 1: `x`\nProcessing split: hdfs:///f:0+4\nTraceback\n  more";
        keeper.keep_log("attempt", words).unwrap();
        let read = |name: &str| fs::read_to_string(jobs.logs("1_0001").join("attempt").join(name)).unwrap();
        assert_eq!(read("stderr"), "Traceback\n  more\n");
        let syslog = read("syslog");
        let lines: Vec<&str> = syslog.lines().collect();
        assert_eq!(lines.len(), 3, "{syslog}");
        assert!(lines[0].ends_with(" INFO mapred.MapTask: Processing split: hdfs:///f:0+4"), "{syslog}");
        assert!(lines[1].ends_with("RuntimeException: subprocess failed with code 1: `x`"), "{syslog}");
        assert!(lines[2].starts_with("\tat ") && lines[2].ends_with(".java:326)"), "{syslog}");
    }
}
