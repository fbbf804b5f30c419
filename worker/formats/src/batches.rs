//! Types that the readers of Parquet and of Arrow files share: batches of decoded rows, and the error of decoding them.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

/// Error of the crates that decode.
pub(crate) type TableDecodeError = Box<dyn std::error::Error + Send + Sync>;

/// Batches of a piece.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;
