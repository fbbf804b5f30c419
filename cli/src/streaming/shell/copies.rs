//! `hadoop fs -put`, `-get`, `-cp`, `-mv`, `-getmerge` and `-appendToFile`: bytes that go from files into others.
//!
//! Which files go where; how one goes is in `copying`. What is refused is refused before anything is written.

use super::copying::{
    Taken, TreeCopy, holds_link, is_same, refuse_special, refuse_special_target, write_whole,
};
use super::trees::entries;
use super::{FileCall, NOT_FOUND, Refused, io_refused, refuse_no_folder};
use crate::streaming::links::{Way, way};
use crate::streaming::places::DefaultSystem;
use gristmill_runtime::exit;
use gristmill_worker::whole_file;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
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
        let whence = FileCall { places: from.clone(), ..self.with_paths(&[]) };
        let (all, count) = match self.all_sources(&whence, &sources, way) {
            Ok(all) => all,
            Err(refused) => {
                self.refuse(&refused);
                return Ok(exit::FAILED);
            }
        };
        let place = match way {
            // A name on this machine is no pattern.
            CopyWay::Down => {
                let place = to.local(target)?;
                refuse_no_folder(target, &place).map(|()| place)
            }
            _ => self.one_named(target),
        };
        let place = match place {
            Ok(place) => place,
            Err(refused) => {
                self.refuse(&refused);
                return Ok(exit::FAILED);
            }
        };
        // Also of those that are not there or are no files: what is left would take the target's name.
        if 1 < sources.len().max(count) && !place.is_dir() {
            let missing = if place.exists() { "Is not a directory" } else { NOT_FOUND };
            self.refuse(&Refused(format!("`{target}': {missing}")));
            return Ok(exit::FAILED);
        }
        let goes = match self.places_of(all, &place, way) {
            Ok(goes) => goes,
            Err(refused) => {
                self.refuse(&refused);
                return Ok(exit::FAILED);
            }
        };
        for (source, to) in goes {
            // What was named itself may be a pipe.
            if let Err(refused) = self.copy_one(&source, &to, to == place, target, way) {
                self.refuse(&refused);
            }
        }
        Ok(self.code())
    }

    /// All that is to be copied, but for what is missing or no file, which is told; and how many were found.
    ///
    /// # Errors
    /// What is to stay and would be moved.
    fn all_sources(
        &self,
        whence: &FileCall<'_>,
        names: &[&str],
        way: CopyWay,
    ) -> Result<(Vec<PathBuf>, usize), Refused> {
        let (mut all, mut count) = (Vec::new(), 0);
        for name in names {
            if *name == STDIN && way == CopyWay::Up {
                all.push(PathBuf::from(STDIN));
                count += 1;
                continue;
            }
            let found = match whence.sources(name, way) {
                Ok(found) => found,
                Err(refused) => {
                    self.refuse(&refused);
                    continue;
                }
            };
            if self.moves(way) {
                whence.refuse_moved(name, &found)?;
            }
            // One that is named itself is somebody's who writes to it; others are waited for without end.
            let is_named = whence.places.local(name).is_ok_and(|path| found == [path]);
            count += found.len();
            for path in found {
                let looked_at = fs::metadata(&path).ok().filter(|_| !is_named);
                match looked_at.map_or(Ok(()), |found| refuse_special(&self.uri(&path), &found)) {
                    Ok(()) => all.push(path),
                    Err(refused) => self.refuse(&refused),
                }
            }
        }
        Ok((all, count))
    }

    /// The files that the name of a source stands for. Of this machine's files that is the one so called, if there is one: a
    /// shell has done already what patterns ask for.
    fn sources(&self, name: &str, way: CopyWay) -> Result<Vec<PathBuf>, Refused> {
        let literal = self.places.local(name).ok().filter(|path| fs::symlink_metadata(path).is_ok());
        match literal.filter(|_| way == CopyWay::Up) {
            Some(path) => Ok(vec![path]),
            None => self.found(name),
        }
    }

    /// Whether what is copied goes from where it was.
    fn moves(&self, way: CopyWay) -> bool {
        way == CopyWay::Moved || self.name == "moveFromLocal"
    }

    /// Refuses to move what is to stay.
    fn refuse_moved(&self, name: &str, found: &[PathBuf]) -> Result<(), Refused> {
        self.refuse_dots(name)?;
        found.iter().try_for_each(|path| self.refuse_kept(name, path))
    }

    /// Each source with the place where it goes.
    ///
    /// # Errors
    /// A source without a name of its own, and two of which one would take the place of the other.
    fn places_of(
        &self,
        sources: Vec<PathBuf>,
        target: &Path,
        way: CopyWay,
    ) -> Result<Vec<(PathBuf, PathBuf)>, Refused> {
        let of = |source: PathBuf| {
            let to = place_of(&source, target).ok_or_else(|| {
                Refused(format!("`{}': has no name of its own; name its place", self.uri(&source)))
            })?;
            Ok((source, to))
        };
        let goes = sources.into_iter().map(of).collect::<Result<Vec<_>, Refused>>()?;
        let mut places = BTreeMap::new();
        for (source, place) in &goes {
            if let Some(other) = places.insert(place, source) {
                let [one, other, to] = [other, source, place].map(|path| self.uri(path));
                return Err(Refused(format!(
                    "`{one}' and `{other}' would both become `{to}'; copy or move one of them by itself"
                )));
            }
        }
        if self.has(&["f"]) && 1 < goes.len() {
            self.refuse_overwritten(&goes, target, way)?;
        }
        Ok(goes)
    }

    /// Refuses a source that lies where one before it goes, or in it, or to which a link there leads: it would be another one
    /// when its turn comes. So would the folder where all go.
    fn refuse_overwritten(
        &self,
        goes: &[(PathBuf, PathBuf)],
        target: &Path,
        copied: CopyWay,
    ) -> Result<(), Refused> {
        let is_stdin = |source: &Path| source.as_os_str() == STDIN;
        // What would go onto itself stays, as long as both of its names lead there.
        let stays = |(source, place): &(PathBuf, PathBuf)| {
            !is_stdin(source) && self.onto_itself(source, place).is_some()
        };
        let stays: Vec<bool> = goes.iter().map(stays).collect();
        // Paths whose ways must lead where they do, links at their ends followed or not, until their turn.
        let mut paths: Vec<(&Path, bool, usize)> = Vec::new();
        for (turn, (source, place)) in goes.iter().enumerate().filter(|(_, (source, _))| !is_stdin(source)) {
            // A link that is moved is not followed itself.
            paths.push((source, copied != CopyWay::Moved, turn));
            if stays[turn] {
                paths.extend([(&**source, true, turn), (&**place, true, turn)]);
            }
        }
        if target.is_dir() {
            paths.push((target, true, goes.len().saturating_sub(1)));
        }
        let needed: BTreeSet<(PathBuf, usize, &Path)> = paths
            .into_iter()
            .flat_map(|(path, follows, turn)| {
                crossed(path, follows).into_iter().map(move |place| (place, turn, path))
            })
            .collect();
        for (turn, (source, place)) in goes.iter().enumerate() {
            let folder = place.parent().and_then(|folder| fs::canonicalize(folder).ok());
            let at = folder.zip(place.file_name()).map(|(folder, name)| folder.join(name));
            // What is new, or stays as it is, takes nothing away.
            let is_written = fs::symlink_metadata(place).is_ok() && !stays[turn];
            let Some(at) = at.filter(|_| is_written) else { continue };
            let from = (at.clone(), 0, Path::new(""));
            let mut below = needed.range(from..).take_while(|(other, ..)| other.starts_with(&at));
            if let Some((_, _, other)) = below.find(|(_, other, _)| turn < *other) {
                let [one, other] = [source, *other].map(|path| self.uri(path));
                return Err(Refused(format!(
                    "`{other}' would be overwritten by `{one}' before its turn; copy or move one of them by itself"
                )));
            }
        }
        Ok(())
    }

    fn copy_one(
        &self,
        source: &Path,
        place: &Path,
        is_named: bool,
        name: &str,
        way: CopyWay,
    ) -> Result<(), Refused> {
        if place.exists() && !self.has(&["f"]) {
            return Err(Refused(format!("`{name}': File exists")));
        }
        if !place.parent().is_some_and(Path::is_dir) {
            return Err(Refused(format!("`{name}': {NOT_FOUND}")));
        }
        if source.as_os_str() == STDIN {
            let mut stdin = io::stdin().lock();
            return io_refused(
                name,
                write_whole(place, self.taken(), |file| io::copy(&mut stdin, file).map(drop)),
            );
        }
        if let Some(how) = self.onto_itself(source, place) {
            return Err(Refused(format!("`{}' to `{}': {how}", self.uri(source), self.uri(place))));
        }
        if !is_named {
            // A pipe is somebody's who reads from it only where it was named itself.
            refuse_special_target(&self.uri(place), place)?;
        }
        if !self.moves(way) {
            return self.copy_tree(source, place, &mut TreeCopy::default()).map(drop);
        }
        self.refuse_kept(name, place)?;
        if way == CopyWay::Up && holds_link(source) {
            // Where it goes to it would lead elsewhere.
            return self.copy_away(source, place);
        }
        self.move_tree(source, place)
    }

    /// `-getmerge [-nl] [-skip-empty-file] PATH… LOCAL`. What a copy that was killed has left half is left out.
    pub(super) fn merge(&self) -> anyhow::Result<u8> {
        let Some((target, sources)) = self.paths.split_last().filter(|(_, sources)| !sources.is_empty())
        else {
            return Ok(self.too_few(2));
        };
        let place = self.places.with_default(DefaultSystem::Local).local(target)?;
        if let Err(refused) = refuse_no_folder(target, &place) {
            self.refuse(&refused);
            return Ok(exit::FAILED);
        }
        let mut parts = Vec::new();
        // All of them, before anything is written.
        for source in sources {
            let listed = self.found(source).and_then(|found| {
                found.into_iter().try_for_each(|path| {
                    match path.is_dir() {
                        true => {
                            let below = io_refused(source, entries(&path))?;
                            let is_whole =
                                |path: &PathBuf| !path.file_name().is_some_and(whole_file::is_draft);
                            parts.extend(below.into_iter().filter(is_whole));
                        }
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
        let mut whole = Vec::new();
        for part in parts {
            match io_refused(&self.uri(&part), fs::metadata(&part)) {
                Ok(found) if found.is_file() && found.len() == 0 && self.has(&["skip-empty-file"]) => {}
                Ok(found) if found.is_file() => whole.push(part),
                Ok(found) if found.is_dir() => {}
                found => {
                    let name = self.uri(&part);
                    if let Err(refused) = found.and_then(|found| refuse_special(&name, &found)) {
                        self.refuse(&refused);
                        return Ok(exit::FAILED);
                    }
                }
            }
        }
        if let Some(part) = whole.iter().find(|part| self.onto_itself(part, &place).is_some()) {
            self.refuse(&Refused(format!("`{}' to `{target}': are identical", self.uri(part))));
            return Ok(exit::FAILED);
        }
        let mut blamed = (*target).to_owned();
        let merged = write_whole(&place, Taken::Replaced, |out| {
            whole.iter().try_for_each(|part| {
                io::copy(&mut File::open(part).inspect_err(|_| blamed = self.uri(part))?, out)?;
                if self.has(&["nl"]) { out.write_all(b"\n") } else { Ok(()) }
            })
        });
        let merged = io_refused(&blamed, merged);
        Ok(self.code_of(merged))
    }

    /// `-appendToFile LOCAL… PATH`.
    pub(super) fn append(&self) -> anyhow::Result<u8> {
        let Some((target, sources)) = self.paths.split_last().filter(|(_, sources)| !sources.is_empty())
        else {
            return Ok(self.too_few(2));
        };
        let local = self.places.with_default(DefaultSystem::Local);
        let place = match self.one_named(target) {
            Ok(place) => place,
            Err(refused) => {
                self.refuse(&refused);
                return Ok(exit::FAILED);
            }
        };
        let mut opened = Vec::new();
        // All of them, before anything is written.
        for source in sources {
            let file = match *source {
                STDIN => io::stdin().as_fd().try_clone_to_owned().map(File::from),
                source => File::open(local.local(source)?),
            };
            let own = file.and_then(|file| {
                let found = file.metadata()?;
                if found.is_dir() {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
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

/// Where a path leads, and each link on its way there, all by names without links; of a link at its end alone where that
/// is not followed.
fn crossed(path: &Path, follows: bool) -> Vec<PathBuf> {
    let Ok(path) = std::path::absolute(path) else { return Vec::new() };
    let (folder, name) = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if !follows => (folder, Path::new(name)),
        _ => (&*path, Path::new("")),
    };
    let root = Path::new("/");
    let Way { links, end, .. } = way(root, folder, usize::MAX);
    let end = end.map(|end| if name.as_os_str().is_empty() { end } else { end.join(name) });
    links.into_iter().chain(end).map(|place| root.join(place)).collect()
}

/// Where a file or folder goes: into a folder that is there, or to that name. `None` if it has no name to have in there.
fn place_of(source: &Path, target: &Path) -> Option<PathBuf> {
    if !target.is_dir() {
        return Some(target.to_owned());
    }
    let own = source.file_name().map(ToOwned::to_owned);
    // One that ends in `..`.
    let own = own.or_else(|| fs::canonicalize(source).ok()?.file_name().map(ToOwned::to_owned));
    own.map(|own| target.join(own))
}
