//! Sharing of a machine's memory between programs without a configured limit: each new program takes a part of the
//! memory that the others have left.
//!
//! The amount that a process takes is part of the name of an abstract socket, which exists as long as the process
//! lives, however it dies. Only processes of one user with the same directory for temporary files share, on one host. A
//! name may be forged by another user, so each program takes a minimum.

use gristmill_worker::machine_memory_bytes;
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A program alone takes one part in this many: the page cache and other programs keep the rest.
const ALONE_SHARE: u64 = 4;

/// A program takes at least one part in this many, however much the others hold.
const LEAST_SHARE: u64 = 16;

/// Smallest memory with which a program can work, bytes.
pub const LEAST_BYTES: u64 = 16 << 20;

/// Timeout of the wait for another program that is choosing, which takes far less than a millisecond.
const TIMEOUT: Duration = Duration::from_millis(100);

/// Memory that this process may use; visible to others until it is dropped.
#[derive(Debug)]
pub struct MemoryShare {
    /// Bytes that it may use.
    pub bytes: u64,
    /// Bytes that others held when it was chosen.
    pub others: u64,
    _name: Option<UnixListener>,
}

impl MemoryShare {
    /// Takes the named amount, or else a share of what the machine and its control groups provide and others do not
    /// hold.
    #[must_use]
    pub fn take(named: Option<u64>) -> Self {
        Self::take_of(machine_memory_bytes(), named)
    }

    fn take_of(total: u64, named: Option<u64>) -> Self {
        // On a system without such sockets each program is alone.
        let Ok(place) = place() else {
            let bytes = named.unwrap_or_else(|| share(total, 0));
            return Self { bytes, others: 0, _name: None };
        };
        let _choosing = choosing(&place);
        let listed = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let others = held(&listed, &place);
        let bytes = named.unwrap_or_else(|| share(total, others));
        let name = bind(&name(&place, bytes)).ok();
        Self { bytes, others, _name: name }
    }
}

/// Share of this much memory of which others hold a part, bytes: a quarter, while all together hold at most three
/// quarters; then half of the rest.
fn share(total: u64, others: u64) -> u64 {
    let left = (total / 4 * 3).saturating_sub(others);
    (total / ALONE_SHARE).min(left / 2).max(total / LEAST_SHARE).max(LEAST_BYTES)
}

/// Prefix of the names of programs that share.
fn place() -> io::Result<String> {
    let folder = fs::metadata(std::env::temp_dir())?;
    let user = rustix::process::geteuid().as_raw();
    Ok(format!("gristmill-memory-{user}-{:x}-{:x}", folder.dev(), folder.ino()))
}

fn name(place: &str, bytes: u64) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{place}:{bytes}:{}.{number}", std::process::id())
}

fn bind(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Prevents others from choosing while it is held; `None` if one of them takes too long.
fn choosing(place: &str) -> Option<UnixListener> {
    let begun = Instant::now();
    loop {
        match bind(place) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && begun.elapsed() < TIMEOUT => {
                std::thread::yield_now();
            }
            bound => return bound.ok(),
        }
    }
}

/// Bytes in the names of a place, from the system's list of sockets. A name without a plausible number is ignored.
fn held(listed: &str, place: &str) -> u64 {
    let bytes = |line: &str| -> Option<u64> {
        let name = line.split_ascii_whitespace().last()?.strip_prefix('@')?;
        name.strip_prefix(place)?.strip_prefix(':')?.split(':').next()?.parse().ok()
    };
    listed.lines().filter_map(bytes).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn shares_shrink_with_what_others_hold_and_leave_a_quarter_to_everything_else() {
        let mut held = 0;
        let mut shares = Vec::new();
        for _ in 0..5 {
            let taken = share(16 * GIB, held);
            shares.push(taken / GIB);
            held += taken;
        }
        // The fifth finds 1 GiB and would take half of it, so it takes the minimum.
        assert_eq!(shares, [4, 4, 2, 1, 1]);
        assert!(held <= 12 * GIB);
    }

    #[test]
    fn claims_of_others_never_leave_one_without_memory() {
        assert_eq!(share(16 * GIB, u64::MAX), GIB);
        assert_eq!(share(64 << 20, u64::MAX), LEAST_BYTES);
    }

    #[test]
    fn only_names_of_the_same_place_count() {
        let listed = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000: 00000002 00000000 00010000 0001 01 1 @gristmill-memory-0-1-2:1000:7.0\n\
            0000: 00000002 00000000 00010000 0001 01 2 @gristmill-memory-0-1-2:200:8.0\n\
            0000: 00000002 00000000 00010000 0001 01 3 @gristmill-memory-0-1-22:40000:8.0\n\
            0000: 00000002 00000000 00010000 0001 01 4 @gristmill-memory-0-1-2\n\
            0000: 00000002 00000000 00010000 0001 01 5 @gristmill-memory-0-1-2:much:8.0\n\
            0000: 00000002 00000000 00010000 0001 01 6 /run/gristmill-memory-0-1-2:5:8.0\n\
            0000: 00000002 00000000 00010000 0001 01 7\n";
        assert_eq!(held(listed, "gristmill-memory-0-1-2"), 1200);
    }

    #[test]
    fn share_is_known_to_others_until_it_is_dropped() {
        // Other tests of this process take no share, so the others' memory is that taken by this test.
        let first = MemoryShare::take_of(GIB, None);
        let named = MemoryShare::take_of(GIB, Some(GIB / 2));
        let third = MemoryShare::take_of(GIB, None);
        assert_eq!((named.bytes, named.others - first.others), (GIB / 2, first.bytes));
        assert_eq!(third.others - first.others, first.bytes + GIB / 2);
        drop((named, third));
        let fourth = MemoryShare::take_of(GIB, None);
        assert_eq!(fourth.others - first.others, first.bytes);
    }
}
