//! Folders with all that is in them: gone through to their ends, and added up for `-du` and `-count`. Links are followed but where they lead
//! back, and nothing is passed over silently.

use super::{FileCall, FileOutcome, Refused, io_refused};
use crate::terminal::stdout_line;
use gristmill_worker::folder::id_of;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// What is in a folder, in the order of names.
pub fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    entries.sort_unstable();
    Ok(entries)
}

/// What is at a path, or what the link there leads to; one that leads nowhere is what is there.
pub fn look_at(path: &Path) -> io::Result<Metadata> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::symlink_metadata(path),
        found => found,
    }
}

/// Links to folders that are followed: some few may lead to all others in more ways than anybody waits for.
const LINKS_MAX: usize = 20_000;

/// The folders that one is in, outermost first.
#[derive(Default)]
pub struct Trail {
    within: Vec<(u64, u64)>,
    /// How many links to folders were followed.
    links: usize,
}

impl Trail {
    /// Goes into a folder.
    ///
    /// # Errors
    /// One that one is in already, that cannot be looked at, or too many links.
    pub fn enter(&mut self, folder: &Path) -> io::Result<()> {
        if fs::symlink_metadata(folder)?.is_symlink() {
            self.links += 1;
        }
        if LINKS_MAX < self.links {
            let said = format!("links lead on in more than {LINKS_MAX} ways; name the folders behind them");
            return Err(io::Error::other(said));
        }
        let id = id_of(&fs::metadata(folder)?);
        if self.within.contains(&id) {
            return Err(io::Error::other("leads back to a folder that it lies in; remove the link"));
        }
        self.within.push(id);
        Ok(())
    }

    /// Whether one is in a folder.
    pub fn is_inside(&self) -> bool {
        !self.within.is_empty()
    }

    /// Leaves the folder that was gone into last.
    pub fn leave(&mut self) {
        self.within.pop();
    }
}

/// What a tree has.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    pub folders: u64,
    pub files: u64,
    pub bytes: u64,
}

impl FileCall<'_> {
    /// Goes into a folder, and answers what is in it.
    pub(super) fn enter(&self, folder: &Path, trail: &mut Trail) -> Result<Vec<PathBuf>, Refused> {
        let found = entries(folder).and_then(|entries| trail.enter(folder).map(|()| entries));
        io_refused(&self.uri(folder), found)
    }

    /// `-du [-s] [-h] PATH…`.
    pub(super) fn sizes(&self, path: &Path, as_one: bool) -> FileOutcome {
        let listed = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() && !as_one => io_refused(&self.uri(path), entries(path)),
            _ => Ok(vec![path.to_owned()]),
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(refused) => return Ok(Err(refused)),
        };
        for path in listed {
            match self.tally(&path) {
                Ok(Tally { bytes, .. }) => {
                    let bytes = self.size_text(bytes);
                    stdout_line(&format!("{bytes}  {bytes}  {}", self.uri(&path)))?;
                }
                Err(refused) => self.refuse(&refused),
            }
        }
        Ok(Ok(()))
    }

    /// `-count [-h] PATH…`.
    pub(super) fn count(&self, path: &Path) -> FileOutcome {
        let Tally { folders, files, bytes } = match self.tally(path) {
            Ok(tally) => tally,
            Err(refused) => return Ok(Err(refused)),
        };
        let bytes = self.size_text(bytes);
        stdout_line(&format!("{folders:>12} {files:>12} {bytes:>18} {}", self.uri(path)))?;
        Ok(Ok(()))
    }

    fn tally(&self, path: &Path) -> Result<Tally, Refused> {
        let mut tally = Tally::default();
        self.add_up(path, &mut Trail::default(), &mut tally)?;
        Ok(tally)
    }

    fn add_up(&self, path: &Path, trail: &mut Trail, tally: &mut Tally) -> Result<(), Refused> {
        let found = io_refused(&self.uri(path), look_at(path))?;
        if !found.is_dir() {
            tally.files += 1;
            tally.bytes += found.len();
            return Ok(());
        }
        tally.folders += 1;
        self.enter(path, trail)?.iter().try_for_each(|path| self.add_up(path, trail, tally))?;
        trail.leave();
        Ok(())
    }
}
