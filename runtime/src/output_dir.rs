//! The output directory of a job, from the moment it is claimed to `_SUCCESS` or back to nothing.
//!
//! `DIR/_temporary` is claimed exclusively (`claim`), so two jobs can never write into one directory. Attempts build parts there,
//! each in a file of its own; whoever closes the output publishes those that count, and `_SUCCESS` comes last. What
//! a worker does that was given up, and goes on, changes no published part. A job that fails leaves nothing and, if
//! the directory was its own, no directory. Not here: building parts (`gristmill_worker::agent`).

mod claim;

use crate::api::{BuiltPart, JobStatus, SCHEMA, Submission};
use gristmill_scheduler::ids::JobId;
use gristmill_worker::commit::{TEMPORARY, built_name, publish, sync_directory};
use gristmill_worker::fault;
use gristmill_worker::input::{FilePath, FileStamp, Piece, Place};
use gristmill_worker::protocol::Part;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    /// It is the root of all files.
    #[error("the output {path} is the root of the file system; name a directory in it")]
    Root {
        /// As it was named.
        path: PathBuf,
    },
    /// What the job reads lies in what it would replace.
    #[error("the output directory {path} holds {input}, an input of the same job; name another directory")]
    HoldsInput {
        /// The directory.
        path: PathBuf,
        /// The first such input.
        input: PathBuf,
    },
    /// Another job writes there.
    #[error("another job is writing to {path} (it has a {TEMPORARY} folder, {by})")]
    Busy {
        /// The directory.
        path: PathBuf,
        /// What its claim says.
        by: String,
    },
    /// A part is not what the attempt that built it said of it.
    #[error(
        "the part {part}, built as {path}, is not as it was left: it has {bytes} bytes of checksum {crc32c:08x} instead of \
         {} of {:08x}", expected.0, expected.1
    )]
    Changed {
        /// Its name.
        part: String,
        /// Where it was built.
        path: PathBuf,
        /// Bytes that are there.
        bytes: u64,
        /// Their CRC-32C.
        crc32c: u32,
        /// Bytes and CRC-32C as its attempt said.
        expected: (u64, u32),
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
    /// Tells the files of this claim from those of any other.
    nonce: String,
    /// The directory was made by this job.
    made: bool,
    /// The claim file, with this process's lock on it.
    lock: Option<File>,
}

