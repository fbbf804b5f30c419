//! The output directory of a job, from the moment it is claimed to `_SUCCESS` or back to nothing.
//!
//! `DIR/_temporary` is claimed exclusively (`claim`), so two jobs can never write into one directory. Attempts build parts there,
//! each in a file of its own; whoever closes the output publishes those that count, and `_SUCCESS` comes last. What
//! a worker does that was given up, and goes on, changes no published part. A job that fails leaves nothing and, if
//! the directory was its own, no directory. Both folders are held open, must be this user's (the directory may be root's),
//! and everything is done in them by plain names. Not here: building parts (`gristmill_worker::agent`).

mod claim;
mod protected;

use crate::api::{BuiltPart, JobStatus, SCHEMA, Submission};
use crate::submitter::Parts;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::commit::{TEMPORARY, built_name, part_name};
use gristmill_worker::fault;
use gristmill_worker::folder::{self, Folder, PlainName};
use gristmill_worker::input::{FileStamp, Piece, Place};
use gristmill_worker::protocol::Part;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
        Self::read_in(&Folder::open(directory)?)
    }

    fn read_in(directory: &Folder) -> io::Result<Self> {
        let mut text = Vec::new();
        directory.open_file(SUCCESS)?.read_to_end(&mut text)?;
        serde_json::from_slice(&text).map_err(io::Error::other)
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
    /// It holds what a person has or stands on.
    #[error(
        "the output directory {path} is or holds {what}, which --overwrite does not replace; name another directory"
    )]
    Protected {
        /// As it was named.
        path: PathBuf,
        /// What is in it.
        what: &'static str,
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
    folder: Folder,
    /// `_temporary` in it.
    temporary: Folder,
    /// Name of the claim file, which tells the files of this claim from those of any other.
    probe: PlainName,
    /// The directory was made by this job.
    made: bool,
    /// The claim file, with this process's lock on it.
    _lock: File,
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
                // Whoever made the link chose the directory.
                let ours = folder::refuse_foreign(&path, &found, true).map_err(io::Error::from);
                ours.map_err(OutputError::io("use", &path))?;
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
        if let Some(what) = protected::why(&path).filter(|_| overwrite) {
            return Err(OutputError::Protected { path, what });
        }
        for _ in 0..TAKE_OVERS_MAX {
            match Self::claim_once(&path, overwrite, sync, nonce) {
                Err(OutputError::Busy { .. }) if claim::take_over(&path) => {}
                claimed => return claimed,
            }
        }
        Err(busy(&Folder::open(&path).map_err(OutputError::io("open", &path))?))
    }

    fn claim_once(path: &Path, overwrite: bool, sync: bool, nonce: &str) -> Result<Self, OutputError> {
        let made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(OutputError::io("create", path)(error)),
        };
        let claimed = Self::claim_made(path, made, overwrite, sync, nonce);
        if made && claimed.is_err() {
            // Only an empty directory goes: what is in it is somebody else's.
            let _ = fs::remove_dir(path);
        }
        claimed
    }

    fn claim_made(
        path: &Path,
        made: bool,
        overwrite: bool,
        sync: bool,
        nonce: &str,
    ) -> Result<Self, OutputError> {
        // By now it is no link, and must not have become one.
        let opened = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Folder::open(parent).and_then(|parent| parent.folder(name)),
            _ => Folder::open(path),
        };
        let folder = opened.map_err(OutputError::io("open", path))?;
        if !made {
            folder.refuse_foreign(true).map_err(OutputError::io("use", path))?;
        }
        // Not ours, and not to be touched for a moment either.
        if !made && !overwrite && folder.look(TEMPORARY).is_err() && !contents(&folder)?.is_empty() {
            return Err(OutputError::NotEmpty { path: path.to_path_buf() });
        }
        let named = format!("{}{nonce}", claim::PROBE).parse().map_err(io::Error::other);
        let probe: PlainName = named.map_err(OutputError::io("name the claim of", path))?;
        let (temporary, lock) = mark(&folder, &probe, made, sync)?;
        let claimed = Self { folder, temporary, probe, made, _lock: lock };
        let cleared = contents(&claimed.folder).and_then(|contents| match overwrite {
            _ if contents.is_empty() => Ok(()),
            true => claimed.move_aside(&contents),
            false => Err(OutputError::NotEmpty { path: path.to_path_buf() }),
        });
        match cleared {
            Ok(()) => Ok(claimed),
            Err(error) => {
                claimed.undo(&Published::Nothing);
                Err(error)
            }
        }
    }

    /// Moves what is in the directory into a folder inside it: the directory itself stays, be it a mount, a link's, or
    /// root's.
    fn move_aside(&self, contents: &[OsString]) -> Result<(), OutputError> {
        let aside = self.aside();
        let made = self.folder.make_folder(&aside);
        let made = made.map_err(OutputError::io("create", &self.folder.path(&aside)))?;
        for name in contents {
            let moved = self.folder.rename(name, &made, name);
            moved.map_err(OutputError::io("move aside", &self.folder.path(name)))?;
        }
        Ok(())
    }

    /// The claim of a submission, to be finished or abandoned by another process than the one that made it: that of
    /// `job` until it ends, if one is named.
    ///
    /// # Errors
    /// A directory that this process does not see, that is another user's, or in which the claim is not or not free.
    pub fn adopt(submission: &Submission, job: Option<JobId>) -> Result<Self, OutputError> {
        let (path, probe) = (submission.output.to_path(), submission.output_probe.clone());
        let adopting = || {
            if !path.is_absolute() || !probe.as_str().starts_with(claim::PROBE) {
                let text = format!("no claim {probe} can be in {}", submission.output);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            let folder = Folder::open(path)?;
            folder.refuse_foreign(true)?;
            let temporary = folder.folder(TEMPORARY)?;
            temporary.refuse_shared()?;
            let made = submission.output_made;
            let lock = claim::hold(&temporary, &probe, made, job)?;
            Ok(Self { folder, temporary, probe, made, _lock: lock })
        };
        adopting().map_err(OutputError::io("take over the claim on", path))
    }

    /// The name of its claim, by which whoever sees the directory knows it.
    pub(crate) fn probe(&self) -> &PlainName {
        &self.probe
    }

    /// Whether it was made for the job.
    pub(crate) fn is_made(&self) -> bool {
        self.made
    }

    fn nonce(&self) -> &str {
        nonce_of(&self.probe)
    }

    /// Name of `_temporary` before anybody sees it, and when it is nobody's any more.
    fn retired(&self) -> String {
        format!("{RETIRED}{}", self.nonce())
    }

    /// Name of the folder where what is overwritten waits for the end of the job.
    fn aside(&self) -> String {
        format!("{REPLACED}{}", self.nonce())
    }

    /// What becomes of parts that are sent here.
    ///
    /// # Errors
    /// A process that can open nothing more.
    pub(crate) fn parts(&self, sync: bool) -> io::Result<Parts> {
        let folder = self.temporary.try_clone()?;
        Ok(Parts { name: self.probe.clone(), folder: Arc::new(folder), sync })
    }

    /// The directory, absolute.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path("")
    }

    /// Takes the claim for this process. A submitter and a master may both find that they have to close an output;
    /// the first one does, and the other one touches nothing: by then the directory may belong to somebody else.
    fn seize(&self, how: &str) -> Result<(), OutputError> {
        let closing = format!("{how}{}", self.nonce());
        let seized = self.temporary.rename(self.probe.as_str(), &self.temporary, closing);
        seized.map_err(OutputError::io("close the output with", &self.temporary.path(self.probe.as_str())))
    }

    /// Publishes the parts, writes `_SUCCESS` and gives the claim back. With `sync`, on disk before this returns. What is
    /// left goes when the answer is dropped, which may take as long again.
    ///
    /// # Errors
    /// Parts that are not as their attempts left them, or what the file system says; the claim is then abandoned. Or
    /// another process has closed the output.
    pub fn finish(self, success: &Success, built: &[BuiltPart], sync: bool) -> Result<Remains, OutputError> {
        self.seize(claim::CLOSING)?;
        let mut names = Vec::new();
        let published = self.publish_parts(&success.parts, built, &mut names);
        let written = published.and_then(|()| self.write_success(success, sync, &mut names));
        if let Err(error) = written {
            self.undo(&Published::These(names));
            return Err(error);
        }
        Ok(self.clear_away())
    }

    /// Publishes all parts, or none if one is not as it should be. `published` gets their names, one by one.
    fn publish_parts<'a>(
        &self,
        parts: &'a [Part],
        built: &[BuiltPart],
        published: &mut Vec<&'a str>,
    ) -> Result<(), OutputError> {
        let place = self.temporary.path("");
        if parts.len() != built.len() {
            let why = format!("{} parts were built, and {} are known", built.len(), parts.len());
            return Err(OutputError::io("publish the parts of", &place)(io::Error::other(why)));
        }
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let names = (0..count).map(|index| part_name(index, count));
        for ((part, built), name) in parts.iter().zip(built).zip(names) {
            // Whoever says what is published does not say where.
            if part.name != name {
                let why = format!("it is called {:?}", part.name);
                return Err(OutputError::io("publish", &self.folder.path(&name))(io::Error::other(why)));
            }
            check_part(part, &self.temporary, &built_name(&self.probe, built.attempt), built.stamp)?;
        }
        for (part, built) in parts.iter().zip(built) {
            let from = built_name(&self.probe, built.attempt);
            again(|| {
                fault::error("output.rename")?;
                self.temporary.publish(&from, &self.folder, &part.name)
            })
            .map_err(OutputError::io("publish", &self.folder.path(&part.name)))?;
            published.push(&part.name);
        }
        Ok(())
    }

    fn write_success(
        &self,
        success: &Success,
        sync: bool,
        published: &mut Vec<&str>,
    ) -> Result<(), OutputError> {
        let (built, place) = (self.temporary.path(SUCCESS), self.folder.path(SUCCESS));
        let mut text = serde_json::to_vec_pretty(success)
            .map_err(|error| OutputError::io("write", &built)(io::Error::other(error)))?;
        text.push(b'\n');
        // Written anew each time: what a disk has failed to keep it does not try to keep again.
        again(|| write_new(&self.temporary, SUCCESS, &text, sync))
            .map_err(OutputError::io("write", &built))?;
        self.sync_names(sync)?;
        again(|| self.temporary.publish(SUCCESS, &self.folder, SUCCESS))
            .map_err(OutputError::io("publish", &place))?;
        published.push(SUCCESS);
        self.sync_names(sync)?;
        let path = self.path();
        let parent = path.parent().filter(|_| sync && self.made);
        parent.map_or(Ok(()), |parent| {
            let synced = again(|| {
                fault::error("output.sync-parent")?;
                Folder::open(parent)?.sync()
            });
            synced.map_err(OutputError::io("sync", parent))
        })
    }

    fn sync_names(&self, sync: bool) -> Result<(), OutputError> {
        if !sync {
            return Ok(());
        }
        again(|| self.folder.sync()).map_err(OutputError::io("sync", &self.path()))
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
        let read = Folder::open(path).and_then(|folder| {
            folder.refuse_foreign(true)?;
            Success::read_in(&folder)
        });
        let read = read.map_err(OutputError::io("find the complete output in", path));
        if read.as_ref().is_ok_and(|found| found.parts == success.parts) {
            return Ok(());
        }
        let other = || io::Error::other("it is that of another job");
        read.and_then(|_| Err(OutputError::io("find the complete output in", path)(other())))
    }

    /// Removes everything the job has put there and brings back what was moved aside.
    pub fn abandon(self) {
        if self.seize(claim::ABANDONING).is_ok() {
            self.undo(&Published::Nothing);
        }
    }

    /// The output is complete: what cannot be cleared away does not make it less so.
    fn clear_away(self) -> Remains {
        if let Err(error) = remove_tree(&self.folder, &self.aside()) {
            tracing::warn!(path = %self.folder.path(self.aside()).display(), %error, "could not be removed");
        }
        self.retire()
    }

    /// Gives the claim back. Attempts that linger find no folder any more. What they have built goes while it is still
    /// claimed, so that the next job goes on with it after a death.
    fn retire(self) -> Remains {
        self.remove_built();
        if let Err(error) = self.folder.rename(TEMPORARY, &self.folder, self.retired()) {
            tracing::warn!(path = %self.folder.path(TEMPORARY).display(), %error, "could not be removed");
        }
        Remains(self)
    }

    fn remove_built(&self) {
        let names = self.temporary.names().into_iter().flatten();
        for name in names.filter(|name| !claim::is_claim(name)) {
            let _ = self.temporary.remove_file(name);
        }
    }

    /// What cannot be removed is left: there is nobody to tell who could do better. Only what this job has published is
    /// removed: other parts in the directory are what is being moved aside, or somebody else's.
    fn undo(self, published: &Published<'_>) {
        self.unpublish(published);
        self.bring_back();
        let made = self.made.then(|| self.path().to_path_buf());
        drop(self.retire());
        if let Some(path) = made {
            // Only an empty directory goes: files of others are not ours to remove.
            let _ = fs::remove_dir(path);
        }
    }

    /// Removes what is published. Says so before anything comes back: whoever goes on with this after a death must not
    /// take old parts, or an old `_SUCCESS`, for those of the job.
    fn unpublish(&self, published: &Published<'_>) {
        match published {
            Published::Nothing => return,
            // The last one first: a directory with `_SUCCESS` is complete.
            Published::These(names) => {
                for name in names.iter().rev() {
                    let _ = self.folder.remove_file(name);
                }
            }
            Published::Unknown => {
                let _ = self.folder.remove_file(SUCCESS);
                let names = self.folder.names().into_iter().flatten();
                for name in names.filter(|name| is_part(&name.to_string_lossy())) {
                    let _ = self.folder.remove_file(name);
                }
            }
        }
        let [closing, abandoning] =
            [claim::CLOSING, claim::ABANDONING].map(|how| format!("{how}{}", self.nonce()));
        if let Err(error) = self.temporary.rename(&closing, &self.temporary, abandoning) {
            tracing::warn!(path = %self.temporary.path(closing).display(), %error, "could not be renamed");
        }
    }

    /// Brings back what was moved aside.
    fn bring_back(&self) {
        let Ok(aside) = self.folder.folder(self.aside()) else { return };
        for name in aside.names().into_iter().flatten() {
            if let Err(error) = aside.publish(&name, &self.folder, &name) {
                tracing::warn!(from = %aside.path(&name).display(), %error, "could not be brought back");
            }
        }
        let _ = self.folder.remove_folder(self.aside());
    }
}

