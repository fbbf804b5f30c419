//! Slots: threads that run one attempt at a time, start to finish, blocking.
//!
//! A panic of user code is caught and costs the attempt. Not here: which attempt runs (the master decides) and
//! the connection to the master (`agent`).

use super::begun::Begun;
use super::capture::Mark;
use super::files::JobFiles;
use super::work::Work;
use crate::api::JobPlan;
use crate::budget::Budget;
use crate::commit;
use crate::fault;
use crate::http::{self, Endpoint, HttpError, Pool, Secret};
use crate::input::{SideInputs, Split};
use crate::output::Output;
use crate::protocol::{AttemptReport, FailureClass, JobOrder, Part};
use crate::segment::{MapOutput, SpillDirs};
use crate::shuffle::store::Held;
use crate::task::{self, Fault, PartDone, Progress, TaskFailure, TaskSettings, TaskStats};
use crossbeam_channel::Receiver;
use gristmill_scheduler::ids::{AttemptId, TaskKind};
use gristmill_scheduler::units::Bytes;
use hyper::{Method, StatusCode};
use std::cell::RefCell;
use std::fs;
use std::io::Read;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// Longest message of a failed attempt in bytes; the rest is cut.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// Bytes of a part that are read at once to be sent.
const PART_CHUNK_BYTES: usize = 512 << 10;

/// Such chunks that wait for the socket.
const PART_CHUNKS_AHEAD: usize = 2;

/// A job as this worker runs it.
pub struct RunningJob {
    /// As the master described it.
    pub order: JobOrder,
    /// Its functions, or why there are none.
    pub plan: Result<JobPlan, String>,
    /// Where its files are.
    pub files: Arc<JobFiles>,
    /// Its side inputs.
    pub side: Arc<SideInputs>,
    /// Limits of its tasks.
    pub settings: TaskSettings,
    /// Where its parts go; found out by the first attempt that needs to know.
    pub destination: OnceLock<Destination>,
}

/// Where parts are published.
#[derive(Clone, Debug)]
pub enum Destination {
    /// This worker sees the submitter's output directory.
    Shared(PathBuf),
    /// It does not: parts are sent to the attached submitter.
    Submitter(Endpoint),
}

/// Work for a slot.
pub struct Assignment {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its job.
    pub job: Arc<RunningJob>,
    /// Its input.
    pub input: AttemptInput,
    /// Where it tells how far it is, and is told to stop.
    pub progress: Arc<Progress>,
    /// Brings the answer to the request to commit; closed if the attempt is not wanted any more.
    pub permit: Receiver<Permit>,
}

/// The input of an attempt.
pub enum AttemptInput {
    /// A map reads a split.
    Split(Split),
    /// A reduce reads the gathered segments of its partition, in map order.
    Segments(Vec<Held>),
}

/// The answer to a request to commit.
#[derive(Clone, Copy, Debug)]
pub enum Permit {
    /// Publish; `replace` if an earlier holder of the permit may have done so.
    Granted {
        /// See [`commit::publish`].
        replace: bool,
    },
    /// Another attempt publishes.
    Refused,
}

/// What a slot says to the control loop.
pub enum SlotEvent {
    /// The attempt has built its part and asks to publish it.
    WantsCommit(AttemptId),
    /// The attempt has ended.
    Ended {
        /// The attempt.
        attempt: AttemptId,
        /// How.
        result: Result<Done, Failed>,
        /// What it did.
        report: AttemptReport,
        /// How much user code of this process had written when it ended; 0 if nobody catches that.
        written: u64,
    },
}

/// What an attempt leaves behind.
pub enum Done {
    /// A map output to serve.
    Output(MapOutput),
    /// A published part.
    Part(Part),
}

/// Why an attempt ended badly.
#[derive(Debug)]
pub struct Failed {
    /// Whose fault.
    pub class: FailureClass,
    /// One line.
    pub message: String,
}

/// What slots share.
#[derive(Clone)]
pub struct SlotSetting {
    /// All memory that the worker may use.
    pub memory: Bytes,
    /// The part of it that holds outputs and gathered segments.
    pub budget: Budget,
    /// Where runs go when it does not suffice.
    pub spill: SpillDirs,
    /// Connections to the submitter.
    pub pool: Pool,
    /// Drives them.
    pub runtime: tokio::runtime::Handle,
    /// The worker's clock starts here.
    pub epoch: Instant,
    /// To the control loop.
    pub events: UnboundedSender<SlotEvent>,
    /// Where slots note what they begin.
    pub begun: Begun,
    /// Tells how much user code has written, if that is caught.
    pub written: Option<Mark>,
    /// The largest memory of the process, looked up now and then.
    pub memory_peak: Arc<MemoryPeak>,
}

