//! Directories of jobs that were started under Hadoop's names: `mapred job -kill` finds their processes there
//! (`hadoop`), and drivers the logs of failed attempts.
//!
//! They are where Hadoop's clusters have theirs, below [`STAGING`] in `hdfs:`, for their user alone. The program that follows
//! a job writes its number to `USER/.staging/JOB/process`, which it locks until its end, and the last lines of failed attempts to
//! `userlogs/APPLICATION/ATTEMPT/{stderr,syslog}`.

use super::file_names::FileNames;
use super::log::{Level, record};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Directory of `hdfs:` in which Hadoop stores files about jobs.
const STAGING: &str = "tmp/hadoop-yarn/staging";

/// Maximum number of recorded jobs. The oldest ended ones are removed, with the logs of their attempts.
const JOBS_MAX: usize = 100;

/// File of a job in its directory.
const PROCESS: &str = "process";

/// Time that `-kill` waits for the end of a job, and the pause between two checks.
const KILL_TIMEOUT: Duration = Duration::from_secs(60);
const KILL_PAUSE: Duration = Duration::from_millis(20);

/// Start of the line by which an attempt reports its input.
const SPLIT: &str = "Processing split: ";

/// mrjob recognises a failure only if `syslog` has a line of a Java program's stack.
const STACK: &str = "\tat org.apache.hadoop.streaming.PipeMapRed.waitOutputThreads(PipeMapRed.java:326)";

/// All kept jobs of a user.
#[derive(Clone, Debug)]
pub struct KeptJobs {
    staging: PathBuf,
    user: String,
}

impl KeptJobs {
    pub fn new(names: &FileNames) -> Self {
        Self { staging: names.root.join(STAGING), user: names.user.clone() }
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

    /// Creates a job's directory for this process, and removes the oldest jobs beyond [`JOBS_MAX`].
    ///
    /// # Errors
    /// A directory that is full or belongs to another user.
    pub fn start(&self, number: &str) -> io::Result<JobDirectories> {
        let entries = fs::read_dir(self.directories()).into_iter().flatten().flatten();
        let number_of =
            |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_prefix("job_")?.to_owned());
        let mut numbers: Vec<String> = entries.filter_map(number_of).collect();
        // They start with the time of the job in milliseconds.
        numbers.sort_unstable();
        let too_many = (numbers.len() + 1).saturating_sub(JOBS_MAX);
        let process_of = |number: &str| File::open(self.directory(number).join(PROCESS));
        let ended = numbers.iter().filter(|number| !process_of(number).is_ok_and(|process| runs(&process)));
        for number in ended.take(too_many) {
            // Two programs may do so at the same time.
            let _ = fs::remove_dir_all(self.directory(number));
            let _ = fs::remove_dir_all(self.logs(number));
        }
        let directory = self.directory(number);
        create_private(&directory)?;
        let new = directory.join("new");
        let mut process = File::create(&new)?;
        process.lock()?;
        write!(process, "{}", std::process::id())?;
        fs::rename(new, directory.join(PROCESS))?;
        Ok(JobDirectories { logs: self.logs(number), _process: process })
    }

    /// Ends a job with a number such as `STAMP_0001` as Ctrl-C does, and waits for its end. Returns false if it
    /// had ended before, `None` if it is unknown.
    ///
    /// # Errors
    /// A process of another user, or one that does not end in time.
    pub fn kill(&self, number: &str) -> io::Result<Option<bool>> {
        let Ok(locked) = File::open(self.directory(number).join(PROCESS)) else { return Ok(None) };
        let process = io::read_to_string(&locked)?.parse().ok().and_then(Pid::from_raw);
        let Some(process) = process.filter(|_| runs(&locked)) else { return Ok(Some(false)) };
        kill_process(process, Signal::TERM)?;
        let asked = Instant::now();
        while runs(&locked) {
            if asked.elapsed() > KILL_TIMEOUT {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the job received SIGTERM and still runs",
                ));
            }
            std::thread::sleep(KILL_PAUSE);
        }
        Ok(Some(true))
    }
}

/// True if the process that has locked this file runs.
fn runs(process: &File) -> bool {
    matches!(process.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Creates a private directory, with its parents.
fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

/// Directories of a job that this process follows.
#[derive(Debug)]
pub struct JobDirectories {
    logs: PathBuf,
    _process: File,
}

impl JobDirectories {
    /// Writes the last lines of a failed attempt. The first is the error; the others are the command's,
    /// except the line of its split.
    ///
    /// # Errors
    /// A directory that is full or belongs to another user.
    pub fn keep_log(&self, attempt: &str, message: &str) -> io::Result<()> {
        let directory = self.logs.join(attempt);
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

    #[test]
    fn jobs_are_kept_until_there_are_too_many_and_those_that_run_for_as_long_as_they_do() {
        let (_directory, jobs) = kept();
        let _running = jobs.start("100_0001").unwrap();
        let end = |number: &str| jobs.start(number).unwrap();
        end("101_0001").keep_log("attempt_101_0001_m_000000_0", "words").unwrap();
        assert!(jobs.logs("101_0001").exists());
        assert_eq!(jobs.kill("101_0001").unwrap(), Some(false));
        assert_eq!(jobs.kill("102_0001").unwrap(), None);
        for stamp in 102..102 + JOBS_MAX {
            end(&format!("{stamp}_0001"));
        }
        assert_eq!(fs::read_dir(jobs.directories()).unwrap().count(), JOBS_MAX);
        assert!(jobs.directory("100_0001").exists(), "it runs");
        assert!(jobs.kill("101_0001").unwrap().is_none() && !jobs.logs("101_0001").exists());
    }

    #[test]
    fn lines_of_an_attempt_fall_into_those_of_the_command_and_of_the_framework() {
        let (_directory, jobs) = kept();
        let keeper = jobs.start("1_0001").unwrap();
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
