//! The process of a shipped program: runs the attempts that its worker orders, one at a time.
//!
//! The reading thread also reports the progress of the attempt, and ends the process as soon as the
//! worker is lost, even while user code runs. It has no token: reads and fetches of a job are authorized
//! by the key of that job alone.

use super::link::{Heard, RunnerLink};
use super::message::{
    BuiltPart, LentSegment, RUNNER_PROTOCOL, RunnerEnd, RunnerInput, RunnerOrder, RunnerProgress,
    RunnerResult, RunnerTask, RunnerTerms, RunnerWord,
};
use crate::agent::config::JobSource;
use crate::agent::failed::{Failed, failed};
use crate::agent::job::{JobCode, JobMeans, RunningJob, plan_of, slot_progress};
use crate::agent::publish::open_named;
use crate::agent::slots::{catch_panic, thread_cpu_ns};
use crate::attempt::AttemptContext;
use crate::budget::{Budget, KeptInFiles};
use crate::fault;
use crate::folder::Folder;
use crate::http::{Pool, Timeouts};
use crate::input::FilePath;
use crate::machine;
use crate::memory_watch;
use crate::output::Output;
use crate::protocol::FailureClass;
use crate::recycle::Recycler;
use crate::sanitize::message as sanitize;
use crate::segment::{SegmentData, SpillDirs, SpillFile};
use crate::task::{self, PartDone, Progress, ReduceEnd, TaskStats};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which the progress of the attempt is reported to the worker.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Timeout for another thread to finish sending before this process ends.
const LAST_WORD_TIMEOUT: Duration = Duration::from_secs(1);
const LAST_WORD_PAUSE: Duration = Duration::from_millis(5);

/// Route to the worker, for a thread that detects that this process cannot continue.
static SPEAKER: OnceLock<Arc<Mutex<RunnerLink>>> = OnceLock::new();

/// Reports to the worker that this process ends because of a bug of the engine, so that user code is not
/// charged. The worker relies on this message alone, whatever the exit code is.
pub fn say_broken(why: &str) {
    say_last(&RunnerWord::Broken { why: sanitize(why) });
}

fn say_last(word: &RunnerWord) {
    let Some(speaker) = SPEAKER.get() else { return };
    let began = Instant::now();
    // A thread that panics while it sends holds the lock itself, and would wait forever.
    while began.elapsed() < LAST_WORD_TIMEOUT {
        if let Ok(mut speaker) = speaker.try_lock() {
            let _ = speaker.say(word);
            return;
        }
        std::thread::sleep(LAST_WORD_PAUSE);
    }
}

/// Reason why a runner cannot continue.
#[derive(Debug, thiserror::Error)]
#[error("the process of a shipped program cannot {what}")]
pub struct RunnerError {
    what: &'static str,
    #[source]
    source: io::Error,
}

fn cannot(what: &'static str) -> impl Fn(io::Error) -> RunnerError {
    move |source| RunnerError { what, source }
}

/// Runs attempts of jobs that `jobs` knows until the worker at the other end of the socket is lost.
///
/// # Errors
/// An error that prevents the start, and invalid orders.
pub fn serve(socket: UnixStream, jobs: Arc<dyn JobSource>) -> Result<(), RunnerError> {
    let mut link = RunnerLink::of_runner(socket).map_err(cannot("use its socket"))?;
    link.say(&RunnerWord::Ready { protocol: RUNNER_PROTOCOL }).map_err(cannot("greet its worker"))?;
    let terms = loop {
        match link.hear(PROGRESS_INTERVAL).map_err(cannot("understand its worker"))? {
            Heard::Frame(RunnerOrder::Begin(terms)) => break *terms,
            Heard::Nothing => {}
            Heard::Frame(_) | Heard::End => return Ok(()),
        }
    };
    let speaker = Arc::new(Mutex::new(link.speaker().map_err(cannot("use its socket"))?));
    // A process serves once.
    let _ = SPEAKER.set(speaker.clone());
    let over_memory = |why: &str| {
        say_last(&RunnerWord::OverMemory { why: why.to_owned() });
        std::process::exit(1);
    };
    memory_watch::watch(terms.slot_bytes, 1, over_memory).map_err(cannot("start its threads"))?;
    let runner = RunningProgram::start(terms, jobs, speaker).map_err(cannot("start its threads"))?;
    runner.obey(link)
}

