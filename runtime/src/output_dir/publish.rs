//! Completion of an output: parts are checked and published, then `_SUCCESS`.

use super::claimed_directory::{OutputDirectory, Published, PublishedFile};
use super::undo::RetiredClaim;
use super::{BAD_RECORDS, OutputError, SUCCESS, Success, claim};
use crate::api::BuiltPart;
use gristmill_worker::commit::{NAMED_OUTPUTS_MAX, built_name, is_output_name, named_built_name, part_name};
use gristmill_worker::directory::{Directory, PlainName};
use gristmill_worker::fault;
use gristmill_worker::input::FileStamp;
use gristmill_worker::output::PartFormat;
use gristmill_worker::protocol::{NamedPart, Part};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
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
        let published = self.publish_parts(&success.parts, built, &mut names);
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
        built: &[BuiltPart],
        published: &mut Vec<PublishedFile<'a>>,
    ) -> Result<(), OutputError> {
        self.check_names(parts, built)?;
        for (part, built) in parts.iter().zip(built) {
            let from = built_name(&self.probe, built.attempt);
            for named in &part.named {
                check_named(part, named, &self.temporary, &named_built_name(&from, &named.output))?;
            }
            check_part(part, &self.temporary, &from, built.stamp)?;
        }
        let mut directories = BTreeMap::new();
        for (part, built) in parts.iter().zip(built) {
            let from = built_name(&self.probe, built.attempt);
            for named in &part.named {
                let directory = self.directory_of(&named.output, &mut directories)?;
                let from = named_built_name(&from, &named.output);
                retried(|| self.temporary.publish(&from, directory, &part.name))
                    .map_err(OutputError::io("publish", &directory.path(&part.name)))?;
                published.push((Some(&named.output), &part.name));
                fault::place("output.renamed");
            }
            retried(|| {
                fault::error("output.rename")?;
                self.temporary.publish(&from, &self.directory, &part.name)
            })
            .map_err(OutputError::io("publish", &self.directory.path(&part.name)))?;
            published.push((None, &part.name));
            fault::place("output.renamed");
        }
        fault::place("output.all-renamed");
        Ok(())
    }

    /// Directory of a named output, created if it does not exist.
    pub(super) fn directory_of<'f>(
        &self,
        output: &PlainName,
        directories: &'f mut BTreeMap<PlainName, Directory>,
    ) -> Result<&'f Directory, OutputError> {
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

    /// Checks the names of parts.
    pub(super) fn check_names(&self, parts: &[Part], built: &[BuiltPart]) -> Result<(), OutputError> {
        check_part_names(parts, built, |name, _| name.to_owned()).map_err(|(name, why)| {
            OutputError::io("publish", &self.directory.path(&name))(io::Error::other(why))
        })
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

/// Checks that the file of a part is as its attempt reported. An unmodified file is not read again.
pub(super) fn check_part(
    part: &Part,
    directory: &Directory,
    name: &str,
    stamp: FileStamp,
) -> Result<(), OutputError> {
    let path = directory.path(name);
    // Only a regular file is a part.
    let file = directory.open_file(name).map_err(OutputError::io("look at the part", &path))?;
    let found = file.metadata().map_err(OutputError::io("look at the part", &path))?;
    let found = FileStamp::from_metadata(&found);
    if found == stamp && found.size == part.bytes {
        return Ok(());
    }
    check_sum(part.name.clone(), path, file, (part.bytes, part.crc32c))
}

/// Checks that the file of a named output is as its attempt reported. It is read once for that.
pub(super) fn check_named(
    part: &Part,
    named: &NamedPart,
    directory: &Directory,
    name: &str,
) -> Result<(), OutputError> {
    let path = directory.path(name);
    let file = directory.open_file(name).map_err(OutputError::io("look at the part", &path))?;
    check_sum(format!("{}/{}", named.output, part.name), path, file, (named.bytes, named.crc32c))
}

fn check_sum(part: String, path: PathBuf, file: File, expected: (u64, u32)) -> Result<(), OutputError> {
    let (bytes, crc32c) = sum(file).map_err(OutputError::io("read the part", &path))?;
    if (bytes, crc32c) == expected {
        return Ok(());
    }
    Err(OutputError::Changed { part, path, bytes, crc32c, expected })
}

/// Bytes read at once for the checksum.
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
