//! `hadoop fs -put`, `-get`, `-cp`, `-mv`, `-getmerge` and `-appendToFile`: bytes that go from files into others.
//!
//! A copy is there whole or not at all. Nothing is copied onto, into or behind itself, under whatever names it goes.

use super::trees::{DEPTH_MAX, entries};
use super::{FileCall, Refused, io_refused};
use crate::streaming::places::DefaultSystem;
use gristmill_runtime::exit;
use gristmill_worker::whole_file::{self, Promise};
use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What stands for standard input.
const STDIN: &str = "-";

/// Where files go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CopyWay {
    /// From this machine's files.
    Up,
    /// To this machine's files.
    Down,
    Within,
    Moved,
}

impl FileCall<'_> {
    /// `-put`, `-get`, `-cp` and `-mv`, `[-f] PATH… PATH`.
    pub(super) fn copy(&self, way: CopyWay) -> anyhow::Result<u8> {
        let local = self.places.with_default(DefaultSystem::Local);
        let (from, to) = match way {
            CopyWay::Up => (&local, &self.places),
            CopyWay::Down => (&self.places, &local),
            CopyWay::Within | CopyWay::Moved => (&self.places, &self.places),
        };
        let (sources, target) = match (way, &self.paths[..]) {
            (CopyWay::Up | CopyWay::Down, [source]) => (vec![*source], ""),
            (_, [sources @ .., target]) if !sources.is_empty() => (sources.to_vec(), *target),
            _ => return Ok(self.too_few(2)),
        };
        let whence = FileCall { places: from.clone(), flags: Vec::new(), paths: Vec::new(), name: self.name };
        let mut code = exit::OK;
        let mut all = Vec::new();
        for source in sources {
            match source {
                STDIN if way == CopyWay::Up => all.push(PathBuf::from(STDIN)),
                source => match whence.found(source) {
                    Ok(found) => all.extend(found),
                    Err(refused) => {
                        self.refuse(&refused);
                        code = exit::FAILED;
                    }
                },
            }
        }
        let place = to.local(target)?;
        if 1 < all.len() && !place.is_dir() {
            let missing = if place.exists() { "Is not a directory" } else { "No such file or directory" };
            self.refuse(&Refused(format!("`{target}': {missing}")));
            return Ok(exit::FAILED);
        }
        for source in all {
            if let Err(refused) = self.copy_one(&source, &place, target, way) {
                self.refuse(&refused);
                code = exit::FAILED;
            }
        }
        Ok(code)
    }

    fn copy_one(&self, source: &Path, target: &Path, name: &str, way: CopyWay) -> Result<(), Refused> {
        let place = match (target.is_dir(), source.file_name()) {
            (true, Some(own)) => target.join(own),
            _ => target.to_owned(),
        };
        if place.exists() && !self.has(&["f"]) {
            return Err(Refused(format!("`{name}': File exists")));
        }
        if !place.parent().is_some_and(Path::is_dir) {
            return Err(Refused(format!("`{name}': No such file or directory")));
        }
        if source.as_os_str() == STDIN {
            let mut stdin = io::stdin().lock();
            return io_refused(name, write_whole(&place, |file| io::copy(&mut stdin, file).map(drop)));
        }
        if let Some(how) = onto_itself(source, &place) {
            return Err(Refused(format!("`{}' to `{}': {how}", self.uri(source), self.uri(&place))));
        }
        let copied = if way == CopyWay::Moved || self.name == "moveFromLocal" {
            match fs::rename(source, &place) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_tree(source, &place, 0)
                    .and_then(|()| {
                        if source.is_dir() { fs::remove_dir_all(source) } else { fs::remove_file(source) }
                    }),
                moved => moved,
            }
        } else {
            copy_tree(source, &place, 0)
        };
        io_refused(name, copied)
    }

    /// `-getmerge [-nl] PATH… LOCAL`.
    pub(super) fn merge(&self) -> anyhow::Result<u8> {
        let Some((target, sources)) = self.paths.split_last().filter(|(_, sources)| !sources.is_empty())
        else {
            return Ok(self.too_few(2));
        };
        let place = self.places.with_default(DefaultSystem::Local).local(target)?;
        let mut parts = Vec::new();
        // All of them, before anything is written.
        for source in sources {
            let listed = self.found(source).and_then(|found| {
                found.into_iter().try_for_each(|path| {
                    match path.is_dir() {
                        true => parts.extend(io_refused(source, entries(&path))?),
                        false => parts.push(path),
                    }
                    Ok(())
                })
            });
            if let Err(refused) = listed {
                self.refuse(&refused);
                return Ok(exit::FAILED);
            }
        }
        parts.retain(|part| part.is_file());
        let merged = match parts.iter().find(|part| onto_itself(part, &place).is_some()) {
            Some(part) => Err(Refused(format!("`{}' to `{target}': are identical", self.uri(part)))),
            None => io_refused(
                target,
                write_whole(&place, |out| {
                    parts.iter().try_for_each(|part| {
                        io::copy(&mut File::open(part)?, out)?;
                        if self.has(&["nl"]) { out.write_all(b"\n") } else { Ok(()) }
                    })
                }),
            ),
        };
        Ok(self.code_of(merged))
    }

    /// `-appendToFile LOCAL… PATH`.
    pub(super) fn append(&self) -> anyhow::Result<u8> {
        let Some((target, sources)) = self.paths.split_last().filter(|(_, sources)| !sources.is_empty())
        else {
            return Ok(self.too_few(2));
        };
        let local = self.places.with_default(DefaultSystem::Local);
        let place = self.places.local(target)?;
        let mut opened = Vec::new();
        // All of them, before anything is written.
        for source in sources {
            let file = match *source {
                STDIN => io::stdin().as_fd().try_clone_to_owned().map(File::from),
                source => File::open(local.local(source)?),
            };
            let own = file.and_then(|file| {
                let found = file.metadata()?;
                let is_own = fs::metadata(&place).is_ok_and(|there| is_same(&found, &there));
                Ok((file, is_own))
            });
            match io_refused(source, own) {
                Ok((file, false)) => opened.push(file),
                Ok((_, true)) => {
                    // It would grow for ever.
                    self.refuse(&Refused(format!("`{source}' to `{target}': are identical")));
                    return Ok(exit::FAILED);
                }
                Err(refused) => {
                    self.refuse(&refused);
                    return Ok(exit::FAILED);
                }
            }
        }
        let appended = File::options().append(true).create(true).open(&place).and_then(|mut file| {
            opened.iter_mut().try_for_each(|source| io::copy(source, &mut file).map(drop))
        });
        Ok(self.code_of(io_refused(target, appended)))
    }

    fn code_of(&self, outcome: Result<(), Refused>) -> u8 {
        match outcome {
            Ok(()) => exit::OK,
            Err(refused) => {
                self.refuse(&refused);
                exit::FAILED
            }
        }
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Why a file or folder cannot go to a place, in Hadoop's words, if that is itself, or lies within it.
fn onto_itself(source: &Path, place: &Path) -> Option<&'static str> {
    let whole = fs::metadata(source).ok()?;
    if fs::metadata(place).is_ok_and(|there| is_same(&whole, &there)) {
        return Some("are identical");
    }
    let source = fs::canonicalize(source).ok()?;
    let folder = place.parent().and_then(|folder| fs::canonicalize(folder).ok())?;
    (whole.is_dir() && folder.starts_with(source)).then_some("is a subdirectory of itself")
}

