//! Archive of all measurements: one line of JSON for each run in `runs.jsonl`, with the machine next to it.
//!
//! Lines are only appended; repeated measurements replace earlier ones, see [`latest`].

use crate::check::Digest;
use crate::measure::MeasuredRun;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Section of the report that a measurement belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchSection {
    /// Whole jobs compared with other systems.
    Table,
    /// Small jobs and many tasks.
    Latency,
}

/// Identity of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunLabel {
    /// Start time of the measuring program, seconds since 1970.
    pub invocation: u64,
    /// Section of the report.
    pub section: BenchSection,
    /// Work to be done.
    pub row: String,
    /// System that did the work, or setting.
    pub contestant: String,
    /// Command, with variables for paths.
    pub command: String,
}

/// Result of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// One run of a whole process.
    Run {
        /// Number of the round; 0 is the warm-up, which does not count.
        round: u32,
        /// Measurements of the run.
        measured: Box<MeasuredRun>,
        /// Digest of its output, if checked.
        digest: Option<Digest>,
        /// Bytes that it read, if relevant.
        input_bytes: Option<u64>,
    },
    /// Times that the command itself measured, in order.
    Samples {
        /// Each time, seconds.
        seconds: Vec<f64>,
        /// Number of tasks in each.
        tasks: u64,
    },
    /// The measurement was not possible.
    Absent {
        /// Reason as text.
        reason: String,
    },
}

/// Line of the archive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArchiveEntry {
    /// Identity of the measurement.
    #[serde(flatten)]
    pub label: RunLabel,
    /// Result of the measurement.
    pub finding: Finding,
}

/// Directory of results.
pub struct Archive {
    directory: PathBuf,
}

impl Archive {
    /// Opens or creates it.
    ///
    /// # Errors
    /// A directory that cannot be created.
    pub fn open(directory: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(directory).with_context(|| format!("could not make {}", directory.display()))?;
        Ok(Self { directory: directory.to_path_buf() })
    }

    /// Returns its path.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds a line.
    ///
    /// # Errors
    /// An error of writing, such as a full disk.
    pub fn add(&self, entry: &ArchiveEntry) -> anyhow::Result<()> {
        let path = self.directory.join("runs.jsonl");
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        file.write_all(&line).with_context(|| format!("could not write to {}", path.display()))
    }

    /// Returns all lines so far, oldest first.
    ///
    /// # Errors
    /// An invalid line.
    pub fn entries(&self) -> anyhow::Result<Vec<ArchiveEntry>> {
        let path = self.directory.join("runs.jsonl");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text.with_context(|| format!("could not read {}", path.display()))?,
        };
        let parse = |(number, line)| {
            serde_json::from_str(line).with_context(|| format!("{}:{}", path.display(), number + 1))
        };
        text.lines().enumerate().map(parse).collect()
    }
}

/// Returns only the latest measurement of each row.
pub fn latest(entries: Vec<ArchiveEntry>) -> Vec<ArchiveEntry> {
    let mut last: BTreeMap<(BenchSection, String), u64> = BTreeMap::new();
    for ArchiveEntry { label, .. } in &entries {
        let newest = last.entry((label.section, label.row.clone())).or_default();
        *newest = label.invocation.max(*newest);
    }
    let counts = |entry: &ArchiveEntry| {
        last.get(&(entry.label.section, entry.label.row.clone())) == Some(&entry.label.invocation)
    };
    entries.into_iter().filter(counts).collect()
}

/// Returns the current time in seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absent(invocation: u64, row: &str, contestant: &str) -> ArchiveEntry {
        let label = RunLabel {
            invocation,
            section: BenchSection::Table,
            row: row.to_owned(),
            contestant: contestant.to_owned(),
            command: "true".to_owned(),
        };
        ArchiveEntry { label, finding: Finding::Absent { reason: "a test".to_owned() } }
    }

    #[test]
    fn archive_gives_back_what_was_added() {
        let directory = tempfile::tempdir().unwrap();
        let archive = Archive::open(&directory.path().join("new")).unwrap();
        assert_eq!(archive.entries().unwrap(), []);
        let entries = [absent(1, "sort", "limit"), absent(2, "sort", "ours")];
        entries.iter().for_each(|entry| archive.add(entry).unwrap());
        assert_eq!(archive.entries().unwrap(), entries);
    }

    #[test]
    fn latest_keeps_each_row_as_it_was_measured_last() {
        let entries = vec![absent(1, "sort", "limit"), absent(1, "join", "limit"), absent(2, "sort", "ours")];
        assert_eq!(latest(entries), [absent(1, "join", "limit"), absent(2, "sort", "ours")]);
    }
}
