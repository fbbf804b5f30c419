//! Resolves the paths of an input to files, where a job is submitted and before anything is read.
//!
//! A path names a file, or a directory, which is replaced by its files in the byte order of their names.
//! Names that start with `_` or `.` are omitted, so that the output directory of one job can be the input
//! of the next. Directories in such an output, which hold its named outputs, are omitted as well. An
//! output that a job is writing, or was writing when it was killed, is refused, because it is incomplete.
//! Subdirectories are read only on request; otherwise one inside a directory is an error. Links are
//! followed, except one that leads back to a directory that contains it: that is an error, and nothing is
//! omitted silently. A name with wildcards that no file has is replaced by the files whose names match
//! (`wildcards`). A path given twice is read twice. Only files of size 0 are opened: those of `/proc`
//! report this size whatever they hold, and would be omitted silently. Objects of stores are listed by
//! the same rules (`stored`).

use super::error::InputError;
use super::format::RecordFormat;
use super::local::refuse_special;
use super::path::FilePath;
use super::private::{TEMPORARY, check_listed, open_regular};
use super::split::{Compression, FileStamp, Piece, Place, Split};
use super::table::{Table, TableKind};
use super::wildcards::{DEPTH_MAX, expand, has_wildcards, is_hidden, walk_failed};
use crate::objects::{self, Scheme, is_url};
use gristmill_scheduler::ids::WorkerId;
use std::fs::Metadata;
use std::io::{ErrorKind, Read};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// Name of the file that marks a directory as the output of a job.
const SUCCESS: &str = "_SUCCESS";

/// Files and the format of their records. A path may be a file, or a directory whose files are read in
/// the order of their names. `worker-3:/path` names a file on that worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Paths as the user wrote them.
    pub paths: Vec<String>,
    /// Format of the records.
    pub format: RecordFormat,
    /// Columns that are read of files with columnar tables, in this order; empty for all.
    pub columns: Vec<String>,
    /// Number of map tasks without any records, for mappers that generate their own: they run only
    /// `setup` and `finish`.
    pub bare_tasks: u32,
    /// Number of steps of each of them, from which each gets records of one byte.
    pub steps: u32,
}

impl Input {
    /// Reads lines of text: a record is a line without its `\n`. A `\r` stays part of the line.
    pub fn lines<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self::new(paths, RecordFormat::Lines)
    }

    /// Reads comma-separated values as in RFC 4180, also with line breaks inside quotes. With `header`,
    /// the first record of each file is not passed to the mapper.
    pub fn csv<P: AsRef<str>>(paths: impl IntoIterator<Item = P>, delimiter: u8, header: bool) -> Self {
        Self::new(paths, RecordFormat::Csv { delimiter, header })
    }

    /// Reads records of exactly `length` bytes. A file whose size is not a multiple of it is an input error.
    pub fn fixed<P: AsRef<str>>(paths: impl IntoIterator<Item = P>, length: u32) -> Self {
        Self::new(paths, RecordFormat::Fixed { length })
    }

    /// Reads whole files: each is one record, decompressed if its name or content shows that it is
    /// compressed. A file that is compressed or cannot be mapped is held in memory as a whole. Files over
    /// the limit of a record (64 MiB, `--max-record`) are refused, empty ones omitted.
    pub fn whole_files<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self::new(paths, RecordFormat::WholeFile)
    }

    /// Selects columns of files with columnar tables, in this order; all by default.
    #[must_use]
    pub fn with_columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.columns = names.into_iter().map(Into::into).collect();
        self
    }

    /// Reads no files: `count` map tasks whose mappers generate their own records in `setup` and `finish`.
    #[must_use]
    pub fn bare_tasks(count: u32) -> Self {
        Self { bare_tasks: count, ..Self::new([""; 0], RecordFormat::Lines) }
    }

    /// Reads no files: `count` map tasks, each of this many steps; [`Input::bare_tasks`] if there are none. A step is a
    /// record, the steps of task `n` start at the offset `n * steps`, and a task can be divided between two steps.
    #[must_use]
    pub fn steps(count: u32, steps: u32) -> Self {
        Self { bare_tasks: count, steps, ..Self::new([""; 0], RecordFormat::Fixed { length: 1 }) }
    }

    /// Returns the splits of its tasks without files.
    #[must_use]
    pub fn bare_splits(&self, input: u32) -> Vec<Split> {
        let pieces = |task| if self.steps > 0 { vec![Piece::of_steps(task, self.steps)] } else { Vec::new() };
        (0..self.bare_tasks).map(|task| Split { input, format: self.format, pieces: pieces(task) }).collect()
    }

    fn new<P: AsRef<str>>(paths: impl IntoIterator<Item = P>, format: RecordFormat) -> Self {
        let paths = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
        Self { paths, format, columns: Vec::new(), bare_tasks: 0, steps: 0 }
    }
}

