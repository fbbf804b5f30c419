//! The output of a job from its claim to `_SUCCESS`, or to its removal: a directory here, a prefix of an object store
//! in `store`.
//!
//! `DIR/_temporary` is claimed exclusively (`claim`), so two jobs can never write into one directory. Attempts build
//! parts there, each in its own file. The process that closes the output publishes those that count, and writes
//! `_SUCCESS` last. The files of a divided reduce are joined to one part before. A lost worker that continues to run changes no published part. A failed job leaves no files and, if
//! the directory was created for it, no directory. Both directories are held open and must be this user's (the output
//! directory may be root's), and all operations in them use plain names.

mod claim;
mod claimed;
mod claimed_directory;
mod error;
mod joined_part;
mod left;
mod part_file;
mod protected;
mod publish;
mod store;
mod success;
mod undo;

pub(crate) use claimed::{ClaimedOutput, check_output, refuse_inputs};
pub(crate) use claimed_directory::OutputDirectory;
use claimed_directory::{Published, REPLACED, RETIRED, success_first};
pub use error::OutputError;
pub(crate) use joined_part::join_parts;
pub use protected::why_kept;
pub use success::{BAD_RECORDS, SUCCESS, Success};

use crate::api::Submission;
use crate::removal::remove_retrying;
use crate::submitter::Parts;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::commit::{PROBE, TEMPORARY, nonce_of};
use gristmill_worker::directory::{self, Directory, PlainName};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of claims of dead processes taken over in a row.
const TAKE_OVERS_MAX: u32 = 4;

