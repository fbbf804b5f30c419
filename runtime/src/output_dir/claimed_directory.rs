//! Output directory that a job has claimed, so that no other job writes there: its open handles, and the prefixes of
//! names that mark unfinished work in it.

use super::success::SUCCESS;
use gristmill_worker::directory::{Directory, PlainName};
use std::ffi::OsString;
use std::fs::File;

/// Prefix of the names of overwritten files until the job has succeeded; inside the directory.
pub(super) const REPLACED: &str = "_replaced-";

/// Prefix of the name of a directory that is not `_temporary` yet, or not any more.
pub(super) const RETIRED: &str = "_claim-";

/// A directory that belongs to a job until it is finished or abandoned.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    pub(super) directory: Directory,
    /// `_temporary` in it.
    pub(super) temporary: Directory,
    /// Name of the claim file, which distinguishes the files of this claim from those of any other.
    pub(super) probe: PlainName,
    /// True if the directory was created by this job.
    pub(super) made: bool,
    /// The claim file, with this process's lock on it, until the claim is given back.
    pub(super) lock: Option<File>,
}

/// The named output, if it is not the main one, and the name of a file.
pub(super) type PublishedFile<'a> = (Option<&'a PlainName>, &'a str);

/// Published files of a job.
pub(super) enum Published<'a> {
    /// Publishing had not started.
    Nothing,
    /// These files, in this order.
    These(Vec<PublishedFile<'a>>),
    /// A process died while it published: all existing parts count.
    Unknown,
}

/// Sorts names so that `_SUCCESS` comes first.
pub(super) fn success_first(mut names: Vec<OsString>) -> Vec<OsString> {
    names.sort_by_key(|name| name != SUCCESS);
    names
}
