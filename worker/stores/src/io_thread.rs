//! Thread on which this process waits for all stores.
//!
//! Callers block: tasks run on threads of their own, and closing an output may take time. They must not
//! block on the runtime that drives heartbeats and fetches, on which some of them run. So the work runs
//! on this thread, and callers wait for a message from it.

use gristmill_worker::objects::ObjectFailure;
use std::future::Future;
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// Handle of the runtime after its first use.
static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);

/// Starts the thread, unless it is running.
fn runtime() -> io::Result<Handle> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = &*runtime {
        return Ok(running.clone());
    }
    let built = gristmill_worker::threads::runtime()?;
    let handle = built.handle().clone();
    let drive = move || built.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name("stores".to_owned()).spawn(drive)?;
    Ok(runtime.insert(handle).clone())
}

/// Work on that thread. It is cancelled when this is dropped.
pub(crate) struct PendingWork<T> {
    result: Receiver<T>,
    task: AbortHandle,
}

/// Starts work on that thread.
///
/// # Errors
/// The thread or runtime could not be started.
pub(crate) fn start<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<PendingWork<T>, ObjectFailure> {
    let runtime = runtime().map_err(|source| ObjectFailure::Local { source })?;
    let (sender, result) = sync_channel(1);
    let task = runtime.spawn(async move {
        // Fails only if the receiver has stopped waiting.
        let _ = sender.send(work.await);
    });
    Ok(PendingWork { result, task: task.abort_handle() })
}

/// Does work on that thread and waits for it.
///
/// # Errors
/// The errors of [`begin`], and work that panicked.
pub(crate) fn wait<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, ObjectFailure> {
    start(work)?.wait()
}

impl<T> PendingWork<T> {
    /// Waits for the result.
    ///
    /// # Errors
    /// Work that panicked.
    pub(crate) fn wait(self) -> Result<T, ObjectFailure> {
        self.result.recv().map_err(|_| ObjectFailure::Local {
            source: io::Error::other("the thread that waits for stores did not answer"),
        })
    }
}

impl<T> Drop for PendingWork<T> {
    fn drop(&mut self) {
        // No effect on completed work.
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_waited_for_on_a_runtime_too_and_given_up_with_its_handle() {
        let outer = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(outer.block_on(async { wait(async { 7 }).unwrap() }), 7);
        let (dropped, seen) = std::sync::mpsc::channel::<()>();
        let pending = start(async move {
            std::future::pending::<()>().await;
            drop(dropped);
        });
        drop(pending.unwrap());
        assert!(seen.recv().is_err(), "what it held is dropped with it");
        let died = wait(async { panic!("for a test") });
        assert!(matches!(died, Err::<(), _>(ObjectFailure::Local { .. })));
    }
}
