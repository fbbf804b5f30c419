//! `hadoop fs`: files of `hdfs:` by Hadoop's commands, as far as scripts and drivers of Hadoop Streaming use them.
//!
//! What is wrong is said in one line, as Hadoop says it: drivers read these. Not here: owners, replicas, quotas and a bin
//! for what is removed; what is said of those is true of this machine, or nothing.

mod changes;
mod copies;
mod find;
mod listing;
mod trees;
mod wildcards;

use super::lists::expand_braces;
use super::places::{DefaultSystem, FileNames};
use crate::terminal::{stderr_line, stdout_line, written};
use copies::CopyWay;
use gristmill_runtime::exit;
use gristmill_worker::output::open_part;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use trees::{entries, tally};
pub use wildcards::glob;
use wildcards::has_wildcards;

/// Bytes that `-tail` and `-head` show.
const END_BYTES: u64 = 1024;

const HELP: &str = "\
Usage: hadoop fs [generic options]
  -appendToFile LOCAL... PATH   -cat PATH...   -chmod [-R] MODE PATH...   -chown|-chgrp [-R] OWNER PATH...
  -copyFromLocal, -put [-f] LOCAL... PATH   -moveFromLocal LOCAL... PATH   -copyToLocal, -get [-f] PATH... LOCAL
  -count PATH...   -cp [-f] PATH... PATH   -df [-h] PATH...   -du [-s] [-h] PATH...   -expunge
  -find PATH... [-name|-iname PATTERN] [-print|-print0]   -getmerge [-nl] PATH... LOCAL   -head PATH   -tail PATH
  -ls [-C] [-d] [-h] [-R] [-S] [-t] [-r] PATH...   -mkdir [-p] PATH...   -mv PATH... PATH
  -rm [-f] [-r] [-skipTrash] PATH...   -rmdir PATH...   -setrep N PATH...   -stat [FORMAT] PATH...
  -test -e|-d|-f|-z|-s PATH   -text PATH...   -touch, -touchz PATH...";

/// A command that did not do what was asked.
struct Refused(String);

type FileOutcome<T = ()> = anyhow::Result<Result<T, Refused>>;

/// A command with its flags and its paths.
struct FileCall<'a> {
    name: &'a str,
    flags: Vec<&'a str>,
    paths: Vec<&'a str>,
    places: FileNames,
}