thread_local! {
    /// What the panic hook saw last on this thread.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Remembers the message and place of a panic for the thread it happens on, and says it on stderr.
pub fn install_panic_hook() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or("(no message)");
        let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        PANIC.with_borrow_mut(|last| *last = Some(format!("panicked{place}: {text}")));
        before(info);
    }));
}

/// Starts `count` slot threads that take assignments until there are no more.
///
/// # Errors
/// A thread that cannot be started.
pub(super) fn start(count: u32, work: &Work, setting: &SlotSetting) -> std::io::Result<()> {
    for number in 0..count {
        let (work, setting) = (work.clone(), setting.clone());
        std::thread::Builder::new().name(format!("slot-{number}")).spawn(move || {
            while let Some(assignment) = work.next() {
                setting.begun.note(number, assignment.attempt);
                run(&assignment, &setting);
            }
        })?;
    }
    Ok(())
}

fn run(assignment: &Assignment, setting: &SlotSetting) {
    let attempt = assignment.attempt;
    let started_ns = setting.epoch.elapsed().as_nanos() as u64;
    let cpu_before = thread_cpu_ns();
    let mut stats = TaskStats::default();
    PANIC.with_borrow_mut(|last| *last = None);
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| execute(assignment, setting, &mut stats)));
    let result = result.unwrap_or_else(|_| {
        let message = PANIC.with_borrow_mut(Option::take).unwrap_or_else(|| "panicked".to_owned());
        Err(Failed { class: FailureClass::User, message: clean(&message) })
    });
    if assignment.attempt.task.kind == TaskKind::Reduce || result.is_err() {
        remove_built(assignment, setting);
    }
    let progress = &assignment.progress;
    let ended_ns = setting.epoch.elapsed().as_nanos() as u64;
    let report = AttemptReport {
        started_ns,
        ended_ns,
        records_in: progress.records_in.load(Ordering::Relaxed),
        bytes_in: progress.bytes_in.load(Ordering::Relaxed),
        records_out: progress.records_out.load(Ordering::Relaxed),
        bytes_out: progress.bytes_out.load(Ordering::Relaxed),
        spills: progress.spills.load(Ordering::Relaxed),
        spilled_bytes: progress.spilled_bytes.load(Ordering::Relaxed),
        local_bytes: stats.local_bytes,
        counters: stats.counters,
        cpu_ns: thread_cpu_ns().saturating_sub(cpu_before),
        memory_peak_bytes: setting.memory_peak.bytes(ended_ns, attempt.task.kind == TaskKind::Reduce),
        memory_budget_bytes: setting.memory.get(),
        kept_peak_bytes: setting.budget.peak_bytes() as u64,
        ..AttemptReport::default()
    };
    let written = setting.written.as_ref().map_or(0, Mark::now);
    // The loop outlives its slots unless the process is ending.
    let _ = setting.events.send(SlotEvent::Ended { attempt, result, report, written });
}

/// Everything an attempt does, with its result still to be reported.
fn execute(assignment: &Assignment, setting: &SlotSetting, stats: &mut TaskStats) -> Result<Done, Failed> {
    let job = &assignment.job;
    let plan = job
        .plan
        .as_ref()
        .map_err(|message| Failed { class: FailureClass::Config, message: clean(message) })?;
    let attempt = assignment.attempt;
    let progress = &assignment.progress;
    match &assignment.input {
        AttemptInput::Split(split) if !plan.is_map_only() => {
            fault::place("map");
            let done = task::run_map(
                plan,
                attempt,
                split,
                &*job.files,
                job.side.clone(),
                &job.settings,
                &setting.budget,
                progress,
            )
            .map_err(|failure| failed(&failure))?;
            *stats = done.stats;
            Ok(Done::Output(done.output))
        }
        AttemptInput::Split(split) => {
            let (output, built) = open_output(assignment, setting)?;
            let done = task::run_map_only(
                plan,
                attempt,
                split,
                &*job.files,
                job.side.clone(),
                &job.settings,
                progress,
                output,
            );
            finish_part(assignment, setting, done, &built, stats)
        }
        AttemptInput::Segments(held) => {
            fault::place("reduce");
            let (output, built) = open_output(assignment, setting)?;
            let segments = held.iter().map(|held| held.data.clone()).collect();
            let done = task::run_reduce(
                plan,
                attempt,
                segments,
                job.side.clone(),
                &job.settings,
                &setting.budget,
                progress,
                output,
            );
            finish_part(assignment, setting, done, &built, stats)
        }
    }
}

