//! The output directory of a job, from the moment it is claimed to `_SUCCESS` or back to nothing.
//!
//! `DIR/_temporary` is made exclusively, so two jobs can never write into one directory. Parts are published by
//! the workers; `_SUCCESS` comes last. A job that fails removes what it published and, if the directory was its
//! own, the directory. Not here: building and publishing parts (`gristmill_worker::commit`).

use crate::api::{JobStatus, SCHEMA, Submission};
use gristmill_worker::commit::{TEMPORARY, sync_directory};
use gristmill_worker::input::FilePath;
use gristmill_worker::protocol::Part;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file that says that the output is complete.
pub const SUCCESS: &str = "_SUCCESS";

/// What `_SUCCESS` holds, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Success {
    /// Version of these fields.
    pub schema: u32,
    /// Name of the job.
    pub job: String,
    /// Its parameters.
    pub parameters: serde_json::Value,
    /// Meaning of the columns, if the job says so.
    pub columns: Option<Vec<String>>,
    /// The parts in order, with their checksums.
    pub parts: Vec<Part>,
    /// Records of all parts.
    pub records: u64,
    /// Bytes of all parts.
    pub bytes: u64,
    /// User counters.
    pub counters: BTreeMap<String, u64>,
    /// Remarks of the plan.
    pub remarks: Vec<String>,
}

impl Success {
    /// From the last status of a job.
    #[must_use]
    pub fn of(status: &JobStatus, columns: Option<Vec<String>>) -> Self {
        Self {
            schema: SCHEMA,
            job: status.name.clone(),
            parameters: serde_json::from_str(&status.parameters).unwrap_or_default(),
            columns,
            parts: status.parts.clone(),
            records: status.totals.records_out,
            bytes: status.totals.bytes_out,
            counters: status.counters.clone(),
            remarks: status.remarks.clone(),
        }
    }

    /// Reads the `_SUCCESS` of a directory.
    ///
    /// # Errors
    /// A file that is missing or is none of ours.
    pub fn read(directory: &Path) -> io::Result<Self> {
        let bytes = fs::read(directory.join(SUCCESS))?;
        serde_json::from_slice(&bytes).map_err(io::Error::other)
    }
}

/// Why an output directory cannot be used. Exit code 3.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// There is something already.
    #[error("the output directory {path} exists and is not empty")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// It is not a directory.
    #[error("the output {path} exists and is not a directory")]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Another job writes there.
    #[error("another job is writing to {path} (it has a {TEMPORARY} folder)")]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// The file system says no.
    #[error("could not {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl OutputError {
    fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_path_buf(), source }
    }
}

/// A directory that belongs to a job until it is finished or abandoned.
#[derive(Debug)]
pub struct OutputDirectory {
    path: PathBuf,
    probe: String,
    /// The directory was made by this job.
    made: bool,
    /// What was there before, moved aside.
    aside: Option<PathBuf>,
}

