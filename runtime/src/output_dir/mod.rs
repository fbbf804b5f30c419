//! The output of a job, from the moment it is claimed to `_SUCCESS` or back to nothing: a directory here, a prefix of an object
//! store in `store`.
//!
//! `DIR/_temporary` is claimed exclusively (`claim`), so two jobs can never write into one directory. Attempts build parts there,
//! each in a file of its own; whoever closes the output publishes those that count, and `_SUCCESS` comes last. What
//! a worker does that was given up, and goes on, changes no published part. A job that fails leaves nothing and, if
//! the directory was its own, no directory. Both folders are held open, must be this user's (the directory may be root's),
//! and everything is done in them by plain names.

mod claim;
mod claimed;
mod error;
mod left;
mod protected;
mod publish;
mod store;
mod success;
mod undo;

pub(crate) use claimed::{ClaimedOutput, check_output, refuse_inputs};
pub use error::OutputError;
pub use protected::why_kept;
pub use success::{BAD_RECORDS, SUCCESS, Success};

use crate::api::Submission;
use crate::removal::remove_retrying;
use crate::submitter::Parts;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::commit::{PROBE, TEMPORARY, nonce_of};
use gristmill_worker::folder::{self, Folder, PlainName};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use undo::Published;

/// How the names begin of what is overwritten, until the job has succeeded; inside the directory.
const REPLACED: &str = "_replaced-";

/// How the name of a folder begins that is not `_temporary` yet, or no more.
const RETIRED: &str = "_claim-";

/// Claims of dead processes that are taken over in a row.
const TAKE_OVERS_MAX: u32 = 4;

/// A directory that belongs to a job until it is finished or abandoned.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    folder: Folder,
    /// `_temporary` in it.
    temporary: Folder,
    /// Name of the claim file, which tells the files of this claim from those of any other.
    probe: PlainName,
    /// The directory was made by this job.
    made: bool,
    /// The claim file, with this process's lock on it, until the claim is given back.
    lock: Option<File>,
}

