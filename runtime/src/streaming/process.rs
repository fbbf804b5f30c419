//! The process of one step of one attempt: fed and read at the same time, watched, and ended with all that it started.
//!
//! Three threads move bytes between its pipes and the slot's thread, over channels with room for a few pieces, and one
//! waits for its end. The slot's thread takes whatever has come whenever it has to wait, so neither side can block the
//! other however much a command keeps back. All decisions are made on the slot's thread.
//!
//! Not here: what its lines mean ([`map`](super::map), [`reduce`](super::reduce)).

use super::bundle::UnpackedBundle;
use super::debug::{self, Failure};
use super::environment::{AttemptFacts, attempt_name, environment, split_name};
use super::folder::{EXECUTABLE, TaskFolder};
use super::forms::{OutputCutter, PairForm};
use super::pipes::{READ_BYTES, Tidings, await_exit, read_output, read_talk, spawn, write_input};
use super::reported::{CountsByName, Reported};
use super::{ShippedFile, StreamingJob};
use crate::cluster::{CommandStart, start_command};
use gristmill_scheduler::ids::AttemptId;
use gristmill_worker::api::{InputStretch, SignOfLife, TaskContext};
use gristmill_worker::prelude::*;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are gathered before a command gets them: as many as in Hadoop, where a command that closes its input
/// fails only if more than the last of these were left.
const FEED_BYTES: usize = 128 << 10;

/// Pieces on their way to a command.
const FEEDS_MAX: usize = 2;

/// Pieces on their way from a command.
const READS_MAX: usize = 8;

/// The longest line or pair that a command may write, bytes.
const LINE_BYTES_MAX: usize = 256 << 20;

/// How often the slot's thread looks whether it is still wanted.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// How long the output of a command is waited for after it has ended: something that it started may hold it open.
const DRAIN_PATIENCE: Duration = Duration::from_secs(2);

/// Who takes what a command writes.
pub(super) trait LineSink {
    /// One line, without its end.
    fn line(&mut self, line: &[u8]) -> TaskResult;
    /// A pair, where it does not write lines.
    fn pair(&mut self, key: &[u8], value: &[u8]) -> TaskResult;
    /// Whether the attempt is not wanted any more. May wait.
    fn is_cancelled(&self) -> bool;
}

/// What an attempt's commands have in common.
#[derive(Clone)]
pub(super) struct AttemptPlace {
    attempt: AttemptId,
    stretch: Option<InputStretch>,
    folder: PathBuf,
    life: SignOfLife,
    files: Vec<ShippedFile>,
    /// What of them has travelled with the job stays for as long as the attempt needs it.
    _bundle: Option<Arc<UnpackedBundle>>,
    pub partitions: u32,
}

impl AttemptPlace {
    pub fn of(job: &StreamingJob, task: &TaskContext) -> TaskResult<Self> {
        let folder = task.folder().map(Path::to_owned);
        let folder =
            folder.ok_or_else(|| TaskError::config("a command needs a worker, which has a folder"))?;
        let mut files = job.files.clone();
        let bundle = match job.bundle {
            Some(_) => {
                let place = folder.join(format!("streaming-{}-files", task.task().job));
                let unpack = |blocks: &[Block<'_>]| {
                    let bytes = blocks.first().map(|block| block.bytes()).unwrap_or_default();
                    UnpackedBundle::unpack(bytes, place).map_err(|error| {
                        TaskError::new(format!("what was shipped could not be unpacked: {error}"))
                    })
                };
                Some(task.side(0, unpack)?)
            }
            None => None,
        };
        files.extend(bundle.iter().flat_map(|bundle| bundle.files().iter().cloned()));
        Ok(Self {
            attempt: task.attempt(),
            stretch: task.stretch().cloned(),
            folder,
            files,
            _bundle: bundle,
            life: task.life(),
            partitions: task.partitions(),
        })
    }
}

