//! `up` and `down`: a cluster whose workers are started by ssh, Slurm, Ray or Kubernetes.
//!
//! Each place starts, replaces and ends workers by its own means, with the templates in `deploy`. Everything
//! that may run somewhere is written to a [`record::Record`] first, so that `down` ends all of it.

mod flags;
mod hosts;
mod kubernetes;
mod master;
mod ray;
mod record;
mod slurm;
mod ssh;

pub use flags::{DownCommand, UpCommand};
pub use kubernetes::{UnpackCommand, unpack};

use crate::settings::Settings;
use crate::state::StateFolder;
use crate::terminal::{complain, stdout_json, stdout_line};
use crate::text_table::table;
use gristmill_runtime::api::{MasterStatus, Role};
use gristmill_runtime::client::AsyncClient;
use gristmill_runtime::cluster::{Tool, ToolAnswer, ToolCall, ToolError, ToolInput};
use gristmill_runtime::plural::counted;
use gristmill_runtime::{chain, exit};
use gristmill_worker::exit::{Exit, ExitsWith};
use gristmill_worker::http::{JoinLine, make_private_directory};
use gristmill_worker::sanitize;
use record::{Place, Record};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Label of the token with which workers of `up` join.
const TOKEN_LABEL: &str = "guests";

/// Error of `up` or `down`.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A cluster is up already.
    #[error("{what} is up already, by {}; end it with `gristmill cluster down`, or name another directory with --state", path.display())]
    Up { what: String, path: PathBuf },
    /// No cluster is up.
    #[error("nothing is up by the state directory {}; name another one with --state", path.display())]
    Nothing { path: PathBuf },
    /// A master runs that `up` has not started.
    #[error("a master started by hand runs in {} (process {process}); end it with SIGTERM: kill {process}", path.display())]
    ByHand { path: PathBuf, process: u32 },
    /// The cluster was started on another machine.
    #[error("{what} is up, but it was started on {machine}: type `gristmill cluster down` there")]
    Elsewhere { what: String, machine: String },
    /// A file cannot be read or written.
    #[error("could not {action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The master does not start or end.
    #[error("the master {said}")]
    Master { said: String },
    /// Too few hosts have workers.
    #[error("{refused} of {hosts} hosts do not take part{}", if *all { ", and --require-all was typed" } else { "" })]
    Hosts { refused: usize, hosts: usize, all: bool },
    /// Some hosts were not reached by `down`.
    #[error(
        "{} could not be brought down; workers there end by themselves when they have not found their master for ten \
         minutes. Type `gristmill cluster down` again to retry, or `gristmill cluster down --forget` to give them up",
        hosts.join(", ")
    )]
    Left { hosts: Vec<String> },
    /// A host was not reached.
    #[error("could not be reached: {said}")]
    Unreached { said: String },
    /// A program failed.
    #[error("could not {what}: {said}")]
    Refused { what: &'static str, said: String },
    /// A program is missing or hangs.
    #[error(transparent)]
    Tool {
        #[from]
        source: ToolError,
    },
}

impl ExitsWith for PlaceError {
    fn exit(&self) -> Exit {
        match self {
            Self::Hosts { .. } | Self::Left { .. } => Exit::with(exit::CLUSTER),
            _ => Exit::with(exit::ENVIRONMENT),
        }
    }
}

/// Workers that were started together.
#[derive(Serialize)]
struct Row {
    host: String,
    workers: Option<u32>,
    log: String,
}

/// Calls a program, which must end with code 0.
async fn call(
    what: &'static str,
    tool: Tool,
    words: &[&str],
    input: ToolInput,
    limit: Duration,
) -> Result<ToolAnswer, PlaceError> {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    let answer = ToolCall { tool, words, input, limit }.make().await?;
    match answer.code {
        Some(0) => Ok(answer),
        _ => Err(PlaceError::Refused { what, said: last_words(&answer.stderr) }),
    }
}

/// Returns the last lines of a program's output, as one line.
fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    if last.is_empty() { "it gave no reason".to_owned() } else { last }
}

/// Quotes a word for a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// `gristmill cluster up`. `named` is the settings file that was typed.
pub fn up(settings: &Settings, named: Option<&Path>, flags: &UpCommand) -> anyhow::Result<u8> {
    let runtime = gristmill_worker::threads::runtime()?;
    runtime.block_on(bring_up(settings, named, flags))
}

