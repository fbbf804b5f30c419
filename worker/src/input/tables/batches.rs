//! What both kinds of files are decoded into: batches of rows, or why there are none.

use arrow_array::RecordBatch;

/// What goes wrong in the crates that decode.
pub(super) type DecodeError = Box<dyn std::error::Error + Send + Sync>;

/// The rows of a piece as they are decoded.
pub(super) type Batches = Box<dyn Iterator<Item = Result<Decoded, DecodeError>> + Send>;

/// Rows that were decoded together.
pub(super) struct Decoded {
    pub(super) batch: RecordBatch,
    /// Rows of the file before them.
    pub(super) first: u64,
}
