//! `mapred job` and `yarn application`: list, show and end jobs that were started under Hadoop's names on
//! this machine. They read the files of those jobs (`kept`), which are at most a second old.
//!
//! Jobs of other users, single tasks, and the history of a job are not supported.

use super::kept::{KeptJob, KeptJobs, KeptState};
use super::places::{DefaultSystem, FileNames};
use crate::terminal::{stderr_line, stdout_line, stdout_text};
use gristmill_runtime::exit;

/// Exit code of a call that did nothing: that of -1.
const NOT_DONE: u8 = u8::MAX;

/// Executes `mapred job …` (`kind` is `job`) or `yarn application …` and returns the exit code.
///
/// # Errors
/// A stdout that is closed, or no directory for `hdfs:`.
pub fn run(kind: &str, words: &[String]) -> anyhow::Result<u8> {
    let jobs = KeptJobs::new(&FileNames::new(DefaultSystem::Hdfs)?);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (command, name) = match words[..] {
        ["-list"] => return list(&jobs, kind, false),
        ["-list", "all"] | ["-list", "-appStates", "ALL"] => return list(&jobs, kind, true),
        [command @ ("-status" | "-kill"), name] => (command, name),
        _ => {
            stderr_line(&format!("Usage: {kind} -list [all] | -status NAME | -kill NAME"));
            return Ok(NOT_DONE);
        }
    };
    let Some(job) = jobs.find(name) else {
        stdout_line(&format!("Could not find {kind} {name}"))?;
        return Ok(NOT_DONE);
    };
    match command {
        "-kill" if jobs.kill(&job)? => stdout_line(&format!("Killed {kind} {name}"))?,
        "-kill" => {
            stdout_line(&format!("Could not kill {kind} {name}, as it has already ended"))?;
            return Ok(NOT_DONE);
        }
        _ if kind == "job" => stdout_text(&job_text(&job))?,
        _ => stdout_text(&application_text(&job))?,
    }
    Ok(exit::OK)
}

fn list(jobs: &KeptJobs, kind: &str, all: bool) -> anyhow::Result<u8> {
    let listed: Vec<KeptJob> = jobs.all().into_iter().filter(|job| all || job.runs()).collect();
    stdout_line(&format!("Total {kind}s:{}", listed.len()))?;
    stdout_line(&format!(
        "{:>32}\t{:>15}\t{:>10}\t{:>14}\t{:>12}",
        "Id", "Name", "State", "StartTime", "User"
    ))?;
    for job in listed {
        let id = format!("{kind}_{}", job.number);
        let (state, started) = (name_of(job.state), job.started_ms);
        stdout_line(&format!("{id:>32}\t{:>15}\t{state:>10}\t{started:>14}\t{:>12}", job.name, job.user))?;
    }
    Ok(exit::OK)
}

fn name_of(state: KeptState) -> &'static str {
    match state {
        KeptState::Running => "RUNNING",
        KeptState::Succeeded => "SUCCEEDED",
        KeptState::Failed => "FAILED",
        KeptState::Killed => "KILLED",
    }
}

fn job_text(job: &KeptJob) -> String {
    let mut text = format!(
        "\nJob: job_{}\nJob Tracking URL : {}\nNumber of maps: {}\nNumber of reduces: {}\nmap() completion: {:?}\n\
         reduce() completion: {:?}\nJob state: {}\nreason for failure: {}\nCounters: {}\n",
        job.number,
        job.url,
        job.maps.total,
        job.reduces.total,
        job.maps.percent as f64 / 100.0,
        job.reduces.percent as f64 / 100.0,
        name_of(job.state),
        job.why,
        job.counters.values().map(|group| group.len()).sum::<usize>()
    );
    for (group, counts) in &job.counters {
        text.push_str(&format!("\t{group}\n"));
        text.extend(counts.iter().map(|(name, count)| format!("\t\t{name}={count}\n")));
    }
    text
}

fn application_text(job: &KeptJob) -> String {
    let (state, end) = match job.state {
        KeptState::Running => ("RUNNING", "UNDEFINED"),
        KeptState::Killed => ("KILLED", "KILLED"),
        ended => ("FINISHED", name_of(ended)),
    };
    format!(
        "Application Report :\n\tApplication-Id : application_{}\n\tApplication-Name : {}\n\tApplication-Type : MAPREDUCE\n\
         \tUser : {}\n\tStart-Time : {}\n\tState : {state}\n\tFinal-State : {end}\n\tTracking-URL : {}\n\
         \tDiagnostics : {}\n",
        job.number, job.name, job.user, job.started_ms, job.url, job.why
    )
}
