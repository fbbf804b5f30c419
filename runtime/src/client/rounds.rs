//! Record of the rounds of a program that runs several jobs, kept in the directory of their outputs. With it the
//! program can resume after a failure without running completed rounds again.
//!
//! A completed round is reused if its job, its parameters, the files that it read and the parts that it wrote are
//! unchanged. Outputs of earlier rounds are not compared as inputs, because they have their own entries. The program's
//! own work between jobs is repeated.

use crate::api::{JobStatus, SCHEMA};
use crate::client::JobReport;
use crate::output_dir::Success;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use gristmill_worker::input::{FilePath, FileStamp, Piece};
use gristmill_worker::whole_file::{self, Promise};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of the record in the directory of the outputs.
pub const ROUNDS: &str = "_ROUNDS";

/// Error for which rounds cannot be resumed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum ResumeError {
    /// No record exists there.
    #[error("there are no rounds to go on with in {path}: it has no {ROUNDS}")]
    NoRecord { path: PathBuf },
    /// Completed rounds exist there, and the caller did not choose what to do with them.
    #[error("{rounds} rounds of {program} are done in {path}")]
    Unasked { path: PathBuf, program: String, rounds: usize },
    /// The record cannot be read or written.
    #[error("could not use the record of rounds {path}")]
    Record {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The rounds belong to another program.
    #[error("the rounds in {path} are those of {before}, not of {now}")]
    Program { path: PathBuf, before: String, now: String },
    /// The program was called with other arguments.
    #[error("the rounds in {path} were begun with {argument} {before:?}, and now it is {now:?}")]
    Argument { path: PathBuf, argument: String, before: Vec<String>, now: Vec<String> },
    /// A completed round had other parameters.
    #[error("round {round} was done by another job or with other parameters: {before} instead of {now}")]
    Parameters { round: String, before: String, now: String },
    /// An input of a round is missing or has changed.
    #[error("an input of round {round} has changed since: {path} {how}")]
    Input { round: String, path: String, how: &'static str },
    /// An output of a round is missing or has changed.
    #[error("the output of round {round}, {path}, is not as it was left")]
    Output {
        round: String,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl ExitsWith for ResumeError {
    fn exit(&self) -> Exit {
        match self {
            Self::Unasked { .. } => Exit::hinted(
                exit::ENVIRONMENT,
                "continue them with --resume, start again with --overwrite, or choose another directory",
            ),
            Self::NoRecord { .. } => Exit::hinted(
                exit::ENVIRONMENT,
                "is it the right directory? without --resume the rounds start there",
            ),
            Self::Record { source, .. } if exit::is_out_of_room(source) => {
                Exit::hinted(exit::RESOURCES, "free some space, or choose another directory")
            }
            Self::Input { .. } => {
                Exit::hinted(exit::INPUT, "to start again, use --overwrite instead of --resume")
            }
            _ => Exit::hinted(exit::ENVIRONMENT, "to start again, use --overwrite instead of --resume"),
        }
    }
}

/// A program of several jobs, and its call: its flags and arguments by name, as typed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RoundsCall {
    /// Name of the program.
    pub program: String,
    /// Values of each argument.
    pub arguments: BTreeMap<String, Vec<String>>,
}

/// Treatment of existing rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Earlier {
    /// Refuse to run.
    Refuse,
    /// Forget them; each round replaces existing files at the place of its output.
    Replace,
    /// Reuse the completed ones.
    Resume,
}

/// A completed round.
#[derive(Clone, Debug)]
pub struct RoundReport {
    /// Its name, which is that of its output directory.
    pub name: String,
    /// True if it was completed before and not run again.
    pub resumed: bool,
    /// Report of its job.
    pub report: JobReport,
}

/// A file that a round has read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct InputFile {
    /// Name as given by the user, or as found in the directory that the user named.
    name: FilePath,
    stamp: FileStamp,
}

impl InputFile {
    /// The files of these pieces.
    pub(super) fn of<'a>(pieces: impl IntoIterator<Item = &'a Piece>) -> BTreeSet<Self> {
        let file = |piece: &Piece| Self { name: piece.name.clone(), stamp: piece.stamp };
        pieces.into_iter().map(file).collect()
    }
}

/// Inputs of a round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RoundInputs {
    /// Paths as named by its job, without the outputs of earlier rounds.
    pub(super) paths: Vec<String>,
    pub(super) files: BTreeSet<InputFile>,
}