/// State shared by the reading thread and the attempt's thread.
struct Shared {
    speaker: Arc<Mutex<RunnerLink>>,
    /// Progress of the running attempt, if there is one.
    running: Mutex<Option<Arc<Progress>>>,
}

impl Shared {
    /// Sends a message. A worker that does not read any more is lost, which the reading thread detects.
    fn say(&self, word: &RunnerWord) {
        let _ = self.speaker.lock().unwrap_or_else(PoisonError::into_inner).say(word);
    }

    fn running(&self) -> Option<Arc<Progress>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_running(&self, progress: Option<Arc<Progress>>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }
}

/// Running runner.
struct RunningProgram {
    terms: RunnerTerms,
    jobs: Arc<dyn JobSource>,
    spill: SpillDirs,
    means: JobMeans,
    shared: Arc<Shared>,
    tasks: Sender<(RunnerTask, Arc<RunningJob>)>,
}

impl RunningProgram {
    fn start(
        terms: RunnerTerms,
        jobs: Arc<dyn JobSource>,
        speaker: Arc<Mutex<RunnerLink>>,
    ) -> io::Result<Self> {
        let folders = terms.folders.iter().map(|folder| folder.to_path().to_path_buf()).collect();
        let spill = SpillDirs::with_reserve(folders, terms.settings.disk_reserve.get());
        // The attempt's thread reads remote files with it.
        let runtime = crate::threads::runtime()?;
        let handle = runtime.handle().clone();
        let network = move || runtime.block_on(std::future::pending::<()>());
        std::thread::Builder::new().name("network".to_owned()).spawn(network)?;
        let means = JobMeans {
            worker: terms.worker,
            pool: Pool::new(Timeouts::default(), terms.settings.permissions.plaintext()),
            runtime: handle,
            slot_bytes: terms.slot_bytes as usize,
            recycler: Recycler::default(),
            // Its output is kept by its worker.
            kept_in_files: KeptInFiles::none(),
            narration: None,
        };
        let shared = Arc::new(Shared { speaker, running: Mutex::default() });
        let (tasks, to_run) = channel();
        let slot =
            AttemptRunner { shared: shared.clone(), pace: (terms.settings.slow, terms.settings.speed) };
        std::thread::Builder::new().name("slot-0".to_owned()).spawn(move || slot.run_all(&to_run))?;
        Ok(Self { terms, jobs, spill, means, shared, tasks })
    }

    /// Executes orders until the worker disconnects.
    fn obey(self, mut link: RunnerLink) -> Result<(), RunnerError> {
        debug_assert!(!self.terms.folders.is_empty(), "a runner has a folder");
        let mut job = None;
        loop {
            match link.hear(PROGRESS_INTERVAL).map_err(cannot("understand its worker"))? {
                Heard::Frame(RunnerOrder::Begin(_)) => {}
                Heard::Frame(RunnerOrder::Job(order)) => {
                    let code = JobCode::Linked(plan_of(&*self.jobs, &order));
                    job = Some(Arc::new(RunningJob::new(*order, code, &self.means, self.spill.clone())));
                }
                Heard::Frame(RunnerOrder::Run(task)) => {
                    let known: io::Result<_> = job.clone().ok_or(io::ErrorKind::InvalidInput.into());
                    let known = known.map_err(cannot("run an attempt of no job"))?;
                    fault::place("runner.listen");
                    let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
                    self.tasks.send((*task, known)).map_err(gone).map_err(cannot("run another attempt"))?;
                }
                Heard::Nothing => {
                    if let Some(progress) = self.shared.running() {
                        self.shared.say(&RunnerWord::Progress(RunnerProgress::of(&progress)));
                    }
                }
                Heard::End => return Ok(()),
            }
        }
    }
}

/// Thread on which user code runs.
struct AttemptRunner {
    shared: Arc<Shared>,
    /// Configured slowdown and speed of the worker's slots.
    pace: (f64, f64),
}

