//! Environment of a measurement: machine, system, versions. Without host names and paths.

use crate::places::Places;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Machine with its software.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Day of the last measurement, in UTC.
    pub day: String,
    /// Model of the processor.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: u32,
    /// True if it is a virtual machine.
    pub is_virtual: bool,
    /// Main memory, bytes.
    pub memory_bytes: u64,
    /// Kernel.
    pub kernel: String,
    /// File system of the outputs.
    pub output_file_system: String,
    /// Huge page setting of the kernel.
    pub huge_pages: String,
    /// Commit of this repository; `None` outside of one.
    pub commit: Option<String>,
    /// True if files differed from that commit.
    pub changed: bool,
    /// Versions of programs, as reported by them.
    pub versions: BTreeMap<String, String>,
    /// Inputs and their sizes, bytes.
    pub data_bytes: BTreeMap<String, u64>,
    /// Program that generated them.
    pub data_maker: String,
}

/// Programs and arguments that report versions.
const VERSIONS: [(&str, &[&str]); 9] = [
    ("gristmill", &["$GRISTMILL", "--version"]),
    ("rustc", &["rustc", "--version"]),
    ("Python", &["$PYTHON", "--version"]),
    ("DuckDB", &["$PYTHON", "-c", "import duckdb; print(duckdb.__version__)"]),
    ("Polars", &["$PYTHON", "-c", "import polars; print(polars.__version__)"]),
    ("ripgrep", &["$RG", "--version"]),
    ("GNU sort", &["sort", "--version"]),
    ("shell", &["sh", "-c", "echo ${BASH_VERSION:-POSIX}"]),
    ("C library", &["getconf", "GNU_LIBC_VERSION"]),
];

impl MachineFacts {
    /// Returns the facts of this machine. Unknown values stay empty.
    pub fn read(places: &Places, day: String) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo");
        let versions = VERSIONS.iter().filter_map(|(name, command)| {
            let command: Vec<String> = command.iter().map(|word| places.expand(word)).collect();
            first_line(&command).map(|line| ((*name).to_owned(), line))
        });
        let mut versions: BTreeMap<String, String> = versions.collect();
        let lock = places.path("$PEERS").join("renoir/Cargo.lock");
        if let Some(version) = fs::read_to_string(lock).ok().and_then(|lock| locked(&lock, "renoir")) {
            versions.insert("Renoir".to_owned(), version);
        }
        let git = |arguments: &[&str]| {
            let words: Vec<String> = ["git"].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
            first_line(&words)
        };
        let data = places.path("$DATA");
        Self {
            day,
            processor: field(&processor, "model name").unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
            is_virtual: field(&processor, "flags").is_some_and(|flags| flags.contains("hypervisor")),
            memory_bytes: field(&read("/proc/meminfo"), "MemTotal").map_or(0, |text| kibibytes(&text)),
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            output_file_system: file_system(&read("/proc/self/mountinfo"), places.path("$OUT")),
            huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled").trim().to_owned(),
            commit: git(&["rev-parse", "HEAD"]),
            changed: git(&["status", "--porcelain"]).is_some(),
            versions,
            data_bytes: sizes(data),
            data_maker: fs::read_to_string(data.join("MADE_BY")).unwrap_or_default().trim().to_owned(),
        }
    }
}

/// Returns the first non-empty line of a command's output; `None` if there is none or it fails.
fn first_line(command: &[String]) -> Option<String> {
    let output = Command::new(&command[0]).args(&command[1..]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    output.status.success().then(|| line.trim().to_owned())
}

/// Returns the value of `name : value` as in `/proc/cpuinfo`.
fn field(text: &str, name: &str) -> Option<String> {
    let of = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(of)
}

/// Parses `1234 kB` as bytes.
fn kibibytes(text: &str) -> u64 {
    text.trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}

/// Returns the version of a package in a lock file.
fn locked(lock: &str, package: &str) -> Option<String> {
    let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{package}\""));
    Some(lines.nth(1)?.strip_prefix("version = \"")?.trim_end_matches('"').to_owned())
}

/// Returns the type of the file system with the longest mount point above a directory.
fn file_system(mounts: &str, directory: &Path) -> String {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
    let of = |line: &str| {
        let (mount, rest) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?.to_owned();
        let kind = rest.split(' ').next()?.to_owned();
        directory.starts_with(&point).then_some((point.len(), kind))
    };
    // Of two mounts at one point the later one is visible.
    mounts.lines().filter_map(of).max_by_key(|(length, _)| *length).map(|(_, kind)| kind).unwrap_or_default()
}

fn sizes(directory: &Path) -> BTreeMap<String, u64> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let data = entry.metadata().ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        (data.is_file() && name != "MADE_BY").then_some((name, data.len()))
    };
    files.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_is_found_by_its_name() {
        let text = "processor\t: 0\nmodel name\t: Mill 3000 @ 2 GHz: fast\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Mill 3000 @ 2 GHz: fast"));
        assert_eq!(field(text, "model"), None);
        assert_eq!(kibibytes("24 kB"), 24 * 1024);
    }

    #[test]
    fn version_is_read_from_a_lock_file() {
        let lock = "[[package]]\nname = \"renoir-x\"\nversion = \"1\"\n\n[[package]]\nname = \"renoir\"\nversion = \"0.6.0\"\n";
        assert_eq!(locked(lock, "renoir").as_deref(), Some("0.6.0"));
        assert_eq!(locked(lock, "mill"), None);
    }

    #[test]
    fn file_system_is_that_of_the_nearest_mount_point() {
        let mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n25 22 0:23 / /no-such/fast rw - tmpfs tmpfs rw\n";
        assert_eq!(file_system(mounts, Path::new("/no-such/fast/out")), "tmpfs");
        assert_eq!(file_system(mounts, Path::new("/no-such/out")), "ext4");
    }
}
