//! Who has claimed an output directory, and what happens to the claim of the dead.
//!
//! A claim is the folder `_temporary` with one file in it that names its owner: host, boot, process, and when that
//! began. Whoever has the claim holds a lock on that file, which goes with the process however it dies. So a claim whose
//! lock is free, and whose owner does not live, belongs to nobody, and the next job takes it over; whoever gets the lock
//! for itself alone does so, and nobody else. A claim that tells nothing of its owner, or lies where there are no locks,
//! stays.

use super::undo::Published;
use super::{OutputDirectory, RETIRED, SUCCESS};
use crate::owner::Owner;
use crate::removal::remove_retrying;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::commit::{PROBE, TEMPORARY};
use gristmill_worker::folder::{Folder, PlainName};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How the claim file of a job is called while the output is finished, or abandoned; its nonce follows.
pub(super) const CLOSING: &str = "closing-";
pub(super) const ABANDONING: &str = "abandoning-";

/// Longest claim file, bytes.
const CLAIM_BYTES_MAX: u64 = 4096;

/// How long a folder may be there before its claim is signed, which takes no time to speak of.
const UNSIGNED_MAX: Duration = Duration::from_secs(3600);

/// What a claim file says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Claim {
    /// `None` where a process cannot tell about itself.
    owner: Option<Owner>,
    /// The job, once the master has it.
    job: Option<JobId>,
    /// The directory was made for it.
    made: bool,
}

impl Claim {
    /// True if its owner is dead, once nobody holds the lock. A master holds none for the jobs that it has: it may have many.
    fn is_of_dead(&self, here: &Owner) -> bool {
        let is_dead = |owner: &Owner| match self.job.is_some() && owner.boot == here.boot {
            true => owner.is_dead_without_lock(here),
            false => owner.is_dead(here),
        };
        self.owner.as_ref().is_some_and(is_dead)
    }
}

impl std::fmt::Display for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.owner {
            Some(owner) => write!(f, "claimed by {owner}")?,
            None => f.write_str("claimed by a process without name")?,
        }
        self.job.map_or(Ok(()), |job| write!(f, " for {job}"))
    }
}

/// Writes a new claim file of this process and takes its lock. With `sync`, it survives a power cut.
pub(super) fn sign(folder: &Folder, name: &PlainName, made: bool, sync: bool) -> io::Result<File> {
    let claim = Claim { owner: Owner::current().ok(), job: None, made };
    let mut file = folder.create(name.as_str())?;
    // Where there are no locks nobody takes a claim over either.
    let _ = file.try_lock_shared();
    file.write_all(&serde_json::to_vec(&claim)?)?;
    if sync {
        file.sync_data()?;
    }
    Ok(file)
}

/// Holds a claim file that another process of this user has written, which may go now. If a job is named, this process
/// becomes the owner.
///
/// # Errors
/// There is no such file, it is the claim of another job, or somebody is taking it over.
pub(super) fn hold(folder: &Folder, name: &PlainName, made: bool, job: Option<JobId>) -> io::Result<File> {
    let mut file = folder.open_own(name.as_str())?;
    if let Err(error @ TryLockError::WouldBlock) = file.try_lock_shared() {
        return Err(error.into());
    }
    if job.is_some() {
        let of = parse(&mut file).ok().and_then(|claim| claim.job);
        if let Some(of) = of.filter(|of| Some(*of) != job) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("it is that of {of}")));
        }
        let text = serde_json::to_vec(&Claim { owner: Owner::current().ok(), job, made })?;
        // Read while it is written, it tells nothing, and the claim stays.
        let written =
            file.rewind().and_then(|()| file.write_all(&text)).and_then(|()| file.set_len(text.len() as u64));
        if let Err(error) = written {
            tracing::debug!(path = %folder.path(name.as_str()).display(), %error, "the claim keeps its owner's name");
        }
    }
    Ok(file)
}

/// What the claim on a directory says of its owner, if it can be read.
pub(super) fn read(directory: &Folder) -> Option<Claim> {
    let temporary = directory.folder(TEMPORARY).ok()?;
    let (name, _, _) = find(&temporary).ok()??;
    parse(&mut temporary.open_file(name).ok()?).ok()
}

/// The claim file: its name, what that begins with, and its nonce.
fn find(temporary: &Folder) -> io::Result<Option<(OsString, &'static str, String)>> {
    for name in temporary.names()? {
        if let Some((begin, nonce)) = name.to_str().and_then(split_name) {
            let nonce = nonce.to_owned();
            return Ok(Some((name, begin, nonce)));
        }
    }
    Ok(None)
}

/// What the name of a claim file begins with, and its nonce.
fn split_name(name: &str) -> Option<(&'static str, &str)> {
    [PROBE, CLOSING, ABANDONING].into_iter().find_map(|begin| {
        // What attempts build is called like the claim with their names behind, which have a dot.
        let nonce = name.strip_prefix(begin).filter(|nonce| !nonce.contains('.'))?;
        Some((begin, nonce))
    })
}

/// Whether a file in `_temporary` is a claim.
pub(super) fn is_claim(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| split_name(name).is_some())
}

fn parse(file: &mut File) -> io::Result<Claim> {
    let mut text = Vec::new();
    file.rewind()?;
    file.take(CLAIM_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Ends the claim of a dead process: what it had finished stays, what it had not is undone. Answers whether the claim is
/// gone; `false` if its owner may be alive.
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

/// Removes what is left of claims that dead processes had given back, or had not made yet.
pub(super) fn sweep(directory: &Folder) {
    let names = directory.names().into_iter().flatten();
    for name in names.filter(|name| name.as_encoded_bytes().starts_with(RETIRED.as_bytes())) {
        if directory.folder(&name).and_then(|retired| is_left(&retired)).unwrap_or(false)
            && let Err(error) = remove_retrying(|| directory.remove_tree(&name))
        {
            tracing::warn!(path = %directory.path(&name).display(), %error, "could not be removed");
        }
    }
}

/// Whether nobody holds the claim in a folder, and its owner is dead; or nobody has signed it for long.
fn is_left(retired: &Folder) -> io::Result<bool> {
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

fn try_take_over(directory: &Path) -> io::Result<bool> {
    let folder = Folder::open(directory)?;
    folder.refuse_foreign(true)?;
    let temporary = folder.folder(TEMPORARY)?;
    temporary.refuse_shared()?;
    let Some((name, begin, nonce)) = find(&temporary)? else { return Ok(false) };
    let mut file = temporary.open_own(&name)?;
    if file.try_lock().is_err() {
        return Ok(false);
    }
    // With the lock it is ours alone, unless somebody was faster and it is gone already.
    if temporary.look(&name)?.ino() != file.metadata()?.ino() {
        return Ok(true);
    }
    let claim = parse(&mut file)?;
    let here = Owner::current()?;
    if !claim.is_of_dead(&here) {
        return Ok(false);
    }
    tracing::info!(path = %directory.display(), %claim, "took over the output directory of a dead process");
    let complete = begin == CLOSING && folder.look(SUCCESS).is_ok();
    let probe = format!("{PROBE}{nonce}").parse().map_err(io::Error::other)?;
    let dead = OutputDirectory { folder, temporary, probe, made: claim.made, lock: Some(file) };
    if complete {
        drop(dead.clear_away());
    } else {
        dead.undo(&if begin == CLOSING { Published::Unknown } else { Published::Nothing });
    }
    Ok(true)
}
