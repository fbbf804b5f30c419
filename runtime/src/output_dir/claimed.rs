//! Output of a job in either kind of storage, with one interface to claim, adopt, finish and abandon it.
//!
//! A directory (the parent module) is open and locked. A prefix of an object store (`store`) is a URL, and requests to
//! it may take long.

use super::claimed_directory::OutputDirectory;
use super::store::StoreOutput;
use super::undo::RetiredClaim;
use super::{OutputError, Success};
use crate::api::{BuiltPart, Submission};
use crate::submitter::Parts;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::directory::PlainName;
use gristmill_worker::fault;
use gristmill_worker::input::{FilePath, Piece};
use gristmill_worker::objects::{ObjectUrl, is_url};
use std::io;
use std::path::{Path, PathBuf};

/// An output that belongs to a job until it is finished or abandoned.
#[derive(Debug)]
pub(crate) enum ClaimedOutput {
    /// A directory.
    Directory(OutputDirectory),
    /// A prefix of an object store.
    Store(StoreOutput),
}

/// URL of an output in a store; `None` for a directory.
///
/// # Errors
/// An invalid URL, or one of a web server, which is read-only: no process sends requests to a server because a
/// submission names it as output.
fn store_url(output: &FilePath) -> Result<Option<ObjectUrl>, OutputError> {
    let text = output.to_text();
    if !is_url(&text) {
        return Ok(None);
    }
    let url = ObjectUrl::parse(&text).map_err(OutputError::store)?;
    match url.scheme().is_web() {
        true => Err(OutputError::ReadOnly { url: url.to_string() }),
        false => Ok(Some(url)),
    }
}

/// Rejects an output that is neither a directory nor a prefix of a store.
///
/// # Errors
/// As [`store_url`].
pub(crate) fn check_output(output: &FilePath) -> Result<(), OutputError> {
    store_url(output).map(drop)
}

impl ClaimedOutput {
    /// Claims a directory or prefix, as [`OutputDirectory::claim`] does.
    ///
    /// # Errors
    /// Everything that makes it unusable, before any task starts.
    pub(crate) fn claim(path: &Path, overwrite: bool, sync: bool, nonce: &str) -> Result<Self, OutputError> {
        match store_url(&FilePath::from(path))? {
            Some(url) => StoreOutput::claim(url, overwrite, nonce).map(Self::Store),
            None => OutputDirectory::claim(path, overwrite, sync, nonce).map(Self::Directory),
        }
    }

    /// Adopts the claim of a submission, to be finished or abandoned by another process than the one that made it. If
    /// `job` is given, it becomes the owner until it ends. Sends no request to a store: see [`ClaimedOutput::take_over`].
    ///
    /// # Errors
    /// As [`OutputDirectory::adopt`], and an invalid URL.
    pub(crate) fn adopt(submission: &Submission, job: Option<JobId>) -> Result<Self, OutputError> {
        match store_url(&submission.output)? {
            Some(url) => StoreOutput::adopt(url, submission).map(Self::Store),
            None => OutputDirectory::adopt(submission, job).map(Self::Directory),
        }
    }

    /// Makes this process the owner of a claim in a store, which also shows that it can reach the store. For a
    /// directory this is done by adopting it.
    ///
    /// # Errors
    /// Errors of the store, and a claim that is not this job's any more.
    pub(crate) fn take_over(&self) -> Result<(), OutputError> {
        match self {
            Self::Directory(_) => Ok(()),
            Self::Store(output) => output.take_over(),
        }
    }

    /// Closes the output of a submission whose claim cannot be adopted any more. Without `success`, abandons it.
    ///
    /// # Errors
    /// An output that cannot be completed, or that another process is closing.
    pub(crate) fn close_left(
        submission: &Submission,
        success: Option<&Success>,
        built: &[BuiltPart],
    ) -> Result<Option<RetiredClaim>, OutputError> {
        let Some(url) = store_url(&submission.output)? else {
            return OutputDirectory::close_left(submission, success, built);
        };
        let left = StoreOutput::adopt(url, submission)?;
        match success {
            Some(success) => left.finish(success, built)?,
            None => left.abandon(),
        }
        Ok(None)
    }

    /// Publishes the parts and gives the claim back, as [`OutputDirectory::finish`] does.
    ///
    /// # Errors
    /// Parts that differ from their attempts' reports, and errors of the file system or the store. The claim is then
    /// abandoned.
    pub(crate) fn finish(
        self,
        success: &Success,
        built: &[BuiltPart],
        sync: bool,
    ) -> Result<Option<RetiredClaim>, OutputError> {
        match self {
            Self::Directory(directory) => directory.finish(success, built, sync).map(Some),
            Self::Store(output) => output.finish(success, built).map(|()| None),
        }
    }

    /// Removes everything that the job has written.
    pub(crate) fn abandon(self) {
        fault::place("output.abandon");
        match self {
            Self::Directory(directory) => directory.abandon(),
            Self::Store(output) => output.abandon(),
        }
    }

    /// Name of its claim.
    pub(crate) fn probe(&self) -> &PlainName {
        match self {
            Self::Directory(directory) => directory.probe(),
            Self::Store(output) => output.probe(),
        }
    }

    /// True if it was created for the job.
    pub(crate) fn is_made(&self) -> bool {
        match self {
            Self::Directory(directory) => directory.is_made(),
            Self::Store(_) => false,
        }
    }

    /// True if closing it waits for remote systems, not only for disks.
    pub(crate) fn is_far(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    /// Receiver of parts that are sent to this process; `None` for a store, into which workers upload parts themselves.
    ///
    /// # Errors
    /// A process without free file descriptors.
    pub(crate) fn parts(&self, sync: bool) -> io::Result<Option<Parts>> {
        match self {
            Self::Directory(directory) => directory.parts(sync).map(Some),
            Self::Store(_) => Ok(None),
        }
    }

    /// The absolute directory, or the URL.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Directory(directory) => directory.path(),
            Self::Store(output) => PathBuf::from(output.url().to_string()),
        }
    }
}

/// Rejects an output that contains a file or object of these pieces of input.
///
/// # Errors
/// The first such file, or a directory that cannot be examined.
pub(crate) fn refuse_inputs<'a>(
    output: &Path,
    pieces: impl Iterator<Item = &'a Piece>,
) -> Result<(), OutputError> {
    match store_url(&FilePath::from(output))? {
        Some(url) => super::store::refuse_inputs(&url, pieces),
        None => super::protected::refuse_inputs(output, pieces),
    }
}
