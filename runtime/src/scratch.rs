//! Private folders of this process for what does not outlive it, and the sweeping of those whose owners have died.
//!
//! Each such folder holds a file that names its owner: host, boot, process and when that began. Whoever uses the folder,
//! the owner and its child processes, holds a lock on that file, which goes with the last of them however they die. So a
//! folder whose lock is free, and whose owner does not live, belongs to nobody; a later start removes it. A folder
//! without such a file is not ours, or its owner could not lock it, and stays. What is empty goes, folder or file in it,
//! once nobody has touched it for long: a start or an end was broken off there, or the power failed.

use crate::owner::Owner;
use crate::removal::remove_retrying;
use gristmill_worker::http::Secret;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the names of all such folders begin.
pub(crate) const PREFIX: &str = "gristmill-";

/// Name of the file that names the owner.
const OWNER: &str = "owner";

/// Its name until it is written.
const OWNER_UNWRITTEN: &str = "owner.new";

/// What the names of folders end in until they are signed.
const UNNAMED: &str = ".new";

/// Longest time from the making of a folder until it is signed, on the slowest of disks.
const SIGNING_MAX: Duration = Duration::from_secs(3600);

/// Name of the file that keeps a folder that could not be signed from being empty.
const UNOWNED: &str = "unowned";

/// Longest such file, bytes.
const OWNER_BYTES_MAX: u64 = 4096;

/// Entries of a place that are looked at in search of folders to sweep.
const ENTRIES_MAX: usize = 100_000;

/// A folder in the system's for temporary files, removed when dropped.
pub struct ScratchFolder {
    path: PathBuf,
    hold: Option<FolderLock>,
}

impl ScratchFolder {
    /// A new one, whose name says what it is for, after what the dead have left there is gone.
    ///
    /// # Errors
    /// A folder that cannot be made.
    pub fn new(what: &str) -> io::Result<Self> {
        let place = std::env::temp_dir();
        sweep(&place);
        let path = place.join(name(what, &Secret::generate().map_err(io::Error::other)?));
        let hold = make(&path)?;
        Ok(Self { path, hold: Some(hold) })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // Some file systems keep what is open, under another name, and with it the folder.
        drop(self.hold.take());
        if let Err(error) = remove(&self.path) {
            tracing::warn!(folder = %self.path.display(), %error, "a temporary folder could not be removed");
        }
    }
}

/// Keeps a folder from being swept for as long as it, or that of another process, exists.
#[derive(Debug, Default)]
pub struct FolderLock(#[expect(dead_code, reason = "it is the open file that holds the lock")] Option<File>);

/// Makes a folder, 0700, that belongs to this process.
///
/// # Errors
/// A folder that cannot be made, or is there already.
pub(crate) fn make(folder: &Path) -> io::Result<FolderLock> {
    // It is signed before it bears its name: so one of that name that is empty is one whose removal was interrupted.
    let mut unnamed = folder.as_os_str().to_owned();
    unnamed.push(UNNAMED);
    let unnamed = PathBuf::from(unnamed);
    DirBuilder::new().mode(0o700).create(&unnamed)?;
    let lock = sign(&unnamed).or_else(|error| {
        // Without word of its owner nobody sweeps it; all else is as it should be.
        tracing::debug!(folder = %folder.display(), %error, "the folder could not be marked as owned");
        let _ = fs::remove_file(unnamed.join(OWNER));
        File::create(unnamed.join(UNOWNED)).map(|_| None)
    });
    match lock.and_then(|lock| rename_new(&unnamed, folder).map(|()| lock)) {
        Ok(lock) => Ok(FolderLock(lock)),
        Err(error) => {
            let _ = remove(&unnamed);
            Err(error)
        }
    }
}

/// Renames a folder, unless something of that name is there.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // File systems that know no such flag.
        Err(rustix::io::Errno::INVAL) if !to.exists() => fs::rename(from, to),
        result => Ok(result?),
    }
}

/// Leaves word of this process, and takes the lock before anybody can read it.
fn sign(folder: &Path) -> io::Result<Option<File>> {
    let text = serde_json::to_vec(&Owner::current()?)?;
    let built = folder.join(OWNER_UNWRITTEN);
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&built)?;
    file.try_lock_shared().map_err(io::Error::from)?;
    // Nobody waits for the disk: word that a loss of power has taken is known by its being empty.
    file.write_all(&text)?;
    fs::rename(&built, folder.join(OWNER))?;
    Ok(Some(file))
}

