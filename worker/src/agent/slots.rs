//! Slots: threads that run one attempt at a time, start to finish, blocking.
//!
//! A slot is a number, and threads come and go: the thread of an attempt that is suspended parks and leaves its slot
//! to a new one; a slot that is to let a suspended attempt go on is left to that attempt's thread. So attempts that
//! run have a slot each, and suspended ones have none. A panic of user code is caught and costs the attempt. Not here:
//! which attempt runs (the master decides), publishing parts (`publish`), the connection to the master (`agent`).

use super::begun::Begun;
use super::capture::Mark;
use super::crash;
use super::files::JobFiles;
use super::handed_over;
use super::publish::{Built, finish_part, open_output, remove_built};
use super::work::{Turn, Work};
use crate::api::JobPlan;
use crate::attempt::{AttemptContext, SideInputs};
use crate::budget::Budget;
use crate::clean::message as clean;
use crate::disk;
use crate::error_text::chain;
use crate::fault;
use crate::folder::Folder;
use crate::http::{Endpoint, Pool, Secret};
use crate::input::{FileStamp, Split};
use crate::machine;
use crate::protocol::{
    AttemptReport, Continuation, FailureClass, HandOver, JobOrder, MemoryUse, Part, SlotCounts,
};
use crate::segment::{MapOutput, SpillDirs};
use crate::shuffle::store::Held;
use crate::task::{self, Fault, Parking, Progress, ReduceEnd, TaskFailure, TaskSettings, TaskStats};
use crossbeam_channel::Receiver;
use gristmill_scheduler::ids::{AttemptId, TaskKind};
use gristmill_scheduler::units::Bytes;
use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

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
    /// This worker sees the submitter's output directory: the folder in it where parts are built.
    Shared(Arc<Folder>),
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
    /// Where a reduce goes on that was handed over; `None`: from the beginning.
    pub resume: Option<Continuation>,
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
#[derive(Clone, Debug)]
pub enum Permit {
    /// The part of this attempt counts. The secret opens the submitter's route for it.
    Granted(Secret),
    /// That of another attempt does.
    Refused,
}

/// What a slot says to the control loop.
pub enum SlotEvent {
    /// The attempt has built its part and asks to publish it.
    WantsCommit(AttemptId),
    /// The attempt stands at a border between groups and has no slot any more; said again if it was to be handed over
    /// and cannot.
    Suspended {
        /// The attempt.
        attempt: AttemptId,
        /// How much user code of this process had written by then; 0 if nobody catches that.
        written: u64,
    },
    /// The attempt was to leave its slot and keeps it.
    NotSuspended(AttemptId),
    /// The attempt has ended.
    Ended(Box<Ended>),
    /// The thread of a slot has died outside user code: this process is not sound any more.
    Broken {
        /// What it ran, if anything.
        attempt: Option<AttemptId>,
        /// What it said.
        message: String,
    },
}

/// The end of an attempt.
pub struct Ended {
    /// The attempt.
    pub attempt: AttemptId,
    /// How.
    pub result: Result<Done, Failed>,
    /// What it did.
    pub report: AttemptReport,
    /// How much user code of this process had written when it ended; 0 if nobody catches that.
    pub written: u64,
}

/// What an attempt leaves behind.
pub enum Done {
    /// A map output to serve.
    Output(MapOutput),
    /// A part that can be published.
    Part {
        /// The part.
        part: Part,
        /// The file it was built in, where the output is.
        stamp: FileStamp,
        /// A copy of it that this worker needs no more.
        sent: bool,
    },
    /// Where it stood, for another attempt to go on from.
    HandedOver {
        /// What it had done.
        state: Box<HandOver>,
        /// What it had written.
        built: Built,
    },
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

/// A panic as the hook saw it.
struct Panicked {
    /// Its place and message.
    words: String,
    /// It happened in this crate's own code.
    in_engine: bool,
}

thread_local! {
    /// What the panic hook saw last on this thread.
    static PANIC: RefCell<Option<Panicked>> = const { RefCell::new(None) };
    /// Whether this thread serves a slot, and so notices its own panics.
    static SERVES_SLOT: Cell<bool> = const { Cell::new(false) };
}

/// Whether a source file, as the compiler names it, is one of this crate. The place of a panic is the caller's where
/// the caller is to blame, so a panic here is a mistake made here, whoever called.
fn is_engine_source(file: &str) -> bool {
    file!().strip_suffix("agent/slots.rs").is_some_and(|sources| file.starts_with(sources))
}

/// Remembers the message and place of a panic for the thread it happens on, and says it on stderr. A panic of the
/// engine on a thread that serves no slot ends the process with the code `broken`: half of what drives a worker is of
/// no use, and nobody would notice.
pub fn install_panic_hook(broken: i32) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or("(no message)");
        let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        let in_engine = info.location().is_some_and(|at| is_engine_source(at.file()));
        PANIC.with_borrow_mut(|last| {
            *last = Some(Panicked { words: format!("panicked{place}: {text}"), in_engine });
        });
        before(info);
        if in_engine && !SERVES_SLOT.get() {
            std::process::exit(broken);
        }
    }));
}

