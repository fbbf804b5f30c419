//! Directory that is held open, with operations on its entries: by plain names only, and never through a link.
//!
//! If the path by which it was opened changes, all operations stay in the same directory. A name is one component, and
//! no call follows links, so nothing can lead out of the directory, without help of the kernel.

mod foreign;
mod plain_name;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use foreign::{Closed, ForeignError, refuse_access, refuse_foreign};
pub use plain_name::{NotPlain, PlainName};

/// Maximum depth to which directories are removed with their contents; each level holds a descriptor. The project's own
/// directories are not nested, but those that an output replaces may be.
const DEPTH_MAX: u32 = 256;

/// Directory that is held open.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    /// Path by which it was opened; for messages.
    path: PathBuf,
}

/// Flags for opening a directory.
const DIRECTORY_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Returns the identity of a file or directory of this machine, independent of its name: its device and its inode.
#[must_use]
pub fn id_of(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

impl Directory {
    /// Opens the directory of a path, and follows links in it.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let handle = rustix::fs::open(path, DIRECTORY_FLAGS, Mode::empty())?;
        Ok(Self { handle, path: path.to_path_buf() })
    }

    /// Opens a directory in this one.
    ///
    /// # Errors
    /// An error of the file system; a link is not a directory.
    pub fn directory(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = plain(name.as_ref())?;
        let flags = DIRECTORY_FLAGS | OFlags::NOFOLLOW;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        Ok(Self { handle, path: self.path(name) })
    }

    /// Returns the path of an entry, for messages; without a name, that of the directory itself.
    #[must_use]
    pub fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        let name = name.as_ref();
        if name.is_empty() { self.path.clone() } else { self.path.join(name) }
    }

    /// Rejects a directory of another user; with `or_root`, those of root are accepted.
    ///
    /// # Errors
    /// [`ForeignError`], or an error of the file system.
    pub fn refuse_foreign(&self, or_root: bool) -> io::Result<()> {
        Ok(refuse_foreign(&self.path, &self.metadata()?, or_root)?)
    }

    /// Rejects a directory that other users can change.
    ///
    /// # Errors
    /// [`ForeignError`], or an error of the file system.
    pub fn refuse_shared(&self) -> io::Result<()> {
        let metadata = self.metadata()?;
        refuse_foreign(&self.path, &metadata, false)?;
        Ok(refuse_access(&self.path, &metadata, Closed::ToWriting)?)
    }

    /// Returns another handle of the same directory.
    ///
    /// # Errors
    /// A process without free descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { handle: self.handle.try_clone()?, path: self.path.clone() })
    }

    /// Sets the path of the directory after it was moved.
    #[must_use]
    pub fn named(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    /// Returns the time when an entry of the directory was last created, renamed or removed.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn modified(&self) -> io::Result<SystemTime> {
        self.metadata()?.modified()
    }

    fn metadata(&self) -> io::Result<Metadata> {
        File::from(self.handle.try_clone()?).metadata()
    }

    /// Creates a directory in this one, mode 0700.
    ///
    /// # Errors
    /// An error of the file system; an existing one.
    pub fn make_directory(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.handle, plain(name.as_ref())?, Mode::RWXU)?;
        self.directory(name)
    }

    /// Creates a directory in this one with a mode by the umask.
    ///
    /// # Errors
    /// An error of the file system; an existing one.
    pub fn make_shared_directory(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.handle, plain(name.as_ref())?, Mode::RWXU | Mode::RWXG | Mode::RWXO)?;
        self.directory(name)
    }

    /// Creates a file and opens it for writing and reading.
    ///
    /// # Errors
    /// An error of the file system; an existing entry, also a link.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
        Ok(rustix::fs::openat(&self.handle, plain(name.as_ref())?, flags, mode)?.into())
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// An error of the file system; anything else, such as a link or a pipe.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_regular(name.as_ref(), OFlags::RDONLY)
    }

    /// Opens a regular file of this user for reading and writing.
    ///
    /// # Errors
    /// As [`Directory::open_file`], and a file of another user.
    pub fn open_own(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = name.as_ref();
        refuse_foreign(&self.path(name), &self.entry_metadata(name)?, false)?;
        let file = self.open_regular(name, OFlags::RDWR)?;
        refuse_foreign(&self.path(name), &file.metadata()?, false)?;
        Ok(file)
    }

    fn open_regular(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        // Opening does not wait for a pipe.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file: File = rustix::fs::openat(&self.handle, plain(name)?, flags, Mode::empty())?.into();
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        }
    }

    /// Returns the metadata of an entry: of the link itself, if it is one.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn entry_metadata(&self, name: impl AsRef<OsStr>) -> io::Result<Metadata> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = plain(name.as_ref())?;
        File::from(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?).metadata()
    }

    /// Returns the names of all entries.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Renames an entry, here or into another directory; an existing entry is replaced.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn rename(&self, name: impl AsRef<OsStr>, to: &Directory, new: impl AsRef<OsStr>) -> io::Result<()> {
        let (name, new) = (plain(name.as_ref())?, plain(new.as_ref())?);
        Ok(rustix::fs::renameat(&self.handle, name, &to.handle, new)?)
    }

    /// Renames as [`Directory::rename`], but an existing entry is an error of kind [`io::ErrorKind::AlreadyExists`].
    ///
    /// # Errors
    /// An error of the file system.
    pub fn publish(&self, name: impl AsRef<OsStr>, to: &Directory, new: impl AsRef<OsStr>) -> io::Result<()> {
        let (name, new) = (plain(name.as_ref())?, plain(new.as_ref())?);
        match rustix::fs::renameat_with(&self.handle, name, &to.handle, new, RenameFlags::NOREPLACE) {
            // Many network file systems lack the flag; a hard link also fails to replace.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                match rustix::fs::linkat(&self.handle, name, &to.handle, new, AtFlags::empty()) {
                    Ok(()) => self.remove_file(name),
                    // Without hard links (exFAT, many FUSE mounts) an empty file claims the name, and is then replaced.
                    Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP | Errno::MLINK) => {
                        drop(to.create(new)?);
                        self.rename(name, to, new)
                    }
                    Err(error) => Err(error.into()),
                }
            }
            done => Ok(done?),
        }
    }

    /// Removes a file or a link.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, plain(name.as_ref())?, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn remove_directory(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, plain(name.as_ref())?, AtFlags::REMOVEDIR)?)
    }

    /// Removes a directory with all its contents; links are removed and not followed.
    ///
    /// # Errors
    /// An error of the file system, and a tree deeper than the limit.
    pub fn remove_tree(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.remove_to_depth(name.as_ref(), DEPTH_MAX)
    }

    fn remove_to_depth(&self, name: &OsStr, depth: u32) -> io::Result<()> {
        let Some(depth) = depth.checked_sub(1) else {
            let text = format!("{} is nested too deep to be removed", self.path(name).display());
            return Err(io::Error::other(text));
        };
        let directory = self.directory(name)?;
        for inner in directory.names()? {
            let removed = match directory.remove_file(&inner) {
                // Linux returns one of these for directories, other systems the other.
                Err(error) if is_directory(&error) => directory.remove_to_depth(&inner, depth),
                removed => removed,
            };
            match removed {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        self.remove_directory(name)
    }

    /// Syncs changes of names in it, so that they survive a power failure.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.handle)?)
    }
}