impl OutputDirectory {
    /// Claims a directory. With `overwrite`, what is in it is moved aside and comes back if the job fails. What a process
    /// that has died had claimed is put in order first. With `sync`, the claim survives a power cut.
    ///
    /// # Errors
    /// Whatever makes the directory unusable, before any task starts.
    pub(crate) fn claim(path: &Path, overwrite: bool, sync: bool, nonce: &str) -> Result<Self, OutputError> {
        let path = std::path::absolute(path).map_err(OutputError::io("resolve", path))?;
        // What a link names is claimed, and the link stays.
        let path = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() && path.is_dir() => {
                // Whoever made the link chose the directory.
                let ours = folder::refuse_foreign(&path, &found, true).map_err(io::Error::from);
                ours.map_err(OutputError::io("use", &path))?;
                fs::canonicalize(&path).map_err(OutputError::io("resolve", &path))?
            }
            Ok(found) if found.is_symlink() && is_missing(&path) => {
                return Err(OutputError::DanglingLink { path });
            }
            Ok(found) if !found.is_dir() => return Err(OutputError::NotADirectory { path }),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OutputError::io("look at", &path)(error));
            }
            _ => path,
        };
        if let Ok(whole) = fs::canonicalize(&path) {
            if whole.parent().is_none() {
                return Err(OutputError::Root { path });
            }
            if let Some(what) = overwrite.then(|| protected::why(&whole)).flatten() {
                return Err(OutputError::Protected { path, what });
            }
        }
        for _ in 0..TAKE_OVERS_MAX {
            match Self::claim_once(&path, overwrite, sync, nonce) {
                Err(OutputError::Busy { .. }) if claim::take_over(&path) => {}
                claimed => return claimed,
            }
        }
        Err(busy(&Folder::open(&path).map_err(OutputError::io("open", &path))?))
    }

    fn claim_once(path: &Path, overwrite: bool, sync: bool, nonce: &str) -> Result<Self, OutputError> {
        let made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(OutputError::io("create", path)(error)),
        };
        let claimed = Self::claim_made(path, made, overwrite, sync, nonce);
        if made && claimed.is_err() {
            // Only an empty directory goes: what is in it is somebody else's.
            let _ = fs::remove_dir(path);
        }
        claimed
    }

    fn claim_made(
        path: &Path,
        made: bool,
        overwrite: bool,
        sync: bool,
        nonce: &str,
    ) -> Result<Self, OutputError> {
        // By now it is no link, and must not have become one.
        let opened = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Folder::open(parent).and_then(|parent| parent.folder(name)),
            _ => Folder::open(path),
        };
        let folder = opened.map_err(OutputError::io("open", path))?;
        if !made {
            folder.refuse_foreign(true).map_err(OutputError::io("use", path))?;
        }
        if !made {
            refuse_untouched(&folder, overwrite)?;
        }
        let named = format!("{}{nonce}", PROBE).parse().map_err(io::Error::other);
        let probe: PlainName = named.map_err(OutputError::io("name the claim of", path))?;
        let (temporary, lock) = mark(&folder, &probe, made, sync)?;
        let claimed = Self { folder, temporary, probe, made, lock: Some(lock) };
        claim::sweep(&claimed.folder);
        let cleared = replaceable(&claimed.folder, overwrite).and_then(|there| match there.is_empty() {
            true => Ok(()),
            false => claimed.move_aside(&there),
        });
        match cleared {
            Ok(()) => Ok(claimed),
            Err(error) => {
                claimed.undo(&Published::Nothing);
                Err(error)
            }
        }
    }

    /// Moves what is in the directory into a folder inside it: the directory itself stays, be it a mount, a link's, or
    /// root's.
    fn move_aside(&self, contents: &[OsString]) -> Result<(), OutputError> {
        let aside = self.aside();
        let made = self.folder.make_folder(&aside);
        let made = made.map_err(OutputError::io("create", &self.folder.path(&aside)))?;
        // It says that the rest is complete, which is no longer so.
        for name in success_first(contents.to_vec()) {
            let moved = self.folder.rename(&name, &made, &name);
            moved.map_err(OutputError::io("move aside", &self.folder.path(&name)))?;
        }
        Ok(())
    }

    /// The claim of a submission, to be finished or abandoned by another process than the one that made it: that of
    /// `job` until it ends, if one is named.
    ///
    /// # Errors
    /// A directory that this process does not see, that is another user's, or in which the claim is not or not free.
    pub(crate) fn adopt(submission: &Submission, job: Option<JobId>) -> Result<Self, OutputError> {
        let (path, probe) = (submission.output.to_path(), submission.output_probe.clone());
        let adopting = || {
            if !path.is_absolute() || !probe.as_str().starts_with(PROBE) {
                let text = format!("no claim {probe} can be in {}", submission.output);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            let folder = Folder::open(path)?;
            folder.refuse_foreign(true)?;
            let temporary = folder.folder(TEMPORARY)?;
            temporary.refuse_shared()?;
            let made = submission.output_made;
            let lock = claim::hold(&temporary, &probe, made, job)?;
            Ok(Self { folder, temporary, probe, made, lock: Some(lock) })
        };
        adopting().map_err(OutputError::io("take over the claim on", path))
    }

    /// The name of its claim, by which whoever sees the directory knows it.
    pub(crate) fn probe(&self) -> &PlainName {
        &self.probe
    }

    /// Whether it was made for the job.
    pub(crate) fn is_made(&self) -> bool {
        self.made
    }

    fn nonce(&self) -> &str {
        nonce_of(&self.probe)
    }

    /// Name of `_temporary` before anybody sees it, and when it is nobody's any more.
    fn retired(&self) -> String {
        format!("{RETIRED}{}", self.nonce())
    }

    /// Name of the folder where what is overwritten waits for the end of the job.
    fn aside(&self) -> String {
        format!("{REPLACED}{}", self.nonce())
    }

    /// What becomes of parts that are sent here.
    ///
    /// # Errors
    /// A process that can open nothing more.
    pub(crate) fn parts(&self, sync: bool) -> io::Result<Parts> {
        let folder = self.temporary.try_clone()?;
        Ok(Parts { name: self.probe.clone(), folder: Arc::new(folder), sync })
    }

    /// The directory, absolute.
    #[must_use]
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path("")
    }

    /// Takes the claim for this process. A submitter and a master may both find that they have to close an output;
    /// the first one does, and the other one touches nothing: by then the directory may belong to somebody else.
    fn take_claim(&self, how: &str) -> Result<(), OutputError> {
        let closing = format!("{how}{}", self.nonce());
        let taken = self.temporary.rename(self.probe.as_str(), &self.temporary, closing);
        taken.map_err(OutputError::io("close the output with", &self.temporary.path(self.probe.as_str())))
    }
}

