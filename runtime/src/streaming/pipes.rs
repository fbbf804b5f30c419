//! The pipes of a command and its end, as the slot's thread sees them: nothing here waits but [`CommandPipes::wait`], and
//! nothing here decides.
//!
//! One thread serves all of them: threads of their own would have every piece handed over twice, and wake each time.

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::Duration;

/// Bytes that a pipe holds, where the system allows as many: so that the command and the slot's thread take turns rarely.
const PIPE_BYTES: usize = 256 << 10;

/// How often the end of a command is looked for where the kernel does not tell of it (before Linux 5.3, or forbidden).
const EXIT_PAUSE: Duration = Duration::from_millis(5);

/// What came of writing or reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moved {
    /// So many bytes, at least one.
    Bytes(usize),
    /// None at the moment.
    None,
    /// None ever again: the pipe is closed.
    Closed,
}

/// What there is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ready {
    /// The command takes more, or never will.
    pub input: bool,
    /// It has written something, or will write no more.
    pub output: bool,
    /// It has said something, or will say no more.
    pub talk: bool,
    /// It has ended just now.
    pub ended: bool,
}

impl Ready {
    /// Whether there is anything to do.
    pub fn any(self) -> bool {
        self.input || self.output || self.talk || self.ended
    }
}

/// The near ends of a command's pipes, none of which blocks, and its end.
pub(super) struct CommandPipes {
    /// `None` once it is closed on either side. So are the others.
    input: Option<OwnedFd>,
    output: Option<OwnedFd>,
    talk: Option<OwnedFd>,
    process: Pid,
    /// Is readable once the process has ended; `None` if the kernel does not tell.
    end: Option<OwnedFd>,
    exited: bool,
}

impl CommandPipes {
    /// Takes the pipes of a process, which must not be reaped while they are used.
    ///
    /// # Errors
    /// A process without pipes, and what the system says.
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
            // A user with many pipes has to live with smaller ones.
            let _ = fcntl_setpipe_size(pipe, PIPE_BYTES);
        }
        let end = pidfd_open(process, PidfdFlags::empty()).ok();
        Ok(Self { input, output, talk, process, end, exited: false })
    }

    pub fn input_is_open(&self) -> bool {
        self.input.is_some()
    }

    /// Tells the command that there is no more.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Whether there may be more of what it writes or says.
    pub fn may_tell_more(&self) -> bool {
        self.output.is_some() || self.talk.is_some()
    }

    /// Whether it has ended. It waits to be reaped then, so that its number stays its own.
    pub fn has_exited(&self) -> bool {
        self.exited
    }

    /// Hands as many bytes to the command as it takes now.
    pub fn write(&mut self, bytes: &[u8]) -> Moved {
        let Some(input) = &self.input else { return Moved::Closed };
        let moved = moved(|| write(input, bytes));
        if moved == Moved::Closed {
            self.input = None;
        }
        moved
    }

    /// Adds what the command has written to `bytes`, as far as there is room.
    pub fn read_output(&mut self, bytes: &mut Vec<u8>) -> Moved {
        read_from(&mut self.output, bytes)
    }

    /// Adds what it has said.
    pub fn read_talk(&mut self, bytes: &mut Vec<u8>) -> Moved {
        read_from(&mut self.talk, bytes)
    }

    /// Waits until there is something to do, for so long at most; `writes`: as soon as the command takes more, too.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait(&mut self, writes: bool, longest: Duration) -> io::Result<Ready> {
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
            Err(Errno::INTR) => return Ok(Ready::default()),
            polled => polled?,
        };
        let mut found = polled.iter().map(|polled| !polled.revents().is_empty());
        let mut is_ready = |fd: Option<&OwnedFd>| fd.is_some() && found.next().unwrap_or_default();
        let (input, output) = (is_ready(input), is_ready(self.output.as_ref()));
        let (talk, ended) = (is_ready(self.talk.as_ref()), is_ready(end));
        let ended = ended || looks && has_ended(self.process);
        self.exited |= ended;
        Ok(Ready { input, output, talk, ended })
    }
}

/// Whether a process has ended; it is left to be reaped.
fn has_ended(process: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(process), options).is_ok_and(|status| status.is_some())
}

fn read_from(pipe: &mut Option<OwnedFd>, bytes: &mut Vec<u8>) -> Moved {
    let Some(open) = pipe.as_ref() else { return Moved::Closed };
    // Not zeroed first: that would be a pass over all that commands write.
    let moved = moved(|| read(open.as_fd(), spare_capacity(bytes)));
    if moved == Moved::Closed {
        *pipe = None;
    }
    moved
}

/// Calls the kernel until it says something.
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