impl OutputDirectory {
    /// Claims a directory. With `overwrite`, what is there is moved aside first and comes back if the job fails.
    ///
    /// # Errors
    /// Whatever makes the directory unusable, before any task starts.
    pub fn claim(path: &Path, overwrite: bool, nonce: &str) -> Result<Self, OutputError> {
        let path = std::path::absolute(path).map_err(OutputError::io("resolve", path))?;
        let mut aside = None;
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_dir() && !path.is_dir() => {
                return Err(OutputError::NotADirectory { path });
            }
            Ok(_) => {
                let mut entries = fs::read_dir(&path).map_err(OutputError::io("list", &path))?;
                let empty = entries.next().is_none();
                if path.join(TEMPORARY).exists() {
                    return Err(OutputError::Busy { path });
                }
                if !empty && !overwrite {
                    return Err(OutputError::NotEmpty { path });
                }
                if !empty {
                    let mut name = path.file_name().unwrap_or_default().to_owned();
                    name.push(format!(".replaced-{nonce}"));
                    let moved = path.with_file_name(name);
                    fs::rename(&path, &moved).map_err(OutputError::io("move aside", &path))?;
                    aside = Some(moved);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(OutputError::io("look at", &path)(error)),
        }
        let mut claimed = Self { path, probe: format!("probe-{nonce}"), made: false, aside };
        let made = match fs::create_dir(&claimed.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(OutputError::io("create", &claimed.path)(error)),
        };
        let marked = made.and_then(|made| {
            claimed.made = made;
            claimed.mark()
        });
        match marked {
            Ok(()) => Ok(claimed),
            Err(error) => {
                claimed.undo(false);
                Err(error)
            }
        }
    }

    /// Makes `_temporary` and the probe, which also shows that files can be written here.
    fn mark(&self) -> Result<(), OutputError> {
        let temporary = self.path.join(TEMPORARY);
        fs::create_dir(&temporary).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OutputError::Busy { path: self.path.clone() },
            _ => OutputError::io("create", &temporary)(error),
        })?;
        let probe = temporary.join(&self.probe);
        fs::write(&probe, b"gristmill\n").map_err(OutputError::io("write", &probe))
    }

    /// The claim of a submission, to be finished or abandoned by another process than the one that made it.
    /// `None` if this process does not see the directory.
    #[must_use]
    pub fn adopt(submission: &Submission) -> Option<Self> {
        let path = submission.output.to_path().to_path_buf();
        let probe = submission.output_probe.clone();
        let aside = submission.output_aside.as_ref().map(|aside| aside.to_path().to_path_buf());
        let seen = path.join(TEMPORARY).join(&probe).exists();
        seen.then_some(Self { path, probe, made: submission.output_made, aside })
    }

    /// Tells a submission all that [`adopt`](OutputDirectory::adopt) needs.
    pub(crate) fn describe(&self, submission: &mut Submission) {
        submission.output = FilePath::from(self.path.as_path());
        submission.output_probe = self.probe.clone();
        submission.output_made = self.made;
        submission.output_aside = self.aside.as_ref().map(|aside| FilePath::from(aside.as_path()));
    }

    /// The directory, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the claim for this process. A submitter and a master may both find that they have to close an output;
    /// the first one does, and the other one touches nothing: by then the directory may belong to somebody else.
    fn seize(&self) -> Result<(), OutputError> {
        let temporary = self.path.join(TEMPORARY);
        let probe = temporary.join(&self.probe);
        fs::rename(&probe, temporary.join("closing"))
            .map_err(OutputError::io("close the output with", &probe))
    }

    /// Writes `_SUCCESS` and clears the rest away. With `sync`, on disk before this returns.
    ///
    /// # Errors
    /// What the file system says; the claim is then abandoned. Or another process has closed the output.
    pub fn finish(mut self, success: &Success, sync: bool) -> Result<(), OutputError> {
        self.seize()?;
        let written = self.write_success(success, sync);
        if let Err(error) = written {
            self.undo(true);
            return Err(error);
        }
        // The output is complete: what cannot be cleared away does not make it less so.
        for rest in std::iter::once(self.path.join(TEMPORARY)).chain(self.aside.take()) {
            if let Err(error) = remove_tree(&rest) {
                tracing::warn!(path = %rest.display(), %error, "could not be removed");
            }
        }
        Ok(())
    }

    fn write_success(&self, success: &Success, sync: bool) -> Result<(), OutputError> {
        let built = self.path.join(TEMPORARY).join(SUCCESS);
        let published = self.path.join(SUCCESS);
        let mut text = serde_json::to_vec_pretty(success)
            .map_err(|error| OutputError::io("write", &built)(io::Error::other(error)))?;
        text.push(b'\n');
        fs::write(&built, text).map_err(OutputError::io("write", &built))?;
        if sync {
            let synced = fs::File::open(&built).and_then(|file| file.sync_all());
            synced.map_err(OutputError::io("sync", &built))?;
        }
        fs::rename(&built, &published).map_err(OutputError::io("publish", &published))?;
        if sync {
            sync_directory(&self.path).map_err(OutputError::io("sync", &self.path))?;
        }
        Ok(())
    }

    /// Removes everything the job has put there and brings back what was moved aside.
    pub fn abandon(mut self) {
        if self.seize().is_ok() {
            self.undo(true);
        }
    }

    /// What cannot be removed is left: there is nobody to tell who could do better.
    fn undo(&mut self, marked: bool) {
        if marked {
            let _ = remove_tree(&self.path.join(TEMPORARY));
            let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| is_part(&entry.file_name().to_string_lossy())) {
                let _ = fs::remove_file(entry.path());
            }
        }
        if self.made {
            // Only an empty directory goes: files of others are not ours to remove.
            let _ = fs::remove_dir(&self.path);
        }
        if let Some(aside) = self.aside.take() {
            let _ = fs::rename(aside, &self.path);
        }
    }
}