/// `hadoop fs -COMMAND …`. Answers the exit code.
///
/// # Errors
/// A stdout that cannot be written to.
pub fn run(words: &[String]) -> anyhow::Result<u8> {
    let mut places = FileNames::new(DefaultSystem::Hdfs)?;
    let mut words = words;
    // Generic options come first.
    loop {
        words = match words {
            [option, value, rest @ ..] if option == "-fs" || option == "-D" || option == "-conf" => {
                if value.trim_start_matches("fs.defaultFS=").starts_with("file:") {
                    places.default = DefaultSystem::Local;
                }
                rest
            }
            _ => break,
        };
    }
    let Some((command, rest)) = words.split_first() else {
        stderr_line("Usage: hadoop fs [generic options]");
        return Ok(u8::MAX);
    };
    let name = command.trim_start_matches('-');
    let flag_count = rest.iter().take_while(|word| word.len() > 1 && word.starts_with('-')).count();
    let (flags, paths) = rest.split_at(flag_count);
    let call = FileCall {
        name,
        flags: flags.iter().map(|flag| flag.trim_start_matches('-')).collect(),
        paths: paths.iter().map(String::as_str).collect(),
        places,
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

impl FileCall<'_> {
    fn has(&self, flags: &[&str]) -> bool {
        self.flags.iter().any(|flag| flags.contains(flag))
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
            "touchz" | "touch" => self.each_name(touch)?,
            "rm" => self.remove(self.has(&["r", "R"]))?,
            "rmr" => self.remove(true)?,
            "rmdir" => self.each_path(|path| Ok(io_refused(&self.uri(path), fs::remove_dir(path))))?,
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
            "chown" | "chgrp" | "setrep" => self.only_look(1)?,
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
            DefaultSystem::Hdfs => self.places.uri(path),
            DefaultSystem::Local => path.display().to_string(),
        }
    }

    fn refuse(&self, refused: &Refused) {
        stderr_line(&format!("{}: {}", self.name, refused.0));
    }

    /// Refuses a call that names fewer paths than its command takes.
    fn too_few(&self, expected: usize) -> u8 {
        let named = self.paths.len();
        self.refuse(&Refused(format!("Not enough arguments: expected {expected} but got {named}")));
        u8::MAX
    }

    /// Does something with every file that the paths stand for. One that is missing does not keep the others from it.
    fn each_path(&self, mut work: impl FnMut(&Path) -> FileOutcome) -> anyhow::Result<u8> {
        let here = [""];
        let names = if self.paths.is_empty() && self.name == "ls" { &here[..] } else { &self.paths[..] };
        if names.is_empty() {
            return Ok(self.too_few(1));
        }
        let mut code = exit::OK;
        for name in names {
            let found = match self.found(name) {
                Ok(found) => found,
                Err(refused) => {
                    self.refuse(&refused);
                    code = exit::FAILED;
                    continue;
                }
            };
            for path in found {
                if let Err(refused) = work(&path)? {
                    self.refuse(&refused);
                    code = exit::FAILED;
                }
            }
        }
        Ok(code)
    }

    /// Does something with every name as it is.
    fn each_name(&self, mut work: impl FnMut(&str, &Path) -> FileOutcome) -> anyhow::Result<u8> {
        if self.paths.is_empty() {
            return Ok(self.too_few(1));
        }
        let mut code = exit::OK;
        for name in &self.paths {
            let path = self.places.local(name)?;
            if let Err(refused) = work(name, &path)? {
                self.refuse(&refused);
                code = exit::FAILED;
            }
        }
        Ok(code)
    }

    /// The files that a name stands for, in the order of their names.
    fn found(&self, name: &str) -> Result<Vec<PathBuf>, Refused> {
        let mut all = Vec::new();
        for name in expand_braces(name).map_err(|error| Refused(error.to_string()))? {
            let path = self.places.local(&name).map_err(|error| Refused(error.to_string()))?;
            if fs::symlink_metadata(&path).is_ok() {
                all.push(path);
            } else if has_wildcards(&path) {
                let fitting = glob(&path);
                all.extend(fitting.or_else(|found| io_refused(&self.uri(&found.folder), Err(found.error)))?);
            }
        }
        if !all.is_empty() {
            return Ok(all);
        }
        // The user's own folder is there from the beginning, as it is where somebody has set up a cluster.
        let home = self.places.root().join("user").join(self.places.user());
        if name.is_empty() && fs::create_dir_all(&home).is_ok() {
            return Ok(vec![home]);
        }
        Err(Refused(format!("`{name}': No such file or directory")))
    }

    fn make_folder(&self, name: &str, path: &Path) -> FileOutcome {
        if self.has(&["p"]) {
            return Ok(io_refused(name, fs::create_dir_all(path)));
        }
        if path.exists() {
            return Ok(Err(Refused(format!("`{name}': File exists"))));
        }
        Ok(io_refused(name, fs::create_dir(path)))
    }

    fn remove(&self, recursive: bool) -> anyhow::Result<u8> {
        if self.paths.is_empty() {
            return Ok(self.too_few(1));
        }
        let mut code = exit::OK;
        for name in &self.paths {
            match self.found(name) {
                Ok(found) => {
                    for path in found {
                        if let Err(refused) = self.remove_one(name, &path, recursive)? {
                            self.refuse(&refused);
                            code = exit::FAILED;
                        }
                    }
                }
                Err(_) if self.has(&["f"]) => {}
                Err(refused) => {
                    self.refuse(&refused);
                    code = exit::FAILED;
                }
            }
        }
        Ok(code)
    }

    fn remove_one(&self, name: &str, path: &Path, recursive: bool) -> FileOutcome {
        if path == self.places.root() || path.parent().is_none() {
            return Ok(Err(Refused(format!("`{name}': the root is not removed"))));
        }
        let is_folder = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        let removed = match (is_folder, recursive) {
            (true, false) => return Ok(Err(Refused(format!("`{name}': Is a directory")))),
            (true, true) => fs::remove_dir_all(path),
            (false, _) => fs::remove_file(path),
        };
        if removed.is_ok() {
            stdout_line(&format!("Deleted {}", self.uri(path)))?;
        }
        Ok(io_refused(name, removed))
    }

    fn sizes(&self, path: &Path, as_one: bool) -> FileOutcome {
        let listed = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() && !as_one => entries(path).unwrap_or_default(),
            _ => vec![path.to_owned()],
        };
        for path in listed {
            let (_, _, bytes) = tally(&path, 0);
            let bytes = self.size_text(bytes);
            stdout_line(&format!("{bytes}  {bytes}  {}", self.uri(&path)))?;
        }
        Ok(Ok(()))
    }

    fn count(&self, path: &Path) -> FileOutcome {
        let (folders, files, bytes) = tally(path, 0);
        stdout_line(&format!("{folders:>12} {files:>12} {bytes:>18} {}", self.uri(path)))?;
        Ok(Ok(()))
    }

    /// `-test -e|-d|-f|-z|-s PATH`: the answer is the exit code.
    fn test(&self) -> anyhow::Result<u8> {
        let Some(name) = self.paths.first() else { return Ok(exit::FAILED) };
        let found = fs::metadata(self.places.local(name)?);
        let is = |flag: &&str| match (*flag, &found) {
            ("e" | "r" | "w", found) => found.is_ok(),
            ("d", Ok(found)) => found.is_dir(),
            ("f", Ok(found)) => found.is_file(),
            ("z", Ok(found)) => found.len() == 0,
            ("s", Ok(found)) => found.is_dir() || 0 < found.len(),
            _ => false,
        };
        Ok(if !self.flags.is_empty() && self.flags.iter().all(is) { exit::OK } else { exit::FAILED })
    }

    /// Looks whether the paths behind the first few words are there.
    fn only_look(&self, words: usize) -> anyhow::Result<u8> {
        let mut code = exit::OK;
        for name in self.paths.iter().skip(words) {
            if let Err(refused) = self.found(name) {
                self.refuse(&refused);
                code = exit::FAILED;
            }
        }
        Ok(code)
    }
}

