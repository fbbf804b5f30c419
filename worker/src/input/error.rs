//! What can be wrong with input, and whose fault it is.

use super::path::FilePath;
use super::split::FileStamp;
use super::table::TableKind;
use crate::error_text::chain;
use crate::exit::{self, Exit, ExitsWith};
use crate::objects::{self, ObjectError, ObjectFault};
use std::error::Error;

/// Why input cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// No file of this name, or a link that leads nowhere.
    #[error("input {path} does not exist")]
    Missing {
        /// As the user named it.
        path: FilePath,
    },
    /// The file system refuses to open, list or read it.
    #[error("could not read input {path}")]
    Unreadable {
        /// As the user named it.
        path: FilePath,
        /// The error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// This machine lacks the means at this moment: file descriptors, memory, a healthy disk.
    #[error("could not open or read input {path} on this machine")]
    Unavailable {
        /// As the user named it.
        path: FilePath,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A name that exists but is no regular file: a pipe, a device, a socket, a directory in a directory.
    #[error("input {path} is {kind}, not a regular file")]
    NotAFile {
        /// As the user named it.
        path: FilePath,
        /// What it is, with its article.
        kind: &'static str,
    },
    /// A file whose size does not tell how much it holds, as those of `/proc` and `/sys`.
    #[error("input {path} says that its size is {size} but has {held}; copy it and give the copy")]
    SizeUnknown {
        /// As the user named it.
        path: FilePath,
        /// Its size by its file system, in bytes.
        size: u64,
        /// What was read of it.
        held: &'static str,
    },
    /// Several paths are wrong.
    #[error("{} cannot be used as input:\n  {}", count(*.total), list(.first))]
    Paths {
        /// The first ones, at most [`InputError::PATHS_MAX`], in input order.
        first: Vec<InputError>,
        /// How many are wrong in all.
        total: usize,
    },
    /// A name with wildcards that no file has.
    #[error("no file has a name like that of input {path}")]
    NoMatch {
        /// As the user named it.
        path: FilePath,
    },
    /// The output of a job that has not ended yet, or was killed: what is there is not all of it.
    #[error(
        "input {path} is an output that a job is writing, or was when it was killed: it has a _temporary and no _SUCCESS; wait for \
         the job, or write it again"
    )]
    Unfinished {
        /// Where it is.
        path: FilePath,
    },
    /// A folder in one that is read without those below it.
    #[error("input {path} is a directory within another one; with --recursive its files are read too")]
    Subdirectory {
        /// Where it is.
        path: FilePath,
    },
    /// A directory that is reached from within itself, by a link.
    #[error(
        "input {path} leads back to {to}, in which it lies: reading it would never end; remove that link, or name the folders to read one by one"
    )]
    Cycle {
        /// The link.
        path: FilePath,
        /// The folder in which it lies, and to which it leads.
        to: FilePath,
    },
    /// Folders one within the other, more of them than are gone into.
    #[error(
        "input {path} lies {limit} folders deep, and none is read below that; name it, or move it further up"
    )]
    TooDeep {
        /// The first folder that is not gone into.
        path: FilePath,
        /// Folders one within the other.
        limit: usize,
    },
    /// An address that nothing here reads.
    #[error(
        "input {path} is a URL, and only files {}are read; fetch it first and name the file, or pipe it in: `curl URL | gristmill run JOB -`",
        if objects::BUILT_IN { "and those of s3, gs, az, http and https " } else { "" }
    )]
    Url {
        /// As the user named it.
        path: FilePath,
    },
    /// An object store that could not do what it was asked.
    #[error(transparent)]
    Store {
        /// What it could not do, with what, and why.
        source: Box<ObjectError>,
    },
    /// Standard input where nobody keeps it for the job.
    #[error(
        "standard input (`-`) is read by `run` and by `submit` that stays attached; write it to a file and name that"
    )]
    StandardInput,
    /// A name such as `worker-3:path` whose path does not begin with `/`.
    #[error("input {path} names a worker's file but its path does not begin with /")]
    NotAbsolute {
        /// As the user named it.
        path: FilePath,
    },
    /// A file on a worker that whoever lists files has no way to ask.
    #[error("input {path} lies on a worker that cannot be asked from here")]
    OutOfReach {
        /// As the user named it.
        path: FilePath,
    },
    /// The file is no longer the one that was listed.
    #[error("input changed during the job: {path} (was {was}, now {})", now_text(.now))]
    Changed {
        /// As the user named it.
        path: FilePath,
        /// When the job was planned.
        was: FileStamp,
        /// Now; `None` if it is gone or its server did not report it.
        now: Option<FileStamp>,
    },
    /// A quote that opens a field of CSV and is never closed: all that follows would belong to that field.
    #[error("the quote that opens a field at byte {offset} of {path} is never closed; close it or remove it")]
    UnclosedQuote {
        /// As the user named it.
        path: FilePath,
        /// Position of the quote, after decompression.
        offset: u64,
    },
    /// A table whose rows end as those of old Macs do.
    #[error(
        "the rows of {path} end with carriage returns alone, and only line feeds end rows here; convert it: `tr '\\r' '\\n' < FILE > NEW`"
    )]
    CarriageReturns {
        /// As the user named it.
        path: FilePath,
    },
    /// A record longer than the limit.
    #[error(
        "record of more than {limit} bytes at byte {offset} of {path}{} (the limit is --max-record)",
        quote_text(.quote)
    )]
    RecordTooLong {
        /// As the user named it.
        path: FilePath,
        /// Where the record begins, after decompression.
        offset: u64,
        /// Bytes a record may have.
        limit: u64,
        /// Position of a quote in it that is not closed within the limit, if there is one.
        quote: Option<u64>,
    },
    /// A record that has to be held in memory, because its file cannot be mapped, and is too long for that.
    #[error(
        "record of more than {limit} bytes at byte {offset} of {path}, which is what a slot of this worker has room for; give it more memory (--memory) or fewer slots"
    )]
    NoRoom {
        /// As the user named it.
        path: FilePath,
        /// Where the record begins, after decompression.
        offset: u64,
        /// Bytes that there is room for.
        limit: u64,
    },
    /// A record that the mapper refuses, of a job that may leave none out.
    #[error("the record at byte {offset} of {path} is bad: {reason}")]
    BadRecord {
        /// As the user named it.
        path: FilePath,
        /// Where the record begins, after decompression.
        offset: u64,
        /// What the mapper says.
        reason: String,
    },
    /// One bad record more than the job may leave out.
    #[error(
        "more than {max} bad records (--skip-bad-records): the next one is at byte {offset} of {path}: {reason}"
    )]
    TooManyBadRecords {
        /// As the user named it.
        path: FilePath,
        /// Where the record begins, after decompression.
        offset: u64,
        /// What is wrong with it.
        reason: String,
        /// Records that may be left out.
        max: u64,
    },
    /// A compressed file that is damaged or cut short.
    #[error("compressed input {path} is damaged or cut short near byte {offset} of the compressed file")]
    Corrupt {
        /// As the user named it.
        path: FilePath,
        /// Compressed bytes used until then.
        offset: u64,
        /// The error of the decoder.
        #[source]
        source: std::io::Error,
    },
    /// A compressed file that grows beyond the allowed ratio.
    #[error(
        "input {path} grows more than {ratio_max} times (the limit is --max-expansion): {decoded} bytes came out of {compressed}"
    )]
    Expansion {
        /// As the user named it.
        path: FilePath,
        /// Bytes that came out.
        decoded: u64,
        /// Bytes of the file that went in.
        compressed: u64,
        /// Bytes that may come out for each that goes in.
        ratio_max: u32,
    },
    /// A file of another format than those that are read.
    #[error("input {path} {verb} {content}, which is not read here; {advice}")]
    Content {
        /// As the user named it.
        path: FilePath,
        /// `is`, or `holds` of a compressed file.
        verb: &'static str,
        /// The format, with its article.
        content: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A file that is read as a whole and was cut, because only its first bytes show its format.
    #[error(
        "input {path} is a {suffix} file by its first bytes, but was cut by its name; give it a name that ends in {suffix}"
    )]
    CutBeforeKnown {
        /// As the user named it.
        path: FilePath,
        /// What names of such files end in.
        suffix: &'static str,
    },
    /// A zstd file that needs more memory than is allowed.
    #[error(
        "compressed input {path} needs a window of {window} MiB (zstd --long), and {limit} MiB are allowed; pack it again without --long"
    )]
    Window {
        /// As the user named it.
        path: FilePath,
        /// Size of the window in MiB, rounded up.
        window: u64,
        /// Allowed size in MiB.
        limit: u64,
    },
    /// A file that holds a table by columns, or says so by its name, and cannot be decoded.
    #[error("could not decode input {path} as {kind}")]
    Table {
        /// As the user named it.
        path: FilePath,
        /// What its name says that it is.
        kind: TableKind,
        /// The error of the decoder.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A file without a byte that holds a table by its name.
    #[error(
        "{kind} input {path} is empty, and a {kind} file is not, be it one without rows; write it again, or leave it out"
    )]
    EmptyTable {
        /// As the user named it.
        path: FilePath,
        /// What its name says that it is.
        kind: TableKind,
    },
    /// A value of a table that cannot be written as text, such as a day beyond all calendars.
    #[error(
        "row {row} of column `{}` of input {path} has no text; leave that column out (--read-columns)",
        .column.escape_debug()
    )]
    NoText {
        /// As the user named it.
        path: FilePath,
        /// The name of the column.
        column: String,
        /// Of the file, the first being 1.
        row: u64,
        /// What the value is, and why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A table without a column that is to be read.
    #[error("input {path} has no column `{}` (--read-columns); it has {there}", .column.escape_debug())]
    NoColumn {
        /// As the user named it.
        path: FilePath,
        /// The name that was asked for.
        column: String,
        /// The names that are there.
        there: String,
    },
    /// A table with several columns of a name that is to be read.
    #[error(
        "input {path} has {count} columns `{}`, so none of them can be read by that name (--read-columns)",
        .column.escape_debug()
    )]
    SameColumn {
        /// As the user named it.
        path: FilePath,
        /// The name that was asked for.
        column: String,
        /// Columns of that name.
        count: usize,
    },
    /// A table in a file that is compressed as a whole.
    #[error("input {path} is a compressed {kind} file, which is not read as a table: unpack it first")]
    PackedTable {
        /// As the user named it.
        path: FilePath,
        /// What its name says that is in it.
        kind: TableKind,
    },
    /// A table whose columns have names, which is to be read without them.
    #[error(
        "the columns of input {path} have names, which would be taken for a row: say that there is a header (--header yes)"
    )]
    HasHeader {
        /// As the user named it.
        path: FilePath,
    },
    /// A file of another kind, of which columns are to be read.
    #[error(
        "input {path} is no Parquet or Arrow file by its name, so it has no columns to choose (--read-columns)"
    )]
    NoTable {
        /// As the user named it.
        path: FilePath,
    },
    /// A table, in a program that was built without what reads them.
    #[error(
        "input {path} is a {kind} file, which this program was built without reading (the feature `tables`)"
    )]
    TablesNotBuiltIn {
        /// As the user named it.
        path: FilePath,
        /// What its name says that it is.
        kind: TableKind,
    },
    /// A file of fixed-length records whose size is no multiple of the length.
    #[error("input {path} has {size} bytes, which is not a multiple of the record length {length}")]
    FixedLength {
        /// As the user named it.
        path: FilePath,
        /// Bytes of the file, after decompression.
        size: u64,
        /// Bytes of a record.
        length: u32,
    },
    /// A format that no file can have.
    #[error("input format cannot be used: {reason}")]
    Format {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A directory with more files and directories than a job may read.
    #[error("input {path} has more than {limit} files and directories; name fewer at a time")]
    TooManyFiles {
        /// As the user named it.
        path: FilePath,
        /// Names that there may be below it.
        limit: usize,
    },
    /// More splits than a job may have.
    #[error("input falls into more than {limit} splits; take larger ones (--split-size)")]
    TooManySplits {
        /// Splits a job may have.
        limit: usize,
    },
    /// A side input larger than tasks may hold in memory.
    #[error("side input {path} makes more than {limit} bytes, too much to hold in memory")]
    SideTooLarge {
        /// The file at which the limit was passed, as the user named it.
        path: FilePath,
        /// Bytes a side input may have, after decompression.
        limit: u64,
    },
    /// A file that could not be fetched from the process that serves it.
    #[error("could not fetch input {path} from byte {offset} on")]
    Remote {
        /// As the user named it.
        path: FilePath,
        /// First byte of the range asked for.
        offset: u64,
        /// The error of the transport.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ExitsWith for InputError {
    fn exit(&self) -> Exit {
        match self {
            Self::Store { source } => source.cause.fault().exit(),
            // A local limit was reached, such as that of descriptors, or the worker that has the input was not reached.
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
    /// Bad paths named in one message.
    pub const PATHS_MAX: usize = 10;

    /// Whether the input itself is at fault, so that the job fails at once. If not, reading again, perhaps
    /// elsewhere, may succeed.
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

    /// One error for several bad paths; itself if it is only one.
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

    /// Of an object store.
    pub(crate) fn store(source: ObjectError) -> Self {
        Self::Store { source: Box::new(source) }
    }

    /// Sorts an error of the file system by its code.
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

/// One line for each, with its causes: the causes of a list cannot be followed by `source`.
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
