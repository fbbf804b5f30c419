//! A process by a name that no other ever has, so that nobody else is ended in its place, and those that it has started.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Pause between looks at whether a process has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// A process of this machine, while it runs this once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessName {
    pid: i32,
    /// When it began, in ticks of the kernel's clock since this machine began.
    began: u64,
    /// Which run of the machine.
    boot: String,
}

/// What the kernel says of a process.
struct Stat {
    is_dead: bool,
    session: i32,
    began: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before may hold anything, also brackets.
        let (_, rest) = text.rsplit_once(')')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let is_dead = matches!(*words.first()?, "Z" | "X");
        Some(Self { is_dead, session: words.get(3)?.parse().ok()?, began: words.get(19)?.parse().ok()? })
    }
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

impl ProcessName {
    /// The name of a process that runs now.
    ///
    /// # Errors
    /// No such process.
    pub fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        let stat = Stat::of(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { pid, began: stat.began, boot: boot()? })
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        let here = boot().is_ok_and(|boot| boot == self.boot);
        here && Stat::of(self.pid).is_some_and(|stat| stat.began == self.began && !stat.is_dead)
    }

    /// Signals it, and nobody who has its number since.
    pub fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if self.is_alive() {
            // One that has ended meanwhile needs none.
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    /// Waits until it has ended; whether it has, within the time.
    pub fn ends_within(&self, limit: Duration) -> bool {
        comes_within(limit, || !self.is_alive())
    }

    /// Kills what is left of the session that it leads, itself too; whether nothing is left.
    pub fn kill_session(&self, limit: Duration) -> bool {
        comes_within(limit, || {
            let members = self.session();
            members.iter().for_each(|member| member.signal(Signal::KILL));
            members.is_empty()
        })
    }

    /// What lives of the session that it leads. The kernel gives its number to nobody as long as the session has members;
    /// somebody else who has it is none of them, nor is what he leads.
    fn session(&self) -> Vec<ProcessName> {
        let is_taken = Stat::of(self.pid).is_some_and(|stat| stat.began != self.began);
        if is_taken || !boot().is_ok_and(|boot| boot == self.boot) {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let named = pids.filter_map(|pid| {
            let stat = Stat::of(pid)?;
            let is_member = stat.session == self.pid && self.began <= stat.began && !stat.is_dead;
            is_member.then(|| ProcessName { pid, began: stat.began, boot: self.boot.clone() })
        });
        named.collect()
    }
}

fn comes_within(limit: Duration, mut look: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !look() {
        if end <= Instant::now() {
            return false;
        }
        sleep(LOOK_PAUSE);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_known_by_more_than_its_number() {
        let own = ProcessName::of(std::process::id()).unwrap();
        assert!(own.is_alive());
        for other in [
            ProcessName { began: own.began + 1, ..own.clone() },
            ProcessName { boot: "another".to_owned(), ..own.clone() },
        ] {
            assert!(!other.is_alive(), "{other:?}");
            // Would end this test if it were taken for this process.
            other.signal(Signal::KILL);
            assert!(other.ends_within(Duration::ZERO));
        }
        assert!(!own.ends_within(Duration::ZERO));
    }
}
