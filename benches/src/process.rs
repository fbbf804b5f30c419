//! Data from `/proc`: descendants and their memory; times of the whole machine.

use rustix::fs::{FsWord, statfs};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// File system types in `statfs` that keep their files in memory.
const MEMORY_BACKED_MAGIC: [FsWord; 2] = [0x0102_1994, 0x8584_58f6];

/// Number of processes after which `descendants` stops. A larger number is a runaway, not a benchmark.
const DESCENDANTS_MAX: usize = 10_000;

/// Memory of one process or of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Bytes of all resident pages, including those of mapped files.
    pub resident_bytes: u64,
    /// Bytes of anonymous and shared pages, which the process cannot release.
    pub private_bytes: u64,
}

/// Returns all living descendants of a process, in no order.
pub fn descendants(root: i32) -> Vec<i32> {
    let (mut found, mut todo) = (Vec::new(), vec![root]);
    while let Some(pid) = todo.pop() {
        // Children belong to the thread that forked them.
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for thread in threads.flatten() {
            let Ok(children) = fs::read_to_string(thread.path().join("children")) else { continue };
            for child in children.split_ascii_whitespace().filter_map(|child| child.parse().ok()) {
                found.push(child);
                todo.push(child);
            }
        }
        if DESCENDANTS_MAX < found.len() {
            break;
        }
    }
    found
}

/// Returns the memory of a process; `None` if it has ended or is a zombie.
pub fn memory_of(pid: i32) -> Option<Memory> {
    parse_status(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse_status(text: &str) -> Option<Memory> {
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    Some(Memory {
        resident_bytes: kib("VmRSS")? * 1024,
        private_bytes: (kib("RssAnon")? + kib("RssShmem")?) * 1024,
    })
}

/// Returns the bytes of all files below a directory if it is in memory, else 0.
pub fn memory_backed_bytes(directory: &Path) -> u64 {
    match statfs(directory) {
        Ok(system) if MEMORY_BACKED_MAGIC.contains(&system.f_type) => allocated_bytes(directory),
        _ => 0,
    }
}

/// Returns the bytes allocated for the files below a directory. Files may be created and removed meanwhile.
pub fn allocated_bytes(directory: &Path) -> u64 {
    let (mut bytes, mut todo) = (0, vec![directory.to_path_buf()]);
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => todo.push(entry.path()),
                // Blocks have 512 bytes, independent of the file system's block size.
                Ok(metadata) => bytes += metadata.blocks() * 512,
                Err(_) => {}
            }
        }
    }
    bytes
}

/// Times of the whole machine since boot, or between two moments.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SystemTimes {
    /// Busy processor time, seconds.
    pub busy_s: f64,
    /// Processor time stolen by the host, seconds.
    pub stolen_s: f64,
}

impl SystemTimes {
    /// Returns the current times.
    ///
    /// # Errors
    /// `/proc` does not exist.
    pub fn now() -> io::Result<Self> {
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        let (busy, stolen) = parse_stat(&fs::read_to_string("/proc/stat")?);
        Ok(Self { busy_s: busy as f64 / ticks_per_second, stolen_s: stolen as f64 / ticks_per_second })
    }

    /// Returns the times since an earlier moment.
    pub fn since(&self, earlier: &Self) -> Self {
        Self { busy_s: self.busy_s - earlier.busy_s, stolen_s: self.stolen_s - earlier.stolen_s }
    }
}

/// Returns busy ticks and stolen ticks of all processors together.
fn parse_stat(text: &str) -> (u64, u64) {
    let first = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> =
        first.split_ascii_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    let at = |column: usize| ticks.get(column).copied().unwrap_or(0);
    // user, nice, system, idle, iowait, irq, softirq, steal
    (at(0) + at(1) + at(2) + at(5) + at(6), at(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_a_process_gives_resident_and_private_memory() {
        let text = "Name:\tworker\nVmRSS:\t    1500 kB\nRssAnon:\t     400 kB\nRssFile:\t 1000 kB\nRssShmem:\t 100 kB\n";
        let expected = Memory { resident_bytes: 1500 * 1024, private_bytes: 500 * 1024 };
        assert_eq!(parse_status(text), Some(expected));
    }

    #[test]
    fn status_of_a_zombie_has_no_memory() {
        assert_eq!(parse_status("Name:\tworker\nState:\tZ (zombie)\n"), None);
    }

    #[test]
    fn times_of_the_machine_leave_out_idle() {
        assert_eq!(parse_stat("cpu  10 1 20 1000 500 2 3 7 0 0\ncpu0 1 1\n"), (36, 7));
    }

    #[test]
    fn own_process_is_seen() {
        let own = std::process::id() as i32;
        let memory = memory_of(own).unwrap();
        assert!(memory.private_bytes > 0 && memory.private_bytes <= memory.resident_bytes, "{memory:?}");
    }

    #[test]
    fn allocated_bytes_counts_files_in_directories_below() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("below")).unwrap();
        fs::write(directory.path().join("below/file"), vec![1; 100_000]).unwrap();
        assert!((100_000..200_000).contains(&allocated_bytes(directory.path())));
    }
}
