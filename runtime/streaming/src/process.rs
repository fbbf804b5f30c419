//! The process of one step of one attempt: fed and read at the same time, watched, and ended with all
//! processes it started.
//!
//! Everything runs on the slot's thread. Whenever it waits for the command to take more input it reads
//! available output. So neither side can block the other, however much a command buffers.
//!
//! Not here: the meaning of its lines ([`map`](super::map), [`reduce`](super::reduce)), reading and
//! writing its pipes ([`pipes`](super::pipes)), and handling its standard error
//! ([`reported`](super::reported)).

use super::columns::Batch;
use super::directory::TaskDirectory;
use super::environment::{attempt_name, environment, split_name};
use super::job::StreamingJob;
use super::pairs::{OutputCutter, length_of};
use super::pipes::{CommandPipes, Moved, PipesReady};
use super::place::AttemptPlace;
use super::program::{cannot_run, look_up, without_interpreter};
use super::reported::Talk;
use super::sink::LineSink;
use gristmill_runtime::cluster::{CommandStart, end_strays, start_command};
use gristmill_scheduler::ids::AttemptId;
use gristmill_worker::api::SignOfLife;
use gristmill_worker::prelude::*;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that are collected before they are written to a command.
const FEED_BYTES: usize = 128 << 10;

/// Maximum bytes that a command may leave unread when it closes its input, more of which fail it. It
/// equals Hadoop's buffer, whose last content counts as read.
const UNREAD_BYTES_MAX: u64 = 128 << 10;

/// Additional room for the pair that fills the buffer.
const FEED_SLACK_BYTES: usize = 4 << 10;

/// Maximum bytes that are read from a command at once.
const READ_BYTES: usize = 256 << 10;

/// Maximum number of reads from a command before it is fed again.
const READS_MAX: usize = 8;

/// Maximum bytes of a line or pair that a command may write.
const LINE_BYTES_MAX: usize = 256 << 20;

/// Interval at which the slot's thread checks if the attempt is cancelled.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Timeout for the output of a command after its exit: a process that it started may hold the pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Command that is running, or has run.
pub(super) struct TaskCommand {
    job: Arc<StreamingJob>,
    attempt: AttemptId,
    /// Input range of a map, for messages.
    split: Option<String>,
    words: String,
    child: Child,
    group: Pid,
    pipes: CommandPipes,
    talk: Talk,
    life: SignOfLife,
    /// Bytes to be written to the command.
    gathered: Vec<u8>,
    /// Pairs to be appended to them.
    batch: Batch,
    /// Number of bytes that it has not read and never will.
    unread: u64,
    /// Buffer of the last read, reused for its memory.
    read: Vec<u8>,
    cutter: OutputCutter,
    lines_written: u64,
    /// Number of bytes intended for it, and of bytes that it has written.
    moved: (u64, u64),
    /// Time of its last read or write.
    seen: Instant,
    /// Time of the last check if the attempt is cancelled.
    looked: Instant,
    exited_at: Option<Instant>,
    /// True if the attempt is cancelled and the command was killed.
    cancelled: bool,
    /// True if it was reaped, after which its process id may be reused.
    reaped: bool,
    /// Dropped after the command.
    directory: TaskDirectory,
}

impl TaskCommand {
    /// Starts a command of this attempt in a new directory. `step` distinguishes the commands of one attempt.
    pub fn start(
        job: &Arc<StreamingJob>,
        place: &AttemptPlace,
        words: &[String],
        step: &str,
    ) -> TaskResult<Self> {
        let [program, arguments @ ..] = words else {
            return Err(TaskError::config("a command has no words"));
        };
        let name = format!("streaming-{}-{}-{step}", place.attempt.task.job, place.attempt.file_name());
        let own = program.strip_prefix("./").unwrap_or(program);
        let directory = TaskDirectory::make(&place.directory, &name, &place.files, own).map_err(|error| {
            let said = format!("the working directory of a command could not be made: {error}");
            match error.kind() {
                // Of the shipped files.
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => TaskError::config(said),
                _ => TaskError::worker(said),
            }
        })?;
        let environment = environment(job, place, directory.path());
        let path = environment.get(&OsString::from("PATH")).cloned().unwrap_or_default();
        let started = look_up(program, directory.path(), &path)
            .and_then(|file| {
                start_command(&CommandStart {
                    program: &file,
                    arguments,
                    directory: directory.path(),
                    environment: &environment,
                })
                .map_err(|error| without_interpreter(&file, error))
            })
            .map_err(|error| cannot_run(program, directory.path(), &error))?;
        Self::adopt(job, place, words, started, directory)
    }

