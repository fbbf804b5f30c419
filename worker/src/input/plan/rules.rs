//! Rules for cutting files into splits and packing them.

/// Factor by which the size of a compressed file is multiplied when files are packed: text commonly
/// shrinks to a quarter.
pub(super) const EXPANSION_TYPICAL: u64 = 4;

/// Rules for cutting and packing files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitRules {
    /// Bytes of a split, at least 1. It is larger only where a compressed file or a row of CSV needs it,
    /// or where the input would have more than 100,000 splits.
    pub split_bytes: u64,
    /// Maximum number of files packed into one split, at least 1.
    pub pieces_max: usize,
    /// Rules for files of lines that are not cut at multiples of the split size.
    pub cuts: FileCuts,
}

/// Rules for cutting files of lines, for commands that must cut as another system does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileCuts {
    /// True if no two files share a split.
    pub alone: bool,
    /// Split size computed from the bytes of all files, where the last split of a file may be a tenth
    /// longer; `None` for [`SplitRules::split_bytes`].
    pub goal: Option<SplitGoal>,
    /// Number of lines of a split, whatever their bytes, at least 1. Files are read for that where the
    /// job is submitted. Those that are compressed, or on a worker or in a store, are not cut. `None` to
    /// cut by bytes.
    pub lines: Option<u64>,
}

/// Target number of splits, and limits of their size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitGoal {
    /// Target number of splits, at least 1.
    pub maps: u64,
    /// Minimum size, which takes precedence over the maximum.
    pub bytes_min: u64,
    /// Maximum size.
    pub bytes_max: u64,
}

impl Default for SplitRules {
    /// Returns 64 MiB, so that a task lasts a good part of a second, and 1024 files, so that a split
    /// stays a short message.
    fn default() -> Self {
        Self { split_bytes: 64 << 20, pieces_max: 1024, cuts: FileCuts::default() }
    }
}
