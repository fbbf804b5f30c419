//! Files that the simulation's commands read and write: whole texts of limited size, compressed or not.

use flate2::read::MultiGzDecoder;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Bytes of a text after decompression: a day of a large cluster's jobs takes a hundredth of it.
const TEXT_BYTES_MAX: u64 = 2 << 30;

/// An input that cannot be used, exit code 4.
#[derive(Debug)]
pub struct InputFileError {
    path: PathBuf,
    words: String,
}

impl InputFileError {
    /// What is wrong with this file, in words.
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

/// The text of a file, `-` for standard input; a name that ends in `.gz` is decompressed.
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

/// Writes a file whole or not at all, in the place of one that may be there.
///
/// # Errors
/// What the file system says.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(name);
    let result = write_and_rename(&part, path, write);
    if result.is_err() {
        // Whatever went wrong before is what the user should hear of.
        let _ = std::fs::remove_file(&part);
    }
    result.map_err(|error| error.context(format!("could not write {}", path.display())))
}

fn write_and_rename(
    part: &Path,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut file = io::BufWriter::new(File::create(part)?);
    write(&mut file)?;
    file.flush()?;
    drop(file);
    std::fs::rename(part, path)?;
    Ok(())
}