/// A command that runs, or has run.
pub(super) struct TaskCommand {
    job: Arc<StreamingJob>,
    attempt: AttemptId,
    /// What a map reads, for people.
    split: Option<String>,
    words: String,
    child: Child,
    group: Pid,
    feed: Option<SyncSender<Vec<u8>>>,
    tidings: Receiver<Tidings>,
    reported: Arc<Mutex<Reported>>,
    /// Lines that it has written to standard error.
    talked: Arc<AtomicU64>,
    life: SignOfLife,
    gathered: Vec<u8>,
    cutter: OutputCutter,
    lines_written: u64,
    /// When it was last seen to read or write, and how many lines of standard error there were.
    seen: (Instant, u64),
    output_open: bool,
    talk_open: bool,
    input_open: bool,
    exited: bool,
    /// The attempt is not wanted any more: the command was killed.
    cancelled: bool,
    /// Its number may be another's by now.
    reaped: bool,
    environment: BTreeMap<OsString, OsString>,
    /// It goes after the command.
    folder: TaskFolder,
}

impl TaskCommand {
    /// Starts a command of this attempt, which writes in this form, in a fresh directory; `step` tells those of one attempt
    /// apart.
    pub fn start(
        job: &Arc<StreamingJob>,
        place: &AttemptPlace,
        words: &[String],
        (step, form): (&str, PairForm),
    ) -> TaskResult<Self> {
        let [program, arguments @ ..] = words else {
            return Err(TaskError::config("a command has no words"));
        };
        let name = format!("streaming-{}-{}-{step}", place.attempt.task.job, place.attempt.file_name());
        let debug = job.debug_of(place.attempt.task.kind).and_then(|words| words.first());
        let programs = [Some(program), debug].into_iter().flatten();
        let programs: Vec<&str> =
            programs.map(|program| program.strip_prefix("./").unwrap_or(program)).collect();
        let folder = TaskFolder::make(&place.folder, &name, &place.files, &programs).map_err(|error| {
            TaskError::config(format!("the working directory of a command could not be made: {error}"))
        })?;
        let facts = AttemptFacts {
            attempt: place.attempt,
            stretch: place.stretch.as_ref(),
            directory: folder.path(),
        };
        let environment = environment(job, &facts);
        let path = environment.get(&OsString::from("PATH")).cloned().unwrap_or_default();
        let started = look_up(program, folder.path(), &path)
            .and_then(|program| {
                start_command(&CommandStart {
                    program: &program,
                    arguments,
                    directory: folder.path(),
                    environment: &environment,
                })
            })
            .map_err(|error| cannot_run(program, folder.path(), &error))?;
        Self::attend(job, place, (words, form), started, (folder, environment))
    }

