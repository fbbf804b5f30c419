//! `hadoop fs`: files of `hdfs:` by Hadoop's commands, as far as scripts and drivers of Hadoop Streaming use them.
//!
//! What is wrong is said in one line, as Hadoop says it: drivers read these. Not here: owners, replicas, quotas and a bin
//! for what is removed; what is said of those is true of this machine, or nothing.

mod changes;
mod copies;
mod copying;
mod find;
mod flags;
mod listing;
mod removal;
mod shown;
mod times;
mod trees;
mod wildcards;

use super::StreamError;
use super::lists::expand_braces;
use super::options::read;
use super::places::{DefaultSystem, FileNames, path_of, scheme_of};
use crate::terminal::{stderr_line, stdout_line};
use copies::CopyWay;
use flags::{Flags, take_flags};
use gristmill_runtime::exit;
use gristmill_worker::input::wildcards::{has_wildcards, only_name};
use rustix::fs::Access;
use shown::{print_end, print_file};
use std::cell::Cell;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use times::touch_empty;
use wildcards::{Unreadable, glob, there};

/// How Hadoop says that a file is missing.
const NOT_FOUND: &str = "No such file or directory";

const HELP: &str = "\
Usage: hadoop fs [generic options]
  -appendToFile LOCAL... PATH   -cat PATH...   -chmod [-R] MODE PATH...   -chown|-chgrp [-R] OWNER PATH...
  -copyFromLocal, -put [-f] [-p] LOCAL... PATH   -moveFromLocal [-f] LOCAL... PATH
  -copyToLocal, -get [-f] [-p] PATH... LOCAL
  -count [-h] PATH...   -cp [-f] [-p[topax]] PATH... PATH   -df [-h] PATH...   -du [-s] [-h] PATH...   -expunge
  -find PATH... [-name|-iname PATTERN] [-print|-print0]   -getmerge [-nl] [-skip-empty-file] PATH... LOCAL
  -head PATH   -tail PATH
  -ls [-C] [-d] [-h] [-R] [-S] [-t] [-r] PATH...   -mkdir [-p] PATH...   -mv [-f] PATH... PATH
  -rm [-f] [-r] [-skipTrash] PATH...   -rmdir [--ignore-fail-on-non-empty] PATH...   -setrep N PATH...
  -stat [FORMAT] PATH...   -test -e|-d|-f|-z|-s|-r|-w PATH   -text PATH...
  -touch [-a] [-m] [-c] [-t yyyyMMdd:HHmmss] PATH...   -touchz PATH...";

/// A command that did not do what was asked.
struct Refused(String);

type FileOutcome<T = ()> = anyhow::Result<Result<T, Refused>>;

/// A command with its flags and its paths.
struct FileCall<'a> {
    name: &'a str,
    flags: Flags<'a>,
    paths: Vec<&'a str>,
    places: FileNames,
    /// Whether anything was not done, and told.
    has_refused: Cell<bool>,
    /// The name of those that is at hand.
    typed: Cell<&'a str>,
}

/// `hadoop fs -COMMAND …`. Answers the exit code.
///
/// # Errors
/// A stdout that cannot be written to.
pub fn run(words: &[String]) -> anyhow::Result<u8> {
    let mut places = FileNames::new(DefaultSystem::Hdfs)?;
    let words = match take_generic(words) {
        Ok((system, rest)) => {
            places.default = system;
            rest
        }
        Err(StreamError { message, .. }) => {
            stderr_line(&format!("hadoop fs: {message}"));
            return Ok(u8::MAX);
        }
    };
    let Some((command, rest)) = words.split_first() else {
        stderr_line("Usage: hadoop fs [generic options]");
        return Ok(u8::MAX);
    };
    let name = command.trim_start_matches('-');
    let (flags, paths) = match take_flags(name, rest) {
        Ok(taken) => taken,
        Err(unknown) => {
            stderr_line(&format!("{command}: Illegal option {unknown}"));
            return Ok(u8::MAX);
        }
    };
    let has_refused = Cell::new(false);
    let typed = Cell::new("");
    let call = FileCall {
        name,
        flags,
        paths: paths.iter().map(String::as_str).collect(),
        places,
        has_refused,
        typed,
    };
    if paths.iter().any(String::is_empty) {
        // Most often a variable that is not set, and never the user's folder: `-rm -r ""` would be the end of it.
        call.refuse(&Refused("Can not create a Path from an empty string".to_owned()));
        return Ok(u8::MAX);
    }
    match call.carry_out()? {
        Some(code) => Ok(code),
        None => {
            stderr_line(&format!("{command}: Unknown command"));
            Ok(u8::MAX)
        }
    }
}