impl OutputDirectory {
    /// Claims a directory. With `overwrite`, what is in it is moved aside and comes back if the job fails. What a process
    /// that has died had claimed is put in order first. With `sync`, the claim survives a power cut.
    ///
    /// # Errors
    /// Whatever makes the directory unusable, before any task starts.
    pub fn claim(path: &Path, overwrite: bool, sync: bool, nonce: &str) -> Result<Self, OutputError> {
        let path = std::path::absolute(path).map_err(OutputError::io("resolve", path))?;
        // What a link names is claimed, and the link stays.
        let path = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() && path.is_dir() => {
                fs::canonicalize(&path).map_err(OutputError::io("resolve", &path))?
            }
            Ok(found) if !found.is_dir() => return Err(OutputError::NotADirectory { path }),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OutputError::io("look at", &path)(error));
            }
            _ => path,
        };
        if fs::canonicalize(&path).is_ok_and(|whole| whole.parent().is_none()) {
            return Err(OutputError::Root { path });
        }
        for _ in 0..TAKE_OVERS_MAX {
            match Self::claim_once(&path, overwrite, sync, nonce) {
                Err(OutputError::Busy { .. }) if claim::take_over(&path) => {}
                claimed => return claimed,
            }
        }
        Err(busy(&path))
    }

    fn claim_once(path: &Path, overwrite: bool, sync: bool, nonce: &str) -> Result<Self, OutputError> {
        let made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(OutputError::io("create", path)(error)),
        };
        let mut claimed = Self { path: path.to_path_buf(), nonce: nonce.to_owned(), made, lock: None };
        let temporary = path.join(TEMPORARY);
        // Not ours, and not to be touched for a moment either.
        if !temporary.exists() && !overwrite && !claimed.contents()?.is_empty() {
            return Err(OutputError::NotEmpty { path: path.to_path_buf() });
        }
        let outcome = claimed.mark(sync).and_then(|()| match claimed.contents()? {
            contents if contents.is_empty() => Ok(()),
            contents if overwrite => claimed.move_aside(&contents),
            _ => Err(OutputError::NotEmpty { path: path.to_path_buf() }),
        });
        match outcome {
            Ok(()) => Ok(claimed),
            // The claim is somebody else's.
            Err(error @ OutputError::Busy { .. }) => Err(error),
            Err(error) => {
                // Without its lock the claim was never made, and what is there is somebody else's.
                if claimed.lock.is_some() {
                    claimed.undo(false);
                } else if made {
                    let _ = fs::remove_dir(path);
                }
                Err(error)
            }
        }
    }

    /// Makes `_temporary` with the claim in it, at once, which also shows that files can be written here.
    fn mark(&mut self, sync: bool) -> Result<(), OutputError> {
        let folder = self.retired();
        fs::create_dir(&folder).map_err(OutputError::io("create", &folder))?;
        let probe = folder.join(self.probe());
        let signed = claim::sign(&probe, self.made, sync).map_err(OutputError::io("write", &probe));
        let marked = signed.and_then(|lock| {
            // Onto an empty folder too, which no claim is.
            match fs::rename(&folder, self.path.join(TEMPORARY)) {
                Ok(()) => Ok(lock),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
                    ) =>
                {
                    Err(busy(&self.path))
                }
                Err(error) => Err(OutputError::io("create", &self.path.join(TEMPORARY))(error)),
            }
        });
        match marked {
            Ok(lock) => {
                self.lock = Some(lock);
                Ok(())
            }
            Err(error) => {
                let _ = remove_tree(&folder);
                Err(error)
            }
        }
    }

    /// What is in the directory, but for claims.
    fn contents(&self) -> Result<Vec<OsString>, OutputError> {
        let listing = OutputError::io("list", &self.path);
        let names = fs::read_dir(&self.path).and_then(|entries| {
            entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<OsString>>>()
        });
        let mut names = names.map_err(listing)?;
        names.retain(|name| name != TEMPORARY && !name.as_encoded_bytes().starts_with(RETIRED.as_bytes()));
        Ok(names)
    }

    /// Moves what is in the directory into a folder inside it: the directory itself stays, be it a mount, a link's, or
    /// somebody else's.
    fn move_aside(&self, contents: &[OsString]) -> Result<(), OutputError> {
        let aside = self.aside();
        fs::create_dir(&aside).map_err(OutputError::io("create", &aside))?;
        for name in contents {
            let path = self.path.join(name);
            fs::rename(&path, aside.join(name)).map_err(OutputError::io("move aside", &path))?;
        }
        Ok(())
    }

    /// The claim of a submission, to be finished or abandoned by another process than the one that made it: that of
    /// `job` until it ends, if one is named. `None` if this process does not see the directory, or the claim is lost.
    #[must_use]
    pub fn adopt(submission: &Submission, job: Option<JobId>) -> Option<Self> {
        let path = submission.output.to_path().to_path_buf();
        let nonce = submission.output_probe.strip_prefix(claim::PROBE)?.to_owned();
        let probe = path.join(TEMPORARY).join(&submission.output_probe);
        let made = submission.output_made;
        let lock = claim::hold(&probe, made, job).ok()?;
        Some(Self { path, nonce, made, lock: Some(lock) })
    }

    /// Tells a submission all that [`adopt`](OutputDirectory::adopt) needs.
    pub(crate) fn describe(&self, submission: &mut Submission) {
        submission.output = FilePath::from(self.path.as_path());
        submission.output_probe = self.probe();
        submission.output_made = self.made;
    }

    fn probe(&self) -> String {
        format!("{}{}", claim::PROBE, self.nonce)
    }

    /// Where `_temporary` is before anybody sees it, and when it is nobody's any more.
    fn retired(&self) -> PathBuf {
        self.path.join(format!("{RETIRED}{}", self.nonce))
    }

    /// Where what is overwritten waits for the end of the job.
    fn aside(&self) -> PathBuf {
        self.path.join(format!("{REPLACED}{}", self.nonce))
    }

    /// Where the part of an attempt is built: this, a hyphen and the attempt's name.
    #[must_use]
    pub(crate) fn built_place(&self) -> PathBuf {
        self.path.join(TEMPORARY).join(self.probe())
    }

    /// The directory, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the claim for this process. A submitter and a master may both find that they have to close an output;
    /// the first one does, and the other one touches nothing: by then the directory may belong to somebody else.
    fn seize(&self, how: &str) -> Result<(), OutputError> {
        let temporary = self.path.join(TEMPORARY);
        let probe = temporary.join(self.probe());
        fs::rename(&probe, temporary.join(format!("{how}{}", self.nonce)))
            .map_err(OutputError::io("close the output with", &probe))
    }

    /// Publishes the parts, writes `_SUCCESS` and clears the rest away. With `sync`, on disk before this returns.
    ///
    /// # Errors
    /// Parts that are not as their attempts left them, or what the file system says; the claim is then abandoned. Or
    /// another process has closed the output.
    pub fn finish(mut self, success: &Success, built: &[BuiltPart], sync: bool) -> Result<(), OutputError> {
        self.seize(claim::CLOSING)?;
        let published = self.publish_parts(&success.parts, built);
        let written = published.and_then(|()| self.write_success(success, sync));
        if let Err(error) = written {
            self.undo(true);
            return Err(error);
        }
        self.clear_away();
        Ok(())
    }

    /// Publishes all parts, or none if one is not as it should be.
    fn publish_parts(&self, parts: &[Part], built: &[BuiltPart]) -> Result<(), OutputError> {
        let place = self.built_place();
        if parts.len() != built.len() {
            let why = format!("{} parts were built, and {} are known", built.len(), parts.len());
            return Err(OutputError::io("publish the parts of", &place)(io::Error::other(why)));
        }
        let temporary = self.path.join(TEMPORARY);
        let built_path = |built: &BuiltPart| temporary.join(built_name(&self.probe(), built.attempt));
        for (part, built) in parts.iter().zip(built) {
            check_part(part, &built_path(built), built.stamp)?;
        }
        for (part, built) in parts.iter().zip(built) {
            let (from, published) = (built_path(built), self.path.join(&part.name));
            again(|| {
                fault::error("output.rename")?;
                publish(&from, &published)
            })
            .map_err(OutputError::io("publish", &published))?;
        }
        Ok(())
    }

    fn write_success(&self, success: &Success, sync: bool) -> Result<(), OutputError> {
        let built = self.path.join(TEMPORARY).join(SUCCESS);
        let published = self.path.join(SUCCESS);
        let mut text = serde_json::to_vec_pretty(success)
            .map_err(|error| OutputError::io("write", &built)(io::Error::other(error)))?;
        text.push(b'\n');
        // Written anew each time: what a disk has failed to keep it does not try to keep again.
        again(|| write_new(&built, &text, sync)).map_err(OutputError::io("write", &built))?;
        self.sync_names(sync)?;
        again(|| fs::rename(&built, &published)).map_err(OutputError::io("publish", &published))?;
        self.sync_names(sync)?;
        let parent = self.path.parent().filter(|_| sync && self.made);
        parent.map_or(Ok(()), |parent| {
            let synced = again(|| {
                fault::error("output.sync-parent")?;
                sync_directory(parent)
            });
            synced.map_err(OutputError::io("sync", parent))
        })
    }

    fn sync_names(&self, sync: bool) -> Result<(), OutputError> {
        if !sync {
            return Ok(());
        }
        again(|| sync_directory(&self.path)).map_err(OutputError::io("sync", &self.path))
    }

    /// The client of a job that succeeded died and left no claim. Whether it had finished the output before; what it left
    /// half finished is undone.
    ///
    /// # Errors
    /// An output that is not complete, as far as this process sees.
    pub fn left_finished(submission: &Submission, success: &Success) -> Result<(), OutputError> {
        Self::check_left(submission.output.to_path(), success)
    }

    fn check_left(path: &Path, success: &Success) -> Result<(), OutputError> {
        // Also what it had not cleared away yet, such as what was overwritten.
        claim::take_over(path);
        let read = Success::read(path).map_err(OutputError::io("find the complete output in", path));
        if read.as_ref().is_ok_and(|found| found.parts == success.parts) {
            return Ok(());
        }
        let other = || io::Error::other("it is that of another job");
        read.and_then(|_| Err(OutputError::io("find the complete output in", path)(other())))
    }

    /// Removes everything the job has put there and brings back what was moved aside.
    pub fn abandon(mut self) {
        if self.seize(claim::ABANDONING).is_ok() {
            self.undo(false);
        }
    }

    /// The output is complete: what cannot be cleared away does not make it less so.
    fn clear_away(&mut self) {
        if let Err(error) = remove_tree(&self.aside()) {
            tracing::warn!(path = %self.aside().display(), %error, "could not be removed");
        }
        self.retire();
    }

    /// Gives the claim back. Attempts that linger find no folder any more. What they have built goes while it is still
    /// claimed, so that the next job goes on with it after a death.
    fn retire(&mut self) {
        self.remove_built();
        let retired = self.retired();
        let gone = fs::rename(self.path.join(TEMPORARY), &retired).and_then(|()| remove_tree(&retired));
        if let Err(error) = gone {
            tracing::warn!(path = %self.path.join(TEMPORARY).display(), %error, "could not be removed");
        }
    }

    fn remove_built(&self) {
        let entries = fs::read_dir(self.path.join(TEMPORARY)).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| !claim::is_claim(&entry.file_name())) {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// What cannot be removed is left: there is nobody to tell who could do better. Parts are removed only if this job
    /// may have published any: before, parts in the directory are what is being moved aside.
    fn undo(&mut self, published: bool) {
        self.unpublish(published);
        self.bring_back();
        self.retire();
        if self.made {
            // Only an empty directory goes: files of others are not ours to remove.
            let _ = fs::remove_dir(&self.path);
        }
    }

    /// Removes what may be published. Says so before anything comes back: whoever goes on with this after a death must
    /// not take old parts, or an old `_SUCCESS`, for those of the job.
    fn unpublish(&self, published: bool) {
        if published {
            // First: a directory with it is complete.
            let _ = fs::remove_file(self.path.join(SUCCESS));
            let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| is_part(&entry.file_name().to_string_lossy())) {
                let _ = fs::remove_file(entry.path());
            }
            let temporary = self.path.join(TEMPORARY);
            let [closing, abandoning] =
                [claim::CLOSING, claim::ABANDONING].map(|how| temporary.join(format!("{how}{}", self.nonce)));
            if let Err(error) = fs::rename(&closing, &abandoning) {
                tracing::warn!(path = %closing.display(), %error, "could not be renamed");
            }
        }
    }

    /// Brings back what was moved aside.
    fn bring_back(&self) {
        let aside = self.aside();
        for entry in fs::read_dir(&aside).into_iter().flatten().flatten() {
            let home = self.path.join(entry.file_name());
            if let Err(error) = publish(&entry.path(), &home) {
                tracing::warn!(from = %entry.path().display(), %error, "could not be brought back");
            }
        }
        let _ = fs::remove_dir(&aside);
    }
}

