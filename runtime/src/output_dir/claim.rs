//! Claims on output directories, and the recovery of claims of dead processes.
//!
//! A claim is the directory `_temporary` with one file that names its owner: host, boot, process and its start time.
//! The owner holds a lock on that file, which ends with the process however it dies. If the lock is free and the owner
//! is not alive, the claim is abandoned and the next job takes it over; only the process that gets the exclusive lock
//! does so. A claim that does not identify its owner, or is on a file system without locks, stays.

use super::SUCCESS;
use super::claimed_directory::{OutputDirectory, Published, RETIRED};
use crate::owner::{Owner, claimed_by};
use crate::removal::remove_retrying;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::commit::{PROBE, TEMPORARY};
use gristmill_worker::directory::{Directory, PlainName};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Prefix of the claim file's name while the output is finished, or abandoned; its nonce follows.
pub(super) const CLOSING: &str = "closing-";
pub(super) const ABANDONING: &str = "abandoning-";

/// Longest claim file, bytes.
const CLAIM_BYTES_MAX: u64 = 4096;

/// Age from which a directory without a signed claim is abandoned; signing takes a moment.
const UNSIGNED_MAX: Duration = Duration::from_secs(3600);

/// Content of a claim file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DirectoryClaim {
    /// `None` if the process cannot identify itself.
    owner: Option<Owner>,
    /// The job, once the master has it.
    job: Option<JobId>,
    /// True if the directory was created for it.
    made: bool,
}

impl DirectoryClaim {
    /// True if its owner is dead, provided that the lock is free. A master holds no lock for its jobs, because it may
    /// have many.
    fn is_of_dead(&self, here: &Owner) -> bool {
        let is_dead = |owner: &Owner| match self.job.is_some() && owner.boot == here.boot {
            true => owner.is_dead_without_lock(here),
            false => owner.is_dead(here),
        };
        self.owner.as_ref().is_some_and(is_dead)
    }
}

impl std::fmt::Display for DirectoryClaim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&claimed_by(self.owner.as_ref(), self.job))
    }
}

/// Writes a new claim file of this process and locks it. With `sync`, it survives a power failure.
pub(super) fn sign(directory: &Directory, name: &PlainName, made: bool, sync: bool) -> io::Result<File> {
    let claim = DirectoryClaim { owner: Owner::current().ok(), job: None, made };
    let mut file = directory.create(name.as_str())?;
    // On a file system without locks, no process takes a claim over.
    let _ = file.try_lock_shared();
    file.write_all(&serde_json::to_vec(&claim)?)?;
    if sync {
        file.sync_data()?;
    }
    Ok(file)
}

/// Holds a claim file written by another process of this user, which may then end. If a job is named, this process
/// becomes the owner.
///
/// # Errors
/// No such file, the claim of another job, or a claim that is being taken over.
pub(super) fn hold(
    directory: &Directory,
    name: &PlainName,
    made: bool,
    job: Option<JobId>,
) -> io::Result<File> {
    let mut file = directory.open_own(name.as_str())?;
    if let Err(error @ TryLockError::WouldBlock) = file.try_lock_shared() {
        return Err(error.into());
    }
    if job.is_some() {
        let of = parse(&mut file).ok().and_then(|claim| claim.job);
        if let Some(of) = of.filter(|of| Some(*of) != job) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("it is that of {of}")));
        }
        let text = serde_json::to_vec(&DirectoryClaim { owner: Owner::current().ok(), job, made })?;
        // A reader of a half-written file cannot identify the owner, so the claim stays.
        let written =
            file.rewind().and_then(|()| file.write_all(&text)).and_then(|()| file.set_len(text.len() as u64));
        if let Err(error) = written {
            tracing::debug!(path = %directory.path(name.as_str()).display(), %error, "the claim keeps its owner's name");
        }
    }
    Ok(file)
}

/// The claim on a directory, if it can be read.
pub(super) fn read(directory: &Directory) -> Option<DirectoryClaim> {
    let temporary = directory.directory(TEMPORARY).ok()?;
    let (name, _, _) = find(&temporary).ok()??;
    parse(&mut temporary.open_file(name).ok()?).ok()
}

