//! Common part of all measurements: run a command by the rules, check its output, store the result.
//!
//! The rules: before each run, while the time is not measured, the output and the temporary directory are emptied, the
//! disk gets time to write pending data, and the inputs are read into the page cache.

use crate::archive::{Archive, ArchiveEntry, BenchSection, Finding, RunLabel};
use crate::check::{Digest, OutputKind, digest};
use crate::measure::{MeasuredRun, Request, measure};
use crate::places::{Places, warm};
use anyhow::Context;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Number of shown lines of a failed command's standard error.
const LAST_WORDS_LINES: usize = 12;

/// Command with its purpose.
#[derive(Clone, Debug)]
pub struct Task {
    /// Section of the report.
    pub section: BenchSection,
    /// Work to be done.
    pub row: String,
    /// System that does the work, or setting.
    pub contestant: String,
    /// Program and arguments, with variables for paths.
    pub command: Vec<String>,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
    /// Files to be read into the page cache, with variables.
    pub inputs: Vec<String>,
}

impl Task {
    /// Returns the command as typed in a shell.
    pub fn command_line(&self) -> String {
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        variables.chain(self.command.iter().map(|word| quoted(word))).collect::<Vec<_>>().join(" ")
    }
}

/// Quotes a word for a shell; variables stay variables.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./$:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Splits a command without quotes into words.
pub fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Context of measurements.
pub struct Bench {
    /// Paths.
    pub places: Places,
    /// Archive of results.
    pub archive: Archive,
    /// Start time of this program, seconds since 1970.
    pub invocation: u64,
    /// Maximum time of a run.
    pub timeout: Duration,
    /// True after an unexpected failure.
    pub failed: bool,
}

impl Bench {
    /// Returns the reason if this command cannot run at all.
    pub fn obstacle(&self, task: &Task) -> Option<String> {
        if let Some(name) = self.places.missing(&task.command.join(" ")) {
            return Some(format!("{name} is not there"));
        }
        let missing = task.inputs.iter().find(|input| !PathBuf::from(self.places.expand(input)).exists());
        missing.map(|input| format!("{input} is not there"))
    }

    /// Runs the command once by the rules.
    ///
    /// # Errors
    /// A command that cannot be started, directories that cannot be emptied. A failed command is not an error.
    pub fn run(&self, task: &Task) -> anyhow::Result<MeasuredRun> {
        self.places.clean()?;
        warm(&self.expand(&task.inputs))?;
        let (stdout, stderr) = (self.stdout(), self.stderr());
        let spill = self.places.path("$SPILL").to_path_buf();
        let mut environment = task.environment.clone();
        environment.push(("TMPDIR".to_owned(), spill.to_string_lossy().into_owned()));
        let arguments: Vec<String> = task.command.iter().map(|word| self.places.expand(word)).collect();
        let request = Request {
            arguments: &arguments,
            environment: &environment,
            timeout: self.timeout,
            spill_directories: &[spill],
            stdout: &stdout,
            stderr: &stderr,
        };
        let measured = measure(&request).with_context(|| format!("could not run {}", task.command_line()))?;
        eprintln!(
            "  {} / {}: {:.3} s, user {:.2} s, system {:.2} s, {:.0} MiB{}",
            task.row,
            task.contestant,
            measured.wall_s,
            measured.user_s,
            measured.system_s,
            measured.peak_private_bytes as f64 / f64::from(1 << 20),
            if measured.ended.well() { String::new() } else { format!(", {}", measured.ended) }
        );
        if !measured.ended.well() {
            eprint!("{}", self.last_words());
        }
        Ok(measured)
    }

    /// Returns the digest of the last command's output.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn digest(&self, kind: OutputKind) -> anyhow::Result<Digest> {
        digest(kind, self.places.path("$OUT")).context("could not read the output")
    }

    /// Returns the standard output of the last command.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn printed(&self) -> anyhow::Result<String> {
        fs::read_to_string(self.stdout()).context("could not read what the command printed")
    }

    /// Returns the last lines of the last command's standard error.
    pub fn last_words(&self) -> String {
        let text = fs::read(self.stderr()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_WORDS_LINES)..];
        last.iter().map(|line| format!("    {line}\n")).collect()
    }

    /// Runs the command once, checks its output as one of this kind, and stores the result.
    ///
    /// # Errors
    /// As [`Bench::run`], or an archive that cannot be written.
    pub fn run_and_keep(
        &mut self,
        task: &Task,
        round: u32,
        kind: Option<OutputKind>,
    ) -> anyhow::Result<RunOutcome> {
        let measured = Box::new(self.run(task)?);
        if !measured.ended.well() {
            self.failed = true;
            let words = self.places.hide(self.last_words().trim());
            self.keep(task, Finding::Absent { reason: format!("{}: {words}", measured.ended) })?;
            return Ok(RunOutcome::Failed);
        }
        let digest = kind.map(|kind| self.digest(kind)).transpose()?;
        let input_bytes = self.input_bytes(task);
        self.keep(task, Finding::Run { round, measured, digest: digest.clone(), input_bytes })?;
        Ok(RunOutcome::Well(digest))
    }

    /// Adds a result to the archive.
    ///
    /// # Errors
    /// An archive that cannot be written.
    pub fn keep(&self, task: &Task, finding: Finding) -> anyhow::Result<()> {
        let label = RunLabel {
            invocation: self.invocation,
            section: task.section,
            row: task.row.clone(),
            contestant: task.contestant.clone(),
            command: task.command_line(),
        };
        self.archive.add(&ArchiveEntry { label, finding })
    }

    fn expand(&self, texts: &[String]) -> Vec<PathBuf> {
        texts.iter().map(|text| PathBuf::from(self.places.expand(text))).collect()
    }

    fn input_bytes(&self, task: &Task) -> Option<u64> {
        let sizes =
            self.expand(&task.inputs).into_iter().map(|path| fs::metadata(path).map(|data| data.len()));
        let sum: u64 = sizes.map(Result::unwrap_or_default).sum();
        (0 < sum).then_some(sum)
    }

    fn stdout(&self) -> PathBuf {
        self.places.path("$SPILL").with_file_name("stdout.txt")
    }

    fn stderr(&self) -> PathBuf {
        self.places.path("$SPILL").with_file_name("stderr.txt")
    }
}

/// Outcome of a stored run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunOutcome {
    /// The command failed; the archive has the details.
    Failed,
    /// The command succeeded, with the digest of its output, if requested.
    Well(Option<Digest>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        assert_eq!(quoted("$DATA/users.csv"), "$DATA/users.csv");
        assert_eq!(quoted(r"[Mm]onste?r\w*"), r"'[Mm]onste?r\w*'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
