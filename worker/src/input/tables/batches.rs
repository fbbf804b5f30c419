//! What both kinds of files are decoded into: batches of rows, or why there are none.

use arrow_array::RecordBatch;

/// What goes wrong in the crates that decode.
pub(super) type DecodeError = Box<dyn std::error::Error + Send + Sync>;

/// What the columns of a sound file are compressed by, if nothing here unpacks it.
#[derive(Debug, thiserror::Error)]
#[error("columns compressed by {0} are not read here")]
pub(super) struct UnreadCodec(pub(super) &'static str);

/// The rows of a piece as they are decoded.
pub(super) type Batches = Box<dyn Iterator<Item = Result<Decoded, DecodeError>> + Send>;

/// Rows that were decoded together.
pub(super) struct Decoded {
    pub(super) batch: RecordBatch,
    /// Rows of the file before them.
    pub(super) first: u64,
}
