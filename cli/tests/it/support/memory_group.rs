//! Memory control groups, for tests that use up memory.

use super::{comes_within, process, until};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that the group of a failed test is waited for.
const PATIENCE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// A memory control group of a test, inside that of the test run; removed when dropped.
#[derive(Debug)]
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Creates one with this limit in bytes. Returns `None` where that is impossible, for example without
    /// version 1 or without root.
    pub fn new(name: &str, bytes: u64) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| line.split_once(":memory:"));
        let own = own.map(|(_, path)| Path::new("/sys/fs/cgroup/memory").join(path.trim_start_matches('/')));
        let directory = own?.join(format!("gristmill-{name}-{}", std::process::id()));
        fs::create_dir(&directory).ok()?;
        let group = Self(directory);
        group.limit(bytes).then_some(group)
    }

    /// Sets another limit. Returns false if that was impossible.
    pub fn limit(&self, bytes: u64) -> bool {
        fs::write(self.0.join("memory.limit_in_bytes"), bytes.to_string()).is_ok()
    }

    /// Returns a line of a shell script that enters it.
    pub fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }

    /// Moves a process from outside into it.
    pub fn take_in(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// Moves a process out of it. The process's later memory counts outside; its present memory stays counted
    /// here.
    pub fn put_out(&self, pid: u32) {
        fs::write(self.0.parent().unwrap().join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// Returns the file in which the kernel counts.
    pub fn counter(&self) -> PathBuf {
        self.0.join("memory.oom_control")
    }

    /// Bytes that its processes and their files use.
    pub fn used(&self) -> u64 {
        fs::read_to_string(self.0.join("memory.usage_in_bytes")).unwrap().trim().parse().unwrap()
    }

    /// Number of processes that the kernel has killed in it for lack of memory.
    pub fn kills(&self) -> u64 {
        let text = fs::read_to_string(self.counter()).unwrap();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")).unwrap().trim().parse().unwrap()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // Remains of killed processes leave the group a moment later.
            return until("the control group to be empty", || fs::remove_dir(&self.0).is_ok().then_some(()));
        }
        // A failed test reports its own cause, and not that its processes are still running: all of them
        // belong to this test.
        comes_within(PATIENCE_AFTER_FAILURE, || {
            let inside = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
            inside.lines().filter_map(|pid| pid.parse().ok()).for_each(process::kill);
            fs::remove_dir(&self.0).is_ok()
        });
    }
}
