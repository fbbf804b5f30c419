//! `mapred job`, `yarn application` and `yarn logs`: what scripts and drivers ask of jobs that were started under Hadoop's
//! names on this machine. All they know stands in the files of those jobs (`kept`), a second old at most.
//!
//! Not here: other users' jobs, and single tasks, which nobody can end from outside.

use super::kept::{KeptJob, KeptJobs, KeptState, KillOutcome, kill};
use super::places::{DefaultSystem, FileNames};
use crate::terminal::{stderr_line, stdout_line, stdout_text};
use gristmill_runtime::exit;
use gristmill_runtime::wall_time::{clock, date};
use std::fs;
use std::path::PathBuf;

/// What -1 becomes: how Hadoop's programs say that they did not do it.
const NOT_DONE: u8 = u8::MAX;

const JOB_USAGE: &str = "\
Usage: mapred job -list [all] | -status JOB | -counter JOB GROUP NAME | -kill JOB | -logs JOB [ATTEMPT]";

const APPLICATION_USAGE: &str = "\
Usage: yarn application -list [-appStates ALL|RUNNING|FINISHED|FAILED|KILLED] | -status APPLICATION | -kill APPLICATION";

fn kept() -> anyhow::Result<KeptJobs> {
    Ok(KeptJobs::of(&FileNames::new(DefaultSystem::Hdfs)?))
}

/// `mapred job …`, also `hadoop job …`.
///
/// # Errors
/// A stdout that cannot be written to, and no folder for `hdfs:`.
pub fn job(words: &[String]) -> anyhow::Result<u8> {
    let jobs = kept()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["-list"] => list_jobs(&jobs, false),
        ["-list", "all"] => list_jobs(&jobs, true),
        ["-status", name] => with_job(&jobs, name, show_job),
        ["-counter", name, group, counter] => with_job(&jobs, name, |job| show_counter(job, group, counter)),
        ["-kill", name] => with_job(&jobs, name, |job| kill_job(&jobs, job)),
        ["-logs", name] => with_job(&jobs, name, |job| show_logs(&jobs, job, None)),
        ["-logs", name, attempt] => with_job(&jobs, name, |job| show_logs(&jobs, job, Some(attempt))),
        // Everything runs on workers that belong to the job, of which nobody else need know.
        ["-list-active-trackers" | "-list-blacklisted-trackers"] => Ok(exit::OK),
        [
            "-set-priority" | "-events" | "-history" | "-list-attempt-ids" | "-kill-task" | "-fail-task"
            | "-submit",
            ..,
        ] => {
            stderr_line(&format!("mapred job {}: this is not known here", words[0]));
            stderr_line(JOB_USAGE);
            Ok(NOT_DONE)
        }
        _ => {
            stderr_line(JOB_USAGE);
            Ok(NOT_DONE)
        }
    }
}

fn with_job(
    jobs: &KeptJobs,
    name: &str,
    work: impl FnOnce(&KeptJob) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let Some(job) = jobs.find(name) else {
        stdout_line(&format!("Could not find job {name}"))?;
        return Ok(NOT_DONE);
    };
    work(&job)
}

fn list_jobs(jobs: &KeptJobs, all: bool) -> anyhow::Result<u8> {
    let listed: Vec<KeptJob> = jobs.all().into_iter().filter(|job| all || job.runs()).collect();
    stdout_line(&format!("Total jobs:{}", listed.len()))?;
    stdout_line(&format!(
        "{:>32}\t{:>15}\t{:>10}\t{:>14}\t{:>12}\t{:>12}\t{:>10}",
        "JobId", "JobName", "State", "StartTime", "UserName", "Queue", "Priority"
    ))?;
    for job in listed {
        stdout_line(&format!(
            "{:>32}\t{:>15}\t{:>10}\t{:>14}\t{:>12}\t{:>12}\t{:>10}",
            format!("job_{}", job.number),
            job.name,
            job.state().name(),
            job.started_ms,
            job.user,
            "default",
            job.priority
        ))?;
    }
    Ok(exit::OK)
}