/// Keeps a folder that another process has made from being swept when that process dies.
///
/// # Errors
/// Somebody is sweeping it: its owner is dead.
pub fn hold(folder: &Path) -> io::Result<FolderLock> {
    match open_owner(&folder.join(OWNER)) {
        Ok(file) => match file.try_lock_shared() {
            Err(error @ TryLockError::WouldBlock) => Err(error.into()),
            // Where there are no locks nothing is swept either.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(FolderLock(Some(file))),
        },
        Err(_) => Ok(FolderLock(None)),
    }
}

fn open_owner(file: &Path) -> io::Result<File> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(no_link).open(file)
}

/// Removes the folders in a place whose owners have died.
pub(crate) fn sweep(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.take(ENTRIES_MAX).flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            sweep_folder(&entry.path());
        }
    }
}

/// Removes a folder if its owner has died and nobody else holds it.
pub(crate) fn sweep_folder(folder: &Path) {
    match try_sweep(folder) {
        Ok(Some(owner)) => {
            tracing::info!(folder = %folder.display(), pid = owner.pid, "removed what a dead process had left");
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(folder = %folder.display(), %error, "not swept"),
    }
}

/// Whether a folder has not been touched for so long that nobody is about to sign it, or to use it otherwise.
fn is_old(about: &Metadata) -> bool {
    about.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| SIGNING_MAX < age)
}

/// The owner whose folder was removed; `None` if it is not to be.
fn try_sweep(folder: &Path) -> io::Result<Option<Owner>> {
    let about = fs::symlink_metadata(folder)?;
    let ours = rustix::process::geteuid().as_raw() == about.uid();
    // Nobody else can write into such a folder, so what is in it is the word of our own processes.
    if !about.is_dir() || !ours || about.mode() & 0o077 != 0 {
        return Ok(None);
    }
    let here = Owner::current()?;
    // An owner that died while its word was being synced has left it under the other name, locked likewise till then.
    let file = match open_owner(&folder.join(OWNER)).or_else(|_| open_owner(&folder.join(OWNER_UNWRITTEN))) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_old(&about) => {
            // Whoever removed it was killed before its last step, or whoever made it before its first; if it is another
            // program's, that has not used it for long. What is not empty stays.
            return fs::remove_dir(folder).map(|()| None);
        }
        opened => opened?,
    };
    if file.try_lock().is_err() {
        return Ok(None);
    }
    let mut text = Vec::new();
    (&file).take(OWNER_BYTES_MAX).read_to_end(&mut text)?;
    if text.is_empty() && is_old(&about) {
        // Lost with the power, and nobody holds it.
        return remove(folder).map(|()| None);
    }
    let owner: Owner = serde_json::from_slice(&text)?;
    if !owner.is_dead(&here) {
        return Ok(None);
    }
    remove(folder)?;
    Ok(Some(owner))
}

/// Removes a folder with all that is in it, the word of its owner last: what is interrupted, a later start goes on with.
///
/// # Errors
/// What the file system says; a folder that is not there is none.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    remove_retrying(|| remove_once(folder))
}

fn remove_once(folder: &Path) -> io::Result<()> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return gone(Err(error)),
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
    gone(fs::remove_file(folder.join(OWNER)))?;
    gone(fs::remove_dir(folder))
}

