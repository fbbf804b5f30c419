//! A file of lines with checksums, with which a recovering master distinguishes the lines it has written from the
//! effects of a crash or of disk damage.
//!
//! A line consists of eight hexadecimal digits (CRC-32C of the rest without its line break), a space, a letter for the
//! kind of line, a space, and JSON. A crash may leave an incomplete last line, which is cut off. Any other line with a
//! wrong checksum is damage, which is reported with its place and not repaired.

use super::LINE_BYTES_MAX;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Bytes before the JSON of a line: the checksum, the letter and two spaces.
const HEAD_BYTES: usize = 11;

/// Bytes of the checksum and the space behind it.
const SUM_BYTES: usize = 9;

/// A buffer larger than this is freed.
const LINES_KEPT_BYTES: usize = 1 << 20;

/// Appends lines, which are buffered until they are written to the operating system.
///
/// Invariant: the buffer behind `given` is exactly what the file lacks, also after errors.
#[derive(Debug)]
pub(crate) struct CheckedWriter<W: Write = File> {
    file: W,
    waiting: Vec<u8>,
    /// Number of bytes of the buffer already written.
    given: usize,
    /// Bytes of all lines, including those before this writer.
    length: u64,
}

impl CheckedWriter {
    /// Creates a file, 0600.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self::resume(File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?, 0))
    }

    /// Continues behind the first `length` bytes; the rest is cut off.
    pub(crate) fn go_on(path: &Path, length: u64) -> io::Result<Self> {
        let mut file = File::options().write(true).open(path)?;
        file.set_len(length)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self::resume(file, length))
    }

    /// True if the file at this path is the one being written, or if that cannot be determined.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        match (fs::metadata(path), self.file.metadata()) {
            (Ok(there), Ok(own)) => (there.dev(), there.ino()) == (own.dev(), own.ino()),
            (Err(error), _) => error.kind() != io::ErrorKind::NotFound,
            (Ok(_), Err(_)) => true,
        }
    }

    /// Another handle of the file.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl<W: Write> CheckedWriter<W> {
    /// Continues at the position of `file`, behind lines of this many bytes.
    pub(crate) fn resume(file: W, length: u64) -> Self {
        Self { file, waiting: Vec::new(), given: 0, length }
    }

    /// Bytes of all lines.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Number of bytes not yet written to the operating system.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len() - self.given
    }

    /// Appends a line.
    ///
    /// # Errors
    /// A value that cannot be written as JSON, or is too large. Nothing has changed then.
    pub(crate) fn line(&mut self, letter: u8, value: &impl Serialize) -> io::Result<()> {
        let start = self.waiting.len();
        self.waiting.extend_from_slice(&[b' '; SUM_BYTES]);
        self.waiting.extend_from_slice(&[letter, b' ']);
        let written = serde_json::to_writer(&mut self.waiting, value).map_err(io::Error::from);
        let length = self.waiting.len() - start;
        let fits = written.and_then(|()| match length as u64 <= LINE_BYTES_MAX {
            true => Ok(()),
            false => {
                let words = format!("a line would have {length} bytes; {LINE_BYTES_MAX} are allowed");
                Err(io::Error::new(io::ErrorKind::FileTooLarge, words))
            }
        });
        if let Err(error) = fits {
            self.waiting.truncate(start);
            return Err(error);
        }
        let sum = crc32c::crc32c(&self.waiting[start + SUM_BYTES..]);
        write!(&mut self.waiting[start..start + SUM_BYTES - 1], "{sum:08x}")?;
        self.waiting.push(b'\n');
        self.length += (length + 1) as u64;
        Ok(())
    }

    /// Writes the appended lines to the operating system, so that they survive this process.
    ///
    /// # Errors
    /// Errors of the file system; the next call continues where this one stopped.
    pub(crate) fn write_out(&mut self) -> io::Result<()> {
        while self.given < self.waiting.len() {
            match self.file.write(&self.waiting[self.given..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.given += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.waiting.clear();
        self.waiting.shrink_to(LINES_KEPT_BYTES);
        self.given = 0;
        Ok(())
    }
}

/// A line with a valid checksum.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CheckedLine<'a> {
    /// Kind of the JSON.
    pub(crate) letter: u8,
    /// The JSON.
    pub(crate) json: &'a [u8],
}

/// Error of reading a file.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum CheckedReadError {
    /// The file system failed.
    #[error("could not read on at byte {offset}")]
    Io {
        offset: u64,
        #[source]
        source: io::Error,
    },
    /// A line is damaged.
    #[error("the line at byte {offset} is damaged: {what}")]
    Damaged {
        offset: u64,
        /// Description of the damage.
        what: &'static str,
    },
}

