//! Error of a job that was not submitted or failed.

use super::code;

/// Error of a job that was not submitted or failed.
#[derive(Debug)]
pub struct StreamError {
    /// Exit code.
    pub code: u8,
    /// One sentence.
    pub message: String,
}

#[allow(clippy::needless_pass_by_value, reason = "constructors are passed to map_err")]
impl StreamError {
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Error of an invalid command line.
    pub fn usage(message: impl ToString) -> Self {
        Self { code: code::FAILED, message: message.to_string() }
    }

    /// Error of an invalid configuration.
    pub fn configuration(message: impl ToString) -> Self {
        Self { code: code::CONFIGURATION, message: message.to_string() }
    }
}

impl From<anyhow::Error> for StreamError {
    fn from(error: anyhow::Error) -> Self {
        Self::new(code::SUBMIT, format!("{error:#}"))
    }
}
