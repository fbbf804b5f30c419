//! Runtimes that work where the system starts no more threads (`ulimit -u`, `pids.max`).

use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long a thread for blocking work waits for more: as long as any process lives.
const KEEP_ALIVE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A runtime on the thread that drives it, with a thread for blocking work that stays. The library panics where there is no
/// such thread and none can be started; with one, further work waits for it.
///
/// # Errors
/// A thread that cannot be started, and what the system says.
pub fn runtime() -> io::Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().thread_keep_alive(KEEP_ALIVE).build()?;
    // This one can be refused without a panic.
    let probe = std::thread::Builder::new().spawn(|| ())?;
    if probe.join().is_ok() {
        runtime.spawn_blocking(|| ());
    }
    Ok(runtime)
}

/// True if the system starts no more processes or threads.
#[must_use]
pub fn are_used_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::AGAIN.raw_os_error())
}
