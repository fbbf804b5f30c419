//! Writes one part: a buffer, a count, a checksum and optional compression around a file.
//!
//! Write calls never fail. The first failure is stored and ends the task at the next check. Not here: the
//! location of parts and their publication (`commit`).

mod field;
mod layout;
mod sink;
mod stored;
mod table;

use crate::attempt::{
    Counters, NamedCounts, PartDone, Progress, TaskError, TaskFailure, TaskResult, TaskStats,
    counting_methods, refuse_record,
};
use crate::commit::{NAMED_OUTPUTS_MAX, is_output_name};
use crate::directory::PlainName;
use crate::input::Record;
use crate::protocol::NamedPart;
use layout::is_no_row;
use serde::Serialize;
use sink::Sink;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub use crate::part_format::PartFormat;
pub use field::Field;
pub use layout::{ColumnKind, NoRow, OutputColumn, RowLayout, RowSeparator};
pub use sink::open_part;
pub use stored::Stored;
pub use table::{OpenTable, TableSink, plug_in_tables};

/// Bytes buffered before they are written. Small enough that they are still in the cache for the checksum.
const BUFFER_BYTES: usize = 256 << 10;

/// Output to which a reducer, or the mapper of a map-only job, writes its part.
pub struct Output {
    sink: Sink,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Number of bytes passed to the sink, before compression.
    written: u64,
    records: u64,
    /// Checksum of those bytes.
    crc32c: u32,
    failure: Option<io::Error>,
    /// Buffer that is reused for its memory.
    json: Vec<u8>,
    counts: NamedCounts,
    progress: Option<Arc<Progress>>,
    format: PartFormat,
    /// Named outputs that have been written to.
    named: BTreeMap<PlainName, Output>,
    open_named: Option<OpenNamed>,
}

/// Opens the file of a named output: its path and a writer.
pub(crate) type OpenNamed = Box<dyn FnMut(&PlainName) -> (PathBuf, io::Result<Box<dyn Write + Send>>) + Send>;

/// Size and checksum of a finished part in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct OutputSum {
    pub bytes: u64,
    /// Number of records, as counted by [`Output::line`], [`Output::pair`] and [`Output::record`].
    pub records: u64,
    /// CRC-32C of all bytes.
    pub crc32c: u32,
}

