//! The last lines that user code printed, for the user of the job.

use gristmill_runtime::api::{JobStatus, LogEntry};
use gristmill_runtime::client::Client;
use gristmill_runtime::plural::counted;

/// Shows the last lines that user code has printed: the cluster of `run` ends before a user could ask for
/// them.
pub fn show(client: &Client, status: &JobStatus) {
    let Ok(logs) = client.logs(status.job) else { return };
    let lines: Vec<(String, &str)> = logs
        .iter()
        .flat_map(|entry| {
            let who =
                entry.attempt.map_or_else(|| "several attempts".to_owned(), |attempt| attempt.to_string());
            entry.text.lines().map(move |line| (who.clone(), line))
        })
        .collect();
    let omitted: u64 = logs.iter().map(|entry| entry.omitted_bytes).sum();
    if lines.is_empty() {
        return;
    }
    let before = lines.len().saturating_sub(PRINTED_LINES);
    say!("  printed by the job's code:");
    if 0 < before || 0 < omitted {
        say!(
            "    ({} and {} more; a master keeps them for `gristmill job logs {}`)",
            counted(before as u64, "line", "lines"),
            counted(omitted, "byte", "bytes"),
            status.job
        );
    }
    for (who, line) in &lines[before..] {
        say!("    {who}: {}", gristmill_worker::sanitize::message(line));
    }
}

/// Lines of user output shown when a job has succeeded.
const PRINTED_LINES: usize = 20;

/// Lines of user output shown when a job fails.
const LAST_WORDS_LINES: usize = 20;

/// Prints the last output of the attempt that failed the job: the cluster of `run` has ended by the time of `job logs`.
pub fn show_last_words(client: &Client, status: &JobStatus) {
    let detail = status.failure.as_ref().and_then(|failure| failure.detail.as_deref()).unwrap_or_default();
    let Ok(logs) = client.logs(status.job) else { return };
    let of = |entry: &&LogEntry| {
        entry.attempt.is_some_and(|attempt| detail.starts_with(&format!("{attempt} on ")))
    };
    let Some(entry) = logs.iter().find(of) else { return };
    let lines: Vec<&str> = entry.text.lines().collect();
    say!("  last output of the attempt that failed the job:");
    for line in &lines[lines.len().saturating_sub(LAST_WORDS_LINES)..] {
        say!("    {}", gristmill_worker::sanitize::message(line));
    }
}