/// The name under which a task's part is published.
#[must_use]
pub fn part_name(attempt: AttemptId) -> String {
    format!("part-{:05}", attempt.task.index)
}

fn destination(job: &RunningJob) -> Result<&Destination, Failed> {
    if let Some(known) = job.destination.get() {
        return Ok(known);
    }
    let directory = job.order.output.to_path();
    let probe = directory.join(commit::TEMPORARY).join(&job.order.output_probe);
    let found = match (probe.exists(), &job.order.submitter) {
        (true, _) => Destination::Shared(directory.to_path_buf()),
        (false, Some(endpoint)) => Destination::Submitter(endpoint.clone()),
        (false, None) => {
            return Err(Failed {
                class: FailureClass::Output,
                message: format!("the output directory {} is not visible here", job.order.output),
            });
        }
    };
    Ok(job.destination.get_or_init(|| found))
}

/// Where an attempt builds its part.
fn built_path(assignment: &Assignment, setting: &SlotSetting) -> Result<PathBuf, Failed> {
    // The probe's name differs from job to job, also between jobs of different masters: an attempt that lingers
    // after its job has ended must not meet one of the next job in the same output directory.
    let name = format!("{}-{}", assignment.job.order.output_probe, assignment.attempt.file_name());
    Ok(match destination(&assignment.job)? {
        Destination::Shared(directory) => directory.join(commit::TEMPORARY).join(name),
        Destination::Submitter(_) => {
            setting.spill.first().join(format!("{}-{name}", assignment.attempt.task.job))
        }
    })
}

fn open_output(assignment: &Assignment, setting: &SlotSetting) -> Result<(Output, PathBuf), Failed> {
    let built = built_path(assignment, setting)?;
    // No folder is made for it: if `_temporary` is gone, the job is over and must not come back.
    let output = Output::create(&built).map_err(|source| output_failed(&built, &source))?;
    Ok((output, built))
}

fn output_failed(path: &Path, source: &std::io::Error) -> Failed {
    Failed {
        class: FailureClass::Output,
        message: clean(&format!("could not write {}: {source}", path.display())),
    }
}

fn finish_part(
    assignment: &Assignment,
    setting: &SlotSetting,
    done: Result<PartDone, TaskFailure>,
    built: &Path,
    stats: &mut TaskStats,
) -> Result<Done, Failed> {
    let done = done.map_err(|failure| failed(&failure))?;
    *stats = done.stats;
    let name = part_name(assignment.attempt);
    let part = Part { name, bytes: done.bytes, records: done.records, crc32c: done.crc32c };
    let job = &assignment.job;
    let shared = matches!(destination(job)?, Destination::Shared(_));
    if job.order.sync && shared {
        let sync = fs::File::open(built).and_then(|file| file.sync_all());
        sync.map_err(|source| output_failed(built, &source))?;
    }
    let _ = setting.events.send(SlotEvent::WantsCommit(assignment.attempt));
    let cancelled =
        || Failed { class: FailureClass::Cancelled, message: "another attempt was preferred".into() };
    let replace = match assignment.permit.recv() {
        Ok(Permit::Granted { replace }) => replace,
        Ok(Permit::Refused) | Err(_) => return Err(cancelled()),
    };
    fault::place("commit.before");
    match destination(job)? {
        Destination::Shared(directory) => {
            let published = directory.join(&part.name);
            commit::publish(built, &published, replace)
                .map_err(|source| output_failed(&published, &source))?;
            if job.order.sync {
                commit::sync_directory(directory).map_err(|source| output_failed(directory, &source))?;
            }
        }
        Destination::Submitter(endpoint) => send_part(assignment, setting, endpoint, built, &part, replace)?,
    }
    fault::place("commit.after");
    Ok(Done::Part(part))
}

