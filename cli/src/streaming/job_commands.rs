//! `mapred job -kill` and `yarn application -kill`: end a job that was started under Hadoop's names on this machine.

use super::file_names::{DefaultSystem, FileNames};
use super::kept::KeptJobs;
use crate::terminal::{stderr_line, stdout_line};
use gristmill_runtime::exit;

/// Exit code of a call that did nothing: the value -1 as an exit code.
const NOT_DONE: u8 = u8::MAX;

/// Executes `mapred job …` (`kind` is `job`) or `yarn application …` and returns the exit code.
///
/// # Errors
/// A stdout that is closed, or no directory for `hdfs:`.
pub fn run(kind: &str, words: &[String]) -> anyhow::Result<u8> {
    let jobs = KeptJobs::new(&FileNames::new(DefaultSystem::Hdfs)?);
    let [command, name] = words else { return Ok(refuse(kind)) };
    if command != "-kill" {
        return Ok(refuse(kind));
    }
    let job = name.split_once('_').and_then(|(_, number)| Some((number, jobs.find(number)?)));
    let (words, code) = match job {
        None => (format!("Could not find {kind} {name}"), NOT_DONE),
        Some((number, job)) if jobs.kill(number, job)? => (format!("Killed {kind} {name}"), exit::OK),
        Some(_) => (format!("Could not kill {kind} {name}, as it has already ended"), NOT_DONE),
    };
    stdout_line(&words)?;
    Ok(code)
}

fn refuse(kind: &str) -> u8 {
    stderr_line(&format!(
        "Usage: {kind} -kill NAME; other commands are not supported: `hadoop jar` prints the job's state, progress and counters"
    ));
    NOT_DONE
}
