//! Paths of programs, data and outputs. Commands name them by variables, so that archives contain no path.

use anyhow::{Context, bail};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Number of bytes of an input that are read at once when it is warmed.
const WARM_BYTES: usize = 1 << 20;

/// Variables of commands. A command is text such as `$DATA/users.csv`.
#[derive(Clone, Debug)]
pub struct Places {
    /// Name with `$`, path, description. Longer names come first, so that none is matched by its prefix.
    variables: Vec<(&'static str, PathBuf, &'static str)>,
}

/// Directories that users may choose.
#[derive(Clone, Debug)]
pub struct Roots {
    /// Directory for programs made for measuring, outputs and spills.
    pub home: PathBuf,
    /// Directory of inputs.
    pub data: PathBuf,
    /// Directory of scripts and programs of other systems.
    pub peers: PathBuf,
    /// Path of the Gristmill program.
    pub program: PathBuf,
    /// Path of the program with jobs that are only for measuring.
    pub jobs: PathBuf,
}

impl Places {
    /// Builds the paths below these roots. They need not exist.
    pub fn new(roots: &Roots) -> Self {
        let home = &roots.home;
        let mut variables = vec![
            ("$GRISTMILL", roots.program.clone(), "our program"),
            ("$JOBS", roots.jobs.clone(), "our program `gristmill-bench-jobs`, with jobs made for measuring"),
            ("$DATA", roots.data.clone(), "inputs"),
            ("$MADE", home.join("made"), "inputs made for one measurement and removed after it"),
            ("$OUT", home.join("out"), "output, emptied before each run"),
            ("$SPILL", home.join("spill"), "temporary directory of every command (TMPDIR)"),
            ("$PEERS", roots.peers.clone(), "other systems' jobs"),
            ("$LIMIT", home.join("limit/target/release/limit"), "the limit programs"),
            ("$RENOIR", home.join("renoir/target/release/renoir-wc"), "the word counts on Renoir"),
            ("$PYTHON", home.join("venv/a/bin/python"), "Python with DuckDB and Polars"),
            ("$RG", home.join("bin/rg"), "ripgrep"),
        ];
        variables.sort_by_key(|(name, _, _)| std::cmp::Reverse(name.len()));
        Self { variables }
    }

    /// Returns the path of a variable.
    ///
    /// # Panics
    /// The name is not in the list above.
    pub fn path(&self, name: &str) -> &Path {
        let found = self.variables.iter().find(|(known, _, _)| *known == name);
        &found.unwrap_or_else(|| panic!("there is no variable {name}")).1
    }

    /// Returns variables and their descriptions, by name.
    pub fn legend(&self) -> Vec<(&'static str, &'static str)> {
        let mut legend: Vec<_> = self.variables.iter().map(|(name, _, what)| (*name, *what)).collect();
        legend.sort_unstable();
        legend
    }

    /// Replaces variables in a text by paths.
    pub fn expand(&self, text: &str) -> String {
        self.variables
            .iter()
            .fold(text.to_owned(), |text, (name, path, _)| text.replace(name, &path.to_string_lossy()))
    }

    /// Replaces paths in a text by variables, so that it can be archived.
    pub fn hide(&self, text: &str) -> String {
        let mut known: Vec<_> =
            self.variables.iter().map(|(name, path, _)| (path.to_string_lossy(), *name)).collect();
        // Longer paths first, so that a directory does not hide a path below it.
        known.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        known.iter().fold(text.to_owned(), |text, (path, name)| text.replace(&**path, name))
    }

