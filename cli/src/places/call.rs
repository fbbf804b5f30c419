//! Calls the programs by which `cluster up` and `cluster down` start and end workers elsewhere, such as `ssh` and
//! `sbatch`. An error includes the last lines that the program printed.

use gristmill_runtime::cluster::{Tool, ToolCall};
use gristmill_runtime::{chain, exit};
use gristmill_worker::exit::{Exit, ExitsWith};

/// Label of the token with which workers of `cluster up` join.
pub(super) const TOKEN_LABEL: &str = "guests";

/// Exit code of `ssh` itself.
const SSH_FAILED: i32 = 255;

/// Error of `cluster up` or `cluster down`.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// The cluster is in another state, or a program of the place failed.
    #[error("{0}")]
    Refused(String),
    /// Hosts do not take part, or are left.
    #[error("{0}")]
    Hosts(String),
}

impl ExitsWith for UpError {
    fn exit(&self) -> Exit {
        match self {
            Self::Hosts(_) => Exit::with(exit::CLUSTER),
            Self::Refused(_) => Exit::with(exit::ENVIRONMENT),
        }
    }
}

pub(super) fn refused(reason: String) -> anyhow::Error {
    UpError::Refused(reason).into()
}

/// Calls a program, which must end with code 0, and returns what it printed.
pub(super) async fn call(what: &str, call: ToolCall) -> anyhow::Result<String> {
    let is_ssh = matches!(call.tool, Tool::Ssh);
    let answer = call.make().await.map_err(|error| refused(chain(&error)))?;
    let reason = last_words(&answer.stderr);
    match answer.code {
        Some(0) => Ok(answer.stdout),
        Some(SSH_FAILED) if is_ssh => Err(refused(format!("could not be reached: {reason}"))),
        _ => Err(refused(format!("could not {what}: {reason}"))),
    }
}

/// Returns the last lines of a program's output, as one line.
pub(super) fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    if last.is_empty() { "it gave no reason".to_owned() } else { last }
}

/// Quotes a word for a POSIX shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
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