/// What the operating system says, as Hadoop would.
fn io_refused<T>(name: &str, result: io::Result<T>) -> Result<T, Refused> {
    result.map_err(|error| {
        let said = match error.kind() {
            io::ErrorKind::NotFound => "No such file or directory".to_owned(),
            io::ErrorKind::AlreadyExists => "File exists".to_owned(),
            io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
            io::ErrorKind::DirectoryNotEmpty => "Directory is not empty".to_owned(),
            _ => error.to_string(),
        };
        Refused(format!("`{name}': {said}"))
    })
}

fn look(path: &Path, name: &str) -> Result<Metadata, Refused> {
    fs::metadata(path).map_err(|_| Refused(format!("`{name}': No such file or directory")))
}

fn touch(name: &str, path: &Path) -> FileOutcome {
    if fs::metadata(path).is_ok_and(|metadata| 0 < metadata.len()) {
        return Ok(Err(Refused(format!("`{name}': Not a zero-length file"))));
    }
    Ok(io_refused(name, File::create(path).map(drop)))
}

fn print_file(path: &Path, name: &str, unpack: bool) -> FileOutcome {
    if path.is_dir() {
        return Ok(Err(Refused(format!("`{name}': Is a directory"))));
    }
    let opened: io::Result<Box<dyn Read>> = match unpack {
        // By its name, as all of this program reads packed files.
        true => open_part(path).map(|file| -> Box<dyn Read> { file }),
        false => File::open(path).map(|file| -> Box<dyn Read> { Box::new(file) }),
    };
    let mut source = match opened {
        Ok(source) => source,
        Err(error) => return Ok(io_refused(name, Err(error))),
    };
    let mut out = io::stdout().lock();
    written(io::copy(&mut source, &mut out))?;
    written(out.flush())?;
    Ok(Ok(()))
}

fn print_end(path: &Path, name: &str, front: bool) -> FileOutcome {
    let opened = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(if front { 0 } else { length.saturating_sub(END_BYTES) }))?;
        Ok(file.take(END_BYTES))
    });
    match opened {
        Ok(mut file) => written(io::copy(&mut file, &mut io::stdout().lock())).map(|_| Ok(())),
        Err(error) => Ok(io_refused(name, Err(error))),
    }
}
