//! Private directories of this process for temporary data, and the removal of those whose owners have died.
//!
//! Each such directory holds a file that names its owner: host, boot, process and its start time. The users of the
//! directory, the owner and its child processes, hold a lock on that file, which ends with the last of them however
//! they die. If the lock is free and the owner is not alive, the directory is abandoned, and a later start removes it.
//! A directory without such a file belongs to another program, or its owner could not lock it, and stays. An empty
//! directory, or an empty file in it, is removed if it has not been modified for long: it is left from an interrupted
//! start, or a power failure. An interrupted removal leaves a directory whose name ends with `.gone`.

use crate::owner::Owner;
use crate::removal::remove_retrying;
use gristmill_worker::http::Secret;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of the names of all such directories.
pub(crate) const PREFIX: &str = "gristmill-";

/// Name of the file that names the owner.
const OWNER: &str = "owner";

/// Name of that file until it is written.
const OWNER_UNWRITTEN: &str = "owner.new";

/// Suffix of the names of directories until they are signed.
const UNNAMED: &str = ".new";

/// Extension of the names of directories that are about to be removed, and have nothing but the owner file.
const GONE: &str = "gone";

/// Longest time from the creation of a directory until it is signed, on the slowest of disks.
const SIGNING_MAX: Duration = Duration::from_secs(3600);

/// Name of a file that keeps an unsigned directory from being empty.
const UNOWNED: &str = "unowned";

/// Longest owner file, bytes.
const OWNER_BYTES_MAX: u64 = 4096;

/// Number of entries of a place that are searched for directories to sweep.
const ENTRIES_MAX: usize = 100_000;

/// A directory in the system's directory for temporary files, removed when dropped.
pub struct ScratchDirectory {
    path: PathBuf,
    hold: Option<DirectoryLock>,
}

impl ScratchDirectory {
    /// Creates one whose name contains its purpose, after the remains of dead processes there have been removed.
    ///
    /// # Errors
    /// A directory that cannot be created.
    pub fn new(what: &str) -> io::Result<Self> {
        let place = std::env::temp_dir();
        sweep(&place);
        let path = place.join(name(what, &Secret::generate().map_err(io::Error::other)?));
        let hold = make(&path)?;
        Ok(Self { path, hold: Some(hold) })
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // Some file systems keep an open file under another name, and with it the directory.
        drop(self.hold.take());
        if let Err(error) = remove(&self.path) {
            tracing::warn!(directory = %self.path.display(), %error, "a temporary directory could not be removed");
        }
    }
}

/// Keeps a directory from being swept as long as this lock, or one of another process, exists.
#[derive(Debug, Default)]
pub struct DirectoryLock(
    #[expect(dead_code, reason = "it is the open file that holds the lock")] Option<File>,
);

/// Creates a directory, 0700, that belongs to this process.
///
/// # Errors
/// A directory that cannot be created, or already exists.
pub(crate) fn make(directory: &Path) -> io::Result<DirectoryLock> {
    // It is signed before it gets its final name. An empty one of that name is therefore one whose removal was
    // interrupted.
    let mut unnamed = directory.as_os_str().to_owned();
    unnamed.push(UNNAMED);
    let unnamed = PathBuf::from(unnamed);
    DirBuilder::new().mode(0o700).create(&unnamed)?;
    let lock = sign(&unnamed).or_else(|error| {
        // Without an owner file it is never swept; everything else works.
        tracing::debug!(directory = %directory.display(), %error, "the directory could not be marked as owned");
        let _ = fs::remove_file(unnamed.join(OWNER));
        File::create(unnamed.join(UNOWNED)).map(|_| None)
    });
    match lock.and_then(|lock| rename_new(&unnamed, directory).map(|()| lock)) {
        Ok(lock) => Ok(DirectoryLock(lock)),
        Err(error) => {
            let _ = remove(&unnamed);
            Err(error)
        }
    }
}

/// Renames a directory, unless the new name exists.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system does not support that flag.
        Err(rustix::io::Errno::INVAL) if !to.exists() => fs::rename(from, to),
        result => Ok(result?),
    }
}

/// Writes the owner file of this process, and takes its lock before other processes can read it.
fn sign(directory: &Path) -> io::Result<Option<File>> {
    let text = serde_json::to_vec(&Owner::current()?)?;
    let built = directory.join(OWNER_UNWRITTEN);
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&built)?;
    // A process that sweeps may hold it for a moment, to see that it is empty.
    file.lock_shared()?;
    // The file is not synced: if its content is lost in a power failure, it is empty.
    file.write_all(&text)?;
    fs::rename(&built, directory.join(OWNER))?;
    Ok(Some(file))
}

/// Keeps a directory of another process from being swept when that process dies.
///
/// # Errors
/// A directory that is being swept because its owner is dead.
pub fn lock_directory(directory: &Path) -> io::Result<DirectoryLock> {
    match open_owner(&directory.join(OWNER)) {
        Ok(file) => match file.try_lock_shared() {
            Err(error @ TryLockError::WouldBlock) => Err(error.into()),
            // Without support for locks no directory is swept.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(DirectoryLock(Some(file))),
        },
        Err(_) => Ok(DirectoryLock(None)),
    }
}

