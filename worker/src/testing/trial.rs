//! Runs a whole job over files in memory: planned, mapped, sorted and reduced in this process, task by task.

use super::files::TrialFiles;
use crate::api::{Job, JobPlan, KeyOrder, PlanError, SideInputs, TaskError};
use crate::attempt::{AttemptContext, PartDone, Progress, TaskFailure, TaskSettings, TaskStats};
use crate::budget::Budget;
use crate::input::plan::{SplitRules, plan_side, plan_splits};
use crate::input::{InputError, LocalFiles, Split, open_split};
use crate::output::Output;
use crate::segment::{SegmentData, SpillDirs};
use crate::task::{KeySample, ReducePart, cut_points, run_map, run_map_only, run_reduce, sample_keys};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

const JOB: JobId = JobId(0);

/// Memory for the outputs of all maps, bytes; larger outputs go to a file.
const OUTPUT_BYTES_MAX: usize = 256 << 20;

/// Error of a trial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TrialError {
    /// The job cannot be planned from its parameters.
    #[error("the job cannot be planned")]
    Plan {
        #[source]
        source: PlanError,
    },
    /// The plan has conflicting settings.
    #[error("the job cannot be planned: {reason}")]
    Settings { reason: TaskError },
    /// A file that the job reads is missing from the trial, or cannot be used.
    #[error("the input cannot be used")]
    Input {
        #[source]
        source: InputError,
    },
    /// The code of the job failed in this task.
    #[error("{} {} failed: {failure}", task.kind, task.index)]
    Task { task: TaskId, failure: TaskFailure },
    /// A pair for a reducer cannot be encoded.
    #[error("a pair cannot be encoded: {failure}")]
    Pair { failure: TaskFailure },
    /// A file of the trial itself could not be written.
    #[error("the files of the trial could not be written")]
    Files {
        #[source]
        source: io::Error,
    },
}

/// Job with its files. By default it writes one part, and small files are one split.
///
/// ```
/// # use gristmill_worker as gristmill;
/// # use gristmill_worker::testing::Trial;
/// use gristmill::prelude::*;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct CountWords {
///     inputs: Vec<String>,
/// }
///
/// impl Job for CountWords {
///     const NAME: &'static str = "count-words";
///
///     fn plan(&self) -> Result<JobPlan, PlanError> {
///         let split = |line: Record<'_>, out: &mut Emitter<String, u64>| {
///             line.text().split_whitespace().for_each(|word| out.emit(word, 1));
///             Ok(())
///         };
///         Ok(JobPlan::map_each(Input::lines(&self.inputs), split)
///             .combine(Sum::new)
///             .reduce(WriteTotal::<String, Sum<u64>>::default))
///     }
/// }
///
/// let job = CountWords { inputs: vec!["words.txt".to_owned()] };
/// let written = Trial::new(job).file("words.txt", "to be\nor not to be\n").run()?;
/// assert_eq!(written.lines(), ["be\t2", "not\t1", "or\t1", "to\t2"]);
/// # Ok::<(), gristmill_worker::testing::TrialError>(())
/// ```
pub struct Trial {
    make: MakeTrialPlan,
    files: Vec<(String, Vec<u8>)>,
    parts: u32,
    rules: SplitRules,
}

/// Creates the plan of the job, which may inspect its files before.
type MakeTrialPlan = Box<dyn FnOnce(&TrialFiles) -> Result<JobPlan, PlanError>>;

impl Trial {
    /// Creates the trial of a job, which is prepared and sent to its tasks as usual.
    #[must_use]
    pub fn new<J: Job>(mut job: J) -> Self {
        let wrong = |source| PlanError::Decode { job: J::NAME.to_owned(), source };
        Self::from_make(Box::new(move |files| {
            job.prepare(files)?;
            let travels = serde_json::to_string(&job).map_err(wrong)?;
            serde_json::from_str::<J>(&travels).map_err(wrong)?.plan()
        }))
    }

    /// Creates the trial of a plan without a job.
    #[must_use]
    pub fn from_plan(plan: JobPlan) -> Self {
        Self::from_make(Box::new(|_| Ok(plan)))
    }