    /// Returns the first program or file that a command names and that does not exist.
    pub fn missing(&self, command: &str) -> Option<&'static str> {
        const MADE_BY_US: [&str; 3] = ["$OUT", "$SPILL", "$MADE"];
        let named = self.variables.iter().filter(|(name, _, _)| command.contains(name));
        named
            .filter(|(name, path, _)| !MADE_BY_US.contains(name) && !path.exists())
            .map(|(name, ..)| *name)
            .next()
    }

    /// Creates an empty output directory and temporary directory, and waits until the disk has written
    /// all data.
    ///
    /// # Errors
    /// Directories that cannot be emptied.
    pub fn clean(&self) -> anyhow::Result<()> {
        for name in ["$OUT", "$SPILL"] {
            let directory = self.path(name);
            empty(directory).with_context(|| format!("could not empty {}", directory.display()))?;
        }
        rustix::fs::sync();
        Ok(())
    }

    /// Creates an empty directory for generated inputs.
    ///
    /// # Errors
    /// A directory that cannot be emptied.
    pub fn clean_made(&self) -> anyhow::Result<()> {
        let directory = self.path("$MADE");
        empty(directory).with_context(|| format!("could not empty {}", directory.display()))
    }
}

fn empty(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(directory)
}

/// Reads files, including those in directories, into the page cache.
///
/// # Errors
/// A file that cannot be read.
pub fn warm(files: &[PathBuf]) -> anyhow::Result<()> {
    let mut buffer = vec![0; WARM_BYTES];
    for path in files {
        if path.is_dir() {
            let entries = fs::read_dir(path).with_context(|| format!("could not list {}", path.display()))?;
            let within: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
            warm(&within.with_context(|| format!("could not list {}", path.display()))?)?;
            continue;
        }
        let mut file = File::open(path).with_context(|| format!("could not open {}", path.display()))?;
        while 0 < file.read(&mut buffer).with_context(|| format!("could not read {}", path.display()))? {}
    }
    Ok(())
}

/// Returns a lock that prevents a second, concurrent measurement. It is held until the file is dropped.
///
/// # Errors
/// Another measurement is running.
pub fn lock(home: &Path) -> anyhow::Result<File> {
    fs::create_dir_all(home).with_context(|| format!("could not make {}", home.display()))?;
    let file = File::create(home.join("lock"))?;
    if rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        bail!("another measurement is running in {}", home.display());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn places() -> Places {
        let [home, data, peers, program, jobs] =
            ["/home", "/data", "/peers", "/gristmill", "/jobs"].map(PathBuf::from);
        Places::new(&Roots { home, data, peers, program, jobs })
    }

    #[test]
    fn expand_puts_paths_in_the_place_of_variables() {
        let text = "$LIMIT sort \"$DATA/tera-1g.txt\" $OUT";
        assert_eq!(
            places().expand(text),
            "/home/limit/target/release/limit sort \"/data/tera-1g.txt\" /home/out"
        );
    }

    #[test]
    fn hide_puts_variables_in_the_place_of_paths() {
        assert_eq!(
            places().hide("no space in /home/out/part-0, read /data"),
            "no space in $OUT/part-0, read $DATA"
        );
    }

    #[test]
    fn missing_names_what_a_command_needs_and_is_not_there() {
        assert_eq!(places().missing("$LIMIT sort $OUT"), Some("$LIMIT"));
        assert_eq!(places().missing("sort -o $OUT/part-0"), None);
    }

    #[test]
    fn clean_leaves_empty_directories() {
        let home = tempfile::tempdir().unwrap();
        let root = || home.path().to_path_buf();
        let roots = Roots { home: root(), data: root(), peers: root(), program: root(), jobs: root() };
        let places = Places::new(&roots);
        fs::create_dir_all(home.path().join("out/x")).unwrap();
        places.clean().unwrap();
        assert_eq!(fs::read_dir(home.path().join("out")).unwrap().count(), 0);
    }

    #[test]
    fn lock_is_refused_while_another_holds_it() {
        let home = tempfile::tempdir().unwrap();
        let first = lock(home.path()).unwrap();
        assert!(lock(home.path()).is_err());
        drop(first);
        // A process that another test starts shares the lock until it runs its own program.
        let dropped = Instant::now();
        while lock(home.path()).is_err() {
            assert!(dropped.elapsed() < Duration::from_secs(10), "the lock is still held");
            std::thread::yield_now();
        }
    }
}