    /// Takes over a process that has been started.
    fn adopt(
        job: &Arc<StreamingJob>,
        place: &AttemptPlace,
        words: &[String],
        mut child: Child,
        directory: TaskDirectory,
    ) -> TaskResult<Self> {
        let pipes = match CommandPipes::take(&mut child) {
            Ok(pipes) => pipes,
            Err(error) => {
                // The returned error has the cause.
                let _ = child.kill().and_then(|()| child.wait());
                return Err(TaskError::worker(format!("the pipes of a command cannot be used: {error}")));
            }
        };
        Ok(Self {
            job: job.clone(),
            attempt: place.attempt,
            split: place.stretch.as_ref().map(|stretch| split_name(job, stretch)),
            words: words.join(" "),
            group: Pid::from_child(&child),
            child,
            pipes,
            talk: Talk::default(),
            life: place.life.clone(),
            gathered: Vec::with_capacity(FEED_BYTES + FEED_SLACK_BYTES),
            batch: Batch::default(),
            unread: 0,
            read: Vec::with_capacity(READ_BYTES),
            cutter: OutputCutter::new(job),
            lines_written: 0,
            moved: (0, 0),
            seen: Instant::now(),
            looked: Instant::now(),
            exited_at: None,
            cancelled: false,
            reaped: false,
            directory,
        })
    }

    /// Passes bytes to the command, possibly later, and handles its output meanwhile.
    ///
    /// # Errors
    /// A command that reads no more, failed, or hangs.
    #[inline]
    pub fn feed(&mut self, bytes: &[&[u8]], sink: &mut dyn LineSink) -> TaskResult {
        for piece in bytes {
            self.gathered.extend_from_slice(piece);
        }
        if self.gathered.len() < FEED_BYTES { Ok(()) } else { self.feed_gathered(sink) }
    }

    /// Passes a pair of the engine to the command, a combiner or a reducer.
    ///
    /// # Errors
    /// The errors of [`feed`](Self::feed).
    pub fn feed_pair(&mut self, (key, value): (&[u8], &[u8]), sink: &mut dyn LineSink) -> TaskResult {
        if self.job.has_lengths && self.batch.push(key, value, &mut self.gathered) {
            return if FEED_BYTES <= self.gathered.len() { self.feed_gathered(sink) } else { Ok(()) };
        }
        if self.job.has_lengths {
            return self.feed(&[&length_of(key)?, key, &length_of(value)?, value], sink);
        }
        for piece in [key, self.job.reduce_input_separator.as_bytes(), value] {
            self.gathered.extend_from_slice(piece);
        }
        self.feed(&[b"\n"], sink)
    }

    /// Discards all output of the command.
    pub fn discard_output(&mut self) {
        self.cutter = OutputCutter::Nothing;
    }

    /// Does the same as [`feed`](Self::feed), for many bytes, which are not collected before.
    ///
    /// # Errors
    /// The errors of [`feed`](Self::feed).
    pub fn feed_block(&mut self, bytes: &[u8], sink: &mut dyn LineSink) -> TaskResult {
        if self.gathered.len() + bytes.len() < FEED_BYTES {
            self.gathered.extend_from_slice(bytes);
            return Ok(());
        }
        self.feed_gathered(sink)?;
        self.send(bytes, sink)
    }

    #[inline(never)]
    fn feed_gathered(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        let mut gathered = std::mem::take(&mut self.gathered);
        let sent = self.send(&gathered, sink);
        gathered.clear();
        self.gathered = gathered;
        sent
    }