/// Refuses an output directory that holds a file of these pieces of input.
///
/// # Errors
/// Which one; or a directory that cannot be looked at.
pub(crate) fn refuse_inputs<'a>(
    output: &Path,
    pieces: impl Iterator<Item = &'a Piece>,
) -> Result<(), OutputError> {
    let whole = match fs::canonicalize(output) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(OutputError::io("resolve", output))?,
    };
    if whole.parent().is_none() {
        return Err(OutputError::Root { path: output.to_path_buf() });
    }
    let mut seen = BTreeSet::new();
    for piece in pieces.filter(|piece| seen.insert((piece.place == Place::Submitter, &piece.path))) {
        // A worker's file of this name may be another one than ours.
        let same = |path: &Path| fs::metadata(path).is_ok_and(|found| FileStamp::of(&found) == piece.stamp);
        let inside = fs::canonicalize(piece.path.to_path()).is_ok_and(|path| path.starts_with(&whole));
        if inside && (piece.place == Place::Submitter || same(piece.path.to_path())) {
            return Err(OutputError::HoldsInput {
                path: output.to_path_buf(),
                input: piece.path.to_path().to_path_buf(),
            });
        }
    }
    Ok(())
}

/// How the names begin of what is overwritten, until the job has succeeded; inside the directory.
const REPLACED: &str = "_replaced-";

