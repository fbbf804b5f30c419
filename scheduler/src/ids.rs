//! Names of things: jobs, tasks, attempts, workers, hosts. Newtypes, so that swapping two does not compile.
//!
//! A job is not a worker:
//! ```compile_fail,E0308
//! use gristmill_scheduler::ids::{JobId, TaskId, WorkerId};
//! let task = TaskId::map(WorkerId(7), 0);
//! ```
//! a worker is not the machine that it runs on:
//! ```compile_fail,E0308
//! use gristmill_scheduler::ids::{HostId, WorkerId};
//! assert!(WorkerId(1) != HostId(1));
//! ```
//! and a task is not one of its attempts:
//! ```compile_fail,E0308
//! use gristmill_scheduler::ids::{AttemptId, JobId, TaskId};
//! let attempt: AttemptId = TaskId::reduce(JobId(1), 0);
//! ```
//!
//! Not here: the dense reusable handles that policies see (`view::Handle`); those never leave the scheduler.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One job of one master, numbered from 1 in the order of arrival; never reused. Displayed as `job-7`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct JobId(pub u32);

/// One worker process of one master, numbered from 1 in the order of joining; never reused, so a lost process that
/// returns is another worker. Displayed as `worker-3`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct WorkerId(pub u32);

/// One machine, or a network namespace that identifies as one: workers with the same host share a disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct HostId(pub u32);

/// Kind of a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum TaskKind {
    /// Reads one split and emits records.
    Map,
    /// Merges one partition of all map outputs and writes one part.
    Reduce,
}

/// One task of one job. `index` is the number of the split, in the order of the input but for those that divisions add, or of the partition. Displayed as
/// `job-7/map-12` or `job-7/reduce-0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TaskId {
    /// Job of the task.
    pub job: JobId,
    /// Map or reduce.
    pub kind: TaskKind,
    /// From 0, dense within the job and kind.
    pub index: u32,
}

/// One attempt of a task. `epoch` counts the attempts of this task from 0, in the order of launching. Displayed as
/// `job-7/map-12.0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct AttemptId {
    /// Task of the attempt.
    pub task: TaskId,
    /// From 0, in the order of launching.
    pub epoch: u32,
}

impl TaskId {
    /// Returns the map task with this index.
    #[must_use]
    pub fn map(job: JobId, index: u32) -> Self {
        Self { job, kind: TaskKind::Map, index }
    }

    /// Returns the reduce task of this partition.
    #[must_use]
    pub fn reduce(job: JobId, index: u32) -> Self {
        Self { job, kind: TaskKind::Reduce, index }
    }

    /// Returns the attempt of this task with this number.
    #[must_use]
    pub fn attempt(self, epoch: u32) -> AttemptId {
        AttemptId { task: self, epoch }
    }
}

impl AttemptId {
    /// Returns a name for files: `map-12.0` or `reduce-0.1`; unique within the job.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("{}-{}.{}", self.task.kind, self.task.index, self.epoch)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job-{}", self.0)
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker-{}", self.0)
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host-{}", self.0)
    }
}

impl fmt::Display for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TaskKind::Map => "map",
            TaskKind::Reduce => "reduce",
        })
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}-{}", self.job, self.kind, self.index)
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.task, self.epoch)
    }
}

/// Error of parsing text that is not an id of the expected kind.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{found}` is not {expected}")]
pub struct ParseIdError {
    /// Expected kind, with an example.
    pub expected: &'static str,
    /// Given text.
    pub found: String,
}

/// Parses a number after a prefix: digits only, no sign, no leading zero.
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

fn parse_id(text: &str, prefix: &str, expected: &'static str) -> Result<u32, ParseIdError> {
    let id = text.strip_prefix(prefix).and_then(number);
    id.ok_or_else(|| ParseIdError { expected, found: text.to_owned() })
}

impl FromStr for JobId {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        parse_id(text, "job-", "a job id such as job-7").map(JobId)
    }
}

impl FromStr for WorkerId {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        parse_id(text, "worker-", "a worker id such as worker-3").map(WorkerId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_as_names_people_type() {
        let task = TaskId::map(JobId(7), 12);
        assert_eq!(task.attempt(1).to_string(), "job-7/map-12.1");
        assert_eq!(task.attempt(1).file_name(), "map-12.1");
        assert_eq!("job-7".parse(), Ok(JobId(7)));
        assert_eq!("worker-3".parse(), Ok(WorkerId(3)));
    }

    #[test]
    fn ids_refuse_text_that_is_almost_an_id() {
        for text in ["job-", "job-07", "job-+7", "7", "job-7 ", "../job-7", "job-99999999999"] {
            assert!(text.parse::<JobId>().is_err(), "{text} was taken for a job id");
        }
    }
}
