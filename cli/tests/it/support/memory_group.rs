//! Memory control groups, for tests that let memory run out.

use super::until;
use std::fs;
use std::path::{Path, PathBuf};

/// A memory control group of a test's own, in that of the test; removed with it.
#[derive(Debug)]
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// One with this limit in bytes; `None` where there can be none, as without version 1 or without root.
    pub fn new(name: &str, bytes: u64) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| line.split_once(":memory:"));
        let own = own.map(|(_, path)| Path::new("/sys/fs/cgroup/memory").join(path.trim_start_matches('/')));
        let folder = own?.join(format!("gristmill-{name}-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        group.limit(bytes).then_some(group)
    }

    /// Sets another limit; whether that could be.
    pub fn limit(&self, bytes: u64) -> bool {
        fs::write(self.0.join("memory.limit_in_bytes"), bytes.to_string()).is_ok()
    }

    /// A line of a shell script that enters it.
    pub fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A test that fails says why, and not that its processes are still there.
        if std::thread::panicking() {
            let _ = fs::remove_dir(&self.0);
            return;
        }
        // What is left of processes that were killed leaves the group a moment later.
        until("the control group to be empty", || fs::remove_dir(&self.0).is_ok().then_some(()));
    }
}