    /// Closes the command's input, handles the rest of its output, and makes sure that it has ended.
    ///
    /// # Errors
    /// A command that failed, or hangs.
    pub fn finish(mut self, sink: &mut dyn LineSink) -> TaskResult<Self> {
        self.batch.flush(&mut self.gathered);
        self.feed_gathered(sink)?;
        self.await_end(sink)?;
        if self.cancelled {
            return Ok(self);
        }
        // A failed command has written everything. Its status gives the reason.
        self.verdict()?;
        self.cutter.finish(sink)?;
        Ok(self)
    }

    /// Adds the counts of the command, which has ended, to the counters of its task.
    pub fn count(mut self, add: impl FnMut(&str, u64)) {
        self.talk.reported.count(add);
    }

    /// Writes bytes to the command until it has read them all, or reads no more, and handles its output
    /// meanwhile.
    fn send(&mut self, mut bytes: &[u8], sink: &mut dyn LineSink) -> TaskResult {
        self.moved.0 += bytes.len() as u64;
        while !bytes.is_empty() && self.pipes.input.is_some() && !self.cancelled {
            match self.pipes.write(bytes) {
                Moved::Bytes(count) => {
                    bytes = &bytes[count..];
                    self.is_seen();
                }
                // A process that it left behind holds its input, and will not read it either.
                Moved::None if self.is_drained() => self.pipes.input = None,
                Moved::None => self.wait(true, sink)?,
                Moved::Closed => {}
            }
        }
        self.unread += bytes.len() as u64;
        self.take_written(sink)?;
        if self.unread <= UNREAD_BYTES_MAX || self.cancelled {
            return Ok(());
        }
        match self.job.early_close_after {
            Some(lines) if lines <= self.lines_written => Ok(()),
            _ => Err(self.closed_early(sink)),
        }
    }

    /// Handles the command's output and standard error so far, without waiting.
    fn take_written(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        for _ in 0..READS_MAX {
            if !self.take_output(sink)? {
                break;
            }
        }
        self.take_talk();
        self.look_now_and_then(sink)
    }

    /// Waits until the command has exited and its pipes are closed.
    fn await_end(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        self.pipes.input = None;
        while !self.cancelled && (self.pipes.may_tell_more() || !self.pipes.exited) {
            self.wait(false, sink)?;
            if self.is_drained() {
                // A process that it left behind holds its pipes. Processes outside of its group are not
                // waited for.
                break;
            }
        }
        self.talk.end_line();
        Ok(())
    }

    /// True if it exited long enough ago that all its output has arrived.
    fn is_drained(&self) -> bool {
        self.exited_at.is_some_and(|at| DRAIN_TIMEOUT < at.elapsed())
    }

    /// Waits for the command and handles its output, or checks if the attempt is cancelled.
    fn wait(&mut self, writes: bool, sink: &mut dyn LineSink) -> TaskResult {
        let ready = self.pipes.wait(writes, LOOK_PAUSE)?;
        if ready == PipesReady::default() {
            return self.check_process(sink);
        }
        if ready.output {
            self.take_output(sink)?;
        }
        if ready.talk {
            self.take_talk();
        }
        if ready.ended {
            self.exited_at = Some(Instant::now());
        }
        self.look_now_and_then(sink)
    }

    /// Reads a piece of the command's output. Returns true if there was one.
    fn take_output(&mut self, sink: &mut dyn LineSink) -> TaskResult<bool> {
        self.read.clear();
        if !matches!(self.pipes.read_output(&mut self.read), Moved::Bytes(_)) {
            return Ok(false);
        }
        self.is_seen();
        self.moved.1 += self.read.len() as u64;
        self.lines_written += self.cutter.push(&self.read, sink)?;
        if LINE_BYTES_MAX < self.cutter.held() {
            let words = &self.words;
            return Err(TaskError::new(format!(
                "`{words}` wrote a line or a pair of more than {LINE_BYTES_MAX} bytes"
            )));
        }
        Ok(true)
    }

    /// Reads the command's standard error.
    fn take_talk(&mut self) {
        for _ in 0..READS_MAX {
            self.read.clear();
            if !matches!(self.pipes.read_talk(&mut self.read), Moved::Bytes(_)) {
                break;
            }
            self.is_seen();
            self.talk.push(&self.read);
        }
    }

