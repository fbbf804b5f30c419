//! Workers in a job array of Slurm with one node each, which Slurm starts, requeues and ends
//! (`cli/src/places/slurm.batch`).
//!
//! The join line is in the state directory, with mode 0600, on a file system that the nodes see; no script
//! contains it.

use super::call::{call, quoted, refused};
use super::flags::UpCommand;
use crate::usage::usage;
use gristmill_runtime::cluster::{Tool, ToolCall, ToolInput};
use gristmill_worker::http::{JoinLine, make_private_directory};
use gristmill_worker::whole_file::{self, Promise};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The batch script, whose command is `"$@"`.
const SCRIPT: &str = include_str!("slurm.batch");

/// Time for Slurm to respond.
const CALL_MAX: Duration = Duration::from_secs(60);

/// Time for workers to end by themselves once their master has, and for cancelled jobs to end: Slurm kills after its
/// `KillWait`, 30 s by default.
const END_MAX: Duration = Duration::from_secs(60);

/// Pause between checks.
const CHECK_PAUSE: Duration = Duration::from_millis(200);

/// Returns the batch script of the workers.
///
/// # Errors
/// An invalid option.
pub fn script(flags: &UpCommand, name: &str, state: &Path) -> anyhow::Result<String> {
    let mut options = vec![
        format!("--job-name={name}"),
        format!("--array=1-{}", flags.nodes),
        format!("--output={}", state.join("logs/slurm-%A-%a.log").display()),
    ];
    options.extend(flags.workers_per_host.map(|workers| format!("--cpus-per-task={workers}")));
    options.extend(flags.sbatch.iter().cloned());
    if let Some(option) = options.iter().find(|option| option.contains('\n') || !option.starts_with('-')) {
        return Err(usage(format!("--sbatch {option:?} is not an option of sbatch")));
    }
    let join = state.join("slurm.join").display().to_string();
    let command: Vec<String> = flags.node_command(&join)?.iter().map(|word| quoted(word)).collect();
    let (first, rest) = SCRIPT.split_once('\n').unwrap_or_default();
    let options: String = options.iter().map(|option| format!("#SBATCH {option}\n")).collect();
    Ok(format!("{first}\n{options}{}", rest.replace("exec \"$@\"", &format!("exec {}", command.join(" ")))))
}

/// Submits the workers' job array, and returns the number of workers.
///
/// # Errors
/// Slurm rejects it, or a file that cannot be written.
pub async fn start(
    flags: &UpCommand,
    name: &str,
    join: &Path,
    state: &Path,
    line: &JoinLine,
) -> anyhow::Result<u32> {
    let script = ToolInput::Bytes(script(flags, name, state)?.into_bytes());
    make_private_directory(&state.join("logs"))?;
    let text = line.to_text();
    whole_file::replace(join, Promise::Private, |file| file.write_all(text.as_bytes()))?;
    slurm("submit the workers' job", Tool::Sbatch, &[], script).await?;
    Ok(flags.nodes * flags.workers_per_host.unwrap_or(1))
}

/// Ends the jobs: pending ones are cancelled, running ones end with their master or are cancelled then.
///
/// # Errors
/// Slurm does not respond, or does not end them.
pub async fn end(name: &str, join: &Path) -> anyhow::Result<()> {
    let name = format!("--name={name}");
    for cancelled in [&[name.as_str(), "--state=PENDING"][..], &[&name]] {
        slurm("cancel Slurm's jobs", Tool::Scancel, cancelled, ToolInput::Nothing).await?;
        let end = Instant::now() + END_MAX;
        while Instant::now() < end {
            let words = ["--noheader", "--me", &name, "--format=%T"];
            let jobs = slurm("list Slurm's jobs", Tool::Squeue, &words, ToolInput::Nothing).await?;
            if jobs.trim().is_empty() {
                let _ = fs::remove_file(join);
                return Ok(());
            }
            sleep(CHECK_PAUSE).await;
        }
    }
    Err(refused(format!("could not end Slurm's jobs: some with {name} still exist")))
}

async fn slurm(what: &str, tool: Tool, words: &[&str], input: ToolInput) -> anyhow::Result<String> {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    call(what, ToolCall { tool, words, input, limit: CALL_MAX }).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command, FromArgMatches};

    #[test]
    fn script_has_all_options_and_quotes_every_word_of_the_command() {
        let typed = [
            "up",
            "--on",
            "slurm",
            "--nodes",
            "3",
            "--workers-per-host",
            "4",
            "--program",
            "/opt/it's/gristmill",
        ];
        let typed = typed.iter().chain(&["--sbatch", "--partition=short", "--", "--memory", "$(x)"]);
        let matches = UpCommand::augment_args(Command::new("up")).get_matches_from(typed);
        let flags = UpCommand::from_arg_matches(&matches).unwrap();
        let text = script(&flags, "gristmill-ab", Path::new("/home/ada/state")).unwrap();
        for line in [
            "#SBATCH --job-name=gristmill-ab",
            "#SBATCH --array=1-3",
            "#SBATCH --cpus-per-task=4",
            "#SBATCH --signal=B:TERM@90",
            "#SBATCH --output=/home/ada/state/logs/slurm-%A-%a.log",
            "#SBATCH --partition=short",
            r"exec '/opt/it'\''s/gristmill' 'worker' '--join' '/home/ada/state/slurm.join' '--workers=4' '--memory' '$(x)'",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
    }
}