/// The claim file: its name, the prefix of its name, and its nonce.
fn find(temporary: &Directory) -> io::Result<Option<(OsString, &'static str, String)>> {
    for name in temporary.names()? {
        if let Some((begin, nonce)) = name.to_str().and_then(split_name) {
            let nonce = nonce.to_owned();
            return Ok(Some((name, begin, nonce)));
        }
    }
    Ok(None)
}

/// Prefix and nonce in the name of a claim file.
fn split_name(name: &str) -> Option<(&'static str, &str)> {
    [PROBE, CLOSING, ABANDONING].into_iter().find_map(|begin| {
        // Files built by attempts have the name of the claim as a prefix, followed by a suffix with a dot.
        let nonce = name.strip_prefix(begin).filter(|nonce| !nonce.contains('.'))?;
        Some((begin, nonce))
    })
}

/// True if a file in `_temporary` is a claim.
pub(super) fn is_claim(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| split_name(name).is_some())
}

fn parse(file: &mut File) -> io::Result<DirectoryClaim> {
    let mut text = Vec::new();
    file.rewind()?;
    file.take(CLAIM_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Ends the claim of a dead process: a finished output stays, any other is undone. Returns true if the claim is gone,
/// and false if its owner may be alive.
pub(super) fn take_over(directory: &Path) -> bool {
    match try_take_over(directory) {
        Ok(gone) => gone,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => {
            tracing::debug!(path = %directory.display(), %error, "the claim is not taken over");
            false
        }
    }
}

/// Removes claims that dead processes had given back, or had not completed.
pub(super) fn sweep(directory: &Directory) {
    let names = directory.names().into_iter().flatten();
    for name in names.filter(|name| name.as_encoded_bytes().starts_with(RETIRED.as_bytes())) {
        if directory.directory(&name).and_then(|retired| is_left(&retired)).unwrap_or(false)
            && let Err(error) = remove_retrying(|| directory.remove_tree(&name))
        {
            tracing::warn!(path = %directory.path(&name).display(), %error, "could not be removed");
        }
    }
}

/// True if the lock on the claim in a directory is free and its owner is dead, or if no claim was signed for long.
fn is_left(retired: &Directory) -> io::Result<bool> {
    retired.refuse_shared()?;
    let is_old =
        |changed: SystemTime| UNSIGNED_MAX < SystemTime::now().duration_since(changed).unwrap_or_default();
    let Some((name, _, _)) = find(retired)? else {
        return Ok(is_old(retired.modified()?) && retired.names()?.is_empty());
    };
    let mut file = retired.open_own(&name)?;
    if file.try_lock().is_err() {
        return Ok(false);
    }
    let Ok(claim) = parse(&mut file) else { return Ok(is_old(file.metadata()?.modified()?)) };
    let here = Owner::current()?;
    Ok(claim.is_of_dead(&here))
}

fn try_take_over(path: &Path) -> io::Result<bool> {
    let directory = Directory::open(path)?;
    directory.refuse_foreign(true)?;
    let temporary = directory.directory(TEMPORARY)?;
    temporary.refuse_shared()?;
    let Some((name, begin, nonce)) = find(&temporary)? else { return Ok(false) };
    let mut file = temporary.open_own(&name)?;
    if file.try_lock().is_err() {
        return Ok(false);
    }
    // With the lock it is exclusively held here, unless another process was faster and has removed it.
    if temporary.entry_metadata(&name)?.ino() != file.metadata()?.ino() {
        return Ok(true);
    }
    let claim = parse(&mut file)?;
    let here = Owner::current()?;
    if !claim.is_of_dead(&here) {
        return Ok(false);
    }
    tracing::info!(path = %path.display(), %claim, "took over the output directory of a dead process");
    let complete = begin == CLOSING && directory.entry_metadata(SUCCESS).is_ok();
    let probe = format!("{PROBE}{nonce}").parse().map_err(io::Error::other)?;
    let dead = OutputDirectory { directory, temporary, probe, made: claim.made, lock: Some(file) };
    if complete {
        drop(dead.clear_away());
    } else {
        dead.undo(&if begin == CLOSING { Published::Unknown } else { Published::Nothing });
    }
    Ok(true)
}
