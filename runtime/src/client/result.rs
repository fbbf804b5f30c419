//! Readers of a job's output, compressed or not: its lines, the pairs in them, or JSON values.

use super::outcome::JobReport;
use gristmill_worker::output::open_part;
use serde::de::DeserializeOwned;
use std::any::type_name;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::str::FromStr;

/// Error of reading the result of a job.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum ResultError {
    /// A part that is missing or cannot be read.
    #[error("could not read {path}")]
    Part {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A line in another format.
    #[error("line {number} of {path} is no {expected}: {line}")]
    Line {
        path: PathBuf,
        /// Line number, from 1.
        number: usize,
        line: String,
        expected: String,
    },
}

impl JobReport {
    /// The lines of all parts, in order, without line ends, all in memory; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// A part that cannot be read.
    pub fn lines(&self) -> Result<Vec<String>, ResultError> {
        self.read(|line| Some(line.to_owned()), || "text".to_owned())
    }

    /// The lines as JSON values. A line that is not UTF-8 is an object whose `bytes` are its text with `\\`, quotes,
    /// control characters and bytes beyond ASCII escaped (`caf\\xe9`), so that different lines stay different.
    ///
    /// # Errors
    /// A part that cannot be read.
    pub fn json_lines(&self) -> Result<Vec<serde_json::Value>, ResultError> {
        let value = |line: &[u8]| {
            Some(match str::from_utf8(line) {
                Ok(text) => text.into(),
                Err(_) => serde_json::json!({ "bytes": line.escape_ascii().to_string() }),
            })
        };
        read_bytes(self.parts(), value, || "text".to_owned())
    }

    /// The lines of a named output, as [`JobReport::lines`]; empty if no task wrote to it.
    ///
    /// # Errors
    /// A part that cannot be read.
    pub fn named_lines(&self, output: &str) -> Result<Vec<String>, ResultError> {
        read(self.named_parts(output), |line| Some(line.to_owned()), || "text".to_owned())
    }

    /// The pairs written with [`Output::pair`](gristmill_worker::output::Output::pair), in order, all in memory: the
    /// text before the first tab of each line and the text behind it, as values of these types.
    ///
    /// # Errors
    /// A part that cannot be read, or a line that is not such a pair.
    pub fn pairs<K: FromStr, V: FromStr>(&self) -> Result<Vec<(K, V)>, ResultError> {
        let pair = |line: &str| {
            let (key, value) = line.split_once('\t')?;
            Some((key.parse().ok()?, value.parse().ok()?))
        };
        self.read(pair, || format!("{}, tab and {}", type_name::<K>(), type_name::<V>()))
    }

    /// The values written with [`Output::json`](gristmill_worker::output::Output::json), in order, all in memory.
    ///
    /// # Errors
    /// A part that cannot be read, or a line that is not such a value.
    pub fn json<T: DeserializeOwned>(&self) -> Result<Vec<T>, ResultError> {
        self.read(|line| serde_json::from_str(line).ok(), || format!("{} in JSON", type_name::<T>()))
    }

    fn read<T>(
        &self,
        value: impl Fn(&str) -> Option<T>,
        expected: impl Fn() -> String,
    ) -> Result<Vec<T>, ResultError> {
        read(self.parts(), value, expected)
    }
}

/// Reads the lines of these files; bytes that are not UTF-8 are replaced.
fn read<T>(
    paths: Vec<PathBuf>,
    value: impl Fn(&str) -> Option<T>,
    expected: impl Fn() -> String,
) -> Result<Vec<T>, ResultError> {
    read_bytes(paths, |line| value(&String::from_utf8_lossy(line)), expected)
}

/// Reads the lines of these files.
fn read_bytes<T>(
    paths: Vec<PathBuf>,
    value: impl Fn(&[u8]) -> Option<T>,
    expected: impl Fn() -> String,
) -> Result<Vec<T>, ResultError> {
    let mut values = Vec::new();
    for path in paths {
        let failed = |source| ResultError::Part { path: path.clone(), source };
        let part = BufReader::new(open_part(&path).map_err(failed)?);
        for (index, line) in part.split(b'\n').enumerate() {
            let line = line.map_err(failed)?;
            values.push(value(&line).ok_or_else(|| ResultError::Line {
                path: path.clone(),
                number: index + 1,
                line: String::from_utf8_lossy(&line).into_owned(),
                expected: expected(),
            })?);
        }
    }
    Ok(values)
}