/// What is made of a panic that was caught on this thread, and whose mistake it is.
fn panicked() -> Failed {
    match PANIC.with_borrow_mut(Option::take) {
        Some(Panicked { words, in_engine: true }) => {
            let message = clean(&format!("{words} (a mistake of the engine, not of user code)"));
            Failed { class: FailureClass::Engine, message }
        }
        Some(Panicked { words, .. }) => Failed { class: FailureClass::User, message: clean(&words) },
        None => Failed { class: FailureClass::User, message: "panicked".to_owned() },
    }
}

/// Starts a thread for each slot. They take work until the line is closed.
///
/// # Errors
/// A thread that cannot be started.
pub(super) fn start(slots: SlotCounts, work: &Work, setting: &SlotSetting) -> std::io::Result<()> {
    (0..slots.total()).try_for_each(|slot| serve(slot, work, setting))
}

/// Starts a thread that serves this slot.
fn serve(slot: u32, work: &Work, setting: &SlotSetting) -> std::io::Result<()> {
    let (work, setting) = (work.clone(), setting.clone());
    let name = format!("slot-{slot}");
    let serving = move || {
        SERVES_SLOT.set(true);
        let runs = Cell::new(None);
        let turns = std::panic::catch_unwind(AssertUnwindSafe(|| take_turns(slot, &work, &setting, &runs)));
        if turns.is_err() {
            let message = panicked().message;
            let _ = setting.events.send(SlotEvent::Broken { attempt: runs.get(), message });
        }
    };
    std::thread::Builder::new().name(name).spawn(serving).map(drop)
}

/// Serves a slot, which may become another one, until the thread has none or there is no more work. `runs` is what has
/// begun and has not been reported.
fn take_turns(mut slot: u32, work: &Work, setting: &SlotSetting, runs: &Cell<Option<AttemptId>>) {
    while let Some(turn) = work.next(slot) {
        match turn {
            Turn::Begin(assignment) => {
                runs.set(Some(assignment.attempt));
                fault::place("slot");
                setting.begun.note(slot, assignment.attempt);
                assignment.progress.begin(slot);
                run(&assignment, setting);
                runs.set(None);
                match assignment.progress.slot() {
                    Some(now) => slot = now,
                    None => return,
                }
            }
            Turn::GoOn(attempt, progress) => {
                setting.begun.note(slot, attempt);
                if progress.resume(slot) {
                    return;
                }
            }
        }
    }
}

/// How a reduce attempt leaves its slot.
pub(super) struct LeaveSlot {
    pub attempt: AttemptId,
    pub work: Work,
    pub setting: SlotSetting,
}

impl LeaveSlot {
    fn say(&self, written: u64) {
        let _ = self.setting.events.send(SlotEvent::Suspended { attempt: self.attempt, written });
    }
}

impl Parking for LeaveSlot {
    fn leave(&self, slot: u32) -> bool {
        let written = self.setting.written.as_ref().map_or(0, Mark::now);
        self.setting.begun.clear(slot);
        match serve(slot, &self.work, &self.setting) {
            Ok(()) => {
                self.say(written);
                true
            }
            Err(error) => {
                tracing::warn!(%error, attempt = %self.attempt, "there is no thread for the slot: not suspended");
                self.setting.begun.note(slot, self.attempt);
                false
            }
        }
    }

    fn refuses(&self) {
        let _ = self.setting.events.send(SlotEvent::NotSuspended(self.attempt));
    }

    fn stays(&self) {
        self.say(0);
    }
}