    /// Records that it has read or written.
    fn is_seen(&mut self) {
        self.seen = Instant::now();
        self.life.show();
    }

    /// Checks if the attempt is cancelled, if the last check is old enough.
    fn look_now_and_then(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        if self.looked.elapsed() < LOOK_PAUSE { Ok(()) } else { self.check_process(sink) }
    }

    fn check_process(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        self.life.show();
        let before = Instant::now();
        if sink.is_cancelled() {
            self.cancelled = true;
            return Ok(());
        }
        self.looked = Instant::now();
        if LOOK_PAUSE < self.looked.duration_since(before) {
            // The attempt was suspended meanwhile.
            self.seen = self.looked;
        }
        let Some(limit) = self.job.timeout_ms.map(Duration::from_millis) else { return Ok(()) };
        if self.pipes.exited || self.seen.elapsed() < limit {
            return Ok(());
        }
        let attempt = attempt_name(self.job.stamp, self.attempt);
        let said = format!(
            "Task {attempt} failed to report status for {} seconds. Killing! `{}` neither read nor wrote",
            limit.as_secs_f64(),
            self.words
        );
        Err(self.with_tail(said))
    }

    /// Returns the error of a command that reads no more of its input: its failure, if it failed.
    fn closed_early(&mut self, sink: &mut dyn LineSink) -> TaskError {
        if let Err(error) = self.await_end(sink).and_then(|()| self.verdict()) {
            return error;
        }
        let said = format!(
            "Broken pipe: `{}` closed its standard input before all of it was written; let it read to the end, or set \
             stream.minRecWrittenToEnableSkip_=0",
            self.words
        );
        self.with_tail(said)
    }

    /// Checks the exit status of the command, which has ended.
    fn verdict(&mut self) -> TaskResult {
        self.end_group();
        let status = self.child.wait()?;
        self.reaped = true;
        end_strays(self.directory.path());
        let (code, how) = match (status.code(), status.signal()) {
            (Some(code), _) => (code, String::new()),
            (None, signal) => {
                let signal = signal.unwrap_or_default();
                // As Java reports it.
                (128 + signal, format!(" (killed by signal {signal}, not by gristmill)"))
            }
        };
        if code == 0 || !self.job.non_zero_exit_fails {
            return self.check_end_mark(code);
        }
        let said = format!(
            "PipeMapRed.waitOutputThreads(): subprocess failed with code {code}{how}: `{}`",
            self.words
        );
        Err(self.with_tail(said))
    }

    /// Checks the end mark of a function runner, which reports what it has read and written, as its
    /// status does not show that it is complete.
    fn check_end_mark(&self, code: i32) -> TaskResult {
        if !self.job.has_lengths || self.talk.reported.end == Some(self.moved) {
            return Ok(());
        }
        let (given, got) = self.moved;
        let reported = self.talk.reported.end.map_or_else(
            || "no end of its task".to_owned(),
            |(read, written)| format!("an end after {read} bytes of input and {written} of output"),
        );
        Err(self.with_tail(format!(
            "`{}` ended with code {code} and reported {reported}, after it was given {given} bytes and had written {got}: a \
             function must return; one that calls exit or os._exit, or starts what does, loses pairs",
            self.words
        )))
    }

    /// Returns an error with the map's input range and the last lines of standard error.
    fn with_tail(&self, reason: String) -> TaskError {
        let last_words: String = self.talk.reported.tail().flat_map(|line| [line, "\n"]).collect();
        let split = self.split.as_ref().map(|split| format!("Processing split: {split}"));
        let parts = [Some(reason), split, Some(last_words.trim_end().to_owned())];
        let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        TaskError::new(parts.join("\n"))
    }

    /// Kills all remaining processes of the command's group.
    fn end_group(&self) {
        // The process id is not reused, as the command has not been reaped. A group without processes is
        // not an error.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

impl Drop for TaskCommand {
    fn drop(&mut self) {
        if !self.reaped {
            self.end_group();
            let _ = self.child.wait();
            end_strays(self.directory.path());
        }
    }
}
