//! Runtimes that work when the system starts no more threads (`ulimit -u`, `pids.max`).

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Time that a thread for blocking work waits for more: longer than any process lives.
const KEEP_ALIVE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Held while the panic hook of the process is another one.
static HOOK: Mutex<()> = Mutex::new(());

/// Creates a runtime on the current thread, with a permanent thread for blocking work. The library panics without such
/// a thread if none can be started; with one, further work waits for it.
///
/// # Errors
/// A thread that cannot be started.
pub fn runtime() -> io::Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().thread_keep_alive(KEEP_ALIVE).build()?;
    // A thread that starts here first does not show that the next one starts: other processes count too.
    let _alone = HOOK.lock().unwrap_or_else(PoisonError::into_inner);
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let started = panic::catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(|| ())));
    panic::set_hook(hook);
    started.map_err(|_| io::Error::from_raw_os_error(rustix::io::Errno::AGAIN.raw_os_error()))?;
    Ok(runtime)
}

/// True if the system starts no more processes or threads.
#[must_use]
pub fn are_used_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::AGAIN.raw_os_error())
}
