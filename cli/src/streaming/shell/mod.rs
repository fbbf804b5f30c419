//! `hadoop fs`: files of `hdfs:` by the commands of Hadoop that mrjob and luigi call.
//!
//! Errors are one line each, in Hadoop's words, as drivers parse them. Owners, replicas, quotas and a trash
//! are not supported.

mod copy;
mod list;
mod rights;

use super::error::StreamError;
use super::file_names::{DefaultSystem, FileNames};
use super::glob;
use super::options::read;
use crate::terminal::{StdoutClosed, stderr_line, stdout_line, written};
use gristmill_runtime::exit;
use gristmill_runtime::output_dir;
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

/// Hadoop's words for a missing file.
const NOT_FOUND: &str = "No such file or directory";

/// Commands for the message about an unknown one.
const COMMANDS: &str = "ls (lsr), cat, mkdir, rm (rmr), du (dus), touchz, test, stat, mv, cp, put, get, getmerge, \
                        count, chmod and chown";

/// Exit code of an invalid call: the value -1 as an exit code.
const NOT_DONE: u8 = u8::MAX;

/// Bytes that are printed at once.
const PRINT_BYTES: usize = 64 << 10;

/// Error of a command, one line without the command's name.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct FsError(String);

/// Command with its flags and paths.
struct FsCall<'a> {
    name: &'a str,
    flags: Vec<&'a str>,
    paths: Vec<&'a str>,
    names: FileNames,
    has_failed: Cell<bool>,
}

/// Executes `hadoop fs -COMMAND …` and returns its exit code.
///
/// # Errors
/// A stdout that is closed, or no directory for `hdfs:`.
pub fn run(words: &[String]) -> anyhow::Result<u8> {
    let refuse = |message: String| {
        stderr_line(&message);
        Ok(NOT_DONE)
    };
    let (default, words) = match take_generic(words) {
        Ok(taken) => taken,
        Err(StreamError { message, .. }) => return refuse(format!("hadoop fs: {message}")),
    };
    let names = FileNames::new(DefaultSystem::Hdfs)?.with_default(default);
    let Some((command, rest)) = words.split_first() else {
        return refuse("Usage: hadoop fs [generic options]".to_owned());
    };
    // mrjob and luigi call two of them by longer names.
    let name = match command.trim_start_matches('-') {
        "copyToLocal" => "get",
        "copyFromLocal" => "put",
        name => name,
    };
    let Some((known, paths_min)) = signature(name) else {
        return refuse(format!("{command}: Unknown command; available: {COMMANDS}"));
    };
    let (flags, paths) = match take_flags(known, rest) {
        Ok(taken) => taken,
        Err(unknown) => return refuse(format!("{command}: Illegal option {unknown}")),
    };
    if paths.contains(&"") {
        // The usual cause is an unset variable. The name would mean the user's directory: `-rm -r ""` would
        // remove it.
        return refuse(format!("{name}: Can not create a Path from an empty string"));
    }
    if name == "stat" && paths.iter().any(|path| path.contains('%')) {
        return refuse("stat: formats are not supported; -ls and -du print sizes and permissions".to_owned());
    }
    if paths.len() < paths_min || (name == "test" && paths.len() != 1) {
        let got = paths.len();
        return refuse(format!("{name}: Not enough arguments: expected {paths_min} but got {got}"));
    }
    // It exists from the start, as on a cluster set up by an administrator.
    let _ = fs::create_dir_all(&names.root);
    FsCall { name, flags, paths, names, has_failed: Cell::new(false) }.carry_out()
}

/// Flags and the smallest number of paths of a command; `None` if it is unknown.
fn signature(name: &str) -> Option<(&'static [&'static str], usize)> {
    Some(match name {
        "ls" => (&["R", "d"], 0),
        "lsr" => (&[], 0),
        "rm" | "rmr" => (&["f", "r", "R", "skipTrash"], 1),
        "mkdir" => (&["p"], 1),
        "du" => (&["s"], 1),
        "test" => (&["e", "d", "f", "z", "s"], 1),
        "put" | "get" => (&["f"], 1),
        "cp" => (&["f"], 2),
        "getmerge" => (&["nl"], 2),
        "chmod" | "chown" => (&["R"], 2),
        "mv" => (&[], 2),
        "cat" | "dus" | "touchz" | "stat" | "count" => (&[], 1),
        _ => return None,
    })
}

/// Splits off the generic options, which come first: the meaning of names without a scheme, and the words
/// after.
///
/// # Errors
/// An unknown file system, or settings that cannot be read.
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