/// Removes a folder, also if an attempt that is just ending adds to it meanwhile.
fn remove_tree(path: &Path) -> io::Result<()> {
    const TRIES: u32 = 5;
    let mut result = Ok(());
    for _ in 0..TRIES {
        result = fs::remove_dir_all(path);
        match &result {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            _ => break,
        }
    }
    result
}

/// Whether a file name is that of a part.
#[must_use]
pub fn is_part(name: &str) -> bool {
    name.strip_prefix("part-")
        .is_some_and(|digits| 5 <= digits.len() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn success() -> Success {
        Success {
            schema: SCHEMA,
            job: "test".to_owned(),
            parameters: serde_json::Value::Null,
            columns: None,
            parts: Vec::new(),
            records: 0,
            bytes: 0,
            counters: BTreeMap::new(),
            remarks: Vec::new(),
        }
    }

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn claim_refuses_a_directory_with_files_and_leaves_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), "x").unwrap();
        let error = OutputDirectory::claim(dir.path(), false, "1").unwrap_err();
        assert!(matches!(error, OutputError::NotEmpty { .. }), "{error:?}");
        assert_eq!(names(dir.path()), ["mine"]);
    }

    #[test]
    fn claim_refuses_a_directory_that_another_job_holds() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let first = OutputDirectory::claim(&out, false, "1").unwrap();
        let error = OutputDirectory::claim(&out, true, "2").unwrap_err();
        assert!(matches!(error, OutputError::Busy { .. }), "{error:?}");
        first.finish(&success(), false).unwrap();
        assert_eq!(names(&out), ["_SUCCESS"]);
    }

    #[test]
    fn abandon_brings_back_what_was_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("part-00000"), "old").unwrap();
        let claimed = OutputDirectory::claim(&out, true, "1").unwrap();
        fs::write(out.join("part-00000"), "new").unwrap();
        claimed.abandon();
        assert_eq!(fs::read_to_string(out.join("part-00000")).unwrap(), "old");
        assert_eq!(names(dir.path()), ["out"]);
    }

    #[test]
    fn only_the_first_of_two_processes_closes_an_output() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = OutputDirectory::claim(&out, false, "1").unwrap();
        let other =
            OutputDirectory { path: out.clone(), probe: claimed.probe.clone(), made: true, aside: None };
        fs::write(out.join("part-00000"), "x").unwrap();
        claimed.finish(&success(), false).unwrap();
        other.abandon();
        assert_eq!(names(&out), ["_SUCCESS", "part-00000"]);
    }

    #[test]
    fn finish_removes_what_was_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("old"), "old").unwrap();
        OutputDirectory::claim(&out, true, "1").unwrap().finish(&success(), true).unwrap();
        assert_eq!(names(&out), ["_SUCCESS"]);
        assert_eq!(names(dir.path()), ["out"]);
    }
}