/// Sends a part to the attached submitter, which publishes it.
fn send_part(
    assignment: &Assignment,
    setting: &SlotSetting,
    endpoint: &Endpoint,
    built: &Path,
    part: &Part,
    replace: bool,
) -> Result<(), Failed> {
    let key: &Secret = &assignment.job.order.key;
    let path = format!(
        "/parts/{}/{}/{}/{}/{:08x}/{}",
        assignment.attempt.task.job,
        assignment.attempt.file_name(),
        part.name,
        part.bytes,
        part.crc32c,
        u8::from(replace),
    );
    let file = fs::File::open(built).map_err(|source| output_failed(built, &source))?;
    let fault = |message: String| Failed { class: FailureClass::Fetch, message };
    setting.runtime.block_on(async {
        let (sender, body) = http::stream(PART_CHUNKS_AHEAD);
        let reading = tokio::task::spawn_blocking(move || {
            let mut file = file;
            loop {
                let mut chunk = Vec::with_capacity(PART_CHUNK_BYTES);
                let got = (&mut file).take(PART_CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
                if got == 0 {
                    return sender.finish_blocking();
                }
                sender.send_blocking(chunk.into())?;
            }
        });
        let response = setting.pool.request(endpoint, Some(key), Method::PUT, &path, body).await;
        // Reading ends with the request; its own error shows as a body that breaks off.
        let read = reading.await;
        match response {
            Ok(_) => Ok(()),
            Err(HttpError::Status { status: StatusCode::INSUFFICIENT_STORAGE, message, .. }) => Err(Failed {
                class: FailureClass::Output,
                message: format!("the submitter could not write {}: {message}", part.name),
            }),
            Err(source) => {
                let local = read.ok().and_then(Result::err).map_or_else(String::new, |e| format!(" ({e})"));
                let name = &part.name;
                Err(fault(format!("could not send {name} to the submitter at {endpoint}: {source}{local}")))
            }
        }
    })
}

fn remove_built(assignment: &Assignment, setting: &SlotSetting) {
    if assignment.job.destination.get().is_some()
        && let Ok(built) = built_path(assignment, setting)
    {
        // A published part is not there any more. What cannot be removed now goes with `_temporary` at the end of
        // the job.
        let _ = fs::remove_file(built);
    }
}

fn failed(failure: &TaskFailure) -> Failed {
    let class = match failure.class() {
        Fault::User => FailureClass::User,
        Fault::Input => FailureClass::Input,
        Fault::Transport => FailureClass::Fetch,
        Fault::Config => FailureClass::Config,
        Fault::Worker => FailureClass::Worker,
        Fault::Output => FailureClass::Output,
        Fault::Corrupt => FailureClass::Corrupt,
        Fault::Cancelled => FailureClass::Cancelled,
    };
    let mut message = failure.to_string();
    let mut next = std::error::Error::source(failure);
    while let Some(cause) = next {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        next = cause.source();
    }
    Failed { class, message: clean(&message) }
}

/// One line of bounded length without control characters.
#[must_use]
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MESSAGE_BYTES_MAX));
    for c in text.chars() {
        if MESSAGE_BYTES_MAX < out.len() {
            out.push('…');
            break;
        }
        match c {
            '\n' => out.push_str(" | "),
            '\t' => out.push(' '),
            c if c.is_control()
                || ('\u{202a}'..='\u{202e}').contains(&c)
                || ('\u{2066}'..='\u{2069}').contains(&c) =>
            {
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The largest memory of this process is looked up at most so often for maps, which may be many and short.
const MEMORY_LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Largest resident memory of this process so far.
#[derive(Debug, Default)]
pub struct MemoryPeak {
    bytes: AtomicU64,
    looked_ns: AtomicU64,
}

impl MemoryPeak {
    /// As of now, or of a moment ago unless `exactly`; 0 where the system does not tell. `now_ns` is the
    /// worker's clock.
    fn bytes(&self, now_ns: u64, exactly: bool) -> u64 {
        let looked = self.looked_ns.load(Ordering::Relaxed);
        if exactly
            || looked == 0
            || MEMORY_LOOK_INTERVAL.as_nanos() < u128::from(now_ns.saturating_sub(looked))
        {
            self.looked_ns.store(now_ns, Ordering::Relaxed);
            self.bytes.fetch_max(memory_peak_bytes(), Ordering::Relaxed);
        }
        self.bytes.load(Ordering::Relaxed)
    }
}

fn memory_peak_bytes() -> u64 {
    let Ok(status) = fs::read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok())
        .map_or(0, |kb| kb << 10)
}

/// How long a killed attempt may take to end before its process is given up; longer than a transfer may stand still.
pub const KILL_GRACE: Duration = Duration::from_secs(45);
