//! A process of a shipped program, started by its worker, which talks to it over its standard input.

use crate::private_memory::keep_memory_private;
use gristmill_runtime::exit;
use gristmill_runtime::registry::Registry;
use gristmill_worker::agent::runners;
use gristmill_worker::agent::slots;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Executes the worker's orders until the worker ends.
pub(super) fn runner(registry: Registry) -> anyhow::Result<u8> {
    keep_memory_private();
    // The socket moves to a descriptor that programs started by user code do not inherit; they read nothing.
    let socket = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    slots::install_panic_hook(exit::worker::BROKEN, runners::say_broken);
    let served = runners::serve(UnixStream::from(socket), Arc::new(registry));
    if let Err(error) = &served {
        let why = gristmill_runtime::chain(error);
        crate::terminal::stderr_line(&why);
        runners::say_broken(&why);
    }
    // The attempt's thread may still be inside user code, which nothing can stop: end it with the process.
    std::process::exit(if served.is_ok() { i32::from(exit::OK) } else { exit::worker::BROKEN })
}