/// Takes the generic options off, which come first: what a name without a scheme means by them, and the words behind.
///
/// # Errors
/// A system that is not here, or a file of settings that cannot be read.
fn take_generic(words: &[String]) -> Result<(DefaultSystem, &[String]), StreamError> {
    let mut rest = words;
    loop {
        rest = match rest {
            [option, _, rest @ ..] if ["-fs", "-conf", "-D"].contains(&&**option) => rest,
            [option, rest @ ..] if option.starts_with("-D") && option.contains('=') => rest,
            _ => break,
        };
    }
    let typed = read(&words[..words.len() - rest.len()])?;
    Ok((typed.default_system()?.unwrap_or(DefaultSystem::Hdfs), rest))
}

impl<'a> FileCall<'a> {
    fn has(&self, flags: &[&str]) -> bool {
        self.flags.iter().any(|(flag, _)| flags.contains(flag))
    }

    /// The value of a flag.
    fn value(&self, wanted: &str) -> Option<&'a str> {
        self.flags.iter().find(|(flag, _)| *flag == wanted).map(|(_, value)| *value)
    }

    /// The same with other paths.
    fn with_paths(&self, paths: &[&'a str]) -> Self {
        Self {
            name: self.name,
            flags: self.flags.clone(),
            paths: paths.to_vec(),
            places: self.places.clone(),
            has_refused: Cell::new(false),
            typed: Cell::new(""),
        }
    }

    /// Does it; `None` if there is no such command.
    fn carry_out(&self) -> anyhow::Result<Option<u8>> {
        let code = match self.name {
            "ls" => self.each_path(|path| self.list(path, self.has(&["R"])))?,
            "lsr" => self.each_path(|path| self.list(path, true))?,
            "cat" => self.each_path(|path| print_file(path, &self.uri(path), false))?,
            "text" => self.each_path(|path| print_file(path, &self.uri(path), true))?,
            "tail" => self.each_path(|path| print_end(path, &self.uri(path), false))?,
            "head" => self.each_path(|path| print_end(path, &self.uri(path), true))?,
            "mkdir" => self.each_name(|name, path| self.make_folder(name, path))?,
            "touch" => self.touch()?,
            "touchz" => self.each_name(touch_empty)?,
            "rm" => self.remove(self.has(&["r", "R"]))?,
            "rmr" => self.remove(true)?,
            "rmdir" => self.remove_empty()?,
            "du" | "dus" => {
                self.each_path(|path| self.sizes(path, self.name == "dus" || self.has(&["s"])))?
            }
            "count" => self.each_path(|path| self.count(path))?,
            "stat" => self.stat()?,
            "find" => self.find_files()?,
            "df" => self.each_path(|path| self.show_room(path))?,
            "chmod" => self.change_rights()?,
            "appendToFile" => self.append()?,
            "test" => return self.test().map(Some),
            "put" | "copyFromLocal" | "moveFromLocal" => self.copy(CopyWay::Up)?,
            "get" | "copyToLocal" => self.copy(CopyWay::Down)?,
            "cp" => self.copy(CopyWay::Within)?,
            "mv" => self.copy(CopyWay::Moved)?,
            "getmerge" => self.merge()?,
            // Files keep the owner and the one copy that they have.
            "chown" | "chgrp" | "setrep" => self.only_look()?,
            "expunge" => exit::OK,
            "moveToLocal" => {
                self.refuse(&Refused("Option '-moveToLocal' is not implemented yet.".to_owned()));
                u8::MAX
            }
            "help" | "usage" => {
                stdout_line(&HELP)?;
                exit::OK
            }
            _ => return Ok(None),
        };
        Ok(Some(code))
    }

    fn uri(&self, path: &Path) -> String {
        match self.places.default {
            DefaultSystem::Hdfs if matches!(self.name, "ls" | "lsr") => {
                self.places.as_typed(self.typed.get(), path)
            }
            DefaultSystem::Hdfs => self.places.uri(path),
            DefaultSystem::Local => path.display().to_string(),
        }
    }

    /// Says what is not done.
    fn refuse(&self, refused: &Refused) {
        self.has_refused.set(true);
        stderr_line(&format!("{}: {}", self.name, refused.0));
    }

    /// How a call ends that did what it could.
    fn code(&self) -> u8 {
        if self.has_refused.get() { exit::FAILED } else { exit::OK }
    }

    /// Refuses a call that names fewer paths than its command takes.
    fn too_few(&self, expected: usize) -> u8 {
        let named = self.paths.len();
        self.refuse(&Refused(format!("Not enough arguments: expected {expected} but got {named}")));
        u8::MAX
    }

    /// Does something with every file that the paths stand for. One that is missing does not keep the others from it.
    fn each_path(&self, mut work: impl FnMut(&Path) -> FileOutcome) -> anyhow::Result<u8> {
        let here: [&'a str; 1] = [""];
        let names = if self.paths.is_empty() && self.name == "ls" { &here[..] } else { &self.paths[..] };
        if names.is_empty() {
            return Ok(self.too_few(1));
        }
        for name in names {
            self.typed.set(name);
            let found = match self.found(name) {
                Ok(found) => found,
                Err(refused) => {
                    self.refuse(&refused);
                    continue;
                }
            };
            for path in found {
                if let Err(refused) = work(&path)? {
                    self.refuse(&refused);
                }
            }
        }
        Ok(self.code())
    }

    /// Does something with every file that the names stand for, or with the one that is to be made.
    fn each_name(&self, mut work: impl FnMut(&str, &Path) -> FileOutcome) -> anyhow::Result<u8> {
        if self.paths.is_empty() {
            return Ok(self.too_few(1));
        }
        for name in &self.paths {
            match self.named_or_new(name) {
                Ok(paths) => {
                    for path in paths {
                        let fits = if self.name == "mkdir" { Ok(()) } else { refuse_no_folder(name, &path) };
                        let done = fits.map_or_else(|refused| Ok(Err(refused)), |()| work(name, &path));
                        if let Err(refused) = done? {
                            self.refuse(&refused);
                        }
                    }
                }
                Err(refused) => self.refuse(&refused),
            }
        }
        Ok(self.code())
    }

    /// The files that a name stands for, or the one that is to have it. A pattern that nothing fits is not made to be a
    /// file's name.
    fn named_or_new(&self, name: &str) -> Result<Vec<PathBuf>, Refused> {
        let found = self.named(name)?;
        if !found.is_empty() {
            return Ok(found);
        }
        let literal = literal_name(name).ok_or_else(|| Refused(format!("`{name}': {NOT_FOUND}")))?;
        let path = self.places.local(&literal).map_err(|error| Refused(error.to_string()))?;
        if self.name == "mkdir" {
            return Ok(vec![path]);
        }
        // Folders that are there from the beginning where somebody has set up a cluster.
        if self.places.home().starts_with(&path) && path.starts_with(self.places.root()) {
            return io_refused(name, fs::create_dir_all(&path)).map(|()| vec![path]);
        }
        if is_folders_name(name) {
            return Err(Refused(format!("`{name}': {NOT_FOUND}")));
        }
        Ok(vec![path])
    }

    /// The same, where it can be one file only.
    fn one_named(&self, name: &str) -> Result<PathBuf, Refused> {
        let found = self.named_or_new(name)?;
        let count = found.len();
        let [one] = <[PathBuf; 1]>::try_from(found)
            .map_err(|_| Refused(format!("`{name}': stands for {count} files, and one is needed")))?;
        refuse_no_folder(name, &one).map(|()| one)
    }

    /// The files that a name stands for, each once, in the order of their names; there may be none. A name that is a file's
    /// own and a pattern that others fit is refused: neither of both is surely meant, and some commands remove.
    fn named(&self, name: &str) -> Result<Vec<PathBuf>, Refused> {
        let names = expand_braces(name).map_err(|error| Refused(error.to_string()))?;
        if names == [name] {
            return self.found_as(name);
        }
        let mut all = Vec::new();
        for name in &names {
            all.extend(self.found_as(name)?);
        }
        all.sort_unstable();
        all.dedup();
        self.own_or_found(name, all)
    }

    /// The same of a name without braces that mean anything.
    fn found_as(&self, name: &str) -> Result<Vec<PathBuf>, Refused> {
        let path = self.places.local(name).map_err(|error| Refused(error.to_string()))?;
        let readable = |found: Result<Vec<PathBuf>, Unreadable>| {
            found.or_else(|found| io_refused(&self.uri(&found.folder), Err(found.error)))
        };
        if !has_wildcards(name.as_bytes()) {
            return readable(there(path).map(Vec::from_iter));
        }
        let pattern = self.places.pattern(name).map_err(|error| Refused(error.to_string()))?;
        let mut found = readable(glob(&pattern))?;
        found.sort_unstable();
        found.dedup();
        self.own_or_found(name, found)
    }

    /// What was found by a pattern, or the file whose own name the pattern is, if others do not fit it.
    fn own_or_found(&self, name: &str, found: Vec<PathBuf>) -> Result<Vec<PathBuf>, Refused> {
        let own = self.places.local(name).map_err(|error| Refused(error.to_string()))?;
        // What escapes signs is no name of a file as it stands, nor is one whose pattern `..` takes back, or a machine's name.
        let is_plain = |path: &str| !path.contains('\\') && path.split('/').all(|part| part != "..");
        let is_own = path_of(name).is_some_and(is_plain);
        if !is_own || own.symlink_metadata().is_err() {
            return Ok(found);
        }
        if found.iter().all(|found| *found == own) {
            return Ok(vec![own]);
        }
        Err(Refused(format!(
            "`{name}': there is a file of that name, and there are others that fit it as a pattern; write a \\ before each \
             sign that stands for itself, or a pattern that is no file's name"
        )))
    }

    /// The same, of which there must be one.
    fn found(&self, name: &str) -> Result<Vec<PathBuf>, Refused> {
        let all = self.named(name)?;
        if !all.is_empty() {
            return Ok(all);
        }
        // The user's own folder is there from the beginning, as it is where somebody has set up a cluster.
        let home = self.places.home();
        if name.is_empty() && fs::create_dir_all(&home).is_ok() {
            return Ok(vec![home]);
        }
        Err(Refused(format!("`{name}': {NOT_FOUND}")))
    }

    /// What is at a path; behind a link if that is what one of the names says, and not one that fits a pattern.
    fn look_behind(&self, names: &[&str], path: &Path) -> io::Result<Metadata> {
        let is_named = names.iter().any(|name| self.places.local(name).is_ok_and(|named| named == path));
        if is_named { fs::metadata(path) } else { fs::symlink_metadata(path) }
    }

    fn make_folder(&self, name: &str, path: &Path) -> FileOutcome {
        if self.has(&["p"]) {
            return Ok(io_refused(name, fs::create_dir_all(path)));
        }
        if path.exists() {
            return Ok(Err(Refused(format!("`{name}': File exists"))));
        }
        let root = self.places.root();
        let made = if path.parent() == Some(root) { fs::create_dir_all(root) } else { Ok(()) };
        Ok(io_refused(name, made.and_then(|()| fs::create_dir(path))))
    }

    /// `-test -e|-d|-f|-z|-s|-r|-w PATH`: the answer is the exit code. All files that the name stands for must be so.
    fn test(&self) -> anyhow::Result<u8> {
        let [name] = self.paths[..] else {
            self.refuse(&Refused(format!("expected 1 path but got {}", self.paths.len())));
            return Ok(u8::MAX);
        };
        let found = match self.named(name) {
            Ok(found) => found,
            Err(refused) => {
                self.refuse(&refused);
                return Ok(exit::FAILED);
            }
        };
        let may = |path: &Path, access| rustix::fs::access(path, access).is_ok();
        let is = |path: &Path, flag: &str| match (flag, fs::metadata(path)) {
            ("e", found) => found.is_ok(),
            ("r", _) => may(path, Access::READ_OK),
            ("w", _) => may(path, Access::WRITE_OK),
            ("d", Ok(found)) => found.is_dir(),
            ("f", Ok(found)) => found.is_file(),
            // A folder of Hadoop's has no bytes.
            ("z", Ok(found)) => found.is_dir() || found.len() == 0,
            ("s", Ok(found)) => !found.is_dir() && 0 < found.len(),
            _ => false,
        };
        let are = !self.flags.is_empty()
            && !found.is_empty()
            && found.iter().all(|path| self.flags.iter().all(|(flag, _)| is(path, flag)));
        Ok(if are { exit::OK } else { exit::FAILED })
    }

    /// `-chown OWNER PATH…`, `-chgrp GROUP PATH…` and `-setrep N PATH…`: looks whether the paths are there.
    fn only_look(&self) -> anyhow::Result<u8> {
        let Some((word, names)) = self.paths.split_first().filter(|(_, names)| !names.is_empty()) else {
            return Ok(self.too_few(2));
        };
        if self.name == "setrep" && !word.parse::<u16>().is_ok_and(|copies| 0 < copies) {
            self.refuse(&Refused(format!("Illegal replication, a positive integer expected: {word}")));
            return Ok(u8::MAX);
        }
        for name in names {
            if let Err(refused) = self.found(name) {
                self.refuse(&refused);
            }
        }
        Ok(self.code())
    }
}

/// What the operating system says, as Hadoop would.
fn io_refused<T>(name: &str, result: io::Result<T>) -> Result<T, Refused> {
    result.map_err(|error| {
        let said = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND.to_owned(),
            io::ErrorKind::AlreadyExists => "File exists".to_owned(),
            io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
            io::ErrorKind::NotADirectory => "Is not a directory".to_owned(),
            io::ErrorKind::IsADirectory => "Is a directory".to_owned(),
            io::ErrorKind::DirectoryNotEmpty => "Directory is not empty".to_owned(),
            _ => error.to_string(),
        };
        Refused(format!("`{name}': {said}"))
    })
}