/// Reads lines.
#[derive(Debug)]
pub(crate) struct CheckedReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// Offset of the next line in bytes; all lines before it are intact.
    offset: u64,
    /// Bytes of an incomplete last line.
    torn: u64,
}

impl CheckedReader<BufReader<File>> {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::new(BufReader::new(File::open(path)?)))
    }
}

impl<R: BufRead> CheckedReader<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), offset: 0, torn: 0 }
    }

    /// Bytes of whole lines read so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of an incomplete last line; known after the end.
    pub(crate) fn torn(&self) -> u64 {
        self.torn
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<CheckedLine<'_>>, CheckedReadError> {
        let offset = self.offset;
        let damaged = |what| CheckedReadError::Damaged { offset, what };
        self.buffer.clear();
        let read = (&mut self.source).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut self.buffer);
        let read = read.map_err(|source| CheckedReadError::Io { offset, source })? as u64;
        if LINE_BYTES_MAX < read {
            return Err(damaged("it is longer than any line"));
        }
        if self.buffer.last() != Some(&b'\n') {
            self.torn = read;
            return Ok(None);
        }
        self.buffer.pop();
        self.offset += read;
        let line = &self.buffer[..];
        if line.len() < HEAD_BYTES || line[8] != b' ' || line[10] != b' ' {
            return Err(damaged("it does not begin as a line does"));
        }
        let sum = std::str::from_utf8(&line[..8]).ok().and_then(|sum| u32::from_str_radix(sum, 16).ok());
        if sum != Some(crc32c::crc32c(&line[9..])) {
            return Err(damaged("its checksum is another"));
        }
        Ok(Some(CheckedLine { letter: line[9], json: &line[HEAD_BYTES..] }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these numbers, a line each.
    fn file_of(numbers: &[u32]) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lines");
        let mut writer = CheckedWriter::create(&path).unwrap();
        numbers.iter().for_each(|number| writer.line(b'n', number).unwrap());
        writer.write_out().unwrap();
        std::fs::read(&path).unwrap()
    }

    /// The numbers read before the end, the end of the whole lines, and the bytes of the incomplete line.
    fn read(bytes: &[u8]) -> Result<(Vec<u32>, u64, u64), CheckedReadError> {
        let mut reader = CheckedReader::new(bytes);
        let mut numbers = Vec::new();
        while let Some(line) = reader.next()? {
            assert_eq!(line.letter, b'n');
            numbers.push(serde_json::from_slice(line.json).unwrap());
        }
        Ok((numbers, reader.offset(), reader.torn()))
    }

    #[test]
    fn last_line_is_left_out_wherever_it_was_cut_off() {
        let (whole, shorter) = (file_of(&[1, 2, 3]), file_of(&[1, 2]));
        for length in shorter.len()..whole.len() {
            let (numbers, offset, torn) = read(&whole[..length]).unwrap();
            assert_eq!(numbers, [1, 2], "cut at {length}");
            assert_eq!((offset, torn), (shorter.len() as u64, (length - shorter.len()) as u64));
        }
        assert_eq!(read(&whole).unwrap().0, [1, 2, 3]);
    }

    #[test]
    fn any_other_byte_that_is_changed_is_damage_and_its_line_is_named() {
        let whole = file_of(&[1, 2, 3]);
        let line = whole.len() / 3;
        for at in 0..whole.len() - 1 {
            let mut changed = whole.clone();
            changed[at] ^= 0x01;
            let Err(CheckedReadError::Damaged { offset, .. }) = read(&changed) else {
                panic!("byte {at} was changed, and it was not noticed")
            };
            assert_eq!(offset as usize / line, at / line, "byte {at}");
        }
    }

    /// Writer that accepts a few bytes at a time, and sometimes none.
    struct Full(Vec<u8>, u32);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(3) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let some = bytes.len().min(7);
            self.0.extend_from_slice(&bytes[..some]);
            Ok(some)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_whole_however_often_there_is_no_room_for_the_rest() {
        let mut writer = CheckedWriter::resume(Full(Vec::new(), 0), 0);
        let mut failures = 0;
        for number in [1, 2, 3] {
            writer.line(b'n', &number).unwrap();
            failures += u32::from(writer.write_out().is_err());
        }
        while writer.write_out().is_err() {
            failures += 1;
        }
        assert_eq!(failures, 2, "there was room all the time");
        assert_eq!(writer.file.0, file_of(&[1, 2, 3]));
    }

    #[test]
    fn what_is_written_on_follows_the_last_whole_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lines");
        let whole = file_of(&[1, 2]);
        std::fs::write(&path, [&whole[..], b"0123 tor"].concat()).unwrap();
        let mut writer = CheckedWriter::go_on(&path, whole.len() as u64).unwrap();
        writer.line(b'n', &3).unwrap();
        writer.write_out().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), file_of(&[1, 2, 3]));
    }
}