/// Entry of a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct DoneRound {
    name: String,
    job: String,
    /// Parameters as JSON, before the job was prepared.
    parameters: String,
    inputs: RoundInputs,
    /// Final status, without the parts, which are in its `_SUCCESS`.
    status: JobStatus,
    /// True if its output was no longer needed and has been removed.
    discarded: bool,
}

/// Content of the record.
#[derive(Serialize, Deserialize)]
struct Entries {
    schema: u32,
    #[serde(flatten)]
    call: RoundsCall,
    rounds: Vec<DoneRound>,
}

/// The record of the current rounds.
pub(super) struct RoundsRecord {
    directory: PathBuf,
    entries: Entries,
    /// Rounds of an earlier run that have not been requested yet.
    earlier: BTreeSet<String>,
    /// True if a process may have died between the end of a round and its entry.
    resumes: bool,
    sync: bool,
}

/// A requested round.
pub(super) struct WantedRound<'a> {
    pub(super) name: &'a str,
    pub(super) job: &'a str,
    /// Parameters as JSON, before the job is prepared.
    pub(super) parameters: &'a str,
}

impl RoundsRecord {
    /// Starts rounds in this directory, which must exist.
    ///
    /// # Errors
    /// Earlier rounds that differ from these, or an unusable record.
    pub(super) fn begin(
        directory: &Path,
        call: RoundsCall,
        earlier: Earlier,
        sync: bool,
    ) -> Result<Self, ResumeError> {
        let path = directory.to_owned();
        let found = match (read(directory)?, earlier) {
            (None, Earlier::Resume) => return Err(ResumeError::NoRecord { path }),
            (None, _) | (_, Earlier::Replace) => Vec::new(),
            (Some(found), Earlier::Refuse) if found.rounds.is_empty() => Vec::new(),
            (Some(found), Earlier::Refuse) => {
                let (program, rounds) = (found.call.program, found.rounds.len());
                return Err(ResumeError::Unasked { path, program, rounds });
            }
            (Some(found), Earlier::Resume) => {
                same_call(&path, &found.call, &call)?;
                found.rounds
            }
        };
        let names = found.iter().map(|round| round.name.clone()).collect();
        let entries = Entries { schema: SCHEMA, call, rounds: found };
        let resumes = earlier == Earlier::Resume;
        // In the form in which reports of rounds name their outputs.
        let directory = std::path::absolute(directory).unwrap_or(path);
        let record = Self { directory, entries, earlier: names, resumes, sync };
        record.write()?;
        Ok(record)
    }

    fn write(&self) -> Result<(), ResumeError> {
        let path = self.directory.join(ROUNDS);
        let promise = if self.sync { Promise::Durable } else { Promise::Plain };
        let write = |file: &mut fs::File| -> io::Result<()> {
            file.write_all(&serde_json::to_vec_pretty(&self.entries)?)?;
            file.write_all(b"\n")
        };
        whole_file::replace(&path, promise, write).map_err(|source| ResumeError::Record { path, source })
    }

    /// Input paths of this round that must be unchanged, if it was completed before; `None` if it was not.
    ///
    /// # Errors
    /// It was, but with another job or other parameters.
    pub(super) fn inputs_of(&self, wanted: &WantedRound<'_>) -> Result<Option<&[String]>, ResumeError> {
        if !self.earlier.contains(wanted.name) {
            return Ok(None);
        }
        let Some(done) = self.find(wanted.name) else { return Ok(None) };
        if (&*done.job, &*done.parameters) != (wanted.job, wanted.parameters) {
            return Err(ResumeError::Parameters {
                round: wanted.name.to_owned(),
                before: format!("{} {}", done.job, done.parameters),
                now: format!("{} {}", wanted.job, wanted.parameters),
            });
        }
        Ok(Some(&done.inputs.paths))
    }

    /// Report of a round that was completed before, and whose current input consists of these files.
    ///
    /// # Errors
    /// Files that have changed.
    pub(super) fn take(
        &mut self,
        name: &str,
        now: &BTreeSet<InputFile>,
    ) -> Result<Option<JobReport>, ResumeError> {
        let Some(done) = self.find(name) else { return Ok(None) };
        if let Some((file, how)) = difference(&done.inputs.files, now) {
            let path = file.name.to_string();
            return Err(ResumeError::Input { round: name.to_owned(), path, how });
        }
        let output = self.directory.join(name);
        let mut status = done.status.clone();
        if !done.discarded {
            let left = parts_left(&output, &done.job);
            let failed =
                |source| ResumeError::Output { round: name.to_owned(), path: output.clone(), source };
            status.parts = left.map_err(failed)?;
        }
        self.earlier.remove(name);
        Ok(Some(JobReport { status, output }))
    }