impl Output {
    /// Creates the file, or truncates it.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self::new(path, Box::new(File::create(path)?)))
    }

    /// Creates an output to `writer`. `path` is its name in messages.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, writer: Box<dyn Write + Send>) -> Self {
        Self::formatted(path, writer, PartFormat::default(), &RowLayout::default())
    }

    /// Does the same as [`Output::new`], with a format for the bytes written to `writer`. `layout` holds
    /// the columns if that is a table. The same bytes produce the same file.
    #[must_use]
    pub fn formatted(
        path: impl Into<PathBuf>,
        writer: Box<dyn Write + Send>,
        format: PartFormat,
        layout: &RowLayout,
    ) -> Self {
        Self {
            sink: Sink::new(writer, format, layout),
            path: path.into(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            written: 0,
            records: 0,
            crc32c: 0,
            failure: None,
            json: Vec::new(),
            counts: NamedCounts::default(),
            progress: None,
            format,
            named: BTreeMap::new(),
            open_named: None,
        }
    }

    /// Reports bytes and records to `progress`, and stops when it is cancelled.
    pub(crate) fn watch(&mut self, progress: Arc<Progress>) {
        self.progress = Some(progress);
    }

    /// Opens named outputs with this function. Without it their bytes are discarded.
    pub(crate) fn open_named_with(&mut self, open: OpenNamed) {
        self.open_named = Some(open);
    }

    /// Passes on the counts since the last call.
    pub(crate) fn move_counts(&mut self, counters: &Counters) {
        self.counts.move_to(counters);
        self.named.values_mut().for_each(|output| output.counts.move_to(counters));
    }

    /// Returns another output of the same task, created at its first use. Its parts are in a directory of
    /// this name in the output directory, `errors/part-00000` next to `part-00000`. They are published
    /// together with the part of this task, or not at all.
    ///
    /// ```
    /// # use gristmill_worker::prelude::*;
    /// let plan = JobPlan::map_only_each(Input::lines(["numbers"]), |line, out| {
    ///     match line.text().parse::<u64>() {
    ///         Ok(number) => out.line(number.to_string().as_bytes()),
    ///         Err(_) => out.named("errors")?.line(&line),
    ///     }
    ///     Ok(())
    /// });
    /// # let written = gristmill_worker::testing::Trial::from_plan(plan).file("numbers", "7\nx\n").run().unwrap();
    /// # assert_eq!((written.lines(), written.named_lines("errors")), (vec!["7".to_owned()], vec!["x".to_owned()]));
    /// ```
    ///
    /// # Errors
    /// A name other than 1 to 64 of letters, digits, `-` and `_` with a letter or digit first. A name that
    /// starts with `part-` or `arriving-`, or more than 16 names in a task.
    pub fn named(&mut self, name: &str) -> TaskResult<&mut Output> {
        let wrong = |why: &str| TaskError::config(format!("no output can be called {name:?}: {why}"));
        let name: PlainName =
            name.parse().map_err(|error: crate::directory::NotPlain| wrong(&error.to_string()))?;
        if !self.named.contains_key(&name) {
            if !is_output_name(&name) {
                return Err(wrong("a name begins with a letter or a digit, and not with part- or arriving-"));
            }
            if NAMED_OUTPUTS_MAX <= self.named.len() {
                return Err(wrong(&format!("this task has {NAMED_OUTPUTS_MAX} already, which is the most")));
            }
            let opened = match &mut self.open_named {
                Some(open) => open(&name),
                None => (self.path.clone(), Ok(Box::new(io::sink()) as Box<dyn Write + Send>)),
            };
            let (path, writer) = opened;
            let (writer, failure) = match writer {
                Ok(writer) => (writer, None),
                // It is a fault of the disk and not of user code, which receives the error at the next check.
                Err(error) => (Box::new(io::sink()) as Box<dyn Write + Send>, Some(error)),
            };
            let output =
                Self { failure, ..Self::formatted(path, writer, self.format, &RowLayout::default()) };
            self.named.insert(name.clone(), output);
        }
        self.named.get_mut(&name).ok_or_else(|| wrong("it was made just now"))
    }

    counting_methods!();

    /// True if the task is cancelled. Only code that runs long without reading or writing needs to call this.
    ///
    /// A reduce may be suspended here for any length of time, so hold no lock during the call. If the
    /// worker's slots are slower than its machine, this waits too. Code that measures time must count its
    /// own work, not the time between two calls.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.rest())
    }

    /// Does the same as [`Emitter::refuse`](crate::collect::Emitter::refuse), for maps without a reduce.
    /// No output of the record may have been written.
    ///
    /// # Errors
    /// See there.
    pub fn refuse(&mut self, record: Record<'_>, error: TaskError) -> TaskResult {
        let bad = self.progress.as_ref().map(|progress| progress.bad_records());
        refuse_record(&bad.unwrap_or_default(), record, error)
    }

    /// Writes bytes unchanged. Counts no record.
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

    /// Writes bytes unchanged and counts them as one record.
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

    /// Writes a value as one line of JSON and counts it as one record. A later job reads it back
    /// unchanged with [`Record::json`], floats to the last bit. Infinite floats and NaN become `null`,
    /// which is not read back as a float.
    ///
    /// # Errors
    /// A value that cannot be written as JSON, such as a map whose keys are not text.
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

    /// Writes one field without separators. Counts no record.
    #[inline]
    pub fn field(&mut self, field: impl Field) {
        field.write_to(self);
    }

    /// Counts one record, for callers that write it in pieces.
    #[inline]
    pub fn end_record(&mut self) {
        self.records += 1;
    }

    /// Returns the number of bytes written so far, before compression.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Returns the number of records counted so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Reports a write failure since the last check, or that the task is cancelled.
    pub(crate) fn check(&mut self) -> Result<(), TaskFailure> {
        if let Some(source) = self.failure.take() {
            // An invalid row is a fault of the job, not of the disk.
            return Err(match is_no_row(&source) {
                true => TaskError::config(source.to_string()).into(),
                false => TaskFailure::Output { path: self.path.clone(), source },
            });
        }
        for named in self.named.values_mut() {
            named.check()?;
        }
        if let Some(progress) = &self.progress {
            progress.records_out.store(self.records, Relaxed);
            progress.bytes_out.store(self.bytes(), Relaxed);
            progress.check()?;
        }
        Ok(())
    }

    /// Ends the part, and those of named outputs. Does not sync.
    pub(crate) fn finish_part(mut self, stats: TaskStats) -> Result<PartDone, TaskFailure> {
        let OutputSum { bytes, records, crc32c } = self.end()?;
        let mut named = Vec::with_capacity(self.named.len());
        for (output, mut part) in std::mem::take(&mut self.named) {
            let OutputSum { bytes, records, crc32c } = part.end()?;
            named.push(NamedPart { output, bytes, records, crc32c });
        }
        Ok(PartDone { bytes, records, crc32c, named, stats })
    }

    /// Writes the remaining bytes, and ends the part. Does not sync.
    #[cfg(test)]
    pub(crate) fn finish(mut self) -> Result<OutputSum, TaskFailure> {
        self.end()
    }

    /// Writes all remaining bytes, and returns the size and checksum of the file. Nothing may be written
    /// afterwards.
    ///
    /// # Errors
    /// An error of the file system, and [`TaskFailure::Cancelled`].
    pub(crate) fn end(&mut self) -> Result<OutputSum, TaskFailure> {
        self.flush();
        if let Err(source) = self.sink.finish() {
            self.failure.get_or_insert(source);
        }
        self.check()?;
        let (bytes, crc32c) = self.sink.stored().unwrap_or((self.written, self.crc32c));
        if let Some(progress) = &self.progress {
            progress.bytes_out.store(bytes, Relaxed);
        }
        Ok(OutputSum { bytes, records: self.records, crc32c })
    }

    /// Counts records that were written as bytes.
    pub fn count_records(&mut self, records: u64) {
        self.records += records;
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
        // A slow disk is not a fault of user code.
        let _engine = self.progress.as_ref().map(|progress| progress.engine());
        if self.failure.is_none()
            && let Err(source) = self.sink.write_all(bytes)
        {
            self.failure = Some(source);
        }
    }
}

