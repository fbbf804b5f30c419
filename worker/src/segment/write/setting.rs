//! Where segments are written, and why they could not be.

use crate::budget::Reservation;
use crate::fault;
use crate::segment::{SegmentHeader, SegmentId, SegmentOrder, SpillCompression, SpillDirs, SpillWriter};
use gristmill_scheduler::ids::JobId;
use std::io;
use std::path::PathBuf;

/// Output that cannot be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The spill folder refuses: full, read-only, gone.
    #[error("could not write to {path}")]
    Spill {
        /// The file, or the folder if there is no file yet.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// A pair over the limit.
    #[error(
        "a key and value of {length} bytes are more than the {limit} that a slot of this worker has room for; give it more memory (--memory) or fewer slots"
    )]
    PairTooLong {
        /// Their bytes.
        length: usize,
        /// Bytes that they may have.
        limit: usize,
    },
}

/// Whose segments, in which order, and where they may go.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct WriteSetting {
    pub job: JobId,
    /// Index of the map task.
    pub map: u32,
    /// Which try of it.
    pub epoch: u32,
    /// Number of partitions.
    pub partitions: u32,
    /// The order of pairs.
    pub order: SegmentOrder,
    /// Folders for what memory does not hold.
    pub spill: SpillDirs,
    /// Compression there.
    pub compression: SpillCompression,
}

impl WriteSetting {
    pub(in crate::segment) fn header(&self, partition: u32) -> SegmentHeader {
        let id = SegmentId { job: self.job, map: self.map, epoch: self.epoch, partition };
        SegmentHeader { id, order: self.order, records: 0, length: 0, block_max: 0 }
    }
}

/// Bytes in memory that give back their reservation when the last reader is gone.
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
