//! Files of parts: checked, joined from the files of several attempts if the reduce was divided, and then ready to be
//! renamed.
//!
//! The files of later attempts are appended to that of the first. This costs room and time for the rests alone. Until
//! the renaming, a process that continues after a crash can cut the first file back to its reported length.

use super::{OutputError, join_parts};
use crate::api::{BuiltPart, BuiltPiece};
use gristmill_scheduler::ids::AttemptId;
use gristmill_worker::commit::{built_name, named_built_name};
use gristmill_worker::directory::{Directory, PlainName};
use gristmill_worker::fault;
use gristmill_worker::input::FileStamp;
use gristmill_worker::output::PartFormat;
use gristmill_worker::protocol::Part;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Size and checksum that a file must have.
#[derive(Clone, Copy)]
struct ReportedFile {
    bytes: u64,
    crc32c: u32,
    /// Stamp after its attempt had finished it. `None` if the file is read in any case.
    stamp: Option<FileStamp>,
}

/// File in `_temporary`, built by one attempt.
struct BuiltFile {
    name: String,
    reported: ReportedFile,
}

/// One file of the output: the main part of a task, or its part of a named output.
pub(super) struct PartFile<'a> {
    /// The named output; `None` for the main part.
    pub(super) output: Option<&'a PlainName>,
    /// Name of the part.
    pub(super) part: &'a str,
    whole: ReportedFile,
    /// Files that make it up, in order.
    built: Vec<BuiltFile>,
}

/// Attempts that built a part, in order, and their reports.
fn attempts_of<'a>(part: &'a Part, built: &'a BuiltPart) -> Vec<(AttemptId, FileStamp, &'a Part)> {
    if built.pieces.is_empty() {
        return vec![(built.attempt, built.stamp, part)];
    }
    built.pieces.iter().map(|piece| (piece.attempt, piece.stamp, &piece.part)).collect()
}

/// Size and checksum of the part of an output, as reported; `None` if there is no such output.
fn reported(part: &Part, stamp: Option<FileStamp>, output: Option<&PlainName>) -> Option<ReportedFile> {
    match output {
        None => Some(ReportedFile { bytes: part.bytes, crc32c: part.crc32c, stamp }),
        Some(output) => {
            let named = part.named.iter().find(|named| named.output == *output)?;
            Some(ReportedFile { bytes: named.bytes, crc32c: named.crc32c, stamp: None })
        }
    }
}

/// Checks that the files of a divided reduce make up its part, and that each is built by an attempt of its own. An `Err`
/// has a description.
pub(super) fn check_joinable(part: &Part, built: &BuiltPart) -> Result<(), String> {
    let pieces = &built.pieces;
    let Some(first) = pieces.first() else { return Ok(()) };
    if !PartFormat::of_name(&part.name.as_str().into()).is_joinable() {
        return Err("files of its format cannot be joined".to_owned());
    }
    if (first.attempt, first.stamp) != (built.attempt, built.stamp) {
        return Err(format!("its first file is not that of {}", built.attempt));
    }
    let files: BTreeSet<String> = pieces.iter().map(|piece| piece.attempt.file_name()).collect();
    if files.len() < pieces.len() {
        return Err("it contains the file of an attempt twice".to_owned());
    }
    let is_sorted = |part: &Part| part.named.is_sorted_by(|a, b| a.output < b.output);
    if let Some(piece) = pieces.iter().find(|piece| !is_sorted(&piece.part)) {
        return Err(format!("the outputs of {} are not in the order of names", piece.attempt));
    }
    let single = |piece: &BuiltPiece| (piece.part.clone(), BuiltPart::new(piece.attempt, piece.stamp));
    let joined = join_parts(pieces.iter().map(single).collect());
    match joined.map(|(joined, _)| Part { name: part.name.clone(), ..joined }) {
        Some(joined) if joined == *part => Ok(()),
        _ => Err(format!("its sizes and sums are not those of its {} files", pieces.len())),
    }
}

/// Files of a part, in the order in which they are published: the main one is the last.
pub(super) fn files_of<'a>(probe: &PlainName, part: &'a Part, built: &'a BuiltPart) -> Vec<PartFile<'a>> {
    let attempts = attempts_of(part, built);
    let outputs = part.named.iter().map(|named| Some(&named.output)).chain([None]);
    let file = |output: Option<&'a PlainName>| {
        let built_file = |(attempt, stamp, part): &(AttemptId, FileStamp, &Part)| {
            let main = built_name(probe, *attempt);
            let name = output.map_or_else(|| main.clone(), |output| named_built_name(&main, output));
            Some(BuiltFile { name, reported: reported(part, Some(*stamp), output)? })
        };
        // A joined file has another stamp than the one that its attempts reported.
        let stamp = Some(built.stamp).filter(|_| attempts.len() == 1);
        Some(PartFile {
            output,
            part: &part.name,
            whole: reported(part, stamp, output)?,
            built: attempts.iter().filter_map(built_file).collect(),
        })
    };
    outputs.filter_map(file).collect()
}