fn open_owner(file: &Path) -> io::Result<File> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(no_link).open(file)
}

/// Removes the directories in a place whose owners have died.
pub(crate) fn sweep(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.take(ENTRIES_MAX).flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            sweep_directory(&entry.path());
        }
    }
}

/// Removes a directory if its owner has died and no other process holds it.
pub(crate) fn sweep_directory(directory: &Path) {
    match try_sweep(directory) {
        Ok(Some(owner)) => {
            tracing::info!(directory = %directory.display(), pid = owner.pid, "removed what a dead process had left");
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(directory = %directory.display(), %error, "not swept"),
    }
}

/// True if a directory has not been modified for so long that no process is about to sign or use it.
fn is_old(about: &Metadata) -> bool {
    about.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| SIGNING_MAX < age)
}

fn is_gone(directory: &Path) -> bool {
    directory.extension().is_some_and(|extension| extension == GONE)
}

/// Removes a directory and returns its owner; `None` if it must stay.
fn try_sweep(directory: &Path) -> io::Result<Option<Owner>> {
    let about = fs::symlink_metadata(directory)?;
    let ours = rustix::process::geteuid().as_raw() == about.uid();
    // Other users cannot write into such a directory, so its content comes from processes of this user.
    if !about.is_dir() || !ours || about.mode() & 0o077 != 0 {
        return Ok(None);
    }
    let here = Owner::current()?;
    // An owner that died while it wrote its file has left it under the other name, locked in the same manner.
    let file = match open_owner(&directory.join(OWNER))
        .or_else(|_| open_owner(&directory.join(OWNER_UNWRITTEN)))
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound && (is_old(&about) || is_gone(directory)) => {
            // The process that removed it was killed before its last step, or the one that created it before its first.
            // If it belongs to another program, that has not used it for long. A non-empty directory stays.
            return fs::remove_dir(directory).map(|()| None);
        }
        opened => opened?,
    };
    if file.try_lock().is_err() {
        return Ok(None);
    }
    let mut text = Vec::new();
    (&file).take(OWNER_BYTES_MAX).read_to_end(&mut text)?;
    if text.is_empty() && is_old(&about) {
        // The content was lost in a power failure, and the lock is free.
        return remove(directory).map(|()| None);
    }
    let owner: Owner = serde_json::from_slice(&text)?;
    if !owner.is_dead(&here) {
        return Ok(None);
    }
    remove(directory)?;
    Ok(Some(owner))
}

/// Removes a directory with its content, the owner file last, so that a later start can continue an interrupted
/// removal.
///
/// # Errors
/// Errors of the file system; a missing directory is not an error.
pub(crate) fn remove(directory: &Path) -> io::Result<()> {
    let mut left = directory.to_owned();
    remove_retrying(|| remove_once(&mut left))
}

/// Removes the directory `left`, which gets its last name before its owner file goes.
fn remove_once(left: &mut PathBuf) -> io::Result<()> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    let entries = match fs::read_dir(&left) {
        Ok(entries) => entries,
        // Another process had begun, and had to leave the rest: some file systems keep files that this one had open.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return gone(fs::remove_dir(left.with_added_extension(GONE)));
        }
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name() == OWNER {
            continue;
        }
        gone(match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        })?;
    }
    // An empty directory of the other name may be about to be used by another program.
    if !is_gone(left) {
        let last = left.with_added_extension(GONE);
        if rename_new(left, &last).is_ok() {
            *left = last;
        }
    }
    gone(fs::remove_file(left.join(OWNER)))?;
    gone(fs::remove_dir(left))
}

