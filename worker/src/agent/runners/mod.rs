//! Runners: processes of programs that jobs were shipped with, one attempt at a time each.
//!
//! User code that is not part of the cluster's own program never runs in this process. A slot that gets
//! an attempt of a shipped job leads a runner of its program through it. The slot stays the attempt's
//! slot, and fetched, kept, served and published data stay with this worker. A runner has a private
//! directory for spills, and only the key of its job. It ends with its worker, with the last job of its
//! program here, and with an attempt that does not succeed.
//!
//! A runner reads inputs itself. It returns a map output as a spill file, which the worker takes over by a
//! rename. It returns a part as the file that the worker created, which the worker syncs and publishes. It
//! collects and merges in the memory of its slot, and ends itself if it takes more than that and an
//! allowance. A killed runner costs its attempt, charged to no one; one that aborts, exits or hangs costs its
//! attempt, charged to user code. Its attempt cannot be suspended.
//!
//! Rejected: a second worker of the other build with slots lent to it. Every policy and placement would have to know
//! that not every worker can run every job.
//!
//! Invariant: at most as many runners are busy as there are slots, and at most as many idle.

mod lead;
mod link;
mod message;
mod process;
mod programs;
mod serve;

use super::config::{RunnerStarter, WorkerConfig};
use super::failed::Failed;
use crate::http::Pool;
use crate::protocol::{FailureClass, ProgramSum, ShippedProgram};
use crate::sanitize::message as sanitize;
use crate::settings::WorkerSettings;
use gristmill_scheduler::ids::{JobId, WorkerId};
use link::RunnerLink;
use process::{Runner, RunnerFolders, end, not_started, run_when_free};
use programs::{ProgramSource, Programs};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) use lead::execute;
pub use serve::{RunnerError, say_broken, serve};

/// Time that a slot waits for a message of a runner between two checks.
const LISTEN_TIME: Duration = Duration::from_millis(50);

/// Runners of a worker. Clones share them.
#[derive(Clone)]
pub struct Runners(Arc<RunnersOfWorker>);

struct RunnersOfWorker {
    starter: Option<Arc<dyn RunnerStarter>>,
    programs: Programs,
    worker: WorkerId,
    settings: WorkerSettings,
    slot_bytes: usize,
    /// Directories in each of which a runner gets a subdirectory.
    spill: Vec<PathBuf>,
    pool: Mutex<RunnerPool>,
}

#[derive(Default)]
struct RunnerPool {
    /// Idle runners, the most recently used last.
    idle: Vec<Runner>,
    /// Processes of all runners that have not ended.
    alive: BTreeMap<u64, Arc<Mutex<Child>>>,
    /// Jobs of each program that this worker knows.
    jobs: BTreeMap<ProgramSum, BTreeSet<JobId>>,
    started: u64,
    /// True if no more are started.
    closed: bool,
}

/// Context of a worker's runners.
pub(super) struct RunnersSetting {
    pub(super) worker: WorkerId,
    pub(super) pool: Pool,
    pub(super) slot_bytes: usize,
}

impl Runners {
    /// Creates an empty pool.
    pub(super) fn new(config: &WorkerConfig, setting: RunnersSetting) -> io::Result<Self> {
        let first = config.spill_dirs.first().ok_or(io::ErrorKind::NotFound)?;
        let source = ProgramSource {
            master: config.master.clone(),
            token: config.token.clone(),
            pool: setting.pool,
            runtime: tokio::runtime::Handle::current(),
        };
        Ok(Self(Arc::new(RunnersOfWorker {
            starter: config.runners.clone(),
            programs: Programs::new(first, source),
            worker: setting.worker,
            settings: config.settings.clone(),
            slot_bytes: setting.slot_bytes,
            spill: config.spill_dirs.clone(),
            pool: Mutex::default(),
        })))
    }

