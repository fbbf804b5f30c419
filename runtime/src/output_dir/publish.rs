//! Completion of an output: parts are checked and published, then `_SUCCESS`.

use super::claimed_directory::{OutputDirectory, Published, PublishedFile};
use super::part_file::{PartFile, check_joinable, files_of};
use super::undo::RetiredClaim;
use super::{BAD_RECORDS, OutputError, SUCCESS, Success, claim};
use crate::api::BuiltPart;
use gristmill_worker::commit::{NAMED_OUTPUTS_MAX, is_output_name, part_name};
use gristmill_worker::directory::{Directory, PlainName};
use gristmill_worker::fault;
use gristmill_worker::output::PartFormat;
use gristmill_worker::protocol::Part;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

impl OutputDirectory {
    /// Publishes the parts, writes `_SUCCESS` and gives the claim back. With `sync`, everything is on disk before this
    /// returns. Remaining files are removed when the returned value is dropped, which may take as long again.
    ///
    /// # Errors
    /// Parts that differ from their attempts' reports, or errors of the file system; the claim is then abandoned. Or
    /// another process has closed the output.
    pub(crate) fn finish(
        self,
        success: &Success,
        built: &[BuiltPart],
        sync: bool,
    ) -> Result<RetiredClaim, OutputError> {
        let path = self.path();
        let finished = self.finish_claimed(success, built, sync);
        let is_gone =
            || fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        finished.map_err(|error| match error.is_of_missing() && is_gone() {
            true => OutputError::Gone { path: path.clone(), source: Box::new(error) },
            false => error,
        })
    }

    fn finish_claimed(
        self,
        success: &Success,
        built: &[BuiltPart],
        sync: bool,
    ) -> Result<RetiredClaim, OutputError> {
        self.take_claim(claim::CLOSING)?;
        let mut names = Vec::new();
        let published = self.publish_parts(&success.parts, built, sync, &mut names);
        let named = published.and_then(|()| self.write_bad_records(success, sync, &mut names));
        let written = named.and_then(|()| self.write_success(success, sync, &mut names));
        if let Err(error) = written {
            self.undo(&Published::These(names));
            return Err(error);
        }
        fault::place("output.complete");
        let retired = self.clear_away();
        fault::place("output.cleared");
        Ok(retired)
    }

