//! Pipes of a command and its exit, from the slot's thread. Only [`CommandPipes::wait`] blocks, and this
//! module makes no decisions.
//!
//! One thread serves all pipes. Separate threads would pass every piece on once more, with a wake-up each
//! time.

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::Duration;

/// Capacity of a pipe, where the system allows it, so that the command and the slot's thread rarely
/// alternate.
const PIPE_BYTES: usize = 256 << 10;

/// Interval at which the exit of a command is polled where the kernel does not report it (before Linux
/// 5.3, or forbidden).
const EXIT_PAUSE: Duration = Duration::from_millis(5);

/// Result of a write or read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moved {
    /// This many bytes were moved, at least one.
    Bytes(usize),
    /// The call would block.
    None,
    /// The pipe is closed.
    Closed,
}

/// Pending events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PipesReady {
    /// The command's input is writable or closed.
    pub input: bool,
    /// Its output is readable or closed.
    pub output: bool,
    /// Its standard error is readable or closed.
    pub talk: bool,
    /// It has just exited.
    pub ended: bool,
}

/// Non-blocking ends of a command's pipes, and its exit.
pub(super) struct CommandPipes {
    /// Input of the command; `None` once it is closed on either side, as for the others.
    pub input: Option<OwnedFd>,
    output: Option<OwnedFd>,
    talk: Option<OwnedFd>,
    process: Pid,
    /// Readable once the process has exited; `None` if the kernel does not support it.
    end: Option<OwnedFd>,
    /// True if it has exited. It is not reaped yet, so its process id is not reused.
    pub exited: bool,
}

impl CommandPipes {
    /// Takes the pipes of a process, which must not be reaped while they are used.
    ///
    /// # Errors
    /// A process without pipes, and errors of the system.
    pub fn take(child: &mut Child) -> io::Result<Self> {
        let process = Pid::from_child(child);
        let input = child.stdin.take().map(OwnedFd::from);
        let output = child.stdout.take().map(OwnedFd::from);
        let talk = child.stderr.take().map(OwnedFd::from);
        if input.is_none() || output.is_none() || talk.is_none() {
            return Err(io::Error::other("a command has no pipes"));
        }
        for pipe in [&input, &output, &talk].into_iter().flatten() {
            ioctl_fionbio(pipe, true)?;
        }
        for pipe in [&input, &output].into_iter().flatten() {
            // A user with many pipes gets smaller ones.
            let _ = fcntl_setpipe_size(pipe, PIPE_BYTES);
        }
        let end = pidfd_open(process, PidfdFlags::empty()).ok();
        Ok(Self { input, output, talk, process, end, exited: false })
    }

    /// True if more of its output or standard error may follow.
    pub fn may_tell_more(&self) -> bool {
        self.output.is_some() || self.talk.is_some()
    }

    /// Writes as many bytes to the command as it takes now.
    pub fn write(&mut self, bytes: &[u8]) -> Moved {
        let Some(input) = &self.input else { return Moved::Closed };
        let moved = moved(|| write(input, bytes));
        if moved == Moved::Closed {
            self.input = None;
        }
        moved
    }

    /// Appends the command's output to `bytes`, as far as there is room.
    pub fn read_output(&mut self, bytes: &mut Vec<u8>) -> Moved {
        read_from(&mut self.output, bytes)
    }

    /// Appends the command's standard error.
    pub fn read_talk(&mut self, bytes: &mut Vec<u8>) -> Moved {
        read_from(&mut self.talk, bytes)
    }

    /// Waits at most `longest` for an event. With `writes`, also until the command's input is writable.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn wait(&mut self, writes: bool, longest: Duration) -> io::Result<PipesReady> {
        let input = self.input.as_ref().filter(|_| writes);
        let end = self.end.as_ref().filter(|_| !self.exited);
        let watched = [
            (input, PollFlags::OUT),
            (self.output.as_ref(), PollFlags::IN),
            (self.talk.as_ref(), PollFlags::IN),
            (end, PollFlags::IN),
        ];
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(watched.len());
        polled.extend(watched.iter().filter_map(|(fd, flags)| fd.map(|fd| PollFd::new(fd, *flags))));
        let looks = self.end.is_none() && !self.exited;
        let longest = if looks { longest.min(EXIT_PAUSE) } else { longest };
        let longest = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
        match poll(&mut polled, Some(&longest)) {
            Err(Errno::INTR) => return Ok(PipesReady::default()),
            polled => polled?,
        };
        let mut found = polled.iter().map(|polled| !polled.revents().is_empty());
        let mut is_ready = |fd: Option<&OwnedFd>| fd.is_some() && found.next().unwrap_or_default();
        let (input, output) = (is_ready(input), is_ready(self.output.as_ref()));
        let (talk, ended) = (is_ready(self.talk.as_ref()), is_ready(end));
        let ended = ended || looks && has_ended(self.process);
        self.exited |= ended;
        Ok(PipesReady { input, output, talk, ended })
    }
}

/// True if a process has exited. It is not reaped.
fn has_ended(process: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(process), options).is_ok_and(|status| status.is_some())
}

fn read_from(pipe: &mut Option<OwnedFd>, bytes: &mut Vec<u8>) -> Moved {
    let Some(open) = pipe.as_ref() else { return Moved::Closed };
    // Not zeroed first, which would be a pass over all output of commands.
    let moved = moved(|| read(open.as_fd(), spare_capacity(bytes)));
    if moved == Moved::Closed {
        *pipe = None;
    }
    moved
}

/// Repeats a call of the kernel until it is not interrupted.
fn moved(mut call: impl FnMut() -> Result<usize, Errno>) -> Moved {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Moved::None,
            Ok(0) | Err(_) => return Moved::Closed,
            Ok(count) => return Moved::Bytes(count),
        }
    }
}