fn is_directory(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::IsADirectory || error.kind() == io::ErrorKind::PermissionDenied
}

/// Checks that a name is one component that stays in its directory.
fn plain(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') || bytes.contains(&0) {
        let text = format!("{name:?} is not the name of a file in a directory");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn plain_names_are_read_and_nothing_else() {
        let long = "x".repeat(64);
        for name in ["a", "probe-Az_09", "-", &long] {
            assert_eq!(name.parse::<PlainName>().unwrap().as_str(), name);
        }
        let longer = "x".repeat(65);
        for name in ["", ".", "..", "a.b", "a/b", "/a", "a b", "a\n", "$(a)", "\u{e9}", "a\0", "%2e", &longer]
        {
            assert!(name.parse::<PlainName>().is_err(), "{name:?}");
            assert!(serde_json::from_value::<PlainName>(name.into()).is_err(), "{name:?}");
        }
    }

    #[test]
    fn nothing_in_a_directory_leads_out_of_it() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("inside");
        fs::create_dir(&inside).unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(place.path().join("outside/file"), "kept").unwrap();
        symlink(place.path().join("outside"), inside.join("directory-link")).unwrap();
        symlink(place.path().join("outside/file"), inside.join("file-link")).unwrap();
        let directory = Directory::open(&inside).unwrap();
        for name in ["..", ".", "", "../outside", "/tmp", "directory-link/file", "a/b"] {
            assert!(directory.create(name).is_err(), "{name:?}");
            assert!(directory.open_file(name).is_err(), "{name:?}");
            assert!(directory.directory(name).is_err(), "{name:?}");
            assert!(directory.make_directory(name).is_err(), "{name:?}");
            assert!(directory.remove_tree(name).is_err(), "{name:?}");
            assert!(directory.rename("file-link", &directory, name).is_err(), "{name:?}");
            assert!(directory.publish("file-link", &directory, name).is_err(), "{name:?}");
        }
        assert!(
            directory.directory("directory-link").is_err()
                && directory.remove_tree("directory-link").is_err()
        );
        assert!(directory.open_file("file-link").is_err() && directory.create("file-link").is_err());
        assert!(directory.open_own("file-link").is_err());
        // The targets of links survive the removal of a tree.
        directory.make_directory("tree").unwrap().make_directory("branch").unwrap();
        symlink(place.path().join("outside"), inside.join("tree/branch/link")).unwrap();
        directory.remove_tree("tree").unwrap();
        fs::create_dir_all(inside.join("deep").join("x/".repeat(200))).unwrap();
        directory.remove_tree("deep").unwrap();
        assert_eq!(fs::read_to_string(place.path().join("outside/file")).unwrap(), "kept");
        assert!(!inside.join("tree").exists());
    }

    #[test]
    fn directory_stays_the_same_when_its_path_leads_elsewhere() {
        let place = tempfile::tempdir().unwrap();
        let (first, second) = (place.path().join("first"), place.path().join("second"));
        fs::create_dir(&first).unwrap();
        fs::create_dir(&second).unwrap();
        let directory = Directory::open(&first).unwrap();
        fs::rename(&first, place.path().join("moved")).unwrap();
        symlink(&second, &first).unwrap();
        directory.create("file").unwrap();
        assert!(place.path().join("moved/file").exists() && !second.join("file").exists());
    }

    #[test]
    fn publish_refuses_to_replace_a_file() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        fs::write(place.path().join("built"), "new").unwrap();
        fs::write(place.path().join("part"), "old").unwrap();
        let error = directory.publish("built", &directory, "part").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(place.path().join("part")).unwrap(), "old");
        directory.remove_file("part").unwrap();
        directory.publish("built", &directory, "part").unwrap();
        assert_eq!(fs::read_to_string(place.path().join("part")).unwrap(), "new");
        assert!(!place.path().join("built").exists());
    }

    #[test]
    fn directory_that_others_may_write_is_shared() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        for (mode, private) in [(0o700, true), (0o755, true), (0o770, false), (0o1777, false)] {
            fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(directory.refuse_shared().is_ok(), private, "{mode:o}");
        }
    }
}
