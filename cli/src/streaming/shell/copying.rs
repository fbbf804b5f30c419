//! One file or folder that is copied or moved to its place.
//!
//! A copy is there whole or not at all, and takes the place of another only where it may. Nothing is copied onto, into or
//! behind itself, under whatever names it goes, at the top or below.

use super::trees::{Trail, entries};
use super::{FileCall, Refused, io_refused};
use crate::terminal;
use gristmill_worker::folder::id_of;
use gristmill_worker::input::FileStamp;
use gristmill_worker::whole_file::{self, Promise};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, DirBuilder, File, FileTimes, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// What of rights is copied: not that a file runs as its owner, but that owners alone remove what is in a folder.
const RIGHTS: u32 = 0o1777;

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

/// A tree that is being copied.
#[derive(Default)]
pub(super) struct TreeCopy {
    trail: Trail,
    /// What of the source was copied, a folder behind what is in it.
    copied: Vec<(PathBuf, CopiedName)>,
}

/// What a name in the source was when it was copied.
enum CopiedName {
    File(CopiedStamp),
    Folder,
    /// Where it led.
    Link(PathBuf),
}

/// By which a file is known not to have changed, also when its time was set back.
pub(super) struct CopiedStamp {
    file: FileStamp,
    /// When anything of it changed last, its names too: of a file with several it changes as one of these goes.
    changed: Option<(i64, i64)>,
}

impl CopiedStamp {
    fn of(found: &Metadata) -> Self {
        let changed = (found.nlink() == 1).then(|| (found.ctime(), found.ctime_nsec()));
        Self { file: FileStamp::of(found), changed }
    }

    fn is_that_of(&self, found: &Metadata) -> bool {
        let changed = (found.ctime(), found.ctime_nsec());
        self.file == FileStamp::of(found) && self.changed.is_none_or(|before| before == changed)
    }
}

/// Refuses what is neither a file nor a folder.
pub(super) fn refuse_special(name: &str, found: &Metadata) -> Result<(), Refused> {
    if found.is_file() || found.is_dir() {
        return Ok(());
    }
    Err(Refused(format!("`{name}': is a pipe, a socket or a device, which is not copied")))
}

