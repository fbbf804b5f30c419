//! Output of one map: its segments, in memory or in a file.

use super::in_file::{InFileOutput, InFileSegment};
use super::index::SegmentIndex;
use super::spill::SpillFile;
use super::{Fingerprint, SegmentData};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

/// All segments of one map attempt, one after another without gaps.
#[derive(Debug)]
pub struct MapOutput {
    pub(super) index: SegmentIndex,
    pub(super) fingerprint: Fingerprint,
    pub(super) place: OutputPlace,
}

impl MapOutput {
    pub(crate) fn in_file(output: InFileOutput, partitions: u32) -> Self {
        Self {
            index: output.index(partitions),
            fingerprint: output.fingerprint(),
            place: OutputPlace::InFile(Arc::new(output)),
        }
    }

    /// Returns the segment of this partition; `None` if the partition does not exist.
    #[must_use]
    pub fn segment(&self, partition: u32) -> Option<SegmentData> {
        let (offset, length) = self.index.segment(partition)?;
        Some(match &self.place {
            OutputPlace::File(file) if 0 < length => SegmentData::File { file: file.clone(), offset, length },
            OutputPlace::Memory(bytes) if 0 < length => {
                SegmentData::Memory(bytes.slice(offset as usize..(offset + length) as usize))
            }
            OutputPlace::InFile(output) => match InFileSegment::from_output(output, partition) {
                Some(segment) => SegmentData::InFile(segment),
                None => SegmentData::Memory(Bytes::new()),
            },
            _ => SegmentData::Memory(Bytes::new()),
        })
    }

    /// Returns the non-empty partitions, ascending.
    pub(crate) fn filled(&self) -> &[u32] {
        self.index.filled()
    }

    /// Returns the bytes of all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.index.bytes()
    }

    /// Returns its memory with the index, or the memory that it would take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes() as usize + self.index.memory_bytes()
    }

    /// Returns the pairs of all segments.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.index.records()
    }

    /// Returns its fingerprint; that of runs is meaningless.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Sets the fingerprint, which was computed before the output was written.
    #[must_use]
    pub(crate) fn with_fingerprint(self, fingerprint: Fingerprint) -> Self {
        Self { fingerprint, ..self }
    }

    /// Returns the path of its spill file.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.place {
            OutputPlace::File(file) => Some(file.path()),
            OutputPlace::Memory(_) | OutputPlace::InFile(_) => None,
        }
    }

    /// True if it is in a spill file.
    #[must_use]
    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self.place, OutputPlace::File(_))
    }
}

#[derive(Debug)]
pub(super) enum OutputPlace {
    Memory(Bytes),
    File(Arc<SpillFile>),
    InFile(Arc<InFileOutput>),
}
