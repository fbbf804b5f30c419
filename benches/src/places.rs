//! Where things are: programs, data, outputs. Commands name them by variables, so that archives hold no path.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of an input that are read at once when it is warmed.
const WARM_BYTES: usize = 1 << 20;

/// Variables of commands. A command is text such as `$DATA/users.csv`.
#[derive(Clone, Debug)]
pub struct Places {
    /// Name with `$`, path, what it is. Longer names first, so that none hides behind its beginning.
    variables: Vec<(&'static str, PathBuf, &'static str)>,
}

/// Folders that a person may choose.
#[derive(Clone, Debug)]
pub struct Roots {
    /// Programs made for measuring, outputs, spills.
    pub home: PathBuf,
    /// Inputs.
    pub data: PathBuf,
    /// Scripts and programs of other systems.
    pub peers: PathBuf,
    /// Our program.
    pub program: PathBuf,
    /// Our jobs that are made for measuring only.
    pub jobs: PathBuf,
}

impl Places {
    /// Places below these roots. Nothing need exist.
    pub fn new(roots: &Roots) -> Self {
        let home = &roots.home;
        let ripgrep = find_program("rg").unwrap_or_else(|| home.join("bin/rg"));
        let mut variables = vec![
            ("$GRISTMILL", roots.program.clone(), "our program"),
            ("$JOBS", roots.jobs.clone(), "our program `gristmill-bench-jobs`, with jobs made for measuring"),
            ("$DATA", roots.data.clone(), "inputs"),
            ("$MADE", home.join("made"), "inputs made for one measurement and removed after it"),
            ("$OUT", home.join("out"), "output, emptied before each run"),
            ("$SPILL", home.join("spill"), "temporary folder of every command (TMPDIR)"),
            ("$PEERS", roots.peers.clone(), "other systems' jobs"),
            ("$LIMIT", home.join("limit/target/release/limit"), "the limit programs"),
            ("$RENOIR", home.join("renoir/target/release/renoir-wc"), "the word counts on Renoir"),
            ("$PYTHON", home.join("venv/a/bin/python"), "Python with DuckDB and Polars"),
            ("$RG", ripgrep, "ripgrep"),
        ];
        variables.sort_by_key(|(name, _, _)| std::cmp::Reverse(name.len()));
        Self { variables }
    }

    /// The path of a variable.
    ///
    /// # Panics
    /// On a name that is not in the list above.
    pub fn path(&self, name: &str) -> &Path {
        let found = self.variables.iter().find(|(known, _, _)| *known == name);
        &found.unwrap_or_else(|| panic!("there is no variable {name}")).1
    }

    /// Variables and what they are, by name.
    pub fn legend(&self) -> Vec<(&'static str, &'static str)> {
        let mut legend: Vec<_> = self.variables.iter().map(|(name, _, what)| (*name, *what)).collect();
        legend.sort_unstable();
        legend
    }

    /// Text with paths in the place of variables.
    pub fn expand(&self, text: &str) -> String {
        self.variables
            .iter()
            .fold(text.to_owned(), |text, (name, path, _)| text.replace(name, &path.to_string_lossy()))
    }

    /// Text with variables in the place of paths, so that it can be archived.
    pub fn hide(&self, text: &str) -> String {
        let mut known: Vec<_> =
            self.variables.iter().map(|(name, path, _)| (path.to_string_lossy(), *name)).collect();
        // Longer paths first, so that a folder does not hide what lies in it.
        known.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        known.iter().fold(text.to_owned(), |text, (path, name)| text.replace(&**path, name))
    }

    /// The first program or file that a command names and that is not there.
    pub fn missing(&self, command: &str) -> Option<&'static str> {
        const MADE_BY_US: [&str; 3] = ["$OUT", "$SPILL", "$MADE"];
        let named = self.variables.iter().filter(|(name, _, _)| command.contains(name));
        named
            .filter(|(name, path, _)| !MADE_BY_US.contains(name) && !path.exists())
            .map(|(name, ..)| *name)
            .next()
    }

    /// An empty output folder and temporary folder, and a disk that has nothing left to write.
    ///
    /// # Errors
    /// Folders that cannot be emptied.
    pub fn clean(&self) -> anyhow::Result<()> {
        for name in ["$OUT", "$SPILL"] {
            let folder = self.path(name);
            empty(folder).with_context(|| format!("could not empty {}", folder.display()))?;
        }
        rustix::fs::sync();
        Ok(())
    }

    /// An empty folder for generated inputs.
    ///
    /// # Errors
    /// A folder that cannot be emptied.
    pub fn clean_made(&self) -> anyhow::Result<()> {
        let folder = self.path("$MADE");
        empty(folder).with_context(|| format!("could not empty {}", folder.display()))
    }
}

fn empty(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(folder)
}

/// Reads files, and those in folders, so that they are in the page cache.
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

/// Free bytes for us where a folder lies.
///
/// # Errors
/// A folder that is not there.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let system = rustix::fs::statvfs(folder)?;
    Ok(system.f_bavail * system.f_frsize)
}

/// The lock that keeps a second measurement from disturbing the first, for as long as it lives.
///
/// # Errors
/// Another measurement that runs.
pub fn lock(home: &Path) -> anyhow::Result<File> {
    fs::create_dir_all(home).with_context(|| format!("could not make {}", home.display()))?;
    let file = File::create(home.join("lock"))?;
    if rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        bail!("another measurement is running in {}", home.display());
    }
    Ok(file)
}

/// A program on the search path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(OsStr::new(name))).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn clean_leaves_empty_folders() {
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
        assert!(lock(home.path()).is_ok());
    }
}