    /// Publishes all parts, or none if one is invalid. `published` receives their names, one by one.
    fn publish_parts<'a>(
        &self,
        parts: &'a [Part],
        built: &'a [BuiltPart],
        sync: bool,
        published: &mut Vec<PublishedFile<'a>>,
    ) -> Result<(), OutputError> {
        self.check_names(parts, built)?;
        let files_of = |(part, built)| files_of(&self.probe, part, built);
        for file in parts.iter().zip(built).flat_map(files_of) {
            file.check_built(&self.temporary)?;
        }
        let mut directories = BTreeMap::new();
        for file in parts.iter().zip(built).flat_map(files_of) {
            self.publish_file(&file, sync, &mut directories)?;
            published.push((file.output, file.part));
            fault::place("output.renamed");
        }
        fault::place("output.all-renamed");
        Ok(())
    }

    /// Publishes a file that was checked.
    pub(super) fn publish_file(
        &self,
        file: &PartFile<'_>,
        sync: bool,
        directories: &mut BTreeMap<PlainName, Directory>,
    ) -> Result<(), OutputError> {
        retried(|| file.join(&self.temporary, sync))
            .map_err(OutputError::io("join the files of the part in", &file.first_path(&self.temporary)))?;
        let directory = self.directory_of(file.output, directories)?;
        retried(|| {
            fault::error("output.rename")?;
            self.temporary.publish(file.first(), directory, file.part)
        })
        .map_err(OutputError::io("publish", &directory.path(file.part)))?;
        file.remove_rests(&self.temporary);
        Ok(())
    }

    /// Directory of the parts of an output. That of a named output is created if it does not exist.
    pub(super) fn directory_of<'f>(
        &'f self,
        output: Option<&PlainName>,
        directories: &'f mut BTreeMap<PlainName, Directory>,
    ) -> Result<&'f Directory, OutputError> {
        let Some(output) = output else { return Ok(&self.directory) };
        if !directories.contains_key(output) {
            let path = self.directory.path(output.as_str());
            let directory = match self.directory.make_shared_directory(output.as_str()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.directory.directory(output.as_str())
                }
                made => made,
            };
            let directory = directory.and_then(|directory| {
                directory.refuse_foreign(false)?;
                Ok(directory)
            });
            directories.insert(output.clone(), directory.map_err(OutputError::io("create", &path))?);
        }
        Ok(&directories[output])
    }

    /// Checks the names of parts, and that they may consist of the files that were built.
    pub(super) fn check_names(&self, parts: &[Part], built: &[BuiltPart]) -> Result<(), OutputError> {
        let wrong = |name: &str, why: String| {
            OutputError::io("publish", &self.directory.path(name))(io::Error::other(why))
        };
        check_part_names(parts, built, |name, _| name.to_owned()).map_err(|(name, why)| wrong(&name, why))?;
        let mut parts = parts.iter().zip(built);
        parts.try_for_each(|(part, built)| check_joinable(part, built).map_err(|why| wrong(&part.name, why)))
    }

    /// Writes the names of the skipped records, if there are any.
    fn write_bad_records(
        &self,
        success: &Success,
        sync: bool,
        published: &mut Vec<PublishedFile<'_>>,
    ) -> Result<(), OutputError> {
        if success.bad_records.is_empty() {
            return Ok(());
        }
        self.write_beside(BAD_RECORDS, success.bad_records_text().as_bytes(), sync, published)
    }

    /// Writes a file next to the parts. Each retry writes a new file, because the system does not retry data that a
    /// disk has failed to store.
    fn write_beside<'a>(
        &self,
        name: &'a str,
        text: &[u8],
        sync: bool,
        published: &mut Vec<PublishedFile<'a>>,
    ) -> Result<(), OutputError> {
        retried(|| write_new(&self.temporary, name, text, sync))
            .map_err(OutputError::io("write", &self.temporary.path(name)))?;
        self.sync_names(sync)?;
        retried(|| self.temporary.publish(name, &self.directory, name))
            .map_err(OutputError::io("publish", &self.directory.path(name)))?;
        published.push((None, name));
        Ok(())
    }

    pub(super) fn write_success(
        &self,
        success: &Success,
        sync: bool,
        published: &mut Vec<PublishedFile<'_>>,
    ) -> Result<(), OutputError> {
        let built = self.temporary.path(SUCCESS);
        let mut text = serde_json::to_vec_pretty(success)
            .map_err(|error| OutputError::io("write", &built)(io::Error::other(error)))?;
        text.push(b'\n');
        self.sync_named(&success.parts, sync)?;
        self.write_beside(SUCCESS, &text, sync, published)?;
        self.sync_names(sync)?;
        let path = self.path();
        let parent = path.parent().filter(|_| sync && self.made);
        parent.map_or(Ok(()), |parent| {
            let synced = retried(|| {
                fault::error("output.sync-parent")?;
                Directory::open(parent)?.sync()
            });
            synced.map_err(OutputError::io("sync", parent))
        })
    }

    fn sync_named(&self, parts: &[Part], sync: bool) -> Result<(), OutputError> {
        let named = parts.iter().flat_map(|part| &part.named).filter(|_| sync);
        let outputs: BTreeSet<&PlainName> = named.map(|named| &named.output).collect();
        for output in outputs {
            let synced = retried(|| self.directory.directory(output.as_str())?.sync());
            synced.map_err(OutputError::io("sync", &self.directory.path(output.as_str())))?;
        }
        Ok(())
    }

    fn sync_names(&self, sync: bool) -> Result<(), OutputError> {
        if !sync {
            return Ok(());
        }
        retried(|| self.directory.sync()).map_err(OutputError::io("sync", &self.path()))
    }

    /// Checks the output of a successful job whose client died and left no claim in the directory: returns `Ok` if the
    /// client had finished it. A half-finished output is undone.
    ///
    /// # Errors
    /// An output that is not complete, as far as this process can see.
    pub(crate) fn left_finished(path: &Path, success: &Success) -> Result<(), OutputError> {
        // Also removes files it had not removed yet, such as those that were overwritten.
        claim::take_over(path);
        let directory = Directory::open(path).and_then(|directory| {
            directory.refuse_foreign(true)?;
            Ok(directory)
        });
        Self::is_complete(&directory.map_err(OutputError::io("find the complete output in", path))?, success)
    }

    /// Checks that the output in the directory is this one.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn is_complete(directory: &Directory, success: &Success) -> Result<(), OutputError> {
        let path = &directory.path("");
        let read = Success::read_in(directory).map_err(OutputError::io("find the complete output in", path));
        if read.as_ref().is_ok_and(|found| found.parts == success.parts) {
            return Ok(());
        }
        let other = || io::Error::other("it is that of another job");
        read.and_then(|_| Err(OutputError::io("find the complete output in", path)(other())))
    }
}

/// Number of tries of an operation of the file system when an output is closed.
const TRIES: u32 = 3;

/// Pause between them.
const TRY_PAUSE: Duration = Duration::from_millis(200);

/// Runs an operation that may fail temporarily, such as on a disk with an error, up to [`TRIES`] times.
fn retried<T>(mut step: impl FnMut() -> io::Result<T>) -> io::Result<T> {
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

fn write_new(directory: &Directory, name: &str, text: &[u8], sync: bool) -> io::Result<()> {
    let mut file = match directory.create(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            directory.remove_file(name)?;
            directory.create(name)?
        }
        created => created?,
    };
    fault::error("output.write")?;
    file.write_all(text)?;
    if sync {
        fault::error("output.sync")?;
        file.sync_all()?;
    }
    Ok(())
}

/// Checks the names of parts and of their named outputs: a report must not choose the path of a published file. `name`
/// returns the name under which a part was built, from the name of its number. An `Err` has the part's name, empty if
/// their number is wrong, and a description.
pub(super) fn check_part_names(
    parts: &[Part],
    built: &[BuiltPart],
    name: impl Fn(&str, &BuiltPart) -> String,
) -> Result<(), (String, String)> {
    if parts.len() != built.len() {
        let why = format!("{} parts were built, and {} are known", built.len(), parts.len());
        return Err((String::new(), why));
    }
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let format =
        parts.first().map_or(PartFormat::default(), |part| PartFormat::of_name(&part.name.as_str().into()));
    for ((part, built), index) in parts.iter().zip(built).zip(0..count) {
        let expected = name(&part_name(index, count, format), built);
        if part.name != expected {
            return Err((expected, format!("it is called {:?}", part.name)));
        }
        let outputs: Vec<&PlainName> = part.named.iter().map(|named| &named.output).collect();
        let good = outputs.iter().all(|output| is_output_name(output)) && outputs.is_sorted_by(|a, b| a < b);
        if !good || NAMED_OUTPUTS_MAX < outputs.len() {
            return Err((expected, format!("its task has outputs that it cannot have: {outputs:?}")));
        }
    }
    Ok(())
}