    fn from_make(make: MakeTrialPlan) -> Self {
        Self { make, files: Vec::new(), parts: 1, rules: SplitRules::default() }
    }

    /// Adds a file that the job finds under this name. Directories and the endings `.gz`, `.zst` and `.bz2` have their
    /// usual meaning.
    #[must_use]
    pub fn file(mut self, name: impl Into<String>, contents: impl AsRef<[u8]>) -> Self {
        self.files.push((name.into(), contents.as_ref().to_vec()));
        self
    }

    /// Sets the number of parts, unless the job requires another one.
    #[must_use]
    pub fn parts(mut self, parts: u32) -> Self {
        self.parts = parts.max(1);
        self
    }

    /// Sets the bytes of a split, so that small files can have several maps.
    #[must_use]
    pub fn split_bytes(mut self, bytes: u64) -> Self {
        self.rules.split_bytes = bytes;
        self
    }

    /// Runs all tasks.
    ///
    /// # Errors
    /// All failures of a job.
    pub fn run(self) -> Result<Written, TrialError> {
        let failed = |source| TrialError::Files { source };
        let files = TrialFiles::new().map_err(failed)?;
        for (name, contents) in &self.files {
            files.add(name, contents).map_err(failed)?;
        }
        let plan = (self.make)(&files).map_err(|source| TrialError::Plan { source })?;
        plan.validate().map_err(|reason| TrialError::Settings { reason })?;
        let parts = if plan.is_map_only() { 0 } else { plan.reduces().unwrap_or(self.parts) };
        TrialTasks::new(plan, &files, parts, self.rules)?.run()
    }
}

/// Results of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// Parts in order.
    pub parts: Vec<Vec<u8>>,
    /// Parts of named outputs, by name, in order; a task that wrote nothing to one has no part of it.
    pub named: BTreeMap<String, Vec<Vec<u8>>>,
    /// Counters of user code, by name.
    pub counters: BTreeMap<String, u64>,
}

impl Written {
    /// Returns the lines of all parts, in order.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let lines = self.parts.iter().flat_map(|part| crate::text::lines(part));
        lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    /// Returns the lines of all parts of a named output, in order.
    #[must_use]
    pub fn named_lines(&self, output: &str) -> Vec<String> {
        let lines = self.named.get(output).into_iter().flatten().flat_map(|part| crate::text::lines(part));
        lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    /// Returns a counter; 0 if it was not used.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    fn count(&mut self, stats: TaskStats) {
        for (name, count) in stats.counters {
            let sum = self.counters.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
    }
}

/// Tasks of a job in this process.
struct TrialTasks {
    plan: JobPlan,
    splits: Vec<Split>,
    side: Arc<SideInputs>,
    settings: TaskSettings,
    budget: Budget,
    written: Written,
}

impl TrialTasks {
    fn new(plan: JobPlan, files: &TrialFiles, parts: u32, rules: SplitRules) -> Result<Self, TrialError> {
        let input = |source| TrialError::Input { source };
        let mut splits = plan_splits(plan.inputs(), files, rules).map_err(input)?;
        let mut side = plan_side(plan.side_inputs(), files).map_err(input)?;
        for piece in splits.iter_mut().chain(&mut side).flat_map(|split| &mut split.pieces) {
            piece.name = files.name_of(&piece.path).unwrap_or_else(|| piece.name.clone());
        }
        for (index, made) in plan.inputs().iter().enumerate() {
            splits.extend(made.bare_splits(index as u32));
        }
        splits.sort_by_key(|split| split.input);
        let spill = SpillDirs::new(vec![files.spill_directory()]);
        let settings = TaskSettings::new(JOB, parts, spill);
        let side = Arc::new(SideInputs::new(side, Arc::new(LocalFiles), settings.limits));
        let (budget, written) = (Budget::new(OUTPUT_BYTES_MAX), Written::default());
        Ok(Self { plan, splits, side, settings, budget, written })
    }

