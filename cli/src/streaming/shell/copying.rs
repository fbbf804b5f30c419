//! One file or folder that is copied or moved to its place.
//!
//! A copy is there whole or not at all, and takes the place of another only where it may. Nothing is copied onto, into or
//! behind itself, under whatever names it goes, at the top or below.

use super::trees::{Trail, id_of};
use super::{FileCall, Refused, io_refused};
use gristmill_worker::whole_file::{self, Promise};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, DirBuilder, File, FileTimes, Metadata, Permissions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What of a file's rights is copied: not that it runs as its owner.
const RIGHTS: u32 = 0o777;

/// Whether a file takes the place of one that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    Replaced,
    Kept,
}

/// How much of a file or folder is where it was to go; what is not was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(super) enum Copied {
    Whole,
    InPart,
}

impl FileCall<'_> {
    /// What becomes of files that are there.
    pub(super) fn taken(&self) -> Taken {
        if self.has(&["f"]) { Taken::Replaced } else { Taken::Kept }
    }

    /// Copies a file, or a folder with all that is in it: what cannot be copied is told, and the rest goes on.
    pub(super) fn copy_tree(
        &self,
        source: &Path,
        target: &Path,
        trail: &mut Trail,
    ) -> Result<Copied, Refused> {
        let from = self.uri(source);
        let found = io_refused(&from, fs::metadata(source))?;
        if !found.is_dir() {
            // Only one that is named itself is somebody's who writes to it.
            if trail.is_inside() && !found.is_file() {
                return Err(Refused(format!(
                    "`{from}': is a pipe, a socket or a device, which is not copied"
                )));
            }
            return self.copy_file(source, target, &found).map(|()| Copied::Whole);
        }
        let below = self.enter(source, trail)?;
        let copied = self.copy_below(&below, target, &found, trail);
        trail.leave();
        copied
    }

    /// Copies what is in a folder into a new one, or one that is there.
    fn copy_below(
        &self,
        below: &[PathBuf],
        target: &Path,
        like: &Metadata,
        trail: &mut Trail,
    ) -> Result<Copied, Refused> {
        let to = self.uri(target);
        // Nobody else looks in before it has its rights.
        let is_new = match DirBuilder::new().mode(0o700).create(target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && target.is_dir() => false,
            made => io_refused(&to, made.map(|()| true))?,
        };
        // What is written is never read again.
        io_refused(&to, trail.enter(target))?;
        let mut copied = Copied::Whole;
        for path in below {
            let Some(name) = path.file_name() else { continue };
            match self.copy_tree(path, &target.join(name), trail) {
                Ok(Copied::Whole) => {}
                Ok(Copied::InPart) => copied = Copied::InPart,
                Err(refused) => {
                    self.refuse(&refused);
                    copied = Copied::InPart;
                }
            }
        }
        trail.leave();
        if is_new {
            let opened = File::open(target).and_then(|folder| self.keep_times(&folder, like));
            io_refused(&to, opened.and_then(|()| give_rights(target, like)))?;
        }
        Ok(copied)
    }

    /// Copies a file or folder, and removes what was copied if that is all of it.
    pub(super) fn copy_away(&self, source: &Path, target: &Path) -> Result<(), Refused> {
        let from = self.uri(source);
        if self.copy_tree(source, target, &mut Trail::default())? == Copied::InPart {
            return Err(Refused(format!("`{from}': not all of it could be copied, so it stays")));
        }
        let is_folder = fs::symlink_metadata(source).is_ok_and(|found| found.is_dir());
        io_refused(&from, if is_folder { fs::remove_dir_all(source) } else { fs::remove_file(source) })
    }

    /// Gives a copy the times of another file, if it was told to.
    fn keep_times(&self, copy: &File, like: &Metadata) -> io::Result<()> {
        if !self.has(&["p"]) {
            return Ok(());
        }
        copy.set_times(FileTimes::new().set_accessed(like.accessed()?).set_modified(like.modified()?))
    }

    /// Copies a file with its rights, and with `-p` its times.
    fn copy_file(&self, source: &Path, target: &Path, found: &Metadata) -> Result<(), Refused> {
        let (from, to) = (self.uri(source), self.uri(target));
        if fs::metadata(target).is_ok_and(|there| is_same(found, &there)) {
            return Err(Refused(format!("`{from}' to `{to}': are identical")));
        }
        let opened = File::open(source).and_then(|file| file.metadata().map(|found| (file, found)));
        let (mut source, found) = io_refused(&from, opened)?;
        let write = |file: &mut File| {
            io::copy(&mut source, file)?;
            if !found.is_file() || !file.metadata()?.is_file() {
                return Ok(());
            }
            file.set_permissions(Permissions::from_mode(found.permissions().mode() & RIGHTS))?;
            self.keep_times(file, &found)
        };
        io_refused(&to, write_whole(target, self.taken(), write))
    }

    /// Moves a file or folder, also to another disk.
    pub(super) fn move_tree(&self, source: &Path, target: &Path) -> Result<(), Refused> {
        match rename(source, target, self.taken()) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => self.copy_away(source, target),
            moved => io_refused(&self.uri(target), moved),
        }
    }
}

