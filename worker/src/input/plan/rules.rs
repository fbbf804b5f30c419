//! How files are cut into splits and packed.

use crate::input::limits::InputLimits;

/// How much a compressed file counts for when files are packed: text commonly shrinks to a quarter.
pub(super) const EXPANSION_TYPICAL: u64 = 4;

/// How files are cut and packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitRules {
    /// Bytes of a split, at least 1; larger only where a compressed file or a row of CSV needs it, or where the input would
    /// fall into more than 100,000 splits.
    pub split_bytes: u64,
    /// Files packed into one split, at least 1.
    pub pieces_max: usize,
    /// How maps read, if they leave bad records out: tables are cut as they will be read then.
    pub leaving_out: Option<InputLimits>,
    /// How a file of lines is cut otherwise than at multiples of the split size.
    pub cuts: FileCuts,
}

/// How files of lines are cut, for who must cut as another system does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileCuts {
    /// No two files share a split.
    pub alone: bool,
    /// The size of a split follows from the bytes of all files, and the last split of a file may be a tenth longer;
    /// `None`: it is [`SplitRules::split_bytes`].
    pub goal: Option<SplitGoal>,
    /// A split has so many lines, whatever their bytes, at least 1. Files are read for that where the job is submitted;
    /// those that are compressed, or lie on a worker or in a store, are not cut. `None`: bytes decide.
    pub lines: Option<u64>,
}

/// The size of splits as the number of them that is aimed at, and its limits, each in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitGoal {
    /// Splits that are aimed at, at least 1.
    pub maps: u64,
    /// Smallest size, which counts more than the largest one.
    pub bytes_min: u64,
    /// Largest size.
    pub bytes_max: u64,
}

impl Default for SplitRules {
    /// 64 MiB, so that a task lasts a good part of a second; 1024 files, so that a split stays a short message.
    fn default() -> Self {
        Self { split_bytes: 64 << 20, pieces_max: 1024, leaving_out: None, cuts: FileCuts::default() }
    }
}
