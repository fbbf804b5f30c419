//! Inputs: generated ones, the same for the same seed, and the real ones that may lie beside the repository.
//!
//! Deliberately not here: the program's own `gen`, which is under test itself.

use super::say_skipped;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::path::{Path, PathBuf};

/// How many seeds a random comparison tries: `GRISTMILL_ROUNDS`, or one.
pub fn rounds() -> u64 {
    std::env::var("GRISTMILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

/// Random numbers of a seed, which is printed so that a failure can be repeated.
pub struct Random(ChaCha8Rng);

impl Random {
    /// The numbers of this seed.
    pub fn seeded(seed: u64) -> Self {
        eprintln!("seed {seed}");
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// This many bytes of any value.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// Lines of words of a small vocabulary, separated by any of `spaces`; about this many bytes.
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

/// A folder of real data, if there is one; if not, says that `what` is skipped.
pub fn shared(folder: &str, what: &str) -> Option<PathBuf> {
    let root = std::env::var_os("GRISTMILL_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = root.join("data").join(folder);
    match path.canonicalize() {
        Ok(path) => Some(path),
        Err(error) => {
            say_skipped(what, &format!("no real data: {}: {error}", path.display()));
            None
        }
    }
}

/// A tool of the system that serves as an oracle, if it is installed; if not, says that `what` is skipped.
pub fn tool(name: &str, what: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if !found {
        say_skipped(what, &format!("needs the program {name}; scripts/test.sh installs it"));
    }
    found
}

/// The files of a folder in the byte order of their names.
pub fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}