fn show_job(job: &KeptJob) -> anyhow::Result<u8> {
    // As Java writes such a number.
    let share = |percent: u64| format!("{:?}", percent as f64 / 100.0);
    let mut text = format!(
        "\nJob: job_{}\nJob Tracking URL : {}\nUber job : false\nNumber of maps: {}\nNumber of reduces: {}\n\
         map() completion: {}\nreduce() completion: {}\nJob state: {}\nretired: false\nreason for failure: {}\n",
        job.number,
        job.url,
        job.maps.total,
        job.reduces.total,
        share(job.maps.percent),
        share(job.reduces.percent),
        job.state().name(),
        reason(job)
    );
    text.push_str(&format!("Counters: {}\n", job.counters.values().map(|group| group.len()).sum::<usize>()));
    for (group, counts) in &job.counters {
        text.push_str(&format!("\t{group}\n"));
        for (name, count) in counts {
            text.push_str(&format!("\t\t{name}={count}\n"));
        }
    }
    stdout_text(&text)?;
    Ok(exit::OK)
}

/// Why there is no output.
fn reason(job: &KeptJob) -> &str {
    match job.state {
        KeptState::Running if !job.runs() => "the program that followed it was killed",
        _ => &job.why,
    }
}

/// The number of a counter; 0, as in Hadoop, if there is none.
fn show_counter(job: &KeptJob, group: &str, counter: &str) -> anyhow::Result<u8> {
    // Hadoop has its own groups under the names of their classes, of which scripts know these.
    let group = match group {
        "org.apache.hadoop.mapreduce.TaskCounter" | "org.apache.hadoop.mapred.Task$Counter" => {
            "Map-Reduce Framework"
        }
        "org.apache.hadoop.mapreduce.JobCounter" => "Job Counters",
        other => other,
    };
    let words = counter.replace('_', " ").to_lowercase();
    let counts = job.counters.get(group);
    let of_name = |counts: &std::collections::BTreeMap<String, u64>| {
        let by_words =
            || counts.iter().find(|(name, _)| name.to_lowercase() == words).map(|(_, count)| *count);
        counts.get(counter).copied().or_else(by_words)
    };
    stdout_line(&counts.and_then(of_name).unwrap_or(0).to_string())?;
    Ok(exit::OK)
}

fn kill_job(jobs: &KeptJobs, job: &KeptJob) -> anyhow::Result<u8> {
    let name = format!("job_{}", job.number);
    match kill(jobs, job)? {
        KillOutcome::Ended => stdout_line(&format!("Killed job {name}"))?,
        KillOutcome::Asked => stdout_line(&format!("Asked job {name} to end; it still does"))?,
        KillOutcome::TooLate => {
            let how = match jobs.find(&name).map(|job| job.state()) {
                Some(KeptState::Succeeded) => "succeeded",
                Some(KeptState::Killed) => "been killed",
                _ => "failed",
            };
            stdout_line(&format!("Could not mark the job {name} as killed, as it has already {how}."))?;
            return Ok(NOT_DONE);
        }
    }
    Ok(exit::OK)
}

/// Last words of attempts that failed: of all, or of one.
fn show_logs(jobs: &KeptJobs, job: &KeptJob, attempt: Option<&str>) -> anyhow::Result<u8> {
    let mut attempts: Vec<PathBuf> = fs::read_dir(jobs.logs(&job.number))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    attempts.sort_unstable();
    let name_of =
        |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    attempts.retain(|path| attempt.is_none_or(|attempt| name_of(path) == attempt));
    if attempts.is_empty() {
        stderr_line(&format!("job_{}: no logs: they are kept of attempts that failed", job.number));
        return Ok(if attempt.is_some() { NOT_DONE } else { exit::OK });
    }
    for path in attempts {
        for kind in ["stderr", "syslog"] {
            let bytes = fs::read(path.join(kind)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            let head = format!(
                "Container: {}\nLogType:{kind}\nLogLength:{}\nLog Contents:\n",
                name_of(&path),
                bytes.len()
            );
            stdout_text(&format!("{head}{text}End of LogType:{kind}\n\n"))?;
        }
    }
    Ok(exit::OK)
}

/// `yarn application …`, also `yarn app …`.
///
/// # Errors
/// A stdout that cannot be written to, and no folder for `hdfs:`.
pub fn application(words: &[String]) -> anyhow::Result<u8> {
    let jobs = kept()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["-list"] => list_applications(&jobs, "RUNNING"),
        ["-list", "-appStates", states] => list_applications(&jobs, states),
        ["-status", name] => with_application(&jobs, name, show_application),
        ["-kill", name] => with_application(&jobs, name, |job| kill_application(&jobs, job)),
        _ => {
            stderr_line(APPLICATION_USAGE);
            Ok(NOT_DONE)
        }
    }
}

