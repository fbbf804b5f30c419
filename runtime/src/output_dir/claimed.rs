//! The output of a job, wherever it is: one door for whoever claims, adopts, finishes or abandons it.
//!
//! A directory (the module above) is open and locked; a prefix of an object store (`store`) is a URL, and asking for it may take
//! long. Not here: what either does.

use super::store::StoreOutput;
use super::undo::RetiredClaim;
use super::{OutputDirectory, OutputError, Success};
use crate::api::{BuiltPart, Submission};
use crate::submitter::Parts;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::fault;
use gristmill_worker::folder::PlainName;
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

/// The URL of an output in a store; `None` for a directory.
///
/// # Errors
/// A URL that cannot be used, or of a web server, which is only read: no process asks a server that a submission names as output.
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

/// Refuses an output that neither a directory nor a store can be, wherever it is written.
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
    /// Whatever makes it unusable, before any task starts.
    pub(crate) fn claim(path: &Path, overwrite: bool, sync: bool, nonce: &str) -> Result<Self, OutputError> {
        match store_url(&FilePath::from(path))? {
            Some(url) => StoreOutput::claim(url, overwrite, nonce).map(Self::Store),
            None => OutputDirectory::claim(path, overwrite, sync, nonce).map(Self::Directory),
        }
    }

    /// The claim of a submission, to be finished or abandoned by another process than the one that made it: that of `job` until
    /// it ends, if one is named. Asks no store for anything: see [`ClaimedOutput::hold`].
    ///
    /// # Errors
    /// As [`OutputDirectory::adopt`], and a URL that cannot be used.
    pub(crate) fn adopt(submission: &Submission, job: Option<JobId>) -> Result<Self, OutputError> {
        match store_url(&submission.output)? {
            Some(url) => StoreOutput::adopt(url, submission).map(Self::Store),
            None => OutputDirectory::adopt(submission, job).map(Self::Directory),
        }
    }

    /// Makes this process the owner of a claim in a store, and so sees whether it can reach that. Of a directory that is done
    /// when it is adopted.
    ///
    /// # Errors
    /// What the store says, and a claim that is not this job's any more.
    pub(crate) fn hold(&self) -> Result<(), OutputError> {
        match self {
            Self::Directory(_) => Ok(()),
            Self::Store(output) => output.hold(),
        }
    }

    /// Closes the output of a submission whose claim cannot be adopted any more; without `success`, abandons it.
    ///
    /// # Errors
    /// An output that cannot be completed, or that another process has in hand.
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
    /// Parts that are not as their attempts left them, and what the file system or the store says; the claim is then abandoned.
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

    /// Removes everything that the job has put there.
    pub(crate) fn abandon(self) {
        fault::place("output.abandon");
        match self {
            Self::Directory(directory) => directory.abandon(),
            Self::Store(output) => output.abandon(),
        }
    }

    /// The name of its claim.
    pub(crate) fn probe(&self) -> &PlainName {
        match self {
            Self::Directory(directory) => directory.probe(),
            Self::Store(output) => output.probe(),
        }
    }

    /// Whether it was made for the job.
    pub(crate) fn is_made(&self) -> bool {
        match self {
            Self::Directory(directory) => directory.is_made(),
            Self::Store(_) => false,
        }
    }

    /// Whether closing it waits for others than disks.
    pub(crate) fn is_far(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    /// What becomes of parts that are sent to this process; into a store workers upload them themselves.
    ///
    /// # Errors
    /// A process that can open nothing more.
    pub(crate) fn parts(&self, sync: bool) -> io::Result<Option<Parts>> {
        match self {
            Self::Directory(directory) => directory.parts(sync).map(Some),
            Self::Store(_) => Ok(None),
        }
    }

    /// The directory, absolute, or the URL.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Directory(directory) => directory.path(),
            Self::Store(output) => PathBuf::from(output.url().to_string()),
        }
    }
}

/// Refuses an output that holds a file or object of these pieces of input.
///
/// # Errors
/// Which one; or a directory that cannot be looked at.
pub(crate) fn refuse_inputs<'a>(
    output: &Path,
    pieces: impl Iterator<Item = &'a Piece>,
) -> Result<(), OutputError> {
    match store_url(&FilePath::from(output))? {
        Some(url) => super::store::refuse_inputs(&url, pieces),
        None => super::protected::refuse_inputs(output, pieces),
    }
}