async fn bring_up(settings: &Settings, named: Option<&Path>, flags: &UpCommand) -> anyhow::Result<u8> {
    let state = flags.state(settings)?;
    let Some(place) = flags.place(&state)? else { return kubernetes::up(flags, &state) };
    let mut record = Record::new(&state, place);
    if flags.print {
        stdout_line(&slurm::script(flags, &record.name, &state)?.trim_end())?;
        return Ok(exit::OK);
    }
    let named = named.map(std::path::absolute).transpose()?;
    let words = flags.master_words(flags.listen(&record.place).await?, &state, named.as_deref());
    make_private_directory(&state)?;
    record.claim()?;
    match start(flags, &state, &words, &mut record).await {
        Ok(()) => Ok(exit::OK),
        Err(error) => {
            // Workers that do not start are ended again; those that cannot be ended are left to `down`.
            if let Err(left) = take_down(record, &state, Duration::ZERO, false).await {
                complain("warning", &sanitize::message(&chain(left.as_ref())));
            }
            Err(error)
        }
    }
}

async fn start(flags: &UpCommand, state: &Path, words: &[String], record: &mut Record) -> anyhow::Result<()> {
    let line = master::start(state, words).await?;
    let client = AsyncClient::new(&line);
    let token = client.new_token(Role::Work, Some(TOKEN_LABEL), None).await?;
    let line = JoinLine { token, ..line };
    let rows = match record.place.clone() {
        Place::Ssh(_) => ssh::start(flags, &line, record).await?,
        Place::Slurm { join } => slurm::start(flags, &record.name, &join, state, &line).await?,
        Place::Ray(place) => ray::start(flags, &record.name, &place, &line).await?,
    };
    let expected = rows.iter().map(|row| row.workers.unwrap_or(1)).sum();
    let timeout = Duration::from_secs(u64::from(flags.wait));
    let status = match client.await_workers(expected, timeout).await? {
        Some(status) => status,
        None => {
            let status = client.master().await?;
            let expected = counted(u64::from(expected), "worker", "workers");
            say!("of {expected} {} joined within {timeout:?}; more may come", status.workers.len());
            status
        }
    };
    show(flags, &status, &rows)
}

fn show(flags: &UpCommand, status: &MasterStatus, rows: &[Row]) -> anyhow::Result<()> {
    if flags.json {
        let text = serde_json::json!({ "workers": status.workers.len(), "hosts": rows });
        return stdout_json(&text);
    }
    let workers = |row: &Row| row.workers.map_or_else(|| "-".to_owned(), |workers| workers.to_string());
    let lines = rows.iter().map(|row| [row.host.clone(), workers(row), row.log.clone()]);
    stdout_line(&table(&["HOST", "WORKERS", "LOG"], lines))?;
    let joined = counted(status.workers.len() as u64, "worker has", "workers have");
    say!("{joined} joined; end all of it with `gristmill cluster down`");
    Ok(())
}

/// `gristmill cluster down`.
pub fn down(settings: &Settings, flags: &DownCommand) -> anyhow::Result<u8> {
    let state = flags.state(settings)?;
    let Some(record) = Record::read(&state)? else {
        let error = match StateFolder::holder(&state) {
            Some(process) => PlaceError::ByHand { path: state, process },
            None => PlaceError::Nothing { path: state },
        };
        return Err(error.into());
    };
    let words = record.words();
    if record.machine != gristmill_worker::host_name() {
        return Err(PlaceError::Elsewhere { what: words, machine: record.machine }.into());
    }
    let runtime = gristmill_worker::threads::runtime()?;
    runtime.block_on(take_down(record, &state, flags.grace(), flags.forget))?;
    say!("down: {words}");
    Ok(exit::OK)
}

/// Ends all that the record names, then removes it. Running jobs are waited for as long as `grace`.
async fn take_down(mut record: Record, state: &Path, grace: Duration, forget: bool) -> anyhow::Result<()> {
    master::end(state, grace).await?;
    match record.place.clone() {
        Place::Ssh(_) => {
            let hosts = ssh::end(&mut record, state).await?;
            if !hosts.is_empty() && !forget {
                record.write()?;
                return Err(PlaceError::Left { hosts }.into());
            }
        }
        Place::Slurm { join } => slurm::end(&record.name, &join).await?,
        Place::Ray(place) => ray::end(&record.name, &place).await?,
    }
    Ok(record.remove()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_of_a_program_are_one_line() {
        assert_eq!(last_words(" a\n\nb \nc\nd\n"), "b; c; d");
        assert_eq!(last_words("\n"), "it gave no reason");
    }
}