/// `yarn logs -applicationId APPLICATION`.
///
/// # Errors
/// A stdout that cannot be written to, and no folder for `hdfs:`.
pub fn logs(words: &[String]) -> anyhow::Result<u8> {
    let jobs = kept()?;
    match words {
        [option, name] if option == "-applicationId" => {
            with_application(&jobs, name, |job| show_logs(&jobs, job, None))
        }
        _ => {
            stderr_line("Usage: yarn logs -applicationId APPLICATION");
            Ok(NOT_DONE)
        }
    }
}

/// As [`with_job`], in the words of `yarn`.
fn with_application(
    jobs: &KeptJobs,
    name: &str,
    work: impl FnOnce(&KeptJob) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let Some(job) = jobs.find(name) else {
        stderr_line(&format!("Application with id '{name}' doesn't exist in RM."));
        return Ok(NOT_DONE);
    };
    work(&job)
}

/// State and final state of an application, in Yarn's words.
fn states(job: &KeptJob) -> (&'static str, &'static str) {
    match job.state() {
        KeptState::Running => ("RUNNING", "UNDEFINED"),
        KeptState::Succeeded => ("FINISHED", "SUCCEEDED"),
        KeptState::Failed => ("FINISHED", "FAILED"),
        KeptState::Killed => ("KILLED", "KILLED"),
    }
}

fn list_applications(jobs: &KeptJobs, wanted: &str) -> anyhow::Result<u8> {
    let is_wanted = |job: &KeptJob| {
        let (state, last) = states(job);
        wanted.split(',').any(|word| word == "ALL" || word == state || word == last)
    };
    let listed: Vec<KeptJob> = jobs.all().into_iter().filter(is_wanted).collect();
    stdout_line(&format!("Total number of applications (states: [{wanted}]):{}", listed.len()))?;
    stdout_line(
        &"                Application-Id\t    Application-Name\t    Application-Type\t      User\t     Queue\t             State\t       Final-State\t       Progress\t                       Tracking-URL",
    )?;
    for job in listed {
        let (state, last) = states(&job);
        stdout_line(&format!(
            "application_{}\t{:>20}\t{:>20}\t{:>10}\t{:>10}\t{state:>18}\t{last:>18}\t{:>14}%\t{:>35}",
            job.number,
            job.name,
            "MAPREDUCE",
            job.user,
            "default",
            progress(&job),
            job.url
        ))?;
    }
    Ok(exit::OK)
}

fn progress(job: &KeptJob) -> u64 {
    match job.reduces.total {
        0 => job.maps.percent,
        _ => (job.maps.percent + job.reduces.percent) / 2,
    }
}

fn show_application(job: &KeptJob) -> anyhow::Result<u8> {
    let (state, last) = states(job);
    let time = |ms: u64| format!("{ms} ({} {})", date(ms / 1000), clock(ms / 1000));
    stdout_text(&format!(
        "Application Report :\n\tApplication-Id : application_{}\n\tApplication-Name : {}\n\tApplication-Type : MAPREDUCE\n\
         \tUser : {}\n\tQueue : default\n\tStart-Time : {}\n\tFinish-Time : {}\n\tProgress : {}%\n\tState : {state}\n\
         \tFinal-State : {last}\n\tTracking-URL : {}\n\tDiagnostics : {}\n",
        job.number,
        job.name,
        job.user,
        time(job.started_ms),
        job.finished_ms.map_or_else(|| "0".to_owned(), time),
        progress(job),
        job.url,
        reason(job)
    ))?;
    Ok(exit::OK)
}

fn kill_application(jobs: &KeptJobs, job: &KeptJob) -> anyhow::Result<u8> {
    let name = format!("application_{}", job.number);
    match kill(jobs, job)? {
        KillOutcome::Ended => stdout_line(&format!("Killed application {name}"))?,
        KillOutcome::Asked => stdout_line(&format!("Asked {name} to end; it still does"))?,
        KillOutcome::TooLate => stdout_line(&format!("Application {name} has already finished "))?,
    }
    Ok(exit::OK)
}
