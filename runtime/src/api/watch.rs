//! The lines in which a job is followed.

use super::{BuiltPart, JobStatus};
use gristmill_worker::protocol::Part;
use serde::{Deserialize, Serialize};

/// One line of the answer to a submission or a watch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchLine {
    /// How the job stands now, but for its parts; the last line has an ended state, or the state `publishing` for whoever publishes.
    Status(Box<JobStatus>),
    /// Some parts of the status that comes next, in order, with where they were built if that is told.
    Parts {
        /// The parts.
        parts: Vec<Part>,
        /// Where they were built.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        built: Vec<BuiltPart>,
    },
}

/// Most parts that one line tells of: some 300 KiB.
pub(crate) const PARTS_OF_LINE_MAX: usize = 1000;

impl WatchLine {
    /// The lines that tell a status.
    pub fn of(mut status: JobStatus) -> impl Iterator<Item = Self> {
        let mut parts = std::mem::take(&mut status.parts).into_iter();
        let mut built = std::mem::take(&mut status.built).into_iter();
        let mut status = Some(Box::new(status));
        std::iter::from_fn(move || match parts.len() {
            0 => status.take().map(Self::Status),
            _ => {
                let parts = parts.by_ref().take(PARTS_OF_LINE_MAX).collect();
                Some(Self::Parts { parts, built: built.by_ref().take(PARTS_OF_LINE_MAX).collect() })
            }
        })
    }
}
