//! Errors of input, and their attribution.

use super::path::FilePath;
use super::split::FileStamp;
use super::table::TableKind;
use crate::error_text::chain;
use crate::exit::{self, Exit, ExitsWith};
use crate::objects::{self, ObjectError, ObjectFault};
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
    /// The path is not a regular file: a pipe, a device, a socket, a directory in a directory.
    #[error("input {path} is {kind}, not a regular file")]
    NotAFile {
        /// Path as the user named it.
        path: FilePath,
        /// Kind of file, with its article.
        kind: &'static str,
    },
    /// The file has a size that does not show its content, like files of `/proc` and `/sys`.
    #[error("input {path} says that its size is {size} but has {held}; copy it and give the copy")]
    SizeUnknown {
        /// Path as the user named it.
        path: FilePath,
        /// Size according to its file system, in bytes.
        size: u64,
        /// Description of the bytes that were read.
        held: &'static str,
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
    /// The path is the incomplete output of a job that has not ended yet, or was killed.
    #[error(
        "input {path} is an output that a job is writing, or was when it was killed: it has a _temporary and no _SUCCESS; wait for \
         the job, or write it again"
    )]
    Unfinished {
        /// Path of the output.
        path: FilePath,
    },
    /// A directory contains a directory, and is read without subdirectories.
    #[error("input {path} is a directory within another one; with --recursive its files are read too")]
    Subdirectory {
        /// Path of the subdirectory.
        path: FilePath,
    },
    /// A directory is reached from within itself, by a link.
    #[error(
        "input {path} leads back to {to}, in which it lies: reading it would never end; remove that link, or name the folders to read one by one"
    )]
    Cycle {
        /// Path of the link.
        path: FilePath,
        /// Directory that contains the link, and that it leads to.
        to: FilePath,
    },
    /// Directories are nested too deeply.
    #[error(
        "input {path} lies {limit} folders deep, and none is read below that; name it, or move it further up"
    )]
    TooDeep {
        /// First directory that is not read.
        path: FilePath,
        /// Maximum depth of directories.
        limit: usize,
    },
    /// The URL has an unsupported scheme.
    #[error(
        "input {path} is a URL, and only files {}are read; fetch it first and name the file, or pipe it in: `curl URL | gristmill run JOB -`",
        if objects::are_plugged_in() { "and those of s3, gs, az, http and https " } else { "" }
    )]
    Url {
        /// URL as the user named it.
        path: FilePath,
    },
    /// An operation of an object store failed.
    #[error(transparent)]
    Store {
        /// Operation, object and cause.
        source: Box<ObjectError>,
    },
    /// Standard input is named, and the command does not store it for the job.
    #[error(
        "standard input (`-`) is read by `run` and by `submit` that stays attached; write it to a file and name that"
    )]
    StandardInput,
    /// A name such as `worker-3:path` has a path that does not start with `/`.
    #[error("input {path} names a worker's file but its path does not begin with /")]
    NotAbsolute {
        /// Path as the user named it.
        path: FilePath,
    },
    /// The file is on a worker that the lister cannot reach.
    #[error("input {path} lies on a worker that cannot be asked from here")]
    OutOfReach {
        /// Path as the user named it.
        path: FilePath,
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
    /// A quote opens a field of CSV and is never closed: all following bytes would belong to that field.
    #[error("the quote that opens a field at byte {offset} of {path} is never closed; close it or remove it")]
    UnclosedQuote {
        /// Path as the user named it.
        path: FilePath,
        /// Offset of the quote, after decompression.
        offset: u64,
    },
    /// The rows of a table end with carriage returns alone, as on old Macs.
    #[error(
        "the rows of {path} end with carriage returns alone, and only line feeds end rows here; convert it: `tr '\\r' '\\n' < FILE > NEW`"
    )]
    CarriageReturns {
        /// Path as the user named it.
        path: FilePath,
    },
    /// A record is longer than the limit.
    #[error(
        "record of more than {limit} bytes at byte {offset} of {path}{} (the limit is --max-record)",
        quote_text(.quote)
    )]
    RecordTooLong {
        /// Path as the user named it.
        path: FilePath,
        /// Offset of the record, after decompression.
        offset: u64,
        /// Maximum bytes of a record.
        limit: u64,
        /// Offset of a quote in it that is not closed within the limit, if there is one.
        quote: Option<u64>,
    },
    /// A record must be held in memory, because its file cannot be mapped, and is too long for that.
    #[error(
        "record of more than {limit} bytes at byte {offset} of {path}, which is what a slot of this worker has room for; give it more memory (--memory) or fewer slots"
    )]
    NoRoom {
        /// Path as the user named it.
        path: FilePath,
        /// Offset of the record, after decompression.
        offset: u64,
        /// Maximum bytes in memory.
        limit: u64,
    },
    /// The mapper refuses a record, and the job may skip none.
    #[error("the record at byte {offset} of {path} is bad: {reason}")]
    BadRecord {
        /// Path as the user named it.
        path: FilePath,
        /// Offset of the record, after decompression.
        offset: u64,
        /// Reason that the mapper gave.
        reason: String,
    },
    /// The input has more bad records than the job may skip.
    #[error(
        "more than {max} bad records (--skip-bad-records): the next one is at byte {offset} of {path}: {reason}"
    )]
    TooManyBadRecords {
        /// Path as the user named it.
        path: FilePath,
        /// Offset of the record, after decompression.
        offset: u64,
        /// Description of the error.
        reason: String,
        /// Maximum number of skipped records.
        max: u64,
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
    /// A compressed file grows beyond the allowed ratio.
    #[error(
        "input {path} grows more than {ratio_max} times (the limit is --max-expansion): {decoded} bytes came out of {compressed}"
    )]
    Expansion {
        /// Path as the user named it.
        path: FilePath,
        /// Number of decompressed bytes.
        decoded: u64,
        /// Number of compressed bytes consumed.
        compressed: u64,
        /// Maximum ratio of decompressed to compressed bytes.
        ratio_max: u32,
    },
    /// A zstd file that needs more memory than is allowed.
    #[error(
        "compressed input {path} needs a window of {window} MiB (zstd --long), and {limit} MiB are allowed; compress it \
         again without --long"
    )]
    Window {
        /// Path as the user named it.
        path: FilePath,
        /// Size of the window in MiB, rounded up.
        window: u64,
        /// Allowed size in MiB.
        limit: u64,
    },
    /// The file has an unsupported format.
    #[error("input {path} {verb} {content}, which is not read here; {advice}")]
    Content {
        /// Path as the user named it.
        path: FilePath,
        /// `is`, or `holds` for a compressed file.
        verb: &'static str,
        /// Name of the format, with its article.
        content: &'static str,
        /// Advice for the user.
        advice: &'static str,
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
    /// A file with the name of a table is empty.
    #[error(
        "{kind} input {path} is empty, and a {kind} file is not, be it one without rows; write it again, or leave it out"
    )]
    EmptyTable {
        /// Path as the user named it.
        path: FilePath,
        /// Kind of table according to its name.
        kind: TableKind,
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
    /// A table has no column of a requested name.
    #[error("input {path} has no column `{}` (--read-columns); it has {there}", .column.escape_debug())]
    NoColumn {
        /// Path as the user named it.
        path: FilePath,
        /// Requested name.
        column: String,
        /// Existing names.
        there: String,
    },
    /// A table has several columns of a requested name.
    #[error(
        "input {path} has {count} columns `{}`, so none of them can be read by that name (--read-columns)",
        .column.escape_debug()
    )]
    SameColumn {
        /// Path as the user named it.
        path: FilePath,
        /// Requested name.
        column: String,
        /// Number of columns of that name.
        count: usize,
    },
    /// A table is in a file that is compressed as a whole.
    #[error("input {path} is a compressed {kind} file, which is not read as a table: unpack it first")]
    PackedTable {
        /// Path as the user named it.
        path: FilePath,
        /// Kind of table according to its name.
        kind: TableKind,
    },
    /// A table with column names is read without a header.
    #[error(
        "the columns of input {path} have names, which would be taken for a row: say that there is a header (--header yes)"
    )]
    HasHeader {
        /// Path as the user named it.
        path: FilePath,
    },
    /// Columns are requested of a file that is not a table.
    #[error(
        "input {path} is no Parquet or Arrow file by its name, so it has no columns to choose (--read-columns)"
    )]
    NoTable {
        /// Path as the user named it.
        path: FilePath,
    },
    /// This program was built without support for tables.
    #[error(
        "input {path} is a {kind} file, which this program was built without reading (the feature `formats`)"
    )]
    TablesNotBuiltIn {
        /// Path as the user named it.
        path: FilePath,
        /// Kind of table according to its name.
        kind: TableKind,
    },
    /// The size of a file of fixed-length records is not a multiple of the length.
    #[error("input {path} has {size} bytes, which is not a multiple of the record length {length}")]
    FixedLength {
        /// Path as the user named it.
        path: FilePath,
        /// Bytes of the file, after decompression.
        size: u64,
        /// Bytes of a record.
        length: u32,
    },
    /// The record format is invalid.
    #[error("input format cannot be used: {reason}")]
    Format {
        /// Description of the error.
        reason: &'static str,
    },
    /// A directory has more files and directories than a job may read.
    #[error("input {path} has more than {limit} files and directories; name fewer at a time")]
    TooManyFiles {
        /// Path as the user named it.
        path: FilePath,
        /// Maximum number of names below it.
        limit: usize,
    },
    /// The input has more splits than a job may have.
    #[error("input falls into more than {limit} splits; take larger ones (--split-size)")]
    TooManySplits {
        /// Maximum number of splits.
        limit: usize,
    },
    /// A side input is larger than tasks may hold in memory.
    #[error("side input {path} makes more than {limit} bytes, too much to hold in memory")]
    SideTooLarge {
        /// File at which the limit was exceeded, as the user named it.
        path: FilePath,
        /// Maximum bytes of a side input, after decompression.
        limit: u64,
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
                !matches!(source.cause.fault(), ObjectFault::Way | ObjectFault::Machine)
            }
            Self::Paths { first, .. } => first.iter().all(Self::is_input_fault),
            _ => true,
        }
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

fn quote_text(quote: &Option<u64>) -> String {
    quote.map_or_else(String::new, |at| format!(", with a quote at byte {at} that is not closed"))
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
