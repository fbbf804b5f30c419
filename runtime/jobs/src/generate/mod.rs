//! `gristmill gen`: inputs that are the same bytes for the same arguments on every machine.
//!
//! A file is a sequence of chunks, and chunk number `i` is a function of the arguments and `i` alone, so any number of
//! threads writes the same file. The generator of chunk `i` of stream `n` is ChaCha8 (the stream cipher with 8 rounds
//! as in `rand_chacha`) keyed by the seed, with stream number `n * 2^56 + i`. All choices are integer arithmetic on its
//! 64-bit outputs. The bytes are guaranteed: a change of them requires a new [`ALGORITHM`].

mod chunks;
mod error;
mod records;
mod tables;
mod text;
mod zipf;

#[cfg(test)]
mod tests;

use crate::size::parse_bytes;
use clap::ValueEnum;
pub(crate) use error::EXPONENT_MAX;
pub use error::GenerateError;
use std::io;
use std::path::{Path, PathBuf};

/// Names the bytes that this version writes; printed with the report.
pub const ALGORITHM: &str = "gristmill-gen-1";

/// Largest vocabulary in words: the tables for drawing them take 16 bytes and the word's text for each.
pub(crate) const WORDS_MAX: u32 = 1 << 24;

/// Kind of data written by `gristmill gen`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Lines of words whose frequencies follow Zipf's law
    Text,
    /// Lines of 100 bytes with a random key of 10 bytes, for sort
    Records,
    /// users.csv and visits.csv, joined by a skewed user id
    Tables,
}

/// Generate input: text, records or tables
#[derive(clap::Args, Clone, Debug)]
pub struct GenerateArgs {
    /// Kind of data
    #[arg(value_enum)]
    pub kind: Kind,
    /// File to write, or for tables a directory
    #[arg(value_name = "DIR_OR_FILE")]
    pub output: PathBuf,
    /// Size: exact for text, rounded down to whole records for records, approximate for tables
    #[arg(long, default_value = "1GiB", value_parser = parse_bytes, value_name = "BYTES")]
    pub size: u64,
    /// Seed of the random numbers; equal seeds give equal bytes
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Number of different words of text
    #[arg(long, default_value_t = 100_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(WORDS_MAX)))]
    pub words: u32,
    /// Skew: the word or user of rank r is drawn with weight 1 / r^EXPONENT; 0 draws all alike
    #[arg(long, default_value_t = 1.0, value_name = "EXPONENT")]
    pub exponent: f64,
    /// Replace existing files
    #[arg(long)]
    pub overwrite: bool,
}

/// Files that were written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GenerateReport {
    /// The files, in the order of writing.
    pub files: Vec<GeneratedFile>,
}

/// One file that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneratedFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Number of its lines, headers included.
    pub lines: u64,
}

/// Writes the files requested by `arguments`. Memory: a few chunks of 1 MiB per thread, and the tables of the Zipf law.
///
/// # Errors
/// See [`GenerateError`].
pub fn run(arguments: &GenerateArgs) -> Result<GenerateReport, GenerateError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    run_with_threads(arguments, threads)
}

fn run_with_threads(arguments: &GenerateArgs, threads: usize) -> Result<GenerateReport, GenerateError> {
    let GenerateArgs { size, seed, exponent, .. } = *arguments;
    if !(0.0..=EXPONENT_MAX).contains(&exponent) {
        return Err(GenerateError::Exponent { exponent });
    }
    let target = |name: &str| GenerateTarget { path: inside(&arguments.output, name), arguments, threads };
    let files = match arguments.kind {
        Kind::Text => {
            let words = text::DrawnWords::new(arguments.words, exponent);
            vec![target("text.txt").write(text::chunk_count(size), |index| words.chunk(seed, index, size))?]
        }
        Kind::Records => {
            let records = records::count(size)?;
            let write = |index| records::chunk(seed, index, records);
            vec![target("records.txt").write(records::chunk_count(records), write)?]
        }
        Kind::Tables => {
            let tables = tables::Tables::new(seed, size, exponent)?;
            std::fs::create_dir_all(&arguments.output)
                .map_err(|source| GenerateError::Write { path: arguments.output.clone(), source })?;
            let users = target("users.csv").write(tables.users_chunks(), |index| tables.users(index))?;
            let visits = target("visits.csv").write(tables.visits_chunks(), |index| tables.visits(index))?;
            vec![users, visits]
        }
    };
    Ok(GenerateReport { files })
}

/// `output` itself, or the file `name` in it if it is a directory.
fn inside(output: &Path, name: &str) -> PathBuf {
    if output.is_dir() { output.join(name) } else { output.to_owned() }
}

/// One file to be written.
struct GenerateTarget<'a> {
    path: PathBuf,
    arguments: &'a GenerateArgs,
    threads: usize,
}

impl GenerateTarget<'_> {
    fn write(
        self,
        chunk_count: u64,
        chunk: impl Fn(u64) -> Vec<u8> + Sync,
    ) -> Result<GeneratedFile, GenerateError> {
        let path = self.path;
        let mut options = std::fs::OpenOptions::new();
        options.write(true);
        if self.arguments.overwrite {
            options.create(true).truncate(true);
        } else {
            options.create_new(true);
        }
        let file = match options.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(GenerateError::Exists { path });
            }
            Err(source) => return Err(GenerateError::Write { path, source }),
        };
        match chunks::write_in_order(file, chunk_count, self.threads, chunk) {
            Ok(written) => Ok(GeneratedFile { path, bytes: written.bytes, lines: written.lines }),
            Err(source) => {
                // An incomplete file would look complete. The first error is the one to report.
                let _ = std::fs::remove_file(&path);
                Err(GenerateError::Write { path, source })
            }
        }
    }
}
