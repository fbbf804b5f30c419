//! Errors of listing and reading input, and the party at fault: the input, so that the job fails at once, or the
//! machine or network, so that a retry may succeed.

use super::path::FilePath;
use super::split::FileStamp;
use super::table::TableKind;
use crate::error_text::chain;
use crate::exit::{self, Exit, ExitsWith};
use crate::objects::{ObjectError, ObjectFault};
use std::error::Error;

/// Reason why input cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file does not exist, or is a dangling link.
    #[error("input {path} does not exist")]
    Missing {
        /// Path as the user named it.
        path: FilePath,
    },
    /// The file system refuses to open, list or read it.
    #[error("could not read input {path}")]
    Unreadable {
        /// Path as the user named it.
        path: FilePath,
        /// Error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// A local resource limit was reached: file descriptors, memory, or a failing disk.
    #[error("could not open or read input {path} on this machine")]
    Unavailable {
        /// Path as the user named it.
        path: FilePath,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The input is at fault in a way that nothing but the message distinguishes.
    #[error("{message}")]
    Refused {
        /// Input, error and advice.
        message: String,
    },
    /// Several paths are invalid.
    #[error("{} cannot be used as input:\n  {}", count(*.total), list(.first))]
    Paths {
        /// First errors, at most `InputError::PATHS_MAX`, in input order.
        first: Vec<InputError>,
        /// Number of all invalid paths.
        total: usize,
    },
    /// No file matches a name with wildcards.
    #[error("no file has a name like that of input {path}")]
    NoMatch {
        /// Path as the user named it.
        path: FilePath,
    },
    /// An operation of an object store failed.
    #[error(transparent)]
    Store {
        /// Operation, object and cause.
        source: Box<ObjectError>,
    },
    /// The file differs from the one that was listed.
    #[error("input changed during the job: {path} (was {was}, now {})", now_text(.now))]
    Changed {
        /// Path as the user named it.
        path: FilePath,
        /// Stamp when the job was planned.
        was: FileStamp,
        /// Current stamp; `None` if the file does not exist or its server did not report it.
        now: Option<FileStamp>,
    },
    /// A compressed file that is damaged, cut short, or needs a larger window than decoders have.
    #[error("compressed input {path} cannot be decompressed near byte {offset} of the compressed file")]
    Corrupt {
        /// Path as the user named it.
        path: FilePath,
        /// Compressed bytes consumed until then.
        offset: u64,
        /// Error of the decoder.
        #[source]
        source: std::io::Error,
    },
    /// A file that must be read as a whole was cut, because only its first bytes show its format.
    #[error(
        "input {path} is a {suffix} file by its first bytes, but was cut by its name; give it a name that ends in {suffix}"
    )]
    CutBeforeKnown {
        /// Path as the user named it.
        path: FilePath,
        /// Suffix of the names of such files.
        suffix: &'static str,
    },
    /// A columnar table, or a file with the name of one, cannot be decoded.
    #[error("could not decode input {path} as {kind}")]
    Table {
        /// Path as the user named it.
        path: FilePath,
        /// Kind of table according to its name.
        kind: TableKind,
        /// Error of the decoder.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A value of a table cannot be written as text, such as a day beyond all calendars.
    #[error(
        "row {row} of column `{}` of input {path} has no text; leave that column out (--read-columns)",
        .column.escape_debug()
    )]
    NoText {
        /// Path as the user named it.
        path: FilePath,
        /// Name of the column.
        column: String,
        /// Number of the row in the file, from 1.
        row: u64,
        /// Description of the value, and cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A file could not be fetched from the process that serves it.
    #[error("could not fetch input {path} from byte {offset} on")]
    Remote {
        /// Path as the user named it.
        path: FilePath,
        /// First byte of the requested range.
        offset: u64,
        /// Error of the transport.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ExitsWith for InputError {
    fn exit(&self) -> Exit {
        match self {
            Self::Store { source } => source.cause.fault().exit(),
            // A local limit was reached, such as that of descriptors, or the worker that has the input
            // was not reached.
            _ if !self.is_input_fault() => Exit::with(exit::ENVIRONMENT),
            _ => Exit { code: exit::INPUT, hint: self.hint() },
        }
    }
}

impl InputError {
    fn hint(&self) -> Option<&'static str> {
        const MISSING: &str = "check the name; a path counts from the directory you are in, and worker-3:/path names a file on that worker";
        let is_missing = |error: &Self| matches!(error, Self::Missing { .. });
        match self {
            Self::Missing { .. } => Some(MISSING),
            Self::Paths { first, .. } if first.iter().all(is_missing) => Some(MISSING),
            Self::Unreadable { source, .. } if source.kind() == std::io::ErrorKind::NotConnected => {
                Some("standard input is closed: pipe the input in, or name a file")
            }
            Self::Unreadable { .. } => Some("have its permissions changed, or name a copy that you may read"),
            _ => None,
        }
    }
}