/// Flags of a call, without their dash, and the words after them.
type FlagsAndPaths<'a> = (Vec<&'a str>, Vec<&'a str>);

/// Splits the words after a command into flags and paths.
///
/// # Errors
/// The flag that the command does not know.
fn take_flags<'a>(known: &[&str], words: &'a [String]) -> Result<FlagsAndPaths<'a>, &'a str> {
    let mut flags = Vec::new();
    let mut rest = words;
    while let [word, behind @ ..] = rest {
        match word.strip_prefix('-') {
            Some("-") => {
                rest = behind;
                break;
            }
            Some(flag) if known.contains(&flag) => flags.push(flag),
            // A single dash is standard input.
            Some(flag) if !flag.is_empty() => return Err(word),
            _ => break,
        }
        rest = behind;
    }
    Ok((flags, rest.iter().map(String::as_str).collect()))
}

impl FsCall<'_> {
    fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    fn carry_out(&self) -> anyhow::Result<u8> {
        let paths = &self.paths[..];
        match self.name {
            "ls" | "lsr" if paths.is_empty() => self.each(&[""], |name, path| self.list(name, path))?,
            "ls" | "lsr" => self.each(paths, |name, path| self.list(name, path))?,
            "cat" => self.each(paths, |_, path| self.print(path))?,
            "mkdir" => self.each_new(|name, path| self.make_directory(name, path))?,
            "touchz" => self.each_new(touch_empty)?,
            "rm" | "rmr" => self.each(paths, |name, path| self.remove(name, path))?,
            "du" | "dus" => self.each(paths, |_, path| self.sizes(path))?,
            "count" => self.each(paths, |_, path| self.count(path))?,
            "stat" => self.each(paths, |_, path| self.stat(path))?,
            "test" => return self.test(),
            "getmerge" => self.report(self.merge())?,
            "chmod" => self.change_rights()?,
            // Files keep their owner.
            "chown" => self.each(&paths[1..], |_, _| Ok(()))?,
            _ => self.report(self.copy())?,
        }
        Ok(if self.has_failed.get() { exit::FAILED } else { exit::OK })
    }

    /// Prints an error and continues with the other paths of the call; a closed stdout ends the call.
    fn report(&self, result: anyhow::Result<()>) -> anyhow::Result<()> {
        match result {
            Err(error) if !error.is::<StdoutClosed>() => {
                self.has_failed.set(true);
                stderr_line(&format!("{}: {error:#}", self.name));
                Ok(())
            }
            result => result,
        }
    }

    /// Calls `work` with each name and each path that it matches.
    fn each(
        &self,
        names: &[&str],
        mut work: impl FnMut(&str, &Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for name in names {
            match self.found(&self.names, name) {
                Ok(found) => found.iter().try_for_each(|path| self.report(work(name, path)))?,
                Err(error) => self.report(Err(error))?,
            }
        }
        Ok(())
    }

    /// Calls `work` with each name and its path. A name to be created is never a pattern.
    fn each_new(&self, work: impl Fn(&str, &Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.paths
            .iter()
            .try_for_each(|name| self.report(path_of(&self.names, name).and_then(|path| work(name, &path))))
    }

    /// Returns the paths of a name, in the order of their names: the path of exactly this name, else those
    /// that match it as a pattern, else none.
    fn find(&self, names: &FileNames, name: &str) -> anyhow::Result<Vec<PathBuf>> {
        let path = path_of(names, name)?;
        match path.symlink_metadata() {
            Ok(_) => Ok(vec![path]),
            Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(in_hadoops_words(name, Err(error))?)
            }
            Err(_) if glob::is_pattern(name) => glob::matching(&names.pattern(name)?),
            Err(_) => Ok(Vec::new()),
        }
    }

    /// As [`FsCall::find`], with an error if none exists, unless `-rm -f` was typed.
    fn found(&self, names: &FileNames, name: &str) -> anyhow::Result<Vec<PathBuf>> {
        let is_forgiven = self.name.starts_with("rm") && self.has("f");
        match self.find(names, name)? {
            found if found.is_empty() && !is_forgiven => {
                Err(FsError(format!("`{name}': {NOT_FOUND}")).into())
            }
            found => Ok(found),
        }
    }

    fn make_directory(&self, name: &str, path: &Path) -> anyhow::Result<()> {
        let made = if self.has("p") { fs::create_dir_all(path) } else { fs::create_dir(path) };
        Ok(in_hadoops_words(name, made)?)
    }

    /// `-cat PATH…`. Distinguishes errors of the file from errors of stdout.
    fn print(&self, path: &Path) -> anyhow::Result<()> {
        let name = self.names.uri(path);
        let mut file = in_hadoops_words(&name, File::open(path))?;
        let mut out = io::stdout().lock();
        let mut buffer = vec![0; PRINT_BYTES];
        loop {
            match in_hadoops_words(&name, file.read(&mut buffer))? {
                0 => return written(out.flush()),
                count => written(out.write_all(&buffer[..count]))?,
            }
        }
    }

    /// `-rm [-f] [-r] PATH…`.
    fn remove(&self, name: &str, path: &Path) -> anyhow::Result<()> {
        let is_recursive = self.name == "rmr" || self.has("r") || self.has("R");
        self.refuse_root(name, path)?;
        let found = in_hadoops_words(name, path.symlink_metadata())?;
        let removed = match (found.is_dir(), is_recursive) {
            (true, false) => Err(io::ErrorKind::IsADirectory.into()),
            (true, true) => fs::remove_dir_all(path),
            (false, _) => fs::remove_file(path),
        };
        in_hadoops_words(name, removed)?;
        stdout_line(&format!("Deleted {}", self.names.uri(path)))
    }

    /// Refuses to remove or move a root, a home directory, the working directory, and parents of one of them.
    fn refuse_root(&self, name: &str, path: &Path) -> anyhow::Result<()> {
        // A link means itself, and not its target.
        let whole = match (path.parent().map(fs::canonicalize), path.file_name()) {
            (Some(Ok(parent)), Some(last)) => parent.join(last),
            _ => path.to_owned(),
        };
        let holds_root = fs::canonicalize(&self.names.root).is_ok_and(|root| root.starts_with(&whole));
        let why = match path.file_name() {
            None => Some("the root of this machine, or a path that ends in ..,"),
            _ if holds_root => Some("the root of hdfs:"),
            _ => output_dir::why_kept(&whole),
        };
        match why {
            Some(what) => Err(FsError(format!("`{name}': {what} is not removed or moved")).into()),
            None => Ok(()),
        }
    }

    /// `-test -e|-d|-f|-z|-s PATH`. Returns 0 if all matching paths pass.
    fn test(&self) -> anyhow::Result<u8> {
        let found = match self.find(&self.names, self.paths[0]) {
            Ok(found) => found,
            Err(error) => {
                self.report(Err(error))?;
                return Ok(exit::FAILED);
            }
        };
        let passes = |path: &Path, flag: &str| match (flag, fs::metadata(path)) {
            ("e", found) => found.is_ok(),
            ("d", Ok(found)) => found.is_dir(),
            ("f", Ok(found)) => found.is_file(),
            // A directory has no bytes in Hadoop.
            ("z", Ok(found)) => found.is_dir() || found.len() == 0,
            ("s", Ok(found)) => !found.is_dir() && found.len() > 0,
            _ => false,
        };
        let pass = found.iter().all(|path| self.flags.iter().all(|flag| passes(path, flag)));
        let is_ok = pass && !found.is_empty() && !self.flags.is_empty();
        Ok(if is_ok { exit::OK } else { exit::FAILED })
    }
}