    /// True if the output of this round was left by a process that died before it could enter the round.
    pub(super) fn left_unentered(&self, wanted: &WantedRound<'_>) -> bool {
        let success = || Success::read(&self.directory.join(wanted.name)).ok();
        self.resumes
            && self.find(wanted.name).is_none()
            && success().is_some_and(|success| success.job == wanted.job)
    }

    /// Enters a completed round.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub(super) fn enter(
        &mut self,
        wanted: &WantedRound<'_>,
        mut inputs: RoundInputs,
        status: &JobStatus,
    ) -> Result<(), ResumeError> {
        let own = |path: &Path| std::path::absolute(path).is_ok_and(|path| path.starts_with(&self.directory));
        inputs.paths.retain(|path| !own(Path::new(path)));
        inputs.files.retain(|file| !own(file.name.to_path()));
        let done = DoneRound {
            name: wanted.name.to_owned(),
            job: wanted.job.to_owned(),
            parameters: wanted.parameters.to_owned(),
            inputs,
            status: JobStatus { parts: Vec::new(), ..status.clone() },
            discarded: false,
        };
        self.entries.rounds.retain(|round| round.name != done.name);
        self.entries.rounds.push(done);
        self.write()
    }

    /// Notes that the output in this directory, if it is that of a round, is no longer needed.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub(super) fn discard(&mut self, output: &Path) -> Result<(), ResumeError> {
        let directory = self.directory.clone();
        let named = |round: &&mut DoneRound| directory.join(&round.name) == output;
        let found = self.entries.rounds.iter_mut().find(named);
        match found {
            Some(round) if !round.discarded => {
                round.discarded = true;
                self.write()
            }
            _ => Ok(()),
        }
    }

    fn find(&self, name: &str) -> Option<&DoneRound> {
        self.entries.rounds.iter().find(|round| round.name == name)
    }
}

/// Reads the record in a directory, if it exists.
fn read(directory: &Path) -> Result<Option<Entries>, ResumeError> {
    let path = directory.join(ROUNDS);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(ResumeError::Record { path, source }),
    };
    let entries = serde_json::from_slice(&text);
    entries.map(Some).map_err(|source| ResumeError::Record { path, source: source.into() })
}

fn same_call(path: &Path, before: &RoundsCall, now: &RoundsCall) -> Result<(), ResumeError> {
    let path = path.to_owned();
    if before.program != now.program {
        let (before, now) = (before.program.clone(), now.program.clone());
        return Err(ResumeError::Program { path, before, now });
    }
    let names: BTreeSet<&String> = before.arguments.keys().chain(now.arguments.keys()).collect();
    for name in names {
        let [before, now] = [before, now].map(|call| call.arguments.get(name).cloned().unwrap_or_default());
        if before != now {
            return Err(ResumeError::Argument { path, argument: name.clone(), before, now });
        }
    }
    Ok(())
}

/// The first file in which two lists differ, and the difference.
fn difference<'a>(
    before: &'a BTreeSet<InputFile>,
    now: &'a BTreeSet<InputFile>,
) -> Option<(&'a InputFile, &'static str)> {
    if let Some(gone) = before.difference(now).next() {
        let there = now.iter().any(|file| file.name == gone.name);
        return Some((gone, if there { "is not what it was" } else { "is gone" }));
    }
    now.difference(before).next().map(|new| (new, "is new"))
}

/// Parts of a round of this job, which must be in its directory as listed in its `_SUCCESS`.
fn parts_left(output: &Path, job: &str) -> io::Result<Vec<gristmill_worker::protocol::Part>> {
    let success = Success::read(output)?;
    if success.job != job {
        return Err(io::Error::other(format!("it is that of a job {}", success.job)));
    }
    for part in &success.parts {
        let bytes = fs::metadata(output.join(&part.name))?.len();
        if bytes != part.bytes {
            let why = format!("{} has {bytes} bytes instead of {}", part.name, part.bytes);
            return Err(io::Error::other(why));
        }
    }
    Ok(success.parts)
}

#[cfg(test)]
mod tests;