impl PartFile<'_> {
    /// Name of the file in `_temporary` that is published, once the others are appended to it.
    pub(super) fn first(&self) -> &str {
        self.built.first().map_or("", |built| &built.name)
    }

    /// Names of all its files in `_temporary`.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.built.iter().map(|built| &*built.name)
    }

    /// Checks that each of its files is as its attempt reported. An unmodified main file is not read again.
    pub(super) fn check_built(&self, temporary: &Directory) -> Result<(), OutputError> {
        self.built.iter().try_for_each(|built| self.check(temporary, &built.name, built.reported))
    }

    /// Checks that the published file is as its attempts reported.
    pub(super) fn check_published(&self, directory: &Directory) -> Result<(), OutputError> {
        self.check(directory, self.part, self.whole)
    }

    fn check(&self, directory: &Directory, name: &str, reported: ReportedFile) -> Result<(), OutputError> {
        let path = directory.path(name);
        // Only a regular file is a part.
        let file = directory.open_file(name).map_err(OutputError::io("look at the part", &path))?;
        if let Some(stamp) = reported.stamp {
            let found = file.metadata().map_err(OutputError::io("look at the part", &path))?;
            if FileStamp::from_metadata(&found) == stamp && stamp.size == reported.bytes {
                return Ok(());
            }
        }
        let (bytes, crc32c) = sum(file).map_err(OutputError::io("read the part", &path))?;
        let expected = (reported.bytes, reported.crc32c);
        if (bytes, crc32c) == expected {
            return Ok(());
        }
        Err(OutputError::Changed { part: self.label(), path, bytes, crc32c, expected })
    }

    /// Its path in the output directory, for messages.
    fn label(&self) -> String {
        self.output.map_or_else(|| self.part.to_owned(), |output| format!("{output}/{}", self.part))
    }

    /// Truncates the first file to its reported length if a dead process had begun to append to it. To be checked
    /// afterwards: the truncated file has another stamp than the one reported, so it is read.
    pub(super) fn cut_back(&self, temporary: &Directory) -> Result<(), OutputError> {
        let [first, _, ..] = &*self.built else { return Ok(()) };
        let cut = || {
            let file = temporary.open_own(&first.name)?;
            match first.reported.bytes < file.metadata()?.len() {
                true => file.set_len(first.reported.bytes),
                false => Ok(()),
            }
        };
        cut().map_err(OutputError::io("truncate", &self.first_path(temporary)))
    }

    /// Path of the first file, for messages.
    pub(super) fn first_path(&self, temporary: &Directory) -> PathBuf {
        temporary.path(self.first())
    }

    /// Removes the files that were appended to the first, once that is published: so the rests of one part at a time need
    /// room twice. What cannot be removed here is removed with the directory.
    pub(super) fn remove_rests(&self, temporary: &Directory) {
        for rest in self.built.iter().skip(1) {
            let _ = temporary.remove_file(&rest.name);
        }
    }

    /// Appends its other files to the first. With `sync`, all is on disk before this returns. May be repeated after an
    /// error. Does nothing if one attempt has built it.
    pub(super) fn join(&self, temporary: &Directory, sync: bool) -> io::Result<()> {
        let [first, rests @ ..] = &*self.built else { return Ok(()) };
        if rests.is_empty() {
            return Ok(());
        }
        let mut joined = temporary.open_own(&first.name)?;
        // A failed try may have appended some bytes. They are written again, because the system does not retry data that
        // a disk has failed to store.
        joined.set_len(first.reported.bytes)?;
        joined.seek(SeekFrom::Start(first.reported.bytes))?;
        for rest in rests {
            fault::error("output.append")?;
            let file = temporary.open_file(&rest.name)?;
            // On Linux the system copies from file to file, without a buffer here.
            let copied = io::copy(&mut file.take(rest.reported.bytes), &mut joined)?;
            if copied < rest.reported.bytes {
                let why = format!("{} has become shorter", temporary.path(&rest.name).display());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
            fault::place("output.appended");
        }
        if sync {
            fault::error("output.sync")?;
            joined.sync_all()?;
        }
        Ok(())
    }
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
