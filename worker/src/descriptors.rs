//! File descriptors as a limited resource of a process: how many spill files may stay open, and handling of exhaustion.
//!
//! Exhausted descriptors are a temporary local problem of this worker. The error must not be treated as an error of the
//! file to be opened. Connections are counted by the server (`http`).

use crate::exit::{self, Exit, ExitsWith};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::error::Error;
use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Divisor of this process's descriptors that gives the maximum for finished spill files. The rest is for connections,
/// inputs, parts, and files that are written.
const KEPT_OPEN_SHARE: u64 = 4;

/// Maximum spill files kept open, even if the system allows more.
const KEPT_OPEN_MAX: u64 = 4096;

/// Time during which opening a spill file is retried without a free descriptor: others are released all the time.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum descriptors that a process requests.
const ALLOWED_MAX: u64 = 65_536;

/// Minimum descriptors for a master or a worker: with fewer, connections wait for one forever.
pub(crate) const NEEDED: usize = 64;

/// Error: this process may not have `NEEDED` descriptors.
#[derive(Debug, thiserror::Error)]
#[error("the limit of open files is {allowed} for this process (`ulimit -n`), and {NEEDED} are needed")]
pub struct TooFewDescriptors {
    allowed: usize,
}

impl ExitsWith for TooFewDescriptors {
    fn exit(&self) -> Exit {
        Exit::hinted(exit::RESOURCES, "raise the limit, as by `ulimit -n 1024`")
    }
}

/// Maximum descriptors of this process.
static ALLOWED: LazyLock<u64> = LazyLock::new(raised);

/// Raises the soft limit, which is low for compatibility with old programs, to the hard one.
pub fn raise() {
    LazyLock::force(&ALLOWED);
}

/// Returns the maximum descriptors of this process, after raising the soft limit.
#[must_use]
pub fn allowed() -> usize {
    usize::try_from(*ALLOWED).unwrap_or(usize::MAX)
}

/// Checks that the limit suffices for a master or a worker of this process, or of one that it starts.
///
/// # Errors
/// The limit is too low.
pub fn ensure_enough() -> Result<(), TooFewDescriptors> {
    let allowed = allowed();
    if allowed < NEEDED { Err(TooFewDescriptors { allowed }) } else { Ok(()) }
}

fn raised() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(u64::MAX).min(ALLOWED_MAX);
    let current = limit.current.unwrap_or(u64::MAX);
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    if current < wanted && setrlimit(Resource::Nofile, raised).is_ok() {
        return wanted;
    }
    current.min(ALLOWED_MAX)
}

/// Descriptors that this process may keep open.
static KEPT_OPEN: LazyLock<Descriptors> = LazyLock::new(|| {
    let allowed = *ALLOWED;
    Descriptors { max: (allowed / KEPT_OPEN_SHARE).min(KEPT_OPEN_MAX), used: AtomicU64::new(0) }
});

/// Counter of descriptors.
///
/// Invariant: `used` live permits, at most `max`.
#[derive(Debug)]
struct Descriptors {
    max: u64,
    used: AtomicU64,
}

impl Descriptors {
    fn try_take(&self) -> bool {
        let more = |used: u64| (used < self.max).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// Permit to keep a descriptor; released when dropped.
#[derive(Debug)]
pub(crate) struct KeptOpen(());

impl KeptOpen {
    /// Returns another permit, if one is available.
    pub fn acquire() -> Option<Self> {
        KEPT_OPEN.try_take().then(|| Self(()))
    }
}

impl Drop for KeptOpen {
    fn drop(&mut self) {
        KEPT_OPEN.used.fetch_sub(1, Ordering::Relaxed);
    }
}

/// True if this process, or its machine, had no descriptor left.
#[must_use]
pub fn are_used_up(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// True if this is the cause of an error.
pub(crate) fn caused(error: &(dyn Error + 'static)) -> bool {
    exit::has_cause(error, are_used_up)
}

/// Opens a file; retries for some time if no descriptor is left. Blocks.
///
/// # Errors
/// The error of the last try.
pub(crate) fn open_patiently<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let begun = Instant::now();
    loop {
        let opened = open();
        match &opened {
            Err(error) if are_used_up(error) && begun.elapsed() < TIMEOUT => std::thread::sleep(PAUSE),
            _ => return opened,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpError;
    use std::cell::Cell;

    fn lack() -> io::Error {
        Errno::MFILE.into()
    }

    #[test]
    fn descriptors_are_given_up_to_their_number() {
        let few = Descriptors { max: 2, used: AtomicU64::new(0) };
        assert_eq!([few.try_take(), few.try_take(), few.try_take()], [true, true, false]);
    }

    #[test]
    fn a_lack_of_descriptors_is_told_by_its_number_however_deep_it_lies() {
        assert!(caused(&HttpError::Connect { peer: "a".into(), source: lack() }));
        let text = io::Error::other("Too many open files (os error 24)");
        assert!(!caused(&HttpError::Connect { peer: "a".into(), source: text }), "words mean nothing");
        assert!(!are_used_up(&io::ErrorKind::NotFound.into()));
    }

    #[test]
    fn opening_waits_for_a_descriptor_and_for_nothing_else() {
        let tries = Cell::new(0);
        let opened = open_patiently(|| {
            tries.set(tries.get() + 1);
            if tries.get() < 3 { Err(lack()) } else { Ok(()) }
        });
        assert!(opened.is_ok() && tries.get() == 3);
        assert!(open_patiently(|| Err::<(), _>(io::ErrorKind::NotFound.into())).is_err());
    }
}