/// Unpredictable name of a directory, which other users cannot create first: it contains part of a hash of the secret.
pub(crate) fn name(what: &str, secret: &Secret) -> PathBuf {
    PathBuf::from(format!("{PREFIX}{what}{}", &secret.derive("directory").to_text()[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::SystemTime;

    /// A non-empty directory whose owner was not this process.
    fn left_by(place: &Path, name: &str, change: impl FnOnce(&mut Owner)) -> PathBuf {
        let directory = place.join(name);
        drop(make(&directory).unwrap());
        let mut owner = Owner::current().unwrap();
        change(&mut owner);
        fs::write(directory.join(OWNER), serde_json::to_vec(&owner).unwrap()).unwrap();
        fs::create_dir(directory.join("worker-1-7")).unwrap();
        fs::write(directory.join("worker-1-7/run-0.spill"), "some bytes").unwrap();
        directory
    }

    #[test]
    fn directories_whose_owners_died_before_their_word_had_its_name_are_swept() {
        let place = tempfile::tempdir().unwrap();
        let unsigned = |directory: &Path| {
            fs::rename(directory.join(OWNER), directory.join(OWNER_UNWRITTEN)).unwrap();
        };
        let dead = left_by(place.path(), "gristmill-a", |owner| owner.began_ticks += 1);
        unsigned(&dead);
        let live = place.path().join("gristmill-b");
        let _hold = make(&live).unwrap();
        unsigned(&live);
        sweep(place.path());
        assert!(!dead.exists() && live.exists());
    }

    #[test]
    fn empty_directories_are_swept_when_nobody_has_touched_them_for_long() {
        let place = tempfile::tempdir().unwrap();
        let directories = ["gristmill-a", "gristmill-b.new", "gristmill-c", "gristmill-d", "gristmill-e.new"]
            .map(|name| place.path().join(name));
        for directory in &directories {
            DirBuilder::new().mode(0o700).create(directory).unwrap();
        }
        let [empty, unnamed, full, old, old_unnamed] = directories;
        fs::write(full.join(UNOWNED), "").unwrap();
        for directory in [&full, &old, &old_unnamed] {
            File::open(directory).unwrap().set_modified(SystemTime::now() - 2 * SIGNING_MAX).unwrap();
        }
        sweep(place.path());
        assert!(empty.exists(), "another program may have made it a moment ago, to use it");
        assert!(unnamed.exists() && full.exists());
        assert!(!old.exists() && !old_unnamed.exists(), "the process that made or removed them has died");
    }

    #[test]
    fn directories_whose_word_was_lost_with_the_power_are_swept_when_nobody_holds_them() {
        let place = tempfile::tempdir().unwrap();
        let age = |directory: &Path| {
            fs::write(directory.join(OWNER), "").unwrap();
            File::open(directory).unwrap().set_modified(SystemTime::now() - 2 * SIGNING_MAX).unwrap();
        };
        let [lost, held, young] =
            ["lost", "held", "young"].map(|name| left_by(place.path(), &format!("gristmill-{name}"), |_| {}));
        age(&lost);
        let hold = lock_directory(&held).unwrap();
        age(&held);
        fs::write(young.join(OWNER), "").unwrap();
        sweep(place.path());
        assert!(!lost.exists() && held.exists() && young.exists());
        drop(hold);
        sweep(place.path());
        assert!(!held.exists());
    }

    #[test]
    fn directories_of_the_dead_are_swept() {
        let place = tempfile::tempdir().unwrap();
        // The same process id, but with another start time.
        let used_again = left_by(place.path(), "gristmill-a", |owner| owner.began_ticks += 1);
        let rebooted = left_by(place.path(), "gristmill-b", |owner| owner.boot = "another".to_owned());
        sweep(place.path());
        assert!(!used_again.exists() && !rebooted.exists());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn directories_that_are_held_are_not_swept() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("gristmill-own");
        let held = make(&own).unwrap();
        // Its owner is dead, but a child of it lives.
        let orphaned = left_by(place.path(), "gristmill-orphaned", |owner| owner.began_ticks += 1);
        let child = lock_directory(&orphaned).unwrap();
        sweep(place.path());
        assert!(own.exists() && orphaned.join("worker-1-7/run-0.spill").exists());
        drop(child);
        sweep(place.path());
        assert!(!orphaned.exists(), "no process holds it any more");
        // Without its lock, the living process itself is proof.
        drop(held);
        sweep(place.path());
        assert!(own.exists(), "its owner is this process");
        remove(&own).unwrap();
        assert!(!own.exists());
    }

    #[test]
    fn directories_that_may_be_somebody_elses_are_not_swept() {
        let place = tempfile::tempdir().unwrap();
        let dead = |owner: &mut Owner| owner.began_ticks += 1;
        let elsewhere = left_by(place.path(), "gristmill-elsewhere", |owner| {
            (owner.boot, owner.host) = ("another".to_owned(), "another".to_owned());
        });
        let unsigned = left_by(place.path(), "gristmill-unsigned", dead);
        fs::remove_file(unsigned.join(OWNER)).unwrap();
        let garbled = left_by(place.path(), "gristmill-garbled", dead);
        fs::write(garbled.join(OWNER), "{\"pid\":").unwrap();
        let open = left_by(place.path(), "gristmill-open", dead);
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let other_name = left_by(place.path(), "other", dead);
        let other_place = tempfile::tempdir().unwrap();
        let target = left_by(other_place.path(), "target", dead);
        symlink(&target, place.path().join("gristmill-link")).unwrap();
        sweep(place.path());
        for directory in [elsewhere, unsigned, garbled, open, other_name, target] {
            assert!(directory.join("worker-1-7/run-0.spill").exists(), "{} was swept", directory.display());
        }
    }

    #[test]
    fn directory_whose_removal_was_interrupted_is_still_known_to_be_the_deads() {
        let place = tempfile::tempdir().unwrap();
        let directory = left_by(place.path(), "gristmill-a", |owner| owner.began_ticks += 1);
        fs::remove_dir_all(directory.join("worker-1-7")).unwrap();
        let last_step = place.path().join("gristmill-b.gone");
        DirBuilder::new().mode(0o700).create(&last_step).unwrap();
        sweep(place.path());
        assert!(!directory.exists() && !last_step.exists());
    }
}