impl InputError {
    /// Maximum number of invalid paths named in one message.
    pub(crate) const PATHS_MAX: usize = 10;

    /// True if the input itself is at fault, so that the job fails at once. Otherwise a retry, perhaps on
    /// another worker, may succeed.
    #[must_use]
    pub fn is_input_fault(&self) -> bool {
        match self {
            Self::Remote { .. } | Self::Unavailable { .. } => false,
            Self::Store { source } => {
                !matches!(source.cause.fault(), ObjectFault::Route | ObjectFault::Machine)
            }
            Self::Paths { first, .. } => first.iter().all(Self::is_input_fault),
            _ => true,
        }
    }

    /// Creates an error of the input from a message that names the input.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused { message: message.into() }
    }

    /// Creates the error of an input that falls into more splits than a job may have.
    pub(crate) fn too_many_splits(limit: u32) -> Self {
        Self::refused(format!("input falls into more than {limit} splits; take larger ones (--split-size)"))
    }

    /// Creates the error of a directory or pattern with too many names.
    pub(crate) fn too_many_files(path: &FilePath, limit: usize) -> Self {
        Self::refused(format!(
            "input {path} has more than {limit} files and directories; name fewer at a time"
        ))
    }

    /// Creates the error of a directory that is nested too deeply.
    pub(crate) fn too_deep(path: &FilePath, limit: usize) -> Self {
        Self::refused(format!(
            "input {path} lies {limit} directories deep, and none is read below that; name it, or move it further up"
        ))
    }

    /// Creates the error of a directory that is read without subdirectories.
    pub(crate) fn subdirectory(path: &FilePath) -> Self {
        Self::refused(format!(
            "input {path} is a directory within another one; with --recursive its files are read too"
        ))
    }

    /// Creates the error of a file with a size that does not show its content, like files of `/proc` and `/sys`.
    pub(crate) fn size_unknown(path: &FilePath, size: u64, held: &str) -> Self {
        Self::refused(format!(
            "input {path} says that its size is {size} but has {held}; copy it and give the copy"
        ))
    }

    /// Creates the error of a quote of CSV that opens a field and is never closed: all following bytes would belong to
    /// that field.
    pub(crate) fn unclosed_quote(path: &FilePath, offset: u64) -> Self {
        Self::refused(format!(
            "the quote that opens a field at byte {offset} of {path} is never closed; close it or remove it"
        ))
    }

    /// Creates the error of a file whose size is not a multiple of the length of its records.
    pub(crate) fn fixed_length(path: &FilePath, size: u64, length: u32) -> Self {
        Self::refused(format!(
            "input {path} has {size} bytes, which is not a multiple of the record length {length}"
        ))
    }

    /// Creates the error of a table whose column names would be treated as a row.
    pub(crate) fn has_header(path: &FilePath) -> Self {
        Self::refused(format!(
            "the columns of input {path} have names, which would be taken for a row: say that there is a header (--header yes)"
        ))
    }

    /// Creates the error of a table in a file that is compressed as a whole.
    pub(crate) fn packed_table(path: &FilePath, kind: TableKind) -> Self {
        Self::refused(format!(
            "input {path} is a compressed {kind} file, which is not read as a table: unpack it first"
        ))
    }

    /// Creates the error of a worker's file that the lister cannot reach.
    #[must_use]
    pub fn out_of_reach(path: &FilePath) -> Self {
        Self::refused(format!("input {path} lies on a worker that cannot be asked from here"))
    }

    /// Combines errors of several paths into one. A single error is returned unchanged.
    ///
    /// `bad` holds at least one error.
    pub(crate) fn collected(mut bad: Vec<InputError>) -> Self {
        if bad.len() == 1 {
            return bad.swap_remove(0);
        }
        let total = bad.len();
        bad.truncate(Self::PATHS_MAX);
        Self::Paths { first: bad, total }
    }

    /// Converts an error of an object store.
    pub(crate) fn store(source: ObjectError) -> Self {
        Self::Store { source: Box::new(source) }
    }

    /// Converts an error of the file system by its code.
    pub(crate) fn from_io(path: &FilePath, source: std::io::Error) -> Self {
        use rustix::io::Errno;
        let path = path.clone();
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT | Errno::NOTDIR) => Self::Missing { path },
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO | Errno::STALE) => {
                Self::Unavailable { path, source }
            }
            _ => Self::Unreadable { path, source },
        }
    }
}

fn now_text(now: &Option<FileStamp>) -> String {
    now.map_or_else(|| "gone or different".to_owned(), |stamp| stamp.to_string())
}

fn count(total: usize) -> String {
    if total == 1 { "1 path".to_owned() } else { format!("{total} paths") }
}

/// Formats one line for each error with its causes, as `source` cannot return the causes of a list.
fn list(errors: &[InputError]) -> String {
    let mut text = String::new();
    for error in errors {
        if !text.is_empty() {
            text.push_str("\n  ");
        }
        text.push_str(&chain(error));
    }
    text
}