/// Names of which that of `_SUCCESS` comes first.
fn success_first(mut names: Vec<OsString>) -> Vec<OsString> {
    names.sort_by_key(|name| name != SUCCESS);
    names
}

/// Whether nothing is there, whatever links lead to it.
fn is_missing(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// What is in an output directory, but for claims.
fn contents(folder: &Folder) -> Result<Vec<OsString>, OutputError> {
    let mut names = folder.names().map_err(OutputError::io("list", &folder.path("")))?;
    names.retain(|name| name != TEMPORARY && !name.as_encoded_bytes().starts_with(RETIRED.as_bytes()));
    Ok(names)
}

/// What is in an output directory, for it to be replaced.
///
/// # Errors
/// A directory that is not empty without `overwrite`, and with it one that holds what is no output of a job.
fn replaceable(folder: &Folder, overwrite: bool) -> Result<Vec<OsString>, OutputError> {
    let there = contents(folder)?;
    match there.is_empty() {
        true => {}
        false if !overwrite => return Err(OutputError::NotEmpty { path: folder.path("") }),
        false => protected::refuse_other(folder, &there)?,
    }
    Ok(there)
}

/// Refuses what is not to be replaced without touching it. While somebody else claims the directory, what is seen in it may
/// be half moved aside: then only the claim itself tells.
///
/// # Errors
/// As `replaceable`.
fn refuse_untouched(folder: &Folder, overwrite: bool) -> Result<(), OutputError> {
    let seen = || match folder.look(TEMPORARY) {
        Ok(_) => None,
        Err(_) => folder.modified().ok(),
    };
    let before = seen();
    match replaceable(folder, overwrite) {
        Err(error) if before.is_some() && before == seen() => Err(error),
        _ => Ok(()),
    }
}

/// Makes `_temporary` with the claim in it, at once, which also shows that files can be written here.
fn mark(folder: &Folder, probe: &PlainName, made: bool, sync: bool) -> Result<(Folder, File), OutputError> {
    let retired = format!("{RETIRED}{}", nonce_of(probe));
    let made_folder = folder.make_folder(&retired);
    let temporary = made_folder.map_err(OutputError::io("create", &folder.path(&retired)))?;
    let signed = claim::sign(&temporary, probe, made, sync);
    let signed = signed.map_err(OutputError::io("write", &temporary.path(probe.as_str())));
    let marked = signed.and_then(|lock| {
        use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty};
        // Onto an empty folder too, which no claim is.
        match folder.rename(&retired, folder, TEMPORARY) {
            Ok(()) => Ok(lock),
            Err(error) if matches!(error.kind(), DirectoryNotEmpty | AlreadyExists) => Err(busy(folder)),
            Err(error) => Err(OutputError::io("create", &folder.path(TEMPORARY))(error)),
        }
    });
    match marked {
        Ok(lock) => Ok((temporary.named(folder.path(TEMPORARY)), lock)),
        Err(error) => {
            let _ = remove_retrying(|| folder.remove_tree(&retired));
            Err(error)
        }
    }
}

fn busy(folder: &Folder) -> OutputError {
    let by = claim::read(folder).map_or_else(|| "of an unknown owner".to_owned(), |claim| claim.to_string());
    OutputError::Busy { path: folder.path(""), by }
}

#[cfg(test)]
mod tests;
