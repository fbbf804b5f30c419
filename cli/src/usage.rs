//! The error of a command line that parses but cannot be meant: a message, exit code 2, and a hint.

use gristmill_worker::exit::{self, Exit, ExitsWith};
use std::fmt;

/// An error in the command line, exit code 2.
#[derive(Debug)]
pub(crate) struct UsageError {
    message: String,
    hint: Option<&'static str>,
}

impl ExitsWith for UsageError {
    fn exit(&self) -> Exit {
        Exit { code: exit::USAGE, hint: self.hint }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UsageError {}

pub(crate) fn usage(message: String) -> anyhow::Error {
    UsageError { message, hint: None }.into()
}

/// As [`usage`], with the next step.
pub(crate) fn usage_hinted(message: String, hint: &'static str) -> anyhow::Error {
    UsageError { message, hint: Some(hint) }.into()
}
