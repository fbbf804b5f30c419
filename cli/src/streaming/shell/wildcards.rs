//! Names with wildcards, as `hadoop fs` takes them: also those that begin with `_` or `.`, unlike inputs of jobs. What a
//! copy that was killed has left half is meant only by a pattern that begins as its name does.

use super::trees::entries;
use gristmill_worker::input::wildcards::{fits, only_name};
use gristmill_worker::whole_file;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file or folder that cannot be looked at, though it or names in it were asked for.
#[derive(Debug)]
pub struct Unreadable {
    pub folder: PathBuf,
    pub error: io::Error,
}

impl Unreadable {
    /// Nothing, if it is a link that leads to itself: there is nothing below it that could fit a pattern.
    fn unless_it_leads_nowhere<T>(self, nothing: T) -> Result<T, Self> {
        match Errno::from_io_error(&self.error) {
            Some(Errno::LOOP) => Ok(nothing),
            _ => Err(self),
        }
    }
}

/// The files whose names fit a path with wildcards, in the order of their names.
///
/// # Errors
/// A folder that cannot be looked at.
pub fn glob(pattern: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let wanted = component.as_os_str();
        let is_seen = |path: &PathBuf| {
            path.file_name().is_some_and(|name| {
                let is_meant = whole_file::is_draft(wanted) || !whole_file::is_draft(name);
                is_meant && fits(wanted.as_bytes(), name.as_bytes())
            })
        };
        let mut next = Vec::new();
        for base in found {
            match only_name(wanted.as_bytes()) {
                Some(name) => {
                    let found = there(base.join(OsStr::from_bytes(&name)));
                    next.extend(found.or_else(|found| found.unless_it_leads_nowhere(None))?);
                }
                None => {
                    let found = names_in(base).or_else(|found| found.unless_it_leads_nowhere(Vec::new()));
                    next.extend(found?.into_iter().filter(is_seen));
                }
            }
        }
        found = next;
    }
    Ok(found)
}

/// What is at a path, be it a link that leads nowhere; `None` if there is nothing.
///
/// # Errors
/// A path that cannot be looked at.
pub fn there(path: PathBuf) -> Result<Option<PathBuf>, Unreadable> {
    match path.symlink_metadata() {
        Ok(_) => Ok(Some(path)),
        Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(Unreadable { folder: path, error }),
    }
}

/// What is in a folder; there is nothing in a file.
fn names_in(folder: PathBuf) -> Result<Vec<PathBuf>, Unreadable> {
    match entries(&folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => {
            Ok(Vec::new())
        }
        entries => entries.map_err(|error| Unreadable { folder, error }),
    }
}
