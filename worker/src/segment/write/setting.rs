//! Settings and errors of writing a map's output, which has one segment of pairs for each partition: the identity and
//! order of the segments, and the directories for data that memory does not hold.

use crate::budget::Reservation;
use crate::fault;
use crate::segment::{SegmentHeader, SegmentId, SegmentOrder, SpillCompression, SpillDirs, SpillWriter};
use gristmill_scheduler::ids::JobId;
use std::io;
use std::path::PathBuf;

/// Error of keeping output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The spill directory failed: full, read-only, removed.
    #[error("could not write to {path}")]
    Spill {
        /// File, or directory if there is no file yet.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// A pair exceeds the limit.
    #[error(
        "a key and value of {length} bytes are more than the {limit} that a slot of this worker has room for; give it more memory (--memory) or fewer slots"
    )]
    PairTooLong {
        /// Bytes of key and value.
        length: usize,
        /// Maximum bytes.
        limit: usize,
    },
}

/// Identity, order and place of the segments.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct WriteSetting {
    pub job: JobId,
    /// Index of the map task.
    pub map: u32,
    /// Epoch of the attempt.
    pub epoch: u32,
    /// Number of partitions.
    pub partitions: u32,
    /// Order of pairs.
    pub order: SegmentOrder,
    /// Directories for data that memory does not hold.
    pub spill: SpillDirs,
    /// Compression of spill files.
    pub compression: SpillCompression,
}

impl WriteSetting {
    pub(in crate::segment) fn header(&self, partition: u32) -> SegmentHeader {
        let id = SegmentId { job: self.job, map: self.map, epoch: self.epoch, partition };
        SegmentHeader { id, order: self.order, records: 0, length: 0, block_max: 0 }
    }
}

/// Bytes in memory that release their reservation with the last reader.
pub(super) struct KeptBytes {
    pub(super) bytes: Vec<u8>,
    pub(super) _reservation: Reservation,
}

impl AsRef<[u8]> for KeptBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

pub(super) fn create(setting: &WriteSetting) -> Result<SpillWriter, WriteError> {
    fault::place("spill");
    let name = format!("{}-task-{}.{}", setting.job, setting.map, setting.epoch);
    let path = || setting.spill.first().to_owned();
    setting.spill.create(&name).map_err(|source| WriteError::Spill { path: path(), source })
}
