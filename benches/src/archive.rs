//! What is kept of every measurement: one line of JSON for each run in `runs.jsonl`, and the machine beside it.
//!
//! Lines are only ever added; what was measured again counts from then on, see [`latest`].

use crate::check::Digest;
use crate::measure::MeasuredRun;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Which question a measurement answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchSection {
    /// Whole jobs beside other systems.
    Table,
    /// Promises about memory.
    Memory,
    /// Small jobs and many tasks.
    Latency,
    /// Against size, reduces, skew, workers, tasks.
    Scaling,
    /// Where the time goes.
    Profile,
}

/// Where a measurement belongs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunLabel {
    /// Seconds since 1970 when the program was started that measured it.
    pub invocation: u64,
    /// Which question.
    pub section: BenchSection,
    /// What was to be done.
    pub row: String,
    /// Who did it, or with what setting.
    pub contestant: String,
    /// The command, with variables for paths.
    pub command: String,
}

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// One run of a whole process.
    Run {
        /// 0 is the warm-up, which does not count.
        round: u32,
        /// What it took.
        measured: Box<MeasuredRun>,
        /// What it wrote, where that was looked at.
        digest: Option<Digest>,
        /// What it read, where that matters.
        input_bytes: Option<u64>,
        /// Slots it had, where that matters.
        slots: Option<u32>,
    },
    /// Times that the command itself took, in order.
    Samples {
        /// Each, seconds.
        seconds: Vec<f64>,
        /// Tasks in each.
        tasks: u64,
    },
    /// Where the processor time of one run went.
    Profile {
        /// Samples of one core, by phase.
        phases: Vec<PhaseSamples>,
        /// Time between two samples of a core, seconds.
        interval_s: f64,
    },
    /// Could not be measured.
    Absent {
        /// Why.
        reason: String,
    },
}

/// Samples of one phase of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PhaseSamples {
    /// Its name, one of `profile::PHASES`.
    pub phase: String,
    /// In user mode.
    pub user: u64,
    /// In the kernel, bringing pages in.
    pub page_faults: u64,
    /// In the kernel otherwise.
    pub kernel: u64,
}

impl PhaseSamples {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.user + self.page_faults + self.kernel
    }
}

/// A line of the archive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArchiveEntry {
    /// Where it belongs.
    #[serde(flatten)]
    pub label: RunLabel,
    /// What was found.
    pub finding: Finding,
}

/// A folder of results.
pub struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// Opens or makes it.
    ///
    /// # Errors
    /// A folder that cannot be made.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("could not make {}", folder.display()))?;
        Ok(Self { folder: folder.to_path_buf() })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a line.
    ///
    /// # Errors
    /// A disk that is full and the like.
    pub fn add(&self, entry: &ArchiveEntry) -> anyhow::Result<()> {
        let path = self.folder.join("runs.jsonl");
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        file.write_all(&line).with_context(|| format!("could not write to {}", path.display()))
    }

    /// All lines so far, oldest first.
    ///
    /// # Errors
    /// A line that is none of ours.
    pub fn entries(&self) -> anyhow::Result<Vec<ArchiveEntry>> {
        let path = self.folder.join("runs.jsonl");
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

/// Of each row only what was measured when it was measured last.
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

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The day as `2026-03-31`, in universal time.
///
/// Days since 1970 to a date of the Gregorian calendar, counted in eras of 400 years that begin in March.
pub fn day(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
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
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(&folder.path().join("new")).unwrap();
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

    #[test]
    fn days_follow_the_calendar() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(951_868_800), "2000-03-01");
        assert_eq!(day(1_767_225_599), "2025-12-31");
        assert_eq!(day(1_767_225_600), "2026-01-01");
    }
}