/// Supports `write!` with bytes.
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
    use crate::input::Compression;
    use proptest::prelude::*;
    use std::io::Read;
    use std::sync::Mutex;

    /// Writer with limited room, whose bytes are accessible.
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
    fn compressed_output_holds_what_was_written_in_the_same_bytes_however_it_came() {
        let words =
            (0..200_000_u64).map(|n| format!("{} ", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (n % 50)));
        let text: String = words.collect();
        for compression in [Compression::Gzip, Compression::Zstd, Compression::Bzip2] {
            let written = |step: usize| {
                let disk = Disk(Arc::default(), usize::MAX);
                let mut out = Output::formatted(
                    "part",
                    Box::new(disk.clone()),
                    compression.into(),
                    &RowLayout::default(),
                );
                text.as_bytes().chunks(step).for_each(|chunk| out.record(chunk));
                let sum = out.finish().unwrap();
                let stored = std::mem::take(&mut *disk.0.lock().unwrap());
                assert_eq!((sum.bytes, sum.crc32c), (stored.len() as u64, crc32c::crc32c(&stored)));
                assert_eq!(sum.records, text.len().div_ceil(step) as u64);
                stored
            };
            let whole = written(usize::MAX);
            assert!(whole.len() < text.len());
            for step in [997, 100_003, BUFFER_BYTES + 1] {
                assert!(written(step) == whole, "{compression:?} in steps of {step}");
            }
            let mut unpacked = Vec::new();
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(format!("part{}", compression.suffix()));
            std::fs::write(&path, &whole).unwrap();
            open_part(&path).unwrap().read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == text.as_bytes(), "{compression:?}");
        }
    }

    #[test]
    fn compressed_output_of_nothing_is_a_file_of_its_format() {
        for compression in [Compression::Gzip, Compression::Zstd, Compression::Bzip2] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(format!("part{}", compression.suffix()));
            let out = Output::formatted(
                &path,
                Box::new(File::create(&path).unwrap()),
                compression.into(),
                &RowLayout::default(),
            );
            assert!(0 < out.finish().unwrap().bytes);
            assert_eq!(open_part(&path).unwrap().read_to_end(&mut Vec::new()).unwrap(), 0);
        }
    }

    #[test]
    fn files_of_joinable_formats_one_after_another_are_read_as_one() {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd, Compression::Bzip2] {
            let format = PartFormat::from(compression);
            assert!(format.is_joinable());
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(format!("part{}", format.suffix()));
            let (mut file, mut expected) = (Vec::new(), Vec::new());
            // A rest may be empty, also the last.
            for text in ["front\n".repeat(100_000), String::new(), "rest\n".to_owned(), String::new()] {
                let disk = Disk(Arc::default(), usize::MAX);
                let mut out =
                    Output::formatted("part", Box::new(disk.clone()), format, &RowLayout::default());
                out.record(text.as_bytes());
                out.finish().unwrap();
                file.extend_from_slice(&disk.0.lock().unwrap());
                expected.extend_from_slice(text.as_bytes());
                std::fs::write(&path, &file).unwrap();
                let mut read = Vec::new();
                open_part(&path).unwrap().read_to_end(&mut read).unwrap();
                assert!(read == expected, "{compression:?}");
            }
        }
        for kind in [crate::input::TableKind::Parquet, crate::input::TableKind::Arrow] {
            assert!(!PartFormat::Table(kind).is_joinable());
        }
    }

    #[test]
    fn compressed_output_reports_a_full_disk_when_it_ends() {
        for compression in [Compression::Gzip, Compression::Zstd, Compression::Bzip2] {
            let disk = Disk(Arc::default(), 5);
            let mut out =
                Output::formatted("part", Box::new(disk), compression.into(), &RowLayout::default());
            out.line(b"some");
            let failure = out.end().unwrap_err();
            assert!(
                matches!(&failure, TaskFailure::Output { source, .. }
                if source.kind() == io::ErrorKind::StorageFull),
                "{failure}"
            );
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
