//! Files that the simulation's commands read and write: whole texts of limited size, compressed or not.

use flate2::read::MultiGzDecoder;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use gristmill_worker::whole_file::{self, Promise};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Maximum bytes of a text after decompression: a day of a large cluster's jobs takes a hundredth of it.
const TEXT_BYTES_MAX: u64 = 2 << 30;

/// An input that cannot be used, exit code 4.
#[derive(Debug)]
pub struct InputFileError {
    path: PathBuf,
    words: String,
}

impl ExitsWith for InputFileError {
    fn exit(&self) -> Exit {
        Exit::with(exit::INPUT)
    }
}

impl InputFileError {
    /// Reason, in words.
    pub fn new(path: &Path, words: impl fmt::Display) -> Self {
        InputFileError { path: path.to_owned(), words: words.to_string() }
    }
}

impl fmt::Display for InputFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.words)
    }
}

impl std::error::Error for InputFileError {}

/// Returns the text of a file, `-` for standard input; a name that ends in `.gz` is decompressed.
///
/// # Errors
/// A file that cannot be read, is too large, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, InputFileError> {
    let error = |error: &dyn fmt::Display| InputFileError::new(path, format!("could not be read: {error}"));
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).map_err(|source| error(&source))?),
    };
    let source: Box<dyn Read> = match path.extension().is_some_and(|ending| ending == "gz") {
        true => Box::new(MultiGzDecoder::new(source)),
        false => source,
    };
    let mut bytes = Vec::new();
    let read = source.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|source| error(&source))?;
    if TEXT_BYTES_MAX < read as u64 {
        return Err(InputFileError::new(path, format!("it has more than {TEXT_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|source| error(&source))
}

/// Writes a file completely or not at all, in place of an existing one.
///
/// # Errors
/// An error of the file system.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let written = whole_file::replace(path, Promise::Plain, |file| {
        let mut file = io::BufWriter::new(file);
        write(&mut file)?;
        Ok::<_, anyhow::Error>(file.flush()?)
    });
    written.map_err(|error| error.context(format!("could not write {}", path.display())))
}
