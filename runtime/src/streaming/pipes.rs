//! The threads around a process: they move bytes between its pipes and channels with little room, and decide nothing.

use super::fields::LineCutter;
use super::reported::{Reported, TalkLine};
use gristmill_worker::prelude::TaskResult;
use rustix::buffer::spare_capacity;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};

/// Bytes that are read from a command at once.
pub(super) const READ_BYTES: usize = 64 << 10;

/// The longest line of standard error that is kept together, bytes.
const TALK_LINE_BYTES_MAX: usize = 64 << 10;

/// What the threads of a process tell.
pub(super) enum Tidings {
    /// It has written this to its standard output.
    Wrote(Vec<u8>),
    /// Its standard output was closed.
    OutputEnded,
    /// Its standard error was closed.
    TalkEnded,
    /// It has taken a piece of its input.
    Took,
    /// It takes no more.
    InputClosed,
    /// It has ended, and waits to be reaped.
    Exited,
}

/// Starts a thread.
pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> TaskResult {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
    Ok(())
}

/// Hands pieces to a command until there are no more, or it takes no more.
pub(super) fn write_input(mut stdin: impl Write, feeds: &Receiver<Vec<u8>>, tell: &SyncSender<Tidings>) {
    for piece in feeds {
        if stdin.write_all(&piece).is_err() {
            let _ = tell.send(Tidings::InputClosed);
            return;
        }
        if tell.send(Tidings::Took).is_err() {
            return;
        }
    }
}

/// Takes what a command writes, piece by piece.
pub(super) fn read_output(stdout: impl AsFd, tell: &SyncSender<Tidings>) {
    loop {
        // Not zeroed first: that would be a pass over all that commands write.
        let mut bytes = Vec::with_capacity(READ_BYTES);
        match rustix::io::read(&stdout, spare_capacity(&mut bytes)) {
            Ok(got) if 0 < got => {
                if tell.send(Tidings::Wrote(bytes)).is_err() {
                    return;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            _ => break,
        }
    }
    let _ = tell.send(Tidings::OutputEnded);
}

/// Takes what a command says: what is for the framework is kept here, all else goes where the worker's own user code
/// writes, line by line.
pub(super) fn read_talk(
    mut stderr: impl Read,
    prefix: &str,
    reported: &Mutex<Reported>,
    talked: &AtomicU64,
    tell: &SyncSender<Tidings>,
) {
    let mut cutter = LineCutter::default();
    let take = |line: &[u8]| -> Result<(), std::convert::Infallible> {
        talked.fetch_add(1, Ordering::Relaxed);
        let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
        let said = match reported.take(line, prefix) {
            TalkLine::Taken => return Ok(()),
            TalkLine::Text(line) => [line, b"\n"].concat(),
            TalkLine::Wrong(line) => [line, b" (not GROUP,NAME,NUMBER: ignored)\n"].concat(),
        };
        drop(reported);
        // Where it cannot be written nobody reads it.
        let _ = io::stderr().lock().write_all(&said);
        Ok(())
    };
    let mut bytes = vec![0; READ_BYTES];
    loop {
        match stderr.read(&mut bytes) {
            Ok(got) if 0 < got => {
                let Ok(()) = cutter.push(&bytes[..got], take);
                if TALK_LINE_BYTES_MAX < cutter.held() {
                    let Ok(()) = cutter.finish(take);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    let Ok(()) = cutter.finish(take);
    let _ = tell.send(Tidings::TalkEnded);
}

/// Waits for the end of a process and leaves it to be reaped, so that its number stays its own.
pub(super) fn await_exit(process: Pid, tell: &SyncSender<Tidings>) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(process), options).is_err_and(|error| error == rustix::io::Errno::INTR) {}
    let _ = tell.send(Tidings::Exited);
}