pub(super) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    id_of(one) == id_of(other)
}

/// Why a file or folder cannot go to a place, in Hadoop's words, if that is itself, or lies within it.
pub(super) fn onto_itself(source: &Path, place: &Path) -> Option<&'static str> {
    let whole = fs::metadata(source).ok()?;
    if fs::metadata(place).is_ok_and(|there| is_same(&whole, &there)) {
        return Some("are identical");
    }
    let source = fs::canonicalize(source).ok()?;
    let folder = place.parent().and_then(|folder| fs::canonicalize(folder).ok())?;
    (whole.is_dir() && folder.starts_with(source)).then_some("is a subdirectory of itself")
}

/// Gives a new folder the rights of another one, and keeps what it has from the folder that it is in.
fn give_rights(folder: &Path, like: &Metadata) -> io::Result<()> {
    let inherited = fs::metadata(folder)?.permissions().mode() & !RIGHTS;
    fs::set_permissions(folder, Permissions::from_mode(inherited | like.permissions().mode() & RIGHTS))
}

fn rename(source: &Path, target: &Path, taken: Taken) -> io::Result<()> {
    if taken == Taken::Replaced {
        return fs::rename(source, target);
    }
    match renameat_with(CWD, source, CWD, target, RenameFlags::NOREPLACE) {
        // A disk that cannot look and rename at once: whoever calls this has looked.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => fs::rename(source, target),
        renamed => Ok(renamed?),
    }
}

/// Writes a file whole or not at all. What is there and is no file, such as a pipe, takes what comes as it comes; what
/// a link names is written, and the link stays.
pub(super) fn write_whole(
    target: &Path,
    taken: Taken,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(mut stream) = own_stream(target)? {
        return write(&mut stream);
    }
    match (fs::metadata(target), taken) {
        (Ok(there), _) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        (Ok(there), Taken::Kept) if there.is_file() => Err(io::ErrorKind::AlreadyExists.into()),
        (Ok(there), Taken::Replaced) if there.is_file() => {
            whole_file::replace(&fs::canonicalize(target)?, Promise::Plain, write)
        }
        (Ok(_), _) => write(&mut File::options().write(true).open(target)?),
        (Err(error), _) if error.kind() != io::ErrorKind::NotFound => Err(error),
        (Err(_), Taken::Replaced) => whole_file::replace(target, Promise::Plain, write),
        (Err(_), Taken::Kept) => whole_file::create_new(target, Promise::Plain, write),
    }
}

/// This process's own stream of that name: it goes on where others have written, also in a file.
fn own_stream(target: &Path) -> io::Result<Option<File>> {
    let stream = match target.to_str() {
        Some("/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1") => io::stdout().as_fd().try_clone_to_owned()?,
        Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => io::stderr().as_fd().try_clone_to_owned()?,
        _ => return Ok(None),
    };
    Ok(Some(File::from(stream)))
}
