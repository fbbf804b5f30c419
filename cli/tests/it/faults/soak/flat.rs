//! The rule that judges if memory and descriptors of a process stay flat in a soak, and cases that it must
//! reject.

use std::time::Duration;

/// Allowed increase between the two quarters compared: tables, arenas and buffers that happen to be in use.
const KIB_MAX: u64 = 12 << 10;
const DESCRIPTORS_MAX: usize = 24;

/// Minimum number of samples of a quarter; with fewer, nothing is judged.
const SAMPLES_MIN: usize = 8;

/// Memory and descriptors of a process at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Time since the soak started.
    pub at: Duration,
    /// Private memory in KiB: anonymous pages, without those of files.
    pub kib: u64,
    /// Open descriptors.
    pub descriptors: usize,
}

impl Sample {
    /// Returns a sample of a live process.
    pub fn read(pid: u32, at: Duration) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kib = line.split_whitespace().next()?.parse().ok()?;
        let directory = format!("/proc/{pid}/fd");
        let descriptors = std::fs::read_dir(&directory).ok()?.count();
        (0 < kib && 0 < descriptors).then_some(Self { at, kib, descriptors })
    }
}

/// Samples of a process over a soak. If it is killed, the samples of its successor follow.
#[derive(Clone, Default, Debug)]
pub struct Series(Vec<Sample>);

impl Series {
    /// Adds a sample.
    pub fn add(&mut self, sample: Option<Sample>) {
        self.0.extend(sample);
    }

    /// Medians of memory and descriptors in one of four quarters of the time.
    fn quarter(&self, quarter: u32) -> Option<(u64, usize)> {
        let end = self.0.last()?.at;
        let (from, to) = (end * quarter / 4, end * (quarter + 1) / 4);
        let within: Vec<&Sample> =
            self.0.iter().filter(|sample| from <= sample.at && sample.at <= to).collect();
        if within.len() < SAMPLES_MIN {
            return None;
        }
        let mut kib: Vec<u64> = within.iter().map(|sample| sample.kib).collect();
        let mut descriptors: Vec<usize> = within.iter().map(|sample| sample.descriptors).collect();
        kib.sort_unstable();
        descriptors.sort_unstable();
        Some((kib[kib.len() / 2], descriptors[descriptors.len() / 2]))
    }

    /// Returns the medians of all quarters, for a report.
    pub fn quarters(&self) -> Vec<Option<(u64, usize)>> {
        (0..4).map(|quarter| self.quarter(quarter)).collect()
    }

    /// Returns the reason if it is not flat. The last quarter's median must not exceed that of the second
    /// quarter by more than the limit. By the second quarter everything has been used once. `kept_kib` is the
    /// memory that the process retains on purpose, within a bound of its own.
    pub fn judge(&self, kept_kib: u64) -> Result<(), String> {
        let (Some(second), Some(last)) = (self.quarter(1), self.quarter(3)) else {
            return Err(format!("too few samples to judge: {}", self.0.len()));
        };
        let kib_max = second.0 + KIB_MAX + kept_kib;
        if kib_max < last.0 {
            return Err(format!("memory grew from {} to {} KiB, over {kib_max}", second.0, last.0));
        }
        let descriptors_max = second.1 + DESCRIPTORS_MAX;
        if descriptors_max < last.1 {
            return Err(format!("descriptors grew from {} to {}, over {descriptors_max}", second.1, last.1));
        }
        Ok(())
    }
}

/// An hour of samples, one per second, with the memory and descriptors that `at` returns for each second.
#[cfg(test)]
fn hour(at: impl Fn(u64) -> (u64, usize)) -> Series {
    let sample = |second| {
        let (kib, descriptors) = at(second);
        Sample { at: Duration::from_secs(second), kib, descriptors }
    };
    Series((0..3600).map(sample).collect())
}

#[test]
fn process_that_fills_its_tables_at_first_and_is_busy_by_turns_is_flat() {
    let series =
        hour(|second| (40_000 + 30_000.min(second * 100) + second % 7 * 3000, 30 + second as usize % 20));
    assert_eq!(series.judge(0), Ok(()));
}

#[test]
fn process_that_begins_anew_every_minute_is_flat() {
    assert_eq!(hour(|second| (30_000 + second % 60 * 400, 30)).judge(0), Ok(()));
}

#[test]
fn process_that_gains_10_kib_a_second_is_not_flat() {
    let found = hour(|second| (40_000 + second * 10, 30)).judge(0);
    assert!(found.unwrap_err().starts_with("memory grew"));
}

#[test]
fn process_that_keeps_one_descriptor_more_each_minute_is_not_flat() {
    let found = hour(|second| (40_000, 30 + second as usize / 60)).judge(0);
    assert!(found.unwrap_err().starts_with("descriptors grew"));
}

#[test]
fn process_that_keeps_more_than_it_may_is_not_flat() {
    let series = hour(|second| (40_000 + second * 10, 30));
    assert_eq!(series.judge(18_000), Ok(()));
    assert!(series.judge(1000).unwrap_err().starts_with("memory grew"));
}

#[test]
fn process_of_which_nothing_is_known_is_not_called_flat() {
    assert!(Series::default().judge(0).unwrap_err().starts_with("too few samples"));
}
