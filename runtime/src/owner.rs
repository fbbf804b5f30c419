//! Identity of a process that owns something, with which others can determine for certain that it is dead.

use gristmill_scheduler::ids::JobId;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// A process, identified so that another one can determine if it still lives.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    /// The machine's name, and its id if it has one.
    pub(crate) host: String,
    /// The kernel's id of the current boot.
    pub(crate) boot: String,
    pub(crate) pid: u32,
    /// Start time of the process, in ticks since the boot, because process ids are reused.
    pub(crate) began_ticks: u64,
    /// The namespace of `pid`, by the kernel's number: each of two containers has its own process 7.
    #[serde(default)]
    pub(crate) pid_namespace: Option<u64>,
}

impl Owner {
    /// This process, which is looked up once.
    pub(crate) fn current() -> io::Result<Self> {
        static CURRENT: OnceLock<Owner> = OnceLock::new();
        match CURRENT.get() {
            Some(owner) => Ok(owner.clone()),
            None => Self::look_up().map(|owner| CURRENT.get_or_init(|| owner).clone()),
        }
    }

    fn look_up() -> io::Result<Self> {
        let pid = std::process::id();
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        Ok(Self {
            host: format!("{name} {}", machine.trim()).trim_end().to_owned(),
            boot: gristmill_worker::boot_id()?,
            pid,
            began_ticks: began_ticks(pid).ok_or(io::ErrorKind::NotFound)?,
            pid_namespace: fs::metadata("/proc/self/ns/pid").ok().map(|namespace| namespace.ino()),
        })
    }

    /// True if this process is certainly dead, without the evidence of a lock. Returns false for a process of another
    /// machine, container or boot: copied machines have the same name, and each container has a process 7.
    pub(crate) fn is_dead_without_lock(&self, here: &Owner) -> bool {
        let is_seen = self.boot == here.boot
            && self.pid_namespace.is_some()
            && self.pid_namespace == here.pid_namespace;
        is_seen && began_ticks(self.pid) != Some(self.began_ticks) && !is_hidden(self.pid)
    }

    /// True if this process is dead, as far as `here`, the calling process, can determine once it holds the lock.
    pub(crate) fn is_dead(&self, here: &Owner) -> bool {
        match self.boot == here.boot {
            true => began_ticks(self.pid) != Some(self.began_ticks),
            // No process of that machine has survived a reboot.
            false => self.host == here.host,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.host.split(' ').next().unwrap_or_default();
        write!(f, "process {} on {name}", self.pid)
    }
}

/// Description of a claim of this owner.
pub(crate) fn claimed_by(owner: Option<&Owner>, job: Option<JobId>) -> String {
    let owner = owner.map_or_else(|| "a process without name".to_owned(), Owner::to_string);
    let job = job.map_or_else(String::new, |job| format!(" for {job}"));
    format!("claimed by {owner}{job}")
}

/// True if such a process exists but is hidden from this one, as `/proc` may hide those of other users.
fn is_hidden(pid: u32) -> bool {
    let shown = fs::exists(format!("/proc/{pid}")).unwrap_or_default();
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    !shown && pid.is_none_or(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// A process, from `/proc/PID/stat`.
pub(crate) struct ProcessStat {
    pub(crate) is_zombie: bool,
    pub(crate) session: i32,
    /// Start time in clock ticks since boot.
    pub(crate) start: u64,
}

impl ProcessStat {
    /// Reads it; `None` if there is no such process.
    pub(crate) fn read(pid: impl fmt::Display) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The second field is the name, in brackets, and may contain any character. The state follows.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Self {
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            session: fields.get(3)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Start time of a process; `None` if it does not exist, or is a zombie.
fn began_ticks(pid: u32) -> Option<u64> {
    ProcessStat::read(pid).filter(|process| !process.is_zombie).map(|process| process.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_dead_without_a_lock_only_where_its_number_means_the_same() {
        let here = Owner::current().unwrap();
        assert!(!here.is_dead_without_lock(&here));
        // No process has such a number: Linux assigns none from here on.
        let dead = Owner { pid: 1 << 22, ..here.clone() };
        assert!(dead.is_dead_without_lock(&here));
        for elsewhere in [
            Owner { pid_namespace: Some(1), ..dead.clone() },
            Owner { pid_namespace: None, ..dead.clone() },
            Owner { boot: "another".to_owned(), ..dead.clone() },
        ] {
            assert!(!elsewhere.is_dead_without_lock(&here), "{elsewhere:?}");
        }
    }
}
