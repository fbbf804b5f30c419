//! `hadoop fs -ls`, `-du`, `-count` and `-stat`: facts about files, in the columns that drivers read.

use super::{FsCall, FsError, in_hadoops_words};
use crate::streaming::glob::entries;
use crate::terminal::stdout_line;
use gristmill_runtime::wall_time::{clock, date};
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// Number and size of the entries of a tree.
#[derive(Default)]
struct TreeTally {
    directories: u64,
    files: u64,
    bytes: u64,
}

impl FsCall<'_> {
    /// Walks a tree in the order of names, following links. A link that leads back to a parent is an error.
    pub(super) fn walk(&self, tree: WalkDir) -> impl Iterator<Item = Result<(DirEntry, Metadata), FsError>> {
        tree.follow_links(true).sort_by_file_name().into_iter().map(|entry| {
            let found = entry.and_then(|entry| entry.metadata().map(|found| (entry, found)));
            match found {
                Err(error) => {
                    let name = self.names.uri(error.path().unwrap_or(Path::new("")));
                    match error.loop_ancestor() {
                        Some(_) => Err(FsError(format!("`{name}': is a link that leads back to its parent"))),
                        None => in_hadoops_words(&name, Err(error.into())),
                    }
                }
                Ok(found) => Ok(found),
            }
        })
    }

    /// `-ls [-d] [-R] PATH…`, `-lsr PATH…`.
    pub(super) fn list(&self, typed: &str, path: &Path) -> anyhow::Result<()> {
        let found = self.metadata(path)?;
        if !found.is_dir() || self.has("d") {
            return self.list_line(typed, path, &found);
        }
        let is_recursive = self.name == "lsr" || self.has("R");
        let depth_max = if is_recursive { usize::MAX } else { 1 };
        let listed: Vec<_> = self.walk(WalkDir::new(path).min_depth(1).max_depth(depth_max)).collect();
        if !is_recursive && !listed.is_empty() {
            stdout_line(&format!("Found {} items", listed.len()))?;
        }
        listed.into_iter().try_for_each(|entry| {
            let entry = entry.map_err(anyhow::Error::from);
            self.report(entry.and_then(|(entry, found)| self.list_line(typed, entry.path(), &found)))
        })
    }

    fn list_line(&self, typed: &str, path: &Path, found: &Metadata) -> anyhow::Result<()> {
        let seconds = u64::try_from(found.mtime()).unwrap_or(0);
        let (kind, copies, size) = if found.is_dir() { ('d', "-", 0) } else { ('-', "1", found.len()) };
        stdout_line(&format!(
            "{kind}{}   {copies} {} supergroup {size:>10} {} {} {}",
            rights(found),
            self.names.user,
            date(seconds),
            &clock(seconds)[..5],
            self.names.as_typed(typed, path)
        ))
    }

    /// `-du [-s] PATH…`, `-dus PATH…`.
    pub(super) fn sizes(&self, path: &Path) -> anyhow::Result<()> {
        let is_one = self.name == "dus" || self.has("s") || !path.is_dir();
        let paths = match is_one {
            true => vec![path.to_owned()],
            false => in_hadoops_words(&self.names.uri(path), entries(path))?,
        };
        paths.iter().try_for_each(|path| {
            let shown = self.tally(path).and_then(|TreeTally { bytes, .. }| {
                stdout_line(&format!("{bytes}  {bytes}  {}", self.names.uri(path)))
            });
            self.report(shown)
        })
    }

    /// `-count PATH…`.
    pub(super) fn count(&self, path: &Path) -> anyhow::Result<()> {
        let TreeTally { directories, files, bytes } = self.tally(path)?;
        stdout_line(&format!("{directories:>12} {files:>12} {bytes:>18} {}", self.names.uri(path)))
    }

    fn tally(&self, path: &Path) -> anyhow::Result<TreeTally> {
        self.walk(WalkDir::new(path)).try_fold(TreeTally::default(), |mut tally, entry| {
            let (_, found) = entry?;
            match found.is_dir() {
                true => tally.directories += 1,
                false => (tally.files, tally.bytes) = (tally.files + 1, tally.bytes + found.len()),
            }
            Ok(tally)
        })
    }

    /// `-stat PATH…`: the time of the last change.
    pub(super) fn stat(&self, path: &Path) -> anyhow::Result<()> {
        let seconds = u64::try_from(self.metadata(path)?.mtime()).unwrap_or(0);
        stdout_line(&format!("{} {}", date(seconds), clock(seconds)))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata, FsError> {
        in_hadoops_words(&self.names.uri(path), fs::metadata(path))
    }
}

/// Returns the permissions as nine letters.
fn rights(found: &Metadata) -> String {
    let mode = found.permissions().mode();
    let letters = "rwxrwxrwx".chars().enumerate();
    letters.map(|(at, letter)| if mode >> (8 - at) & 1 == 1 { letter } else { '-' }).collect()
}
