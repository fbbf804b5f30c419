//! `hadoop fs -put`, `-get`, `-cp`, `-mv` and `-getmerge`. A file is written completely or not at all.

use super::{FsCall, FsError, NOT_FOUND, in_hadoops_words, path_of};
use crate::streaming::file_names::DefaultSystem;
use crate::streaming::glob::entries;
use crate::terminal::own_stream;
use gristmill_worker::whole_file::{self, Promise};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Name of standard input as a source of `-put`.
const STDIN: &str = "-";

impl FsCall<'_> {
    /// `-put`, `-get`, `-cp`, `-mv`: `[-f] SOURCE… TARGET`.
    pub(super) fn copy(&self) -> anyhow::Result<()> {
        let local = self.names.with_default(DefaultSystem::Local);
        let (from, to) = match self.name {
            "put" => (&local, &self.names),
            "get" => (&self.names, &local),
            _ => (&self.names, &self.names),
        };
        let (sources, target) = match &self.paths[..] {
            [sources @ .., target] if !sources.is_empty() => (sources, *target),
            sources => (sources, ""),
        };
        let mut all = Vec::new();
        for name in sources {
            match self.found(from, name) {
                _ if self.name == "put" && *name == STDIN => all.push(PathBuf::from(STDIN)),
                Ok(found) => all.extend(found),
                Err(error) => self.report(Err(error))?,
            }
        }
        let place = path_of(to, target)?;
        let is_directory = sources.len() > 1 || all.len() > 1 || target.ends_with('/');
        if is_directory && !place.is_dir() {
            let words = if place.exists() { "Is not a directory" } else { NOT_FOUND };
            return Err(FsError(format!("`{target}': {words}")).into());
        }
        all.iter().try_for_each(|source| self.report(self.copy_one(source, &place, target)))
    }

    fn copy_one(&self, source: &Path, place: &Path, target: &str) -> anyhow::Result<()> {
        let place = match source.file_name() {
            Some(name) if place.is_dir() => place.join(name),
            _ => place.to_owned(),
        };
        if place.exists() && !self.has("f") {
            return Err(FsError(format!("`{target}': File exists")).into());
        }
        if self.name == "put" && source.as_os_str() == STDIN {
            let copied = write_file(&place, |file| io::copy(&mut io::stdin().lock(), file).map(drop));
            return Ok(in_hadoops_words(target, copied)?);
        }
        let (from, to) = (self.names.uri(source), self.names.uri(&place));
        let parent = place.parent().map(fs::canonicalize).transpose();
        let parent = in_hadoops_words(target, parent)?.unwrap_or_default();
        if source.is_dir() && fs::canonicalize(source).is_ok_and(|source| parent.starts_with(source)) {
            return Err(FsError(format!("`{from}' to `{to}': is a subdirectory of itself")).into());
        }
        if self.name != "mv" {
            return self.copy_tree(source, &place);
        }
        self.refuse_root(&from, source)?;
        Ok(in_hadoops_words(target, fs::rename(source, &place))?)
    }

    /// Copies a file, or a directory with all below it. Stops at the first error.
    fn copy_tree(&self, source: &Path, target: &Path) -> anyhow::Result<()> {
        for entry in self.walk(WalkDir::new(source)) {
            let (entry, found) = entry?;
            let place = match entry.path().strip_prefix(source) {
                Ok(below) if entry.depth() > 0 => target.join(below),
                _ => target.to_owned(),
            };
            let (from, to) = (self.names.uri(entry.path()), self.names.uri(&place));
            if found.is_dir() {
                if !place.is_dir() {
                    in_hadoops_words(&to, fs::create_dir(&place))?;
                }
                continue;
            }
            // Reading a pipe in a directory would block.
            if !found.is_file() && entry.depth() > 0 {
                return Err(FsError(format!("`{from}': is a pipe, a socket or a device")).into());
            }
            let mut file = in_hadoops_words(&from, File::open(entry.path()))?;
            in_hadoops_words(&to, write_file(&place, |copy| io::copy(&mut file, copy).map(drop)))?;
        }
        Ok(())
    }

    /// `-getmerge [-nl] PATH… LOCAL`.
    pub(super) fn merge(&self) -> anyhow::Result<()> {
        let Some((target, sources)) = self.paths.split_last() else { return Ok(()) };
        let mut parts = Vec::new();
        for source in sources {
            for path in self.found(&self.names, source)? {
                match path.is_dir() {
                    true => {
                        let entries = in_hadoops_words(source, entries(&path))?;
                        parts.extend(entries.into_iter().filter(|path| path.is_file()));
                    }
                    false => parts.push(path),
                }
            }
        }
        let place = self.names.with_default(DefaultSystem::Local).local(target)?;
        let merged = write_file(&place, |out| {
            parts.iter().try_for_each(|part| {
                io::copy(&mut File::open(part)?, out)?;
                if self.has("nl") { out.write_all(b"\n") } else { Ok(()) }
            })
        });
        Ok(in_hadoops_words(target, merged)?)
    }
}

/// Writes a file completely or not at all, in place of an existing one. A device, a pipe, and the file that
/// is this program's output get the bytes as they come.
fn write_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    if let Some(mut stream) = own_stream(path)? {
        return write(&mut stream);
    }
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => write(&mut File::options().write(true).open(path)?),
        _ => whole_file::replace(path, Promise::Plain, write),
    }
}
