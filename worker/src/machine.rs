//! Identity of this process and its machine: the program's build id, the host's name, its memory.

use crate::control_group::{memory_groups, memory_limit};
use rustix::time::ClockId;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// Bytes at the start of an executable that contain headers and the build note.
const HEAD_BYTES: usize = 64 << 10;

/// Returns the id of this executable: its linker's build id, or a hash of the whole file without one. User functions
/// are compiled in, so two processes with different ids may compute different results.
#[must_use]
pub fn build_id() -> String {
    static KNOWN: OnceLock<String> = OnceLock::new();
    KNOWN.get_or_init(read_build_id).clone()
}

fn read_build_id() -> String {
    let read = || -> std::io::Result<String> {
        let file = File::open("/proc/self/exe")?;
        let mut head = vec![0; HEAD_BYTES];
        let got = file.read_at(&mut head, 0)?;
        if let Some(id) = gnu_build_id(&head[..got]) {
            return Ok(data_encoding::HEXLOWER.encode(id));
        }
        let mut hash = xxhash_rust::xxh3::Xxh3::new();
        let mut file = file;
        let mut chunk = vec![0; 1 << 20];
        loop {
            match file.read(&mut chunk)? {
                0 => return Ok(format!("{:032x}", hash.digest128())),
                got => hash.update(&chunk[..got]),
            }
        }
    };
    read().unwrap_or_else(|_| format!("version {}", env!("CARGO_PKG_VERSION")))
}

/// Returns the descriptor of the note of type 3 and name GNU in a 64-bit little-endian ELF file.
fn gnu_build_id(head: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?) as usize);
    let long = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?) as usize);
    if head.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, size, count) = (long(32)?, half(54)?, half(56)?);
    for number in 0..count {
        let entry = table.checked_add(number.checked_mul(size)?)?;
        if word(entry)? != 4 {
            continue;
        }
        let (mut at, length) = (long(entry + 8)?, long(entry + 32)?);
        let end = at.checked_add(length)?;
        while at + 12 <= end {
            let (name, data, kind) = (word(at)? as usize, word(at + 4)? as usize, word(at + 8)?);
            let body = at + 12 + name.next_multiple_of(4);
            if kind == 3 && head.get(at + 12..at + 12 + name)? == b"GNU\0" {
                return head.get(body..body + data);
            }
            at = body + data.next_multiple_of(4);
        }
    }
    None
}

/// Returns the name of this machine, and of its network namespace if that is not the initial one: workers with the same
/// name share a disk and an address. If the system does not report the initial namespace, the namespace is always part
/// of the name.
#[must_use]
pub fn host_name() -> String {
    use std::os::unix::fs::MetadataExt;
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let namespace =
        |process: &str| std::fs::metadata(format!("/proc/{process}/ns/net")).map(|ns| ns.ino()).ok();
    match (namespace("self"), namespace("1")) {
        (own, first) if own == first => name,
        (Some(own), _) => format!("{name}/{own}"),
        (None, _) => name,
    }
}

/// Returns the identity of the file system: processes with the same boot of the machine, mounts and root directory find
/// the same files under the same paths. `None` if the system does not report it.
#[must_use]
pub(crate) fn files_seen() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let boot = boot_id().ok()?;
    let mounts = std::fs::metadata("/proc/self/ns/mnt").ok()?.ino();
    let root = std::fs::metadata("/").ok()?;
    Some(format!("{boot} {mounts} {}:{}", root.dev(), root.ino()))
}

/// Returns the id of this machine's boot, which is unique.
///
/// # Errors
/// A system that does not report it.
pub fn boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Upper bound of the length of the system's status of a process, bytes.
const STATUS_BYTES: usize = 4096;

/// Returns the sum of these fields of the system's status of this process, in bytes; 0 if it is not reported. Read in
/// one call, since it is needed after every reduce.
fn status_bytes(fields: &[&str]) -> u64 {
    let mut text = [0; STATUS_BYTES];
    let Ok(read) = File::open("/proc/self/status").and_then(|mut status| status.read(&mut text)) else {
        return 0;
    };
    let status = String::from_utf8_lossy(&text[..read]);
    let field = |name: &&str| {
        let line = status.lines().find_map(|line| line.strip_prefix(*name))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    fields.iter().filter_map(field).sum::<u64>() << 10
}

/// Returns the resident anonymous and shared memory of this process, bytes; 0 if the system does not report it.
pub(crate) fn resident_bytes() -> u64 {
    status_bytes(&["RssAnon:", "RssShmem:"])
}

/// Returns the resident anonymous memory of this process, bytes; 0 if the system does not report it.
pub(crate) fn anonymous_bytes() -> u64 {
    status_bytes(&["RssAnon:"])
}

/// Returns the maximum resident memory of this process, bytes; 0 if the system does not report it.
pub(crate) fn resident_peak_bytes() -> u64 {
    status_bytes(&["VmHWM:"])
}

/// Returns the CPU time of this thread, nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

/// Returns the CPU time of this process without its children, nanoseconds.
pub(crate) fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime)
}

fn cpu_ns(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the time that this thread was ready to run and had no processor, nanoseconds; `None` if the system does not tell.
pub(crate) fn thread_ready_ns() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    counts.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Assumed memory if the system does not report it.
const MEMORY_BYTES_UNKNOWN: u64 = 2 << 30;

/// Returns the memory of this machine, or the limit of this process's control groups, in bytes.
#[must_use]
pub fn memory_bytes() -> u64 {
    let Ok(mut system) = sysinfo::System::new() else { return MEMORY_BYTES_UNKNOWN };
    system.refresh_memory();
    let total = system.total_memory();
    memory_limit(&memory_groups()).map_or(total, |limit| limit.min(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_id_is_the_same_each_time_and_no_version() {
        let id = build_id();
        assert_eq!(id, build_id());
        assert!(id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    }

    #[test]
    fn build_note_is_not_looked_for_in_files_cut_anywhere() {
        let mut head = vec![0; HEAD_BYTES];
        let got = File::open("/proc/self/exe").unwrap().read_at(&mut head, 0).unwrap();
        for length in (0..got.min(4096)).step_by(7) {
            let _ = gnu_build_id(&head[..length]);
        }
    }
}