/// What a job has published of its output.
enum Published<'a> {
    /// It had not begun to.
    Nothing,
    /// Files of these names, in this order.
    These(Vec<&'a str>),
    /// A process died while it published: all parts that there are count.
    Unknown,
}

/// What is left of a claim that was given back: a folder with the claim's file, which is locked until both go with this.
#[derive(Debug)]
pub struct Remains(OutputDirectory);

impl Drop for Remains {
    fn drop(&mut self) {
        let (folder, retired) = (&self.0.folder, self.0.retired());
        if let Err(error) = remove_tree(folder, &retired) {
            tracing::warn!(path = %folder.path(&retired).display(), %error, "could not be removed");
        }
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

/// What tells the files of this claim from those of any other.
fn nonce_of(probe: &PlainName) -> &str {
    probe.as_str().strip_prefix(claim::PROBE).unwrap_or_default()
}

/// What is in an output directory, but for claims.
fn contents(folder: &Folder) -> Result<Vec<OsString>, OutputError> {
    let mut names = folder.names().map_err(OutputError::io("list", &folder.path("")))?;
    names.retain(|name| name != TEMPORARY && !name.as_encoded_bytes().starts_with(RETIRED.as_bytes()));
    Ok(names)
}

/// Makes `_temporary` with the claim in it, at once, which also shows that files can be written here.
fn mark(folder: &Folder, probe: &PlainName, made: bool, sync: bool) -> Result<(Folder, File), OutputError> {
    let retired = format!("{RETIRED}{}", nonce_of(probe));
    let made_folder = folder.make_folder(&retired);
    let temporary = made_folder.map_err(OutputError::io("create", &folder.path(&retired)))?;
    let signed = claim::sign(&temporary, probe, made, sync);
    let signed = signed.map_err(OutputError::io("write", &temporary.path(probe.as_str())));
    let marked = signed.and_then(|lock| {
        use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty};
        // Onto an empty folder too, which no claim is.
        match folder.rename(&retired, folder, TEMPORARY) {
            Ok(()) => Ok(lock),
            Err(error) if matches!(error.kind(), DirectoryNotEmpty | AlreadyExists) => Err(busy(folder)),
            Err(error) => Err(OutputError::io("create", &folder.path(TEMPORARY))(error)),
        }
    });
    match marked {
        Ok(lock) => Ok((temporary.named(folder.path(TEMPORARY)), lock)),
        Err(error) => {
            let _ = remove_tree(folder, &retired);
            Err(error)
        }
    }
}

fn busy(folder: &Folder) -> OutputError {
    let by = claim::read(folder).map_or_else(|| "of an unknown owner".to_owned(), |claim| claim.to_string());
    OutputError::Busy { path: folder.path(""), by }
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

fn write_new(folder: &Folder, name: &str, text: &[u8], sync: bool) -> io::Result<()> {
    match folder.remove_file(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = folder.create(name)?;
    fault::error("output.write")?;
    file.write_all(text)?;
    if sync {
        fault::error("output.sync")?;
        file.sync_all()?;
    }
    Ok(())
}

/// Checks that the file of a part is what its attempt reported. A file that has not been touched since is not read again.
fn check_part(part: &Part, folder: &Folder, name: &str, stamp: FileStamp) -> Result<(), OutputError> {
    let path = folder.path(name);
    // Nothing but a file is a part.
    let file = folder.open_file(name).map_err(OutputError::io("look at the part", &path))?;
    let found = file.metadata().map_err(OutputError::io("look at the part", &path))?;
    let found = FileStamp::of(&found);
    if found == stamp && found.size == part.bytes {
        return Ok(());
    }
    let (bytes, crc32c) = sum(file).map_err(OutputError::io("read the part", &path))?;
    if (bytes, crc32c) == (part.bytes, part.crc32c) {
        return Ok(());
    }
    Err(OutputError::Changed {
        part: part.name.clone(),
        path,
        bytes,
        crc32c,
        expected: (part.bytes, part.crc32c),
    })
}

/// Bytes that are read at once to be summed up.
const SUM_CHUNK_BYTES: usize = 256 << 10;

/// Length and CRC-32C of a file.
fn sum(mut file: File) -> io::Result<(u64, u32)> {
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
fn remove_tree(folder: &Folder, name: &str) -> io::Result<()> {
    const TRIES: u32 = 5;
    let mut result = Ok(());
    for _ in 0..TRIES {
        result = folder.remove_tree(name);
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
