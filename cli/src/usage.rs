//! Errors in the command line.

use gristmill_worker::exit::{self, Exit, ExitsWith};
use std::fmt;

/// An error in the command line, exit code 2.
#[derive(Debug)]
pub(crate) struct UsageError(String);

impl ExitsWith for UsageError {
    fn exit(&self) -> Exit {
        Exit::with(exit::USAGE)
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

pub(crate) fn usage(message: String) -> anyhow::Error {
    UsageError(message).into()
}
