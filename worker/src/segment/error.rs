//! What is wrong with a segment.

use super::SegmentId;
use std::io;
use std::path::PathBuf;

/// A segment that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum SegmentError {
    /// The bytes do not begin with a whole header of a known version, or the header's checksum is wrong.
    #[error("segment of {length} bytes has no valid header")]
    Header {
        /// Bytes there are.
        length: u64,
    },
    /// It is a segment, but another one.
    #[error("segment is {found:?}, not {expected:?}")]
    Identity {
        /// What it should be.
        expected: SegmentId,
        /// What its header says.
        found: SegmentId,
    },
    /// The header says another length than there is.
    #[error("segment has {found} bytes, not {expected}")]
    Length {
        /// By its header.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// A block whose checksum is wrong or whose lengths are impossible.
    #[error("block at byte {offset} of {id:?} is damaged")]
    Block {
        id: SegmentId,
        /// Where its block begins.
        offset: u64,
    },
    /// A block whose checksum is right but whose pairs do not fill it, or a wrong number of pairs: our bug.
    #[error("pairs of {id:?} do not fill their blocks near byte {offset}")]
    Pairs {
        id: SegmentId,
        /// Where the block begins.
        offset: u64,
    },
    /// Segments that are not in map order, or one twice.
    #[error("segment of map {found} follows that of map {before}")]
    Sequence {
        /// Index of the map before.
        before: u32,
        /// Index of the map found.
        found: u32,
    },
    /// Its pairs lie in an input file that has changed since the map read it.
    #[error("the input that the pairs of {id:?} lie in has changed")]
    Changed {
        id: SegmentId,
        /// How it shows.
        #[source]
        source: Box<crate::input::InputError>,
    },
    /// A segment in hash order where key order is needed.
    #[error("segment {id:?} is in hash order, but the job has no combiner")]
    Order { id: SegmentId },
    /// The spill file cannot be read.
    #[error("could not read {path}")]
    Read {
        /// The spill file.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
}