impl AttemptRunner {
    fn run_all(&self, tasks: &Receiver<(RunnerTask, Arc<RunningJob>)>) {
        while let Ok((task, job)) = tasks.recv() {
            let progress = Arc::new(slot_progress(self.pace, None));
            progress.begin(0);
            self.shared.set_running(Some(progress.clone()));
            let cpu_before = thread_cpu_ns();
            let mut stats = TaskStats::default();
            let result = catch_panic(|| run(task, &job, &progress, &mut stats));
            let result =
                result.unwrap_or_else(|Failed { class, message }| RunnerResult::Failed { class, message });
            self.shared.set_running(None);
            // Idle runners keep no buffers.
            job.settings.recycler.clear();
            let end = RunnerEnd {
                result,
                progress: RunnerProgress::of(&progress),
                counters: stats.counters,
                measures: stats.measures,
                local_bytes: stats.local_bytes,
                bad_records: progress.left_out(),
                cpu_ns: thread_cpu_ns().saturating_sub(cpu_before),
                peak_bytes: machine::resident_peak_bytes(),
            };
            self.shared.say(&RunnerWord::Ended(Box::new(end)));
        }
    }
}

/// Runs an attempt. Its output is handed to its worker.
fn run(
    task: RunnerTask,
    job: &RunningJob,
    progress: &Arc<Progress>,
    stats: &mut TaskStats,
) -> Result<RunnerResult, Failed> {
    let plan = job.plan()?;
    let settings = match task.alone {
        true => job.settings.in_less_memory(),
        false => job.settings.clone(),
    };
    // Nothing is kept here when the attempt has ended.
    let budget = Budget::new(0);
    let context = AttemptContext {
        attempt: task.attempt,
        side: job.side.clone(),
        settings: &settings,
        budget: &budget,
        progress,
    };
    fault::place("runner");
    let as_failed = |failure| failed(&failure);
    match task.input {
        RunnerInput::Split(split) if !plan.is_map_only() => {
            let done = task::run_map(plan, context, &split, &*job.files).map_err(as_failed)?;
            progress.settle();
            *stats = done.stats;
            let given = done.output.give_up();
            given.map(RunnerResult::Mapped).ok_or_else(|| engine_failed("its map output lies in no file"))
        }
        RunnerInput::Split(split) => {
            let output = open_part(task.output, job)?;
            let done = task::run_map_only(plan, &context, &split, &*job.files, output).map_err(as_failed)?;
            Ok(built(done, progress, stats))
        }
        RunnerInput::Segments(lent) => {
            let output = open_part(task.output, job)?;
            let segments = lent.into_iter().map(segment).collect();
            match task::run_reduce_in_steps(plan, context, segments, output, None).map_err(as_failed)? {
                ReduceEnd::Part(done) => Ok(built(done, progress, stats)),
                ReduceEnd::HandedOver(_) => Err(engine_failed("it was handed over, and nobody asked")),
            }
        }
    }
}

fn built(done: PartDone, progress: &Progress, stats: &mut TaskStats) -> RunnerResult {
    progress.settle();
    let part = BuiltPart::from(&done);
    *stats = done.stats;
    RunnerResult::Built(part)
}

fn segment(lent: LentSegment) -> SegmentData {
    let LentSegment { path, file_bytes, offset, length } = lent;
    let file = Arc::new(SpillFile::lent(path.to_path().to_path_buf(), file_bytes));
    SegmentData::File { file, offset, length }
}

fn engine_failed(words: &str) -> Failed {
    Failed { class: FailureClass::Engine, message: words.to_owned() }
}

/// Opens the empty file that the worker has created for the part.
fn open_part(output: Option<(FilePath, String)>, job: &RunningJob) -> Result<Output, Failed> {
    let (folder, name) = output.ok_or_else(|| engine_failed("there is no file for its part"))?;
    let folder = folder.to_path();
    let opened = Folder::open(folder).and_then(|folder| Ok((folder.open_own(&name)?, folder)));
    let (file, opened) = opened.map_err(|source| Failed {
        class: FailureClass::Output,
        message: sanitize(&format!("could not write {}: {source}", folder.join(&name).display())),
    })?;
    let mut output = job.part(folder.join(&name), file)?;
    output.open_named_with(open_named(Arc::new(opened), &name, |_| ()));
    Ok(output)
}