/// Whether a name, or one that it stands for, can be that of a folder only.
fn is_folders_name(name: &str) -> bool {
    let ends_so = |name: &String| matches!(name.rsplit('/').next(), Some("" | "." | ".."));
    expand_braces(name).is_ok_and(|names| names.iter().any(ends_so))
}

/// Refuses a file under a name that can be that of a folder only.
fn refuse_no_folder(name: &str, path: &Path) -> Result<(), Refused> {
    match (is_folders_name(name) && !path.is_dir(), path.exists()) {
        (true, true) => Err(Refused(format!("`{name}': Is not a directory"))),
        (true, false) => Err(Refused(format!("`{name}': {NOT_FOUND}"))),
        _ => Ok(()),
    }
}

/// The name that is meant where no sign stands for others; `None` where braces or wildcards do.
fn literal_name(name: &str) -> Option<String> {
    match expand_braces(name).ok()?.as_slice() {
        [one] if one == name => {}
        _ => return None,
    }
    let parts = name.split('/').map(|part| String::from_utf8(only_name(part.as_bytes())?).ok());
    let literal = parts.collect::<Option<Vec<_>>>()?.join("/");
    // An escaped colon makes no scheme.
    let is_scheme = scheme_of(name).is_none() && scheme_of(&literal).is_some();
    Some(if is_scheme { format!("./{literal}") } else { literal })
}

fn look(path: &Path, name: &str) -> Result<Metadata, Refused> {
    fs::metadata(path).map_err(|_| Refused(format!("`{name}': {NOT_FOUND}")))
}