pub use super::listed::{ListedFile, Listing, Subdirectories};
pub use super::stored::list_stored;

/// Lists only files that this process sees, and objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalListing;

impl Listing for LocalListing {
    fn list(&self, place: Place, path: &FilePath) -> Result<Vec<ListedFile>, InputError> {
        match place {
            Place::Submitter => list_local(path),
            Place::Store => list_stored(path, Subdirectories::Refused),
            Place::Worker(_) | Place::Steps => Err(InputError::out_of_reach(path)),
        }
    }
}

/// Returns the file of this path, or the files of this directory, as this process sees them. A worker
/// returns this list when it is asked for its files.
///
/// # Errors
/// A path that does not exist, is unreadable or not a regular file; all invalid names of a directory at once.
pub fn list_local(path: &FilePath) -> Result<Vec<ListedFile>, InputError> {
    list_local_with(path, Subdirectories::Refused)
}

/// Does the same as [`list_local`], with a choice for subdirectories.
///
/// # Errors
/// The errors of [`list_local`]; also directories that contain themselves by a link, or are nested too
/// deeply, and too many names.
pub fn list_local_with(path: &FilePath, below: Subdirectories) -> Result<Vec<ListedFile>, InputError> {
    list_within(path, below, NAMES_MAX)
}

pub(super) fn list_within(
    path: &FilePath,
    below: Subdirectories,
    names_max: usize,
) -> Result<Vec<ListedFile>, InputError> {
    let found = match std::fs::metadata(path.to_path()) {
        Err(error) if error.kind() == ErrorKind::NotFound && has_wildcards(path.as_bytes()) => {
            expand(path, NAMES_MAX)?
        }
        _ => vec![path.clone()],
    };
    let (mut files, mut open) = (Vec::new(), None);
    for path in found {
        let failed = |source| InputError::from_io(&path, source);
        let metadata = std::fs::metadata(path.to_path()).map_err(failed)?;
        if metadata.is_dir() {
            files.extend(walk(&path, below, names_max)?);
        } else {
            // Once for all files of a directory.
            let parent = path.to_path().parent().map(Path::to_owned);
            if parent != open {
                check_listed(path.to_path(), false).map_err(failed)?;
                open = parent;
            }
            let stamp = stamp(&path, &metadata)?;
            files.push(ListedFile { path, stamp });
        }
    }
    Ok(files)
}

/// Maximum number of names of files and directories below one path. Links may turn few into many.
const NAMES_MAX: usize = 1 << 20;
/// Number of names for which another thread pays off: 2 ms of reading metadata.
pub(super) const LOOKS_EACH_MIN: usize = 2000;
/// Maximum number of threads that read metadata, one of them the lister's own.
const LOOKERS_MAX: usize = 8;

/// Returns the stamp of a file that can be input.
fn stamp(path: &FilePath, metadata: &Metadata) -> Result<FileStamp, InputError> {
    refuse_special(path, metadata)?;
    if metadata.len() == 0 { stamp_of_empty(path) } else { Ok(FileStamp::from_metadata(metadata)) }
}

/// Checks if a file of size 0 is empty.
fn stamp_of_empty(path: &FilePath) -> Result<FileStamp, InputError> {
    let failed = |source| InputError::from_io(path, source);
    let mut file = open_regular(path.to_path()).map_err(failed)?;
    let read = file.read(&mut [0]);
    // Read again now: a file that has just been written has its size by now.
    let metadata = file.metadata().map_err(failed)?;
    refuse_special(path, &metadata)?;
    let has_content = match read {
        Ok(count) => 0 < count,
        // The read would block, so it is not empty.
        Err(error) if error.kind() == ErrorKind::WouldBlock => true,
        Err(error) => return Err(failed(error)),
    };
    if has_content && metadata.len() == 0 {
        return Err(InputError::size_unknown(path, 0, "content"));
    }
    Ok(FileStamp::from_metadata(&metadata))
}