    fn pool(&self) -> MutexGuard<'_, RunnerPool> {
        // Every change is one insertion or removal.
        self.0.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a job of this program.
    pub(super) fn open(&self, job: JobId, program: &ShippedProgram) {
        self.pool().jobs.entry(program.sum).or_default().insert(job);
    }

    /// Removes a job, and ends the runners of programs without jobs. Blocks.
    pub(super) fn forget(&self, job: JobId) {
        let gone: Vec<Runner> = {
            let RunnerPool { idle, jobs, .. } = &mut *self.pool();
            jobs.retain(|_, jobs| {
                jobs.remove(&job);
                !jobs.is_empty()
            });
            idle.extract_if(.., |runner| !jobs.contains_key(&runner.sum)).collect()
        };
        drop(gone);
    }

    /// Ends all runners, and starts no more. Blocks for a moment.
    pub(super) fn end_all(&self) {
        let (idle, alive) = {
            let mut pool = self.pool();
            pool.closed = true;
            (std::mem::take(&mut pool.idle), pool.alive.values().cloned().collect::<Vec<_>>())
        };
        for child in alive {
            let _ = end(&child);
        }
        drop(idle);
    }

    /// Returns a runner of this program: an idle one, preferably one that knows the job, or a new one.
    /// Blocks.
    fn take(&self, sum: ProgramSum, job: JobId, program: &Path) -> Result<Runner, Failed> {
        let idle = || {
            let idle = &mut self.pool().idle;
            let knows = |runner: &Runner| runner.sum == sum && runner.job == Some(job);
            let known = idle.iter().rposition(knows);
            let place = known.or_else(|| idle.iter().rposition(|runner| runner.sum == sum));
            place.map(|place| idle.remove(place))
        };
        // A runner that was killed meanwhile is removed, and no attempt with it.
        while let Some(found) = idle() {
            if found.is_alive() {
                return Ok(found);
            }
        }
        self.start(sum, program)
    }

    /// Returns a runner whose attempt has succeeded to the pool.
    fn give_back(&self, runner: Runner) {
        let slots = self.0.settings.slots.total() as usize;
        let gone = {
            let mut pool = self.pool();
            if pool.closed || !pool.jobs.contains_key(&runner.sum) {
                Some(runner)
            } else {
                pool.idle.push(runner);
                (slots < pool.idle.len()).then(|| pool.idle.remove(0))
            }
        };
        drop(gone);
    }

    fn is_in_use(&self, sum: &ProgramSum) -> bool {
        self.pool().jobs.contains_key(sum)
    }

    fn start(&self, sum: ProgramSum, program: &Path) -> Result<Runner, Failed> {
        let Some(starter) = &self.0.starter else {
            return Err(failed(FailureClass::Worker, "this worker starts no shipped programs"));
        };
        let lacking = |source: io::Error| {
            failed(FailureClass::Worker, &format!("no process of program {sum} could be prepared: {source}"))
        };
        let number = {
            let mut pool = self.pool();
            pool.started += 1;
            pool.started
        };
        let folders = RunnerFolders::make(&self.0.spill, number).map_err(lacking)?;
        let (ours, theirs) = UnixStream::pair().map_err(lacking)?;
        let link = RunnerLink::of_worker(ours).map_err(lacking)?;
        let place = folders.first().ok_or_else(|| lacking(io::ErrorKind::NotFound.into()))?;
        let child =
            run_when_free(&**starter, (program, &place), theirs).map_err(|error| not_started(sum, &error))?;
        let child = Arc::new(Mutex::new(child));
        let mut runner = Runner { sum, job: None, link, child, folders, number, of: self.clone() };
        let closed = {
            let mut pool = self.pool();
            pool.alive.insert(number, runner.child.clone());
            pool.closed
        };
        if closed {
            return Err(failed(FailureClass::Cancelled, "the worker is ending"));
        }
        runner.begin(self)?;
        Ok(runner)
    }
}

fn failed(class: FailureClass, words: &str) -> Failed {
    Failed { class, message: sanitize(words) }
}
