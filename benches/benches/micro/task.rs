//! Runs tasks as a slot of a worker does: on files in a separate directory, with a worker's default settings and memory
//! that is reused between tasks.

use gristmill::scheduler::ids::{AttemptId, JobId, TaskId};
use gristmill::worker::api::{JobPlan, SideInputs};
use gristmill::worker::budget::Budget;
use gristmill::worker::input::{Compression, FilePath, FileStamp, LocalFiles, Piece, Place, Split};
use gristmill::worker::output::Output;
use gristmill::worker::record::RecordFormat;
use gristmill::worker::segment::{MapOutput, SegmentData, SpillDirs};
use gristmill::worker::task::{AttemptContext, PartDone, Progress, TaskSettings, run_map, run_reduce};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tempfile::TempDir;

/// Job of all tasks.
pub const JOB: JobId = JobId(1);

/// Memory budget of outputs in bytes: more than any benchmark needs.
const BUDGET_BYTES: usize = 4 << 30;

/// Directory and resources of tasks.
pub struct TaskRunner {
    folder: TempDir,
    /// Settings, which benchmarks may change.
    pub settings: TaskSettings,
    /// Memory budget of outputs.
    pub budget: Budget,
    /// Progress of all tasks together.
    progress: Arc<Progress>,
}

impl TaskRunner {
    /// Creates a runner of tasks of a job with this many partitions.
    pub fn new(partitions: u32) -> Self {
        let folder = tempfile::tempdir().expect("the folder for temporary files can be written");
        let spill = SpillDirs::new(vec![folder.path().to_owned()]);
        let settings = TaskSettings::new(JOB, partitions, spill);
        Self { folder, settings, budget: Budget::new(BUDGET_BYTES), progress: Arc::default() }
    }

    /// Number of runs and outputs that tasks have written to disk so far.
    pub fn spills(&self) -> u64 {
        self.progress.spills.load(Relaxed)
    }

    /// Writes an input file and returns it as one split.
    pub fn split(&self, name: &str, contents: &[u8], format: RecordFormat) -> Split {
        let path = self.folder.path().join(name);
        fs::write(&path, contents).expect("an input file can be written");
        let stamp = FileStamp::of(&fs::metadata(&path).expect("the file was just written"));
        let path = FilePath::new(path.as_os_str().as_bytes());
        let piece = Piece {
            name: path.clone(),
            path,
            place: Place::Submitter,
            offset: 0,
            length: stamp.size,
            stamp,
            compression: Compression::None,
            table: None,
        };
        Split { input: 0, format, pieces: vec![piece] }
    }

    fn context(&self, attempt: AttemptId) -> AttemptContext<'_> {
        AttemptContext {
            attempt,
            side: Arc::new(SideInputs::none()),
            settings: &self.settings,
            budget: &self.budget,
            progress: &self.progress,
        }
    }

    /// Runs map number `index`.
    pub fn map(&self, plan: &JobPlan, index: u32, split: &Split) -> MapOutput {
        run_map(plan, self.context(TaskId::map(JOB, index).attempt(0)), split, &LocalFiles)
            .expect("the mapper of a benchmark takes any input")
            .output
    }

    /// Runs the reduce of partition 0 and discards its output.
    pub fn reduce(&self, plan: &JobPlan, segments: Vec<SegmentData>) -> PartDone {
        let output = Output::new("part", Box::new(std::io::sink()));
        run_reduce(plan, self.context(TaskId::reduce(JOB, 0).attempt(0)), segments, output)
            .expect("the reducer of a benchmark takes any group")
    }
}
