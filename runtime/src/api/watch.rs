//! Lines of JSON by which a client follows a job: the response to a submission or to a watch. A status with many parts
//! is spread over several lines.

use super::job::JobStatus;
use super::submission::BuiltPart;
use gristmill_worker::protocol::Part;
use serde::{Deserialize, Serialize};

/// One line of the response to a submission or a watch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchLine {
    /// Status of the job without its parts. The last line has an ended state, or the state `publishing` for the process
    /// that publishes.
    Status(Box<JobStatus>),
    /// Some parts of the status that follows, in order, with their places if these are sent.
    Parts {
        /// The parts.
        parts: Vec<Part>,
        /// Places where they were built.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        built: Vec<BuiltPart>,
    },
}

/// Maximum number of parts in one line, and of files in which they were built: some 300 KiB.
pub(crate) const PARTS_OF_LINE_MAX: usize = 1000;

impl WatchLine {
    /// Lines that contain a status.
    pub fn from_status(mut status: JobStatus) -> impl Iterator<Item = Self> {
        let mut parts = std::mem::take(&mut status.parts).into_iter();
        let mut built = std::mem::take(&mut status.built).into_iter();
        let mut status = Some(Box::new(status));
        std::iter::from_fn(move || match parts.len() {
            0 => status.take().map(Self::Status),
            _ => {
                let count = parts_of_line(built.as_slice());
                let parts = parts.by_ref().take(count).collect();
                Some(Self::Parts { parts, built: built.by_ref().take(count).collect() })
            }
        })
    }
}

/// Number of the next parts that are sent in one line, at least one.
fn parts_of_line(built: &[BuiltPart]) -> usize {
    let files = built.iter().scan(0, |files, part| {
        *files += part.pieces.len().max(1);
        Some(*files)
    });
    // Without places, each part counts as one file.
    let files = files.chain(built.len() + 1..);
    files.take_while(|files| *files <= PARTS_OF_LINE_MAX).count().max(1)
}