/// Returns all files of a directory that are input, in the order of their names.
fn walk(
    directory: &FilePath,
    below: Subdirectories,
    names_max: usize,
) -> Result<Vec<ListedFile>, InputError> {
    let (mut found, mut bad, mut names) = (Vec::new(), Vec::new(), 0_usize);
    let is_output = directory.to_path().join(SUCCESS).is_file();
    let mut walk = WalkDir::new(directory.to_path()).follow_links(true).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let hidden = |path: &Path| path.file_name().is_some_and(|name| is_hidden(name.as_bytes()));
        let entry = match entry {
            Err(error) if 0 < error.depth() && error.path().is_some_and(hidden) => continue,
            Err(error) => {
                bad.push(walk_failed(directory.to_path(), error));
                continue;
            }
            Ok(entry) => entry,
        };
        let (is_directory, is_below) = (entry.file_type().is_dir(), 0 < entry.depth());
        if is_below && hidden(entry.path()) {
            if is_directory {
                walk.skip_current_dir();
            }
            continue;
        }
        names += 1;
        if names_max < names {
            return Err(InputError::too_many_files(directory, names_max));
        }
        if !is_directory {
            found.push(entry);
            continue;
        }
        let checked = match below {
            Subdirectories::Refused if is_below && is_output => Ok(false),
            Subdirectories::Refused if is_below => {
                Err(InputError::subdirectory(&FilePath::from(entry.path())))
            }
            _ => check_directory(&entry).map(|()| true),
        };
        if !matches!(checked, Ok(true)) {
            walk.skip_current_dir();
        }
        bad.extend(checked.err());
    }
    let mut files = Vec::new();
    for (entry, looked_at) in found.iter().zip(look_at(&found)) {
        let path = FilePath::from(entry.path());
        let looked_at = looked_at.map_err(|error| walk_failed(entry.path(), error));
        match looked_at.and_then(|metadata| stamp(&path, &metadata)) {
            Ok(stamp) => files.push(ListedFile { path, stamp }),
            Err(error) => bad.push(error),
        }
    }
    if bad.is_empty() { Ok(files) } else { Err(InputError::collected(bad)) }
}

/// Refuses a directory that is not input.
fn check_directory(entry: &DirEntry) -> Result<(), InputError> {
    let (directory, path) = (entry.path(), FilePath::from(entry.path()));
    if entry.depth() == DEPTH_MAX {
        return Err(InputError::too_deep(&path, DEPTH_MAX));
    }
    check_listed(directory, true).map_err(|source| InputError::from_io(&path, source))?;
    // In this order: a job that ends meanwhile writes the first before it removes the second.
    let is_output = directory.join(SUCCESS).is_file();
    let is_claimed = || std::fs::read_dir(directory.join(TEMPORARY)).is_ok_and(|names| 0 < names.count());
    if is_output || !is_claimed() {
        return Ok(());
    }
    Err(InputError::refused(format!(
        "input {path} is an output that a job is writing, or was when it was killed: it has a _temporary and no _SUCCESS; \
         wait for the job, or write it again"
    )))
}

/// Reads the metadata of all entries, many at once on several threads, because the job cannot start
/// before that.
fn look_at(names: &[DirEntry]) -> Vec<walkdir::Result<Metadata>> {
    let all = |names: &[DirEntry]| names.iter().map(DirEntry::metadata).collect::<Vec<_>>();
    let threads = (names.len() / LOOKS_EACH_MIN).min(LOOKERS_MAX);
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let each = names.len().div_ceil(threads.min(processors).max(1)).max(1);
    let (first, others) = names.split_at(each.min(names.len()));
    std::thread::scope(|scope| {
        let look = |names| std::thread::Builder::new().spawn_scoped(scope, move || all(names));
        let looking: Vec<_> = others.chunks(each).map(|names| (names, look(names))).collect();
        let mut seen = all(first);
        for (names, looker) in looking {
            // If a thread could not be started, or has panicked, this one does its work.
            let looked = looker.ok().and_then(|looker| looker.join().ok());
            seen.extend(looked.unwrap_or_else(|| all(names)));
        }
        seen
    })
}

/// Returns the files of an input as whole pieces, in input order. Empty files are omitted, since they
/// hold no record, unless they should hold a table.
///
/// # Errors
/// All unusable paths, in one error.
pub fn list_input(input: &Input, listing: &dyn Listing) -> Result<Vec<Piece>, InputError> {
    let mut bad = Vec::new();
    let pieces = list_into(input, listing, &mut bad);
    if bad.is_empty() { Ok(pieces) } else { Err(InputError::collected(bad)) }
}

/// Does the same as [`list_input`], with the invalid paths appended to `bad`.
pub(super) fn list_into(input: &Input, listing: &dyn Listing, bad: &mut Vec<InputError>) -> Vec<Piece> {
    if let Err(error) = check_format(input.format) {
        bad.push(error);
        return Vec::new();
    }
    let mut pieces = Vec::new();
    for text in &input.paths {
        let named = parse(text)
            .and_then(|(place, path)| Ok((listing.list(place, &path)?, NamedInput::new(place, path))));
        match named {
            Ok((files, named)) => {
                for file in files {
                    match whole_file(&named, file, input) {
                        Ok(piece) => pieces.extend(piece),
                        Err(error) => bad.push(error),
                    }
                }
            }
            Err(InputError::Paths { first, .. }) => bad.extend(first),
            Err(error) => bad.push(error),
        }
    }
    pieces
}

