//! Inputs: generated ones, the same for the same seed, and real ones that may be stored next to the
//! repository.
//!
//! The program's own `gen` is not used here, since it is under test itself.

use super::say_skipped;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::path::{Path, PathBuf};

/// Number of seeds that a random comparison tries: `GRISTMILL_ROUNDS`, or one.
pub fn rounds() -> u64 {
    std::env::var("GRISTMILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

/// Random numbers of a seed, which is printed so that a failure can be repeated.
pub struct Random(ChaCha8Rng);

impl Random {
    /// Returns the numbers of this seed.
    pub fn seeded(seed: u64) -> Self {
        eprintln!("seed {seed}");
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    /// Returns a random element.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Returns this many random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// Returns about this many bytes of lines of words from a small vocabulary, separated by any of `spaces`.
    pub fn text(&mut self, bytes: usize, spaces: &[&str]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes + 16);
        while out.len() < bytes {
            // The product of two draws makes small numbers, and so their words, far more frequent.
            let rank = self.below(40) * self.below(40);
            out.extend_from_slice(format!("Word{}", to_letters(rank)).as_bytes());
            out.extend_from_slice(self.pick(spaces).as_bytes());
        }
        out
    }
}

fn to_letters(mut number: usize) -> String {
    let mut letters = String::new();
    loop {
        letters.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return letters;
        }
    }
}

/// Returns a directory of real data. If it does not exist, reports that `what` is skipped.
pub fn shared(directory: &str, what: &str) -> Option<PathBuf> {
    let root = std::env::var_os("GRISTMILL_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = root.join("data").join(directory);
    match path.canonicalize() {
        Ok(path) => Some(path),
        Err(error) => {
            say_skipped(what, &format!("no real data: {}: {error}", path.display()));
            None
        }
    }
}

/// Returns true if a tool of the system that serves as an oracle is installed. If not, reports that `what` is
/// skipped.
pub fn tool(name: &str, what: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    if !found {
        say_skipped(what, &format!("needs the program {name}; scripts/test.sh installs it"));
    }
    found
}

/// Returns the files of a directory in the byte order of their names.
pub fn files_of(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}
