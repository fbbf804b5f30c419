//! Reasons for which a segment cannot be written, read or trusted.

use super::SegmentId;
use std::io;
use std::path::PathBuf;

/// Error of an unusable segment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum SegmentError {
    /// The bytes do not start with a complete header of a known version, or the header's checksum is wrong.
    #[error("segment of {length} bytes has no valid header")]
    Header {
        /// Actual length in bytes.
        length: u64,
    },
    /// It is another segment than expected.
    #[error("segment is {found:?}, not {expected:?}")]
    Identity {
        /// Expected segment.
        expected: SegmentId,
        /// Segment according to the header.
        found: SegmentId,
    },
    /// The length in the header differs from the actual one.
    #[error("segment has {found} bytes, not {expected}")]
    Length {
        /// Length by the header.
        expected: u64,
        /// Actual length in bytes.
        found: u64,
    },
    /// A block has a wrong checksum or impossible lengths.
    #[error("block at byte {offset} of {id:?} is damaged")]
    Block {
        id: SegmentId,
        /// Offset of its block.
        offset: u64,
    },
    /// A block has a correct checksum but its pairs do not fill it, or their number is wrong: a bug of this program.
    #[error("pairs of {id:?} do not fill their blocks near byte {offset}")]
    Pairs {
        id: SegmentId,
        /// Offset of the block.
        offset: u64,
    },
    /// A map has two segments.
    #[error("map {map} has two segments")]
    Twice {
        /// Index of the map.
        map: u32,
    },
    /// Its pairs are in an input file that has changed since the map read it.
    #[error("the input that the pairs of {id:?} lie in has changed")]
    Changed {
        id: SegmentId,
        /// Detected change.
        #[source]
        source: Box<crate::input::InputError>,
    },
    /// A segment is in hash order where key order is needed.
    #[error("segment {id:?} is in hash order, but the job has no combiner")]
    Order { id: SegmentId },
    /// The spill file cannot be read.
    #[error("could not read {path}")]
    Read {
        /// Path of the spill file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
}