/// Path that a user named. The paths of its files mostly start with it.
struct NamedInput {
    place: Place,
    path: FilePath,
    /// Absolute form of a path of the submitter: the working directory is read once, not for each file.
    absolute: Option<FilePath>,
}

impl NamedInput {
    fn new(place: Place, path: FilePath) -> Self {
        let absolute = match place {
            Place::Submitter => std::path::absolute(path.to_path()).ok().map(|path| FilePath::from(&*path)),
            Place::Worker(_) | Place::Store | Place::Steps => None,
        };
        Self { place, path, absolute }
    }

    /// Returns the absolute path of one of its files.
    fn absolute(&self, path: &FilePath) -> Result<FilePath, InputError> {
        if let (Some(absolute), Some(rest)) =
            (&self.absolute, path.as_bytes().strip_prefix(self.path.as_bytes()))
        {
            return Ok(FilePath::new([absolute.as_bytes(), rest].concat()));
        }
        let absolute =
            std::path::absolute(path.to_path()).map_err(|source| InputError::from_io(path, source))?;
        Ok(FilePath::from(&*absolute))
    }
}

/// Returns the whole of a file as a piece; `None` if it is empty. A table is never empty, even without rows.
fn whole_file(named: &NamedInput, file: ListedFile, input: &Input) -> Result<Option<Piece>, InputError> {
    let ListedFile { path, stamp } = file;
    let place = named.place;
    let (path, name) = match place {
        Place::Submitter => (named.absolute(&path)?, path),
        Place::Worker(worker) => {
            let name = [format!("{worker}:").as_bytes(), path.as_bytes()].concat();
            (path, FilePath::new(name))
        }
        Place::Store | Place::Steps => (path.clone(), path),
    };
    let compression = Compression::of_name(&path);
    let table = Table::of_name(&path, input.format, &input.columns);
    if stamp.size == 0 {
        let Some(Table { kind, .. }) = table.as_deref() else { return Ok(None) };
        return Err(InputError::refused(format!(
            "{kind} input {name} is empty, and a {kind} file is not, be it one without rows; write it again, or leave it out"
        )));
    }
    if compression != Compression::None
        && let Some(kind) = TableKind::of_packed_name(&path, input.format)
    {
        return Err(InputError::packed_table(&name, kind));
    }
    if table.is_none() && !input.columns.is_empty() {
        return Err(InputError::refused(format!(
            "input {name} is no Parquet or Arrow file by its name, so it has no columns to choose (--read-columns)"
        )));
    }
    match input.format {
        RecordFormat::Fixed { length }
            if compression == Compression::None && stamp.size % u64::from(length) != 0 =>
        {
            Err(InputError::fixed_length(&name, stamp.size, length))
        }
        _ => {
            let length = stamp.size;
            Ok(Some(Piece { path, name, place, offset: 0, length, stamp, compression, table }))
        }
    }
}

/// Distinguishes `worker-3:/path` and `s3://bucket/key` from a path of the submitter. A file of the
/// submitter that looks like one of these can be named `./worker-3:/path`.
fn parse(text: &str) -> Result<(Place, FilePath), InputError> {
    let of_worker = text
        .split_once(':')
        .and_then(|(worker, path)| worker.parse::<WorkerId>().ok().map(|worker| (worker, path)));
    match of_worker {
        None if objects::are_plugged_in() && Scheme::from_url(text).is_some() => {
            Ok((Place::Store, FilePath::from(text)))
        }
        None if is_url(text) => {
            let why = match Scheme::from_url(text) {
                Some(_) => "this program was built without object stores (the feature `stores`)",
                None => "only files and URLs of s3, gs, az, http and https are read",
            };
            Err(InputError::refused(format!(
                "input {} is a URL, and {why}; fetch it first and name the file, or pipe it in: \
                 `curl URL | gristmill run JOB -`",
                FilePath::from(text)
            )))
        }
        None => Ok((Place::Submitter, FilePath::from(text))),
        Some((worker, path)) if path.starts_with('/') => Ok((Place::Worker(worker), FilePath::from(path))),
        Some(_) => Err(InputError::refused(format!(
            "input {} names a worker's file but its path does not begin with /",
            FilePath::from(text)
        ))),
    }
}

fn check_format(format: RecordFormat) -> Result<(), InputError> {
    let reason = match format {
        RecordFormat::Csv { delimiter: b'"' | b'\n' | b'\r', .. } => {
            "the delimiter of fields cannot be a quote or a line break"
        }
        RecordFormat::Fixed { length: 0 } => "the length of a record cannot be 0",
        _ => return Ok(()),
    };
    Err(InputError::refused(format!("input format cannot be used: {reason}")))
}
