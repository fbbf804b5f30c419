//! Writes one part: a buffer, a count and a checksum around a file.
//!
//! Writing never fails where it stands; the first failure is kept and ends the task at the next check. Not
//! here: where parts are built and how they are published (`commit`).

mod field;

use crate::attempt::{NamedCounts, Progress, TaskError, TaskFailure, TaskResult, refuse_record};
use crate::input::Record;
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub use field::Field;

/// Bytes gathered before they are written. Small enough that the checksum finds them in the cache.
const BUFFER_BYTES: usize = 256 << 10;

/// Where a reducer, or the mapper of a map-only job, writes its part.
pub struct Output {
    writer: Box<dyn Write + Send>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Bytes handed to the writer.
    written: u64,
    records: u64,
    crc32c: u32,
    failure: Option<io::Error>,
    /// Kept for its memory.
    json: Vec<u8>,
    counts: NamedCounts,
    progress: Option<Arc<Progress>>,
}

/// What a finished part has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct OutputSum {
    pub bytes: u64,
    /// Records, as counted by [`Output::line`], [`Output::pair`] and [`Output::record`].
    pub records: u64,
    /// CRC-32C of all bytes.
    pub crc32c: u32,
}

impl Output {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self::new(path, Box::new(File::create(path)?)))
    }

    /// Writes to `writer`; `path` is its name in messages.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, writer: Box<dyn Write + Send>) -> Self {
        Self {
            writer,
            path: path.into(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            written: 0,
            records: 0,
            crc32c: 0,
            failure: None,
            json: Vec::new(),
            counts: NamedCounts::default(),
            progress: None,
        }
    }

    /// Tells `progress` about bytes and records, and stops when it is cancelled.
    pub(crate) fn watch(&mut self, progress: Arc<Progress>) {
        self.progress = Some(progress);
    }

    /// What was counted here since the last call.
    pub(crate) fn counts(&mut self) -> &mut NamedCounts {
        &mut self.counts
    }

    /// Adds to the counter of this name. Where it is done for every record,
    /// [`TaskContext::counter`](crate::api::TaskContext::counter) is quicker, which looks the name up once.
    pub fn count(&mut self, name: &str, n: u64) {
        self.counts.add(name, n);
    }

    /// Whether the task is not wanted any more. Only code that runs long without reading or writing need ask.
    ///
    /// A reduce may be suspended here for any length of time, so hold no lock while you ask. If the worker's slots are
    /// slower than its machine, this waits too: code that passes time must count what it passes itself, not what went
    /// by between two questions.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.rest())
    }

    /// As [`Emitter::refuse`](crate::collect::Emitter::refuse), for maps without a reduce. Nothing may have been written
    /// of the record.
    ///
    /// # Errors
    /// See there.
    pub fn refuse(&mut self, record: Record<'_>, error: TaskError) -> TaskResult {
        let bad = self.progress.as_ref().map(|progress| progress.bad_records());
        refuse_record(&bad.unwrap_or_default(), record, error)
    }

    /// Writes bytes as they are. Counts no record.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) {
        if BUFFER_BYTES < self.buffer.len() + bytes.len() {
            self.flush();
        }
        if BUFFER_BYTES < bytes.len() {
            self.hand_over(bytes);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Writes bytes as they are and counts them as one record.
    #[inline]
    pub fn record(&mut self, bytes: &[u8]) {
        self.write(bytes);
        self.records += 1;
    }

    /// Writes a line and counts it as one record.
    #[inline]
    pub fn line(&mut self, line: &[u8]) {
        if BUFFER_BYTES <= self.buffer.len() + line.len() {
            self.write(line);
            self.write(b"\n");
        } else {
            self.buffer.extend_from_slice(line);
            self.buffer.push(b'\n');
        }
        self.records += 1;
    }

    /// Writes key, tab, value and line end, and counts them as one record.
    #[inline]
    pub fn pair(&mut self, key: impl Field, value: impl Field) {
        key.write_to(self);
        self.write(b"\t");
        value.write_to(self);
        self.write(b"\n");
        self.records += 1;
    }

    /// Writes a value as one line of JSON and counts it as one record. A later job reads it back by [`Record::json`] as it
    /// was, floats to the last bit; those that are infinite or no number become `null`, which reads back as no float.
    ///
    /// # Errors
    /// A value that cannot be written as JSON, such as a map whose keys are no text.
    pub fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> TaskResult {
        let mut line = std::mem::take(&mut self.json);
        line.clear();
        let written = serde_json::to_writer(&mut line, value);
        if written.is_ok() {
            self.line(&line);
        }
        self.json = line;
        Ok(written?)
    }

    /// Writes one field without anything around it. Counts no record.
    #[inline]
    pub fn field(&mut self, field: impl Field) {
        field.write_to(self);
    }

    /// Counts one record, for those who write it piece by piece.
    pub fn end_record(&mut self) {
        self.records += 1;
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Records counted so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Reports a failure of writing since the last check, and whether the task is cancelled.
    pub(crate) fn check(&mut self) -> Result<(), TaskFailure> {
        if let Some(source) = self.failure.take() {
            return Err(TaskFailure::Output { path: self.path.clone(), source });
        }
        if let Some(progress) = &self.progress {
            progress.records_out.store(self.records, Relaxed);
            progress.bytes_out.store(self.bytes(), Relaxed);
            progress.check()?;
        }
        Ok(())
    }

    /// Writes what is left in the buffer. Does not sync.
    pub(crate) fn finish(mut self) -> Result<OutputSum, TaskFailure> {
        self.write_out()
    }

    /// Writes what is in the buffer, and answers what has been written.
    ///
    /// # Errors
    /// An error of the file system, and [`TaskFailure::Cancelled`].
    pub fn write_out(&mut self) -> Result<OutputSum, TaskFailure> {
        self.flush();
        if let Err(source) = self.writer.flush() {
            self.failure.get_or_insert(source);
        }
        self.check()?;
        Ok(OutputSum { bytes: self.written, records: self.records, crc32c: self.crc32c })
    }

    /// Counts records that stand in what was written as bytes.
    pub fn count_records(&mut self, records: u64) {
        self.records += records;
    }

    /// An output of the same name that goes nowhere.
    pub(crate) fn nowhere(&self) -> Self {
        Self::new(self.path.clone(), Box::new(io::sink()))
    }

    #[cold]
    #[inline(never)]
    fn flush(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.hand_over(&buffer);
        buffer.clear();
        self.buffer = buffer;
    }

    fn hand_over(&mut self, bytes: &[u8]) {
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        self.written += bytes.len() as u64;
        // A slow disk is no fault of user code.
        let _engine = self.progress.as_ref().map(|progress| progress.engine());
        if self.failure.is_none()
            && let Err(source) = self.writer.write_all(bytes)
        {
            self.failure = Some(source);
        }
    }
}

/// For `write!` with bytes.
impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Output::write(self, bytes);
        Ok(bytes.len())
    }

    /// Does nothing: the part is written when it ends.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("path", &self.path)
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Mutex;

    /// A writer whose bytes can be looked at, with room for so many.
    #[derive(Clone)]
    struct Disk(Arc<Mutex<Vec<u8>>>, usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut all = self.0.lock().unwrap();
            if self.1 < all.len() + bytes.len() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            all.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn disk(room: usize) -> (Disk, Output) {
        let disk = Disk(Arc::default(), room);
        (disk.clone(), Output::new("part", Box::new(disk)))
    }

    proptest! {
        #[test]
        fn output_writes_numbers_as_display_does(a: i64, b: u128, c: i128, d: u8, e: f64) {
            let (disk, mut out) = disk(1 << 20);
            out.pair(a, b);
            out.pair(c, d);
            out.pair(e, i8::MIN);
            out.finish().unwrap();
            let expected = format!("{a}\t{b}\n{c}\t{d}\n{e}\t-128\n");
            prop_assert_eq!(String::from_utf8(disk.0.lock().unwrap().clone()).unwrap(), expected);
        }

        #[test]
        fn output_sums_up_what_it_wrote_whatever_the_sizes(
            lengths in proptest::collection::vec(prop_oneof![8 => 0..2000usize, 1 => 0..3 * BUFFER_BYTES], 0..12)
        ) {
            let (disk, mut out) = disk(usize::MAX);
            let mut expected = Vec::new();
            for length in &lengths {
                let line = vec![b'x'; *length];
                out.line(&line);
                expected.extend_from_slice(&line);
                expected.push(b'\n');
            }
            let sum = out.finish().unwrap();
            prop_assert_eq!(&*disk.0.lock().unwrap(), &expected);
            let crc32c = crc32c::crc32c(&expected);
            prop_assert_eq!(sum, OutputSum { bytes: expected.len() as u64, records: lengths.len() as u64, crc32c });
        }
    }

    #[test]
    fn output_reports_a_full_disk_at_the_next_check_and_names_the_part() {
        let (_, mut out) = disk(1000);
        out.write(&vec![0; BUFFER_BYTES + 1]);
        let failure = out.check().unwrap_err();
        assert!(matches!(&failure, TaskFailure::Output { path, source }
            if path == Path::new("part") && source.kind() == io::ErrorKind::StorageFull));
    }

    #[test]
    fn output_takes_formatted_text() {
        let (disk, mut out) = disk(1000);
        out.field(format_args!("{}-{}", 1, 2));
        writeln!(out, " and {}", 3).unwrap();
        out.end_record();
        assert_eq!(out.finish().unwrap().records, 1);
        assert_eq!(&*disk.0.lock().unwrap(), b"1-2 and 3\n");
    }
}
