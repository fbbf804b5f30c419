//! Workers in jobs of Slurm: an array of jobs of one node each, handed in once, which Slurm starts, requeues and ends.
//!
//! The line by which they join lies in the state folder, 0600, on a file system that the nodes see; it is in no script.

use super::PlaceError;
use super::record::SlurmPlace;
use gristmill_runtime::cluster::{Tool, ToolAnswer, ToolCall, ToolInput};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The script that is handed in.
const SCRIPT: &str = include_str!("slurm.batch");

/// How long Slurm may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// How long jobs may take to be gone once nothing holds them.
const GONE_MAX: Duration = Duration::from_secs(30);

/// How long they may take once Slurm was told to end them: it kills what is left after its `KillWait`, 30 s by default.
const CANCELLED_MAX: Duration = Duration::from_secs(90);

/// Pause between looks.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// What the script is made of.
pub struct Script<'a> {
    /// Name of the job.
    pub name: &'a str,
    /// How many nodes.
    pub nodes: u32,
    /// Processors of each node that are asked for.
    pub processors: Option<u32>,
    /// Longest run, as Slurm writes it.
    pub time: Option<&'a str>,
    /// Where the jobs write what they say.
    pub logs: &'a Path,
    /// Further options of `sbatch`, as typed.
    pub options: &'a [String],
    /// The program and its words.
    pub command: &'a [String],
}

impl Script<'_> {
    /// The script.
    pub fn text(&self) -> String {
        let logs = self.logs.join("slurm-%A-%a.log");
        let mut further = vec![format!("--output={}", logs.display())];
        further.extend(self.processors.map(|processors| format!("--cpus-per-task={processors}")));
        further.extend(self.time.map(|time| format!("--time={time}")));
        further.extend(self.options.iter().cloned());
        let further: Vec<String> = further.iter().map(|option| format!("#SBATCH {option}")).collect();
        let command: Vec<String> = self.command.iter().map(|word| quoted(word)).collect();
        SCRIPT
            .replace("@NAME@", self.name)
            .replace("@NODES@", &self.nodes.to_string())
            .replace("@FURTHER@", &further.join("\n"))
            .replace("@PROGRAM@", &command.join(" "))
    }
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Hands the script in; answers the number of the job.
///
/// # Errors
/// Slurm refuses it, or is not there.
pub async fn begin(script: String) -> Result<u64, PlaceError> {
    let input = ToolInput::Bytes(script.into_bytes());
    let answer = call(Tool::Sbatch, &["--parsable"], input).await?;
    // NUMBER[;CLUSTER]
    let number = answer.stdout.trim().split(';').next().and_then(|number| number.parse().ok());
    match (answer.code, number) {
        (Some(0), Some(number)) => Ok(number),
        _ => Err(refused("hand in the job of workers", &answer)),
    }
}

/// Sees to it that none of its jobs is left: those whose workers end by themselves, as they do with their master, go in
/// order; the rest is cancelled.
///
/// # Errors
/// Slurm does not answer, or does not end them.
pub async fn end(place: &SlurmPlace) -> Result<(), PlaceError> {
    if are_gone_within(place, GONE_MAX, true).await? {
        return Ok(());
    }
    if !are_gone_within(place, CANCELLED_MAX, false).await? {
        let said = format!("jobs of the name {} are still there after {CANCELLED_MAX:?}", place.name);
        return Err(PlaceError::Refused { what: "end Slurm's jobs", said });
    }
    Ok(())
}

/// Waits for the jobs to go. Those that have yet to begin are cancelled at once: their master is gone; others if they are
/// not left to themselves.
async fn are_gone_within(
    place: &SlurmPlace,
    limit: Duration,
    running_may_end: bool,
) -> Result<bool, PlaceError> {
    let end = Instant::now() + limit;
    let name = format!("--name={}", place.name);
    let mut cancelled = false;
    loop {
        let answer =
            call(Tool::Squeue, &["--noheader", "--me", &name, "--format=%T"], ToolInput::Nothing).await?;
        if answer.code != Some(0) {
            return Err(refused("ask Slurm for its jobs", &answer));
        }
        if answer.stdout.trim().is_empty() {
            return Ok(true);
        }
        if end <= Instant::now() {
            return Ok(false);
        }
        let wait = answer.stdout.lines().any(|state| state.trim() == "PENDING");
        if !cancelled && (wait || !running_may_end) {
            let which: &[&str] = if running_may_end { &["--state=PENDING", &name] } else { &[&name] };
            let answer = call(Tool::Scancel, which, ToolInput::Nothing).await?;
            if answer.code != Some(0) {
                return Err(refused("cancel Slurm's jobs", &answer));
            }
            cancelled = true;
        }
        sleep(LOOK_PAUSE).await;
    }
}

async fn call(tool: Tool, words: &[&str], input: ToolInput) -> Result<ToolAnswer, PlaceError> {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Ok(ToolCall { tool, words, input, limit: ANSWER_MAX }.make().await?)
}

fn refused(what: &'static str, answer: &ToolAnswer) -> PlaceError {
    PlaceError::Refused { what, said: answer.stderr.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_says_what_slurm_is_to_do_and_quotes_every_word_of_the_command() {
        let script = Script {
            name: "gristmill-ab",
            nodes: 3,
            processors: Some(4),
            time: Some("01:00:00"),
            logs: Path::new("/home/ada/state"),
            options: &["--partition=short".to_owned()],
            command: &["/opt/it's/gristmill".to_owned(), "worker".to_owned(), "$(x)".to_owned()],
        };
        let text = script.text();
        for line in [
            "#SBATCH --job-name=gristmill-ab",
            "#SBATCH --array=1-3",
            "#SBATCH --cpus-per-task=4",
            "#SBATCH --time=01:00:00",
            "#SBATCH --signal=B:TERM@90",
            "#SBATCH --output=/home/ada/state/slurm-%A-%a.log",
            "#SBATCH --partition=short",
            r"exec '/opt/it'\''s/gristmill' 'worker' '$(x)'",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
        assert_eq!(text.matches('@').count(), 1, "that of the signal\n{text}");
    }
}