/// Copies a file, or a folder with all that is in it.
fn copy_tree(source: &Path, target: &Path, depth: usize) -> io::Result<()> {
    if !fs::metadata(source)?.is_dir() {
        return copy_file(source, target);
    }
    if depth == DEPTH_MAX {
        return Err(io::Error::other(format!(
            "{} lies more than {DEPTH_MAX} folders deep; copy it by itself",
            source.display()
        )));
    }
    fs::create_dir_all(target)?;
    entries(source)?.iter().try_for_each(|path| {
        path.file_name().map_or(Ok(()), |name| copy_tree(path, &target.join(name), depth + 1))
    })
}

/// Copies a file with its rights.
fn copy_file(source: &Path, target: &Path) -> io::Result<()> {
    let mut source = File::open(source)?;
    let found = source.metadata()?;
    write_whole(target, |file| {
        io::copy(&mut source, file)?;
        match found.is_file() && file.metadata()?.is_file() {
            true => file.set_permissions(found.permissions()),
            false => Ok(()),
        }
    })
}

/// Writes a file whole or not at all. What is there and is no file, such as a pipe, takes what comes as it comes; what
/// a link names is written, and the link stays.
fn write_whole(target: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    match fs::metadata(target) {
        Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if there.is_file() => {
            whole_file::replace(&fs::canonicalize(target)?, Promise::Plain, write)
        }
        Ok(_) => write(&mut File::options().write(true).open(target)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            whole_file::replace(target, Promise::Plain, write)
        }
        Err(error) => Err(error),
    }
}