impl OutputDirectory {
    /// Claims a directory. With `overwrite`, its content is moved aside and comes back if the job fails. The remains of
    /// a dead process's claim are cleaned up first. With `sync`, the claim survives a power failure.
    ///
    /// # Errors
    /// Everything that makes the directory unusable, before any task starts.
    pub(crate) fn claim(path: &Path, overwrite: bool, sync: bool, nonce: &str) -> Result<Self, OutputError> {
        let path = std::path::absolute(path).map_err(OutputError::io("resolve", path))?;
        // The target of a link is claimed, and the link stays.
        let path = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() && path.is_dir() => {
                // The owner of the link chose the directory.
                let ours = directory::refuse_foreign(&path, &found, true).map_err(io::Error::from);
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
        Err(busy(&Directory::open(&path).map_err(OutputError::io("open", &path))?))
    }

    fn claim_once(path: &Path, overwrite: bool, sync: bool, nonce: &str) -> Result<Self, OutputError> {
        let made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(OutputError::io("create", path)(error)),
        };
        let claimed = Self::claim_made(path, made, overwrite, sync, nonce);
        if made && claimed.is_err() {
            // Only an empty directory is removed: its content belongs to another user.
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
        // It was no link before, and must not have become one.
        let opened = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Directory::open(parent).and_then(|parent| parent.directory(name)),
            _ => Directory::open(path),
        };
        let directory = opened.map_err(OutputError::io("open", path))?;
        if !made {
            directory.refuse_foreign(true).map_err(OutputError::io("use", path))?;
        }
        if !made {
            refuse_untouched(&directory, overwrite)?;
        }
        let named = format!("{}{nonce}", PROBE).parse().map_err(io::Error::other);
        let probe: PlainName = named.map_err(OutputError::io("name the claim of", path))?;
        let (temporary, lock) = mark(&directory, &probe, made, sync)?;
        let claimed = Self { directory, temporary, probe, made, lock: Some(lock) };
        claim::sweep(&claimed.directory);
        let cleared = replaceable(&claimed.directory, overwrite).and_then(|there| match there.is_empty() {
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

    /// Moves the content of the directory into a subdirectory. The directory itself stays, because it may be a mount,
    /// the target of a link, or root's.
    fn move_aside(&self, contents: &[OsString]) -> Result<(), OutputError> {
        let aside = self.aside();
        let made = self.directory.make_directory(&aside);
        let made = made.map_err(OutputError::io("create", &self.directory.path(&aside)))?;
        // `_SUCCESS` comes first: it marks the rest as complete, which does not hold any more.
        for name in success_first(contents.to_vec()) {
            let moved = self.directory.rename(&name, &made, &name);
            moved.map_err(OutputError::io("move aside", &self.directory.path(&name)))?;
        }
        Ok(())
    }

    /// Adopts the claim of a submission, to be finished or abandoned by another process than the one that made it. If
    /// `job` is given, it becomes the owner until it ends.
    ///
    /// # Errors
    /// A directory that this process cannot see, that is another user's, or whose claim does not exist or is not free.
    pub(crate) fn adopt(submission: &Submission, job: Option<JobId>) -> Result<Self, OutputError> {
        let (path, probe) = (submission.output.to_path(), submission.output_probe.clone());
        let adopting = || {
            if !path.is_absolute() || !probe.as_str().starts_with(PROBE) {
                let text = format!("no claim {probe} can be in {}", submission.output);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            let directory = Directory::open(path)?;
            directory.refuse_foreign(true)?;
            let temporary = directory.directory(TEMPORARY)?;
            temporary.refuse_shared()?;
            let made = submission.output_made;
            let lock = claim::hold(&temporary, &probe, made, job)?;
            Ok(Self { directory, temporary, probe, made, lock: Some(lock) })
        };
        adopting().map_err(OutputError::io("take over the claim on", path))
    }

    /// Name of its claim, by which a process identifies the directory.
    pub(crate) fn probe(&self) -> &PlainName {
        &self.probe
    }

    /// True if it was created for the job.
    pub(crate) fn is_made(&self) -> bool {
        self.made
    }

    fn nonce(&self) -> &str {
        nonce_of(&self.probe)
    }

    /// Name of `_temporary` before it is visible, and after the claim has been given back.
    fn retired(&self) -> String {
        format!("{RETIRED}{}", self.nonce())
    }

    /// Name of the directory in which overwritten files wait for the end of the job.
    fn aside(&self) -> String {
        format!("{REPLACED}{}", self.nonce())
    }

    /// Receiver of parts that are sent to this process.
    ///
    /// # Errors
    /// A process without free file descriptors.
    pub(crate) fn parts(&self, sync: bool) -> io::Result<Parts> {
        let directory = self.temporary.try_clone()?;
        Ok(Parts { name: self.probe.clone(), directory: Arc::new(directory), sync })
    }

    /// The absolute directory.
    #[must_use]
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path("")
    }

    /// Takes the claim for this process. Both a submitter and a master may decide to close an output. The first one
    /// closes it, and the other one touches nothing: by then the directory may belong to another job.
    fn take_claim(&self, how: &str) -> Result<(), OutputError> {
        let closing = format!("{how}{}", self.nonce());
        let taken = self.temporary.rename(self.probe.as_str(), &self.temporary, closing);
        taken.map_err(OutputError::io("close the output with", &self.temporary.path(self.probe.as_str())))
    }
}

/// True if the path does not exist; links are not followed.
fn is_missing(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Content of an output directory, without claims.
fn contents(directory: &Directory) -> Result<Vec<OsString>, OutputError> {
    let mut names = directory.names().map_err(OutputError::io("list", &directory.path("")))?;
    names.retain(|name| name != TEMPORARY && !name.as_encoded_bytes().starts_with(RETIRED.as_bytes()));
    Ok(names)
}

/// Content of an output directory that is to be replaced.
///
/// # Errors
/// A directory that is not empty without `overwrite`, or one with files that are not the output of a job.
fn replaceable(directory: &Directory, overwrite: bool) -> Result<Vec<OsString>, OutputError> {
    let there = contents(directory)?;
    match there.is_empty() {
        true => {}
        false if !overwrite => return Err(OutputError::NotEmpty { path: directory.path("") }),
        false => protected::refuse_other(directory, &there)?,
    }
    Ok(there)
}

/// Rejects content that must not be replaced, without touching it. If another job claims the directory, its content may
/// be half moved aside; the claim then decides alone.
///
/// # Errors
/// As `replaceable`.
fn refuse_untouched(directory: &Directory, overwrite: bool) -> Result<(), OutputError> {
    let seen = || match directory.entry_metadata(TEMPORARY) {
        Ok(_) => None,
        Err(_) => directory.modified().ok(),
    };
    let before = seen();
    match replaceable(directory, overwrite) {
        Err(error) if before.is_some() && before == seen() => Err(error),
        _ => Ok(()),
    }
}

/// Creates `_temporary` with the claim in it atomically, which also shows that files can be written here.
fn mark(
    directory: &Directory,
    probe: &PlainName,
    made: bool,
    sync: bool,
) -> Result<(Directory, File), OutputError> {
    let retired = format!("{RETIRED}{}", nonce_of(probe));
    let made_directory = directory.make_directory(&retired);
    let temporary = made_directory.map_err(OutputError::io("create", &directory.path(&retired)))?;
    let signed = claim::sign(&temporary, probe, made, sync);
    let signed = signed.map_err(OutputError::io("write", &temporary.path(probe.as_str())));
    let marked = signed.and_then(|lock| {
        use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty};
        // This also replaces an empty directory, which is no claim.
        match directory.rename(&retired, directory, TEMPORARY) {
            Ok(()) => Ok(lock),
            Err(error) if matches!(error.kind(), DirectoryNotEmpty | AlreadyExists) => Err(busy(directory)),
            Err(error) => Err(OutputError::io("create", &directory.path(TEMPORARY))(error)),
        }
    });
    match marked {
        Ok(lock) => Ok((temporary.named(directory.path(TEMPORARY)), lock)),
        Err(error) => {
            let _ = remove_retrying(|| directory.remove_tree(&retired));
            Err(error)
        }
    }
}

fn busy(directory: &Directory) -> OutputError {
    let by =
        claim::read(directory).map_or_else(|| "of an unknown owner".to_owned(), |claim| claim.to_string());
    OutputError::Busy { path: directory.path(""), by }
}

#[cfg(test)]
mod tests;