/// How the name of a folder begins that is not `_temporary` yet, or no more.
const RETIRED: &str = "_claim-";

/// Claims of dead processes that are taken over in a row.
const TAKE_OVERS_MAX: u32 = 4;

fn busy(path: &Path) -> OutputError {
    let by = claim::read(path).map_or_else(|| "of an unknown owner".to_owned(), |claim| claim.to_string());
    OutputError::Busy { path: path.to_path_buf(), by }
}

/// Tries of what the file system refuses when an output is closed.
const TRIES: u32 = 3;

/// Pause between them.
const TRY_PAUSE: Duration = Duration::from_millis(200);

/// Does what may fail for once, such as on a disk that has an error, up to [`TRIES`] times.
fn again<T>(mut step: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
        match step() {
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) =>
            {
                tracing::warn!(%error, "an output could not be closed: tried again");
                std::thread::sleep(TRY_PAUSE);
            }
            result => return result,
        }
    }
    step()
}

fn write_new(path: &Path, text: &[u8], sync: bool) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(path)?;
    fault::error("output.write")?;
    file.write_all(text)?;
    if sync {
        fault::error("output.sync")?;
        file.sync_all()?;
    }
    Ok(())
}

/// Checks that the file of a part is what its attempt reported. A file that has not been touched since is not read again.
fn check_part(part: &Part, path: &Path, stamp: FileStamp) -> Result<(), OutputError> {
    let found = fs::metadata(path).map_err(OutputError::io("look at the part", path))?;
    let found = FileStamp::of(&found);
    if found == stamp && found.size == part.bytes {
        return Ok(());
    }
    let (bytes, crc32c) = sum(path).map_err(OutputError::io("read the part", path))?;
    if (bytes, crc32c) == (part.bytes, part.crc32c) {
        return Ok(());
    }
    Err(OutputError::Changed {
        part: part.name.clone(),
        path: path.to_path_buf(),
        bytes,
        crc32c,
        expected: (part.bytes, part.crc32c),
    })
}

/// Bytes that are read at once to be summed up.
const SUM_CHUNK_BYTES: usize = 256 << 10;

/// Length and CRC-32C of a file.
fn sum(path: &Path) -> io::Result<(u64, u32)> {
    let mut file = fs::File::open(path)?;
    let mut chunk = vec![0; SUM_CHUNK_BYTES];
    let (mut bytes, mut crc32c) = (0, 0);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok((bytes, crc32c)),
            got => {
                bytes += got as u64;
                crc32c = crc32c::crc32c_append(crc32c, &chunk[..got]);
            }
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
mod tests;