fn run(assignment: &Assignment, setting: &SlotSetting) {
    let attempt = assignment.attempt;
    crash::runs(Some(attempt));
    let started_ns = setting.epoch.elapsed().as_nanos() as u64;
    let cpu_before = thread_cpu_ns();
    let mut stats = TaskStats::default();
    PANIC.with_borrow_mut(|last| *last = None);
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| execute(assignment, setting, &mut stats)));
    let result = result.unwrap_or_else(|_| Err(panicked()));
    if matches!(result, Ok(Done::Part { sent: true, .. }) | Err(_)) {
        in_engine(&assignment.progress, || remove_built(assignment, setting));
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
        memory: MemoryUse {
            peak_bytes: setting.memory_peak.bytes(ended_ns, attempt.task.kind == TaskKind::Reduce),
            budget_bytes: setting.memory.get(),
            kept_peak_bytes: setting.budget.peak_bytes() as u64,
        },
        paced_ns: progress.paced_ns.load(Ordering::Relaxed),
        suspended_ns: progress.suspended_ns.load(Ordering::Relaxed),
        suspensions: progress.suspensions.load(Ordering::Relaxed),
    };
    let written = setting.written.as_ref().map_or(0, Mark::now);
    crash::runs(None);
    // The loop outlives its slots unless the process is ending.
    let _ = setting.events.send(SlotEvent::Ended(Box::new(Ended { attempt, result, report, written })));
}

/// Everything an attempt does, with its result still to be reported.
fn execute(assignment: &Assignment, setting: &SlotSetting, stats: &mut TaskStats) -> Result<Done, Failed> {
    let job = &assignment.job;
    let plan = job
        .plan
        .as_ref()
        .map_err(|message| Failed { class: FailureClass::Config, message: clean(message) })?;
    let progress = &assignment.progress;
    let context = AttemptContext {
        attempt: assignment.attempt,
        side: job.side.clone(),
        settings: &job.settings,
        budget: &setting.budget,
        progress,
    };
    match &assignment.input {
        AttemptInput::Split(split) if !plan.is_map_only() => {
            fault::place("map");
            let done =
                task::run_map(plan, context, split, &*job.files).map_err(|failure| failed(&failure))?;
            progress.settle();
            *stats = done.stats;
            Ok(Done::Output(done.output))
        }
        AttemptInput::Split(split) => {
            let (output, built) = in_engine(progress, || open_output(assignment, setting))?;
            let done = task::run_map_only(plan, &context, split, &*job.files, output)
                .map_err(|failure| failed(&failure))?;
            progress.settle();
            in_engine(progress, || finish_part(assignment, setting, done, &built, stats))
        }
        AttemptInput::Segments(held) => {
            fault::place("reduce");
            let (mut output, built) = in_engine(progress, || open_output(assignment, setting))?;
            if let Some(from) = &assignment.resume {
                handed_over::take_over(from, &mut output, progress, &job.order.key, setting)?;
            }
            let segments = held.iter().map(|held| held.data.clone()).collect();
            let resume = assignment.resume.as_ref().map(|from| &from.state);
            let end = task::run_reduce_in_steps(plan, context, segments, output, resume)
                .map_err(|failure| failed(&failure))?;
            match end {
                ReduceEnd::HandedOver(state) => Ok(Done::HandedOver { state, built }),
                ReduceEnd::Part(done) => {
                    progress.settle();
                    in_engine(progress, || finish_part(assignment, setting, done, &built, stats))
                }
            }
        }
    }
}

/// What is done with files before and after user code: a slow disk, or an `fsync` of many bytes, is no fault of it.
fn in_engine<T>(progress: &Arc<Progress>, work: impl FnOnce() -> T) -> T {
    let _engine = progress.engine();
    work()
}

/// What the master hears of a failure.
pub(super) fn failed(failure: &TaskFailure) -> Failed {
    let class = match failure.class() {
        Fault::User => FailureClass::User,
        Fault::Input => FailureClass::Input,
        Fault::Transport => FailureClass::Unreachable,
        Fault::Config => FailureClass::Config,
        Fault::Worker => FailureClass::Worker,
        Fault::Output => FailureClass::Output,
        Fault::Corrupt => FailureClass::Corrupt,
        Fault::Cancelled => FailureClass::Cancelled,
    };
    let mut message = chain(failure);
    if let TaskFailure::Spill { path, source } | TaskFailure::Output { path, source } = failure
        && let Some(remark) = disk::remark(path, source)
    {
        message.push_str("; ");
        message.push_str(remark);
    }
    Failed { class, message: clean(&message) }
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
            self.bytes.fetch_max(machine::resident_peak_bytes(), Ordering::Relaxed);
        }
        self.bytes.load(Ordering::Relaxed)
    }
}

/// How long a killed attempt may take to end before its process is given up; longer than a transfer may stand still.
pub const KILL_GRACE: Duration = Duration::from_secs(45);