/// Returns the path of exactly this name. The user's directory is created, as on a cluster set up by an
/// administrator.
fn path_of(names: &FileNames, name: &str) -> anyhow::Result<PathBuf> {
    let path = names.local(name)?;
    if path == names.home() {
        in_hadoops_words(name, fs::create_dir_all(&path))?;
    }
    Ok(path)
}

/// `-touchz PATH…`.
fn touch_empty(name: &str, path: &Path) -> anyhow::Result<()> {
    if fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Err(FsError(format!("`{name}': Not a zero-length file")).into());
    }
    in_hadoops_words(name, File::create(path))?;
    Ok(())
}

/// Converts an error of the operating system to Hadoop's words.
fn in_hadoops_words<T>(name: &str, result: io::Result<T>) -> Result<T, FsError> {
    result.map_err(|error| {
        let words = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND.to_owned(),
            io::ErrorKind::AlreadyExists => "File exists".to_owned(),
            io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
            io::ErrorKind::NotADirectory => "Is not a directory".to_owned(),
            io::ErrorKind::IsADirectory => "Is a directory".to_owned(),
            io::ErrorKind::DirectoryNotEmpty => "Directory is not empty".to_owned(),
            _ => error.to_string(),
        };
        FsError(format!("`{name}': {words}"))
    })
}
