//! Private directory for one test: input files, output directories, temporary files, and programs run in it.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Cluster sizes and numbers of parts that must all give the same result: workers, reduces.
pub const SHAPES: [(u32, u32); 4] = [(1, 1), (3, 1), (1, 4), (3, 4)];

/// Returns a random generator whose seed is printed if the test fails.
pub fn random(seed: u64) -> ChaCha8Rng {
    println!("seed {seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

/// Directory that is removed after the test.
pub struct Stage {
    root: TempDir,
}

impl Stage {
    pub fn new() -> Self {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("temporary")).unwrap();
        Self { root }
    }

    /// Returns the path of a file in the directory. Programs use its name alone.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Returns a command that runs in the directory and puts temporary files there.
    pub fn command(&self, program: &str, arguments: &str) -> Command {
        let mut command = Command::new(program);
        command.args(arguments.split_whitespace()).current_dir(&self.root);
        command.env("TMPDIR", self.path("temporary")).env_remove("GRISTMILL_STATE");
        command
    }

    /// Returns the standard output of a program, which must succeed.
    pub fn print(&self, program: &str, arguments: &str) -> String {
        let done = self.command(program, arguments).output().unwrap();
        let words = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{program} {arguments}: {} {words}", done.status);
        String::from_utf8(done.stdout).unwrap()
    }

    /// Returns the output of `run` of a program on a cluster of this shape. No temporary files may remain.
    pub fn run(&self, program: &str, (workers, reduces): (u32, u32), arguments: &str) -> String {
        // Splits much smaller than the input, so that there are several maps.
        let shape = format!("--workers {workers} --reduces {reduces} --split-size 1KiB --quiet --no-sync");
        let printed = self.print(program, &format!("run {shape} {arguments}"));
        assert_eq!(names(&self.path("temporary")), [""; 0], "left behind");
        printed
    }

    /// Returns the parts in an output directory, in order.
    pub fn parts(&self, directory: &str) -> Vec<String> {
        let directory = self.path(directory);
        let parts = names(&directory).into_iter().filter(|name| name.starts_with("part-"));
        parts.map(|name| fs::read_to_string(directory.join(name)).unwrap()).collect()
    }
}

/// Returns the names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// Returns the lines of all parts, sorted. Each part must be sorted by the text before the first tab.
pub fn sorted_lines(parts: &[String]) -> Vec<&str> {
    for part in parts {
        let keys = part.lines().map(|line| line.split('\t').next());
        assert!(keys.is_sorted(), "a part is not sorted:\n{part}");
    }
    let mut lines: Vec<&str> = parts.iter().flat_map(|part| part.lines()).collect();
    lines.sort_unstable();
    lines
}