    fn run(mut self) -> Result<Written, TrialError> {
        if self.plan.order() == KeyOrder::Total {
            self.cut()?;
        }
        if self.plan.is_map_only() {
            self.map_only()?;
        } else {
            self.map_and_reduce()?;
        }
        Ok(self.written)
    }

    /// Chooses the ranges of keys, as where a job is submitted.
    fn cut(&mut self) -> Result<(), TrialError> {
        let mut sample = KeySample::default();
        for (index, split) in self.splits.iter().enumerate() {
            let mut blocks = open_split(split, &LocalFiles, &self.settings.limits);
            let task = TaskId::map(JOB, index as u32);
            sample = sample_keys(&self.plan, split.input as usize, &mut blocks, self.side.clone(), sample)
                .map_err(|failure| TrialError::Task { task, failure })?;
        }
        self.settings.cuts = Arc::new(cut_points(sample, self.settings.partitions, &self.plan));
        Ok(())
    }

    fn map_only(&mut self) -> Result<(), TrialError> {
        for (index, split) in self.splits.iter().enumerate() {
            let attempt = TaskId::map(JOB, index as u32).attempt(0);
            let progress = Arc::default();
            let (part, output) = part();
            let done =
                run_map_only(&self.plan, &self.context(attempt, &progress), split, &LocalFiles, output);
            self.written.take(attempt, &part, done)?;
        }
        Ok(())
    }

    fn map_and_reduce(&mut self) -> Result<(), TrialError> {
        let mut outputs = Vec::with_capacity(self.splits.len());
        for (index, split) in self.splits.iter().enumerate() {
            let attempt = TaskId::map(JOB, index as u32).attempt(0);
            let progress = Arc::default();
            let done = run_map(&self.plan, self.context(attempt, &progress), split, &LocalFiles)
                .map_err(|failure| TrialError::Task { task: attempt.task, failure })?;
            self.written.count(done.stats);
            outputs.push(done.output);
        }
        for partition in 0..self.settings.partitions {
            let attempt = TaskId::reduce(JOB, partition).attempt(0);
            let progress = Arc::default();
            let segments: Vec<SegmentData> =
                outputs.iter().filter_map(|output| output.segment(partition)).collect();
            let (part, output) = part();
            let part_of = ReducePart::whole(partition);
            let done = run_reduce(&self.plan, self.context(attempt, &progress), segments, output, part_of);
            self.written.take(attempt, &part, done)?;
        }
        Ok(())
    }

    fn context<'a>(&'a self, attempt: AttemptId, progress: &'a Arc<Progress>) -> AttemptContext<'a> {
        let side = self.side.clone();
        AttemptContext { attempt, side, settings: &self.settings, budget: &self.budget, progress }
    }
}

impl Written {
    /// Stores the part of a task.
    fn take(
        &mut self,
        attempt: AttemptId,
        part: &TrialPart,
        done: Result<PartDone, TaskFailure>,
    ) -> Result<(), TrialError> {
        let done = done.map_err(|failure| TrialError::Task { task: attempt.task, failure })?;
        self.count(done.stats);
        self.parts.push(part.main.take());
        let named = std::mem::take(&mut *part.named.lock().unwrap_or_else(PoisonError::into_inner));
        for (output, bytes) in named {
            self.named.entry(output).or_default().push(bytes.take());
        }
        Ok(())
    }
}

/// Output of a task, in memory.
#[derive(Clone, Default)]
struct TrialPart {
    main: PartBytes,
    named: Arc<Mutex<BTreeMap<String, PartBytes>>>,
}

/// A part in memory.
#[derive(Clone, Default)]
struct PartBytes(Arc<Mutex<Vec<u8>>>);

impl PartBytes {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn part() -> (TrialPart, Output) {
    let part = TrialPart::default();
    let mut output = Output::new("part", Box::new(part.main.clone()));
    let named = part.named.clone();
    output.open_named_with(Box::new(move |name| {
        let mut named = named.lock().unwrap_or_else(PoisonError::into_inner);
        let part = named.entry(name.to_string()).or_default().clone();
        ("part".into(), Ok(Box::new(part)))
    }));
    (part, output)
}

impl Write for PartBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