    /// Starts the threads of a process.
    fn attend(
        job: &Arc<StreamingJob>,
        place: &AttemptPlace,
        (words, form): (&[String], PairForm),
        mut child: Child,
        (folder, environment): (TaskFolder, BTreeMap<OsString, OsString>),
    ) -> TaskResult<Self> {
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(TaskError::new("a command has no pipes"));
        };
        let group = Pid::from_child(&child);
        let (feed, feeds) = sync_channel(FEEDS_MAX);
        let (tell, tidings) = sync_channel(READS_MAX);
        let reported = Arc::new(Mutex::new(Reported::default()));
        let talked = Arc::new(AtomicU64::new(0));
        let made = Self {
            job: job.clone(),
            attempt: place.attempt,
            split: place.stretch.as_ref().map(|stretch| split_name(job, stretch)),
            words: words.join(" "),
            child,
            group,
            feed: Some(feed),
            tidings,
            reported: reported.clone(),
            talked: talked.clone(),
            life: place.life.clone(),
            gathered: Vec::with_capacity(FEED_BYTES + READ_BYTES),
            cutter: OutputCutter::new(form),
            lines_written: 0,
            seen: (Instant::now(), 0),
            output_open: true,
            talk_open: true,
            input_open: true,
            exited: false,
            cancelled: false,
            reaped: false,
            environment,
            folder,
        };
        let prefix = job.reporter_prefix.clone();
        let (of_input, of_output, of_talk) = (tell.clone(), tell.clone(), tell.clone());
        spawn("command-input", move || write_input(stdin, &feeds, &of_input))?;
        spawn("command-output", move || read_output(stdout, &of_output))?;
        spawn("command-talk", move || read_talk(stderr, &prefix, &reported, &talked, &of_talk))?;
        spawn("command-end", move || await_exit(group, &tell))?;
        Ok(made)
    }

    /// Hands bytes to the command, sooner or later, and takes what it has written meanwhile.
    ///
    /// # Errors
    /// A command that takes no more, or failed, or stands still.
    pub fn feed(&mut self, bytes: &[&[u8]], sink: &mut dyn LineSink) -> TaskResult {
        if self.cancelled || !self.input_open {
            return Ok(());
        }
        for piece in bytes {
            self.gathered.extend_from_slice(piece);
        }
        if self.gathered.len() < FEED_BYTES {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.gathered, Vec::with_capacity(FEED_BYTES + READ_BYTES));
        self.send(piece, sink)?;
        if self.input_open || self.cancelled {
            return Ok(());
        }
        match self.job.early_close_after {
            Some(lines) if lines <= self.lines_written => Ok(()),
            _ => Err(self.closed_early(sink)),
        }
    }

    /// Takes what the command has written so far, without waiting.
    pub fn take_written(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        while let Ok(tidings) = self.tidings.try_recv() {
            self.take(tidings, sink)?;
        }
        Ok(())
    }

    /// Tells the command that there is no more, takes the rest of what it writes, and sees to it that it has ended.
    ///
    /// # Errors
    /// A command that failed, or stands still.
    pub fn finish(mut self, sink: &mut dyn LineSink) -> TaskResult<Self> {
        let rest = std::mem::take(&mut self.gathered);
        if !rest.is_empty() && self.input_open {
            // A command that has had enough by now has done nothing wrong.
            self.send(rest, sink)?;
        }
        self.await_end(sink)?;
        if self.cancelled {
            return Ok(self);
        }
        // A command that has failed has written what it has; why is said by its status.
        self.verdict()?;
        self.cutter.finish(sink)?;
        Ok(self)
    }

    /// Adds what the command, which has ended, has counted to the counters of its task.
    pub fn count(self, counts: &mut dyn CountsByName) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.count(|name, n| counts.add(name, n));
    }

    fn send(&mut self, mut piece: Vec<u8>, sink: &mut dyn LineSink) -> TaskResult {
        while let Some(feed) = self.feed.as_ref().filter(|_| self.input_open && !self.cancelled) {
            match feed.try_send(piece) {
                Ok(()) => return self.take_written(sink),
                Err(TrySendError::Disconnected(_)) => self.input_open = false,
                Err(TrySendError::Full(back)) => {
                    piece = back;
                    self.wait(sink)?;
                    continue;
                }
            }
            break;
        }
        Ok(())
    }

    /// Waits until the command and its pipes are through.
    fn await_end(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        self.feed = None;
        let mut exited_at = None;
        while !self.cancelled && (self.output_open || self.talk_open || !self.exited) {
            self.wait(sink)?;
            if self.exited {
                let since = *exited_at.get_or_insert_with(Instant::now);
                if DRAIN_PATIENCE < since.elapsed() {
                    // Something that it left behind holds its pipes; what is outside of its group is not waited for.
                    break;
                }
            }
        }
        Ok(())
    }

    /// Takes the next tidings, or looks whether the attempt is still wanted.
    fn wait(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        match self.tidings.recv_timeout(LOOK_PAUSE) {
            Ok(tidings) => self.take(tidings, sink),
            Err(RecvTimeoutError::Timeout) => self.look(sink),
            // All threads are gone: there is nothing left to come.
            Err(RecvTimeoutError::Disconnected) => {
                (self.output_open, self.talk_open, self.exited) = (false, false, true);
                Ok(())
            }
        }
    }

    fn look(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        self.life.show();
        let before = Instant::now();
        if sink.is_cancelled() {
            self.cancelled = true;
            return Ok(());
        }
        let talked = self.talked.load(Ordering::Relaxed);
        if talked != self.seen.1 || LOOK_PAUSE < before.elapsed() {
            // It has said something, or the attempt was suspended meanwhile.
            self.seen = (Instant::now(), talked);
        }
        let Some(limit) = self.job.timeout_ms.map(Duration::from_millis) else { return Ok(()) };
        if self.exited || self.seen.0.elapsed() < limit {
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

    fn take(&mut self, tidings: Tidings, sink: &mut dyn LineSink) -> TaskResult {
        self.seen.0 = Instant::now();
        self.life.show();
        match tidings {
            Tidings::Wrote(bytes) => {
                self.lines_written += self.cutter.push(&bytes, sink)?;
                if LINE_BYTES_MAX < self.cutter.held() {
                    let words = &self.words;
                    return Err(TaskError::new(format!(
                        "`{words}` wrote a line or a pair of more than {LINE_BYTES_MAX} bytes"
                    )));
                }
            }
            Tidings::OutputEnded => self.output_open = false,
            Tidings::TalkEnded => self.talk_open = false,
            Tidings::Took => {}
            Tidings::InputClosed => self.input_open = false,
            Tidings::Exited => self.exited = true,
        }
        Ok(())
    }

    /// What is wrong with a command that takes no more of its input: that it failed, if it did.
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

    /// Whether the command, which has ended, did well.
    fn verdict(&mut self) -> TaskResult {
        self.end_group();
        let status = self.child.wait()?;
        self.reaped = true;
        let (code, how) = match (status.code(), status.signal()) {
            (Some(code), _) => (code, String::new()),
            (None, signal) => {
                let signal = signal.unwrap_or_default();
                // As Java tells of it.
                (128 + signal, format!(" (killed by signal {signal}, not by gristmill)"))
            }
        };
        if code == 0 || !self.job.non_zero_exit_fails {
            return Ok(());
        }
        let said = format!(
            "PipeMapRed.waitOutputThreads(): subprocess failed with code {code}{how}: `{}`",
            self.words
        );
        Err(self.with_tail(said))
    }

    /// An error with what the map reads, the last lines of standard error, and what the job's own command for that says of
    /// them. The process is ended before.
    fn with_tail(&self, reason: String) -> TaskError {
        let last_words: String = {
            let reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            reported.tail().flat_map(|line| [line, "\n"]).collect()
        };
        let looked = self.job.debug_of(self.attempt.task.kind).map(|words| {
            if !self.reaped {
                self.end_group();
            }
            let (directory, environment) = (self.folder.path(), &self.environment);
            let failure = Failure { directory, environment, last_words: &last_words, reason: &reason };
            debug::look_at(&self.job, words, &failure)
        });
        let split = self.split.as_ref().map(|split| format!("Processing split: {split}"));
        let looked = looked.map(|said| format!("Debug script: {said}"));
        let parts = [Some(reason), split, Some(last_words.trim_end().to_owned()), looked];
        let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        TaskError::new(parts.join("\n"))
    }

    /// Ends whatever is left of what the command has started in its group.
    fn end_group(&self) {
        // The number cannot be another's: the command has not been reaped. A group without processes is no error.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

impl Drop for TaskCommand {
    fn drop(&mut self) {
        if !self.reaped {
            self.end_group();
            let _ = self.child.wait();
        }
    }
}

/// The file of a command: as it is named if that is absolute, else in the working directory, else in `PATH`.
pub(super) fn look_up(program: &str, directory: &Path, path: &std::ffi::OsStr) -> io::Result<PathBuf> {
    if Path::new(program).is_absolute() {
        return Ok(PathBuf::from(program));
    }
    let here = directory.join(program);
    if here.exists() {
        return Ok(here);
    }
    let places = std::env::split_paths(path).map(|folder| folder.join(program));
    let can_run = |place: &PathBuf| {
        std::fs::metadata(place)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & EXECUTABLE != 0)
    };
    let mut found = places.filter(|place| !program.contains('/') && can_run(place));
    found.next().ok_or_else(|| io::Error::from_raw_os_error(rustix::io::Errno::NOENT.raw_os_error()))
}

/// A command that cannot be started cannot be started elsewhere either, but where a machine lacks something.
fn cannot_run(program: &str, directory: &Path, error: &io::Error) -> TaskError {
    let number = error.raw_os_error().unwrap_or_default();
    let said = format!(
        "Cannot run program \"{program}\" (in directory \"{}\"): error={number}, {error}",
        directory.display()
    );
    match error.kind() {
        io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock => TaskError::new(said),
        _ => TaskError::config(said),
    }
}