/// Refuses to write where that would keep nothing.
pub(super) fn refuse_special_target(name: &str, target: &Path) -> Result<(), Refused> {
    fs::metadata(target).map_or(Ok(()), |there| refuse_special(name, &there))
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// Whether there is a link, or in what is there. What cannot be looked at may have one.
pub(super) fn holds_link(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            entries(path).map_or(true, |below| below.iter().any(|path| holds_link(path)))
        }
        found => found.map_or(true, |found| found.is_symlink()),
    }
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
        copy: &mut TreeCopy,
    ) -> Result<Copied, Refused> {
        let from = self.uri(source);
        if self.stays_link(source) {
            let to = io_refused(&from, fs::read_link(source))?;
            io_refused(&self.uri(target), write_link(target, self.taken(), &to))?;
            copy.copied.push((source.to_owned(), CopiedName::Link(to)));
            return Ok(Copied::Whole);
        }
        let found = io_refused(&from, fs::metadata(source))?;
        if !found.is_dir() {
            // Only one that is named itself is somebody's who writes to it, or reads from it.
            if copy.trail.is_inside() {
                refuse_special(&from, &found)?;
                refuse_special_target(&self.uri(target), target)?;
            }
            let stamp = self.copy_file(source, target, &found)?;
            copy.copied.push((source.to_owned(), CopiedName::File(stamp)));
            return Ok(Copied::Whole);
        }
        let before = copy.copied.len();
        let below = self.enter(source, &mut copy.trail)?;
        let copied = self.copy_below(&below, target, &found, copy);
        copy.trail.leave();
        if is_link(source) {
            // What it leads to goes nowhere.
            copy.copied.truncate(before);
        }
        copy.copied.push((source.to_owned(), CopiedName::Folder));
        copied
    }

    /// Copies what is in a folder into a new one, or one that is there.
    fn copy_below(
        &self,
        below: &[PathBuf],
        target: &Path,
        like: &Metadata,
        copy: &mut TreeCopy,
    ) -> Result<Copied, Refused> {
        let to = self.uri(target);
        // Nobody else looks in before it has its rights.
        let is_new = match DirBuilder::new().mode(0o700).create(target) {
            // Others of what is copied may be where it leads.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_link(target) => {
                return Err(Refused(format!(
                    "`{to}': is a link, and a folder is not copied to where one leads"
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && target.is_dir() => false,
            made => io_refused(&to, made.map(|()| true))?,
        };
        // What is written is never read again.
        io_refused(&to, copy.trail.enter(target))?;
        let mut copied = Copied::Whole;
        for path in below {
            let Some(name) = path.file_name() else { continue };
            match self.copy_tree(path, &target.join(name), copy) {
                Ok(Copied::Whole) => {}
                Ok(Copied::InPart) => copied = Copied::InPart,
                Err(refused) => {
                    self.refuse(&refused);
                    copied = Copied::InPart;
                }
            }
        }
        copy.trail.leave();
        if is_new {
            let opened = File::open(target).and_then(|folder| self.keep_times(&folder, like));
            io_refused(&to, opened.and_then(|()| give_rights(target, like)))?;
        }
        Ok(copied)
    }

    /// Copies a file or folder, and if that is all of it, removes what was copied and has not changed since.
    pub(super) fn copy_away(&self, source: &Path, target: &Path) -> Result<(), Refused> {
        let from = self.uri(source);
        let is_folder = if self.stays_link(source) {
            false
        } else {
            let found = io_refused(&from, fs::metadata(source))?;
            refuse_special(&from, &found)?;
            found.is_dir()
        };
        refuse_special_target(&self.uri(target), target)?;
        if !is_link(target) && fs::read_dir(target).is_ok_and(|mut below| below.next().is_some()) {
            // As on one disk: what is in both would be gone, and what is in one only no longer known from the other.
            return Err(Refused(format!("`{}': Directory is not empty", self.uri(target))));
        }
        if !is_link(target) && target.is_dir() && is_folder {
            // It has its own rights, which are not those of what is moved.
            io_refused(&self.uri(target), fs::remove_dir(target))?;
        }
        let mut copy = TreeCopy::default();
        if self.copy_tree(source, target, &mut copy)? == Copied::InPart {
            return Err(Refused(format!("`{from}': not all of it could be copied, so it stays")));
        }
        for (path, was) in copy.copied {
            if let Err(refused) = self.remove_copied(&path, &was) {
                self.refuse(&refused);
            }
        }
        Ok(())
    }

    /// Removes what was copied; a link itself, not what it leads to.
    fn remove_copied(&self, path: &Path, was: &CopiedName) -> Result<(), Refused> {
        let name = self.uri(path);
        let found = io_refused(&name, fs::symlink_metadata(path))?;
        let is_same_link =
            |to: &Path| found.is_symlink() && fs::read_link(path).is_ok_and(|leads| leads == to);
        let removed = match was {
            CopiedName::Link(to) if is_same_link(to) => fs::remove_file(path),
            CopiedName::File(_) | CopiedName::Folder if found.is_symlink() => fs::remove_file(path),
            CopiedName::File(stamp) if stamp.is_that_of(&found) => fs::remove_file(path),
            CopiedName::File(_) | CopiedName::Link(_) => {
                return Err(Refused(format!("`{name}': has changed since it was copied, so it stays")));
            }
            CopiedName::Folder => fs::remove_dir(path),
        };
        io_refused(&name, removed)
    }

    /// Why a file or folder cannot go to a place, in Hadoop's words, if that is itself, or lies within it.
    pub(super) fn onto_itself(&self, source: &Path, place: &Path) -> Option<&'static str> {
        let whole = fs::metadata(source).ok()?;
        if fs::metadata(place).is_ok_and(|there| is_same(&whole, &there)) {
            return Some("are identical");
        }
        if self.stays_link(source) {
            // Nothing of what it leads to goes anywhere.
            return None;
        }
        let source = fs::canonicalize(source).ok()?;
        let folder = place.parent().and_then(|folder| fs::canonicalize(folder).ok())?;
        (whole.is_dir() && folder.starts_with(source)).then_some("is a subdirectory of itself")
    }

    /// Whether this is a link that stays one: moved to another disk it is as on the same.
    fn stays_link(&self, source: &Path) -> bool {
        self.name == "mv" && is_link(source)
    }

    /// Gives a copy the times of another file, if it is to have them.
    fn keep_times(&self, copy: &File, like: &Metadata) -> io::Result<()> {
        // Moved to another disk it is as on the same.
        if !self.has(&["p"]) && self.name != "mv" {
            return Ok(());
        }
        copy.set_times(FileTimes::new().set_accessed(like.accessed()?).set_modified(like.modified()?))
    }

    /// Copies a file with its rights, and with `-p` its times. Answers what it was when it was opened.
    fn copy_file(&self, source: &Path, target: &Path, found: &Metadata) -> Result<CopiedStamp, Refused> {
        let (from, to) = (self.uri(source), self.uri(target));
        if fs::metadata(target).is_ok_and(|there| is_same(found, &there)) {
            return Err(Refused(format!("`{from}' to `{to}': are identical")));
        }
        let opened = File::open(source).and_then(|file| file.metadata().map(|found| (file, found)));
        let (mut source, found) = io_refused(&from, opened)?;
        // What this program was given to write to is whose it is.
        let is_own = matches!(terminal::own_stream(target), Ok(Some(_)));
        let write = |file: &mut File| {
            io::copy(&mut source, file)?;
            if is_own || !found.is_file() || !file.metadata()?.is_file() {
                return Ok(());
            }
            file.set_permissions(Permissions::from_mode(found.permissions().mode() & RIGHTS))?;
            self.keep_times(file, &found)
        };
        io_refused(&to, write_whole(target, self.taken(), write))?;
        Ok(CopiedStamp::of(&found))
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

fn write_link(target: &Path, taken: Taken, to: &Path) -> io::Result<()> {
    match taken {
        Taken::Replaced => whole_file::replace_link(target, to),
        Taken::Kept => symlink(to, target),
    }
}

/// Writes a file whole or not at all. What is there and is no file, such as a pipe, takes what comes as it comes; a link
/// is replaced itself, as Hadoop does and a move on one disk: others of what is copied may be where it leads.
pub(super) fn write_whole(
    target: &Path,
    taken: Taken,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(mut stream) = terminal::own_stream(target)? {
        return write(&mut stream);
    }
    match (fs::metadata(target), taken) {
        (Ok(there), _) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        (Ok(there), Taken::Kept) if there.is_file() => Err(io::ErrorKind::AlreadyExists.into()),
        (Ok(there), Taken::Replaced) if there.is_file() => whole_file::replace(target, Promise::Plain, write),
        (Ok(_), _) => write(&mut File::options().write(true).open(target)?),
        (Err(error), _) if error.kind() != io::ErrorKind::NotFound => Err(error),
        (Err(_), Taken::Replaced) => whole_file::replace(target, Promise::Plain, write),
        (Err(_), Taken::Kept) => whole_file::create_new(target, Promise::Plain, write),
    }
}
