//! Reasons for which no data is generated.

use std::io;
use std::path::PathBuf;

/// Largest exponent of the Zipf law. Beyond it, all but the first words have weight one of 2^32.
pub(crate) const EXPONENT_MAX: f64 = 10.0;

/// Reason for which no data was generated. An incomplete file is removed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum GenerateError {
    /// The exponent is not a number, negative, or over 10.
    #[error("--exponent cannot be {exponent}: it must lie between 0 and {EXPONENT_MAX}")]
    Exponent {
        /// The exponent as given.
        exponent: f64,
    },
    /// The size is too small for a single record.
    #[error("--size cannot be {size}: at least {size_min} bytes are needed")]
    Size {
        /// The size as given, in bytes.
        size: u64,
        /// The smallest valid size, in bytes.
        size_min: u64,
    },
    /// A file of that name exists.
    #[error("{path} exists; --overwrite replaces it", path = path.display())]
    Exists { path: PathBuf },
    /// A file or directory cannot be created or written.
    #[error("could not write {path}", path = path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
}