/// The name of a folder that nobody can guess and make first: it is part of a hash of the secret.
pub(crate) fn name(what: &str, secret: &Secret) -> PathBuf {
    PathBuf::from(format!("{PREFIX}{what}{}", &secret.derive("folder").to_text()[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::SystemTime;

    /// A folder with something in it whose owner was not this process.
    fn left_by(place: &Path, name: &str, change: impl FnOnce(&mut Owner)) -> PathBuf {
        let folder = place.join(name);
        drop(make(&folder).unwrap());
        let mut owner = Owner::current().unwrap();
        change(&mut owner);
        fs::write(folder.join(OWNER), serde_json::to_vec(&owner).unwrap()).unwrap();
        fs::create_dir(folder.join("worker-1-7")).unwrap();
        fs::write(folder.join("worker-1-7/run-0.spill"), "some bytes").unwrap();
        folder
    }

    #[test]
    fn folders_whose_owners_died_before_their_word_had_its_name_are_swept() {
        let place = tempfile::tempdir().unwrap();
        let unsigned = |folder: &Path| {
            fs::rename(folder.join(OWNER), folder.join(OWNER_UNWRITTEN)).unwrap();
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
    fn empty_folders_are_swept_when_nobody_has_touched_them_for_long() {
        let place = tempfile::tempdir().unwrap();
        let folders = ["gristmill-a", "gristmill-b.new", "gristmill-c", "gristmill-d", "gristmill-e.new"]
            .map(|name| place.path().join(name));
        for folder in &folders {
            DirBuilder::new().mode(0o700).create(folder).unwrap();
        }
        let [empty, unnamed, full, old, old_unnamed] = folders;
        fs::write(full.join(UNOWNED), "").unwrap();
        for folder in [&full, &old, &old_unnamed] {
            File::open(folder).unwrap().set_modified(SystemTime::now() - 2 * SIGNING_MAX).unwrap();
        }
        sweep(place.path());
        assert!(empty.exists(), "another program may have made it a moment ago, to use it");
        assert!(unnamed.exists() && full.exists());
        assert!(!old.exists() && !old_unnamed.exists(), "whoever made or removed them has died over that");
    }

    #[test]
    fn folders_whose_word_was_lost_with_the_power_are_swept_when_nobody_holds_them() {
        let place = tempfile::tempdir().unwrap();
        let age = |folder: &Path| {
            fs::write(folder.join(OWNER), "").unwrap();
            File::open(folder).unwrap().set_modified(SystemTime::now() - 2 * SIGNING_MAX).unwrap();
        };
        let [lost, held, young] =
            ["lost", "held", "young"].map(|name| left_by(place.path(), &format!("gristmill-{name}"), |_| {}));
        age(&lost);
        let hold = hold(&held).unwrap();
        age(&held);
        fs::write(young.join(OWNER), "").unwrap();
        sweep(place.path());
        assert!(!lost.exists() && held.exists() && young.exists());
        drop(hold);
        sweep(place.path());
        assert!(!held.exists());
    }

    #[test]
    fn folders_of_the_dead_are_swept() {
        let place = tempfile::tempdir().unwrap();
        // The same process id, but of a process that began at another time.
        let used_again = left_by(place.path(), "gristmill-a", |owner| owner.began_ticks += 1);
        let rebooted = left_by(place.path(), "gristmill-b", |owner| owner.boot = "another".to_owned());
        sweep(place.path());
        assert!(!used_again.exists() && !rebooted.exists());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn folders_that_are_held_are_not_swept() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("gristmill-own");
        let held = make(&own).unwrap();
        // Its owner is dead, but a child of it lives.
        let orphaned = left_by(place.path(), "gristmill-orphaned", |owner| owner.began_ticks += 1);
        let child = hold(&orphaned).unwrap();
        sweep(place.path());
        assert!(own.exists() && orphaned.join("worker-1-7/run-0.spill").exists());
        drop(child);
        sweep(place.path());
        assert!(!orphaned.exists(), "nobody holds it any more");
        // Without its lock, the living process itself is proof.
        drop(held);
        sweep(place.path());
        assert!(own.exists(), "its owner is this process");
        remove(&own).unwrap();
        assert!(!own.exists());
    }

    #[test]
    fn folders_that_may_be_somebody_elses_are_not_swept() {
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
        for folder in [elsewhere, unsigned, garbled, open, other_name, target] {
            assert!(folder.join("worker-1-7/run-0.spill").exists(), "{} was swept", folder.display());
        }
    }

    #[test]
    fn folder_whose_removal_was_interrupted_is_still_known_to_be_the_deads() {
        let place = tempfile::tempdir().unwrap();
        let folder = left_by(place.path(), "gristmill-a", |owner| owner.began_ticks += 1);
        fs::remove_dir_all(folder.join("worker-1-7")).unwrap();
        sweep(place.path());
        assert!(!folder.exists());
    }
}
